"""What stops a card from being as wanted, and where that leaves it: refusals, resets, reboots, broken cards, others."""

from __future__ import annotations

import pytest

from hybridgpu.devices.cut import Target, TargetInstance
from hybridgpu.devices.effect import Card, CreateInstance, SetComputeMode, SetMig
from hybridgpu.devices.outcome import State, findings
from hybridgpu.devices.port import Holder, NotDone, Unread, Use
from hybridgpu.devices.recut import apply
from hybridgpu.lab.card import Broken, LabCard
from hybridgpu.lab.cards import LabCards
from hybridgpu.lab.faults import Fault, FaultyCutter
from hybridgpu.model.geometry import Layout, layouts
from hybridgpu.model.gpu import GpuModel, Placement
from hybridgpu.model.sharing import ComputeMode
from tests.conftest import soak
from tests.lab.layouts import (
    CARD,
    MODELS,
    OFF,
    UUID,
    Meanwhile,
    Pair,
    cut,
    is_at,
    model,
    sampled,
    shape,
    shape_of,
    target,
    uuids,
)

Holders = tuple[Holder, ...]


class Refuses(LabCards):
    """Cards of which the driver will not make one profile, however often it is asked."""

    profile = ""

    def create_gpu_instance(self, card: str, profile: str, placement: Placement) -> NotDone | None:
        if profile == self.profile:
            return NotDone("nvmlDeviceCreateGpuInstanceWithPlacement", "INSUFFICIENT_RESOURCES")
        return super().create_gpu_instance(card, profile, placement)


def layout(known: GpuModel, profiles: dict[str, int]) -> Layout:
    return next(found for found in layouts(known) if found.profiles == profiles)


@pytest.mark.parametrize("name", MODELS)
def test_what_the_driver_never_makes_is_rolled_back_to_what_was_there(name: str) -> None:
    for pair in sampled(name, soak(200, 10_000), 9):
        new = [i.profile.name for i in pair.wanted.instances if i not in pair.before.instances]
        old = {i.profile.name for i in pair.before.instances}
        refused = next((profile for profile in reversed(new) if profile not in old), None)
        if refused is None:
            continue
        card = pair.card()
        had, mode, cutter = uuids(card), card.compute_mode, Refuses([card])
        cutter.profile = refused
        for _ in range(2):
            (outcome,) = apply([target(pair.wanted)], cutter)
            assert (outcome.state, shape(card), card.mig) == (
                State.FAILED,
                shape_of(pair.before),
                pair.before is not OFF,
            )
            assert card.compute_mode == mode
            assert f"create a GPU instance {refused}" in outcome.why
            assert outcome.rolled_back is (True if outcome.done else None)
            assert all(uuids(card)[place] == had[place] for place in pair.kept())
        cutter.profile = ""
        assert apply([target(pair.wanted)], cutter)[0].state is State.CHANGED


def test_what_was_divided_is_divided_again() -> None:
    known = model(MODELS[0])
    card = cut(known, layout(known, {"7g.80gb": 1}))
    instance = card.instances[0]
    card.destroy_compute(instance, instance.computes[0])
    for slices in (3, 2, 1):
        card.create_compute(card.instances[0], slices)
    cutter = Refuses([card])
    cutter.profile = "1g.10gb"
    (outcome,) = apply([target(layout(known, {"4g.40gb": 1, "2g.20gb": 1, "1g.10gb": 1}))], cutter)
    assert (outcome.state, outcome.rolled_back) == (State.FAILED, True)
    assert shape(card) == [("7g.80gb", 0, (3, 2, 1))]
    (outcome,) = apply([target(layout(known, {"7g.80gb": 1}))], cutter)
    assert shape(card) == [("7g.80gb", 0, (7,))]
    assert len(outcome.done) == 4  # the GPU instance itself is right, and stays


def test_what_cannot_be_made_again_either_is_said() -> None:
    known = model(MODELS[0])
    card = cut(known, layout(known, {"7g.80gb": 1}))
    cutter = FaultyCutter(LabCards([card]), {call: Fault("UNKNOWN") for call in range(8, 100)})
    (outcome,) = apply([target(layout(known, {"3g.40gb": 2}))], cutter)
    assert (outcome.state, outcome.rolled_back) == (State.UNREAD, False)
    (finding,) = findings([outcome])
    assert finding.message.endswith("look answered UNKNOWN; it could not be cut again as it was")


