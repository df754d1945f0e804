"""One MPS daemon: started for its first holder, stopped after its last, under the lock of its folder.

The order of writing is what makes a hook that dies anywhere harmless: a holder and an intent before the start, the pid
before the program runs, the holder gone before the stop. Nothing is signalled but what is proven to be ours: the
process that state.json names, by pid and start time, and what lives in the daemon's own cgroup.
"""

from __future__ import annotations

import errno
import os
import stat
import time

from hybridgpu.mps import cgroup, spawn
from hybridgpu.mps.devicemap import Device
from hybridgpu.mps.folder import remove_tree, root_folder, user_folder
from hybridgpu.mps.lock import Locked
from hybridgpu.mps.mount import limit
from hybridgpu.mps.process import (
    Identity,
    alive,
    boot_id,
    descendants,
    identify,
    pids,
    signal_it,
    uid,
    wait_gone,
)
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
from hybridgpu.mps.trouble import ByUser, Trouble

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hybridgpu.mps.settings import Settings

_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
"""For the control daemon, which starts nvidia-cuda-mps-server by name."""

_ASK = "get_default_active_thread_percentage\n"
_EXCLUSIVE_PROCESS = 3
_POLL = 0.002
_SIGTERM, _SIGKILL = 15, 9
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
    lives = state.boot == boot_id() and state.identity is not None and alive(state.identity)
    return View(f"{folder_of(settings, name)}/{PIPE}", state.uid, state.devices, state.shm, lives)


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
                raise Trouble(f"{error}; and then: {worse}") from error
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

    A hold of a later restart of the job stays. Raises Trouble where something could not be cleaned, and OSError.
    """
    folder = folder_of(settings, name)
    with Locked(folder, settings.lock_seconds, create=False) as lock:
        if lock.gone:
            return "nothing"
        holder = read_holder(folder, job)
        if holder is not None and holder.restart <= restart:
            remove_holder(folder, job)
        if holders(folder):
            return "left"
        clean(settings, name)
        return "stopped"


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
    if state is not None and _answers_in_time(settings, folder, state):
        return "joined"
    if state is not None:
        _stop(settings, wanted.name, folder, state)
    _start(settings, wanted, folder, state)
    return "started" if state is None else "restarted"


def _fits(state: State, wanted: Wanted) -> bool:
    mine = [device.uuid for device in wanted.devices]
    return state.boot == boot_id() and state.uuids == mine and (state.uid, state.gid) == (wanted.uid, wanted.gid)


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

    here = _user_is_here(wanted, state)

    def prepare(identity: Identity) -> None:
        cgroup.enter(wanted.name, identity.pid)
        state.identity = identity
        write_state(folder, state)

    spawn.start(
        [settings.control, "-f"],
        _environment(folder, state),
        wanted.uid,
        wanted.gid,
        f"{folder}/{LOG}/control.log",
        prepare,
    )
    if not _answers_in_time(settings, folder, state):
        lives = state.identity is not None and alive(state.identity)
        what = f"does not answer after {settings.start_seconds:g} s" if lives else "ended at its start"
        kind = ByUser if here or _user_is_here(wanted, state) else Trouble
        raise kind(f"{settings.control} {what}{_last_line(folder)}")


def _environment(folder: str, state: State) -> dict[str, str]:
    """The daemon's whole environment. A percentage in it would cap every client (S:gres_mps, commit 134cd63a)."""
    return {
        "PATH": _PATH,
        "CUDA_VISIBLE_DEVICES": ",".join(state.uuids),
        "CUDA_MPS_PIPE_DIRECTORY": f"{folder}/{PIPE}",
        "CUDA_MPS_LOG_DIRECTORY": f"{folder}/{LOG}",
    }


def _answers_in_time(settings: Settings, folder: str, state: State) -> bool:
    """Whether the daemon comes to answer within START_SECONDS, as long as it lives."""
    end = time.monotonic() + settings.start_seconds
    while state.identity is not None and alive(state.identity):
        rest = end - time.monotonic()
        if rest > 0 and _answers(settings, folder, state, rest):
            return True
        if rest <= 0:
            return False
        time.sleep(_POLL)
    return False


def _user_is_here(wanted: Wanted, state: State) -> bool:
    """Whether processes of the user run here that are not the daemon's.

    They can do to it what they like: signals, its socket, its folders. Without any, a daemon that does not start is the
    node's trouble.
    """
    ours = {process.pid for process in _processes(wanted.name, state)}
    return any(uid(pid) == wanted.uid and identify(pid) is not None for pid in pids() if pid not in ours)


