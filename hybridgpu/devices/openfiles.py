"""Who holds a card by an open device file, whatever NVML says: by /proc, for every process there is. Judges nothing.

A device file is known by its device number, not by its path: a container has paths of its own. It may take as long as
the slowest file system that a process has a file on: whoever calls gives a time limit (timelimit.py).
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from hybridgpu.devices.port import Unread

_PROC = Path("/proc")
_NO_FILE = re.compile(r"[a-z_]+:")
"""How /proc shows what is no file: `socket:[17]`, `anon_inode:[eventpoll]`; a path begins with `/`."""

_JOB = re.compile(r"/job_([0-9]+)(?:/|$)", re.MULTILINE)
_UNIT = re.compile(r"/([^/\n]+\.(?:service|scope))(?:/|$)", re.MULTILINE)
_MOST = 80
"""Characters of a command that are shown."""

Identity = tuple[int, int, int]
"""What makes two paths one file: kind, and the device it is; of what is no device, where it lies."""


@dataclass(frozen=True, slots=True)
class Process:
    """A process for people: who runs it, what it was started as, and where it belongs (`job 12 of Slurm`, a unit)."""

    pid: int
    uid: int | None
    command: str
    belongs: str
    groups: tuple[str, ...] = ()

    def __str__(self) -> str:
        of = f", {self.belongs}" if self.belongs else ""
        who = "unknown" if self.uid is None else str(self.uid)
        return f"process {self.pid} ({self.command}{of}) of uid {who}"


def identity(path: Path) -> Identity | None:
    """The identity of a device file; None where there is none."""
    try:
        return _identity(path.stat())
    except OSError:
        return None


def open_files(wanted: Mapping[Identity, int], proc: Path = _PROC) -> tuple[tuple[int, int], ...] | Unread:
    """Each (card, pid) of a process that has a file of that card open; `wanted` has the cards by their files.

    This process is left out. Unread where a process may not be looked at, for then nothing is known of it.
    """
    found: list[tuple[int, int]] = []
    for pid in _pids(proc):
        try:
            held = {wanted[seen] for seen in _seen(proc / str(pid) / "fd") if seen in wanted}
        except PermissionError:
            return Unread(f"/proc/{pid}/fd", "Permission denied")
        except OSError:  # it has ended
            continue
        found += [(card, pid) for card in sorted(held)]
    return tuple(sorted(found))


def process(pid: int, proc: Path = _PROC) -> Process:
    """What there is to know of a process; one that has ended, or is of another pid namespace, is `unknown`."""
    folder = proc / str(pid)
    try:
        uid = folder.stat().st_uid
        words = (folder / "cmdline").read_bytes().replace(b"\0", b" ").strip() or (folder / "comm").read_bytes()
        groups = tuple(line.split(":", 2)[2] for line in _text(folder / "cgroup").splitlines() if line.count(":") > 1)
    except OSError:
        return Process(pid, None, "unknown", "")
    command = " ".join(words.decode(errors="replace").split())
    return Process(pid, uid, command if len(command) <= _MOST else f"{command[:_MOST]}...", _belongs(groups), groups)


def _belongs(groups: Iterable[str]) -> str:
    """By the names of control groups that slurmd, kubelet and systemd give (S:src/plugins/cgroup/common; kubelet)."""
    text = "\n".join(groups)
    job = _JOB.search(text)
    if job:
        return f"job {job[1]} of Slurm"
    if "kubepods" in text:
        return "a pod of Kubernetes"
    units = _UNIT.findall(text)
    return units[-1] if units else ""


def _pids(proc: Path) -> Iterator[int]:
    own = os.getpid()
    for entry in os.scandir(proc):
        if entry.name.isdecimal() and int(entry.name) != own:
            yield int(entry.name)


def _seen(folder: Path) -> Iterator[Identity]:
    """The files that a process has open. What is surely none is not asked further: that may take long."""
    for entry in os.scandir(folder):
        try:
            if _NO_FILE.match(os.readlink(entry.path)):  # noqa: PTH115 - a Path each costs
                continue
        except (FileNotFoundError, ProcessLookupError):
            continue
        try:
            yield _identity(os.stat(entry.path))  # noqa: PTH116
        except OSError:  # of a file system that shows it to its user alone, or does not answer: no device file
            continue


def _identity(status: os.stat_result) -> Identity:
    kind = stat.S_IFMT(status.st_mode)
    if stat.S_ISCHR(kind):
        return (kind, status.st_rdev, 0)
    return (kind, status.st_dev, status.st_ino)


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")
