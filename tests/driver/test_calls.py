"""Each call through nvidia-ml-py, structures compared field by field; and each call in turn made to fail."""

from __future__ import annotations

import subprocess

import pynvml as nv
import pytest

from testbed.driver import library
from tests.driver import calls
from tests.driver.calls import Call
from tests.driver.migcalls import MIG_CALLS
from tests.driver.world import World

CALLS = [*calls.CALLS, *MIG_CALLS]
NEVER_FAILS = "nvmlErrorString"
BY_ANOTHER_NAME = {
    "nvmlInit_v2": "nvmlInit",
    "nvmlInitWithFlags": "nvmlInit",
    "nvmlSystemGetCudaDriverVersion": "nvmlSystemGetCudaDriverVersion_v2",
    "nvmlDeviceGetCount": "nvmlDeviceGetCount_v2",
    "nvmlDeviceGetHandleByIndex": "nvmlDeviceGetHandleByIndex_v2",
    "nvmlDeviceGetHandleByPciBusId": "nvmlDeviceGetHandleByPciBusId_v2",
    "nvmlDeviceGetAttributes": "nvmlDeviceGetAttributes_v2",
    "nvmlDeviceGetGpuInstancePossiblePlacements": "nvmlDeviceGetGpuInstancePossiblePlacements_v2",
    "nvmlEventSetWait": "nvmlEventSetWait_v2",
}
"""Names that are another one's too, and fail by its plan."""


def planned(symbol: str) -> str:
    return BY_ANOTHER_NAME.get(symbol, symbol.replace("Processes_v2", "Processes_v3"))


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.symbol)
def test_call(world: World, call: Call) -> None:
    assert call.run(world) == call.expected(world)


@pytest.mark.parametrize("call", [c for c in CALLS if c.symbol != NEVER_FAILS], ids=lambda call: call.symbol)
def test_call_made_to_fail(world: World, call: Call) -> None:
    """It answers what the plan says, once; nothing that was there before is changed by that."""
    before = world.machine.show()["gpus"]
    assert library.load().gpusim_faults(f"{planned(call.symbol)}@1=UNKNOWN".encode()) == 0
    try:
        with pytest.raises(nv.NVMLError) as raised:
            call.run(world)
        assert raised.value.value == nv.NVML_ERROR_UNKNOWN
    finally:
        library.load().gpusim_faults(None)
    assert world.machine.show()["gpus"] == before
    assert call.run(world) == call.expected(world)


@pytest.mark.parametrize(
    ("fault", "answer"),
    [
        ("lost", nv.NVML_ERROR_GPU_IS_LOST),
        ("unknown", nv.NVML_ERROR_UNKNOWN),
        ("reset-required", nv.NVML_ERROR_RESET_REQUIRED),
    ],
)
@pytest.mark.parametrize("call", [c for c in CALLS if c.on is not None], ids=lambda call: call.symbol)
def test_call_on_a_broken_card(world: World, call: Call, fault: str, answer: int) -> None:
    assert call.on is not None
    world.machine.break_card(call.on, fault)
    try:
        with pytest.raises(nv.NVMLError) as raised:
            call.run(world)
        assert raised.value.value == answer
    finally:
        world.machine.mend(call.on)


def exported() -> set[str]:
    listed = subprocess.run(
        ["nm", "-D", "--defined-only", str(library.build())], check=True, capture_output=True, text=True
    )
    return {line.split()[-1] for line in listed.stdout.splitlines()}


def unserved() -> list[str]:
    return (library.HERE / "unserved.txt").read_text(encoding="utf-8").split()


def test_every_served_name_has_a_call() -> None:
    served = {name for name in exported() if name.startswith("nvml")} - set(unserved())
    assert {call.symbol for call in CALLS} == served


def test_nothing_else_is_exported() -> None:
    assert {name for name in exported() if not name.startswith("nvml")} == {
        "gpusim_run", "gpusim_end", "gpusim_break", "gpusim_reset", "gpusim_reboot", "gpusim_event", "gpusim_show",
        "gpusim_free", "gpusim_faults",
    }  # fmt: skip


def test_what_is_not_served_says_so(world: World) -> None:
    answers = {getattr(library.load(), name)(world.cards[0]) for name in unserved()}
    assert answers == {nv.NVML_ERROR_NOT_SUPPORTED}


def test_nothing_answers_before_it_is_initialised() -> None:
    names = [
        *unserved(),
        *{call.symbol for call in CALLS} - {NEVER_FAILS, "nvmlInit", "nvmlInit_v2", "nvmlInitWithFlags"},
    ]
    assert {getattr(library.load(), name)(None, None, None, None) for name in names} == {nv.NVML_ERROR_UNINITIALIZED}
