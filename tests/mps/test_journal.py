"""What hooks log: one harmless line to each place, and never a wait or an error."""

from __future__ import annotations

import os
import re
import socket
import stat
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hybridgpu.mps import journal
from hybridgpu.mps.settings import Settings
from tests.conftest import lacking, no_hang

STAMP = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d{4}"


@pytest.fixture(autouse=True)
def no_syslog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "SYSLOG", str(tmp_path / "absent"))


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(log=str(tmp_path / "logs" / "hooks.log"))


def lines(settings: Settings) -> list[str]:
    return Path(settings.log).read_text().splitlines()


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"job": 12, "uid": 1001, "outcome": "started"}, "job=12 uid=1001 outcome=started"),
        ({"seconds": 0.04567, "gone": None, "why": "two words"}, 'seconds=0.046 why="two words"'),
        ({"why": 'a "b" \\ c'}, r'why="a \"b\" \\ c"'),
        ({"a": "", "b": "x=y"}, 'a="" b="x=y"'),
        ({"why": "a\nprolog job=1\r\0\x1b[31m\u2028ä\udcff"}, 'why="a?prolog job=1???[31m???"'),
        ({"devices": "GPU-1,GPU-2"}, "devices=GPU-1,GPU-2"),
    ],
)
def test_a_line(fields: dict[str, object], expected: str, settings: Settings) -> None:
    journal.note(settings, "prolog", **fields)
    (line,) = lines(settings)
    assert re.fullmatch(rf"{STAMP} hybridgpu-hook\[{os.getpid()}\]: prolog {re.escape(expected)}", line)


def test_lines_are_added_and_of_bounded_length(settings: Settings) -> None:
    journal.note(settings, "prolog", job=1)
    journal.note(settings, "epilog", **{f"field{number}": "x" * 10_000 for number in range(10)})
    journal.note(settings, "epilog", job=2)
    first, long, last = lines(settings)
    assert first.endswith("prolog job=1")
    assert len(long) < 2100
    assert last.endswith("epilog job=2")


def test_file_and_folder_are_not_for_everybody_to_write(settings: Settings) -> None:
    before = os.umask(0)
    try:
        journal.note(settings, "prolog")
    finally:
        os.umask(before)
    log = Path(settings.log)
    assert stat.S_IMODE(log.stat().st_mode) == 0o640
    assert stat.S_IMODE(log.parent.stat().st_mode) == 0o755


def fifo(log: Path) -> None:
    os.mkfifo(log)


def link(log: Path) -> None:
    log.symlink_to(log.parent.parent / "other")


def foreign_folder(log: Path) -> None:
    if os.geteuid() != 0:
        lacking("needs root, to give a folder away")
    os.chown(log.parent, 1001, 1001)


def open_folder(log: Path) -> None:
    log.parent.chmod(0o777)


def linked_folder(log: Path) -> None:
    log.parent.rmdir()
    (log.parent.parent / "elsewhere").mkdir()
    log.parent.symlink_to("elsewhere")


def no_folder(log: Path) -> None:
    log.parent.rmdir()
    log.parent.touch()


@pytest.mark.parametrize("make", [fifo, link, Path.mkdir, foreign_folder, open_folder, linked_folder, no_folder])
def test_what_is_planted_in_its_place_is_left_alone(
    make: Callable[[Path], None], settings: Settings, tmp_path: Path
) -> None:
    log = Path(settings.log)
    log.parent.mkdir()
    make(log)
    before, begun = sorted(tmp_path.rglob("*")), time.monotonic()
    with no_hang():
        journal.note(settings, "prolog", job=1)
    assert time.monotonic() - begun < 10
    assert sorted(tmp_path.rglob("*")) == before


def test_nobody_listens_to_a_fifo_in_its_place(settings: Settings) -> None:
    Path(settings.log).parent.mkdir()
    os.mkfifo(settings.log)
    reader = os.open(settings.log, os.O_RDONLY | os.O_NONBLOCK)
    journal.note(settings, "prolog", job=1)
    assert os.read(reader, 100) == b""
    os.close(reader)


