"""The lock on a folder: it dies with its holder, follows no link, and is not fooled by a folder that was made anew."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from hybridgpu.mps.lock import Locked
from hybridgpu.mps.trouble import Busy, Trouble


def test_it_makes_the_folder_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        with Locked(str(tmp_path / "a"), 1) as lock:
            assert not lock.gone
    finally:
        os.umask(before)
    assert (tmp_path / "a").stat().st_mode & 0o7777 == 0o711


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be somebody else")
def test_no_other_user_can_lock_it(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    with Locked(str(tmp_path / "a"), 1):
        (tmp_path / "a" / "known").write_text("for all")
    stranger = "import os; os.setgid(1001); os.setuid(1001); os.open('a/known', 0); os.open('a', 0)"
    done = subprocess.run([sys.executable, "-c", stranger], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "PermissionError: [Errno 13] Permission denied: 'a'" in done.stderr.splitlines()


def test_a_second_holder_waits_and_then_gives_up(tmp_path: Path) -> None:
    with (
        Locked(str(tmp_path / "a"), 1),
        pytest.raises(Busy, match=r"has it locked for 0\.05 s"),
        Locked(str(tmp_path / "a"), 0.05),
    ):
        pass


def test_it_is_free_again_afterwards(tmp_path: Path) -> None:
    for _ in range(3):
        with Locked(str(tmp_path / "a"), 0):
            pass


def test_a_killed_holder_leaves_nothing_locked(tmp_path: Path) -> None:
    told, tell = os.pipe()
    child = os.fork()
    if child == 0:
        with Locked(str(tmp_path / "a"), 1):
            os.write(tell, b"x")
            time.sleep(60)
        os._exit(1)
    try:
        assert os.read(told, 1) == b"x"
        with pytest.raises(Busy), Locked(str(tmp_path / "a"), 0):
            pass
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(told)
        os.close(tell)
    with Locked(str(tmp_path / "a"), 1):
        pass


def test_a_program_that_is_started_meanwhile_does_not_keep_it(tmp_path: Path) -> None:
    with Locked(str(tmp_path / "a"), 1):
        child = os.posix_spawn("/bin/sleep", ["sleep", "60"], {})
    try:
        with Locked(str(tmp_path / "a"), 5):  # at its exec the kernel lets us go on before it closes descriptors
            pass
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def test_without_a_folder_there_may_be_nothing_to_lock(tmp_path: Path) -> None:
    with Locked(str(tmp_path / "a"), 1, create=False) as lock:
        assert lock.gone
    assert not (tmp_path / "a").exists()


def test_who_waited_for_a_removed_folder_locks_the_new_one(tmp_path: Path) -> None:
    """The waiter must not end up with the lock of a folder that nobody can see any more."""
    path = tmp_path / "a"
    seen: list[bool] = []

    def wait() -> None:
        with Locked(str(path), 10):
            descriptor_is_of_the_folder_there = path.is_dir()
            seen.append(descriptor_is_of_the_folder_there)
            with pytest.raises(Busy), Locked(str(path), 0):
                pass

    with Locked(str(path), 1):
        thread = threading.Thread(target=wait)
        thread.start()
        time.sleep(0.05)
        path.rmdir()
    thread.join(10)
    assert seen == [True]


def test_what_is_no_folder_of_ours_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    for name in ("file", "link", "open"):
        with pytest.raises(Trouble, match=str(tmp_path / name)), Locked(str(tmp_path / name), 1):
            pass


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to give a folder away")
def test_a_folder_of_somebody_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    os.chown(tmp_path / "theirs", 1001, 1001)
    with pytest.raises(Trouble, match="belongs to user 1001"), Locked(str(tmp_path / "theirs"), 1):
        pass
