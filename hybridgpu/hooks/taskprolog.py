"""The task prolog: hands a task its daemon, and names its devices by UUID. Runs as the task's user, for every task.

What it prints is Slurm's language (S:slurmstepd/task.c _proc_stdout): `export`, `unset`, `print`. It only reads. A
task of a share that has no daemon is refused, with the reason; any other goes on without.
"""

from __future__ import annotations

from hybridgpu.hooks import task as tasks
from hybridgpu.hooks.environment import PERCENTAGE, VISIBLE
from hybridgpu.hooks.visible import Entry, access, are_uuids, lost, mapped
from hybridgpu.mps import daemon, devicemap, job
from hybridgpu.mps.devicemap import MIG
from hybridgpu.mps.process import boot_id
from hybridgpu.mps.trouble import Trouble

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from hybridgpu.hooks.task import Task
    from hybridgpu.mps.devicemap import Device
    from hybridgpu.mps.settings import Settings

PIPE = "CUDA_MPS_PIPE_DIRECTORY"
MEMORY = "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"
REFUSED = 3
"""The exit code that refuses a task: 1 is any Python's that does not work (slurm/taskprolog.d/50-hybridgpu)."""

_MIB = 1024 * 1024


class Answer:
    """What a task gets: the lines for Slurm. `refused`: why it must not run, None where it may."""

    __slots__ = ("lines", "refused")

    def __init__(self, lines: list[str], refused: str | None = None) -> None:
        self.lines, self.refused = lines, refused


class _Other(Trouble):
    """The record cannot be the task's: they contradict each other."""


class Node:
    """What a task sees of its node; each part is looked at only where a record makes it matter."""

    def __init__(self, settings: Settings, shm: int | None, probe: Callable[[str], str] = access) -> None:
        self.settings, self.shm, self.probe = settings, shm, probe

    def devices(self) -> Mapping[int, Device]:
        """This node's devices by Slurm's number. Raises Trouble."""
        return devicemap.read(self.settings.device_map, boot_id()).devices

    def daemon(self, name: str) -> daemon.View | None:
        """A daemon, None where it is gone. Raises Trouble."""
        return daemon.view(self.settings, name)


def run(settings: Settings, environ: Mapping[str, str], uid: int, write: Callable[[str], object]) -> int:
    """Answer for the task of `environ`, whose user is `uid`. Gives the exit code: REFUSED, or 0."""
    task = tasks.read(environ)
    if task is None:
        return 0
    records = [record for record in job.candidates(settings, task.job) if record.uid == uid]
    answer = answered(task, records, Node(settings, daemon.shm()))
    lines = answer.lines if answer.refused is None else [f"print hybridgpu: {answer.refused}"]
    if lines:
        write("".join("".join(c if c.isprintable() else "?" for c in line) + "\n" for line in lines))
    return 0 if answer.refused is None else REFUSED


def answered(task: Task, records: list[job.Job], node: Node) -> Answer:
    """What a task gets whose job has these records here: more than one where components of a het job share a node.

    Slurm does not tell a task which component it is of. Records that contradict what Slurm gave it are out; the rest
    must agree, or the task has another's daemon or none.
    """
    if not task.visible and task.percentage is None and not task.shards:
        return Answer([])
    found: list[Answer] = []
    others: list[str] = []
    for record in records:
        try:
            answer = _answer(task, record, node, alone=len(records) == 1)
        except _Other as problem:
            others.append(str(problem))
            continue
        if all((answer.lines, answer.refused) != (known.lines, known.refused) for known in found):
            found.append(answer)
    if len(found) == 1:
        return found[0]
    if found:
        names = " and ".join(f"job {record.job}" for record in records)
        why = f"components of het job {task.job} share this node ({names}), and Slurm does not tell which one this is"
    elif records:
        why = "; ".join(others)
    else:
        return Answer([])
    share = task.percentage is not None and any(record.percentage is not None for record in records)
    if share or (found and any(record.daemons for record in records)):
        return Answer([], refused=why)
    return Answer([f"print hybridgpu: {why}"])


def _answer(task: Task, record: job.Job, node: Node, alone: bool) -> Answer:
    """The answer of one record, there being others or not. Raises _Other where it cannot be the task's."""
    if record.percentage is not None:
        try:
            return Answer(_share(task, record, node, alone))
        except _Other:
            raise
        except (Trouble, OSError) as problem:
            return Answer([], refused=str(problem))
    try:
        if record.daemons and not task.shards:
            return Answer(_whole(task, record, node, alone))
        return Answer(_without(task, record, node, alone))
    except _Other:
        raise
    except (Trouble, OSError) as problem:
        return Answer([f"print hybridgpu: this task runs without MPS: {problem}"])


