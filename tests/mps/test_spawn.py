"""Programs run as a job's user: what they get and what they do not, who dies with whom, and limits that hold."""

from __future__ import annotations

import fcntl
import os
import resource
import signal
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from hybridgpu.mps import spawn
from hybridgpu.mps.folder import user_folder
from hybridgpu.mps.process import Identity, alive, argv, environment, identify, parent, pids, signal_it, wait_gone
from hybridgpu.mps.trouble import Trouble
from tests.conftest import lacking, no_hang
from tests.mps.node import node

USER, GROUP = 1001, 1002
ENV = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}

TELL = """
while read -r line; do echo "$line"; done < /proc/$$/status  # no fork: the shell blocks signals around one
stat -c 'fd %N' /proc/$$/fd/*
echo "cwd $(pwd)"; echo "umask $(umask)"; echo "session $(cut -d' ' -f5,6 /proc/$$/stat) $$"
echo "files $(ulimit -Sn)"; echo "core $(ulimit -Sc)"
tr '\\0' '\\n' < /proc/$$/environ
echo done; exec sleep 60
"""


@pytest.fixture(autouse=True)
def root() -> None:
    if os.geteuid() != 0:
        lacking("needs root, to be another user")


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that other users can pass, with one of the user's own, `log`."""
    with tempfile.TemporaryDirectory(prefix="hgpu-", dir="/run") as made:
        Path(made).chmod(0o755)
        user_folder(f"{made}/log", USER, GROUP)
        yield Path(made)


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    """No child of ours, not even a zombie, and no descriptor stays behind."""
    before = descriptors()
    yield
    assert descriptors() == before
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


def descriptors() -> set[int]:
    return {int(path.name) for path in Path("/proc/self/fd").iterdir() if path.exists()}


def begin(place: Path, script: str, prepare: Callable[[Identity], None] = lambda _: None) -> Identity:
    log = str(place / "log" / "control.log")
    return spawn.start(["/bin/sh", "-c", script], ENV, USER, GROUP, log, prepare)


def end(process: Identity) -> None:
    signal_it(process, signal.SIGKILL)
    os.waitpid(process.pid, 0)


def until(condition: Callable[[], object]) -> None:
    with no_hang():
        while not condition():
            time.sleep(0.002)


def told(log: Path) -> dict[str, list[str]]:
    """What TELL wrote: the words of each line by their first."""
    until(lambda: log.exists() and log.read_text().endswith("done\n"))
    lines = [line.split() for line in log.read_text().splitlines()]
    links = [(words[1].strip("'"), words[3].strip("'")) for words in lines if words[0] == "fd"]
    files = {f"fd {path.rpartition('/')[2]}": [target] for path, target in links}
    return {words[0].rstrip(":"): words[1:] for words in lines} | files


def signals(mask: str) -> int:
    """A mask of /proc/PID/status, without the two signals of the C library's own, which no program can set."""
    return int(mask, 16) & ~(0b11 << 31)


