"""`discover` of a machine with 8 GPUs and 56 MIG instances, against the bare calls of pynvml that it takes."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import pynvml

from bench.measure import Run, in_turn, machine, median, table
from testbed.driver import library
from testbed.driver.machine import Machine

CARDS, INSTANCES = 8, 7
_PROFILE, _WHOLE = 19, 0
"""NVML's ids of 1g.10gb on an A100, and of the compute instance that takes all of a `1g`."""

DESCRIPTION: dict[str, Any] = {
    "name": "bench",
    "cpus": "0",
    "gpus": [{"model": "A100-SXM4-80GB", "links": ["switch"] * 12} for _ in range(CARDS)],
}

_HYBRIDGPU = (sys.executable, "-m", "hybridgpu")
_START = "import click, pynvml, hybridgpu.cli.discover, hybridgpu.devices.factsof, hybridgpu.devices.factsfile"


def main() -> None:
    """Prints the machine, the four times and the ratio."""
    print(machine())
    with tempfile.TemporaryDirectory(prefix="hybridgpu-bench-") as folder:
        simulated = _cut(Machine.make(Path(folder, "machine"), DESCRIPTION))
        os.environ.update(simulated.environment())
        root = str(simulated.root)
        results = in_turn(
            {
                "discover": (*_HYBRIDGPU, "discover", "--driver-root", root),
                "bare pynvml calls": (sys.executable, "-m", "bench.discover", root),
                "start-up of Python with pynvml": (sys.executable, "-c", "import pynvml"),
                "start-up of the command": (sys.executable, "-c", _START),
            },
            runs=9,
        )
    print(f"\n{CARDS} GPUs, {CARDS * INSTANCES} MIG instances")
    table(results)
    ours, bare, python, start = (median(runs) for runs in results.values())
    print(f"(discover - start-up) / (bare - start-up): wall {_net(ours, start) / _net(bare, python):.2f} (bound 1.5)")
    print(f"the same in cpu: {(ours.cpu - start.cpu) / (bare.cpu - python.cpu):.2f}")


def _net(whole: Run, start: Run) -> float:
    return whole.wall - start.wall


def _cut(simulated: Machine) -> Machine:
    with library.over(simulated.root):
        pynvml.nvmlInit()
        for number in range(CARDS):
            card = pynvml.nvmlDeviceGetHandleByIndex(number)
            pynvml.nvmlDeviceSetMigMode(card, 1)
            for _ in range(INSTANCES):
                instance = pynvml.nvmlDeviceCreateGpuInstance(card, _PROFILE)
                pynvml.nvmlGpuInstanceCreateComputeInstance(instance, _WHOLE)
        pynvml.nvmlShutdown()
    return simulated


def bare(root: Path) -> int:
    """All that facts hold, asked for and thrown away; gives the number of devices."""
    pynvml.nvmlInit()
    pynvml.nvmlSystemGetDriverVersion()
    devices = 0
    for number in range(pynvml.nvmlDeviceGetCount()):
        card = pynvml.nvmlDeviceGetHandleByIndex(number)
        pynvml.nvmlDeviceGetPciInfo(card)
        pynvml.nvmlDeviceGetName(card)
        pynvml.nvmlDeviceGetUUID(card)
        pynvml.nvmlDeviceGetMinorNumber(card)
        pynvml.nvmlDeviceGetMemoryInfo(card)
        pynvml.nvmlDeviceGetComputeMode(card)
        pynvml.nvmlDeviceGetCpuAffinity(card, 512)
        pynvml.nvmlDeviceGetMigMode(card)
        _links(card)
        devices += _instances(card)
    pynvml.nvmlShutdown()
    minors = (root / "proc/driver/nvidia-caps/mig-minors").read_text(encoding="utf-8")
    dict(line.split() for line in minors.splitlines())
    return devices


def _links(card: Any) -> None:  # noqa: ANN401 - pynvml is not typed
    for link in range(pynvml.NVML_NVLINK_MAX_LINKS):
        try:
            if pynvml.nvmlDeviceGetNvLinkState(card, link):
                pynvml.nvmlDeviceGetNvLinkRemotePciInfo(card, link)
        except pynvml.NVMLError_InvalidArgument:
            continue


def _instances(card: Any) -> int:  # noqa: ANN401
    most = pynvml.nvmlDeviceGetMaxMigDeviceCount(card)
    for number in range(most):
        device = pynvml.nvmlDeviceGetMigDeviceHandleByIndex(card, number)
        pynvml.nvmlDeviceGetUUID(device)
        pynvml.nvmlDeviceGetName(device)
        pynvml.nvmlDeviceGetComputeInstanceId(device)
        instance = pynvml.nvmlDeviceGetGpuInstanceById(card, pynvml.nvmlDeviceGetGpuInstanceId(device))
        pynvml.nvmlGpuInstanceGetInfo(instance)
    return int(most)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        assert bare(Path(sys.argv[1])) == CARDS * INSTANCES
    else:
        main()
