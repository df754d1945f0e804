"""Processes by pid and start time, which together name one process of a boot for good: a pid alone is reused.

Read from /proc as it is now, and again right before a signal. Nothing here decides whose a process is; nobody's memory
is read but by `argv` and `environment`, which another user's process can make hang (its pages may be a FUSE file's):
ask those two of root's processes only. Source of the fields: proc(5).
"""

from __future__ import annotations

import os
import signal
import time

from hybridgpu.mps.trouble import Trouble

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_PROC = "/proc"
_BOOT_ID = "/proc/sys/kernel/random/boot_id"
_DEAD = ("Z", "X", "x")
_PIECE = 64 * 1024
_FIRST_PAUSE, _LONGEST_PAUSE = 0.0005, 0.01


class Identity:
    """One process. `start`: when it was started, in clock ticks since boot (field 22 of /proc/PID/stat)."""

    __slots__ = ("pid", "start")

    def __init__(self, pid: int, start: int) -> None:
        self.pid, self.start = pid, start

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Identity) and (self.pid, self.start) == (other.pid, other.start)

    def __hash__(self) -> int:
        return hash((self.pid, self.start))

    def __repr__(self) -> str:
        return f"Identity({self.pid}, {self.start})"


class _Stat:
    """What one reading of /proc/PID/stat says: all fields are of the same moment."""

    __slots__ = ("identity", "lives", "parent", "session")

    def __init__(self, pid: int, text: bytes) -> None:
        # The command's name stands in parentheses and may hold more of them, and blanks: the last one ends it.
        fields = text[text.rindex(b")") + 1 :].split()
        state, threads = fields[0].decode("ascii", "replace"), int(fields[17])
        self.parent, self.session = int(fields[1]), int(fields[3])
        self.identity = Identity(pid, int(fields[19]))
        # A first thread that has ended is a zombie as long as others of its process run.
        self.lives = state not in _DEAD or threads > 1


def boot_id() -> str:
    """The name of this boot. Raises Trouble where /proc is not mounted."""
    try:
        with open(_BOOT_ID, encoding="ascii") as file:
            return file.read().strip()
    except OSError as error:
        raise Trouble(f"{_BOOT_ID}: {error.strerror}; is /proc mounted?") from None


def identify(pid: int) -> Identity | None:
    """The process that has this pid now; None where there is none, or only its zombie."""
    found = _stat(pid)
    return found.identity if found is not None and found.lives else None


def alive(process: Identity) -> bool:
    """Whether this very process still runs. A zombie does not."""
    return identify(process.pid) == process


def parent(pid: int) -> int | None:
    """The pid of its parent, 0 where that is outside our pid namespace; None where there is no such process."""
    found = _stat(pid)
    return None if found is None else found.parent


def pids() -> Iterator[int]:
    """Every process that can be seen now; it may be gone when it is asked for."""
    try:
        names = os.listdir(_PROC)
    except OSError as error:
        raise Trouble(f"{_PROC}: {error.strerror}") from None
    return (int(name) for name in names if name.isdecimal())


def descendants(process: Identity) -> list[Identity]:
    """What runs and descends from a process, or was started in the session it leads; itself left out.

    Empty where it is gone: what it had started has another parent then, and its session's number may be another's.
    """
    seen = [found for pid in pids() if (found := _stat(pid)) is not None]
    if not any(found.identity == process for found in seen):
        return []
    family, grown = {process.pid}, True
    while grown:
        more = {
            found.identity.pid
            for found in seen
            if found.identity.pid not in family and (found.parent in family or found.session == process.pid)
        }
        family, grown = family | more, bool(more)
    # A session's number is the pid of its leader, so an older process in it belongs to a former one.
    return [
        found.identity
        for found in seen
        if found.identity.pid in family
        and found.lives
        and found.identity != process
        and found.identity.start >= process.start
    ]


def uid(pid: int) -> int | None:
    """The real user of a process; None where there is no such process.

    The real one, for anybody may start a set-user-id program with a command line and environment of his making; and
    not the owner of /proc/PID, which is root where a process may not be dumped.
    """
    for line in _read(pid, "status").splitlines():
        if line.startswith(b"Uid:"):
            return int(line.split()[1])
    return None


def argv(pid: int) -> list[str]:
    """The words of a command line; empty where there is no such process, or it has none (a zombie, the kernel's)."""
    text = _read(pid, "cmdline")
    return [os.fsdecode(word) for word in text.removesuffix(b"\0").split(b"\0")] if text else []


def environment(pid: int) -> dict[str, str]:
    """The environment a process was started with; of each name the first, as getenv(3) has it. Empty as `argv`."""
    found: dict[str, str] = {}
    for entry in _read(pid, "environ").split(b"\0"):
        name, equals, value = entry.partition(b"=")
        if equals:
            found.setdefault(os.fsdecode(name), os.fsdecode(value))
    return found


def signal_it(process: Identity, number: int) -> bool:
    """Send a signal to this very process, and to no other that got its pid; False where it no longer runs.

    Raises Trouble where it may not be signalled.
    """
    if process.pid <= 1:  # to kill(2), 0 and -1 mean many
        return False
    try:
        descriptor = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return False
    except (OSError, AttributeError):  # before Linux 5.3, or kept from us: then checked and sent, as near as can be
        descriptor = -1
    try:
        if not alive(process):
            return False
        if descriptor >= 0:
            signal.pidfd_send_signal(descriptor, number)
        else:
            os.kill(process.pid, number)
    except ProcessLookupError:
        return False
    except OSError as error:
        raise Trouble(f"process {process.pid} cannot be signalled: {error.strerror}") from None
    finally:
        if descriptor >= 0:
            os.close(descriptor)
    return True


def wait_gone(processes: Iterable[Identity], seconds: float) -> list[Identity]:
    """Wait until none of them runs, for `seconds` at most; gives those that still do."""
    end, pause = time.monotonic() + seconds, _FIRST_PAUSE
    left = [process for process in processes if alive(process)]
    while left and (rest := end - time.monotonic()) > 0:
        time.sleep(min(pause, rest))
        pause = min(2 * pause, _LONGEST_PAUSE)
        left = [process for process in left if alive(process)]
    return left


def _stat(pid: int) -> _Stat | None:
    text = _read(pid, "stat")
    return _Stat(pid, text) if text else None


def _read(pid: int, name: str) -> bytes:
    """A file of a process; empty where the process is gone. Raises Trouble where it is there and cannot be read."""
    if pid <= 0:
        return b""
    try:
        with open(f"{_PROC}/{pid}/{name}", "rb", buffering=0) as file:
            return b"".join(iter(lambda: file.read(_PIECE), b""))
    except (FileNotFoundError, ProcessLookupError):
        if os.path.exists(f"{_PROC}/self/stat"):
            return b""
        raise Trouble(f"{_PROC} is not mounted: no process can be told from another") from None
    except OSError as error:
        raise Trouble(f"{_PROC}/{pid}/{name}: {error.strerror}") from None
