"""/run/hybridgpu, what `node apply` keeps there: the lock by which no two overlap, and which clients it has stopped.

Whoever may write there says what root starts: so it is taken only where it is our own, no link, and nobody else may
write. All of it is gone with the next boot.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from hybridgpu.devices.systemd import UNIT_NAME
from hybridgpu.files.tree import replace_file

LOCK, STOPPED, DEVICES = "apply.lock", "stopped.json", "devices.json"
_MOST = 1 << 16


@dataclass(frozen=True, slots=True)
class RunFolder:
    """The folder, which is there and is ours."""

    path: Path

    @classmethod
    def at(cls, path: Path) -> RunFolder:
        """The folder at a path, made where it is missing. Raises OSError, with the path, where it is not ours alone."""
        if not os.path.lexists(path):
            path.mkdir(mode=0o755, parents=True, exist_ok=True)
            path.chmod(0o755)
        _folder(path)
        _ours(path.lstat(), path, stat.S_ISDIR)
        return cls(path)

    def check(self) -> None:
        """Raises OSError where the DeviceMap could not be taken away or written: seen before anything is changed."""
        path = self.path / DEVICES
        if os.path.lexists(self.path):
            _folder(self.path)
        if path.exists() and not path.is_file():
            raise OSError(errno.EEXIST, "this is no ordinary file, and is not replaced", str(path))
        if self.path.exists() and not os.access(self.path, os.W_OK | os.X_OK):
            raise OSError(errno.EACCES, "this folder may not be written", str(self.path))

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Holds the lock. Raises OSError, with the process that has it, where another holds it."""
        path = self.path / LOCK
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, 0o600)
        with os.fdopen(descriptor, "r+b", buffering=0) as file:
            _ours(os.fstat(file.fileno()), path, stat.S_ISREG)
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as busy:
                pid = file.read(20).decode(errors="replace").strip()
                other = f" (process {pid})" if pid.isdecimal() else ""
                raise OSError(busy.errno, f"another `node apply` is at work{other}", str(path)) from None
            try:
                file.truncate(0)
                file.write(f"{os.getpid()}\n".encode())
            except OSError as error:
                raise OSError(error.errno, error.strerror, str(path)) from None
            yield

    def stopped(self, boot_id: str) -> tuple[str, ...]:
        """The units that were stopped since this boot and not yet started again, in the order of stopping.

        Raises OSError where the file is not as we write it: what to start must then be seen to by a person.
        """
        path = self.path / STOPPED
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
        except FileNotFoundError:
            return ()
        with os.fdopen(descriptor, "rb") as file:
            _ours(os.fstat(file.fileno()), path, stat.S_ISREG)
            content = file.read(_MOST)
        units = _units(content, boot_id)
        if units is None:
            why = "it does not say which clients were stopped: see that they run, then remove it"
            raise OSError(errno.EINVAL, why, str(path))
        return units

    def write_stopped(self, units: Sequence[str], boot_id: str) -> None:
        """Notes the units, on disk when this returns; without any the file goes. Raises OSError."""
        path = self.path / STOPPED
        if not units:
            path.unlink(missing_ok=True)
            return
        record = {"apiVersion": "hybridgpu/v1", "kind": "StoppedClients", "boot_id": boot_id, "units": list(units)}
        replace_file(path, (json.dumps(record) + "\n").encode(), sync=True, keep=False)


def _units(content: bytes, boot_id: str) -> tuple[str, ...] | None:
    """The units in the file, none of another boot's; None where it is no such file."""
    try:
        record = json.loads(content)
    except (ValueError, RecursionError):
        return None
    if not isinstance(record, dict) or record.get("kind") != "StoppedClients":
        return None
    units = record.get("units")
    if not isinstance(units, list) or not all(isinstance(u, str) and UNIT_NAME.fullmatch(u) for u in units):
        return None
    return tuple(units) if record.get("boot_id") == boot_id else ()


def _folder(path: Path) -> None:
    if not stat.S_ISDIR(path.lstat().st_mode):
        raise OSError(errno.EEXIST, "this is no folder, and is to be one of root's own", str(path))


def _ours(status: os.stat_result, path: Path, is_kind: Callable[[int], bool]) -> None:
    if not is_kind(status.st_mode):
        raise OSError(errno.EEXIST, "this is something else than it must be: remove it", str(path))
    if status.st_uid != os.geteuid() or status.st_mode & 0o022:
        why = f"it may be written by others than uid {os.geteuid()}, who would say what is started: chown and chmod it"
        raise OSError(errno.EPERM, why, str(path))
