"""What a task gets, by what its job's prolog recorded and what Slurm gave it. The texts are Slurm's language."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from hybridgpu.hooks import taskprolog
from hybridgpu.hooks.task import Task
from hybridgpu.hooks.taskprolog import answered, limits
from hybridgpu.mps import job
from hybridgpu.mps.daemon import View
from hybridgpu.mps.devicemap import Device
from hybridgpu.mps.job import Job
from hybridgpu.mps.settings import Settings
from tests.conftest import lacking
from tests.hooks.cards import CUT, UID, Seen, everything, gpu, gpus, opens, record, view

GPUS = gpus()
SHARE = record(12, 3, percentage=25, daemons=("u1001-3",), mode="mps")
TWO_GPUS = record(12, 2, 3, daemons=("j12-2+3",), mode="exclusive")
CUT_JOB = record(12, 1, 2, daemons=("j12-1", "j12-2"), mode="mig")
MIXED_JOB = record(12, 0, 3, daemons=("j12-0", "j12-3"), mode="mig")
DAEMONS = {
    "u1001-0": view("u1001-0", gpu(0)),
    "u1001-3": view("u1001-3", gpu(3)),
    "j12-2+3": view("j12-2+3", gpu(2), gpu(3)),
    "j12-0": view("j12-0", CUT[0]),
    "j12-1": view("j12-1", CUT[1]),
    "j12-2": view("j12-2", CUT[2]),
    "j12-3": view("j12-3", CUT[3]),
}


def pipe(name: str) -> str:
    return f"export CUDA_MPS_PIPE_DIRECTORY=/run/hybridgpu/mps/{name}/pipe"


def visible(*devices: Device) -> str:
    return f"export CUDA_VISIBLE_DEVICES={','.join(device.uuid for device in devices)}"


def memory(text: str) -> str:
    return f"export CUDA_MPS_PINNED_DEVICE_MEM_LIMIT={text}"


def task(*entries: str, percentage: int | None = None, shards: bool = False, beside: int = 1) -> Task:
    return Task(12, entries, percentage, shards, beside)


@pytest.mark.parametrize(
    ("given", "records", "devices", "probe", "expected"),
    [
        # A share: its daemon, its card by UUID, its memory: 25 % of 40 GiB.
        (task("3", percentage=25), [SHARE], GPUS, everything, [pipe("u1001-3"), visible(gpu(3)), memory("0=10240M")]),
        # ConstrainDevices: position 0 of what may be opened.
        (
            task("0", percentage=25),
            [SHARE],
            GPUS,
            opens("/dev/nvidia3"),
            [pipe("u1001-3"), visible(gpu(3)), memory("0=10240M")],
        ),
        # GresTypes gpu,mps,shard: Slurm lost the devices.
        (task(percentage=25), [SHARE], GPUS, everything, [pipe("u1001-3"), visible(gpu(3)), memory("0=10240M")]),
        # Eight ranks together have what one has.
        (
            task("3", percentage=25, beside=8),
            [SHARE],
            GPUS,
            everything,
            [pipe("u1001-3"), visible(gpu(3)), memory("0=1280M")],
        ),
        # A step with less than the job.
        (task("3", percentage=10), [SHARE], GPUS, everything, [pipe("u1001-3"), visible(gpu(3)), memory("0=4096M")]),
        # A UUID, as 26.05 gives it with env_uuid.
        (
            task(gpu(3).uuid, percentage=25),
            [SHARE],
            GPUS,
            everything,
            [pipe("u1001-3"), visible(gpu(3)), memory("0=10240M")],
        ),
        # A step of a share's job without a share gets nothing.
        (task(), [SHARE], GPUS, everything, []),
        # Whole GPUs: the daemon over both, also for a rank that was bound to one.
        (task("2", "3"), [TWO_GPUS], GPUS, everything, [pipe("j12-2+3"), visible(gpu(2), gpu(3))]),
        (task("3"), [TWO_GPUS], GPUS, everything, [pipe("j12-2+3"), visible(gpu(3))]),
        (task("0"), [TWO_GPUS], GPUS, opens("/dev/nvidia3"), [pipe("j12-2+3"), visible(gpu(3))]),
        (task(gpu(3).uuid), [TWO_GPUS], GPUS, everything, [pipe("j12-2+3")]),
        # A user parts his own whole GPUs: the percentage is his.
        (task("2", "3", percentage=50), [TWO_GPUS], GPUS, everything, [pipe("j12-2+3"), visible(gpu(2), gpu(3))]),
        # --exclusive without gres: the prolog had all, the task none.
        (task(), [TWO_GPUS], GPUS, everything, []),
        # MIG: the daemon of the first visible instance; numbers become UUIDs.
        (task("0"), [CUT_JOB], CUT, opens(*CUT[2].files), [pipe("j12-2"), visible(CUT[2])]),
        (task("1", "2"), [CUT_JOB], CUT, everything, [pipe("j12-1"), visible(CUT[1], CUT[2])]),
        (task(CUT[2].uuid), [CUT_JOB], CUT, everything, [pipe("j12-2")]),
        (task("3"), [MIXED_JOB], CUT, everything, [pipe("j12-3"), visible(CUT[3])]),
        (task("0", "3"), [MIXED_JOB], CUT, everything, [pipe("j12-0"), visible(CUT[0], CUT[3])]),
        # MIG without daemons: numbers become UUIDs; shards get back what Slurm lost; others nothing.
        (task("1"), [record(12, 1, 2, mode="mig")], CUT, everything, [visible(CUT[1])]),
        (task(CUT[1].uuid), [record(12, 1, 2, mode="mig")], CUT, everything, []),
        (task(shards=True), [record(12, 5, mode="time-slicing")], GPUS, everything, [visible(gpu(5))]),
        (task(shards=True), [record(12, 5, mode="time-slicing")], GPUS, opens("/dev/nvidia5"), [visible(gpu(5))]),
        (task("5", shards=True), [record(12, 5, mode="time-slicing")], GPUS, everything, []),
        (task("5"), [record(12, 5, mode="exclusive")], GPUS, everything, []),
        (task("5", shards=True), [record(12, 5, daemons=("j12-5",))], GPUS, everything, []),
        # Het: what Slurm gave tells the components apart.
        (
            task("0", percentage=50),
            [SHARE, record(13, 0, leader=12, percentage=50, daemons=("u1001-0",))],
            GPUS,
            everything,
            [pipe("u1001-0"), visible(gpu(0)), memory("0=20480M")],
        ),
        (
            task("0"),
            [record(12, 1, leader=12), record(13, 2, 3, leader=12, daemons=("j12-2+3",))],
            GPUS,
            opens("/dev/nvidia2"),
            [pipe("j12-2+3"), visible(gpu(2))],
        ),
        # Both components would give the same: the daemon of the user on that card.
        (
            task("3", percentage=20),
            [SHARE, record(13, 3, leader=12, percentage=50, daemons=("u1001-3",))],
            GPUS,
            everything,
            [pipe("u1001-3"), visible(gpu(3)), memory("0=8192M")],
        ),
        (task("3", percentage=25), [], GPUS, everything, []),
    ],
)
def test_what_a_task_gets(
    given: Task, records: list[Job], devices: Mapping[int, Device], probe: Callable[[str], str], expected: list[str]
) -> None:
    answer = answered(given, records, Seen(devices, DAEMONS, probe))
    assert (answer.refused, answer.lines) == (None, expected)


def test_a_share_whose_size_slurm_lost_has_no_limit() -> None:
    lost = record(12, 3, percentage=0, daemons=("u1001-3",), mode="mps")
    answer = answered(task("3", percentage=0), [lost], Seen(GPUS, DAEMONS))
    assert answer.refused is None
    assert answer.lines[:3] == [
        pipe("u1001-3"),
        visible(gpu(3)),
        "unset CUDA_MPS_ACTIVE_THREAD_PERCENTAGE",
    ]
    assert answer.lines[3].startswith("print hybridgpu: Slurm lost the size")


@pytest.mark.parametrize(
    ("given", "records", "node", "said"),
    [
        (task("3", percentage=25), [SHARE], Seen(GPUS), "does not run any more"),
        (
            task("3", percentage=25),
            [record(12, 3, percentage=25, mode="mps", why="/bin/none cannot be run")],
            Seen(GPUS, DAEMONS),
            "job 12 has no MPS daemon here: /bin/none cannot be run",
        ),
        (task("3", percentage=25), [SHARE], Seen(GPUS, {"u1001-3": view("x", gpu(3), alive=False)}), "does not run"),
        (task("3", percentage=25), [SHARE], Seen(GPUS, {"u1001-3": view("x", gpu(3), uid=1002)}), "does not run"),
        (task("3", percentage=25), [SHARE], Seen(GPUS, {"u1001-3": view("x", gpu(2))}), "does not serve"),
        (task("3", percentage=25), [SHARE], Seen(GPUS, DAEMONS, shm=8), "/dev/shm of its own"),
        (task("3", percentage=25), [SHARE], Seen(GPUS, broken="the map is gone"), "the map is gone"),
        (task(gpu(2).uuid, percentage=25), [SHARE], Seen(GPUS, DAEMONS, broken="the map is gone"), "the map is gone"),
        (task("2", "3", percentage=25), [SHARE], Seen(GPUS, DAEMONS, broken="the map is gone"), "the map is gone"),
        (
            task("3", percentage=25),
            [SHARE, record(13, 0, leader=12, percentage=25, daemons=("u1001-0",))],
            Seen(GPUS, DAEMONS, broken="the map is gone"),
            "the map is gone",
        ),
        (task("3", percentage=50), [SHARE], Seen(GPUS, DAEMONS), "has 25 % of a GPU, and this task 50 %"),
        (task("2", percentage=25), [SHARE], Seen(GPUS, DAEMONS), f"this task has {gpu(2).uuid}, and job 12 has not"),
        (task("9", percentage=25), [SHARE], Seen(GPUS, DAEMONS), "CUDA_VISIBLE_DEVICES has 9"),
        (task(percentage=25), [SHARE], Seen(GPUS, DAEMONS, opens()), "can open none"),
        # Two shares of one size on two cards, and Slurm lost which: any answer could be the other's.
        (
            task(percentage=25),
            [SHARE, record(13, 0, leader=12, percentage=25, daemons=("u1001-0",))],
            Seen(GPUS, DAEMONS),
            "job 12 and job 13",
        ),
    ],
)
def test_a_share_without_its_daemon_is_refused(given: Task, records: list[Job], node: Seen, said: str) -> None:
    answer = answered(given, records, node)
    assert answer.lines == []
    assert said in (answer.refused or "")


@pytest.mark.parametrize("entries", [("3",), ("0",), (gpu(3).uuid,), ()])
def test_a_share_needs_no_device_map(entries: tuple[str, ...]) -> None:
    """Its daemon's state names its one card, and how much memory that has."""
    answer = answered(task(*entries, percentage=25), [SHARE], Seen(GPUS, DAEMONS, broken="for root alone"))
    assert (answer.refused, answer.lines) == (None, [pipe("u1001-3"), visible(gpu(3)), memory("0=10240M")])


