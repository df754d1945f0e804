"""Processes by pid and start time: zombies, odd names, reused pids, ends between two looks, old kernels, no /proc."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hybridgpu.mps import process
from hybridgpu.mps.process import Identity, alive, descendants, identify, signal_it, wait_gone
from hybridgpu.mps.trouble import Trouble
from tests.conftest import lacking, no_hang

LEADER_GONE = """
import ctypes, threading, time
threading.Thread(target=time.sleep, args=(60,)).start()
ctypes.CDLL(None).pthread_exit(None)
"""


@contextmanager
def child(life: Callable[[], object] = signal.pause) -> Iterator[int]:
    """A forked process that lives like this, and is killed and reaped in the end."""
    pid = os.fork()
    if pid == 0:
        try:
            life()
        finally:
            os._exit(0)
    try:
        yield pid
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def known(pid: int) -> Identity:
    found = identify(pid)
    assert found is not None
    return found


def until(condition: Callable[[], object]) -> None:
    with no_hang():
        while not condition():
            time.sleep(0.002)


def state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_we_are_alive() -> None:
    me = known(os.getpid())
    assert alive(me)
    assert me == known(os.getpid())
    assert len({me, known(os.getpid())}) == 1
    assert process.parent(os.getpid()) == os.getppid()
    assert os.getpid() in set(process.pids())


def test_its_start_is_what_the_kernel_says() -> None:
    up = float(Path("/proc/uptime").read_text().split()[0])
    with child() as pid:
        assert known(pid).start / os.sysconf("SC_CLK_TCK") == pytest.approx(up, abs=2)


@pytest.mark.parametrize("pid", [0, -1, -2, 2**22 + 1, 2**40], ids=str)
def test_nobody_has_such_a_pid(pid: int) -> None:
    assert identify(pid) is None
    assert process.parent(pid) is None
    assert process.uid(pid) is None
    assert process.argv(pid) == []
    assert process.environment(pid) == {}


def test_a_zombie_is_not_alive() -> None:
    with child(lambda: None) as pid:
        until(lambda: state(pid) == "Z")
        assert identify(pid) is None
        assert process.argv(pid) == []


def test_a_process_outlives_its_first_thread() -> None:
    with subprocess.Popen([sys.executable, "-c", LEADER_GONE]) as running:
        until(lambda: state(running.pid) == "Z")
        assert alive(known(running.pid))
        running.kill()


@pytest.mark.parametrize("name", [") Z 1 1 (", "a b c", "\n) R 0 0", ")))((", "", "\\ 9 9", "é) X"])
def test_a_name_says_nothing_of_a_process(name: str) -> None:
    def renamed() -> None:
        Path("/proc/self/comm").write_text(name)
        signal.pause()

    with child(renamed) as pid:
        before = known(pid)
        until(lambda: state(pid) == "S")
        assert identify(pid) == before
        assert process.parent(pid) == os.getpid()


@pytest.mark.parametrize("old_kernel", [False, True])
def test_only_the_very_process_is_signalled(old_kernel: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if old_kernel:  # as where Linux, or what Python was built on, is older than pidfd_open(2)
        monkeypatch.delattr(os, "pidfd_open")
    with child() as pid:
        found = known(pid)
        assert not signal_it(Identity(pid, found.start + 1), signal.SIGKILL)
        assert not signal_it(Identity(pid, found.start - 1), signal.SIGKILL)
        assert wait_gone([found], 0.05) == [found]
        assert signal_it(found, signal.SIGKILL)
        assert wait_gone([found], 5) == []
        assert not signal_it(found, signal.SIGKILL)


@pytest.mark.parametrize("pid", [-1, 0, 1])
def test_many_are_never_signalled(pid: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "alive", lambda _: True)
    monkeypatch.setattr(os, "pidfd_open", lambda _: pytest.fail("looked up"))
    monkeypatch.setattr(os, "kill", lambda *_: pytest.fail("signalled"))
    assert not signal_it(Identity(pid, 0), signal.SIGTERM)


def test_a_wait_ends_with_the_last_of_them() -> None:
    with child(lambda: time.sleep(0.1)) as short, child() as long:
        begun = time.monotonic()
        stays = known(long)
        assert wait_gone([known(short), stays], 0.3) == [stays]
        assert 0.3 <= time.monotonic() - begun < 3


def real_and_effective(real: int, effective: int) -> Callable[[], None]:
    def life() -> None:
        os.setresuid(real, effective, -1)
        signal.pause()

    return life


@pytest.mark.parametrize("users", [(0, 0), (0, 1001), (1001, 0), (1001, 1001)])
def test_the_user_is_the_real_one(users: tuple[int, int]) -> None:
    if os.geteuid() != 0:
        lacking("needs root, to be another user")
    with child(real_and_effective(*users)) as pid:
        until(lambda: state(pid) == "S")
        assert process.uid(pid) == users[0]


@pytest.mark.parametrize(
    "words",
    [["sleep", "60"], ["a b", "", "c\nd", ""], ["slurmstepd: [1.extern]"], ["\udcff"], [""], ["x" * 100_000]],
    ids=lambda words: ascii(words)[:20],
)
def test_words_and_variables_come_back_as_they_were_given(words: list[str]) -> None:
    variables = {"A": "1=2", "B": "", "C": "x\ny", "D": "\udcfe"}
    line = [words[0], "-c", "read x", *words]
    with subprocess.Popen(line, executable="/bin/sh", env=variables, stdin=subprocess.PIPE) as running:
        until(lambda: process.argv(running.pid))  # an exec first closes Popen's pipe, and then has its words
        assert process.argv(running.pid) == line
        assert process.environment(running.pid) == variables


def test_what_was_started_in_a_session_is_found_also_without_its_parent() -> None:
    script = "sleep 61 & (sleep 62 & ) ; setsid sleep 63 & echo; wait"
    with (
        subprocess.Popen(["sh", "-c", script], start_new_session=True, stdout=subprocess.PIPE) as leader,
        subprocess.Popen(["sleep", "64"], start_new_session=True) as stranger,
    ):
        found = known(leader.pid)
        until(
            lambda: {"61", "62", "63"} <= {words[-1] for one in descendants(found) if (words := process.argv(one.pid))}
        )
        family = descendants(found)
        assert not {leader.pid, stranger.pid, os.getpid()} & {one.pid for one in family}
        assert descendants(Identity(found.pid, found.start + 1)) == []
        for one in (found, *family):
            signal_it(one, signal.SIGKILL)
        assert wait_gone(family, 5) == []
        stranger.kill()
    assert descendants(found) == []


def test_without_proc_nothing_is_told() -> None:
    """Taken for gone, a daemon would be started twice, and a holder removed."""
    if os.geteuid() != 0:
        lacking("needs root, to cover /proc")
    tell = "from hybridgpu.mps import process as p\nfor f in (p.boot_id, lambda: p.identify(1)):\n try: print(f())\n"
    tell += " except p.Trouble as t: print('Trouble:', t)\n"
    covered = 'mount -t tmpfs none /proc && exec "$0" -c "$1"'
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", covered, sys.executable, tell], capture_output=True, text=True
    )
    assert done.stdout.count("Trouble:") == 2, done
    assert "mounted" in done.stdout


def test_a_file_that_may_not_be_read_is_trouble(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "stat").mkdir()
    monkeypatch.setattr(process, "_PROC", str(tmp_path))
    with pytest.raises(Trouble, match="7/stat: Is a directory"):
        identify(7)


def test_a_boot_has_a_name() -> None:
    assert process.boot_id() == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
