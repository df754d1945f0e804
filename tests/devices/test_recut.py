"""Cards cut through the real library: killed at any change, failing at any call, reboots, cards that hang or vanish."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pynvml
import pytest

from hybridgpu.devices.cut import Target
from hybridgpu.devices.effect import Card, SetMig
from hybridgpu.devices.limited import LimitedCutter
from hybridgpu.devices.nvmlcut import NvmlCutter
from hybridgpu.devices.outcome import Outcome, State
from hybridgpu.devices.port import Cut, Cutter, Unread
from hybridgpu.devices.recut import apply
from hybridgpu.model.geometry import layouts
from testbed.driver import library
from testbed.driver.machine import Machine
from tests.conftest import soak
from tests.lab.layouts import MODELS, OFF, UUID, Pair, model, pairs, shape_of, target
from tests.simulated import faults

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")  # the test runner's threads

AMPERE, HOPPER = MODELS[:2]
OTHER = "GPU-66666666-7777-8888-9999-000000000000"
PID = 4711

Make = Callable[..., Machine]


@pytest.fixture
def make(driver: None, tmp_path: Path) -> Make:
    """A machine with one card of a model, or more."""
    del driver

    def made(*names: str, **more: bool) -> Machine:
        ids = [UUID, OTHER]
        return Machine.make(
            tmp_path / "-".join(names), {"gpus": [{"model": n, "uuid": ids[at], **more} for at, n in enumerate(names)]}
        )

    return made


def run(machine: Machine, *wanted: Target, plan: str | None = None) -> tuple[Outcome, ...]:
    """One run in this process, with a plan of faults."""
    with library.over(machine.root), NvmlCutter() as cutter, faults(plan):
        return apply(wanted, cutter)


def seen(machine: Machine, uuid: str = UUID) -> Cut:
    with library.over(machine.root), NvmlCutter() as cutter:
        found = cutter.look(uuid)
    assert isinstance(found, Cut)
    return found


def shape(machine: Machine) -> list[tuple[str, int, tuple[int, ...]]]:
    return [(i.profile, i.placement.start, tuple(c.slices for c in i.computes)) for i in seen(machine).instances]


def uuids(machine: Machine) -> Mapping[tuple[str, int], str]:
    return {(i.profile, i.placement.start): i.computes[0].uuid for i in seen(machine).instances if i.computes}


CALLS = (
    *("nvmlDeviceGetHandleByUUID", "nvmlDeviceGetMigMode", "nvmlDeviceGetComputeMode", "nvmlDeviceSetMigMode"),
    *("nvmlDeviceGetMaxMigDeviceCount", "nvmlDeviceGetMigDeviceHandleByIndex", "nvmlDeviceGetGpuInstanceId"),
    *("nvmlDeviceGetComputeInstanceId", "nvmlDeviceGetUUID", "nvmlDeviceGetGpuInstanceProfileInfoV"),
    *("nvmlDeviceGetGpuInstances", "nvmlGpuInstanceGetInfo", "nvmlGpuInstanceGetComputeInstanceProfileInfoV"),
    *("nvmlGpuInstanceGetComputeInstances", "nvmlComputeInstanceGetInfo_v2", "nvmlDeviceSetComputeMode"),
    *("nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetGraphicsRunningProcesses_v3"),
    *("nvmlDeviceGetMPSComputeRunningProcesses_v3", "nvmlDeviceCreateGpuInstanceWithPlacement"),
    *("nvmlGpuInstanceCreateComputeInstance", "nvmlGpuInstanceGetComputeInstanceById"),
    *("nvmlComputeInstanceDestroy", "nvmlGpuInstanceDestroy", "nvmlInit"),
)
ERRORS = (
    *("UNINITIALIZED", "INVALID_ARGUMENT", "NOT_SUPPORTED", "NO_PERMISSION", "NOT_FOUND", "INSUFFICIENT_SIZE"),
    *("DRIVER_NOT_LOADED", "TIMEOUT", "FUNCTION_NOT_FOUND", "GPU_IS_LOST", "RESET_REQUIRED", "OPERATING_SYSTEM"),
    *("LIB_RM_VERSION_MISMATCH", "IN_USE", "MEMORY", "NO_DATA", "INSUFFICIENT_RESOURCES", "UNKNOWN"),
)


def test_the_calls_of_this_table_are_those_that_are_made(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: set[str] = set()
    real = pynvml._nvmlGetFunctionPointer

    def noted(name: str) -> object:
        asked.add(name)
        return real(name)

    machine, known = make(AMPERE), model(AMPERE)
    monkeypatch.setattr(pynvml, "_nvmlGetFunctionPointer", noted)
    for layout in (OFF, layouts(known)[0], layouts(known)[5], OFF):
        run(machine, target(layout))
    made = {"nvmlInit" if name == "nvmlInitWithFlags" else name for name in asked}
    assert made - {"nvmlErrorString", "nvmlShutdown"} == set(CALLS)


@pytest.mark.parametrize("name", MODELS)
def test_whatever_call_of_the_library_fails_it_converges_when_run_again(name: str, make: Make) -> None:
    chance, machine = random.Random(3), make(name)
    every = pairs(name)
    for _ in range(soak(40, 1_000)):
        pair, call = chance.choice(every), chance.choice(CALLS)
        plan = f"{call}@{chance.randint(1, 40)}={chance.choice(ERRORS)}"
        assert run(machine, target(pair.before))[0].state.good
        had = uuids(machine)
        (outcome,) = run(machine, target(pair.wanted), plan=plan)
        about = (pair.before.profiles, pair.wanted.profiles, plan, outcome)
        if outcome.state.good:
            assert shape(machine) == shape_of(pair.wanted), about
        elif outcome.state not in (State.NEEDS_RESET, State.NEEDS_REBOOT):
            assert outcome.rolled_back is not False, about
            assert shape(machine) == shape_of(pair.before), about
        (again,) = run(machine, target(pair.wanted))
        assert again.state.good, (about, again)
        assert shape(machine) == shape_of(pair.wanted), about
        now = uuids(machine)
        assert all(now[place] == had[place] for place in pair.kept()), about


LOOKED_AT = CALLS[:3] + CALLS[4:15] + CALLS[16:19]
SAYS_NO = {
    "nvmlDeviceGetMigMode": ("NOT_SUPPORTED", "FUNCTION_NOT_FOUND"),
    "nvmlDeviceGetMigDeviceHandleByIndex": ("NOT_FOUND",),
    "nvmlDeviceGetGpuInstanceProfileInfoV": ("NOT_SUPPORTED", "INVALID_ARGUMENT"),
    "nvmlGpuInstanceGetComputeInstanceProfileInfoV": ("NOT_SUPPORTED", "INVALID_ARGUMENT"),
    "nvmlDeviceGetComputeRunningProcesses_v3": ("INSUFFICIENT_SIZE",),
    "nvmlDeviceGetGraphicsRunningProcesses_v3": ("INSUFFICIENT_SIZE", "NOT_SUPPORTED", "FUNCTION_NOT_FOUND"),
    "nvmlDeviceGetMPSComputeRunningProcesses_v3": ("INSUFFICIENT_SIZE", "NOT_SUPPORTED", "FUNCTION_NOT_FOUND"),
}
"""Answers that are no failure: there is no such thing, or there are entries."""


@pytest.mark.parametrize("call", LOOKED_AT)
def test_a_card_of_which_anything_is_not_told_is_not_seen(call: str, make: Make) -> None:
    machine = make(AMPERE)
    run(machine, target(layouts(model(AMPERE))[1]))
    for error in ERRORS:
        with library.over(machine.root), NvmlCutter() as cutter, faults(f"{call}@1={error}"):
            found = cutter.look(UUID)
        if error in SAYS_NO.get(call, ()):
            assert isinstance(found, Cut), error
        else:
            assert isinstance(found, Unread), error
            assert found.answer == error
            assert call.startswith(found.call)


APPLY = """
import sys
from pathlib import Path
from hybridgpu.devices.limited import LimitedCutter
from hybridgpu.devices.nvmlcut import NvmlCutter
from hybridgpu.devices.recut import apply
from tests.lab.layouts import OFF, layouts, model, target
known = model(sys.argv[1])
wanted = [OFF, *layouts(known)][int(sys.argv[2])]
with (NvmlCutter() if sys.argv[3] == "plain" else LimitedCutter(NvmlCutter, 20)) as cutter:
    print("begun", flush=True)
    print(apply([target(wanted)], cutter)[0].state)
