"""`discover` over the simulated driver, in this process: ten machines, and each call failing in turn."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pynvml
import pytest

from hybridgpu.devices.factsfile import as_json, as_table
from hybridgpu.devices.factsof import DEAD, MIG_EMPTY, MIG_PENDING, NO_FILE, UNREAD, UNTOLD, Discovered, facts_of
from hybridgpu.devices.nvml import Nvml
from hybridgpu.devices.observe import look
from hybridgpu.errors import Unavailable
from hybridgpu.inventory.facts import read_facts
from testbed.driver import library
from testbed.driver.cut import cut
from testbed.driver.machine import Machine
from tests.conftest import soak
from tests.devices.conftest import Make
from tests.devices.machines import MACHINES, MIB
from tests.simulated import nvml


@contextmanager
def faults(plan: str | None) -> Iterator[None]:
    assert library.load().gpusim_faults(plan.encode() if plan else None) == 0
    try:
        yield
    finally:
        library.load().gpusim_faults(None)


def discover(machine: Machine, plan: str | None = None) -> Discovered:
    with library.over(machine.root), faults(plan):
        return facts_of(look(Nvml(), machine.root), "n1")


@pytest.mark.parametrize("name", MACHINES)
def test_a_machine_is_as_its_maker_says(name: str, shared_machine: Make) -> None:
    built, found = MACHINES[name], discover(shared_machine(name))
    assert found.facts is not None
    assert found.findings == ()
    gpus = found.facts.gpus
    assert [gpu.index for gpu in gpus] == list(range(len(built.models)))
    assert [gpu.model for gpu in gpus] == list(built.models)
    assert [gpu.memory_bytes for gpu in gpus] == [mib * MIB for mib in built.mib]
    assert [gpu.minor for gpu in gpus] == list(built.minors)
    assert [gpu.cores for gpu in gpus] == list(built.cores)
    assert [gpu.links for gpu in gpus] == [None if links is None else tuple(links) for links in built.links]
    assert [gpu.pci_bus_id for gpu in gpus] == [gpu["pci"] for gpu in built.description["gpus"]]
    for gpu in gpus:
        wanted = built.cuts.get(gpu.index, ())
        seen = [(i.profile, i.placement.start) for i in gpu.instances if i.placement]
        assert sorted(seen) == sorted(wanted)
        assert bool(gpu.mig_enabled) is bool(wanted)
        for instance in gpu.instances:
            assert instance.gi_minor == 3 + 135 * gpu.minor + 9 * instance.gi
            assert instance.ci_minor == instance.gi_minor + 1 + instance.ci


@pytest.mark.parametrize("name", MACHINES)
def test_facts_are_read_back_as_they_are(name: str, shared_machine: Make, tmp_path: Path) -> None:
    facts = discover(shared_machine(name)).facts
    assert facts is not None
    path = tmp_path / "n1.json"
    path.write_text(as_json(facts))
    read, findings = read_facts(str(path))
    assert findings == ()
    assert read is not None
    assert (read.node, read.driver_version, read.gpus) == (facts.node, facts.driver_version, facts.gpus)


def test_the_table_has_a_line_for_each_device(shared_machine: Make) -> None:
    facts = discover(shared_machine("dgx-a100-mig")).facts
    assert facts is not None
    lines = as_table(facts).splitlines()
    assert len(lines) == 1 + 8 + 2 + 7 + 1 + 4 + 3
    assert lines[1].split()[:6] == ["0", "3", "0000:07:00.0", "A100-SXM4-80GB", "80.0", "GiB"]
    assert lines[2].split()[:3] == ["3g.40gb", "at", "0"]


ERRORS = (
    *("UNINITIALIZED", "INVALID_ARGUMENT", "NOT_SUPPORTED", "NO_PERMISSION", "NOT_FOUND", "INSUFFICIENT_SIZE"),
    *("DRIVER_NOT_LOADED", "TIMEOUT", "FUNCTION_NOT_FOUND", "GPU_IS_LOST", "RESET_REQUIRED", "OPERATING_SYSTEM"),
    *("LIB_RM_VERSION_MISMATCH", "IN_USE", "MEMORY", "NO_DATA", "ARGUMENT_VERSION_MISMATCH", "UNKNOWN"),
)
DEATH = ("GPU_IS_LOST", "RESET_REQUIRED")

ALL_OR_NOTHING = ("nvmlInit", "nvmlSystemGetDriverVersion", "nvmlDeviceGetCount_v2")
MUST = (
    *("nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetPciInfo_v3", "nvmlDeviceGetName", "nvmlDeviceGetUUID"),
    *("nvmlDeviceGetMinorNumber", "nvmlDeviceGetMemoryInfo", "nvmlDeviceGetMigMode", "nvmlDeviceGetComputeMode"),
    *("nvmlDeviceGetMaxMigDeviceCount", "nvmlDeviceGetMigDeviceHandleByIndex", "nvmlDeviceGetGpuInstanceId"),
    "nvmlDeviceGetComputeInstanceId",
)
EVERY_CARD_KNOWS = MUST[:6]
ASKED_OF_INSTANCES = (
    *("nvmlDeviceGetName", "nvmlDeviceGetUUID", "nvmlDeviceGetMigDeviceHandleByIndex"),
    *("nvmlDeviceGetGpuInstanceId", "nvmlDeviceGetComputeInstanceId"),
)
MAY = {
    "nvmlDeviceGetCpuAffinity": "cores",
    "nvmlDeviceGetNvLinkState": "links",
    "nvmlDeviceGetNvLinkRemotePciInfo_v2": "links",
    "nvmlDeviceGetGpuInstanceById": "placement",
    "nvmlGpuInstanceGetInfo": "placement",
}
SAYS_NO = {
    "nvmlDeviceGetMigMode": ("NOT_SUPPORTED", "FUNCTION_NOT_FOUND"),
    "nvmlDeviceGetMigDeviceHandleByIndex": ("NOT_FOUND",),
    "nvmlDeviceGetNvLinkState": ("NOT_SUPPORTED", "FUNCTION_NOT_FOUND", "INVALID_ARGUMENT"),
    "nvmlDeviceGetNvLinkRemotePciInfo_v2": ("NOT_SUPPORTED",),
}
"""Answers that are no failure: there is no MIG, no such instance, no such link, or it ends where no card is."""


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("call", ALL_OR_NOTHING)
def test_without_these_calls_there_is_no_driver(call: str, error: str, shared_machine: Make) -> None:
    with pytest.raises(Unavailable) as raised:
        discover(shared_machine("dgx-a100-mig"), f"{call}@1={error}")
    assert raised.value.plane == "device"
    assert str(raised.value).count("\n") == 0


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("call", MUST)
def test_a_card_that_does_not_tell_this_is_refused_by_name(call: str, error: str, shared_machine: Make) -> None:
    found = discover(shared_machine("dgx-a100-mig"), f"{call}@2={error}")
    if error in SAYS_NO.get(call, ()):
        assert found.facts is not None
        return
    assert found.facts is None
    (finding,) = found.findings
    assert finding.rule in (DEAD, UNTOLD)
    assert f"answered {error}" in finding.message
    first = call in ASKED_OF_INSTANCES  # the second such call is still about the first card's
    unknown = error == "UNKNOWN" and call in EVERY_CARD_KNOWS and not first
    assert (finding.rule is DEAD) == (error in DEATH or unknown)
    assert ("GPU 0 at 0000:07:00.0 (/dev/nvidia3)" if first else "GPU 1 at 0000:0f:00.0") in finding.message


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("call", MAY)
def test_what_facts_may_leave_open_is_null_and_said(call: str, error: str, shared_machine: Make) -> None:
    found = discover(shared_machine("dgx-a100-mig"), f"{call}@1={error}")
    if error in SAYS_NO.get(call, ()):
        assert found.findings == ()
        return
    if error in DEATH:
        assert [finding.rule for finding in found.findings] == [DEAD]
        assert found.facts is None
        return
    (finding,) = found.findings
    assert finding.rule is UNREAD
    assert f"GPU 0 at 0000:07:00.0: {MAY[call]} is null: {call.removesuffix('_v2')} answered {error}" in finding.message
    assert found.facts is not None
    gpu = found.facts.gpus[0]
    assert (gpu.cores is None, gpu.links is None) == (MAY[call] == "cores", MAY[call] == "links")
    assert any(instance.placement is None for instance in gpu.instances) == (MAY[call] == "placement")


def test_the_calls_of_these_tests_are_those_that_are_made(
    shared_machine: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every function of the library that `discover` calls is in one of the tables: one that fails in none is missed."""
    asked: list[str] = []
    real = pynvml._nvmlGetFunctionPointer

    def noted(name: str) -> object:
        asked.append(name)
        return real(name)

    monkeypatch.setattr(pynvml, "_nvmlGetFunctionPointer", noted)
    discover(shared_machine("dgx-a100-mig"))
    made = {"nvmlInit" if name == "nvmlInitWithFlags" else name for name in asked}
    assert made - {"nvmlErrorString", "nvmlShutdown"} == {*ALL_OR_NOTHING, *MUST, *MAY}


