"""What cards do to those who cut them, the unpleasant parts first (MIG user guide, NVML's reference; see mode.c)."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pynvml as nv
import pytest

from testbed.driver import library
from testbed.driver.library import NvmlError
from testbed.driver.machine import Machine
from tests.driver.world import Untyped, number
from tests.simulated import nvml

AMPERE, HOPPER = "A100-SXM4-80GB", "H100-80GB-HBM3"
P3G, P1G, SPAN_3G, SPAN_1G = 9, 19, 2, 0
PID = 5000


def card(index: int = 0) -> Untyped:
    return nv.nvmlDeviceGetHandleByIndex(index)


def place(start: int, size: int) -> Untyped:
    return ctypes.byref(nv.c_nvmlGpuInstancePlacement_t(start, size))


def error(call: Callable[[], Any]) -> int:
    """What a call answers that must not succeed."""
    with pytest.raises(nv.NVMLError) as raised:
        call()
    code: int = raised.value.value
    return code


def set_mode(mode: int, index: int = 0) -> tuple[int, list[int]]:
    """The activation's status, and the mode then: current and pending."""
    device = card(index)
    return nv.nvmlDeviceSetMigMode(device, mode), nv.nvmlDeviceGetMigMode(device)


def refused(call: Callable[[], Any]) -> int:
    with pytest.raises(NvmlError) as raised:
        call()
    return raised.value.code


@pytest.mark.parametrize("model", [AMPERE, "A30", HOPPER, "B200"])
def test_an_idle_card_changes_mode_at_once(make: Callable[..., Machine], model: str) -> None:
    with nvml(make(model)):
        assert set_mode(1) == (nv.NVML_SUCCESS, [1, 1])
        assert set_mode(1) == (nv.NVML_SUCCESS, [1, 1])
        assert set_mode(0) == (nv.NVML_SUCCESS, [0, 0])


def test_mode_stays_pending_on_a_used_ampere_until_it_is_reset(make: Callable[..., Machine]) -> None:
    machine = make(AMPERE)
    machine.run(0, PID)
    with nvml(machine):
        assert set_mode(1) == (nv.NVML_ERROR_IN_USE, [0, 1])
        assert refused(lambda: machine.reset(0)) == nv.NVML_ERROR_IN_USE
        machine.end(PID)
        assert nv.nvmlDeviceGetMigMode(card()) == [0, 1]
        machine.reset(0)
        assert nv.nvmlDeviceGetMigMode(card()) == [1, 1]


def test_a_pending_mode_can_be_taken_back(make: Callable[..., Machine]) -> None:
    machine = make(AMPERE)
    machine.run(0, PID)
    with nvml(machine):
        set_mode(1)
        assert set_mode(0) == (nv.NVML_SUCCESS, [0, 0])


def test_mode_stays_pending_where_the_card_is_passed_through(make: Callable[..., Machine]) -> None:
    machine = make(gpus=[{"model": AMPERE, "passthrough": True}])
    with nvml(machine):
        assert set_mode(1) == (nv.NVML_ERROR_RESET_REQUIRED, [0, 1])
        assert refused(lambda: machine.reset(0)) == nv.NVML_ERROR_NOT_SUPPORTED
        machine.reboot()
        assert nv.nvmlDeviceGetMigMode(card()) == [1, 1]


def test_a_used_hopper_refuses_and_leaves_nothing_pending(make: Callable[..., Machine]) -> None:
    machine = make(HOPPER)
    machine.run(0, PID)
    with nvml(machine):
        assert error(lambda: set_mode(1)) == nv.NVML_ERROR_IN_USE
        assert nv.nvmlDeviceGetMigMode(card()) == [0, 0]


@pytest.mark.parametrize("model", [AMPERE, HOPPER])
def test_a_client_that_no_list_shows_holds_the_card(make: Callable[..., Machine], model: str) -> None:
    machine = make(model)
    machine.break_card(0, "in-use")
    with nvml(machine):
        assert nv.nvmlDeviceGetComputeRunningProcesses(card()) == []
        code = error(lambda: set_mode(1)) if model == HOPPER else set_mode(1)[0]
        assert code == nv.NVML_ERROR_IN_USE


