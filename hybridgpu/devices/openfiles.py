"""Who holds a card by an open device file, whatever NVML says: by /proc, for every process there is. Judges nothing.

A device file is known by its device number, not by its path: a container has paths of its own, and the host's may be
gone. It may take as long as the slowest file system that a process has a file on, so it is done within a time limit.
"""

from __future__ import annotations

import ctypes
import os
import platform
import re
import stat
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hybridgpu.devices.effect import Card
from hybridgpu.devices.port import Holder, Unread, Use
from hybridgpu.devices.timelimit import Progress, TooLate, within
from hybridgpu.model.finding import Finding, Rule, Severity

_PROC = Path("/proc")
_INITIAL = 0xEFFFFFFC
"""The inode of the pid namespace in which the machine booted (linux/proc_ns.h PROC_PID_INIT_INO): the host's."""

_MAJOR = 195
"""Of /dev/nvidiaN (Linux, admin-guide/devices.txt; open-gpu-kernel-modules nv.h NV_MAJOR_DEVICE_NUMBER)."""

_KCMP = {"x86_64": 312, "aarch64": 272}.get(platform.machine())
_KCMP_FILES = 2
"""The call kcmp(2) by its number, and what asks it whether two tasks share their table of files."""

_NO_FILE = re.compile(r"[a-z_]+:")
"""How /proc shows what is no file: `socket:[17]`, `anon_inode:[eventpoll]`; a path begins with `/`."""

_JOB = re.compile(r"/job_([0-9]+)(?:/|$)", re.MULTILINE)
_DAEMON = re.compile(r"^/hybridgpu/([^/\n]+)", re.MULTILINE)
_UNIT = re.compile(r"/([^/\n]+\.(?:service|scope))(?:/|$)", re.MULTILINE)
_FRESH = 1.0
"""Seconds for which an answer is good: a card takes some changes in that time, each of which asks."""

_UID = re.compile(r"^Uid:\t([0-9]+)", re.MULTILINE)
_NAMED = 5
_DEEPEST = 100
"""More than any process is below the first; a pid that was given again while we looked could lead round and round."""

_LIBC = ctypes.CDLL(None)
_MOST = 80
"""Characters of a command that are shown."""

UNSEEN = Rule(
    "device-process-unseen",
    Severity.WARNING,
    "A process of root's may not be looked at, not by root either: if it holds a card, only the driver knows.",
    "If the driver then says that a card is in use, and nobody else holds it, stop that process.",
    "ptrace(2), access mode checking",
)

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


@dataclass(frozen=True, slots=True)
class Held:
    """Who has a file of each card open, by the card's index, and root's processes that root may not see."""

    holders: tuple[tuple[int, Holder], ...]
    unseen: tuple[int, ...]


class OpenFiles:
    """Who has the device file of each card open, below a driver's `dev` folder; asked anew once a second at most.

    This process and its children are left out. A card's file is known by the number that the driver gives it, and by
    what is at its path.
    """

    def __init__(self, cards: Sequence[Card], dev: Path, seconds: float, proc: Path = _PROC) -> None:
        names = ((card, identity(dev / f"dev/nvidia{card.minor}")) for card in cards)
        numbers = {(stat.S_IFCHR, os.makedev(_MAJOR, card.minor), 0): card.index for card in cards}
        self._wanted = numbers | {file: card.index for card, file in names if file}
        self._seconds, self._proc = seconds, proc
        self._last: Held | Unread = Held((), ())
        self._until = 0.0

    def __call__(self, card: Card) -> tuple[Holder, ...] | Unread:
        """The card's. Unread where a process may not be looked at, or does not let itself be looked at in time."""
        if time.monotonic() >= self._until:
            self._last = self._look()
            self._until = time.monotonic() + _FRESH
        if isinstance(self._last, Unread):
            return self._last
        return tuple(holder for index, holder in self._last.holders if index == card.index)

    def _look(self) -> Held | Unread:
        wanted, mine, proc, progress = self._wanted, os.getpid(), self._proc, Progress()
        try:
            return within(self._seconds, lambda: open_files(wanted, mine, proc, progress))
        except TooLate:
            hangs = "its file system hangs (FUSE, NFS): mend it, or end that process"
            return Unread(str(progress) or str(proc), f"nothing within {self._seconds:g} s; {hangs}")

    def forget(self) -> None:
        """Lets the next question be asked anew: something was done about who holds a card."""
        self._until = 0.0

    def findings(self) -> tuple[Finding, ...]:
        """What to say of the last look."""
        if isinstance(self._last, Unread) or not self._last.unseen:
            return ()
        names = ", ".join(str(process(pid)) for pid in self._last.unseen[:_NAMED])
        more = f" and {len(self._last.unseen) - _NAMED} more" if len(self._last.unseen) > _NAMED else ""
        return (Finding(UNSEEN, None, f"which files it has open is not known: {names}{more}"),)