@pytest.mark.parametrize(
    ("given", "records", "node", "lines"),
    [
        (task("2"), [TWO_GPUS], Seen(GPUS), [visible(gpu(2)), "print hybridgpu: this task runs without MPS: "]),
        (task("2"), [TWO_GPUS], Seen(GPUS, DAEMONS, shm=8), [visible(gpu(2)), "print hybridgpu: this task runs"]),
        (task("9"), [TWO_GPUS], Seen(GPUS, DAEMONS), ["print hybridgpu: CUDA_VISIBLE_DEVICES has 9"]),
        # A job with two types of GPU, of whose first its prolog was not told.
        (task("0"), [TWO_GPUS], Seen(GPUS, DAEMONS), [visible(gpu(0)), "print hybridgpu: this task runs without MPS"]),
        (task("0"), [TWO_GPUS], Seen(GPUS, DAEMONS, broken="the map is gone"), ["print hybridgpu: this task runs"]),
        (task("0"), [CUT_JOB], Seen(CUT, {}, opens(*CUT[1].files)), [visible(CUT[1]), "print hybridgpu: this task"]),
        (task("5"), [record(12, 1, 2, mode="mig")], Seen(CUT), ["print hybridgpu: CUDA_VISIBLE_DEVICES has 5"]),
        (task(shards=True), [record(12, 5)], Seen(GPUS, broken="no map"), ["print hybridgpu: this task runs"]),
        (
            task(shards=True),
            [record(12, 5, leader=12), record(13, 6, leader=12)],
            Seen(GPUS),
            ["print hybridgpu: components of het job 12 share this node (job 12 and job 13)"],
        ),
    ],
)
def test_whole_devices_go_on_and_say_why(given: Task, records: list[Job], node: Seen, lines: list[str]) -> None:
    answer = answered(given, records, node)
    assert answer.refused is None
    assert len(answer.lines) == len(lines)
    assert all(line.startswith(start) for line, start in zip(answer.lines, lines, strict=True))


