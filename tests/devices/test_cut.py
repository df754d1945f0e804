"""The plan for one card, by itself: what must be, what is kept, what goes, in which order, and who is in the way."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from hybridgpu.devices.cut import Plan, Target, TargetInstance, as_it_is, plan, targets
from hybridgpu.devices.effect import Card, DestroyCompute, SetMig, as_record
from hybridgpu.devices.nodeconfig import NodeWanted
from hybridgpu.devices.outcome import Outcome, State, findings
from hybridgpu.devices.port import ComputeInstance, Cut, GpuInstance, Holder, MigMode, Use
from hybridgpu.devices.wantedcard import WantedCard
from hybridgpu.model.facts import Facts, GpuFacts
from hybridgpu.model.gpu import Placement
from hybridgpu.model.sharing import ComputeMode, Mode, Scheduler, Sharing
from hybridgpu.model.site import Device

CARD = Card(0, 3, "0000:07:00.0", "GPU-1")
DEFAULT, EXCLUSIVE = ComputeMode.DEFAULT, ComputeMode.EXCLUSIVE_PROCESS
ON, OFF, WILL_BE_ON, WILL_BE_OFF = (
    MigMode(True, True),
    MigMode(False, False),
    MigMode(False, True),
    MigMode(True, False),
)


def there(gi: int, profile: str, start: int, size: int, *slices: int) -> GpuInstance:
    computes = tuple(ComputeInstance(ci, n, f"MIG-{gi}-{ci}") for ci, n in enumerate(slices))
    return GpuInstance(gi, profile, Placement(start, size), computes)


def wanted(*instances: tuple[str, int, int], mig: bool = True, mode: ComputeMode | None = DEFAULT) -> Target:
    found = (TargetInstance(p, Placement(start, size), (int(p[0]),)) for p, start, size in instances)
    return Target(CARD, mig, tuple(found), mode)


def cut(*instances: GpuInstance, mig: MigMode | None = ON, mode: ComputeMode = DEFAULT, holders: object = ()) -> Cut:
    assert isinstance(holders, tuple)
    return Cut(mig, mode, instances, holders)


def said(found: Plan) -> list[str]:
    return [str(effect).removeprefix("GPU 0 at 0000:07:00.0 (GPU-1): ") for effect in found.effects]


HALF, OTHER_HALF = ("3g.40gb", 0, 4), ("3g.40gb", 4, 4)
IS_HALF, IS_OTHER_HALF = there(1, "3g.40gb", 0, 4, 3), there(2, "3g.40gb", 4, 4, 3)


@pytest.mark.parametrize(
    ("target", "seen", "effects"),
    [
        (wanted(HALF), cut(IS_HALF), []),
        (wanted(mig=False), cut(mig=OFF), []),
        (wanted(mig=False), cut(mig=None), []),
        (wanted(mig=False, mode=EXCLUSIVE), cut(mig=None), ["set compute mode exclusive_process"]),
        (wanted(mig=False, mode=None), cut(mig=OFF, mode=EXCLUSIVE), []),
        (wanted(mig=False), cut(mig=OFF, mode=EXCLUSIVE), ["set compute mode default"]),
        (wanted(), cut(mig=WILL_BE_OFF), ["turn MIG on"]),
        (wanted(mig=False), cut(mig=WILL_BE_ON), ["turn MIG off"]),
        (
            wanted(HALF),
            cut(mig=OFF, mode=EXCLUSIVE),
            [
                "set compute mode default",
                "turn MIG on",
                "create a GPU instance 3g.40gb at memory slice 0",
                "create 3g.40gb at memory slice 0",
            ],
        ),
        (
            wanted(HALF),
            cut(mig=WILL_BE_ON),
            ["turn MIG on", "create a GPU instance 3g.40gb at memory slice 0", "create 3g.40gb at memory slice 0"],
        ),
        (
            wanted(mig=False, mode=EXCLUSIVE),
            cut(IS_HALF),
            [
                "destroy 3g.40gb at memory slice 0 (MIG-1-0)",
                "destroy the GPU instance 3g.40gb at memory slice 0",
                "turn MIG off",
                "set compute mode exclusive_process",
            ],
        ),
        (wanted(HALF, OTHER_HALF), cut(IS_HALF, there(2, "3g.40gb", 4, 4)), ["create 3g.40gb at memory slice 4"]),
        (
            wanted(HALF),
            cut(there(1, "3g.40gb", 0, 4, 2, 1)),
            [
                "destroy 2c.3g.40gb at memory slice 0 (MIG-1-0)",
                "destroy 1c.3g.40gb at memory slice 0 (MIG-1-1)",
                "create 3g.40gb at memory slice 0",
            ],
        ),
        (
            wanted(("1g.10gb", 6, 1)),
            cut(there(13, "1g.10gb+me", 6, 1, 1)),
            [
                "destroy 1g.10gb+me at memory slice 6 (MIG-13-0)",
                "destroy the GPU instance 1g.10gb+me at memory slice 6",
                "create a GPU instance 1g.10gb at memory slice 6",
                "create 1g.10gb at memory slice 6",
            ],
        ),
        (
            wanted(HALF, ("1g.10gb", 4, 1)),
            cut(IS_OTHER_HALF),
            [
                "destroy 3g.40gb at memory slice 4 (MIG-2-0)",
                "destroy the GPU instance 3g.40gb at memory slice 4",
                "create a GPU instance 3g.40gb at memory slice 0",
                "create 3g.40gb at memory slice 0",
                "create a GPU instance 1g.10gb at memory slice 4",
                "create 1g.10gb at memory slice 4",
            ],
        ),
    ],
)
def test_what_is_to_be_done(target: Target, seen: Cut, effects: list[str]) -> None:
    found = plan(target, seen)
    assert said(found) == effects
    assert found.may_begin
    assert plan(as_it_is(CARD, seen), seen).effects == () or seen.mig in (WILL_BE_ON, WILL_BE_OFF)


def test_without_mig_it_is_impossible() -> None:
    assert plan(wanted(HALF), cut(mig=None)) == Plan(wanted(HALF), impossible="it has no MIG")


ON_HALF, ON_ALL = Holder(7, Use.COMPUTE, 1, 0), Holder(8, Use.OPEN_FILE)
IN_ITS_SECOND = Holder(9, Use.COMPUTE, 1, 1)
A_JOBS_DAEMON = Holder(5, Use.DAEMON)


@pytest.mark.parametrize(
    ("target", "seen", "holders", "named"),
    [
        (wanted(HALF), cut(IS_HALF), (ON_HALF, ON_ALL), ()),
        (wanted(HALF), cut(IS_HALF, IS_OTHER_HALF), (ON_HALF,), ()),
        (wanted(HALF), cut(IS_HALF, IS_OTHER_HALF), (ON_HALF, ON_ALL), (ON_ALL,)),
        (wanted(OTHER_HALF), cut(IS_HALF, IS_OTHER_HALF), (ON_HALF,), (ON_HALF,)),
        (wanted(HALF, OTHER_HALF), cut(IS_HALF), (ON_HALF, ON_ALL), ()),
        (wanted(HALF), cut(there(1, "3g.40gb", 0, 4, 3, 1)), (ON_HALF,), ()),
        (wanted(HALF), cut(there(1, "3g.40gb", 0, 4, 3, 1)), (IN_ITS_SECOND,), (IN_ITS_SECOND,)),
        (wanted(), cut(there(1, "3g.40gb", 0, 4)), (ON_ALL,), (ON_ALL,)),
        (wanted(mig=False), cut(mig=OFF, mode=EXCLUSIVE), (ON_ALL,), (ON_ALL,)),
        (wanted(mig=False), cut(mig=WILL_BE_ON), (ON_ALL,), ()),
        (wanted(HALF), cut(mig=OFF), (ON_ALL, replace(ON_ALL, pid=9)), (ON_ALL, replace(ON_ALL, pid=9))),
        (wanted(mig=False), cut(mig=OFF, mode=EXCLUSIVE), (A_JOBS_DAEMON, ON_ALL), ()),
        (wanted(HALF), cut(mig=OFF, mode=EXCLUSIVE), (A_JOBS_DAEMON,), (A_JOBS_DAEMON,)),
    ],
)
def test_who_is_in_the_way(target: Target, seen: Cut, holders: tuple[Holder, ...], named: tuple[Holder, ...]) -> None:
    found = plan(target, replace(seen, holders=holders))
    assert found.holders == named
    assert found.may_begin != bool(named)


def device(index: int, profile: str, start: int, size: int) -> Device:
    return Device(index, None, index, (), "t", "A100-SXM4-80GB", 1, profile, Placement(start, size))


def test_what_each_card_must_be() -> None:
    """The order of creation is the layout's, not Slurm's. At rest the compute mode is DEFAULT, whatever jobs get;
    NVIDIA's MPS daemon has that of its cards.
    """
    cards = (
        WantedCard(0, "A100-SXM4-80GB", Scheduler.SLURM, True, EXCLUSIVE),
        WantedCard(1, "A100-SXM4-80GB", Scheduler.SLURM, False, EXCLUSIVE),
        WantedCard(2, "A100-SXM4-80GB", Scheduler.KUBERNETES, False, DEFAULT),
    )
    devices = (
        device(0, "1g.10gb", 4, 1),
        device(0, "1g.20gb", 6, 2),
        device(0, "2g.20gb", 2, 2),
        device(0, "2g.20gb", 0, 2),
        Device(1, None, 1, (), "t", "A100-SXM4-80GB", 1),
    )
    gpus = tuple(
        GpuFacts(i, 7 - i, f"GPU-{i}", f"0000:0{i}:00.0", "A100-SXM4-80GB", 1, False, "default", None, None, ())
        for i in range(3)
    )
    for mode in (Mode.MPS, Mode.TIME_SLICING):
        node = NodeWanted("n1", frozenset(), Sharing(mode), None, None, cards, devices)
        found = targets(node, Facts("n1", "550", gpus))
        assert [t.card for t in found] == [Card(i, 7 - i, f"0000:0{i}:00.0", f"GPU-{i}") for i in range(3)]
        assert [t.mig for t in found] == [True, False, False]
        assert [(i.profile, i.placement.start, i.computes) for i in found[0].instances] == [
            ("2g.20gb", 0, (2,)),
            ("2g.20gb", 2, (2,)),
            ("1g.20gb", 6, (1,)),
            ("1g.10gb", 4, (1,)),
        ]
        assert [t.compute_mode for t in found] == [DEFAULT, DEFAULT, None if mode is Mode.MPS else DEFAULT]


def test_effects_are_records_too() -> None:
    found = plan(wanted(OTHER_HALF), cut(IS_HALF))
    records = [as_record(effect) for effect in found.effects]
    assert json.loads(json.dumps(records)) == records
    same = {"gpu": 0, "pci_bus_id": "0000:07:00.0", "uuid": "GPU-1"}
    place, other = {"start": 0, "size": 4}, {"start": 4, "size": 4}
    assert [{name: value for name, value in record.items() if name != "text"} for record in records] == [
        {
            "effect": "destroy-compute-instance",
            **same,
            "gi": 1,
            "profile": "3g.40gb",
            "placement": place,
            "ci": 0,
            "slices": 3,
            "instance_uuid": "MIG-1-0",
        },
        {"effect": "destroy-gpu-instance", **same, "gi": 1, "profile": "3g.40gb", "placement": place},
        {"effect": "create-gpu-instance", **same, "profile": "3g.40gb", "placement": other},
        {"effect": "create-compute-instance", **same, "profile": "3g.40gb", "placement": other, "slices": 3},
    ]
    assert [record["text"] for record in records] == [str(effect) for effect in found.effects]
    assert as_record(SetMig(CARD, True)) == {
        "effect": "set-mig",
        **same,
        "on": True,
        "text": "GPU 0 at 0000:07:00.0 (GPU-1): turn MIG on",
    }
    assert "instance_uuid" in as_record(DestroyCompute(CARD, IS_HALF, IS_HALF.computes[0]))


@pytest.mark.parametrize("state", [state for state in State if state is not State.PLANNED])
def test_every_state_but_the_good_ones_is_a_finding(state: State) -> None:
    found = list(findings([Outcome(CARD, state, why="the card burns", rolled_back=True)]))
    assert bool(found) != state.good
    for finding in found:
        assert finding.message == "GPU 0 at 0000:07:00.0 (GPU-1): the card burns; it is again cut as it was"
        assert finding.is_error == (state is not State.WAITING)
        assert ("--gpu-reset -i 0000:07:00.0)" in finding.hint) == (state is State.NEEDS_RESET)