def open_files(
    wanted: Mapping[Identity, int], mine: int, proc: Path = _PROC, progress: Progress | None = None
) -> Held | Unread:
    """Who has a file of a card open; `wanted` has the cards by their files. The process `mine` and its children are
    left out. `progress` is told of each file before it is looked at.

    A service may be kept from root's own eyes, and nobody can help that; where one of another user is, we are not root
    enough, and nothing is known. Nor is it in a pid namespace that is not the host's, which does not show all there is.
    """
    if not _shows_all(proc):
        return Unread(str(proc), "the processes of another pid namespace than the host's; run it in that of the host")
    progress = progress or Progress()
    found: list[tuple[int, Holder]] = []
    unseen: list[int] = []
    for pid in _pids(proc):
        folder = proc / str(pid)
        try:
            if mine not in (pid, _parent(folder)):
                held = {wanted[seen] for seen in _seen(folder, pid, progress) if seen in wanted}
                up = _ancestors(proc, pid) if held else ()
                found += [(card, Holder(pid, Use.OPEN_FILE, ancestors=up)) for card in held]
        except PermissionError:
            if os.geteuid() or _uid(folder):
                return Unread(f"/proc/{pid}/fd", "Permission denied")
            unseen.append(pid)
        except OSError:  # it has ended
            continue
    return Held(tuple(sorted(found, key=lambda pair: (pair[0], pair[1].pid))), tuple(unseen))


def _shows_all(proc: Path) -> bool:
    """Whether a /proc is that of the host's pid namespace: we are in it, or the first process is, which /proc shows.

    Where we are in the host's and /proc is another's, there is no /proc/self.
    """
    for who in ("self", "1"):
        try:
            if (proc / who / "ns/pid").stat().st_ino == _INITIAL:
                return True
        except OSError:
            continue
    return False


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
    """By the names of control groups that slurmd, kubelet, systemd and our hooks give (S:src/plugins/cgroup/common;
    kubelet; hybridgpu/mps/cgroup.py).
    """
    text = "\n".join(groups)
    job = _JOB.search(text)
    if job:
        return f"job {job[1]} of Slurm"
    if "kubepods" in text:
        return "a pod of Kubernetes"
    daemon = _DAEMON.search(text)
    if daemon:
        return f"daemon {daemon[1]} of Slurm's jobs"
    units = _UNIT.findall(text)
    return units[-1] if units else ""


def _pids(proc: Path) -> Iterator[int]:
    return (int(name) for name in os.listdir(proc) if name.isdecimal())  # noqa: PTH208


def _uid(folder: Path) -> int:
    """The real one: that of the folder is root's for a process that may not be dumped (proc(5))."""
    found = _UID.search(_text(folder / "status"))
    return int(found[1]) if found else 1


def _parent(folder: Path) -> int:
    """The field behind the state in /proc/PID/stat; the command before it may hold anything, `)` too (proc(5))."""
    return int(_text(folder / "stat").rpartition(")")[2].split()[1])


def _ancestors(proc: Path, pid: int) -> tuple[int, ...]:
    """The processes that one comes from, as far as each is still there, the nearest first."""
    found: list[int] = []
    while pid > 1 and len(found) < _DEEPEST:
        try:
            pid = _parent(proc / str(pid))
        except OSError:
            break
        found.append(pid)
    return tuple(found)


def _seen(folder: Path, pid: int, progress: Progress) -> Iterator[Identity]:
    """The files that a process has open, in any of its threads: one may have a table of files of its own, and the first
    may have ended before the others.
    """
    for thread in _pids(folder / "task"):
        if not _same_files(pid, thread):
            try:
                yield from _open_in(folder / "task" / str(thread) / "fd", progress)
            except (FileNotFoundError, ProcessLookupError):
                continue  # the thread has ended


def _same_files(pid: int, thread: int) -> bool:
    """Whether a thread surely shares the table of files of the process's first one, and is another."""
    if _KCMP is None or pid == thread:
        return False
    return bool(_LIBC.syscall(_KCMP, pid, thread, _KCMP_FILES, 0, 0) == 0)


def _open_in(table: Path, progress: Progress) -> list[Identity]:
    """The files of one table. What is surely none is not asked further: that may take long."""
    found: list[Identity] = []
    for name in os.listdir(table):  # noqa: PTH208 - a Path each costs
        file = f"{table}/{name}"
        try:
            path = os.readlink(file)  # noqa: PTH115
        except (FileNotFoundError, ProcessLookupError):
            continue
        if _NO_FILE.match(path):
            continue
        progress.at(f"{file} ({path})")
        try:
            found.append(_identity(os.stat(file)))  # noqa: PTH116
        except OSError:  # of a file system that shows it to its user alone, or does not answer: no device file
            continue
    return found


def _identity(status: os.stat_result) -> Identity:
    kind = stat.S_IFMT(status.st_mode)
    if stat.S_ISCHR(kind):
        return (kind, status.st_rdev, 0)
    return (kind, status.st_dev, status.st_ino)


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")
