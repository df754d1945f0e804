"""Cards in memory that are cut, layouts that are wanted of them, and what somebody else does meanwhile."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from itertools import permutations
from typing import Any

from hybridgpu.devices.cut import Target, TargetInstance, in_order
from hybridgpu.devices.effect import Card
from hybridgpu.devices.port import Cutter
from hybridgpu.devices.recut import apply
from hybridgpu.lab.card import LabCard
from hybridgpu.lab.cards import LabCards
from hybridgpu.lab.faults import FaultyCutter
from hybridgpu.model.catalogue import NotFound, find
from hybridgpu.model.geometry import Layout, layouts
from hybridgpu.model.gpu import GpuModel
from hybridgpu.model.sharing import ComputeMode

MODELS = ("A100-SXM4-80GB", "H100-80GB-HBM3", "A30")
UUID = "GPU-11111111-2222-3333-4444-555555555555"
CARD = Card(0, 0, "0000:07:00.0", UUID)
OFF = Layout(())

Shape = list[tuple[str, int, tuple[int, ...]]]


def model(name: str) -> GpuModel:
    found = find(name)
    assert not isinstance(found, NotFound)
    return found


def target(layout: Layout, card: Card = CARD) -> Target:
    """A layout as it is wanted of a card; without MIG in the one compute mode that only a whole card can have."""
    wanted = (TargetInstance(i.profile.name, i.placement, (i.profile.compute,)) for i in layout.instances)
    on = layout is not OFF
    return Target(card, on, in_order(wanted), ComputeMode.DEFAULT if on else ComputeMode.EXCLUSIVE_PROCESS)


def cut(known: GpuModel, layout: Layout, uuid: str = UUID) -> LabCard:
    """A card that is cut so, by the card's own calls."""
    card = LabCard(known, uuid)
    if layout is not OFF:
        card.set_mig(True)
    for instance in layout.instances:
        card.create_instance(instance.profile, instance.placement)
    for gi in list(card.instances):
        card.create_compute(card.instances[gi], card.compute_sizes(card.instances[gi])[-1])
    return card


def shape(card: LabCard) -> Shape:
    """What is cut: profile, start, and the compute instances' sizes."""
    instances = card.seen().instances
    return [(i.profile, i.placement.start, tuple(c.slices for c in i.computes)) for i in instances]


def shape_of(layout: Layout) -> Shape:
    wanted = sorted(layout.instances, key=lambda i: i.placement)
    return [(i.profile.name, i.placement.start, (i.profile.compute,)) for i in wanted]


def uuids(card: LabCard) -> dict[tuple[str, int], str]:
    """The UUIDs of whole instances by profile and start."""
    instances = card.seen().instances
    return {(i.profile, i.placement.start): i.computes[0].uuid for i in instances if len(i.computes) == 1}


def is_at(card: LabCard, layout: Layout) -> bool:
    wanted = target(layout)
    modes = (card.mig, card.pending, card.compute_mode) == (wanted.mig, wanted.mig, wanted.compute_mode)
    return modes and shape(card) == shape_of(layout)


@dataclass(frozen=True)
class Pair:
    """From one layout of a model to another."""

    model: GpuModel
    before: Layout
    wanted: Layout

    def card(self) -> LabCard:
        return cut(self.model, self.before)

    def kept(self) -> set[tuple[str, int]]:
        common = set(self.before.instances) & set(self.wanted.instances)
        return {(i.profile.name, i.placement.start) for i in common}

    def calls(self) -> int:
        """How many calls it takes when nothing goes wrong."""
        cutter = FaultyCutter(LabCards([self.card()]), {})
        assert apply([target(self.wanted)], cutter)[0].state.good
        return len(cutter.calls)


def pairs(name: str) -> list[Pair]:
    """Every two different layouts of a model, and a card without MIG beside them."""
    known = model(name)
    return [Pair(known, *two) for two in permutations([OFF, *layouts(known)], 2)]


def sampled(name: str, most: int, seed: int) -> list[Pair]:
    every = pairs(name)
    return every if most >= len(every) else random.Random(seed).sample(every, most)


class Meanwhile(FaultyCutter):
    """What somebody else does just before a call."""

    def __init__(self, cutter: Cutter, call: int, act: Callable[[], object]) -> None:
        super().__init__(cutter, {})
        self._call_number, self._act = call, act

    def _call(self, method: str, *arguments: object) -> Any:  # noqa: ANN401
        if len(self.calls) + 1 == self._call_number:
            self._act()
        return super()._call(method, *arguments)
