"""Node objects as records, and what feature discovery's labels say of a node's cards.

What is not told by the labels is not guessed: then the cards are None and nothing is judged for them.
Source: k8s-device-plugin v0.20.0 internal/lm; Kubernetes core/v1 Node.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import lru_cache

from hybridgpu.consumers.kubernetes.devicemap import WHOLE
from hybridgpu.consumers.kubernetes.given import KubeNode, Taint
from hybridgpu.consumers.kubernetes.labelnumber import label_number
from hybridgpu.consumers.kubernetes.node import Node, card_of
from hybridgpu.consumers.kubernetes.replicated import PREFIX, SHARED
from hybridgpu.files.gotree import GoMap, GoNode, GoScalar
from hybridgpu.files.manifest import Manifest
from hybridgpu.model.catalogue import NotFound, find, identify
from hybridgpu.model.geometry import Misfit, arrange
from hybridgpu.model.gpu import GpuModel
from hybridgpu.model.naming import kubernetes_resource

_MOST_CARDS, _MOST_INSTANCES = 16, 8
_TELLING, _TOLD = (f"{WHOLE}.", f"{PREFIX}mig"), (".product", ".count", ".memory", ".replicas", "mig.strategy")
_SHARED_PRODUCT, _MIG_PRODUCT = "-SHARED", "-MIG-"


def read_node(manifest: Manifest) -> KubeNode | None:
    """The record of a Node object; None for any other."""
    if manifest.kind != "Node" or manifest.api_version not in ("v1", ""):
        return None
    entries = manifest.mapping("metadata", "labels")
    labels = {key.name: word(value) or "" for key, value in entries}
    places = {key.name: manifest.place(key) for key, _ in entries if key.name.startswith(PREFIX)}
    allocatable = _resources(manifest, "allocatable")
    if allocatable is None:
        allocatable = _resources(manifest, "capacity")
    return KubeNode(
        manifest.name,
        manifest.place(),
        labels,
        places,
        tuple(_taints(manifest)),
        allocatable,
        manifest.value("spec", "unschedulable") is True,
        cards_of(labels, allocatable),
    )


def word(node: GoNode | None) -> str | None:
    """A scalar's text as it was written; None where there is none, or null."""
    return node.text if isinstance(node, GoScalar) and node.value is not None else None


def cards_of(labels: Mapping[str, str], allocatable: Mapping[str, int] | None = None) -> Node | None:
    """The cards that labels show, or None where they do not tell model, number and MIG devices."""
    told = ((key, value) for key, value in labels.items() if key.startswith(_TELLING) and key.endswith(_TOLD))
    whole = None if allocatable is None else allocatable.get(WHOLE, 0) or allocatable.get(WHOLE + SHARED, 0)
    return _cards(frozenset(told), whole)


@lru_cache(maxsize=1024)
def _cards(told: frozenset[tuple[str, str]], offered: int | None) -> Node | None:
    labels = dict(told)
    product, count = labels.get(f"{WHOLE}.product", ""), label_number(labels.get(f"{WHOLE}.count")) or 0
    name, mig, profile = product.removesuffix(_SHARED_PRODUCT).partition(_MIG_PRODUCT)
    model = _model(name, 0 if mig else label_number(labels.get(f"{WHOLE}.memory")) or 0)
    if model is None or not 0 < count <= _MOST_CARDS * _MOST_INSTANCES:
        return None
    if mig:
        return _single(model, profile, count)
    if count > _MOST_CARDS:
        return None
    if labels.get(f"{PREFIX}mig.strategy") == "mixed":
        return _mixed(model, count, labels, offered)
    # A replicas of 0 is a card in MIG mode, whose instances nobody labels.
    return None if labels.get(f"{WHOLE}.replicas") == "0" else _cut(model, count, [])


def _model(name: str, mebibytes: int) -> GpuModel | None:
    found = find(name) if name else None
    if isinstance(found, NotFound) and mebibytes:
        found = identify(name, mebibytes * 2**20)
    return found if isinstance(found, GpuModel) else None


def _single(model: GpuModel, label: str, count: int) -> Node | None:
    """Cards that are cut alike into as many instances of one profile as they hold; fewer are not told apart."""
    profile = next((p for p in model.profiles if p.name.replace("+", ".") == label), None)
    if profile is None or count % profile.max_count or count // profile.max_count > _MOST_CARDS:
        return None
    cards = count // profile.max_count
    return _cut(model, cards, [(profile.name,) * profile.max_count] * cards)


def _mixed(model: GpuModel, count: int, labels: Mapping[str, str], offered: int | None) -> Node | None:
    """Instances dealt out over the cards in MIG mode: alike where that fits, else as tightly as they go."""
    counts = {p.name: label_number(labels.get(f"{kubernetes_resource(p.name)}.count")) for p in model.profiles}
    found = Counter({name: number for name, number in counts.items() if number})
    if found.total() > model.slices * count:
        return None
    replicas = label_number(labels.get(f"{WHOLE}.replicas")) if f"{WHOLE}.replicas" in labels else 1
    if not found:
        return _cut(model, count, [] if replicas else [()] * count)
    # Where whole cards are labelled too, only what is offered tells how many they are.
    cut = count if not replicas else 0 if offered is None else count - offered // replicas
    layouts = _even(model, found, cut) or _tight(model, found, cut or count)
    return _cut(model, count, [*layouts, *[()] * (cut - len(layouts))]) if layouts else None


def _even(model: GpuModel, found: Counter[str], cards: int) -> list[tuple[str, ...]]:
    if cards <= 0 or any(number % cards for number in found.values()):
        return []
    each = {name: number // cards for name, number in found.items()}
    if isinstance(arrange(model, each), Misfit):
        return []
    return [tuple(Counter(each).elements())] * cards


def _tight(model: GpuModel, found: Counter[str], cards: int) -> list[tuple[str, ...]]:
    """First fit, largest first; nothing where that needs more cards than there are."""
    size = {profile.name: profile.size for profile in model.profiles}
    layouts: list[Counter[str]] = []
    for name in sorted(found.elements(), key=lambda name: -size[name]):
        for layout in layouts:
            if not isinstance(arrange(model, layout + Counter([name])), Misfit):
                layout[name] += 1
                break
        else:
            layouts.append(Counter([name]))
            if len(layouts) > cards:
                return []
    return [tuple(layout.elements()) for layout in layouts]


def _cut(model: GpuModel, count: int, layouts: list[tuple[str, ...]]) -> Node:
    """The first cards are cut so, the others whole."""
    return Node(tuple(card_of(model, i, layouts[i] if i < len(layouts) else None) for i in range(count)))


def _resources(manifest: Manifest, field: str) -> dict[str, int] | None:
    """The nvidia.com resources below status; None where the file has no such field."""
    node = manifest.get("status", field)
    if not isinstance(node, GoMap):
        return None
    return {key.name: label_number(word(value)) or 0 for key, value in node.entries if key.name.startswith(PREFIX)}


def _taints(manifest: Manifest) -> Iterator[Taint]:
    for item in manifest.items("spec", "taints"):
        if isinstance(item, GoMap):
            key, value, effect = (word(item.get(name)) or "" for name in ("key", "value", "effect"))
            yield Taint(key, value, effect, manifest.place(item))