@pytest.mark.parametrize("name", MODELS[:2])
def test_a_client_that_no_list_shows(name: str) -> None:
    known = model(name)
    card = cut(known, OFF)
    card.compute_mode = ComputeMode.EXCLUSIVE_PROCESS
    card.broken = Broken.IN_USE
    wanted = [target(layouts(known)[0])]
    for _ in range(2):
        (outcome,) = apply(wanted, LabCards([card]))
        assert outcome.state is (State.NEEDS_RESET if card.keeps_mode else State.BUSY)
        assert "a client that no list shows" in outcome.why
        assert (card.mig, card.pending) == (False, card.keeps_mode)
    (back,) = apply([target(OFF)], LabCards([card]))  # the pending mode is taken back, in use or not
    assert (back.state, card.pending) == (State.CHANGED if card.keeps_mode else State.AS_WANTED, False)
    card.broken = None
    assert apply(wanted, LabCards([card]))[0].state is State.CHANGED
    card.broken = Broken.IN_USE
    before = card.seen()
    (outcome,) = apply([target(layouts(known)[1])], LabCards([card]))
    assert (outcome.state, card.seen()) == (State.BUSY, before)


def test_a_card_that_only_a_reboot_activates() -> None:
    known = model(MODELS[0])
    card = LabCard(known, UUID, passthrough=True)
    wanted = [target(layouts(known)[3])]
    for _ in range(2):
        (outcome,) = apply(wanted, LabCards([card]))
        assert (outcome.state, outcome.rolled_back, card.pending) == (State.NEEDS_REBOOT, None, True)
        assert [type(effect) for effect in outcome.left[:2]] == [SetMig, CreateInstance]
    card.reboot()
    assert apply(wanted, LabCards([card]))[0].state is State.CHANGED
    card.reboot()
    (outcome,) = apply(wanted, LabCards([card]))
    assert SetMig not in {type(effect) for effect in outcome.done}  # the mode lasted
    (outcome,) = apply([target(OFF)], LabCards([card]))
    assert (outcome.state, card.instances) == (State.NEEDS_REBOOT, {})
    assert SetComputeMode in {type(effect) for effect in outcome.left}


@pytest.mark.parametrize("name", MODELS)
def test_a_reboot_takes_the_instances_and_on_hopper_the_mode(name: str) -> None:
    known = model(name)
    card = cut(known, layouts(known)[2])
    card.reboot()
    (outcome,) = apply([target(layouts(known)[2])], LabCards([card]))
    assert outcome.state is State.CHANGED
    assert (SetMig(CARD, True) in outcome.done) != card.keeps_mode
    assert is_at(card, layouts(known)[2])


@pytest.mark.parametrize(
    ("how", "state"),
    [
        (Broken.LOST, State.NEEDS_REBOOT),
        (Broken.RESET_REQUIRED, State.NEEDS_RESET),
        (Broken.UNKNOWN, State.UNREAD),
        (Broken.HANG, State.UNREAD),
    ],
)
def test_one_broken_card_is_named_and_nothing_is_begun_on_any(how: Broken, state: State) -> None:
    known = model(MODELS[1])
    cards = [cut(known, found, f"GPU-{at}") for at, found in enumerate(layouts(known)[:4])]
    cards[2].broken = how
    ids = [Card(at, at, f"0000:0{at}:00.0", card.uuid) for at, card in enumerate(cards)]
    wanted = [target(layouts(known)[3], card) for card in ids]
    before = [card.seen() for card in cards]
    cutter = LabCards(cards)
    outcomes = apply(wanted, cutter)
    assert [o.state for o in outcomes] == [State.WAITING, State.WAITING, state, State.AS_WANTED]
    assert [card.seen() for card in cards] == before
    assert (
        next(findings(outcomes)).message == "GPU 0 at 0000:00:00.0 (GPU-0): it waits for GPU 2 at 0000:02:00.0 (GPU-2)"
    )
    cards[2].broken = None
    states = [o.state for o in apply(wanted, cutter)]
    assert states == [*[State.CHANGED] * 3, State.AS_WANTED]
    del cutter.cards["GPU-1"]
    assert apply(wanted, cutter)[1].state is State.NEEDS_REBOOT


def test_a_card_that_breaks_on_the_way_stops_those_behind_it() -> None:
    known = model(MODELS[0])
    cards = [cut(known, layouts(known)[0], f"GPU-{at}") for at in range(3)]
    ids = [Card(at, at, f"0000:0{at}:00.0", card.uuid) for at, card in enumerate(cards)]
    wanted = [target(layouts(known)[4], card) for card in ids]
    surveyed, first = 3, Pair(known, layouts(known)[0], layouts(known)[4]).calls() - 1

    def breaks() -> None:
        cards[1].broken = Broken.HANG

    outcomes = apply(wanted, Meanwhile(LabCards(cards), surveyed + first + 6, breaks))
    assert [o.state for o in outcomes] == [State.CHANGED, State.UNREAD, State.WAITING]
    assert outcomes[1].rolled_back is False
    cards[1].broken = None
    assert [o.state for o in apply(wanted, LabCards(cards))] == [State.AS_WANTED, State.CHANGED, State.CHANGED]


