"""Which MIG profiles a site's cards are cut into, as far as mig-parted files and the labels of nodes tell.

Whether the files are right is migjudge's business. Source: GPU Operator, label nvidia.com/mig.config, and the names of
its generated configs (`all-1g.10gb`, `all-disabled`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache

from hybridgpu.consumers.kubernetes import miginforce
from hybridgpu.consumers.kubernetes.given import KubeFiles
from hybridgpu.consumers.kubernetes.migspec import MigEntry
from hybridgpu.model.catalogue import models
from hybridgpu.model.gpu import GpuModel
from hybridgpu.model.labels import MIG_CONFIG


@dataclass(frozen=True, slots=True)
class Cut:
    """The profiles there are, and whether some card is whole."""

    profiles: frozenset[str]
    whole: bool

    def __or__(self, other: Cut) -> Cut:
        return Cut(self.profiles | other.profiles, self.whole or other.whole)


@cache
def anything() -> Cut:
    """Nothing is known: any profile of the catalogue, and whole cards."""
    return Cut(frozenset(profile.name for model in models() for profile in model.profiles), whole=True)


def cut_of(files: KubeFiles) -> Cut:
    """What the configs in force make of the cards: those that nodes are labelled with, else all there are."""
    known: dict[str, Cut] = {}
    for file in miginforce.in_force(files):
        configs = miginforce.configs(file.text)
        if configs is None:
            return anything()
        for name, entries in configs.items():
            known[name] = known[name] | _of(entries) if name in known else _of(entries)
    asked: dict[str, dict[str, GpuModel]] = {}
    for node in (node for node in files.nodes if node.has_gpus):
        cards = node.cards.cards if node.cards else ()
        asked.setdefault(node.labels.get(MIG_CONFIG, ""), {}).update({c.model.name: c.model for c in cards if c.model})
    if set(asked) - {""}:
        return _union(known.get(label) or _generated(label, models) for label, models in asked.items())
    return _union(known.values()) if known else anything()


def _of(entries: Iterable[MigEntry]) -> Cut:
    """A config's; a card that only some indices may leave out counts as whole."""
    listed = list(entries)
    profiles = frozenset(name for entry in listed for name, count in entry.counts.items() if count > 0)
    whole = any(not entry.enabled or entry.devices is not None for entry in listed)
    return Cut(profiles, whole)


def _generated(label: str, models: Mapping[str, GpuModel]) -> Cut:
    """One of the operator's own configs, by its name, on cards of these models; without a label no card is cut."""
    layouts = miginforce.generated(label, models.values()) if label else (None,)
    profiles = frozenset(profile for layout in layouts for profile in layout or ())
    return Cut(profiles, whole=None in layouts) if layouts else anything()


def _union(cuts: Iterable[Cut]) -> Cut:
    result = Cut(frozenset(), whole=False)
    for cut in cuts:
        result |= cut
    return result
