"""mig-parted configs for the operator's mig-manager: one entry a layout, complete, so that it can ever be asserted.

Every GPU of a node is covered: mig-parted asserts only where each is matched, else mig-manager cuts again at every
start (NVIDIA/mig-parted assert/config.go). Names are content hashes, so a changed layout is a changed label.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import cache
from typing import Any

from hybridgpu.consumers.kubernetes import miggenerated
from hybridgpu.model.catalogue import models
from hybridgpu.model.sharing import Mode
from hybridgpu.model.site import NodeBody
from hybridgpu.render.kubernetes.config import short_hash

DISABLED = miggenerated.DISABLED

Entry = list[dict[str, Any]]


def layout_name(body: NodeBody) -> str:
    """The mig.config that cuts this node as it is wanted."""
    return f"hybridgpu-{short_hash(layout_entry(body))}" if body.sharing.mode is Mode.MIG else DISABLED


def layout_entry(body: NodeBody) -> Entry:
    """The config of one node: a block for each set of GPUs that are cut alike, every GPU in one of them."""
    cuts: dict[int, dict[str, int]] = {index: {} for index in range(len(body.models))}
    for device in body.devices:
        if device.profile:
            cuts[device.index][device.profile] = cuts[device.index].get(device.profile, 0) + 1
    blocks: dict[tuple[tuple[str, int], ...], list[int]] = {}
    for index, cut in sorted(cuts.items()):
        blocks.setdefault(tuple(sorted(cut.items())), []).append(index)
    if len(blocks) == 1:
        return [_block("all", dict(next(iter(blocks))))]
    return [_block(indices, dict(cut)) for cut, indices in blocks.items()]


def disabled_entry() -> Entry:
    """What mig-manager applies by default: MIG off on every card."""
    return [_block("all", {})]


def configs(bodies: Iterable[NodeBody]) -> dict[str, Entry]:
    """Every config of the ConfigMap: the layouts, and those that NVIDIA generates, for every model with MIG.

    A ConfigMap of one's own takes the generated names away (gpu-operator v26.3), which nodes of others may use.
    """
    cut = (body for body in bodies if body.sharing.mode is Mode.MIG)
    return {**_generated(), **{layout_name(body): layout_entry(body) for body in cut}}


@cache
def _generated() -> dict[str, Entry]:
    """The names and contents that mig-manager generates by itself where it is left to (mig-parted pkg/mig/builder).

    There per node, here once: so each block says by PCI id which cards it is for. An id that two models share, of which
    one is cut otherwise, is left out: nothing tells them apart.
    """
    blocks: dict[str, dict[tuple[tuple[str, int], ...], set[str]]] = {}
    for model in models():
        for name, cut in miggenerated.cuts(model):
            cards = blocks.setdefault(name, {}).setdefault(tuple(cut.items()), set())
            cards.update(f"0x{pci.upper()}10DE" for pci in model.pci_ids)
    found: dict[str, Entry] = {DISABLED: disabled_entry(), "all-enabled": [_block("all", {}, enabled=True)]}
    for name, cuts in sorted(blocks.items()):
        times = Counter(card for cards in cuts.values() for card in cards)
        known = {cut: sorted(card for card in cards if times[card] == 1) for cut, cards in cuts.items()}
        entry = [{"device-filter": cards, **_block("all", dict(cut))} for cut, cards in known.items() if cards]
        if entry:
            found[name] = entry
    return found


def _block(devices: str | list[int], cut: dict[str, int], *, enabled: bool = False) -> dict[str, Any]:
    return {"devices": devices, "mig-enabled": enabled or bool(cut), "mig-devices": cut}
