"""A cgroup for each daemon, `hybridgpu/NAME` in every hierarchy, so that neither slurmd's nor a job's holds it.

With PrologFlags=RunInJob a hook runs in the job's cgroups, whose devices and freezer the daemon would share with later
holders (run on 24.11). Whatever of this a machine does not allow is left undone: a daemon runs without as well. Only
cgroup file systems are looked into. Sources: cgroups(7), the kernel's admin-guide/cgroup-v1/cpusets.rst, cgroup-v2.rst.
"""

from __future__ import annotations

import errno
import os
import time

from hybridgpu.mps.trouble import Trouble

_MOUNTS = "/proc/self/mountinfo"
_OURS = "hybridgpu"
_PROCESSES = "cgroup.procs"
_CPUSET = ("cpuset.cpus", "cpuset.mems")
_ATTEMPTS = 10
"""How often a folder is made anew that another hook takes away as empty at the same moment."""

_BUSY_SECONDS = 1.0
"""How long an emptied cgroup may go on being busy: the kernel lets go of a process some time after it has ended."""

_FREEZERS = (
    ("freezer.state", "FROZEN", "THAWED", "freezer.state", "FROZEN"),
    ("cgroup.freeze", "1", "0", "cgroup.events", "frozen 1"),
)
"""v1 and v2: the file to write, what stops, what lets go, the file that tells, and what it says once all is frozen."""

_FREEZE_SECONDS = 1.0


def hierarchies() -> list[str]:
    """The folder of each hierarchy that is mounted here for writing: v1's one a controller, v2's one for all."""
    found: dict[str, str] = {}
    try:
        with open(_MOUNTS, "rb") as file:
            lines = file.read().splitlines()
    except OSError as error:
        raise Trouble(f"{_MOUNTS}: {error.strerror}") from None
    for line in lines:
        mount, _, source = line.partition(b" - ")
        kind, *rest = source.split(b" ")
        fields = mount.split(b" ")
        if kind in (b"cgroup", b"cgroup2") and not _read_only(fields[5]) and not _read_only(rest[-1]):
            device, path = fields[2].decode("ascii"), _unescaped(fields[4])
            if _is_device(path, device):
                found.setdefault(device, path)
    return list(found.values())


def enter(name: str, pid: int) -> list[str]:
    """Put a process into the cgroup of this name, in every hierarchy that lets us; gives the folders it is in.

    In a hierarchy that does not, it goes to the root. Where that cannot be either, it stays where it is.
    """
    joined = []
    for base in hierarchies():
        folder = _path(base, name)
        if _joined(base, folder, pid):
            joined.append(folder)
        else:
            _written(f"{base}/{_PROCESSES}", str(pid))
    return joined


def members(name: str) -> set[int]:
    """The processes in the cgroup of this name, in whichever hierarchy; those outside our pid namespace have none."""
    found: set[int] = set()
    for base in hierarchies():
        found |= {int(word) for word in _read(f"{_path(base, name)}/{_PROCESSES}").split()}
    return found - {0}


def names() -> set[str]:
    """The names that there is a cgroup for."""
    return {name for base in hierarchies() for name in _folders(f"{base}/{_OURS}")}


def empty(name: str) -> list[str]:
    """The folders of the cgroup of this name; none where a process is in one of them."""
    folders = [folder for base in hierarchies() if os.path.isdir(folder := _path(base, name))]
    return [] if members(name) else folders


class Frozen:
    """Within its block nothing in the cgroup of this name runs, where the kernel has a freezer, and so nothing forks.

    What is signalled meanwhile gets it at the end (v1), or at once (v2). Waits a second at most for what the kernel
    holds; a block that is cut off leaves it frozen, and the next one thaws it.
    """

    __slots__ = ("_folders",)

    def __init__(self, name: str) -> None:
        self._folders = [_path(base, name) for base in hierarchies()]

    def __enter__(self) -> None:
        end = time.monotonic() + _FREEZE_SECONDS
        for folder in self._folders:
            for file, stop, _, told, frozen in _FREEZERS:
                if os.path.exists(f"{folder}/{file}") and _written(f"{folder}/{file}", stop):
                    while frozen not in _read(f"{folder}/{told}") and time.monotonic() < end:
                        time.sleep(0.001)

    def __exit__(self, *_: object) -> None:
        for folder in self._folders:
            for file, _stop, go, _told, _frozen in _FREEZERS:
                if os.path.exists(f"{folder}/{file}"):
                    _written(f"{folder}/{file}", go)