@pytest.mark.parametrize("model", [AMPERE, HOPPER])
def test_mig_is_not_disabled_over_instances(make: Callable[..., Machine], model: str) -> None:
    with nvml(make(model)):
        set_mode(1)
        gi = nv.nvmlDeviceCreateGpuInstance(card(), P3G)
        assert error(lambda: set_mode(0)) == nv.NVML_ERROR_IN_USE
        nv.nvmlGpuInstanceDestroy(gi)
        assert set_mode(0) == (nv.NVML_SUCCESS, [0, 0])


@pytest.mark.parametrize(("model", "mode"), [(AMPERE, [1, 1]), ("A30", [1, 1]), (HOPPER, [0, 0]), ("B200", [0, 0])])
def test_what_a_reboot_leaves(make: Callable[..., Machine], model: str, mode: list[int]) -> None:
    machine = make(model)
    with nvml(machine):
        set_mode(1)
        nv.nvmlDeviceCreateGpuInstance(card(), 14 if model == "A30" else P1G)
        nv.nvmlDeviceSetPersistenceMode(card(), 1)
        machine.break_card(0, "hang")
        machine.reboot()
        assert nv.nvmlDeviceGetMigMode(card()) == mode
        assert nv.nvmlDeviceGetPersistenceMode(card()) == 0
    assert machine.show()["gpus"][0]["instances"] == []


def test_a_used_instance_is_not_destroyed(make: Callable[..., Machine]) -> None:
    machine = make(AMPERE)
    with nvml(machine):
        set_mode(1)
        gi = nv.nvmlDeviceCreateGpuInstance(card(), P3G)
        ci = nv.nvmlGpuInstanceCreateComputeInstance(gi, SPAN_3G)
        machine.run(0, PID, gi=1, ci=0)
        assert error(lambda: nv.nvmlComputeInstanceDestroy(ci)) == nv.NVML_ERROR_IN_USE
        assert error(lambda: nv.nvmlGpuInstanceDestroy(gi)) == nv.NVML_ERROR_IN_USE
        machine.end(PID)
        assert error(lambda: nv.nvmlGpuInstanceDestroy(gi)) == nv.NVML_ERROR_IN_USE
        nv.nvmlComputeInstanceDestroy(ci)
        nv.nvmlGpuInstanceDestroy(gi)


def test_places_conflict(make: Callable[..., Machine]) -> None:
    with nvml(make(AMPERE)):
        set_mode(1)
        create = nv.nvmlDeviceCreateGpuInstanceWithPlacement
        create(card(), P3G, place(4, 4))
        assert error(lambda: create(card(), P3G, place(4, 4))) == nv.NVML_ERROR_INSUFFICIENT_RESOURCES
        assert error(lambda: create(card(), P1G, place(6, 1))) == nv.NVML_ERROR_INSUFFICIENT_RESOURCES
        assert error(lambda: create(card(), P3G, place(2, 4))) == nv.NVML_ERROR_INVALID_ARGUMENT
        assert error(lambda: create(card(), P1G, place(7, 1))) == nv.NVML_ERROR_INVALID_ARGUMENT
        assert error(lambda: create(card(), 999, place(0, 1))) == nv.NVML_ERROR_INVALID_ARGUMENT
        assert nv.nvmlDeviceGetGpuInstanceRemainingCapacity(card(), P1G) == 4
        create(card(), P1G, place(0, 1))
        nv.nvmlDeviceCreateGpuInstance(card(), 20)  # 1g.10gb+me, which only one instance can be
        assert error(lambda: nv.nvmlDeviceCreateGpuInstance(card(), 20)) == nv.NVML_ERROR_INSUFFICIENT_RESOURCES


def test_ids_follow_the_place_and_come_again_with_another_uuid(make: Callable[..., Machine]) -> None:
    with nvml(make(AMPERE)):
        set_mode(1)
        seen = []
        for _ in range(3):
            gi = nv.nvmlDeviceCreateGpuInstanceWithPlacement(card(), P1G, place(5, 1))
            ci = nv.nvmlGpuInstanceCreateComputeInstance(gi, SPAN_1G)
            mig = nv.nvmlDeviceGetMigDeviceHandleByIndex(card(), 0)
            seen.append((nv.nvmlDeviceGetGpuInstanceId(mig), nv.nvmlDeviceGetComputeInstanceId(mig)))
            seen.append(nv.nvmlDeviceGetUUID(mig))
            nv.nvmlComputeInstanceDestroy(ci)
            nv.nvmlGpuInstanceDestroy(gi)
        assert seen[::2] == [(12, 0)] * 3
        assert len(set(seen[1::2])) == 3