@pytest.mark.parametrize("path", ["", "\0", "/", "/proc/no/hooks.log", "/no/such/folder/hooks.log"])
def test_a_log_that_cannot_be_is_no_error(path: str) -> None:
    journal.note(Settings(log=path), "prolog", job=1)


def test_a_full_disk_is_no_error(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        lacking("needs root, to mount")
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k,mode=755", "none", str(tmp_path)], check=True)
    try:
        for _ in range(100):
            journal.note(Settings(log=f"{tmp_path}/hooks.log"), "prolog", why="x" * 400)
        (tmp_path / "hooks.log").unlink()
        (tmp_path / "full").write_bytes(bytes(12 * 1024))
        journal.note(Settings(log=f"{tmp_path}/hooks.log"), "prolog", job=1)
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


# syslog


@pytest.fixture
def syslog(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        monkeypatch.setattr(journal, "SYSLOG", f"{folder}/log")
        yield f"{folder}/log"


@pytest.mark.parametrize(("fields", "priority"), [({"job": 12}, 30), ({"job": 12, "why": "broken"}, 28)])
def test_syslog_gets_it_as_a_datagram(
    fields: dict[str, object], priority: int, syslog: str, settings: Settings
) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as server:
        server.bind(syslog)
        journal.note(settings, "prolog", **fields)
        server.settimeout(5)
        said = server.recv(4096).decode()
    told = lines(settings)[0].partition(" ")[2]
    assert re.fullmatch(rf"<{priority}>[A-Z][a-z]{{2}} [ \d]\d \d\d:\d\d:\d\d {re.escape(told)}", said)


def test_syslog_gets_it_by_a_stream(syslog: str, settings: Settings) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        server.bind(syslog)
        server.listen()
        journal.note(settings, "prolog", job=12)
        server.settimeout(5)
        connection, _ = server.accept()
        with connection:
            said = connection.recv(4096)
    assert said.endswith(b"prolog job=12\0")


@pytest.mark.parametrize("kind", [socket.SOCK_DGRAM, socket.SOCK_STREAM])
def test_a_syslog_that_nobody_reads_is_not_waited_for(kind: int, syslog: str, settings: Settings) -> None:
    with socket.socket(socket.AF_UNIX, kind) as server:
        server.bind(syslog)
        if kind == socket.SOCK_STREAM:
            server.listen(0)
        begun = time.monotonic()
        with no_hang():
            for _ in range(2000):
                journal.note(settings, "prolog", why="x" * 300)
        assert time.monotonic() - begun < 10
    assert len(lines(settings)) == 2000


def test_it_is_told_before_where_the_file_gets_no_line(tmp_path: Path) -> None:
    """What `trouble` says of a place is what `note` finds there."""
    if os.geteuid() != 0:
        lacking("needs root, to give folders away")
    for name, mode, uid in (("good", 0o755, 0), ("groups", 0o775, 0), ("users", 0o755, 1001), ("all", 0o1777, 0)):
        (tmp_path / name).mkdir()
        (tmp_path / name).chmod(mode)
        os.chown(tmp_path / name, uid, 104)
    (tmp_path / "good/folder.log").mkdir()
    (tmp_path / "good/link.log").symlink_to(tmp_path / "good/elsewhere")
    (tmp_path / "good/linked").symlink_to(tmp_path / "good")
    cases = {
        "good/hooks.log": None,
        "good/new/hooks.log": None,
        "good/two/new/hooks.log": "there is no folder ",
        "groups/hooks.log": "mode 0775, and must be root's",
        "users/hooks.log": "is user 1001's",
        "all/hooks.log": "mode 1777",
        "good/folder.log": "it is no file",
        "good/link.log": "it is no file",
        "good/linked/hooks.log": "is no folder",
        "good/hooks.log/hooks.log": "is no folder",
    }
    for path, why in cases.items():
        settings = Settings(log=str(tmp_path / path))
        told = journal.trouble(settings)
        assert (told is None) if why is None else (told is not None and why in told), path
        before = tmp_path.joinpath(path).read_text() if tmp_path.joinpath(path).is_file() else ""
        journal.note(settings, "prolog", job=12)
        written = tmp_path.joinpath(path).is_file() and tmp_path.joinpath(path).read_text() != before
        assert written == (told is None), path