def test_what_a_daemon_is(place: Path) -> None:
    log = place / "log" / "control.log"
    process = begin(place, TELL)
    try:
        seen = told(log)
        assert seen["Uid"] == [str(USER)] * 4
        assert seen["Gid"] == [str(GROUP)] * 4
        assert seen["Groups"] == [str(GROUP)]
        assert {seen[f"Cap{kind}"][0].strip("0") for kind in ("Inh", "Prm", "Eff", "Amb")} == {""}
        assert not any(signals(seen[f"Sig{kind}"][0]) for kind in ("Blk", "Ign", "Pnd"))
        assert seen["cwd"] == ["/"]
        assert seen["umask"] == ["0077"]
        assert seen["session"] == [str(process.pid)] * 3
        assert seen["core"] == ["0"]
        assert int(seen["files"][0]) >= min(65536, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
        assert (seen["fd 0"], seen["fd 1"], seen["fd 2"]) == (["/dev/null"], [str(log)], [str(log)])
        assert {name for name in seen if name.startswith("fd ")} == {"fd 0", "fd 1", "fd 2"}
        assert {**environment(process.pid), "PWD": "/"} == {**ENV, "PWD": "/"}  # the shell's own
        assert alive(process)
        assert (log.stat().st_uid, log.stat().st_gid, stat.S_IMODE(log.stat().st_mode)) == (USER, GROUP, 0o600)
    finally:
        end(process)


def test_nothing_of_a_strange_parent_is_inherited(place: Path) -> None:
    """Signals blocked and ignored, no standard streams, locks, inheritable descriptors, safe from the OOM killer."""
    ours = os.fork()
    if ours == 0:
        try:
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGUSR1})
            for number in (signal.SIGINT, signal.SIGHUP, signal.SIGCHLD):
                signal.signal(number, signal.SIG_IGN)
            with suppress(PermissionError):  # where even root may not
                Path("/proc/self/oom_score_adj").write_text("-500")
            lock = fcntl.fcntl(os.open(place, os.O_RDONLY), fcntl.F_DUPFD, 10)
            for descriptor in range(3):
                os.close(descriptor)
            fcntl.flock(lock, fcntl.LOCK_EX)
            os.set_inheritable(lock, True)
            assert ask("cat; echo b >&2", "a\n") == (0, b"a\nb\n")
            os.dup2(lock, 3)
            os.dup2(lock, 700)
            begin(place, TELL)
            os._exit(0)
        except BaseException as error:
            (place / "error").write_text(repr(error))
        finally:
            os._exit(1)
    assert os.waitpid(ours, 0)[1] == 0, (place / "error").read_text()
    log = place / "log" / "control.log"
    seen = told(log)
    process = identify(int(seen["session"][2]))
    assert process is not None
    try:
        assert not any(signals(seen[f"Sig{kind}"][0]) for kind in ("Blk", "Ign"))
        assert (seen["fd 0"], seen["fd 1"], seen["fd 2"]) == (["/dev/null"], [str(log)], [str(log)])
        assert {name for name in seen if name.startswith("fd ")} == {"fd 0", "fd 1", "fd 2"}
        assert Path(f"/proc/{process.pid}/oom_score_adj").read_text() == "0\n"
        other = os.open(place, os.O_RDONLY)
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.close(other)
    finally:
        signal_it(process, signal.SIGKILL)
        assert wait_gone([process], 5) == []


def test_the_process_that_is_prepared_is_the_program(place: Path) -> None:
    seen: list[tuple[Identity, int | None, int]] = []

    def prepare(process: Identity) -> None:
        seen.append((process, parent(process.pid), Path(f"/proc/{process.pid}").stat().st_uid))

    process = begin(place, "sleep 60", prepare)
    try:
        assert seen == [(process, os.getpid(), 0)]
        until(lambda: argv(process.pid))
        assert alive(process)
    finally:
        end(process)


def test_the_log_goes_on_where_it_ended(place: Path) -> None:
    log = place / "log" / "control.log"
    log.write_text("before\n")
    os.chown(log, USER, GROUP)
    process = begin(place, "echo one; echo two >&2; exec sleep 60")
    until(lambda: log.read_text() == "before\none\ntwo\n")
    end(process)


def fifo(path: Path) -> None:
    os.mkfifo(path)
    os.chown(path, USER, GROUP)


def link_to_mine(path: Path) -> None:
    path.symlink_to(path.parent.parent / "other")


def roots_file(path: Path) -> None:
    path.write_text("root's")
    path.chmod(0o644)


@pytest.mark.parametrize("make", [fifo, link_to_mine, Path.mkdir, roots_file])
@pytest.mark.parametrize("read", [False, True])
def test_whatever_a_user_puts_for_the_log_the_daemon_runs(
    make: Callable[[Path], None], read: bool, place: Path
) -> None:
    (place / "other").write_text("kept")
    (place / "other").chmod(0o666)
    log = place / "log" / "control.log"
    make(log)
    reader = os.open(log, os.O_RDONLY | os.O_NONBLOCK) if read else os.open("/", os.O_RDONLY)
    with no_hang():
        process = begin(place, "echo x; exec sleep 60")
    os.close(reader)
    try:
        assert Path(f"/proc/{process.pid}/fd/1").readlink() == Path("/dev/null")
        assert (place / "other").read_text() == "kept"
    finally:
        end(process)


