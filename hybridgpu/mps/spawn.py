"""Starting the control daemon, and asking it something, as a job's user: fork and exec by hand, in a fixed order.

The child is root's until it is let go, so that no user can stop or trace it before its pid is written down; a parent
that dies first takes it along. It never runs a line of the parent's own code, and ends by exec or _exit only. Nothing
of the parent's is open in it: no lock, and not the pipe that slurmd reads to its end.
"""

from __future__ import annotations

import errno
import fcntl
import os
import resource
import select
import signal
import stat
import time

from hybridgpu.mps.process import Identity, identify
from hybridgpu.mps.trouble import ByUser, Trouble

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import NoReturn

_EXEC_SECONDS = 10.0
"""How long a child that was let go may take to its exec: it only changes its user and opens a file."""

_KILL_SECONDS = 1.0
_MOST_OUTPUT = 64 * 1024
_MOST_FILES = 65536
_REPORT = 3
"""The child's descriptor for what went wrong; exec closes it."""

_OOM = "/proc/self/oom_score_adj"
_POLL_MS = 20
_ALL = frozenset(signal.valid_signals())


class _Child:
    """What a child is to become. Everything is ready before the fork; `log` None: its outputs go to `streams`."""

    __slots__ = ("argv", "environment", "gid", "log", "own_session", "streams", "uid")

    def __init__(
        self,
        argv: Sequence[str],
        environment: Mapping[str, str],
        uid: int,
        gid: int,
        own_session: bool,
        streams: tuple[int, int, int],
        log: str | None,
    ) -> None:
        self.argv, self.environment, self.uid, self.gid = list(argv), dict(environment), uid, gid
        self.own_session, self.streams, self.log = own_session, streams, log


def start(
    argv: Sequence[str],
    environment: Mapping[str, str],
    uid: int,
    gid: int,
    log_path: str,
    prepare: Callable[[Identity], None],
) -> Identity:
    """Start a program that goes on for itself, with this environment and no other, as this user; gives who it is.

    `prepare` gets the process before it is the program: what it raises is raised here, and the program never runs. It
    never runs either when this process dies in between. The log is opened as the user, at its end; where it is no
    file, or cannot be, there is none. Raises Trouble where the program cannot be run.
    """
    null = _high(os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC))
    try:
        child = _Child(argv, environment, uid, gid, True, (null, null, null), log_path)
        return _started(child, prepare, _EXEC_SECONDS)
    finally:
        os.close(null)


def run_as(
    argv: Sequence[str], environment: Mapping[str, str], uid: int, gid: int, text: str, seconds: float
) -> tuple[int | None, bytes]:
    """Run a program to its end as this user, with `text` for its input; gives its status and its output, both streams.

    The status is negative for a signal, and None where it had not ended after `seconds`, and was killed. No more than
    64 KiB of the output are kept. It stays in our process group, so that whoever ends that ends it as well. Raises
    Trouble where the program cannot be run.
    """
    end = time.monotonic() + seconds
    with _Pipe() as given, _Pipe() as told:
        child = _Child(argv, environment, uid, gid, False, (given.read, told.write, told.write), None)
        process = _started(child, lambda _: None, seconds)
        given.close_read()
        told.close_write()
        try:
            output = _talk(process.pid, given, told, text.encode(), end)
        except BaseException:
            _kill(process.pid)
            raise
        if not _ended(process.pid):  # asked with our ends open: closing them may end it
            _kill(process.pid)
            return None, output
    return os.waitstatus_to_exitcode(os.waitpid(process.pid, 0)[1]), output


class _Pipe:
    """A pipe whose ends stand above the numbers that a child gives to its streams, and are closed by every exec."""

    __slots__ = ("read", "write")

    def __init__(self) -> None:
        self.read = self.write = -1

    def __enter__(self) -> _Pipe:
        self.read, self.write = (_high(end) for end in os.pipe())
        return self

    def __exit__(self, *_: object) -> None:
        self.close_read()
        self.close_write()

    def close_read(self) -> None:
        end, self.read = self.read, -1
        if end >= 0:
            os.close(end)

    def close_write(self) -> None:
        end, self.write = self.write, -1
        if end >= 0:
            os.close(end)


def _high(descriptor: int) -> int:
    """The same above the numbers of the child's streams: whoever starts us may have left those free."""
    try:
        return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _REPORT + 1)
    finally:
        os.close(descriptor)


def _started(child: _Child, prepare: Callable[[Identity], None], seconds: float) -> Identity:
    """Fork, let `prepare` see the child, let it go, and wait until it is the program."""
    with _Pipe() as go, _Pipe() as report:
        pid = _forked(child, go, report)
        try:
            go.close_read()
            report.close_write()
            process = identify(pid)
            if process is None:
                raise Trouble(f"{child.argv[0]}: its process ended at once")
            prepare(process)
            try:
                os.write(go.write, b"g")
            except BrokenPipeError:
                raise ByUser(f"{child.argv[0]}: its process was killed at its start") from None
            _see_through(child.argv[0], report.read, seconds)
        except BaseException:
            _kill(pid)
            raise
    return process


def _see_through(program: str, report: int, seconds: float) -> None:
    """Wait for the child's exec, which closes the pipe; or raise what it says stands in the way."""
    poll = select.poll()
    poll.register(report, select.POLLIN)
    if not poll.poll(seconds * 1000):
        raise ByUser(f"{program}: its process was stopped at its start")
    said = os.read(report, 4096)
    if said:
        place, _, number = said.decode("ascii", "replace").rpartition(" ")
        # The one error that a user brings about, by as many processes as he may have (execve(2), setuid(2)).
        kind = ByUser if int(number) == errno.EAGAIN else Trouble
        raise kind(f"{program} cannot be run: {place}: {os.strerror(int(number))}")


