"""One MPS daemon: started for its first holder, stopped after its last, under the lock of its folder.

The order of writing is what makes a hook that dies anywhere harmless: a holder and an intent before the start, the pid
before the program runs, the holder gone before the stop.
"""

from __future__ import annotations

import os
import time

from hybridgpu.mps import cgroup, control
from hybridgpu.mps.folder import remove_tree, root_folder, user_folder
from hybridgpu.mps.lock import Locked
from hybridgpu.mps.mount import limit
from hybridgpu.mps.process import boot_id, identify
from hybridgpu.mps.state import (
    HOLDERS,
    LOG,
    PIPE,
    STATE,
    Holder,
    State,
    holders,
    read_holder,
    read_state,
    remove_holder,
    write_holder,
    write_state,
)
from hybridgpu.mps.trouble import Busy, Trouble, reason

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hybridgpu.mps.devicemap import Device
    from hybridgpu.mps.settings import Settings

_TREE_SECONDS = 10.0


class Wanted:
    """A daemon over `devices` for user `uid`; `exclusive`: its cards are to be in EXCLUSIVE_PROCESS meanwhile."""

    __slots__ = ("devices", "exclusive", "gid", "name", "uid")

    def __init__(self, name: str, uid: int, gid: int, devices: list[Device], exclusive: bool) -> None:
        self.name, self.uid, self.gid, self.devices, self.exclusive = name, uid, gid, devices, exclusive


class View:
    """A daemon as a task sees it: its pipe directory, devices, /dev/shm, and whether it still runs."""

    __slots__ = ("alive", "devices", "pipe", "shm", "uid")

    def __init__(self, pipe: str, uid: int, devices: list[Device], shm: int | None, alive: bool) -> None:
        self.pipe, self.uid, self.devices, self.shm, self.alive = pipe, uid, devices, shm, alive


def name_of(owner: str, devices: list[Device]) -> str:
    """The name of the daemon over these devices: `u1001-0` of a user, `j12-0+1` of a job."""
    return f"{owner}-{'+'.join(str(device.slurm_index) for device in devices)}"


def is_over(name: str, slurm_index: int) -> bool:
    """Whether the daemon of this name is over the device of this number."""
    return str(slurm_index) in name.rpartition("-")[2].split("+")


def folder_of(settings: Settings, name: str) -> str:
    """The folder of a daemon."""
    return f"{settings.daemons}/{name}"


def names(settings: Settings) -> list[str]:
    """The daemons that have a folder, by name."""
    try:
        with os.scandir(settings.daemons) as entries:
            return sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
    except (FileNotFoundError, NotADirectoryError):
        return []


def held_by(settings: Settings, job: int) -> list[str]:
    """The daemons that a job holds."""
    mine = (name for name in names(settings) if os.path.lexists(f"{folder_of(settings, name)}/{HOLDERS}/{job}"))
    return list(mine)


def view(settings: Settings, name: str) -> View | None:
    """A daemon, for an ordinary user; None where it is gone."""
    state = read_state(folder_of(settings, name))
    if state is None:
        return None
    pipe = f"{folder_of(settings, name)}/{PIPE}"
    return View(pipe, state.uid, state.devices, state.shm, state.running is not None)


def hold(settings: Settings, wanted: Wanted, job: int, restart: int, conf: str = "") -> str:
    """Let a job hold the daemon, started where it does not run: `started`, `joined` or `restarted`.

    The hold counts for this hook alone until `ready`. Raises Trouble where there is no daemon in the end, ByUser where
    the job's user may be why, and OSError; then the job holds nothing, and a daemon without holders is gone.
    """
    root_folder(settings.run)
    root_folder(settings.daemons)
    folder = folder_of(settings, wanted.name)
    with Locked(folder, settings.lock_seconds):
        try:
            return _held(settings, wanted, folder, Holder(job, restart, identify(os.getpid()), False, conf))
        except (Trouble, OSError) as error:
            try:
                remove_holder(folder, job)
                if not holders(folder):
                    clean(settings, wanted.name)
            except (Trouble, OSError) as worse:
                raise Trouble(f"{reason(error)}; and then: {reason(worse)}") from error
            raise


def ready(settings: Settings, name: str, job: int) -> None:
    """The job runs: its hold no longer ends with the hook. Raises Trouble where the hold is gone, and OSError."""
    folder = folder_of(settings, name)
    with Locked(folder, settings.lock_seconds, create=False) as lock:
        holder = None if lock.gone else read_holder(folder, job)
        if holder is None:
            raise Trouble(f"daemon {name} was removed while job {job} was being started")
        holder.ready = True
        write_holder(folder, holder)