@pytest.mark.parametrize("card", [0, 3, 7])
@pytest.mark.parametrize(
    ("fault", "rule", "said"),
    [
        ("lost", DEAD, "GPU_IS_LOST"),
        ("unknown", DEAD, "UNKNOWN"),
        ("reset-required", DEAD, "RESET_REQUIRED"),
    ],
)
def test_a_broken_card_is_refused_by_name(fault: str, rule: object, said: str, card: int, make_machine: Make) -> None:
    machine, built = make_machine("dgx-a100"), MACHINES["dgx-a100"]
    machine.break_card(card, fault)
    found = discover(machine)
    assert found.facts is None
    (finding,) = found.findings
    assert finding.rule is rule
    pci, minor = built.description["gpus"][card]["pci"], built.minors[card]
    assert finding.message.startswith(f"GPU {card} at {pci} (/dev/nvidia{minor}) is dead: ")
    assert said in finding.message
    machine.mend(card)
    assert discover(machine).facts is not None


def test_every_dead_card_is_named(make_machine: Make) -> None:
    machine = make_machine("dgx-a100")
    for card in (1, 6):
        machine.break_card(card, "lost")
    assert [finding.message.partition(" at ")[0] for finding in discover(machine).findings] == ["GPU 1", "GPU 6"]