PROGRAMS: dict[str, tuple[str, str]] = {
    "missing": ("{place}/no", "exec: No such file or directory"),
    "not executable": ("{place}/plain", "exec: Permission denied"),
    "a folder": ("{place}", "exec: Permission denied"),
    "no program": ("{place}/text", "exec: Exec format error"),
    "a zero byte": ("{place}\0", "exec: Invalid argument"),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_cannot_be_run_is_told(name: str, place: Path) -> None:
    (place / "plain").touch(0o644)
    (place / "text").write_text("no program")
    (place / "text").chmod(0o755)
    program, why = PROGRAMS[name][0].format(place=place), PROGRAMS[name][1]
    seen: list[Identity] = []
    with pytest.raises(Trouble, match=f"cannot be run: {why}$"):
        spawn.start([program], ENV, USER, GROUP, str(place / "log" / "control.log"), seen.append)
    assert not alive(seen[0])
    with pytest.raises(Trouble, match=f"cannot be run: {why}$"):
        spawn.run_as([program], ENV, USER, GROUP, "", 5)


@pytest.mark.parametrize("uid", [-1, 2**32 - 1, 2**32, 2**70])
@pytest.mark.parametrize("swapped", [False, True])
def test_nothing_runs_as_nobody(uid: int, swapped: bool, place: Path) -> None:
    """To setresuid(2), -1 is "as before": root."""
    users = (USER, uid) if swapped else (uid, GROUP)
    with pytest.raises(Trouble, match=f"cannot be run: user {users[0]}: Invalid argument"):
        spawn.start(["/bin/sh", "-c", f"touch {place}/ran"], ENV, *users, f"{place}/log/x", lambda _: None)
    with pytest.raises(Trouble, match=f"cannot be run: user {users[0]}: Invalid argument"):
        spawn.run_as(["/bin/sh", "-c", f"touch {place}/ran"], ENV, *users, "", 5)
    assert not (place / "ran").exists()


class Interrupted(BaseException):
    """As from a watchdog's signal handler."""


@pytest.mark.parametrize("raised", [Trouble("no"), OSError(28, "No space left on device"), Interrupted()])
def test_what_is_raised_in_preparing_keeps_the_program_from_running(raised: BaseException, place: Path) -> None:
    seen: list[Identity] = []

    def prepare(process: Identity) -> None:
        seen.append(process)
        raise raised

    with pytest.raises(type(raised)) as caught:
        begin(place, f"touch {place}/log/ran", prepare)
    assert caught.value is raised
    assert not alive(seen[0])
    assert not (place / "log" / "ran").exists()


@pytest.mark.parametrize("moment", ["identify", "prepare"])
@pytest.mark.parametrize("seconds", [0.0, 0.05])
def test_a_program_whose_starter_was_killed_never_runs(
    moment: str, seconds: float, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(*_: object) -> None:
        (place / "child").write_text(Path("/proc/thread-self/children").read_text())
        time.sleep(seconds)
        os.kill(os.getpid(), signal.SIGKILL)

    pid = os.fork()
    if pid == 0:
        try:
            if moment == "identify":
                monkeypatch.setattr(spawn, "identify", die)
            begin(place, f"touch {place}/log/ran", die)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL
    (child,) = (place / "child").read_text().split()
    until(lambda: identify(int(child)) is None)
    assert not (place / "log" / "ran").exists()


def test_one_that_is_stopped_at_its_start_is_not_waited_for(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spawn, "_EXEC_SECONDS", 0.1)
    seen: list[Identity] = []

    def stop(process: Identity) -> None:
        seen.append(process)
        os.kill(process.pid, signal.SIGSTOP)

    with no_hang(), pytest.raises(Trouble, match="its process was stopped at its start"):
        begin(place, "sleep 60", stop)
    assert not alive(seen[0])


def test_one_that_is_killed_at_its_start_is_trouble(place: Path) -> None:
    def kill(process: Identity) -> None:
        os.kill(process.pid, signal.SIGKILL)
        assert wait_gone([process], 5) == []

    with pytest.raises(Trouble, match="its process was killed at its start"):
        begin(place, "sleep 60", kill)


# run_as


def ask(script: str, text: str = "", seconds: float = 20) -> tuple[int | None, bytes]:
    with no_hang():
        return spawn.run_as(["/bin/sh", "-c", script], ENV, USER, GROUP, text, seconds)


@pytest.mark.parametrize(
    ("script", "text", "status", "output"),
    [
        ("cat", "quit\n", 0, b"quit\n"),
        ("cat; echo b >&2; exit 3", "a", 3, b"ab\n"),
        ("exit 0", "x" * 1_000_000, 0, b""),
        ("wc -c", "x" * 1_000_000, 0, b"1000000\n"),
        ("exec head -c 3000000 /dev/zero", "", 0, bytes(65536)),
        ("kill -9 $$", "", -9, b""),
        ("exec >&- 2>&-; sleep 0.1; exit 4", "", 4, b""),
        ("sleep 0.1; echo late", "", 0, b"late\n"),
        ("read x; read y; echo $x $y", "1\n2\n", 0, b"1 2\n"),
        ("exec id -u", "", 0, b"1001\n"),
        ("exec id -G", "", 0, b"1002\n"),
        ("exec ls /proc/self/fd", "", 0, b"0\n1\n2\n3\n"),
        ("umask; pwd; exec env", "", 0, b"0077\n/\nPWD=/\nPATH=/usr/sbin:/usr/bin:/sbin:/bin\n"),
    ],
)
def test_a_program_is_asked_and_answers(script: str, text: str, status: int, output: bytes) -> None:
    found = ask(script, text)
    assert (found[0], sorted(found[1].splitlines())) == (status, sorted(output.splitlines()))


@pytest.mark.parametrize("script", ["exec sleep 60", "exec yes", "exec >&- 2>&-; exec sleep 60", "kill -STOP $$"])
def test_one_that_does_not_end_is_killed(script: str) -> None:
    begun = time.monotonic()
    status, output = ask(script, "x" * 100_000, 0.2)
    assert status is None
    assert len(output) <= 65536
    assert time.monotonic() - begun < 5


def test_its_end_is_told_also_where_nobody_wants_to_hear_of_children() -> None:
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        assert ask("exit 7") == (7, b"")
    finally:
        signal.signal(signal.SIGCHLD, before)


def test_what_it_leaves_running_is_not_waited_for() -> None:
    begun = time.monotonic()
    status, output = ask("sleep 30 & echo $!")
    os.kill(int(output), signal.SIGKILL)
    assert status == 0
    assert time.monotonic() - begun < 10


def test_it_dies_with_our_process_group(place: Path) -> None:
    """slurmd ends a hook that takes too long by its group."""
    pid = os.fork()
    if pid == 0:
        try:
            os.setpgid(0, 0)
            ask(f"echo $$ > {place}/log/pid; exec sleep 60", seconds=60)
        finally:
            os._exit(0)
    file = place / "log" / "pid"
    until(lambda: file.exists() and file.read_text())
    asked = identify(int(file.read_text()))
    assert asked is not None
    os.killpg(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    assert wait_gone([asked], 5) == []


def test_an_interruption_takes_it_along() -> None:
    def over(*_: object) -> None:
        raise Interrupted

    before = signal.signal(signal.SIGALRM, over)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(Interrupted):
            spawn.run_as(["/bin/sh", "-c", "exec sleep 77"], ENV, USER, GROUP, "", 60)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert not [pid for pid in pids() if argv(pid) == ["sleep", "77"]]


# NVIDIA's control daemon


@pytest.mark.slurm
def test_the_control_daemon_is_started_asked_and_quits() -> None:
    with node() as settings:
        folder = Path(settings.run)
        folder.mkdir()
        for leaf in ("pipe", "log"):
            user_folder(str(folder / leaf), USER, GROUP)
        variables = {
            "CUDA_VISIBLE_DEVICES": "GPU-0",
            "CUDA_MPS_PIPE_DIRECTORY": f"{folder}/pipe",
            "CUDA_MPS_LOG_DIRECTORY": f"{folder}/log",
        }
        control = [settings.control]
        process = spawn.start(
            [*control, "-f"], variables, USER, GROUP, str(folder / "log" / "control.log"), lambda _: None
        )
        try:
            until((folder / "pipe" / "control").exists)
            asked = "get_default_active_thread_percentage\n"
            until(lambda: spawn.run_as(control, variables, USER, GROUP, asked, 5) == (0, b"100.0\n"))
            assert environment(process.pid) == variables
            assert spawn.run_as(control, variables, USER, GROUP, "quit\n", 5) == (0, b"")
            assert wait_gone([process], 5) == []
        finally:
            end(process)
        done = spawn.run_as(control, variables, USER, GROUP, asked, 5)
        assert done[0] not in (0, None)
        assert b"Cannot find MPS control daemon process" in done[1]