def test_who_has_the_device_file_open_holds_the_whole_card() -> None:
    known = model(MODELS[0])
    card = cut(known, layouts(known)[0])
    slot = next(iter(card.starts))
    wanted = [target(layouts(known)[1])]
    holder = Holder(9, Use.OPEN_FILE)
    (outcome,) = apply(wanted, LabCards([card]), lambda _: (holder,))
    assert (outcome.state, outcome.holders, outcome.why) == (
        State.BUSY,
        (holder,),
        "it is used by process 9 (open file)",
    )
    (outcome,) = apply(wanted, LabCards([card]), lambda _: Unread("/proc/1/fd", "Permission denied"))
    assert outcome.state is State.UNREAD
    assert apply([target(layouts(known)[0])], LabCards([card]), lambda _: (holder,))[0].state is State.AS_WANTED
    card.run(Holder(9, Use.COMPUTE, *slot))
    (outcome,) = apply(wanted, LabCards([card]), lambda _: (holder,))
    assert outcome.holders == (Holder(9, Use.COMPUTE, *slot),)  # what NVML says of a process is the more exact


@pytest.mark.parametrize(
    ("kept", "ancestors", "state"),
    [
        (True, (8, 7, 1), State.CHANGED),
        (True, (8, 1), State.BUSY),
        (False, (8, 7, 1), State.BUSY),
    ],
)
def test_a_child_of_a_job_is_in_the_instance_that_the_job_is_in(
    kept: bool, ancestors: tuple[int, ...], state: State
) -> None:
    """It has the card's file open, as it was forked with it; NVML takes the instance beside it away all the same."""
    known = model(MODELS[0])
    card = cut(known, layout(known, {"3g.40gb": 2}))
    slots = {instance.placement.start: gi for gi, instance in card.instances.items()}
    card.run(Holder(7, Use.COMPUTE, slots[0 if kept else 4], 0))
    child = Holder(9, Use.OPEN_FILE, ancestors=ancestors)
    wanted = TargetInstance("3g.40gb", Placement(0, 4), (3,))
    one = Target(CARD, True, (wanted,), ComputeMode.DEFAULT)
    (outcome,) = apply([one], LabCards([card]), lambda _: (child,))
    assert outcome.state is state, outcome.why
    assert [start for _, start, _ in shape(card)] == ([0] if state is State.CHANGED else [0, 4])
    (off,) = apply([target(OFF)], LabCards([card]), lambda _: (child,))
    assert off.state is State.BUSY
    assert 9 in [holder.pid for holder in off.holders]


def test_who_opens_the_device_file_on_the_way_is_not_disturbed() -> None:
    """The driver would destroy under it: only what is seen before each effect keeps that from happening."""
    known = model(MODELS[0])
    wanted = target(layouts(known)[0])
    for looks in range(2, 30):
        card = cut(known, layouts(known)[6])
        cutter = FaultyCutter(LabCards([card]), {})
        seen: list[int] = []

        def opened(_: Card, calls: list[str] = cutter.calls, seen: list[int] = seen, looks: int = looks) -> Holders:
            seen.append(len(calls))
            return (Holder(9, Use.OPEN_FILE),) if len(seen) >= looks else ()

        (outcome,) = apply([wanted], cutter, opened)
        after = cutter.calls[seen[looks - 1] :] if len(seen) >= looks else []
        assert not [call for call in after if call.startswith(("destroy", "set"))]
        assert outcome.state in (State.BUSY, State.CHANGED)
        if outcome.state is State.CHANGED:
            break
        assert outcome.holders == (Holder(9, Use.OPEN_FILE),)
    else:
        raise AssertionError("it never came to creating, which disturbs nobody")


def test_a_card_without_mig_is_told_apart() -> None:
    known = model("T4")
    card = LabCard(known, UUID)
    (outcome,) = apply([target(layouts(model(MODELS[0]))[0])], LabCards([card]))
    assert (outcome.state, outcome.why) == (State.FAILED, "it has no MIG")
    assert apply([target(OFF)], LabCards([card]))[0].done == (SetComputeMode(CARD, ComputeMode.EXCLUSIVE_PROCESS),)
