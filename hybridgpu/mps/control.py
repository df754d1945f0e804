"""NVIDIA's control daemon of one daemon of ours, as a process: started as its user, asked, and stopped.

Nothing is signalled but what is proven to be ours: the process that state.json names, by pid and start time, what
descends from it, and what lives in the daemon's own cgroup. Knows no jobs; the daemon's lock must be held.
"""

from __future__ import annotations

import errno
import os
import signal
import stat
import time

from hybridgpu.mps import cgroup, spawn
from hybridgpu.mps.process import Identity, alive, descendants, identify, pids, signal_it, uid, wait_gone
from hybridgpu.mps.state import LOG, PIPE, State, write_state
from hybridgpu.mps.trouble import ByUser, Trouble

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hybridgpu.mps.settings import Settings

_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
"""For the control daemon, which starts nvidia-cuda-mps-server by name."""

_ASK = "get_default_active_thread_percentage\n"
_POLL = 0.002


def start(settings: Settings, name: str, folder: str, state: State) -> None:
    """Start it over the devices of `state`, as its user, and wait until it answers; who it is is written down first.

    Raises ByUser where it does not answer and processes of its user are here, which may be why; else Trouble; OSError.
    """
    here = _user_is_here(name, state)

    def prepare(identity: Identity) -> None:
        cgroup.enter(name, identity.pid)
        state.identity = identity
        write_state(folder, state)

    log = f"{folder}/{LOG}/control.log"
    spawn.start([settings.control, "-f"], _environment(folder, state), state.uid, state.gid, log, prepare)
    if not answers_in_time(settings, folder, state):
        lives = state.identity is not None and alive(state.identity)
        what = f"does not answer after {settings.start_seconds:g} s" if lives else "ended at its start"
        kind = ByUser if here or _user_is_here(name, state) else Trouble
        stop(settings, name, folder, state, ask=False)
        raise kind(f"{settings.control} {what}{_last_line(folder)}")


def answers_in_time(settings: Settings, folder: str, state: State) -> bool:
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


def stop(settings: Settings, name: str, folder: str, state: State | None, *, ask: bool = True) -> None:
    """End the daemon and its servers: asked to quit, then told, then killed; Trouble names what does not end.

    One that has just not answered is not asked (`ask`): a hook has so much time only, and its user could use it up.
    """
    ours = _processes(name, state)
    if ask and state is not None and state.identity is not None and alive(state.identity):
        _ask_to_quit(settings, folder, state)
        wait_gone([state.identity], min(1.0, settings.quit_seconds))
    wait_gone(_signalled(name, ours, state, signal.SIGTERM), min(1.0, settings.kill_seconds))
    end = time.monotonic() + settings.kill_seconds
    left: list[Identity] = []
    while cgroup.members(name) or any(alive(process) for process in ours):
        with cgroup.Frozen(name):  # so that this is all, however fast its user lets it fork
            left = _signalled(name, ours, state, signal.SIGKILL)
        left = wait_gone(left, settings.kill_seconds)
        if left or time.monotonic() >= end:
            break
    if left:
        them = ", ".join(str(process.pid) for process in left)
        raise Trouble(
            f"daemon {name}: process {them} does not end on SIGKILL: the driver holds it; the node needs a look"
        )


def _environment(folder: str, state: State) -> dict[str, str]:
    """The daemon's whole environment. A percentage in it would cap every client (S:gres_mps, commit 134cd63a)."""
    return {
        "PATH": _PATH,
        "CUDA_VISIBLE_DEVICES": ",".join(state.uuids),
        "CUDA_MPS_PIPE_DIRECTORY": f"{folder}/{PIPE}",
        "CUDA_MPS_LOG_DIRECTORY": f"{folder}/{LOG}",
    }


def _answers(settings: Settings, folder: str, state: State, seconds: float) -> bool:
    """Whether the daemon answers a question in time; asked as its user, for the pipe directory is that user's."""
    if not os.path.lexists(f"{folder}/{PIPE}/control"):
        return False
    environment = _environment(folder, state)
    status, _ = spawn.run_as([settings.control], environment, state.uid, state.gid, _ASK, max(0.1, seconds))
    return status == 0


def _user_is_here(name: str, state: State) -> bool:
    """Whether processes of the user run here that are not the daemon's.

    They can do to it what they like: signals, its socket, its folders. Without any, a daemon that does not start is the
    node's trouble.
    """
    ours = {process.pid for process in _processes(name, state)}
    return any(uid(pid) == state.uid and identify(pid) is not None for pid in pids() if pid not in ours)


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
    if state is not None and (running := state.running) is not None:
        found |= {running, *descendants(running)}
    return found


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
