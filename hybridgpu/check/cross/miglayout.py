"""What mig-manager is told to cut a node's cards into: the config that the node's label names, over its cards."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from hybridgpu.consumers.kubernetes import miginforce
from hybridgpu.consumers.kubernetes.given import KubeNode, MigFile
from hybridgpu.consumers.kubernetes.migspec import MigEntry
from hybridgpu.model.labels import MIG_CONFIG
from hybridgpu.model.naming import kubernetes_resource


def layouts(node: KubeNode, files: Sequence[MigFile]) -> tuple[tuple[MigFile, tuple[MigEntry, ...]], ...]:
    """The config that the node's label names, in each of the files in force that has one."""
    name = node.labels.get(MIG_CONFIG)
    return miginforce.named(name, files) if name else ()


def enabled(node: KubeNode, files: Sequence[MigFile]) -> bool | None:
    """Whether the label has MIG on; None where it says nothing, or where the files contradict each other."""
    name = node.labels.get(MIG_CONFIG, "")
    found = {any(entry.enabled for entry in entries) for _, entries in layouts(node, files)}
    if name and not files:
        cards = node.cards.cards if node.cards else ()
        found = {cut is not None for cut in miginforce.generated(name, (c.model for c in cards if c.model))}
    return found.pop() if len(found) == 1 else None


def asked_for(node: KubeNode, files: Sequence[MigFile], cards: int) -> Counter[str] | None:
    """MIG devices by resource name that the node's label has mig-manager make; None where it says nothing certain.

    Of a config that mig-manager generates by itself only on cards that are known.
    """
    name = node.labels.get(MIG_CONFIG, "")
    if not name or not cards:
        return None
    found = layouts(node, files)
    if found:
        return next((counts for _, entries in found if (counts := instances(entries, cards)) is not None), None)
    models = {card.model.name: card.model for card in node.cards.cards if card.model} if node.cards else {}
    made = miginforce.generated(name, models.values()) if len(models) == 1 else ()
    if not made or made[0] is None:
        return None
    return Counter({kubernetes_resource(profile): n * cards for profile, n in Counter(made[0]).items()})


def instances(entries: Sequence[MigEntry], cards: int) -> Counter[str] | None:
    """MIG devices by resource name on so many cards; None where device-filters leave open which entries meet them."""
    if any(entry.filters for entry in entries):
        return None
    counted: dict[int, Counter[str]] = {}
    for entry in entries:
        for index in range(cards):
            if entry.devices is None or index in entry.devices:
                names = {kubernetes_resource(text): count for text, count in entry.counts.items() if count}
                counted[index] = Counter(names)
    return sum(counted.values(), Counter())
