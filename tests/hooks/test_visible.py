"""Which devices a task has, by what Slurm wrote into CUDA_VISIBLE_DEVICES and what its cgroup lets it open."""

from __future__ import annotations

import os
import stat
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from hybridgpu.hooks.environment import indices
from hybridgpu.hooks.visible import DENIED, MISSING, OPEN, access, are_uuids, given, lost, mapped
from hybridgpu.mps.devicemap import Device
from hybridgpu.mps.trouble import Trouble
from tests.conftest import lacking
from tests.hooks.cards import CUT, everything, gpu, gpus, instance, opens, recorded

Probe = Callable[[str], str]
GPUS = gpus()


def cards(*numbers: int) -> Probe:
    return opens(*(f"/dev/nvidia{number}" for number in numbers))


def indices_of(
    entries: tuple[str, ...], job: tuple[int, ...], devices: Mapping[int, Device], probe: Probe
) -> list[int]:
    return [entry.device.slurm_index for entry in mapped(entries, job, devices, probe)]


@pytest.mark.parametrize(
    ("entries", "job", "probe", "expected"),
    [
        # Without ConstrainDevices: Slurm's own numbers, whatever the step or the task was bound to.
        (("0", "1"), (0, 1), everything, [0, 1]),
        (("3",), (3,), everything, [3]),
        (("1", "2"), (0, 1, 2, 3), everything, [1, 2]),
        (("2",), (0, 1, 2, 3), everything, [2]),
        (("7", "0"), (0, 7), everything, [7, 0]),
        # With it: positions in what may be opened: the job's, of a step with --exact, of a task with --gpu-bind.
        (("0", "1"), (2, 3), cards(2, 3), [2, 3]),
        (("0",), (5,), cards(5), [5]),
        (("0", "1"), (0, 1, 2, 3), cards(1, 2), [1, 2]),
        (("0",), (0, 1, 2, 3), cards(3), [3]),
        (("1", "0"), (4, 6), cards(4, 6), [6, 4]),
        (("1",), (4, 6), cards(4, 6), [6]),
        # A job with all of the node, bound to one of its cards.
        (("0",), tuple(range(8)), cards(6), [6]),
        # A job with two types: its prolog is told of one. Positions count both.
        (("0", "1"), (5,), cards(2, 5), [2, 5]),
        (("2", "5"), (5,), everything, [2, 5]),
        # A card that no gres.conf names may be opened by everybody, and is not counted: it is not in the DeviceMap.
        (("0",), (1,), opens("/dev/nvidia1", "/dev/nvidia8"), [1]),
    ],
)
def test_numbers(entries: tuple[str, ...], job: tuple[int, ...], probe: Probe, expected: list[int]) -> None:
    assert indices_of(entries, job, GPUS, probe) == expected


@pytest.mark.parametrize(
    ("entries", "job", "expected"),
    [
        ((gpu(2).uuid,), (1, 2), [2]),
        ((gpu(2).uuid, gpu(1).uuid), (1, 2), [2, 1]),
    ],
)
def test_uuids_of_cards_stay(entries: tuple[str, ...], job: tuple[int, ...], expected: list[int]) -> None:
    assert indices_of(entries, job, GPUS, lambda _: pytest.fail("no file has to be asked")) == expected


@pytest.mark.parametrize(
    ("entries", "job", "probe", "expected"),
    [
        (("1", "2"), (1, 2), everything, [1, 2]),
        (("0", "1"), (1, 2), opens(*CUT[1].files, *CUT[2].files), [1, 2]),
        # The card's own file is open for each of its instances; the capability files tell them apart.
        (("0",), (2,), opens(*CUT[2].files), [2]),
        (("0",), (1, 2, 3), opens(*CUT[3].files), [3]),
        # 22.05 with AutoDetect=nvml mixes both forms; the position counts the instance, too.
        ((CUT[1].uuid, "0"), (1,), opens(*CUT[0].files, *CUT[1].files), [1, 0]),
        ((CUT[0].uuid, "1"), (0,), opens(*CUT[0].files, *CUT[2].files), [0, 2]),
        (("0", "1"), (0, 3), opens(*CUT[0].files, *CUT[3].files), [0, 3]),
        ((CUT[1].uuid,), (1, 2), everything, [1]),
        # The form of drivers before 470.42.01: by place where the task has all, by the card where that is enough.
        ((f"MIG-{gpu(1).uuid}/7/0", f"MIG-{gpu(1).uuid}/8/0"), (1, 2), everything, [1, 2]),
        ((f"MIG-{gpu(2).uuid}/1/0",), (1, 2, 3), everything, [3]),
        ((f"MIG-{gpu(1).uuid}/9/0", f"MIG-{gpu(2).uuid}/1/0"), (2, 3), everything, [2, 3]),
    ],
)
def test_instances(entries: tuple[str, ...], job: tuple[int, ...], probe: Probe, expected: list[int]) -> None:
    found = mapped(entries, job, CUT, probe)
    assert [entry.device.slurm_index for entry in found] == expected
    kept = [entry.uuid for entry in found if entry.uuid.startswith("MIG-GPU-")]
    assert kept == [entry for entry in entries if entry.startswith("MIG-GPU-")]


