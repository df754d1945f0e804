"""Which MIG profiles a site's cards are cut into, as far as mig-parted files and the labels of nodes tell.

Whether the files are right is migjudge's business. Source: GPU Operator, label nvidia.com/mig.config, and the names of
its generated configs (`all-1g.10gb`, `all-disabled`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from hybridgpu.consumers.kubernetes.given import KubeFiles
from hybridgpu.consumers.kubernetes.migspec import MigEntry, read_mig
from hybridgpu.model.catalogue import models

MIG_LABEL = "nvidia.com/mig.config"
_ALL = "all-"
_NONE_CUT = ("all-disabled", "")


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
    for file in files.mig_files:
        reading = read_mig(file.text)
        if reading.file is None:
            return anything()
        for name, entries in reading.file.configs.items():
            known[name] = known[name] | _of(entries) if name in known else _of(entries)
    labels = {node.labels.get(MIG_LABEL, "") for node in files.nodes if node.has_gpus}
    if labels - {""}:
        return _union(known.get(label) or _generated(label) for label in labels)
    return _union(known.values()) if known else anything()


def named_configs(files: KubeFiles) -> frozenset[str]:
    """The names of the configs in the mig-parted files."""
    found = (read_mig(file.text).file for file in files.mig_files)
    return frozenset(name for file in found if file is not None for name in file.configs)


def _of(entries: Iterable[MigEntry]) -> Cut:
    """A config's; a card that only some indices may leave out counts as whole."""
    listed = list(entries)
    profiles = frozenset(name for entry in listed for name, count in entry.counts.items() if count > 0)
    whole = any(not entry.enabled or entry.devices is not None for entry in listed)
    return Cut(profiles, whole)


def _generated(label: str) -> Cut:
    """One of the operator's own configs, by its name."""
    profile = label.removeprefix(_ALL)
    if label in _NONE_CUT:
        return Cut(frozenset(), whole=True)
    if label.startswith(_ALL) and profile in anything().profiles:
        return Cut(frozenset((profile,)), whole=False)
    return anything()


def _union(cuts: Iterable[Cut]) -> Cut:
    result = Cut(frozenset(), whole=False)
    for cut in cuts:
        result |= cut
    return result
