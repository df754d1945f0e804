"""Folders and files where root works beside users who mean harm: made, checked, written whole, read, removed.

Nothing here follows a symbolic link in the last place or waits for a file that is none. A user's folder is only ever
removed, never read, and its removal holds on to descriptors: whatever its owner renames meanwhile, nothing outside it
is touched.
"""

from __future__ import annotations

import errno
import os
import stat
import time

from hybridgpu.mps.process import Identity, alive, identify
from hybridgpu.mps.trouble import Trouble

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_WRITABLE_BY_OTHERS = 0o022
_LIMIT = 1024 * 1024
_ENTRIES_A_LOOK = 256
"""How many entries are removed between two looks at the clock."""

_UMOUNT_FLAGS = 2 | 8
"""MNT_DETACH | UMOUNT_NOFOLLOW (umount2(2))."""


def root_folder(path: str, mode: int = 0o755) -> None:
    """Make a folder of root's with what is missing above it, or see that it is one, and give it this mode.

    Raises Trouble where a part of the path is a link, another user's, or can be changed by others; a sticky folder
    may stand above, for nobody can take away what is root's in it.
    """
    if not path.startswith("/") or ".." in path.split("/"):
        raise Trouble(f"{path!r} is no absolute path without `..`")
    names = [name for name in path.split("/") if name not in ("", ".")]
    descriptor, above = os.open("/", _FOLDER), ""
    try:
        for number, name in enumerate(names, 1):
            above = f"{above}/{name}"
            last = number == len(names)
            below = _step(descriptor, name, above, mode if last else 0o755)
            os.close(descriptor)
            descriptor = below
            seen = os.fstat(descriptor)
            sticky = not last and seen.st_mode & stat.S_ISVTX
            if seen.st_uid != 0 or (seen.st_mode & _WRITABLE_BY_OTHERS and not sticky):
                owner, bits = seen.st_uid, stat.S_IMODE(seen.st_mode)
                raise Trouble(
                    f"{above} is user {owner}'s with mode {bits:04o}: it must be root's, for others read-only"
                )
        if names and stat.S_IMODE(os.fstat(descriptor).st_mode) != mode:
            os.fchmod(descriptor, mode)
    except OSError as error:
        raise Trouble(f"{above or '/'}: {error.strerror}") from None
    finally:
        os.close(descriptor)


def user_folder(path: str, uid: int, gid: int) -> None:
    """Make a user's own folder (0700) in one of root's, or take one that is the user's already. Raises Trouble."""
    try:
        try:
            os.mkdir(path, 0o700)
        except FileExistsError:
            pass
        descriptor = os.open(path, _FOLDER)
        try:
            owner = os.fstat(descriptor).st_uid
            if owner not in (0, uid):
                raise Trouble(f"{path} is user {owner}'s, not user {uid}'s")
            os.fchown(descriptor, uid, gid)
            os.fchmod(descriptor, 0o700)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise Trouble(f"{path}: {_said(error)}") from None


def write_whole(folder: str, name: str, text: str, mode: int = 0o644) -> None:
    """Write a file in a folder of root's, all of it or nothing: whoever reads it sees the old text or the new one.

    Raises OSError, and then has left no file of its own. What a killed writer leaves is known by `abandoned`.
    """
    me = identify(os.getpid())
    path, temporary = f"{folder}/{name}", f"{folder}/.{name}.{os.getpid()}.{me.start if me else 0}"
    try:
        os.unlink(temporary)  # an earlier one of our own, cut off by a signal
    except FileNotFoundError:
        pass
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
    try:
        try:
            rest = text.encode()
            while rest:
                rest = rest[os.write(descriptor, rest) :]
            os.fchmod(descriptor, mode)
        finally:
            os.close(descriptor)
        os.rename(temporary, path)
    except BaseException as problem:
        if isinstance(problem, OSError):
            problem.filename = path  # a write names no file, and a log line must
        os.unlink(temporary)
        raise


def abandoned(name: str) -> bool:
    """Whether this is the name of a temporary file of `write_whole` whose writer has ended."""
    parts = name.split(".")
    if (
        len(parts) < 4
        or parts[0]
        or not parts[1]
        or not all(part.isascii() and part.isdecimal() for part in parts[-2:])
    ):
        return False
    return not alive(Identity(int(parts[-2]), int(parts[-1])))


