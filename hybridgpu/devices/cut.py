"""From a card as it is cut to the card as it must be: what is to be done, as effects, and whether it may be. Pure.

Right instances stay as they are, and with them their UUIDs. What is in use is in no plan that may begin, and whoever
uses it is named. Doing it is recut's business.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from hybridgpu.devices.effect import (
    Card,
    CreateCompute,
    CreateInstance,
    DestroyCompute,
    DestroyInstance,
    Effect,
    SetComputeMode,
    SetMig,
)
from hybridgpu.devices.nodeconfig import NodeWanted
from hybridgpu.devices.port import ComputeInstance, Cut, GpuInstance, Holder, Unread, Use
from hybridgpu.devices.wantedcard import WantedCard
from hybridgpu.model.facts import Facts
from hybridgpu.model.gpu import Placement
from hybridgpu.model.sharing import ComputeMode, Mode, Scheduler


@dataclass(frozen=True, slots=True)
class TargetInstance:
    """A GPU instance as it must be: `computes` are the slices of its compute instances, most first.

    One that spans it is all that layouts know; what was there before may have been divided.
    """

    profile: str
    placement: Placement
    computes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Target:
    """What one card must be. `instances` in the order of creation; `compute_mode` None where it is not ours to set."""

    card: Card
    mig: bool
    instances: tuple[TargetInstance, ...]
    compute_mode: ComputeMode | None


@dataclass(frozen=True, slots=True)
class Plan:
    """What brings one card to its target: every effect, in the order in which they are done; empty where it is there.

    It is not begun where there are `holders` of what it changes, where it is `impossible`, or the card is `unread`;
    both say why. `unread` is an Unread where a call was answered, else words; empty where all was read.
    """

    target: Target
    effects: tuple[Effect, ...] = ()
    holders: tuple[Holder, ...] = ()
    impossible: str = ""
    unread: Unread | str = ""

    @property
    def may_begin(self) -> bool:
        """Whether nothing stands in its way."""
        return not (self.holders or self.impossible or self.unread)


def targets(wanted: NodeWanted, facts: Facts) -> tuple[Target, ...]:
    """What each card must be, by index. The facts show the wanted cards: bind.differences has no CARD_DIFFERS.

    At rest every card is in compute mode DEFAULT. EXCLUSIVE_PROCESS is set, and put back, by the hooks around one job.
    """
    return tuple(
        _target(wanted, card, Card(gpu.index, gpu.minor, gpu.pci_bus_id, gpu.uuid))
        for card, gpu in zip(wanted.cards, facts.gpus, strict=True)
    )


def as_it_is(card: Card, seen: Cut) -> Target:
    """The target that a card is at now, to come back to."""
    found = (TargetInstance(i.profile, i.placement, _sizes(i.computes)) for i in seen.instances)
    return Target(card, bool(seen.mig and seen.mig.current), in_order(found), seen.compute_mode)


def in_order(instances: Iterable[TargetInstance]) -> tuple[TargetInstance, ...]:
    """The order of creation: largest profile first, then from the lowest place up."""
    return tuple(sorted(instances, key=lambda i: (-i.placement.size, -slices_of(i.profile), i.profile, i.placement)))


def slices_of(profile: str) -> int:
    """The compute slices of a GPU instance, by its profile's name: 3 of `3g.40gb` (MIG user guide)."""
    return int(profile.partition("g.")[0])


def plan(target: Target, seen: Cut) -> Plan:
    """What is to be done to the card, and who is in its way."""
    if seen.mig is None and target.mig:
        return Plan(target, impossible="it has no MIG")
    effects = tuple(_effects(target, seen))
    holders = [holder for effect in effects for holder in seen.holders if _in_the_way(holder, effect, seen)]
    return Plan(target, effects, tuple(dict.fromkeys(holders)))


def _target(wanted: NodeWanted, card: WantedCard, known: Card) -> Target:
    cut = (d for d in wanted.devices if d.index == card.index and d.profile and d.placement)
    instances = [TargetInstance(d.profile, d.placement, (slices_of(d.profile),)) for d in cut]  # type: ignore[arg-type]
    # NVIDIA's MPS daemon on Kubernetes sets the mode of every card when it starts, and back when it stops.
    theirs = wanted.sharing.mode is Mode.MPS and card.owner is Scheduler.KUBERNETES
    return Target(known, card.mig, in_order(instances), None if theirs else ComputeMode.DEFAULT)


def _effects(target: Target, seen: Cut) -> Iterator[Effect]:
    """First what must go, then the modes, then what must come: at no moment two instances want one slice."""
    card = target.card
    wanted = {(i.profile, i.placement): i.computes for i in target.instances}
    for instance in seen.instances:
        keep = wanted.get((instance.profile, instance.placement))
        yield from (DestroyCompute(card, instance, c) for c in _too_many(instance, keep or ()))
        if keep is None:
            yield DestroyInstance(card, replace(instance, computes=()))
    mode = ComputeMode.DEFAULT if target.mig else target.compute_mode
    lent = any(holder.use is Use.DAEMON for holder in seen.holders)  # with its mode, which is put back by the hooks
    right = lent or mode in (None, seen.compute_mode)
    if target.mig and mode and not right:  # the only one that a card with MIG can have
        yield SetComputeMode(card, mode)
    if seen.mig and not seen.mig.current == seen.mig.pending == target.mig:
        yield SetMig(card, target.mig)
    there = {(i.profile, i.placement): _sizes(i.computes) for i in seen.instances}
    for new in target.instances:
        had = there.get((new.profile, new.placement))
        if had is None:
            yield CreateInstance(card, new.profile, new.placement)
        missing = Counter(new.computes) - Counter(had or ())
        for slices in sorted(missing.elements(), reverse=True):
            yield CreateCompute(card, new.profile, new.placement, slices)
    if not target.mig and mode and not right:
        yield SetComputeMode(card, mode)


def _too_many(instance: GpuInstance, wanted: Iterable[int]) -> Iterator[ComputeInstance]:
    """The compute instances that are more than wanted, in the order of their ids."""
    left = Counter(wanted)
    for compute in instance.computes:
        if left[compute.slices]:
            left[compute.slices] -= 1
        else:
            yield compute


def _sizes(computes: Iterable[ComputeInstance]) -> tuple[int, ...]:
    return tuple(sorted((compute.slices for compute in computes), reverse=True))


def _in_the_way(holder: Holder, effect: Effect, seen: Cut) -> bool:
    """Whether an effect would take from under a process what it uses; taking a pending mode back takes nothing."""
    match effect:
        case SetMig():
            return seen.mig is None or seen.mig.current != effect.on
        case SetComputeMode():
            return True
        case DestroyInstance():
            return holder.gi in (None, effect.instance.gi)
        case DestroyCompute():
            return holder.gi is None or (holder.gi == effect.instance.gi and holder.ci in (None, effect.compute.ci))
    return False