"""


def start(machine: Machine, wanted: int, how: str, name: str, plan: str | None = None) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", APPLY, name, str(wanted), how],
        cwd=Path(__file__).parents[2],
        env={**os.environ, **machine.environment(plan)},
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("name", [AMPERE, HOPPER])
def test_killed_by_sigkill_and_started_again_it_converges(
    name: str, make: Make, record_property: Callable[[str, object], None]
) -> None:
    """In half of the runs just before, during or after one of its changes; in the others at any moment."""
    chance, machine, known = random.Random(9), make(name), model(name)
    every = [OFF, *layouts(known)]
    killed = 0
    for number in range(soak(5, 100)):
        before, wanted = chance.sample(range(len(every)), 2)
        pair = Pair(known, every[before], every[wanted])
        assert run(machine, target(pair.before))[0].state.good
        had = uuids(machine)
        if number % 2:
            plan = f"change@{chance.randint(1, 6)}={chance.choice(['before', 'half', 'after'])}"
            process = start(machine, wanted, "plain", name, plan)
        else:
            process = start(machine, wanted, "limited", name)
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(chance.uniform(0, 0.03))
            process.kill()
        process.communicate(timeout=60)
        killed += process.returncode == -signal.SIGKILL
        (outcome,) = run(machine, target(pair.wanted))
        assert outcome.state.good
        assert shape(machine) == shape_of(pair.wanted)
        assert all(uuids(machine)[place] == had[place] for place in pair.kept())
    assert killed >= soak(3, 80)
    record_property("measured", f"{number + 1} runs through the library, {killed} ended by SIGKILL: converges")


@pytest.mark.parametrize("name", MODELS)
def test_a_reboot_takes_the_instances_and_on_hopper_the_mode(name: str, make: Make) -> None:
    machine, wanted = make(name), target(layouts(model(name))[1])
    run(machine, wanted)
    machine.reboot()
    assert seen(machine).instances == ()
    (outcome,) = run(machine, wanted)
    assert outcome.state is State.CHANGED
    assert (SetMig(wanted.card, True) in outcome.done) == (name == HOPPER)
    assert shape(machine) == shape_of(layouts(model(name))[1])


def test_a_card_in_use_is_left_and_its_users_are_named(make: Make) -> None:
    for name in (AMPERE, HOPPER):
        machine, known = make(name), model(name)
        for at, kind in enumerate(("compute", "graphics", "mps")):
            machine.run(0, PID + at, kind)
        (outcome,) = run(machine, target(layouts(known)[0]))
        assert outcome.state is State.BUSY
        users = ", ".join(f"process {PID + at} ({kind})" for at, kind in enumerate(("compute", "graphics", "mps")))
        assert outcome.why == f"it is used by {users}"
        mig = seen(machine).mig
        assert mig is not None
        assert not mig.pending
        for at in range(3):
            machine.end(PID + at)
        assert run(machine, target(layouts(known)[0]))[0].state is State.CHANGED


def test_a_mode_that_waits_for_a_reset(make: Make) -> None:
    machine, wanted = make(AMPERE), target(layouts(model(AMPERE))[0])
    machine.break_card(0, "in-use")
    (outcome,) = run(machine, wanted)
    assert (outcome.state, outcome.rolled_back) == (State.NEEDS_RESET, None)
    machine.mend(0)
    machine.reset(0)
    (outcome,) = run(machine, wanted)
    assert outcome.state is State.CHANGED
    assert SetMig(wanted.card, True) not in outcome.done


def test_a_mode_that_waits_for_a_reboot(make: Make) -> None:
    machine, wanted = make(AMPERE, passthrough=True), target(layouts(model(AMPERE))[0])
    assert run(machine, wanted)[0].state is State.NEEDS_REBOOT
    machine.reboot()
    assert run(machine, wanted)[0].state is State.CHANGED
    assert run(machine, target(OFF))[0].state is State.NEEDS_REBOOT
    machine.reboot()
    assert run(machine, target(OFF))[0].state is State.CHANGED


def two(cutter: Cutter) -> list[State]:
    """Both cards cut anew; the second is the one to which things happen."""
    known = model(HOPPER)
    cards = [Card(0, 0, "0000:01:00.0", UUID), Card(1, 1, "0000:02:00.0", OTHER)]
    return [o.state for o in apply([target(layouts(known)[2], card) for card in cards], cutter)]


def test_a_card_that_hangs_is_left_behind_and_the_other_is_seen(make: Make) -> None:
    machine = make(HOPPER, HOPPER)
    machine.break_card(1, "hang")
    with library.over(machine.root), LimitedCutter(NvmlCutter, 1) as cutter:
        before = time.monotonic()
        assert two(cutter) == [State.WAITING, State.UNREAD]
        assert time.monotonic() - before < 20
        machine.mend(1)
        assert two(cutter) == [State.CHANGED, State.CHANGED]
        assert two(cutter) == [State.AS_WANTED, State.AS_WANTED]


def test_a_card_that_hangs_in_the_middle_of_a_change(make: Make) -> None:
    """The child that made the call is killed; what it was about to do is seen anew by the next one."""
    machine = make(HOPPER, HOPPER)
    plan = "nvmlGpuInstanceCreateComputeInstance@2=HANG"
    with library.over(machine.root), faults(plan), LimitedCutter(NvmlCutter, 1) as cutter:
        assert two(cutter) == [State.FAILED, State.WAITING]
    with library.over(machine.root), LimitedCutter(NvmlCutter, 5) as cutter:
        assert two(cutter) == [State.CHANGED, State.CHANGED]


def test_a_card_that_vanishes_needs_a_reboot(make: Make) -> None:
    machine = make(HOPPER, HOPPER)
    for fault in ("lost", "absent"):
        machine.break_card(1, fault)
        with library.over(machine.root), NvmlCutter() as cutter:
            assert two(cutter) == [State.WAITING, State.NEEDS_REBOOT]
        machine.mend(1)
    with library.over(machine.root), NvmlCutter() as cutter:
        assert two(cutter) == [State.CHANGED, State.CHANGED]
