"""Every layout to every other on cards in memory, with every call failing, hanging or being the last of the process."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from hybridgpu.devices.outcome import Outcome, State
from hybridgpu.devices.port import Holder, Use
from hybridgpu.devices.recut import apply, survey
from hybridgpu.lab.card import LabCard
from hybridgpu.lab.cards import LabCards
from hybridgpu.lab.faults import DIES, HANGS, Died, Fault, FaultyCutter
from tests.conftest import soak
from tests.lab.layouts import CARD, MODELS, Meanwhile, Pair, is_at, pairs, sampled, shape, shape_of, target, uuids

PID = 4711

ERRORS = (
    *("UNINITIALIZED", "INVALID_ARGUMENT", "NOT_SUPPORTED", "NO_PERMISSION", "NOT_FOUND", "INSUFFICIENT_SIZE"),
    *("DRIVER_NOT_LOADED", "TIMEOUT", "FUNCTION_NOT_FOUND", "GPU_IS_LOST", "RESET_REQUIRED", "OPERATING_SYSTEM"),
    *("LIB_RM_VERSION_MISMATCH", "IN_USE", "MEMORY", "NO_DATA", "INSUFFICIENT_RESOURCES", "UNKNOWN"),
)
LOST = (State.NEEDS_RESET, State.NEEDS_REBOOT)


def ways(chance: random.Random) -> Iterator[Fault]:
    """Every way in which one call can go wrong; of errors, one that chance takes."""
    for after in (False, True):
        yield Fault(DIES, after)
        yield Fault(HANGS, after)
        yield Fault(chance.choice(ERRORS), after)


def test_there_are_as_many_layouts_as_nvidia_has() -> None:
    assert [len(pairs(name)) for name in MODELS] == [29 * 28, 29 * 28, 5 * 4]


@pytest.mark.parametrize("name", MODELS)
def test_every_layout_to_every_other(name: str) -> None:
    for pair in pairs(name):
        card = pair.card()
        had, cutter = uuids(card), FaultyCutter(LabCards([card]), {})
        (plan,) = survey([target(pair.wanted)], cutter)
        assert plan.may_begin
        (outcome,) = apply([target(pair.wanted)], cutter)
        assert outcome == Outcome(CARD, State.CHANGED, plan.effects), pair  # as it was foreseen, to the last effect
        assert is_at(card, pair.wanted)
        assert pair.kept() <= {place for place, uuid in uuids(card).items() if had.get(place) == uuid}
        changes = len([call for call in cutter.calls if call != "look"])
        assert apply([target(pair.wanted)], cutter) == (Outcome(CARD, State.AS_WANTED),)
        assert changes == len([call for call in cutter.calls if call != "look"])


@pytest.mark.parametrize("name", MODELS)
def test_whatever_call_goes_wrong_it_converges_when_run_again(
    name: str, record_property: Callable[[str, object], None]
) -> None:
    chance = random.Random(5)
    pairs, count = sampled(name, soak(12, 10_000), 5), 0
    for pair in pairs:
        for call in range(1, pair.calls() + 1):
            for fault in ways(chance):
                _goes_wrong(pair, call, fault)
                count += 1
    record_property(
        "measured", f"{len(pairs):,} pairs of layouts, {count:,} calls that fail or are the last: converges"
    )


def _goes_wrong(pair: Pair, call: int, fault: Fault) -> None:
    card, wanted = pair.card(), [target(pair.wanted)]
    had, modes = uuids(card), (card.mig, card.compute_mode)
    outcome: Outcome | None = None
    with suppress(Died):
        (outcome,) = apply(wanted, FaultyCutter(LabCards([card]), {call: fault}))
    about = (pair.before.profiles, pair.wanted.profiles, call, fault, outcome)
    assert (outcome is None) == (fault.what == DIES), about
    if outcome is not None and outcome.state.good:
        assert is_at(card, pair.wanted), about
    elif outcome is not None and outcome.state not in LOST:
        assert outcome.rolled_back in (None, True), about
        assert outcome.why, about
        assert (shape(card), card.mig, card.compute_mode) == (shape_of(pair.before), *modes), about
    (again,) = apply(wanted, LabCards([card]))
    assert again.state.good, (about, again)
    assert is_at(card, pair.wanted), about
    now = uuids(card)
    assert all(now[place] == had[place] for place in pair.kept()), about


def place_of(card: LabCard, gi: int, ci: int) -> tuple[str, int, str]:
    instance = card.instances[gi]
    return instance.profile, instance.placement.start, next(c.uuid for c in instance.computes if c.ci == ci)


@pytest.mark.parametrize("name", MODELS)
def test_what_is_in_use_is_never_destroyed_and_its_user_is_named(name: str) -> None:
    """A process is there from the first: nothing at all is done where it is in the way, else it is not disturbed."""
    chance = random.Random(6)
    for pair in sampled(name, soak(60, 10_000), 6):
        card = pair.card()
        slot = chance.choice(sorted(card.starts)) if card.starts else (None, None)
        holder = Holder(PID, chance.choice((Use.COMPUTE, Use.GRAPHICS, Use.MPS)), *slot)
        card.run(holder)
        before = card.seen()
        cutter = FaultyCutter(LabCards([card]), {})
        (outcome,) = apply([target(pair.wanted)], cutter)
        kept = slot[0] is not None and place_of(card, *slot)[:2] in pair.kept()
        if kept:
            assert outcome.state is State.CHANGED
            assert is_at(card, pair.wanted)
            assert set(before.instances) & set(card.seen().instances)
        else:
            assert (outcome.state, outcome.holders, card.seen()) == (State.BUSY, (holder,), before)
            assert f"process {PID} ({holder.use})" in outcome.why
            assert set(cutter.calls) == {"look"}


@pytest.mark.parametrize("name", MODELS)
def test_what_comes_into_use_on_the_way_is_not_destroyed(name: str) -> None:
    """A process appears on some instance just before some call, be it between the look and the change."""
    chance = random.Random(7)
    for pair in sampled(name, soak(60, 10_000), 7):
        for call in range(1, pair.calls() + 1):
            card = pair.card()
            came: list[tuple[str, int, str]] = []

            def appears(card: LabCard = card, came: list[tuple[str, int, str]] = came) -> None:
                if card.starts:
                    slot = chance.choice(sorted(card.starts))
                    card.run(Holder(PID, Use.COMPUTE, *slot))
                    came.append(place_of(card, *slot))
                elif not card.mig:
                    card.run(Holder(PID, Use.COMPUTE))

            (outcome,) = apply([target(pair.wanted)], Meanwhile(LabCards([card]), call, appears))
            for profile, start, uuid in came:
                assert uuids(card)[profile, start] == uuid, (pair, call, outcome)
            assert outcome.state in (State.CHANGED, State.BUSY), outcome
            card.end(PID)
            (again,) = apply([target(pair.wanted)], LabCards([card]))
            assert again.state.good, again
            assert is_at(card, pair.wanted)


@pytest.mark.parametrize("name", MODELS)
def test_two_who_cut_one_card_come_to_an_end(name: str) -> None:
    """Somebody else takes away an instance now and then: it is made again, or given up; never for ever."""
    for pair in sampled(name, soak(20, 10_000), 8):
        for call in range(3, pair.calls() + 1):
            card = pair.card()

            def takes(card: LabCard = card) -> None:
                for gi, instance in list(card.instances.items()):
                    for compute in instance.computes:
                        card.destroy_compute(card.instances[gi], compute)
                    card.destroy_instance(card.instances[gi])

            (outcome,) = apply([target(pair.wanted)], Meanwhile(LabCards([card]), call, takes))
            assert outcome.state in (State.CHANGED, State.FAILED), outcome
            (again,) = apply([target(pair.wanted)], LabCards([card]))
            assert again.state.good
            assert is_at(card, pair.wanted)