def _answers(settings: Settings, folder: str, state: State, seconds: float) -> bool:
    """Whether the daemon answers a question in time; asked as its user, for the pipe directory is that user's."""
    if not os.path.lexists(f"{folder}/{PIPE}/control"):
        return False
    environment = _environment(folder, state)
    status, _ = spawn.run_as([settings.control], environment, state.uid, state.gid, _ASK, max(0.1, seconds))
    return status == 0


def _make_exclusive(settings: Settings, folder: str, state: State) -> None:
    """Set EXCLUSIVE_PROCESS on the cards, with what each was before written down first."""
    from hybridgpu.mps.computemode import ComputeModes

    with ComputeModes(settings.nvml) as modes:
        for uuid in state.uuids:
            if uuid not in state.compute_mode:
                state.compute_mode[uuid] = modes.get(uuid)
                write_state(folder, state)
            modes.set(uuid, _EXCLUSIVE_PROCESS)


def _restore_modes(settings: Settings, state: State) -> None:
    from hybridgpu.mps.computemode import ComputeModes

    with ComputeModes(settings.nvml) as modes:
        for uuid, mode in state.compute_mode.items():
            modes.set(uuid, mode)


def _stop(settings: Settings, name: str, folder: str, state: State | None) -> None:
    """End the daemon and its servers: asked to quit, then told, then killed; Trouble names what does not end."""
    ours = _processes(name, state)
    if state is not None and state.identity is not None and alive(state.identity):
        _ask_to_quit(settings, folder, state)
        wait_gone([state.identity], min(1.0, settings.quit_seconds))
    wait_gone(_signalled(name, ours, state, _SIGTERM), min(1.0, settings.kill_seconds))
    end = time.monotonic() + settings.kill_seconds
    left: list[Identity] = []
    while cgroup.members(name) or any(alive(process) for process in ours):
        with cgroup.Frozen(name):  # so that this is all, however fast its user lets it fork
            left = _signalled(name, ours, state, _SIGKILL)
        left = wait_gone(left, settings.kill_seconds)
        if left or time.monotonic() >= end:
            break
    if left:
        pids = ", ".join(str(process.pid) for process in left)
        raise Trouble(
            f"daemon {name}: process {pids} does not end on SIGKILL: the driver holds it; the node needs a look"
        )


def _signalled(name: str, ours: set[Identity], state: State | None, number: int) -> list[Identity]:
    """Signal what is the daemon's and lives, and give it."""
    left = [process for process in {*ours, *_processes(name, state)} if alive(process)]
    for process in left:
        signal_it(process, number)
    return left


def _ask_to_quit(settings: Settings, folder: str, state: State) -> None:
    """Ask, as its user; where that can't be, as in the middle of a driver's upgrade, signals will do."""
    if os.path.lexists(f"{folder}/{PIPE}/control"):
        environment = _environment(folder, state)
        try:
            spawn.run_as([settings.control], environment, state.uid, state.gid, "quit\n", settings.quit_seconds)
        except Trouble:
            return


def _processes(name: str, state: State | None) -> set[Identity]:
    """What is proven to be the daemon's: itself, what descends from it, and what its cgroup holds."""
    found = {identity for pid in cgroup.members(name) if (identity := identify(pid)) is not None}
    if state is not None and state.boot == boot_id() and state.identity is not None and alive(state.identity):
        found |= {state.identity, *descendants(state.identity)}
    return found


def _remove_daemon(settings: Settings, name: str, folder: str, state: State | None) -> None:
    """All of a daemon but its folder and holders; after a reboot nothing is signalled, and no compute mode set."""
    same_boot = state is not None and state.boot == boot_id()
    _stop(settings, name, folder, state if same_boot else None)
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


def _last_line(folder: str) -> str:
    """The last line the daemon wrote, for a person; the file is the user's, so it is opened with care and cleaned."""
    try:
        descriptor = os.open(f"{folder}/{LOG}/control.log", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        return "" if error.errno == errno.ENOENT else f" ({error.strerror})"
    try:
        seen = os.fstat(descriptor)
        if not stat.S_ISREG(seen.st_mode):
            return ""
        text = os.pread(descriptor, 4096, max(0, seen.st_size - 4096)).decode("ascii", "replace")
    finally:
        os.close(descriptor)
    lines = [line for line in text.splitlines() if line.strip()]
    told = "".join(c if c.isprintable() and c.isascii() else "?" for c in lines[-1][-200:]) if lines else ""
    return f": {told}" if told else ""
