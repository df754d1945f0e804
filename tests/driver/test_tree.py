"""What the driver shows outside NVML: hybridgpu's numbering of device files, and what Slurm and NVIDIA's code read."""

from __future__ import annotations

import re
from collections.abc import Callable

import pynvml as nv

from hybridgpu.model.naming import device_files
from testbed.driver.machine import Machine
from tests.driver.world import CUT, World
from tests.simulated import nvml


def test_capability_files_are_those_we_derive(world: World) -> None:
    gpu = world.machine.show()["gpus"][CUT]
    for device in gpu["devices"]:
        for path in device_files(gpu["minor"], device["gi"], device["ci"]):
            assert (world.machine.root / path.lstrip("/")).exists()


def test_capabilities_and_minors_agree(world: World) -> None:
    proc = world.machine.root / "proc" / "driver"
    minors = dict(line.split() for line in (proc / "nvidia-caps" / "mig-minors").read_text().splitlines())
    assert (minors["config"], minors["monitor"]) == ("1", "2")
    capabilities = proc / "nvidia" / "capabilities"
    shown = {
        re.sub(r"^(gpu\d+)/mig/", r"\1/", str(path.relative_to(capabilities))): path.read_text().split("\n")[0]
        for path in capabilities.glob("gpu*/**/access")
    }
    assert sorted(shown) == [
        "gpu3/gi1/access", "gpu3/gi1/ci0/access", "gpu3/gi11/access", "gpu3/gi11/ci0/access",
    ]  # fmt: skip
    assert shown == {name: f"DeviceFileMinor: {minors[name]}" for name in shown}


def test_what_is_destroyed_has_no_files(make: Callable[..., Machine]) -> None:
    machine = make("A100-SXM4-80GB")
    before = sorted(str(path) for path in machine.root.rglob("*"))
    with nvml(machine):
        card = nv.nvmlDeviceGetHandleByIndex(0)
        nv.nvmlDeviceSetMigMode(card, 1)
        gi = nv.nvmlDeviceCreateGpuInstance(card, 0)
        computes = [nv.nvmlGpuInstanceCreateComputeInstance(gi, 0) for _ in range(7)]
        assert (machine.root / "dev/nvidia-caps/nvidia-cap10").exists()
        nv.nvmlComputeInstanceDestroy(computes.pop())
        assert not (machine.root / "dev/nvidia-caps/nvidia-cap10").exists()
        assert (machine.root / "dev/nvidia-caps/nvidia-cap9").exists()
        for compute in computes:
            nv.nvmlComputeInstanceDestroy(compute)
        nv.nvmlGpuInstanceDestroy(gi)
    left = {path for path in sorted(str(path) for path in machine.root.rglob("*")) if path not in before}
    assert {path.removeprefix(str(machine.root)) for path in left} <= {
        "/proc/driver/nvidia/capabilities/gpu0", "/proc/driver/nvidia/capabilities/gpu0/mig",
    }  # fmt: skip


def test_a_card_in_proc_and_sys(world: World) -> None:
    root = world.machine.root
    text = (root / "proc/driver/nvidia/gpus/0000:07:00.0/information").read_text()
    information = dict(re.split(r":\s+", line, maxsplit=1) for line in text.splitlines())
    assert information["Model"] == "NVIDIA A100-SXM4-80GB"
    assert information["Device Minor"] == "3"
    assert information["Bus Location"] == "0000:07:00.0"
    assert information["GPU UUID"] == "GPU-11111111-2222-3333-4444-555555555555"
    pci = root / "sys/bus/pci/devices/0000:07:00.0"
    shown = {
        name: (pci / name).read_text().strip() for name in ("vendor", "device", "class", "numa_node", "local_cpulist")
    }
    assert shown == {
        "vendor": "0x10de", "device": "0x20b2", "class": "0x030200", "numa_node": "1", "local_cpulist": "0-1,64",
    }  # fmt: skip
    assert (pci / "config").read_bytes()[:4] == bytes.fromhex("de10b220")
    assert "550.54.15" in (root / "proc/driver/nvidia/version").read_text()
    assert (root / "proc/modules").read_text().startswith("nvidia ")


def test_each_boot_has_an_id(make: Callable[..., Machine]) -> None:
    machine = make("T4")
    path = machine.root / "proc/sys/kernel/random/boot_id"
    first = path.read_text()
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\n", first)
    machine.reset(0)
    assert path.read_text() == first
    machine.reboot()
    assert path.read_text() != first


def test_an_absent_card_has_no_capabilities(make: Callable[..., Machine]) -> None:
    machine = make("A100-SXM4-80GB", "A100-SXM4-80GB")

    def files() -> set[str]:
        found = (path.relative_to(machine.root) for path in machine.root.rglob("*") if path.is_file())
        return {str(path) for path in found if "nvidia-cap" in path.name or "/mig/" in str(path)}

    with nvml(machine):
        unit = files()
        for index in range(2):
            card = nv.nvmlDeviceGetHandleByIndex(index)
            nv.nvmlDeviceSetMigMode(card, 1)
            gi = nv.nvmlDeviceCreateGpuInstance(card, 0)
            nv.nvmlGpuInstanceCreateComputeInstance(gi, 0)
            whole = files()
            if index == 0:
                one = whole
    assert unit < one < whole
    machine.break_card(1, "absent")
    assert files() == one
    machine.mend(1)
    assert files() == whole