def read_small(path: str, limit: int = _LIMIT) -> str:
    """The text of a file that only root can have written.

    Raises OSError (FileNotFoundError where there is none), and Trouble where it is a link, no file, another user's,
    writable by others, longer than `limit` bytes, or not UTF-8.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):
            raise Trouble(f"{path} is a link or a socket, and no file") from None
        raise
    try:
        seen = os.fstat(descriptor)
        if not stat.S_ISREG(seen.st_mode):
            raise Trouble(f"{path} is no file")
        if seen.st_uid != 0 or seen.st_mode & _WRITABLE_BY_OTHERS:
            bits = stat.S_IMODE(seen.st_mode)
            raise Trouble(
                f"{path} is user {seen.st_uid}'s with mode {bits:04o}: it must be root's, for others read-only"
            )
        text = b""
        while piece := os.read(descriptor, limit + 1 - len(text)):
            text += piece
            if len(text) > limit:
                raise Trouble(f"{path} is longer than {limit} bytes")
        return text.decode()
    except UnicodeDecodeError:
        raise Trouble(f"{path} is not UTF-8") from None
    finally:
        os.close(descriptor)


def remove_tree(path: str, deadline: float) -> None:
    """Remove whatever is at `path` in a folder of root's, and all below it; no error where nothing is.

    Each folder becomes root's before it is looked into, so nothing is added to it any more; folders in it are moved up
    into the first one, so no depth is too deep. What is mounted there is unmounted, not emptied. `deadline` is of
    time.monotonic(); Trouble when it is over, or where something can't be removed.
    """
    parent, name = os.path.split(path)
    try:
        above = os.open(parent, _FOLDER)
    except FileNotFoundError:
        return
    except OSError as error:
        raise Trouble(f"{parent}: {error.strerror}") from None
    try:
        _Removal(path, deadline).remove(above, name)
    except OSError as error:
        raise Trouble(f"{path} can't be removed: {_said(error)}") from None
    finally:
        os.close(above)


def _step(above: int, name: str, path: str, mode: int) -> int:
    """The folder `name` below an open one, made with this mode where it is missing; Trouble where it is no folder."""
    try:
        try:
            return os.open(name, _FOLDER, dir_fd=above)
        except FileNotFoundError:
            try:
                os.mkdir(name, 0o700, dir_fd=above)
            except FileExistsError:  # another hook was quicker
                return os.open(name, _FOLDER, dir_fd=above)
            descriptor = os.open(name, _FOLDER, dir_fd=above)
            os.fchmod(descriptor, mode)
            return descriptor
    except OSError as error:
        raise Trouble(f"{path}: {_said(error)}") from None


class _Removal:
    """One removal. Folders below the first one, `top`, are its entries PREFIX-0, -1, ...: those from `done` on wait."""

    def __init__(self, path: str, deadline: float) -> None:
        self.path, self.deadline = path, deadline
        self.prefix = os.urandom(12).hex()
        self.top = -1
        self.done = self.moved = self.steps = 0

    def remove(self, above: int, name: str) -> None:
        """Remove an entry of the folder `above`."""
        if _unlinked(above, name):
            return
        while not _gone(above, name):  # first of all, for this tells a folder from one that is mounted on
            self._tick()
            self.top = _taken(above, name)
            if self.top < 0:
                continue
            try:
                self._gather(self.top)
                while self.done < self.moved:
                    self._empty(f"{self.prefix}-{self.done}")
                    self.done += 1
            finally:
                os.close(self.top)

    def _empty(self, name: str) -> None:
        """Remove a folder of `top`, once its folders are moved up."""
        while not _gone(self.top, name):
            self._tick()
            descriptor = _taken(self.top, name)
            if descriptor >= 0:
                try:
                    self._gather(descriptor)
                finally:
                    os.close(descriptor)

    def _gather(self, descriptor: int) -> None:
        """Unlink all entries of a folder that are no folders, and move up those that are."""
        with os.scandir(descriptor) as entries:
            for entry in entries:
                self._tick()
                if not entry.is_dir(follow_symlinks=False) and _unlinked(descriptor, entry.name):
                    continue
                if descriptor == self.top and entry.name.startswith(self.prefix):
                    continue
                if _moved(descriptor, entry.name, self.top, f"{self.prefix}-{self.moved}"):
                    self.moved += 1

    def _tick(self) -> None:
        self.steps += 1
        if self.steps % _ENTRIES_A_LOOK == 0 and time.monotonic() > self.deadline:
            raise Trouble(f"{self.path}: not removed in time, {self.steps} entries done; the next sweep goes on")


def _unlinked(folder: int, name: str) -> bool:
    """Remove an entry that is no folder; False where it is one."""
    try:
        _past_mount(os.unlink, folder, name)
    except FileNotFoundError:
        pass
    except IsADirectoryError:
        return False
    return True


def _gone(folder: int, name: str) -> bool:
    """Remove an empty folder; False where it is not empty."""
    try:
        _past_mount(os.rmdir, folder, name)
    except FileNotFoundError:
        pass
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
            return False
        raise
    return True


def _moved(folder: int, name: str, top: int, new: str) -> bool:
    """Move an entry up into `top`; False where it is gone."""

    def rename(name: str, *, dir_fd: int) -> None:
        os.rename(name, new, src_dir_fd=dir_fd, dst_dir_fd=top)

    try:
        _past_mount(rename, folder, name)
    except FileNotFoundError:
        return False
    return True


def _taken(folder: int, name: str) -> int:
    """A folder opened and made root's alone; -1 where it is gone, or something was mounted on it just now."""
    try:
        descriptor = os.open(name, _FOLDER | os.O_NONBLOCK, dir_fd=folder)
    except FileNotFoundError:
        return -1
    try:
        if os.fstat(descriptor).st_dev == os.fstat(folder).st_dev:
            os.fchown(descriptor, 0, 0)
            os.fchmod(descriptor, 0o700)
            return descriptor
    except BaseException:
        os.close(descriptor)
        raise
    os.close(descriptor)
    return -1


def _past_mount(remove: Callable[..., None], folder: int, name: str) -> None:
    """Do this to an entry; where something is mounted on it, unmount that first, however much lies there."""
    while True:
        try:
            return remove(name, dir_fd=folder)
        except OSError as error:
            if error.errno != errno.EBUSY or not _unmounted(f"/proc/self/fd/{folder}/{name}"):
                raise


def _unmounted(path: str) -> bool:
    import ctypes

    umount = ctypes.CDLL(None, use_errno=True).umount2
    return int(umount(ctypes.c_char_p(os.fsencode(path)), ctypes.c_int(_UMOUNT_FLAGS))) == 0


def _said(error: OSError) -> str:
    """An error for a person. A name in it may be anything a user thought of, so it is left out."""
    if error.errno in (errno.ELOOP, errno.ENOTDIR):
        return "a link or a file stands where a folder must be"
    if error.errno == errno.EPERM:
        return f"{error.strerror} (see lsattr for an immutable file)"
    return error.strerror or str(error.errno)
