"""How each card of a node stands on which one is dead or does not tell enough, so that there are no facts. Pure.

Nothing is begun on such a node: the indices of all cards hang on those before them. What is said of the others is what
would be said of each alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from hybridgpu.devices.bind import FILES_DIFFER, card_differences
from hybridgpu.devices.effect import Card
from hybridgpu.devices.factsof import DEAD, address_order, facts_of
from hybridgpu.devices.kernel import KernelCard
from hybridgpu.devices.nodeconfig import NodeWanted
from hybridgpu.devices.observe import Observation
from hybridgpu.devices.outcome import Outcome, State
from hybridgpu.devices.port import CardReading, Unread
from hybridgpu.model.facts import GpuFacts
from hybridgpu.model.sharing import ComputeMode, Mode, Scheduler

_RESET = "RESET_REQUIRED"


@dataclass(frozen=True, slots=True)
class _Seen:
    """One card as the driver and the kernel have it, by its PCI address; None where that does not have it.

    `answer` is what the driver said of a card whose address it did not tell, as long as there are such.
    """

    bus_id: str
    told: CardReading | None
    kernel: KernelCard | None
    answer: Unread | None


def outcomes(wanted: NodeWanted, seen: Observation) -> tuple[Outcome, ...]:
    """Each card in PCI order: what a dead one needs, and whether another is as wanted, or waits for it."""
    cards = [_outcome(wanted, index, card, seen) for index, card in enumerate(_cards(seen))]
    bad = next((str(o.card) for o in cards if o.state not in (State.AS_WANTED, State.WAITING)), "another card")
    waits = (replace(o, why=f"it waits for {bad}: {o.why}") if o.state is State.WAITING else o for o in cards)
    return tuple(waits)


def _cards(seen: Observation) -> Iterator[_Seen]:
    in_kernel = {} if isinstance(seen.kernel.cards, Unread) else {c.bus_id: c for c in seen.kernel.cards}
    told = {card.bus_id: card for card in seen.driver.cards if isinstance(card.bus_id, str)}
    counted = {bus_id for bus_id, card in in_kernel.items() if not card.excluded} | told.keys()
    nameless = iter([card.bus_id for card in seen.driver.cards if isinstance(card.bus_id, Unread)])
    for bus_id in sorted(counted, key=address_order):
        answer = None if bus_id in told else next(nameless, None)
        yield _Seen(bus_id, told.get(bus_id), in_kernel.get(bus_id), answer)


def _outcome(wanted: NodeWanted, index: int, card: _Seen, seen: Observation) -> Outcome:
    named = Card(index, _minor(wanted, index, card), card.bus_id, _uuid(card))
    if card.told is None:
        answer = card.answer or "the kernel's driver has it, and NVML does not show it"
        return Outcome(named, State.NEEDS_RESET if _RESET in str(answer) else State.NEEDS_REBOOT, why=str(answer))
    alone = replace(
        seen,
        driver=replace(seen.driver, cards=(card.told,)),
        kernel=replace(seen.kernel, cards=(card.kernel,) if card.kernel else ()),
    )
    found = facts_of(alone, wanted.node)
    if found.facts is not None:
        return _living(wanted, named, replace(found.facts.gpus[0], index=index))
    finding = found.findings[0]
    why = finding.message.partition(": ")[2]
    if finding.rule is not DEAD:
        return Outcome(named, State.UNREAD, why=why)
    return Outcome(named, State.NEEDS_RESET if _RESET in why else State.NEEDS_REBOOT, why=why)


def _living(wanted: NodeWanted, named: Card, gpu: GpuFacts) -> Outcome:
    if named.index >= len(wanted.cards):
        return Outcome(named, State.WAITING, why="the NodeConfig does not have it")
    card = wanted.cards[named.index]
    devices = [device for device in wanted.devices if device.index == card.index]
    differs = [what for rule, what in card_differences(card, devices, gpu) if rule is not FILES_DIFFER]
    theirs = wanted.sharing.mode is Mode.MPS and card.owner is Scheduler.KUBERNETES
    if not theirs and gpu.compute_mode != ComputeMode.DEFAULT:
        differs.append(f"its compute mode is {gpu.compute_mode}")
    return Outcome(named, State.WAITING if differs else State.AS_WANTED, why="; ".join(differs))


def _minor(wanted: NodeWanted, index: int, card: _Seen) -> int:
    """As the driver tells it, else the kernel, else as the NodeConfig has it."""
    for minor in (card.told and card.told.minor, card.kernel and card.kernel.minor):
        if isinstance(minor, int):
            return minor
    return next((device.minor for device in wanted.devices if device.index == index), index)


def _uuid(card: _Seen) -> str:
    if card.told is not None and isinstance(card.told.uuid, str):
        return card.told.uuid
    return (card.kernel and card.kernel.uuid) or "UUID unknown"