def test_a_handle_of_what_is_gone_is_no_handle_of_what_came_after(make: Callable[..., Machine]) -> None:
    with nvml(make(AMPERE)):
        set_mode(1)

        def cut() -> tuple[Any, Any, Any, str]:
            gi = nv.nvmlDeviceCreateGpuInstance(card(), P3G)
            ci = nv.nvmlGpuInstanceCreateComputeInstance(gi, SPAN_3G)
            mig = nv.nvmlDeviceGetMigDeviceHandleByIndex(card(), 0)
            return gi, ci, mig, nv.nvmlDeviceGetUUID(mig)

        gi, ci, mig, uuid = cut()
        nv.nvmlComputeInstanceDestroy(ci)
        nv.nvmlGpuInstanceDestroy(gi)
        cut()
        assert error(lambda: nv.nvmlGpuInstanceGetInfo(gi)) == nv.NVML_ERROR_INVALID_ARGUMENT
        assert error(lambda: nv.nvmlComputeInstanceDestroy(ci)) == nv.NVML_ERROR_INVALID_ARGUMENT
        assert error(lambda: nv.nvmlDeviceGetName(mig)) == nv.NVML_ERROR_INVALID_ARGUMENT
        assert error(lambda: nv.nvmlDeviceGetHandleByUUID(uuid)) == nv.NVML_ERROR_NOT_FOUND


@pytest.mark.parametrize(
    "handle", [0, 1, 0x1000, (1 << 45) | 1, (1 << 45) | (31 << 38), (3 << 45), (1 << 64) - 1, 0xC000000000]
)
def test_no_number_is_followed(make: Callable[..., Machine], handle: int) -> None:
    with nvml(make(AMPERE)):
        device = ctypes.cast(ctypes.c_void_p(handle), nv.c_nvmlDevice_t)
        assert error(lambda: nv.nvmlDeviceGetName(device)) == nv.NVML_ERROR_INVALID_ARGUMENT


def test_compute_instances_share_a_gpu_instance(make: Callable[..., Machine]) -> None:
    with nvml(make(AMPERE)):
        set_mode(1)
        gi = nv.nvmlDeviceCreateGpuInstance(card(), 0)
        first = nv.nvmlGpuInstanceCreateComputeInstance(gi, 2)
        nv.nvmlGpuInstanceCreateComputeInstance(gi, 1)
        nv.nvmlGpuInstanceCreateComputeInstance(gi, 0)
        migs = [nv.nvmlDeviceGetMigDeviceHandleByIndex(card(), i) for i in range(3)]
        names = [nv.nvmlDeviceGetName(mig).rsplit(" ", 1)[-1] for mig in migs]
        assert [nv.nvmlDeviceGetIndex(mig) for mig in migs] == [0, 1, 2]
        assert names == ["3c.7g.80gb", "2c.7g.80gb", "1c.7g.80gb"]
        assert error(lambda: nv.nvmlGpuInstanceCreateComputeInstance(gi, 3)) == nv.NVML_ERROR_INSUFFICIENT_RESOURCES
        nv.nvmlComputeInstanceDestroy(first)
        again = nv.nvmlGpuInstanceCreateComputeInstance(gi, 0)
        assert nv.nvmlComputeInstanceGetInfo(again).id == 0
        assert error(lambda: nv.nvmlDeviceGetMigDeviceHandleByIndex(card(), 3)) == nv.NVML_ERROR_NOT_FOUND


def test_mig_is_not_supported_where_it_is_not(make: Callable[..., Machine]) -> None:
    with nvml(make("T4", AMPERE)):
        assert error(lambda: nv.nvmlDeviceGetMigMode(card())) == nv.NVML_ERROR_NOT_SUPPORTED
        assert error(lambda: nv.nvmlDeviceSetMigMode(card(), 1)) == nv.NVML_ERROR_NOT_SUPPORTED
        assert error(lambda: nv.nvmlDeviceCreateGpuInstance(card(1), P3G)) == nv.NVML_ERROR_NOT_SUPPORTED
        assert error(lambda: nv.nvmlDeviceGetGpuInstanceById(card(1), 1)) == nv.NVML_ERROR_NOT_SUPPORTED
        assert nv.nvmlDeviceGetMaxMigDeviceCount(card(1)) == 0