def _forked(child: _Child, go: _Pipe, report: _Pipe) -> int:
    """Fork, with every signal held back until the child has its default handlers, so that none of ours runs in it."""
    if signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN:  # a child would be gone, and its pid free, before we ask
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _ALL)
    try:
        pid = os.fork()
        if pid == 0:
            _be(child, go.read, report.write)
        return pid
    except OSError as error:
        raise Trouble(f"{child.argv[0]}: no process for it: {error.strerror}") from None
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _be(child: _Child, go: int, report: int) -> NoReturn:
    """The child's whole life up to its exec. It ends here, whatever happens."""
    place = "setting up"
    try:
        os.dup2(report, _REPORT, inheritable=False)
        _reset_signals()
        if child.own_session:
            os.setsid()
        for number, stream in enumerate(child.streams):
            os.dup2(stream, number)
        _close_but((0, 1, 2, _REPORT, go))
        if os.read(go, 1) != b"g":
            os._exit(127)
        os.close(go)
        place = "limits"
        _reset_limits()
        place = f"user {child.uid}"
        os.setgroups([child.gid])
        os.setresgid(child.gid, child.gid, child.gid)
        os.setresuid(child.uid, child.uid, child.uid)
        if (
            os.getresuid() != (child.uid,) * 3 or os.getresgid() != (child.gid,) * 3
        ):  # -1 means as before, to the kernel
            raise ValueError("not the user")
        os.umask(0o077)
        os.chdir("/")
        if child.log is not None:
            _open_log(child.log)
        place = "exec"
        os.execve(child.argv[0], child.argv, child.environment)  # noqa: S606 - without a shell is how it should be
    except Exception as error:  # a zero byte in a word is a ValueError, too large a number an OverflowError
        number = (isinstance(error, OSError) and error.errno) or errno.EINVAL
        os.write(_REPORT, f"{place} {number}".encode())
    finally:
        os._exit(127)


def _reset_signals() -> None:
    """What a program may expect: Python ignores SIGPIPE, our hooks handle others, and slurmd may block some."""
    for number in _ALL:
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _close_but(kept: tuple[int, ...]) -> None:
    """Close every other descriptor: slurmd's, and locks of ours."""
    for name in os.listdir("/proc/self/fd"):
        if int(name) not in kept:
            try:
                os.close(int(name))
            except OSError:  # the one that listed the folder
                pass


def _reset_limits() -> None:
    """Soft limits for a server of many clients; hard ones stay, for the process will be the user's. No core files.

    slurmd may be exempt from the kernel's killing for want of memory, which a user's process must not inherit.
    """
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    most = _MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, _MOST_FILES)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    hard = resource.getrlimit(resource.RLIMIT_NPROC)[1]
    resource.setrlimit(resource.RLIMIT_NPROC, (hard, hard))
    with open(_OOM, encoding="ascii") as file:
        exempt = int(file.read()) < 0
    if exempt:
        with open(_OOM, "w", encoding="ascii") as file:
            file.write("0")


def _open_log(path: str) -> None:
    """Let both outputs go to the user's log, at its end. The user may have put anything there: then nothing is logged,
    rather than that the job has no daemon."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
    try:
        log = os.open(path, flags, 0o600)
    except OSError:
        return
    if stat.S_ISREG(os.fstat(log).st_mode):
        os.dup2(log, 1)
        os.dup2(log, 2)
    os.close(log)


def _talk(pid: int, given: _Pipe, told: _Pipe, text: bytes, end: float) -> bytes:
    """Write the input and read the output until the process has ended, or the time is over.

    The end of the output is not waited for: whatever the process has started may hold it for ever.
    """
    os.set_blocking(given.write, False)
    os.set_blocking(told.read, False)
    output = b""
    while True:
        ended = _ended(pid)  # asked first, so that nothing it wrote is missed
        text = _write_some(given, text)
        output = _read_some(told, output)
        rest = end - time.monotonic()
        if ended or rest <= 0:
            return output
        poll = select.poll()
        if told.read >= 0:
            poll.register(told.read, select.POLLIN)
        if given.write >= 0:
            poll.register(given.write, select.POLLOUT)
        poll.poll(min(rest * 1000, _POLL_MS if told.read >= 0 else 1))


def _write_some(given: _Pipe, text: bytes) -> bytes:
    """Write what goes in without waiting; closes the pipe behind the last byte, or where nobody reads. The rest."""
    if given.write < 0:
        return b""
    try:
        text = text[os.write(given.write, text) :]
    except BlockingIOError:
        return text
    except BrokenPipeError:
        text = b""
    if not text:
        given.close_write()
    return text


def _read_some(told: _Pipe, output: bytes) -> bytes:
    """The output and what has come since, up to the most that is kept; closes the pipe at its end."""
    if told.read < 0:
        return output
    try:
        piece = os.read(told.read, _MOST_OUTPUT)
    except BlockingIOError:
        return output
    if not piece:
        told.close_read()
    return (output + piece)[:_MOST_OUTPUT]


def _ended(pid: int) -> bool:
    """Whether a child has ended; it stays a zombie, and its pid nobody else's."""
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _kill(pid: int) -> None:
    """Kill a child and take its zombie away; one that the kernel holds is left to itself after a while."""
    try:
        os.kill(pid, signal.SIGKILL)
        end = time.monotonic() + _KILL_SECONDS
        while os.waitpid(pid, os.WNOHANG)[0] == 0 and time.monotonic() < end:
            time.sleep(0.001)
    except (ChildProcessError, ProcessLookupError):
        pass
