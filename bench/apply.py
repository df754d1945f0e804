"""`node apply` where there is nothing to do, 8 GPUs with 56 MIG instances, against the bare calls of pynvml it takes.

Those are what facts need, and per card what tells how it is cut and who is on it.
"""

from __future__ import annotations

import ctypes
import os
import socket
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import pynvml

from bench import discover
from bench.measure import Run, in_turn, machine, median, table
from testbed.driver.machine import Machine

_HYBRIDGPU = (sys.executable, "-m", "hybridgpu")
_START = (
    "import runpy, click, pynvml, hybridgpu.cli.node.apply, hybridgpu.cli.node.report, hybridgpu.devices.application, "
    "hybridgpu.cli.node.jobdaemons, hybridgpu.cli.node.mapped, hybridgpu.cli.node.migask, hybridgpu.devices.withdead, "
    "hybridgpu.devices.bind, hybridgpu.devices.container, hybridgpu.devices.factsof, hybridgpu.devices.limited, "
    "hybridgpu.devices.nvmlcut, hybridgpu.check.formats; from hybridgpu.model.catalogue import models; models()"
)
_INVENTORY = """\
apiVersion: hybridgpu/v1
kind: Inventory
metadata: {name: bench}
slurm: {version: "24.11"}
nodeClasses:
  a: {model: A100-SXM4-80GB, gpus: 8, slurm: {CPUs: 8, Sockets: 1, CoresPerSocket: 8, NodeHostname: HOST}}
nodes:
- {hosts: n1, class: a, owner: slurm, schedulers: [slurm], sharing: {mode: mig, layout: {all: {1g.10gb: 7}}}}
"""


def main() -> None:
    """Prints the machine, the four times and the ratio."""
    print(machine())
    with tempfile.TemporaryDirectory(prefix="hybridgpu-bench-") as folder:
        simulated = Machine.make(Path(folder, "machine"), discover.DESCRIPTION)
        os.environ.update(simulated.environment())
        apply = (
            *(*_HYBRIDGPU, "node", "apply", "--driver-root", str(simulated.root)),
            *("--config", str(_config(Path(folder))), "--run", str(Path(folder, "run"))),
        )
        in_turn({"the first one cuts": apply}, runs=1)
        results = in_turn(
            {
                "node apply": apply,
                "bare pynvml calls": (sys.executable, "-m", "bench.apply", str(simulated.root)),
                "start-up of Python with pynvml": (sys.executable, "-c", "import pynvml"),
                "start-up of the command": (sys.executable, "-c", _START),
            },
            runs=9,
        )
    print(f"\nnothing to do: {discover.CARDS} GPUs, {discover.CARDS * discover.INSTANCES} MIG instances")
    table(results)
    ours, bare, python, start = (median(runs) for runs in results.values())
    print(f"(apply - start-up) / (bare - start-up): wall {_net(ours, start) / _net(bare, python):.2f} (bound 1.5)")
    print(f"the same in cpu: {(ours.cpu - start.cpu) / (bare.cpu - python.cpu):.2f}")


def _net(whole: Run, start: Run) -> float:
    return whole.wall - start.wall


def _config(folder: Path) -> Path:
    """The NodeConfig, as render writes it."""
    from hybridgpu.inventory.load import load_site
    from hybridgpu.render.tree import render_tree

    (folder / "inventory.yaml").write_text(_INVENTORY.replace("HOST", socket.gethostname()), encoding="utf-8")
    site = load_site(str(folder / "inventory.yaml"), for_render=True).site
    assert site is not None
    (folder / "node.json").write_bytes(render_tree(site)["nodes/n1.json"]())
    return folder / "node.json"


def bare(root: Path) -> int:
    """All that is asked, and thrown away; gives the number of devices."""
    devices = discover.bare(root)
    pynvml.nvmlInit()
    for number in range(pynvml.nvmlDeviceGetCount()):
        card = pynvml.nvmlDeviceGetHandleByUUID(pynvml.nvmlDeviceGetUUID(pynvml.nvmlDeviceGetHandleByIndex(number)))
        pynvml.nvmlDeviceGetMigMode(card)
        pynvml.nvmlDeviceGetComputeMode(card)
        for processes in (
            pynvml.nvmlDeviceGetComputeRunningProcesses,
            pynvml.nvmlDeviceGetGraphicsRunningProcesses,
            pynvml.nvmlDeviceGetMPSComputeRunningProcesses,
        ):
            processes(card)
        _uuids(card)
        _instances(card)
    pynvml.nvmlShutdown()
    return devices


def _uuids(card: Any) -> None:  # noqa: ANN401 - pynvml is not typed
    for number in range(pynvml.nvmlDeviceGetMaxMigDeviceCount(card)):
        device = pynvml.nvmlDeviceGetMigDeviceHandleByIndex(card, number)
        pynvml.nvmlDeviceGetGpuInstanceId(device)
        pynvml.nvmlDeviceGetComputeInstanceId(device)
        pynvml.nvmlDeviceGetUUID(device)


def _instances(card: Any) -> None:  # noqa: ANN401
    """All GPU instances and what they are divided into: NVML lists them by profile only (so does mig-parted)."""
    for kind in range(pynvml.NVML_GPU_INSTANCE_PROFILE_COUNT):
        with suppress(pynvml.NVMLError):
            profile = pynvml.nvmlDeviceGetGpuInstanceProfileInfo(card, kind)
            instances, count = (pynvml.c_nvmlGpuInstance_t * profile.instanceCount)(), ctypes.c_uint(0)
            pynvml.nvmlDeviceGetGpuInstances(card, profile.id, instances, ctypes.byref(count))
            for instance in instances[: count.value]:
                pynvml.nvmlGpuInstanceGetInfo(instance)
                _computes(instance)


def _computes(instance: Any) -> None:  # noqa: ANN401
    for kind in range(pynvml.NVML_COMPUTE_INSTANCE_PROFILE_COUNT):
        with suppress(pynvml.NVMLError):
            profile = pynvml.nvmlGpuInstanceGetComputeInstanceProfileInfo(instance, kind, 0)
            computes, count = (pynvml.c_nvmlComputeInstance_t * profile.instanceCount)(), ctypes.c_uint(0)
            pynvml.nvmlGpuInstanceGetComputeInstances(instance, profile.id, computes, ctypes.byref(count))
            for compute in computes[: count.value]:
                pynvml.nvmlComputeInstanceGetInfo(compute)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        assert bare(Path(sys.argv[1])) == discover.CARDS * discover.INSTANCES
    else:
        main()