def remove(name: str) -> None:
    """Remove the cgroup of this name, and `hybridgpu` above it with the last one; no error where there is none.

    Raises Trouble where processes are in it.
    """
    end = time.monotonic() + _BUSY_SECONDS
    for base in hierarchies():
        folder = _path(base, name)
        while (number := _removed(folder)) == errno.EBUSY and time.monotonic() < end:
            time.sleep(0.002)
        if number == errno.EBUSY:
            inside = ", ".join(str(pid) for pid in sorted(members(name))) or "none that is seen"
            raise Trouble(f"{folder} cannot be removed: processes in it: {inside}")
        if number not in (0, errno.ENOENT):
            raise Trouble(f"{folder} cannot be removed: {os.strerror(number)}")
        _removed(f"{base}/{_OURS}")


def _path(base: str, name: str) -> str:
    if name in ("", ".", "..") or "/" in name:
        raise Trouble(f"{name!r} is no name of a daemon")
    return f"{base}/{_OURS}/{name}"


def _read_only(options: bytes) -> bool:
    return b"ro" in options.split(b",")


def _unescaped(path: bytes) -> str:
    """A path as it is: the kernel writes blank, tab, line end and backslash as three octal digits."""
    first, *rest = path.split(b"\\")
    return os.fsdecode(first + b"".join(bytes([int(part[:3], 8)]) + part[3:] for part in rest))


def _is_device(path: str, device: str) -> bool:
    """Whether a mount is what is seen at its path: another one may lie upon it."""
    try:
        number = os.stat(path).st_dev
    except OSError:
        return False
    return f"{os.major(number)}:{os.minor(number)}" == device


def _joined(base: str, folder: str, pid: int) -> bool:
    """Put a process into a cgroup, made where it is missing; whether that is allowed."""
    for _ in range(_ATTEMPTS):
        if _made(base, folder) and _written(f"{folder}/{_PROCESSES}", str(pid)):
            return True
        if os.path.isdir(folder):
            return False
    return False


def _made(base: str, folder: str) -> bool:
    """Make a cgroup with `hybridgpu` above it, fit to be joined; False also where it was taken away meanwhile."""
    ours = f"{base}/{_OURS}"
    for path, above in ((ours, base), (folder, ours)):
        try:
            os.mkdir(path, 0o755)
        except FileExistsError:
            pass
        except OSError:
            return False
        if not _filled(path, above):
            return False
    return True


def _filled(folder: str, above: str) -> bool:
    """Let a cgroup of v1's cpuset use what the one above it may; made, it has nothing, and nothing can join it."""
    if os.path.exists(f"{folder}/cgroup.controllers"):  # v2, where nothing written means all
        return True
    wanted = {name: text for name in _CPUSET if (text := _read(f"{above}/{name}")).strip()}
    return all(_read(f"{folder}/{name}") == text or _written(f"{folder}/{name}", text) for name, text in wanted.items())


def _folders(path: str) -> list[str]:
    try:
        with os.scandir(path) as entries:
            return [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []


def _read(path: str) -> str:
    """A control file's text; empty where there is none."""
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def _written(path: str, text: str) -> bool:
    """Write a control file in one call, as the kernel wants it; whether it took it."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        os.write(descriptor, text.encode("ascii"))
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True


def _removed(folder: str) -> int:
    """Remove a cgroup; gives the error's number, 0 for none."""
    try:
        os.rmdir(folder)
    except OSError as error:
        return error.errno or errno.EIO
    return 0