@pytest.mark.parametrize(
    ("devices", "percentage", "tasks", "expected"),
    [
        ([gpu(0)], 25, 1, "0=10240M"),
        ([gpu(0), gpu(1)], 50, 2, "0=10240M,1=10240M"),
        ([gpu(0)], 1, 65536, "0=1M"),
        ([CUT[1]], 33, 3, "0=563M"),
    ],
)
def test_limits(devices: list[Device], percentage: int, tasks: int, expected: str) -> None:
    assert limits(devices, percentage, tasks) == expected


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    if os.geteuid() != 0:
        lacking("needs root: a record is believed only when it is root's")
    found = Settings(run=str(tmp_path / "run"))
    (tmp_path / "run" / "jobs").mkdir(parents=True, mode=0o755)
    return found


def run(settings: Settings, uid: int = UID, **environment: str) -> tuple[int, str]:
    said: list[str] = []
    status = taskprolog.run(settings, {"SLURM_JOB_ID": "12", **environment}, uid, said.append)
    return status, "".join(said)


def test_a_refused_task_reads_the_reason_and_nothing_else(settings: Settings) -> None:
    job.write(settings, SHARE)
    status, said = run(settings, CUDA_MPS_ACTIVE_THREAD_PERCENTAGE="25", CUDA_VISIBLE_DEVICES="3")
    assert status == taskprolog.REFUSED
    assert said.startswith("print hybridgpu: ")
    assert said.count("\n") == 1