def _share(task: Task, record: job.Job, node: Node, alone: bool) -> list[str]:
    """A share's daemon, the devices, and the part of their memory; its own percentage where Slurm lost it is none."""
    share = record.percentage or 0
    if task.percentage is None:
        raise _Other(f"job {record.job} has a share of a GPU, and this task has none")
    if task.percentage > share > 0:
        raise _Other(f"job {record.job} has {share} % of a GPU, and this task {task.percentage} %")
    name = record.daemons[0] if record.daemons else ""
    try:
        entries = _entries(task, record, node)
    except _Other:
        raise
    except Trouble:  # the DeviceMap's: the daemon knows its own card as well
        served = _served(task, name, node) if alone else None
        if served is None:
            raise
        entries = [served]
    lines = [*_reach(name, record, entries, node), _visible(entries)]
    share = min(share, task.percentage)
    if not share:
        told = "Slurm lost the size of this job's share (GresTypes names shard before mps): no limit is set"
        return [*lines, f"unset {PERCENTAGE}", f"print hybridgpu: {told}"]
    return [*lines, f"export {MEMORY}={limits([entry.device for entry in entries], share, task.beside)}"]


def _served(task: Task, name: str, node: Node) -> Entry | None:
    """The device of a share whose daemon has one only, as its state tells; None where that cannot be the task's.

    Slurm gives a job shares of one GPU a node (gres.conf(5), MPS), so whatever number the task has is that GPU.
    """
    view = node.daemon(name) if name else None
    if view is None or len(view.devices) != 1 or len(task.visible) > 1:
        return None
    (device,) = view.devices
    if task.visible and are_uuids(task.visible) and task.visible != (device.uuid,):
        return None
    return Entry(device.uuid, device)


def _whole(task: Task, record: job.Job, node: Node, alone: bool) -> list[str]:
    """Whole devices with daemons: that of the first visible one. A process can use one MIG instance only."""
    if not task.visible:
        raise _Other(f"job {record.job} has whole GPUs, and this task has none")
    entries = _entries(task, record, node, alone)
    visible = [] if are_uuids(task.visible) else [_visible(entries)]
    first = entries[0]
    name = next((name for name in record.daemons if daemon.is_over(name, first.device.slurm_index)), None)
    try:
        if name is None:
            raise Trouble(f"no daemon serves {first.uuid}: Slurm tells a prolog of one type of GPU only")
        return [*_reach(name, record, entries, node), *visible]
    except Trouble as problem:
        return [*visible, f"print hybridgpu: this task runs without MPS: {problem}"]


def _without(task: Task, record: job.Job, node: Node, alone: bool) -> list[str]:
    """No daemon: a MIG instance is named by its UUID, and shards get back what Slurm lost.

    Else there is nothing to do, and nothing to look at where this is the only record.
    """
    if task.percentage is not None and not task.visible:
        raise _Other(f"job {record.job} has no share of a GPU, and this task has one")
    if task.shards and not task.visible:
        return [_visible(lost(record.gpus, node.devices(), node.probe))]
    if alone and (record.mode != MIG or are_uuids(task.visible)):
        return []
    entries = _entries(task, record, node, alone)
    return [_visible(entries)] if record.mode == MIG and not are_uuids(task.visible) else []


def _entries(task: Task, record: job.Job, node: Node, alone: bool = False) -> list[Entry]:
    """The task's devices. Raises _Other where they are not the record's, Trouble where nothing can be told.

    All of a share must be the record's, and of whole devices one, for the prolog was told of one type only. Where it
    is the only record (`alone`), whatever Slurm gave the task is its job's.
    """
    devices = node.devices()
    if not task.visible:
        found = lost(record.gpus, devices, node.probe)
        if not found:
            raise _Other(f"this task can open none of the GPUs of job {record.job}")
        return found
    try:
        found = mapped(task.visible, record.gpus, devices, node.probe)
    except Trouble as problem:
        raise _Other(str(problem)) from None
    strange = [entry.uuid for entry in found if entry.device.slurm_index not in record.gpus]
    if strange and not alone and (record.percentage is not None or len(strange) == len(found)):
        raise _Other(f"this task has {strange[0]}, and job {record.job} has not")
    return found


def _reach(name: str, record: job.Job, entries: list[Entry], node: Node) -> list[str]:
    """The way to a daemon that serves these devices, from where the task is. Raises Trouble."""
    if not name:
        raise Trouble(f"job {record.job} has no MPS daemon here: {record.why or 'its prolog did not say why'}")
    view = node.daemon(name)
    if view is None or not view.alive or view.uid != record.uid:
        raise Trouble(f"the MPS daemon of job {record.job} does not run any more")
    if entries[0].device.uuid not in (device.uuid for device in view.devices):
        raise Trouble(f"the MPS daemon of job {record.job} does not serve {entries[0].uuid}")
    if view.shm is not None and view.shm != node.shm:
        raise Trouble(
            "this task has a /dev/shm of its own, through which no MPS daemon is reached: "
            "job_container.conf needs Dirs=/tmp, which Slurm knows from 23.02 on"
        )
    return [f"export {PIPE}={view.pipe}"]


def limits(devices: list[Device], percentage: int, tasks: int) -> str:
    """The memory each process may have, by device: the share's, divided among the tasks of the step on this node.

    MPS counts it a process: eight ranks of a job with 25 % would else have 200 % of the card. Whole MiB, at least 1.
    """
    each = [max(1, device.memory_bytes * percentage // (100 * tasks * _MIB)) for device in devices]
    return ",".join(f"{number}={mib}M" for number, mib in enumerate(each))


def _visible(entries: list[Entry]) -> str:
    return f"export {VISIBLE}={','.join(entry.uuid for entry in entries)}"