def test_a_card_that_only_the_kernel_knows_is_dead(make_machine: Make) -> None:
    machine = make_machine("l40s")
    folder = machine.root / "proc/driver/nvidia/gpus/0000:05:00.0"
    folder.mkdir()
    (folder / "information").write_text("GPU UUID: \t GPU-9\nDevice Minor: \t 2\nGPU Excluded:\t No\n")
    found = discover(machine)
    assert found.facts is None
    assert found.findings[0].message.startswith(
        "GPU 0 at 0000:05:00.0 (/dev/nvidia2) is dead: the kernel's driver has it"
    )
    (folder / "information").write_text("GPU UUID: \t GPU-9\nDevice Minor: \t 2\nGPU Excluded:\t Yes\n")
    found = discover(machine)
    assert found.facts is not None
    assert len(found.facts.gpus) == 2
    assert [finding.message for finding in found.findings] == ["the GPU at 0000:05:00.0 (GPU-9) is excluded"]


def test_mig_without_instances_and_a_mode_that_waits_are_said(make_machine: Make) -> None:
    machine = make_machine("a30")
    with nvml(machine):
        cut(0, ())
    machine.run(1, 4000)
    with nvml(machine):
        cut(1, ())
    found = discover(machine)
    assert found.facts is not None
    assert [(gpu.mig_enabled, gpu.mig_pending) for gpu in found.facts.gpus] == [(True, True), (False, True)]
    assert [(finding.rule, finding.message) for finding in found.findings] == [
        (MIG_EMPTY, "GPU 0 at 0000:17:00.0: MIG is on, and there is no instance"),
        (MIG_PENDING, "GPU 1 at 0000:ca:00.0: MIG is off, and will be on after a reset"),
    ]


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("dev/nvidia3", "there is no /dev/nvidia3"),
        ("dev/nvidia-caps/nvidia-cap426", "there is no /dev/nvidia-caps/nvidia-cap426"),
    ],
)
def test_a_device_file_that_is_not_there_is_said(path: str, said: str, make_machine: Make) -> None:
    machine = make_machine("dgx-a100-mig")
    with library.over(machine.root), nvml(machine):
        gone = machine.root / path
        assert gone.exists(), sorted(str(p) for p in gone.parent.iterdir())
        gone.unlink()
        found = facts_of(look(Nvml(), machine.root), "n1")
    assert [finding.rule for finding in found.findings] == [NO_FILE]
    assert said in found.findings[0].message


def test_without_mig_minors_the_files_of_instances_are_read(make_machine: Make) -> None:
    machine = make_machine("dgx-a100-mig")
    before = discover(machine)
    (machine.root / "proc/driver/nvidia-caps/mig-minors").unlink()
    assert discover(machine) == before


def test_no_plan_of_faults_gives_a_traceback_or_facts_that_are_none(shared_machine: Make) -> None:
    """Two calls fail in any ways, any time: facts that can be read, findings that say why not, or no driver."""
    chance = random.Random(7)
    calls = (*ALL_OR_NOTHING, *MUST, *MAY)
    for _ in range(soak(150, 20_000)):
        plan = ",".join(f"{chance.choice(calls)}@{chance.randint(1, 30)}={chance.choice(ERRORS)}" for _ in range(2))
        try:
            found = discover(shared_machine(chance.choice(["mixed", "a30", "rtx-pro-6000"])), plan)
        except Unavailable as unavailable:
            assert unavailable.plane == "device", plan
            continue
        if found.facts is None:
            assert any(finding.is_error for finding in found.findings), plan
            continue
        assert not any(finding.is_error for finding in found.findings), plan
        facts, findings = read_facts("n1.json", as_json(found.facts).encode())
        assert findings == (), plan
        assert facts is not None
        assert facts.gpus == found.facts.gpus, plan
