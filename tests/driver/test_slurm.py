"""Slurm's own gpu/nvml plugin over the simulated cards: it must find what hybridgpu derives of them."""

from __future__ import annotations

from collections.abc import Callable

import pynvml as nv
import pytest

from hybridgpu.model.naming import device_files
from testbed.driver.machine import Machine
from testbed.driver.slurmroot import MachineRoot, plugin
from testbed.slurm.root import SlurmdReport, SlurmRoot
from tests.conftest import lacking
from tests.simulated import nvml

Detect = Callable[[Machine, str], SlurmdReport]

CLOCKS = {"memory_clocks": [1593], "graphics_clocks": [1410, 210, 15]}
A100 = {"model": "A100-SXM4-80GB", "cpus": "0-1", **CLOCKS}
H100 = {"model": "H100-80GB-HBM3", "cpus": "0-1", **CLOCKS}
CONF = """ClusterName=t
SlurmctldHost=localhost
SelectType=select/cons_tres
GresTypes=gpu
NodeName=n1 CPUs=2 RealMemory=1000 Gres={gres}
PartitionName=p Nodes=n1
"""


@pytest.fixture
def detected(slurm_root: SlurmRoot) -> Detect:
    if plugin(slurm_root) is None:
        lacking(f"the root with Slurm {slurm_root.version} has no gpu/nvml plugin")

    def detect(machine: Machine, gres: str) -> SlurmdReport:
        files = {"slurm.conf": CONF.format(gres=gres), "gres.conf": "AutoDetect=nvml\n"}
        return MachineRoot.over(slurm_root, machine).slurmd_g(files, "n1")

    return detect


def test_cards_and_instances(make: Callable[..., Machine], detected: Detect) -> None:
    machine = make(
        gpus=[{**A100, "minor": 3}, {**A100, "minor": 1, "links": [3, 3]}, H100 | {"minor": 0}, A100 | {"minor": 2}]
    )
    with nvml(machine):
        card = nv.nvmlDeviceGetHandleByIndex(0)
        nv.nvmlDeviceSetMigMode(card, 1)
        for profile, whole in ((9, 2), (14, 1), (19, 0)):
            nv.nvmlGpuInstanceCreateComputeInstance(nv.nvmlDeviceCreateGpuInstance(card, profile), whole)
    instances = "gpu:3g.40gb:1,gpu:2g.20gb:1,gpu:1g.10gb:1"
    report = detected(machine, f"gpu:a100-sxm4-80gb:2,gpu:h100_80gb_hbm3:1,{instances}")
    assert not report.died
    assert {(device.type, device.files) for device in report.devices} == {
        ("a100-sxm4-80gb", device_files(1)),
        ("a100-sxm4-80gb", device_files(2)),
        ("h100_80gb_hbm3", device_files(0)),
        ("3g.40gb", device_files(3, gi=1)),
        ("2g.20gb", device_files(3, gi=5)),
        ("1g.10gb", device_files(3, gi=13)),
    }
    assert {device.cores for device in report.devices} == {"0-1"}
    assert {device.files: device.links for device in report.devices}[device_files(1)] == "0,-1,0,2"


def test_media_extensions(make: Callable[..., Machine], slurm_root: SlurmRoot, detected: Detect) -> None:
    """22.05 makes the name from the instance's attributes, later releases take the driver's, with its suffix."""
    machine = make(gpus=[A100])
    with nvml(machine):
        card = nv.nvmlDeviceGetHandleByIndex(0)
        nv.nvmlDeviceSetMigMode(card, 1)
        nv.nvmlGpuInstanceCreateComputeInstance(nv.nvmlDeviceCreateGpuInstance(card, 20), 0)
    name, other = ("1g.10gb", "1g.10gb+me") if slurm_root.release == "22.05" else ("1g.10gb+me", "1g.10gb+gfx")
    assert [device.type for device in detected(machine, f"gpu:{name}:1").devices] == [name]
    assert [device.type for device in detected(machine, f"gpu:{other}:1").devices] == []


def test_mig_without_an_instance(make: Callable[..., Machine], detected: Detect) -> None:
    """Fatal up to 24.05; later an error, and the whole card (Ticket 21047)."""
    machine = make(gpus=[A100])
    with nvml(machine):
        nv.nvmlDeviceSetMigMode(nv.nvmlDeviceGetHandleByIndex(0), 1)
    report = detected(machine, "gpu:1")
    assert any("MIG mode is enabled, but no MIG devices were found" in message for message in report.messages)
    assert [device.files for device in report.devices] == ([] if report.died else [device_files(0)])


def test_a_lost_card_is_no_card(make: Callable[..., Machine], detected: Detect) -> None:
    machine = make(gpus=[A100, A100])
    machine.break_card(0, "lost")
    report = detected(machine, "gpu:2")
    assert any("GPU is lost" in message for message in report.messages)
    assert [device.files for device in report.devices] == [device_files(1)]