def test_another_users_record_is_nobodys(settings: Settings) -> None:
    job.write(settings, SHARE)
    assert run(settings, uid=1002, CUDA_MPS_ACTIVE_THREAD_PERCENTAGE="25", CUDA_VISIBLE_DEVICES="3") == (0, "")


@pytest.mark.parametrize("planted", ["owner", "link", "writable", "fifo"])
def test_a_record_that_is_not_roots_is_none(settings: Settings, planted: str, tmp_path: Path) -> None:
    text = SHARE.text()
    path = Path(settings.jobs, "12")
    match planted:
        case "owner":
            path.write_text(text)
            os.chown(path, UID, UID)
        case "writable":
            path.write_text(text)
            path.chmod(0o666)
        case "link":
            (tmp_path / "elsewhere").write_text(text)
            path.symlink_to(tmp_path / "elsewhere")
        case "fifo":
            os.mkfifo(path)
    assert run(settings, CUDA_MPS_ACTIVE_THREAD_PERCENTAGE="25", CUDA_VISIBLE_DEVICES="3") == (0, "")


def test_a_device_map_that_a_user_planted_is_not_believed(settings: Settings) -> None:
    job.write(settings, record(12, 1, 2, mode="mig"))
    Path(settings.device_map).write_text("{}")
    os.chown(settings.device_map, UID, UID)
    status, said = run(settings, CUDA_VISIBLE_DEVICES="0")
    assert status == 0
    assert "is user 1001's" in said


@pytest.mark.parametrize(
    "value",
    ["0\nexport LD_PRELOAD=/x", "0;id", "$(id)", "0\r\nunset PATH", "\x1b[2J", "GPU-x\nexport A=b", "0" * 99999],
)
def test_no_value_of_a_task_makes_a_line(settings: Settings, value: str) -> None:
    """What a user puts into his task's environment comes back in one line of print at most, harmless and short."""
    job.write(settings, record(12, 1, 2, mode="mig"))
    _, said = run(settings, CUDA_VISIBLE_DEVICES=value)
    lines = said.splitlines()
    assert all(line.startswith("print hybridgpu: ") and line.isprintable() for line in lines)
    assert len(said) < 500


def test_nothing_is_asked_for_a_task_without_devices() -> None:
    class Untouched(Seen):
        def devices(self) -> Mapping[int, Device]:
            pytest.fail("no DeviceMap is needed")

        def daemon(self, name: str) -> View | None:
            pytest.fail(f"no daemon is needed: {name}")

    assert answered(task(), [SHARE, TWO_GPUS, CUT_JOB], Untouched({})).lines == []
