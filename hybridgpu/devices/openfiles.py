"""Who holds a card by an open device file, whatever NVML says: by /proc, for every process there is. Judges nothing.

A device file is known by its device number, not by its path: a container has paths of its own. It may take as long as
the slowest file system that a process has a file on, so it is done within a time limit.
"""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hybridgpu.devices.effect import Card
from hybridgpu.devices.port import Holder, Unread, Use
from hybridgpu.devices.timelimit import within
from hybridgpu.model.finding import Finding, Rule, Severity

_PROC = Path("/proc")
_NO_FILE = re.compile(r"[a-z_]+:")
"""How /proc shows what is no file: `socket:[17]`, `anon_inode:[eventpoll]`; a path begins with `/`."""

_JOB = re.compile(r"/job_([0-9]+)(?:/|$)", re.MULTILINE)
_DAEMON = re.compile(r"^/hybridgpu/([^/\n]+)", re.MULTILINE)
_UNIT = re.compile(r"/([^/\n]+\.(?:service|scope))(?:/|$)", re.MULTILINE)
_FRESH = 1.0
"""Seconds for which an answer is good: a card takes some changes in that time, each of which asks."""

_UID = re.compile(r"^Uid:\t([0-9]+)", re.MULTILINE)
_NAMED = 5
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
    """Each (card, pid) of a process that has a file of that card open, and root's processes that root may not see."""

    pairs: tuple[tuple[int, int], ...]
    unseen: tuple[int, ...]


class OpenFiles:
    """Who has the device file of each card open, below a driver's `dev` folder; asked anew once a second at most.

    This process and its children are left out. A card whose file is not there nobody holds.
    """

    def __init__(self, cards: Sequence[Card], dev: Path, seconds: float) -> None:
        names = ((card, identity(dev / f"dev/nvidia{card.minor}")) for card in cards)
        self._wanted = {file: card.index for card, file in names if file}
        self._seconds = seconds
        self._last: Held | Unread = Held((), ())
        self._until = 0.0

    def __call__(self, card: Card) -> tuple[Holder, ...] | Unread:
        """The card's. Unread where a process may not be looked at; raises Unavailable where it takes too long."""
        if time.monotonic() >= self._until:
            wanted, mine = self._wanted, os.getpid()
            self._last = within(self._seconds, lambda: open_files(wanted, mine))
            self._until = time.monotonic() + _FRESH
        if isinstance(self._last, Unread):
            return self._last
        return tuple(Holder(pid, Use.OPEN_FILE) for index, pid in self._last.pairs if index == card.index)

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


def open_files(wanted: Mapping[Identity, int], mine: int, proc: Path = _PROC) -> Held | Unread:
    """Who has a file of a card open; `wanted` has the cards by their files. The process `mine` and its children are
    left out.

    A service may be kept from root's own eyes, and nobody can help that; where one of another user is, we are not root
    enough, and nothing is known.
    """
    found: list[tuple[int, int]] = []
    unseen: list[int] = []
    for pid in _pids(proc):
        folder = proc / str(pid)
        try:
            if mine not in (pid, _parent(folder)):
                found += [
                    (card, pid) for card in sorted({wanted[seen] for seen in _seen(folder / "fd") if seen in wanted})
                ]
        except PermissionError:
            if os.geteuid() or _uid(folder):
                return Unread(f"/proc/{pid}/fd", "Permission denied")
            unseen.append(pid)
        except OSError:  # it has ended
            continue
    return Held(tuple(sorted(found)), tuple(unseen))


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
    return (int(entry.name) for entry in os.scandir(proc) if entry.name.isdecimal())


def _uid(folder: Path) -> int:
    """The real one: that of the folder is root's for a process that may not be dumped (proc(5))."""
    found = _UID.search(_text(folder / "status"))
    return int(found[1]) if found else 1


def _parent(folder: Path) -> int:
    """The field behind the state in /proc/PID/stat; the command before it may hold anything, `)` too (proc(5))."""
    return int(_text(folder / "stat").rpartition(")")[2].split()[1])


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
