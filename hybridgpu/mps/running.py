"""Which jobs show on this node, and whether one that does not has ended. Asks processes and slurm.conf, never Slurm.

"No step daemon" means "ended" only where PrologFlags=Contain keeps an extern step of each job on each of its nodes:
with Alloc alone a running batch job has none on its second node (run on 22.05, 24.11, 26.05). What cannot be told is
told as running.
"""

from __future__ import annotations

import os
import re
import stat

from hybridgpu.mps.process import argv, environment, parent, pids, uid
from hybridgpu.mps.trouble import Trouble

_STEP_DAEMON = re.compile(r"\S*slurmstepd: \[(\d+)\.")
"""The title slurmstepd gives itself: `slurmstepd: [12.extern]`, with its own id for a het component (run on 22.05,
24.11, 26.05)."""

_SCRIPTS = ("prolog_slurmd", "epilog_slurmd")
_CONTAINING = ("contain", "x11", "runinjob")
"""Flags that bring the extern step: X11 and RunInJob imply Contain (slurm.conf(5), PrologFlags)."""

_COMMENT = re.compile(r"(?<!\\)(?:\\\\)*#.*")
_PAIR = re.compile(r'\s*([A-Za-z0-9_.]+)\s*[-*+/]?=\s*(?:"([^"]*)"|(\S+))(?=\s|\Z)')
_INCLUDE = re.compile(r"\s*include\s+(\S+)", re.IGNORECASE)
_MOST_FILES, _MOST_DEPTH, _MOST_BYTES = 1000, 32, 64 * 1024 * 1024


class Look:
    """What was seen at one moment. `jobs`: ids of jobs with a step daemon, or a prolog or epilog at work, here.

    `starting`: slurmd is between a job's prolog and its step daemon, and nothing shows whose. It stays there for long
    where it waits for the end of the prolog's output, whose pipe other jobs' step daemons have inherited (run on 24.11,
    80 jobs at once).
    """

    __slots__ = ("jobs", "starting")

    def __init__(self, jobs: set[int], starting: bool = False) -> None:
        self.jobs, self.starting = jobs, starting


def look() -> Look:
    """Look at every process of root's; another user's can call itself what it likes, and is not asked."""
    mine = os.getpid()
    found = [_jobs(pid) for pid in pids() if pid != mine and uid(pid) == 0]
    return Look({job for jobs in found if jobs is not None for job in jobs}, None in found)


def contained(conf: str, before: float) -> bool:
    """Whether this slurm.conf keeps an extern step of each job, and did so already at `before` (seconds since epoch).

    It did if no file of it has changed since, and slurmd had read them by then, which cannot be seen (docs/mps.md).
    PrologFlags' last value counts (run on 22.05, 24.11, 26.05). False also where the files can't be read.
    """
    reading = _Reading(before)
    try:
        reading.follow(conf, os.path.dirname(conf))
    except (OSError, ValueError):
        return False
    return any(flag.strip() in _CONTAINING for flag in reading.flags.lower().split(","))


def _jobs(pid: int) -> list[int] | None:
    """Jobs that a process is of; None for a step daemon that has no title yet, and a dead script of slurmd's."""
    words = argv(pid)
    if not words:
        above = parent(pid) or 0
        return None if _program(argv(above)) == "slurmd" and _beside_us(above) else []
    if found := _STEP_DAEMON.match(words[0]):
        return [int(found[1])]
    if len(words) == 1 and _program(words) == "slurmstepd" and _beside_us(pid):
        return None
    try:
        variables = environment(pid)
    except Trouble:  # one with more rights than we have, so none of slurmd's, which has started us
        return []
    job = variables.get("SLURM_JOB_ID", "")
    at_work = variables.get("SLURM_SCRIPT_CONTEXT") in _SCRIPTS and job.isascii() and job.isdecimal()
    return [int(job)] if at_work else []


def _program(words: list[str]) -> str:
    return words[0].rpartition("/")[2] if words else ""


def _beside_us(pid: int) -> bool:
    """Whether it is of our pid namespace: the slurmd of a container is not this node's."""
    try:
        return os.stat(f"/proc/{pid}/ns/pid").st_ino == os.stat("/proc/self/ns/pid").st_ino
    except OSError:
        return False


class _Reading:
    """One slurm.conf with all it includes, in Slurm's order. Raises OSError, and ValueError where it can't be told."""

    def __init__(self, before: float) -> None:
        self.before = before
        self.flags = self.cluster = ""
        self.files = 0

    def follow(self, path: str, beside: str, depth: int = 0) -> None:
        """Read a file; names of Includes are relative to the folder `beside`."""
        if depth > _MOST_DEPTH:
            raise ValueError(f"{path}: not followed")
        for line in _logical_lines(self._text(path)):
            if include := _INCLUDE.match(line):
                name = include[1].replace("%c", self.cluster)
                self.follow(os.path.join(beside, name), beside, depth + 1)
                continue
            at = 0
            while pair := _PAIR.match(line, at):
                key, quoted, plain = pair.groups()
                value = plain if quoted is None else quoted
                if key.lower() == "prologflags":
                    self.flags = value
                elif key.lower() == "clustername":
                    self.cluster = value.lower()
                at = pair.end()

    def _text(self, path: str) -> str:
        self.files += 1
        if self.files > _MOST_FILES or not os.path.isabs(path):
            raise ValueError(f"{path}: not followed")
        self._unchanged(os.stat(path, follow_symlinks=False))
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            seen = os.fstat(descriptor)
            self._unchanged(seen)
            if not stat.S_ISREG(seen.st_mode) or seen.st_size > _MOST_BYTES:
                raise ValueError(f"{path}: no file of its kind")
            with open(descriptor, encoding="utf-8", errors="replace", closefd=False) as file:
                return file.read(_MOST_BYTES)
        finally:
            os.close(descriptor)

    def _unchanged(self, seen: os.stat_result) -> None:
        """A file put in place by a rename keeps the time of its text, so both times count."""
        if max(seen.st_mtime, seen.st_ctime) > self.before:
            raise ValueError("changed since")


def _logical_lines(text: str) -> list[str]:
    """Comments cut, then continued lines joined (S:src/common/parse_config.c _get_next_line)."""
    lines, joined = [], ""
    for raw in text.splitlines():
        line = _COMMENT.sub("", raw)
        body = line.rstrip()
        if (len(body) - len(body.rstrip("\\"))) % 2:
            joined += body[:-1]
            continue
        lines.append(joined + line)
        joined = ""
    return [*lines, joined]
