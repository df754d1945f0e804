"""Several processes on one machine, some of them killed: what is left is always a whole state, and its tree."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pynvml as nv
import pytest

from testbed.driver.machine import Machine
from tests.simulated import nvml

CUT = """
import pynvml as nv
nv.nvmlInit()
card = nv.nvmlDeviceGetHandleByIndex(0)
nv.nvmlDeviceSetMigMode(card, 1)
for profile, whole in ((9, 2), (19, 0), (19, 0)):
    nv.nvmlGpuInstanceCreateComputeInstance(nv.nvmlDeviceCreateGpuInstance(card, profile), whole)
"""
"""Seven changes: the mode, and two for each instance."""
CHANGES = 7

RACE = """
import sys
import pynvml as nv
nv.nvmlInit()
card = nv.nvmlDeviceGetHandleByIndex(0)
made = 0
for _ in range(int(sys.argv[1])):
    try:
        gi = nv.nvmlDeviceCreateGpuInstance(card, 19)
    except nv.NVMLError_InsufficientResources:
        continue
    ci = nv.nvmlGpuInstanceCreateComputeInstance(gi, 0)
    made += 1
    assert nv.nvmlComputeInstanceGetInfo(ci).id == 0
    nv.nvmlComputeInstanceDestroy(ci)
    nv.nvmlGpuInstanceDestroy(gi)
print(made)
"""


def start(machine: Machine, code: str, *arguments: str, fault: str | None = None) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        env={**os.environ, **machine.environment(fault)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(process: subprocess.Popen[str]) -> int:
    process.communicate(timeout=60)
    return process.returncode


def caps(machine: Machine) -> set[str]:
    """The capability files there must be, by what the driver says it has; minors by its numbering."""
    wanted = {"nvidia-cap1", "nvidia-cap2"}
    for gpu in machine.show()["gpus"]:
        first = 3 + 135 * gpu["minor"]
        wanted |= {f"nvidia-cap{first + 9 * gi['id']}" for gi in gpu["instances"]}
        wanted |= {f"nvidia-cap{first + 9 * mig['gi'] + 1 + mig['ci']}" for mig in gpu["devices"]}
    return wanted


def files(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


@pytest.mark.parametrize("point", ["before", "half", "after"])
@pytest.mark.parametrize("change", range(1, CHANGES + 1))
def test_killed_at_any_change(make: Callable[..., Machine], change: int, point: str) -> None:
    machine = make("A100-SXM4-80GB")
    assert ended(start(machine, CUT, fault=f"change@{change}={point}")) == -9
    done = change if point == "after" else change - 1
    shown = machine.show()
    assert shown["changes"] == done
    gpu = shown["gpus"][0]
    assert gpu["mig"] == (done >= 1)
    assert len(gpu["instances"]) == done // 2
    assert len(gpu["devices"]) == max(0, (done - 1) // 2)
    machine.event(0, 1)  # the next who changes anything brings the tree behind the state
    assert files(machine.root / "dev" / "nvidia-caps") == caps(machine)


def test_a_plan_counts_for_one_process(make: Callable[..., Machine]) -> None:
    machine = make("A100-SXM4-80GB")
    assert ended(start(machine, CUT, fault="change@8=after")) == 0
    assert machine.show()["changes"] == CHANGES


def test_many_cut_one_card_at_once(make: Callable[..., Machine]) -> None:
    machine = make("A100-SXM4-80GB")
    with nvml(machine):
        nv.nvmlDeviceSetMigMode(nv.nvmlDeviceGetHandleByIndex(0), 1)
    processes = [start(machine, RACE, "15") for _ in range(3)]
    made = [int(process.communicate(timeout=120)[0] or -1) for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0]
    assert made == [15, 15, 15]
    shown = machine.show()
    assert shown["changes"] == 1 + 4 * 45
    assert shown["gpus"][0]["instances"] == []
    assert files(machine.root / "dev" / "nvidia-caps") == {"nvidia-cap1", "nvidia-cap2"}


def test_a_change_is_seen_by_others_and_outlives_who_made_it(make: Callable[..., Machine]) -> None:
    machine = make("A100-SXM4-80GB")
    with nvml(machine):
        card = nv.nvmlDeviceGetHandleByIndex(0)
        assert ended(start(machine, CUT)) == 0
        assert nv.nvmlDeviceGetMigMode(card) == [1, 1]
        names = [nv.nvmlDeviceGetName(nv.nvmlDeviceGetMigDeviceHandleByIndex(card, i)) for i in range(3)]
    assert [name.rsplit(" ", 1)[-1] for name in names] == ["3g.40gb", "1g.10gb", "1g.10gb"]


def test_a_hanging_card_answers_when_it_is_mended(make: Callable[..., Machine]) -> None:
    machine = make("T4", "T4")
    machine.break_card(0, "hang")
    code = "import pynvml as nv; nv.nvmlInit(); nv.nvmlDeviceGetName(nv.nvmlDeviceGetHandleByIndex({}))"
    hanging = start(machine, code.format(0))
    assert ended(start(machine, code.format(1))) == 0
    time.sleep(0.3)
    assert hanging.poll() is None
    machine.mend(0)
    assert ended(hanging) == 0


def test_a_planned_hang_does_not_come_back(make: Callable[..., Machine]) -> None:
    machine = make("T4")
    hanging = start(
        machine, "import pynvml as nv; nv.nvmlInit(); nv.nvmlDeviceGetCount()", fault="nvmlDeviceGetCount_v2@1=HANG"
    )
    with pytest.raises(subprocess.TimeoutExpired):
        hanging.communicate(timeout=2)
    hanging.kill()
    assert ended(hanging) == -9


LOOKS_ONLY = """
import os
import pynvml as nv
nv.nvmlInit()
if os.geteuid() == 0:
    os.seteuid(65534)
card = nv.nvmlDeviceGetHandleByIndex(0)
print(nv.nvmlDeviceGetMigMode(card))
for call in (lambda: nv.nvmlDeviceGetGpuInstanceById(card, 0), lambda: nv.nvmlDeviceSetMigMode(card, 1)):
    try:
        call()
    except nv.NVMLError as error:
        print(error)
"""


def test_who_may_not_write_the_state_may_only_look() -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        root.chmod(0o755)
        machine = Machine.make(root, {"gpus": [{"model": "A100-SXM4-80GB"}]})
        machine.event(0, 1)
        (root / "gpusim.lock").chmod(0o444)
        output, error = start(machine, LOOKS_ONLY).communicate(timeout=60)
    assert output.splitlines() == ["[0, 0]", *["Insufficient Permissions"] * 2], error


def test_threads_of_one_process(make: Callable[..., Machine]) -> None:
    """NVML may be called by many threads; ctypes lets them run side by side."""
    machine = make("A100-SXM4-80GB", "H100-80GB-HBM3", "A30", "T4")

    def use(index: int) -> int:
        card = nv.nvmlDeviceGetHandleByIndex(index)
        for _ in range(20):
            if index < 2:
                gi = nv.nvmlDeviceCreateGpuInstance(card, 0)
                nv.nvmlGpuInstanceDestroy(gi)
            assert len(nv.nvmlDeviceGetName(card)) > 5
        return index

    with nvml(machine):
        for index in range(2):
            nv.nvmlDeviceSetMigMode(nv.nvmlDeviceGetHandleByIndex(index), 1)
        with ThreadPoolExecutor(8) as pool:
            assert list(pool.map(use, range(4))) == [0, 1, 2, 3]
    assert machine.show()["changes"] == 2 + 2 * 2 * 20