def test_a_driver_offers_only_the_profiles_of_its_branch(make: Callable[..., Machine]) -> None:
    def kinds(driver: str) -> set[int]:
        with nvml(make(AMPERE, driver=driver)):
            found = set()
            for kind in range(nv.NVML_GPU_INSTANCE_PROFILE_COUNT):
                with suppress(nv.NVMLError):
                    nv.nvmlDeviceGetGpuInstanceProfileInfo(card(), kind)
                    found.add(kind)
            return found

    assert [kinds(driver) for driver in ("460.106.00", "470.57.02", "550.54.15")] == [
        {0, 1, 2, 3, 4},
        {0, 1, 2, 3, 4, 7},
        {0, 1, 2, 3, 4, 7, 9},
    ]


def test_an_old_driver_names_instances_by_their_ids(make: Callable[..., Machine]) -> None:
    with nvml(make(AMPERE, driver="460.106.00")):
        set_mode(1)
        nv.nvmlGpuInstanceCreateComputeInstance(nv.nvmlDeviceCreateGpuInstance(card(), P3G), SPAN_3G)
        uuid = nv.nvmlDeviceGetUUID(nv.nvmlDeviceGetMigDeviceHandleByIndex(card(), 0))
        assert uuid == f"MIG-{nv.nvmlDeviceGetUUID(card())}/1/0"
        assert number(nv.nvmlDeviceGetHandleByUUID(uuid)) == number(nv.nvmlDeviceGetMigDeviceHandleByIndex(card(), 0))


def test_compute_mode(make: Callable[..., Machine]) -> None:
    machine = make(AMPERE)
    with nvml(machine):
        nv.nvmlDeviceSetComputeMode(card(), nv.NVML_COMPUTEMODE_EXCLUSIVE_PROCESS)
        machine.run(0, PID)
        assert refused(lambda: machine.run(0, PID + 1)) == nv.NVML_ERROR_IN_USE
        machine.run(0, PID + 2, "graphics")
        nv.nvmlDeviceSetComputeMode(card(), nv.NVML_COMPUTEMODE_PROHIBITED)
        machine.end(PID)
        assert refused(lambda: machine.run(0, PID)) == nv.NVML_ERROR_IN_USE
        assert error(lambda: nv.nvmlDeviceSetComputeMode(card(), 1)) == nv.NVML_ERROR_NOT_SUPPORTED
        machine.end(PID + 2)
        set_mode(1)
        assert nv.nvmlDeviceGetComputeMode(card()) == nv.NVML_COMPUTEMODE_DEFAULT
        assert error(lambda: nv.nvmlDeviceSetComputeMode(card(), 3)) == nv.NVML_ERROR_NOT_SUPPORTED


def test_a_process_is_seen_on_its_instance_and_on_its_card(make: Callable[..., Machine]) -> None:
    machine = make(AMPERE)
    with nvml(machine):
        set_mode(1)
        for _ in range(2):
            nv.nvmlGpuInstanceCreateComputeInstance(nv.nvmlDeviceCreateGpuInstance(card(), P3G), SPAN_3G)
        assert refused(lambda: machine.run(0, PID)) == nv.NVML_ERROR_INVALID_ARGUMENT
        assert refused(lambda: machine.run(0, PID, gi=3, ci=0)) == nv.NVML_ERROR_INVALID_ARGUMENT
        machine.run(0, PID, gi=2, ci=0, memory=2**30)
        devices = [card(), *(nv.nvmlDeviceGetMigDeviceHandleByIndex(card(), i) for i in range(2))]
        seen = [[p.pid for p in nv.nvmlDeviceGetComputeRunningProcesses(device)] for device in devices]
        assert seen == [[PID], [], [PID]]
        assert [nv.nvmlDeviceGetMemoryInfo(device).used for device in devices] == [2**30, 0, 2**30]
        assert error(lambda: nv.nvmlDeviceGetProcessUtilization(card(), 0)) == nv.NVML_ERROR_NOT_SUPPORTED


