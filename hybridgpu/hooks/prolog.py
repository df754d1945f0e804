"""The prolog of a job that gets MPS daemons: they run, the job holds them and is recorded, or nothing is left.

A share without a daemon would run as if it had the whole card, so trouble fails its prolog with the reason; unless its
user may be why: then the record refuses its tasks, for nobody may drain a node at will. A job with whole devices can do
without: it runs, and the log says why. Never waits without end, calls no Slurm (facts of its
contract: S:src/plugins/prep/script/prep_script_slurmd.c).
"""

from __future__ import annotations

from hybridgpu.hooks import environment
from hybridgpu.hooks.told import Told
from hybridgpu.mps import daemon, devicemap, job
from hybridgpu.mps.devicemap import MIG, MPS
from hybridgpu.mps.process import boot_id
from hybridgpu.mps.trouble import ByUser, Trouble, reason

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from hybridgpu.hooks.environment import Request
    from hybridgpu.mps.devicemap import DeviceMap
    from hybridgpu.mps.settings import Settings

_EXCLUSIVE_PROCESS = "exclusive_process"


def run(settings: Settings, environ: Mapping[str, str]) -> int:
    """Serve the job that `environ` is of. Gives the exit code: 1 where the node can start no share's daemon."""
    told = Told(settings, "prolog", environ)
    share = environment.PERCENTAGE in environ
    try:
        request = environment.read(environ)
    except Trouble as problem:
        return told.failed(reason(problem)) if share else told.without(reason(problem))
    try:
        told.outcome(_serve(settings, request))
        return told.done()
    except (Trouble, OSError) as problem:
        if share and not isinstance(problem, ByUser):
            return told.failed(reason(problem))
        why = [reason(problem)]
    try:
        job.write(settings, _record(request, _mode(settings), [], why[0]))
    except (Trouble, OSError) as problem:
        why.append(f"and then {reason(problem)}")
        if share:
            return told.failed("; ".join([*why, "so nothing would keep its tasks from the whole card"]))
    return told.refused("; ".join(why)) if share else told.without("; ".join(why))


def wanted(request: Request, devices: DeviceMap) -> list[daemon.Wanted]:
    """The daemons of a job: one over the devices of a share, or over its whole GPUs, and one for each MIG instance.

    Shares of one user on one GPU meet in one daemon. Empty where whole devices get none. Raises Trouble where the
    job and the DeviceMap do not fit together.
    """
    mine = devices.of(tuple(sorted(request.gpus)))
    _same_cards(request, devices)
    uid, gid = request.uid, request.gid
    if uid is None or gid is None:
        raise Trouble("SLURM_JOB_UID and SLURM_JOB_GID are not both set: the daemon needs a user")
    if request.percentage is not None:
        if not devices.daemons or devices.mode != MPS:
            raise Trouble(f"the job asks for --gres=mps, and the mode of this node is {devices.mode}")
        if not mine:
            raise Trouble("the job has a share, and SLURM_JOB_GPUS names no GPU")
        return [daemon.Wanted(daemon.name_of(f"u{uid}", mine), uid, gid, mine, exclusive=False)]
    if not devices.whole_gpu_jobs or not mine:
        return []
    whole = [device for device in mine if device.profile is None]
    groups = [whole] if whole else []
    groups += [[device] for device in mine if device.profile is not None]
    exclusive = devices.compute_mode == _EXCLUSIVE_PROCESS and devices.mode != MIG
    owner = f"j{request.job}"
    return [daemon.Wanted(daemon.name_of(owner, group), uid, gid, group, exclusive) for group in groups]


def _serve(settings: Settings, request: Request) -> list[tuple[str, str]]:
    """Start or join the daemons, write the record, let the job hold them. What was done: outcome and daemon."""
    devices = devicemap.read(settings.device_map, boot_id())
    daemons = wanted(request, devices)
    restart = request.restart or 0
    record = _record(request, devices.mode, daemons)
    outcomes: list[tuple[str, str]] = []
    try:
        outcomes += _release_earlier(settings, record)
        for each in daemons:
            outcomes.append((daemon.hold(settings, each, request.job, restart, request.conf), each.name))
        job.write(settings, record)
        for each in daemons:
            daemon.ready(settings, each.name, request.job)
    except (Trouble, OSError) as problem:
        worse = _undo(settings, record)
        kind = ByUser if isinstance(problem, ByUser) and not worse else Trouble
        raise kind("; ".join([reason(problem), *worse])) from problem
    return outcomes


def _release_earlier(settings: Settings, record: job.Job) -> list[tuple[str, str]]:
    """Let go what an earlier run of the same job held here, or a prolog of it that died; Slurm keeps a job's id.

    What was done: outcome and daemon.
    """
    outcomes = []
    for name in daemon.held_by(settings, record.job):
        if name not in record.daemons:
            outcomes.append((daemon.release(settings, name, record.job, record.restart), name))
        elif record.restart > 0:
            outcomes.append((daemon.release(settings, name, record.job, record.restart - 1), name))
    earlier = job.read(settings, record.name)
    if earlier is not None and earlier.restart < record.restart:
        job.remove(settings, record)
    return outcomes


def _undo(settings: Settings, record: job.Job) -> list[str]:
    """Leave nothing of a prolog that failed; gives what could not be taken back."""
    problems = []
    for name in {*record.daemons, *daemon.held_by(settings, record.job)}:
        try:
            daemon.release(settings, name, record.job, record.restart)
        except (Trouble, OSError) as problem:
            problems.append(f"and then {reason(problem)}")
    try:
        job.remove(settings, record)
    except (Trouble, OSError) as problem:
        problems.append(f"and then {reason(problem)}")
    return problems


def _mode(settings: Settings) -> str:
    """This node's mode for the record of a job without daemons; empty where nothing can be told."""
    try:
        return devicemap.read(settings.device_map, boot_id()).mode
    except Trouble:
        return ""


def _record(request: Request, mode: str, daemons: list[daemon.Wanted], why: str = "") -> job.Job:
    return job.Job(
        job=request.job,
        restart=request.restart or 0,
        uid=request.uid or 0,
        gid=request.gid or 0,
        gpus=request.gpus,
        leader=request.leader,
        mode=mode,
        conf=request.conf,
        percentage=request.percentage,
        daemons=tuple(each.name for each in daemons),
        why=why,
    )


def _same_cards(request: Request, devices: DeviceMap) -> None:
    """Raise Trouble where slurmd knows another card behind a number than the DeviceMap; it tells UUIDs of some."""
    if len(request.visible) != len(request.gpus):
        return
    for index, entry in zip(request.gpus, request.visible, strict=True):
        uuid = devices.devices[index].uuid
        if entry.startswith(("GPU-", "MIG-")) and not entry.startswith("MIG-GPU-") and entry != uuid:
            raise Trouble(
                f"Slurm's GPU {index} is {entry[:60]}, and in the DeviceMap {uuid}; "
                "run `hybridgpu node bind` on this node, or restart its slurmd"
            )