@pytest.mark.parametrize(
    ("entries", "job", "devices", "probe", "said"),
    [
        (("8",), (0,), GPUS, everything, "can open 8 GPUs"),
        (("1",), (0, 1), GPUS, cards(1), "can open 1 GPUs"),
        (("0",), (2,), GPUS, cards(), "can open 0 GPUs"),
        (("4294967296",), (0,), GPUS, everything, "allowed: numbers"),
        (("-1",), (0,), GPUS, everything, "'-1'"),
        (("all",), (0,), GPUS, everything, "'all'"),
        (("０",), (0,), GPUS, everything, "allowed: numbers"),
        (("GPU-0 $(id)",), (0,), GPUS, everything, "none of the devices"),
        ((gpu(9).uuid,), (0,), GPUS, everything, gpu(9).uuid),
        (("3",), (0,), {0: gpu(0), 4: gpu(4)}, everything, "no such GPU"),
        (("MIG-GPU-x/1/0",), (1,), CUT, everything, "none of the devices"),
        ((f"MIG-{gpu(1).uuid}/7/0",), (1, 2, 3), CUT, everything, "none of the devices"),
        (("0",), (9,), GPUS, everything, "DeviceMap has no GPU 9"),
        # A card fell off the bus: positions can't be told, and are not guessed.
        (("1",), (1, 2), GPUS, opens("/dev/nvidia2", missing=("/dev/nvidia1",)), "GPU 1, which this job has"),
    ],
)
def test_what_cannot_be_told_is_said(
    entries: tuple[str, ...], job: tuple[int, ...], devices: Mapping[int, Device], probe: Probe, said: str
) -> None:
    with pytest.raises(Trouble) as caught:
        mapped(entries, job, devices, probe)
    assert said in str(caught.value)


def test_a_missing_card_of_others_moves_no_number() -> None:
    """Without confinement a missing file is no denied one: Slurm's numbers stay what they are."""
    missing = ("/dev/nvidia1",)

    def without_one(path: str) -> str:
        return MISSING if path in missing else OPEN

    assert indices_of(("3",), (3,), GPUS, without_one) == [3]
    assert indices_of(("0",), (3,), GPUS, opens("/dev/nvidia3", missing=missing)) == [3]


@pytest.mark.parametrize(
    ("job", "devices", "probe", "expected"),
    [
        ((2, 3), GPUS, everything, [2, 3]),
        ((2, 3), GPUS, cards(2, 3), [2, 3]),
        ((2, 3), GPUS, cards(3), [3]),  # bound to one of them, which Slurm forgot to say
        ((2, 3), GPUS, cards(4), []),
    ],
)
def test_what_slurm_lost_is_no_more_than_the_task_has(
    job: tuple[int, ...], devices: Mapping[int, Device], probe: Probe, expected: list[int]
) -> None:
    assert [entry.device.slurm_index for entry in lost(job, devices, probe)] == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, ()),
        ("", ()),
        ("NoDevFiles", ()),
        ("0", ("0",)),
        ("0, 1", ("0", "1")),
        ("GPU-a,GPU-b", ("GPU-a", "GPU-b")),
    ],
)
def test_what_is_given(text: str | None, expected: tuple[str, ...]) -> None:
    assert given(text) == expected


def test_uuids_are_known() -> None:
    assert are_uuids((gpu(0).uuid, instance(1, 0, 3).uuid, "MIG-GPU-x/1/0"))
    assert not are_uuids((gpu(0).uuid, "1"))


def test_what_real_tasks_were_given_leads_to_the_cards_they_could_open() -> None:
    """What a recorded task prolog could open under ConstrainDevices is its task's: the mapping must name just that."""
    numbers = 0
    jobs = {
        (run.scenario, run.node, run.environment["SLURM_JOB_ID"]): indices(run.environment.get("SLURM_JOB_GPUS", ""))
        for run in recorded("prolog")
    }
    for run in recorded("taskprolog"):
        entries = given(run.environment.get("CUDA_VISIBLE_DEVICES"))
        job = jobs.get((run.scenario, run.node, run.environment["SLURM_JOB_ID"]))
        if not entries or not job:
            continue
        if are_uuids(entries):
            found = mapped(entries, job, run.devices, run.probe)
            assert [entry.device.uuid for entry in found] == list(entries), run.scenario
        else:
            numbered = indices_of(entries, job, run.devices, run.probe)
            if run.confined:
                mine = [index for index, device in run.devices.items() if {*device.files} <= {*run.opened}]
                assert numbered == sorted(mine), run.scenario
            else:
                assert numbered == [int(entry) for entry in entries], run.scenario
            numbers += 1
    assert numbers > 60


def device_group() -> Path:
    """A device cgroup (version 1) that denies one device, 1:7, for the child that joins it."""
    base = Path("/sys/fs/cgroup/devices")
    if os.geteuid() != 0 or not (base / "devices.deny").exists():
        lacking("needs root and the cgroup v1 hierarchy of devices")
    folder = base / f"hybridgpu-visible-{uuid.uuid4().hex}"
    folder.mkdir()
    return folder


def test_a_device_cgroup_answers_without_opening(tmp_path: Path) -> None:
    """By real files: open, missing, no device, and denied by a device cgroup as Slurm's ConstrainDevices denies."""
    (tmp_path / "file").write_text("no device")
    assert [access(path) for path in ("/dev/null", str(tmp_path / "none"), str(tmp_path / "file"))] == [
        OPEN,
        MISSING,
        MISSING,
    ]
    folder = device_group()
    try:
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            (folder / "cgroup.procs").write_text("0")
            (folder / "devices.deny").write_text("c 1:7 rwm")
            os.write(writing, f"{access('/dev/full')} {access('/dev/zero')}".encode())
            os._exit(0)
        os.waitpid(child, 0)
        assert stat.S_ISCHR(Path("/dev/full").stat().st_mode)
        assert os.read(reading, 100) == f"{DENIED} {OPEN}".encode()
        os.close(reading)
        os.close(writing)
    finally:
        folder.rmdir()