def test_an_absent_card_shifts_those_behind_it(make: Callable[..., Machine]) -> None:
    machine = make(AMPERE, HOPPER, "T4")
    with nvml(machine):

        def names() -> list[str]:
            return [nv.nvmlDeviceGetName(card(i)) for i in range(nv.nvmlDeviceGetCount())]

        whole, handle = names(), card(0)
        machine.break_card(0, "absent")
        machine.reboot()
        assert names() == whole[1:]
        assert nv.nvmlDeviceGetIndex(card(0)) == 0
        assert error(lambda: nv.nvmlDeviceGetName(handle)) == nv.NVML_ERROR_GPU_IS_LOST
        assert not (machine.root / "dev" / "nvidia0").exists()
        machine.mend(0)
        assert names() == whole
        assert (machine.root / "dev" / "nvidia0").exists()


def test_an_xid_ends_a_wait_and_a_lost_card_too(make: Callable[..., Machine]) -> None:
    machine = make(HOPPER)
    with nvml(machine):
        events = nv.nvmlEventSetCreate()
        nv.nvmlDeviceRegisterEvents(card(), nv.nvmlEventTypeXidCriticalError, events)
        assert error(lambda: nv.nvmlEventSetWait(events, 10)) == nv.NVML_ERROR_TIMEOUT
        machine.break_card(0, "lost")
        assert nv.nvmlEventSetWait(events, 1000).eventData == 79
        assert error(lambda: nv.nvmlEventSetWait(events, 1000)) == nv.NVML_ERROR_GPU_IS_LOST
        nv.nvmlEventSetFree(events)
        assert error(lambda: nv.nvmlEventSetFree(events)) == nv.NVML_ERROR_INVALID_ARGUMENT


def test_a_wait_is_one_call_of_a_plan(make: Callable[..., Machine]) -> None:
    """However often it looks: the third call of any kind is the one after it."""
    with nvml(make(HOPPER)):
        assert library.load().gpusim_faults(b"*@3=UNKNOWN") == 0
        try:
            events = nv.nvmlEventSetCreate()
            assert error(lambda: nv.nvmlEventSetWait(events, 50)) == nv.NVML_ERROR_TIMEOUT
            assert error(lambda: nv.nvmlEventSetFree(events)) == nv.NVML_ERROR_UNKNOWN
        finally:
            library.load().gpusim_faults(None)
        nv.nvmlEventSetFree(events)


def test_nothing_is_known_between_cards_on_no_node(tmp_path: Path) -> None:
    described = [{"model": HOPPER, "numa": numa} for numa in (-1, -1, 0, 0, 1)]
    with nvml(Machine.make(tmp_path / "root", {"gpus": described})):
        cards = [nv.nvmlDeviceGetHandleByIndex(index) for index in range(len(described))]

        def level(one: int, other: int) -> int:
            return int(nv.nvmlDeviceGetTopologyCommonAncestor(cards[one], cards[other]))

        def near(one: int, level: int) -> list[str]:
            return [nv.nvmlDeviceGetUUID(card) for card in nv.nvmlDeviceGetTopologyNearestGpus(cards[one], level)]

        for one, other in ((0, 1), (0, 2), (2, 0)):
            assert error(partial(level, one, other)) == nv.NVML_ERROR_NOT_SUPPORTED
        assert level(0, 0) == nv.NVML_TOPOLOGY_INTERNAL
        assert (level(2, 3), level(3, 4)) == (nv.NVML_TOPOLOGY_NODE, nv.NVML_TOPOLOGY_SYSTEM)
        uuids = [nv.nvmlDeviceGetUUID(card) for card in cards]
        assert near(0, nv.NVML_TOPOLOGY_NODE) == near(0, nv.NVML_TOPOLOGY_SYSTEM) == []
        assert near(2, nv.NVML_TOPOLOGY_NODE) == [uuids[3]]
        assert near(2, nv.NVML_TOPOLOGY_SYSTEM) == [uuids[4]]


def test_the_library_is_over_one_machine_at_a_time(make: Callable[..., Machine]) -> None:
    one, other = make(AMPERE), make(AMPERE)
    with nvml(one), pytest.raises(NvmlError) as raised:
        other.show()
    assert raised.value.code == nv.NVML_ERROR_ALREADY_INITIALIZED
    assert library.load().nvmlShutdown() == nv.NVML_ERROR_UNINITIALIZED
