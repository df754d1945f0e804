"""Folders beside users who mean harm: what root makes, believes and removes, and that nothing else is touched."""

from __future__ import annotations

import errno
import os
import random
import signal
import socket
import stat
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hybridgpu.mps.folder import abandoned, read_small, remove_tree, root_folder, user_folder, write_whole
from hybridgpu.mps.trouble import Trouble
from tests.conftest import lacking, no_hang, soak

USER, GROUP = 1001, 1002


@pytest.fixture(autouse=True)
def root() -> None:
    if os.geteuid() != 0:
        lacking("needs root: these are root's folders")


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that other users can pass."""
    with tempfile.TemporaryDirectory(prefix="hgpu-", dir="/run") as made:
        Path(made).chmod(0o755)
        yield Path(made)


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A file system with room for 64 KiB."""
    place = tmp_path / "small"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k,mode=755", "none", str(place)], check=True)
    yield place
    subprocess.run(["umount", str(place)], check=True)


def names(folder: Path | str) -> list[str]:
    return sorted(child.name for child in Path(folder).iterdir())


def soon(seconds: float = 60) -> float:
    return time.monotonic() + seconds


def bits(path: Path) -> tuple[int, int, int]:
    seen = path.lstat()
    return seen.st_uid, seen.st_gid, stat.S_IMODE(seen.st_mode)


def as_user(life: Callable[[], object]) -> int:
    """Start a process of the user's that lives like this; gives its pid, to be killed."""
    pid = os.fork()
    if pid == 0:
        try:
            os.setgroups([])
            os.setresgid(GROUP, GROUP, GROUP)
            os.setresuid(USER, USER, USER)
            life()
        finally:
            os._exit(0)
    return pid


# root_folder


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
@pytest.mark.parametrize("mode", [0o755, 0o700])
def test_a_folder_is_made_with_all_above_it(umask: int, mode: int, tmp_path: Path) -> None:
    before = os.umask(umask)
    try:
        root_folder(str(tmp_path / "a" / "b" / "c"), mode)
        root_folder(f"{tmp_path}//a/./b/c/", mode)
    finally:
        os.umask(before)
    assert [bits(tmp_path / name) for name in ("a", "a/b", "a/b/c")] == [(0, 0, 0o755), (0, 0, 0o755), (0, 0, mode)]