def release(settings: Settings, name: str, job: int, restart: int) -> str:
    """Take a job's hold away, and the daemon where nobody else has one: `stopped`, `left`, or `nothing` to do.

    A hold of a later restart of the job stays. Where another hook is at the daemon for too long, the hold goes all the
    same, and the daemon is that hook's or the next sweep's. Raises Trouble where something could not be cleaned, and
    OSError.
    """
    folder = folder_of(settings, name)
    try:
        with Locked(folder, settings.lock_seconds, create=False) as lock:
            if lock.gone:
                return "nothing"
            _let_go(folder, job, restart)
            if holders(folder):
                return "left"
            clean(settings, name)
            return "stopped"
    except Busy:
        _let_go(folder, job, restart)
        return "left"


def _let_go(folder: str, job: int, restart: int) -> None:
    holder = read_holder(folder, job)
    if holder is not None and holder.restart <= restart:
        remove_holder(folder, job)


def clean(settings: Settings, name: str) -> None:
    """Stop a daemon and remove all of it, also what a dead hook has left of a removal. Its lock must be held.

    Raises Trouble, and OSError.
    """
    folder = folder_of(settings, name)
    try:
        state = read_state(folder)
    except Trouble:
        state = None
    _remove_daemon(settings, name, folder, state)
    remove_tree(f"{folder}/{HOLDERS}", time.monotonic() + _TREE_SECONDS)
    remove_tree(folder, time.monotonic() + _TREE_SECONDS)


def _held(settings: Settings, wanted: Wanted, folder: str, holder: Holder) -> str:
    state = read_state(folder)
    others = [other for other in holders(folder) if other.job != holder.job]
    write_holder(folder, holder)
    if state is not None and not others and not _fits(state, wanted):
        _remove_daemon(settings, wanted.name, folder, state)
        state = None
    if state is not None and not _fits(state, wanted):
        jobs = ", ".join(str(other.job) for other in others)
        raise Trouble(f"daemon {wanted.name} is of other cards or another boot, and job {jobs} holds it")
    if state is not None and control.answers_in_time(settings, folder, state):
        return "joined"
    if state is not None:
        control.stop(settings, wanted.name, folder, state, ask=False)
    _start(settings, wanted, folder, state)
    return "started" if state is None else "restarted"


def _fits(state: State, wanted: Wanted) -> bool:
    """Whether it is the user's over the same cards; its group is that of the first job, and a user may have several."""
    mine = [device.uuid for device in wanted.devices]
    return state.boot == boot_id() and state.uuids == mine and state.uid == wanted.uid


def _start(settings: Settings, wanted: Wanted, folder: str, before: State | None) -> None:
    for leaf in (PIPE, LOG):
        remove_tree(f"{folder}/{leaf}", time.monotonic() + _TREE_SECONDS)
        user_folder(f"{folder}/{leaf}", wanted.uid, wanted.gid)
        limit(f"{folder}/{leaf}", wanted.uid, wanted.gid)
    state = State(
        boot_id(),
        wanted.uid,
        wanted.gid,
        wanted.devices,
        compute_mode=before.compute_mode if before else None,
        shm=shm(),
    )
    write_state(folder, state)
    if wanted.exclusive:
        _make_exclusive(settings, folder, state)
    control.start(settings, wanted.name, folder, state)


def _make_exclusive(settings: Settings, folder: str, state: State) -> None:
    """Set EXCLUSIVE_PROCESS on the cards, with what each was before written down first."""
    from hybridgpu.mps.computemode import EXCLUSIVE_PROCESS, ComputeModes

    with ComputeModes(settings.nvml) as modes:
        for uuid in state.uuids:
            if uuid not in state.compute_mode:
                state.compute_mode[uuid] = modes.get(uuid)
                write_state(folder, state)
            modes.set(uuid, EXCLUSIVE_PROCESS)


def _restore_modes(settings: Settings, state: State) -> None:
    from hybridgpu.mps.computemode import ComputeModes

    with ComputeModes(settings.nvml) as modes:
        for uuid, mode in state.compute_mode.items():
            modes.set(uuid, mode)


def _remove_daemon(settings: Settings, name: str, folder: str, state: State | None) -> None:
    """All of a daemon but its folder and holders; after a reboot nothing is signalled, and no compute mode set."""
    same_boot = state is not None and state.boot == boot_id()
    control.stop(settings, name, folder, state if same_boot else None)
    if state is not None and same_boot and state.compute_mode:
        _restore_modes(settings, state)
    for leaf in (PIPE, LOG):
        remove_tree(f"{folder}/{leaf}", time.monotonic() + _TREE_SECONDS)
    cgroup.remove(name)
    try:
        os.unlink(f"{folder}/{STATE}")
    except FileNotFoundError:
        pass


def shm() -> int | None:
    """Which /dev/shm this is: MPS clients and daemon meet in it."""
    try:
        return os.stat("/dev/shm").st_dev  # noqa: S108  looked at only
    except OSError:
        return None
