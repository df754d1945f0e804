"""A lock on a folder, taken on the folder itself: the kernel drops it when its holder dies, however it dies.

No lock file is left behind, and none can be planted: the folder is root's. A descriptor with the lock is never
inherited by a program.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time

from hybridgpu.mps.trouble import Busy, Trouble

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

_PAUSE = 0.005
_MODE = 0o711
"""Without r for others: who may open a folder may lock it, and any user could keep hooks waiting, and drain the node.

Set under the lock as well: a umask, and a hook that died after mkdir, leave another."""


class Locked:
    """Holds the lock of the folder at `path` within a `with` block; makes the folder (0711) unless told not to.

    `gone` is set where there is no such folder and none was to be made: then nothing is locked. Raises Busy when
    somebody else keeps it for longer than `seconds`; Trouble where the folder is none, or is not ours.
    """

    def __init__(self, path: str, seconds: float, create: bool = True) -> None:
        self.path, self.seconds, self.create = path, seconds, create
        self.gone = False
        self._descriptor = -1

    def __enter__(self) -> Self:
        end = time.monotonic() + self.seconds
        while not self._take():
            if self.gone:
                return self
            if time.monotonic() >= end:
                raise Busy(f"{self.path}: another hook has it locked for {self.seconds:g} s")
            time.sleep(_PAUSE)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def _take(self) -> bool:
        """One attempt. A folder that was removed, or made anew, while we waited is not the one that was locked."""
        try:
            if self.create:
                _make(self.path)
            descriptor = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            self.gone = not self.create
            return False
        except OSError as error:
            raise Trouble(f"{self.path}: {error.strerror}") from None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            held, there = os.fstat(descriptor), os.stat(self.path, follow_symlinks=False)
        except OSError as error:
            os.close(descriptor)
            if error.errno in (errno.EWOULDBLOCK, errno.ENOENT, errno.EINTR):
                return False
            raise Trouble(f"{self.path}: {error.strerror}") from None
        if (held.st_dev, held.st_ino) != (there.st_dev, there.st_ino):
            os.close(descriptor)
            return False
        if held.st_uid != os.geteuid() or held.st_mode & 0o022:
            os.close(descriptor)
            raise Trouble(f"{self.path}: belongs to user {held.st_uid}, mode {held.st_mode & 0o7777:o}; must be root's")
        if self.create and held.st_mode & 0o777 != _MODE:
            os.fchmod(descriptor, _MODE)
        self._descriptor = descriptor
        return True


def _make(path: str) -> None:
    try:
        os.mkdir(path, _MODE)
    except FileExistsError:
        return