def test_one_that_a_killed_hook_left_too_tight_is_opened(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir(mode=0o700)
    root_folder(str(tmp_path / "a"))
    assert bits(tmp_path / "a") == (0, 0, 0o755)


def linked(path: Path) -> None:
    path.symlink_to("/usr")


def others(path: Path) -> None:
    path.mkdir()
    os.chown(path, USER, GROUP)


def mode(bits: int) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        path.mkdir()
        path.chmod(bits)

    return make


@pytest.mark.parametrize("below", ["", "/b"])
@pytest.mark.parametrize(
    ("make", "why"),
    [
        (linked, "a link or a file stands where a folder must be"),
        (Path.touch, "a link or a file stands where a folder must be"),
        (others, "is user 1001's with mode 0755: it must be root's, for others read-only"),
        (mode(0o775), "is user 0's with mode 0775"),
        (mode(0o757), "is user 0's with mode 0757"),
    ],
)
def test_a_folder_is_no_better_than_what_is_above_it(
    below: str, make: Callable[[Path], None], why: str, tmp_path: Path
) -> None:
    make(tmp_path / "a")
    with pytest.raises(Trouble, match=f"^{tmp_path}/a:? {why}"):
        root_folder(f"{tmp_path}/a{below}")
    assert not (tmp_path / "a" / "b").exists()


def test_a_sticky_folder_may_stand_above_but_not_be_it(tmp_path: Path) -> None:
    mode(0o1777)(tmp_path / "a")
    root_folder(str(tmp_path / "a" / "b"))
    with pytest.raises(Trouble, match="mode 1777"):
        root_folder(str(tmp_path / "a"))


@pytest.mark.parametrize("path", ["a/b", "", "/run/../etc/x"])
def test_a_path_is_absolute_and_goes_down_only(path: str) -> None:
    with pytest.raises(Trouble, match="absolute"):
        root_folder(path)


# user_folder


def test_a_users_folder_is_the_users_alone(place: Path) -> None:
    before = os.umask(0o277)
    try:
        user_folder(str(place / "pipe"), USER, GROUP)
    finally:
        os.umask(before)
    assert bits(place / "pipe") == (USER, GROUP, 0o700)
    (place / "pipe" / "left").touch()
    user_folder(str(place / "pipe"), USER, GROUP)
    assert (place / "pipe" / "left").exists()


def test_one_that_was_made_and_not_given_away_is_given_away(place: Path) -> None:
    (place / "pipe").mkdir()
    user_folder(str(place / "pipe"), USER, GROUP)
    assert bits(place / "pipe") == (USER, GROUP, 0o700)


@pytest.mark.parametrize(
    ("make", "why"), [(others, "is user 1001's, not user 1005's"), (linked, "a link or"), (Path.touch, "a link or")]
)
def test_nobody_elses_is_given_away(make: Callable[[Path], None], why: str, place: Path) -> None:
    make(place / "pipe")
    before = bits(place / "pipe"), bits(Path("/usr"))
    with pytest.raises(Trouble, match=f"^{place}/pipe:? {why}"):
        user_folder(str(place / "pipe"), 1005, 1005)
    assert (bits(place / "pipe"), bits(Path("/usr"))) == before


def test_a_users_folder_needs_one_above_it(tmp_path: Path) -> None:
    with pytest.raises(Trouble, match="No such file"):
        user_folder(str(tmp_path / "no" / "pipe"), USER, GROUP)


# write_whole, abandoned, read_small


def test_a_file_is_replaced_and_never_changed(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        write_whole(str(tmp_path), "state", "old\n")
        with (tmp_path / "state").open() as reader:
            write_whole(str(tmp_path), "state", "new ä\n", 0o600)
            assert reader.read() == "old\n"
    finally:
        os.umask(before)
    assert read_small(str(tmp_path / "state")) == "new ä\n"
    assert bits(tmp_path / "state") == (0, 0, 0o600)
    assert names(tmp_path) == ["state"]


def test_a_link_in_its_place_is_replaced_not_followed(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("kept")
    (tmp_path / "state").symlink_to("other")
    write_whole(str(tmp_path), "state", "new")
    assert (tmp_path / "other").read_text() == "kept"
    assert (tmp_path / "state").read_text() == "new"
    assert not (tmp_path / "state").is_symlink()


def test_on_a_full_disk_the_old_text_stays_and_nothing_else(small: Path) -> None:
    write_whole(str(small), "state", "old")
    with pytest.raises(OSError, match="No space left") as raised:
        write_whole(str(small), "state", "x" * 100_000)
    assert (raised.value.errno, raised.value.filename) == (errno.ENOSPC, f"{small}/state")
    assert names(small) == ["state"]
    assert (small / "state").read_text() == "old"


def test_what_a_killed_writer_leaves_is_known_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pid = os.fork()
    if pid == 0:
        try:
            monkeypatch.setattr(os, "rename", lambda *_: os.kill(os.getpid(), signal.SIGKILL))
            write_whole(str(tmp_path), "state.json", "x")
        finally:
            os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL
    (left,) = names(tmp_path)
    assert abandoned(left)


def test_one_that_is_being_written_is_not_abandoned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    rename = os.rename

    def look(old: str, new: str) -> None:
        seen.extend(names(tmp_path))
        rename(old, new)

    monkeypatch.setattr(os, "rename", look)
    write_whole(str(tmp_path), "12+13", "x")
    assert len(seen) == 1
    assert not abandoned(seen[0])


@pytest.mark.parametrize(
    "name", ["12", "state.json", ".state.json", "..1.2", "a.b.1.2", ".1.2", "", ".", ".x.-1.2", ".x.1.²"]
)
def test_other_names_are_not_of_its_making(name: str) -> None:
    assert not abandoned(name)


def owned(path: Path) -> None:
    path.write_text("x")
    os.chown(path, USER, 0)


def open_to(bits: int) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        path.write_text("x")
        path.chmod(bits)

    return make


def listening(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (linked, "is a link or a socket, and no file"),
        (listening, "is a link or a socket, and no file"),
        (os.mkfifo, "is no file"),
        (Path.mkdir, "is no file"),
        (owned, "is user 1001's with mode 0644: it must be root's, for others read-only"),
        (open_to(0o664), "is user 0's with mode 0664"),
        (open_to(0o646), "is user 0's with mode 0646"),
        (lambda path: path.write_bytes(b"\xff"), "is not UTF-8"),
        (lambda path: path.write_bytes(b"x" * 11), "is longer than 10 bytes"),
    ],
)
def test_what_is_not_believed(make: Callable[[Path], object], why: str, tmp_path: Path) -> None:
    make(tmp_path / "file")
    with no_hang(), pytest.raises(Trouble, match=f"^{tmp_path}/file {why}"):
        read_small(str(tmp_path / "file"), 10)


@pytest.mark.parametrize("text", ["", "0123456789", "ä\n\r\n"])
def test_what_is_believed_is_given_as_it_is(text: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(text.encode())
    assert read_small(str(tmp_path / "file"), 10) == text


def test_what_is_not_there_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_small(str(tmp_path / "file"))


# remove_tree


def planted(top: Path, outside: Path) -> None:
    """All that a user can put into a folder, and what root may have; `outside` must not be touched."""
    below = top / "a" / "b"
    below.mkdir(parents=True)
    for number, where in enumerate((top, top / "a", below)):
        (where / "folder").symlink_to(outside)
        (where / "file").symlink_to(outside / "kept")
        (where / "self").symlink_to("self")
        (where / "up").symlink_to("..")
        os.link(outside / "kept", where / "hard")
        os.mkfifo(where / "fifo")
        listening(where / "socket")
        os.mknod(where / "device", stat.S_IFCHR | 0o666, os.makedev(1, 3))
        (where / ("n" * 255)).touch()
        Path(os.fsdecode(os.fsencode(where) + b"/\xff\n\t \\ " + str(number).encode())).mkdir()
        (where / "-rf *").touch()
        (where / "locked" / "in").mkdir(parents=True)
        (where / "locked").chmod(0)
        (where / "many").mkdir()
        for child in range(100):
            (where / "many" / str(child)).mkdir()
    for path in (top, *top.rglob("*")):
        os.chown(path, USER, GROUP, follow_symlinks=False)


def test_all_of_it_goes_and_nothing_else(place: Path) -> None:
    outside = place / "outside"
    outside.mkdir()
    (outside / "kept").write_text("kept")
    planted(place / "top", outside)
    os.chown(outside / "kept", 0, 0)
    before = bits(outside), bits(outside / "kept")
    descriptors = len(names("/proc/self/fd"))
    with no_hang():
        remove_tree(str(place / "top"), soon())
    assert names(place) == ["outside"]
    assert (outside / "kept").read_text() == "kept"
    assert (bits(outside), bits(outside / "kept")) == before
    assert len(names("/proc/self/fd")) == descriptors


@pytest.mark.parametrize("make", [Path.touch, linked, os.mkfifo, listening, Path.mkdir])
def test_whatever_has_its_name_goes(make: Callable[[Path], object], place: Path) -> None:
    make(place / "top")
    remove_tree(str(place / "top"), soon())
    assert not os.path.lexists(place / "top")
    assert Path("/usr/bin").exists()


@pytest.mark.parametrize("path", ["top", "no/such/top"])
def test_what_is_not_there_is_removed(path: str, place: Path) -> None:
    remove_tree(str(place / path), soon())


def test_a_link_above_it_is_not_followed(place: Path) -> None:
    (place / "real" / "top").mkdir(parents=True)
    (place / "link").symlink_to("real")
    with pytest.raises(Trouble, match=f"^{place}/link: "):
        remove_tree(str(place / "link" / "top"), soon())
    assert (place / "real" / "top").exists()


@pytest.mark.parametrize(("where", "depth"), [("/run", soak(300, 3_000)), ("/dev/shm", soak(5_000, 100_000))])
def test_no_depth_is_too_deep(where: str, depth: int) -> None:
    with tempfile.TemporaryDirectory(prefix="hgpu-", dir=where) as made:
        descriptor = os.open(made, os.O_RDONLY)
        os.mkdir("top", dir_fd=descriptor)
        for _ in range(depth):
            below = os.open("top" if _ == 0 else "d", os.O_RDONLY, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = below
            os.mkdir("d", dir_fd=descriptor)
            os.close(os.open("f", os.O_CREAT | os.O_WRONLY, dir_fd=descriptor))
        os.close(descriptor)
        remove_tree(f"{made}/top", soon())
        assert names(made) == []


def test_a_removal_ends_in_time_and_goes_on_later(place: Path) -> None:
    (place / "top").mkdir()
    for number in range(soak(3_000, 300_000)):
        os.close(os.open(place / "top" / str(number), os.O_CREAT | os.O_WRONLY))
    (place / "top").chmod(0o777)
    os.chown(place / "top", USER, GROUP)
    with pytest.raises(Trouble, match=r"top: not removed in time, \d+ entries done; the next sweep goes on"):
        remove_tree(str(place / "top"), time.monotonic())
    assert bits(place / "top") == (0, 0, 0o700)
    remove_tree(str(place / "top"), soon())
    assert names(place) == []


def test_names_that_it_gives_itself_are_removed_below_as_well(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who holds a folder that was moved up can read its new name, and use it in another that is still his."""
    monkeypatch.setattr(os, "urandom", bytes)
    prefix = bytes(12).hex()
    planted = [f"a/{prefix}-0", f"b/{prefix}-2/x", f"a/b/{prefix}-5", f"c/{prefix}-1"]
    for name in planted:
        (place / "top" / name).mkdir(parents=True)
    with no_hang():
        remove_tree(str(place / "top"), soon(5))
    assert names(place) == []


@pytest.mark.parametrize("where", ["top", "top/a", "top/a/b", "top/a/file"])
@pytest.mark.parametrize("times", [1, 2])
def test_what_is_mounted_is_unmounted_not_emptied(where: str, times: int, place: Path) -> None:
    outside = place / "outside"
    (outside / "deep").mkdir(parents=True)
    (outside / "deep" / "kept").write_text("kept")
    (place / "top" / "a" / "b" / "c").mkdir(parents=True)
    (place / "top" / "a" / "file").touch()
    source = outside / "deep" / "kept" if where.endswith("file") else outside
    for _ in range(times):
        subprocess.run(["mount", "--bind", str(source), str(place / where)], check=True)
    remove_tree(str(place / "top"), soon())
    assert names(place) == ["outside"]
    assert (outside / "deep" / "kept").read_text() == "kept"
    assert str(place) not in Path("/proc/self/mountinfo").read_text()


def test_what_is_immutable_is_named_as_such(place: Path) -> None:
    (place / "top").mkdir()
    (place / "top" / "file").touch()
    if subprocess.run(["chattr", "+i", str(place / "top" / "file")], capture_output=True).returncode != 0:
        lacking("this file system has no immutable files")
    try:
        with pytest.raises(Trouble, match=r"top can't be removed: Operation not permitted \(see lsattr"):
            remove_tree(str(place / "top"), soon())
    finally:
        subprocess.run(["chattr", "-i", str(place / "top" / "file")], check=True)


def test_a_read_only_file_system_is_trouble(small: Path) -> None:
    (small / "top" / "a").mkdir(parents=True)
    subprocess.run(["mount", "-o", "remount,ro", str(small)], check=True)
    with pytest.raises(Trouble, match="top can't be removed: Read-only file system"):
        remove_tree(str(small / "top"), soon())


def restless(top: Path, outside: Path, seed: int) -> Callable[[], None]:
    """A user's life in a tree: making, moving and linking whatever can be, from descriptors held since before."""

    def life() -> None:
        chance = random.Random(seed)
        held = [os.open(path, os.O_RDONLY) for path in (top, top / "a", top / "b")]
        while True:
            one, other = chance.choice(held), chance.choice(held)
            name, new = str(chance.randrange(5)), str(chance.randrange(5))
            action = chance.randrange(5)
            try:
                if action == 0:
                    os.mkdir(name, dir_fd=one)
                    held[chance.randrange(len(held))] = os.open(name, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=one)
                elif action == 1:
                    os.symlink(outside, name, dir_fd=one)
                elif action == 2:
                    os.rename(name, new, src_dir_fd=one, dst_dir_fd=other)
                elif action == 3:
                    os.mkfifo(name, dir_fd=one)
                else:
                    os.rmdir(name, dir_fd=one)
            except OSError:
                continue

    return life


@pytest.mark.parametrize("seed", range(soak(8, 200)))
def test_its_owner_may_do_what_he_likes_meanwhile(seed: int, place: Path) -> None:
    outside, top = place / "outside", place / "top"
    outside.mkdir()
    (outside / "kept").write_text("kept")
    outside.chmod(0o777)
    for path in (top, top / "a", top / "b"):
        path.mkdir()
        path.chmod(0o777)
        os.chown(path, USER, GROUP)
    users = [as_user(restless(top, outside, 2 * seed + number)) for number in range(2)]
    try:
        time.sleep(0.02)
        with no_hang():
            remove_tree(str(top), soon())
        assert names(place) == ["outside"]
        assert names(outside) == ["kept"]
        assert bits(outside) == (0, 0, 0o777)
    finally:
        for pid in users:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def test_every_error_is_trouble(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    (place / "top" / "a").mkdir(parents=True)
    monkeypatch.setattr(os, "fchown", fail)
    with pytest.raises(Trouble, match="top can't be removed: Input/output error"):
        remove_tree(str(place / "top"), soon())
    with pytest.raises(Trouble, match="pipe: Input/output error"):
        user_folder(str(place / "pipe"), USER, GROUP)
