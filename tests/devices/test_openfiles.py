"""Who has a card's file open: real processes, their threads and children, namespaces, and a file that hangs."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hybridgpu.devices import openfiles
from hybridgpu.devices.effect import Card
from hybridgpu.devices.openfiles import Identity, OpenFiles, Process, open_files
from hybridgpu.devices.port import Unread, Use
from tests.conftest import lacking

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")  # the test runner's threads

CARD = Card(0, 0, "0000:07:00.0", "GPU-1")
NOBODY = 1 << 30
"""No process's: then none is left out."""

HOLD = "file = open(sys.argv[1]); "
SAY = "print(os.getpid(), flush=True); time.sleep(60)"
THREAD = """
import ctypes, threading
def hold():
    ctypes.CDLL(None).unshare(0x400)  # CLONE_FILES
    global file
    file = os.open(sys.argv[1], os.O_RDONLY)
    print(os.getpid(), flush=True)
    time.sleep(60)
threading.Thread(target=hold).start()
"""
LEADER_ENDS = (
    THREAD.replace("ctypes.CDLL(None).unshare(0x400)", "time.sleep(0.3)")
    + """
ctypes.CDLL(None).syscall({"x86_64": 60, "aarch64": 93}[os.uname().machine], 0)  # exit(2): of this thread alone
"""
)
CHILD = """
file = open(sys.argv[1])
child = os.fork()
print(os.getpid(), flush=True) if child else os.close(1)
time.sleep(60)
"""


@pytest.fixture
def dev(tmp_path: Path) -> Path:
    if os.geteuid():
        lacking("who holds a card is for root to see")
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/nvidia0").touch()
    return tmp_path


@contextmanager
def running(program: str, dev: Path) -> Iterator[int]:
    """A process with a card's file open, by its pid."""
    code = f"import os, sys, time\n{program}"
    arguments = [sys.executable, "-c", code, str(dev / "dev/nvidia0")]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, start_new_session=True) as run:
        assert run.stdout is not None
        try:
            yield int(run.stdout.readline())
        finally:
            os.killpg(run.pid, 9)


def held(dev: Path) -> list[int]:
    found = OpenFiles([CARD], dev, 60)(CARD)
    assert not isinstance(found, Unread), found
    assert {holder.use for holder in found} <= {Use.OPEN_FILE}
    return [holder.pid for holder in found]


@pytest.mark.parametrize("program", [HOLD + SAY, THREAD, LEADER_ENDS], ids=["process", "thread", "leader-ends"])
def test_a_process_is_seen_by_any_of_its_threads(program: str, dev: Path) -> None:
    """Our own children are left out, so another process asks."""
    ask = (
        "import sys; from pathlib import Path; from tests.devices.test_openfiles import held; "
        "print(*held(Path(sys.argv[1])))"
    )
    with running(program, dev) as pid:
        time.sleep(0.5)
        said = subprocess.run([sys.executable, "-c", ask, str(dev)], capture_output=True, text=True, check=True)
    assert [int(word) for word in said.stdout.split()] == [pid]


def test_where_a_process_comes_from_is_told(dev: Path) -> None:
    file = openfiles.identity(dev / "dev/nvidia0")
    assert file is not None
    with running(CHILD, dev) as pid:
        found = open_files({file: 0}, NOBODY)
    assert not isinstance(found, Unread)
    holders = {holder.pid: holder.ancestors for _, holder in found.holders}
    assert len(holders) == 2
    (child,) = set(holders) - {pid}
    assert holders[child][0] == pid
    assert holders[pid][0] == os.getpid()


def test_a_device_is_known_by_its_number_where_the_hosts_file_is_gone(
    dev: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a device that there is everywhere, in the place of the card's: /dev/null is 1:3."""
    monkeypatch.setattr(openfiles, "_MAJOR", 1)
    null = os.makedev(1, 3)
    assert Path("/dev/null").stat().st_rdev == null
    with running("file = open('/dev/null'); " + SAY, dev) as pid:
        found = open_files({(stat.S_IFCHR, null, 0): 3}, NOBODY)
        assert not isinstance(found, Unread)
        assert pid in [holder.pid for index, holder in found.holders if index == 3]
        ask = OpenFiles([Card(3, 3, "", "")], dev / "nothing", 60)
        assert ask._wanted == {(stat.S_IFCHR, null, 0): 3}


def test_a_pid_namespace_that_is_not_the_hosts_is_told_and_nothing_is_known(dev: Path) -> None:
    ask = (
        "import sys; from pathlib import Path; from hybridgpu.devices.openfiles import OpenFiles; "
        "from tests.devices.test_openfiles import CARD; print(OpenFiles([CARD], Path(sys.argv[1]), 60)(CARD))"
    )
    command = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", sys.executable, "-c", ask, str(dev)]
    said = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "the processes of another pid namespace than the host's" in said.stdout, said.stderr


def test_a_file_that_hangs_is_named_with_its_process_and_no_card_is_blamed(
    dev: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, real = dev / "dev/nvidia0", openfiles._identity
    number = path.stat().st_ino

    def hangs(status: os.stat_result) -> Identity:
        if status.st_ino == number:
            time.sleep(60)
        return real(status)

    with running(HOLD + SAY, dev) as pid:
        files = OpenFiles([CARD], dev, 3)
        monkeypatch.setattr(openfiles, "_parent", lambda _: 0)  # our own children are left out else
        monkeypatch.setattr(openfiles, "_identity", hangs)
        found = files(CARD)
        assert files(CARD) is found, "it is not waited for once more a card"
    assert isinstance(found, Unread)
    assert str(found).startswith(f"/proc/{pid}/task/{pid}/fd/")
    assert f"({path}) answered nothing within 3 s; its file system hangs" in str(found)


def test_a_process_that_has_ended_is_unknown() -> None:
    assert openfiles.process(NOBODY) == Process(NOBODY, None, "unknown", "")
