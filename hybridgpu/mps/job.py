"""The record of a job on this node: what its prolog knew and its tasks cannot ask Slurm. Written by root, read by all.

One small file a job, `key=value` lines, so that a shell can write and read it: slurm/prolog.d/50-hybridgpu writes those
of jobs without MPS. A component of a het job has its own id in its prolog, while its tasks carry the leader's: its file
is called LEADER+JOB (run on 22.05, 24.11 and 26.05).
"""

from __future__ import annotations

import os

from hybridgpu.mps.folder import read_small, root_folder, write_whole
from hybridgpu.mps.trouble import Trouble

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from hybridgpu.mps.settings import Settings


_LONGEST_WHY = 500


class Job:
    """A job here. `gpus`: Slurm's numbers; `percentage`: of its share, 0 where Slurm lost it, None without share.

    `why`: the reason for which it has no daemon, where it was to have one.
    """

    __slots__ = (
        "conf",
        "daemons",
        "gid",
        "gpus",
        "job",
        "leader",
        "mode",
        "percentage",
        "restart",
        "since",
        "uid",
        "why",
    )

    def __init__(
        self,
        job: int,
        restart: int,
        uid: int,
        gid: int,
        gpus: tuple[int, ...],
        leader: int | None = None,
        mode: str = "",
        conf: str = "",
        percentage: int | None = None,
        daemons: tuple[str, ...] = (),
        since: float = 0.0,
        why: str = "",
    ) -> None:
        self.job, self.restart, self.uid, self.gid, self.gpus, self.leader = job, restart, uid, gid, gpus, leader
        self.mode, self.conf, self.percentage, self.daemons = mode, conf, percentage, daemons
        self.since, self.why = since, _one_line(why)

    @property
    def name(self) -> str:
        """Its file's name."""
        return str(self.job) if self.leader is None else f"{self.leader}+{self.job}"

    def text(self) -> str:
        """Its file's content."""
        lines = [
            f"job={self.job}",
            f"restart={self.restart}",
            f"uid={self.uid}",
            f"gid={self.gid}",
            f"gpus={','.join(str(gpu) for gpu in self.gpus)}",
            f"mode={self.mode}",
            f"conf={self.conf}",
            *([] if self.percentage is None else [f"percentage={self.percentage}"]),
            *(f"daemon={name}" for name in self.daemons),
            *([f"why={self.why}"] if self.why else []),
        ]
        return "".join(f"{line}\n" for line in lines)


def write(settings: Settings, job: Job) -> None:
    """Write a record, or replace the one there. Raises OSError."""
    root_folder(settings.run)
    root_folder(settings.jobs)
    write_whole(settings.jobs, job.name, job.text())


def remove(settings: Settings, job: Job) -> None:
    """Remove a job's record, if it is there; one of a later run of the job stays. Raises OSError."""
    there = read(settings, job.name)
    if there is not None and there.restart > job.restart:
        return
    try:
        os.unlink(f"{settings.jobs}/{job.name}")
    except FileNotFoundError:
        pass


def candidates(settings: Settings, number: int) -> list[Job]:
    """The records that tasks with this SLURM_JOB_ID may be of: its own, and those of its het components."""
    mine = [name for name in names(settings) if name == str(number) or name.startswith(f"{number}+")]
    return [job for name in mine if (job := read(settings, name)) is not None]


def every(settings: Settings) -> Iterator[Job]:
    """All records that can be read, in the order of their names. What is broken is left to `names`."""
    for name in names(settings):
        if (job := read(settings, name)) is not None:
            yield job


def names(settings: Settings) -> list[str]:
    """What lies in the folder."""
    try:
        return sorted(os.listdir(settings.jobs))
    except (FileNotFoundError, NotADirectoryError):
        return []


def read(settings: Settings, name: str) -> Job | None:
    """One record; None where it is not there, not root's, or no record."""
    number = number_of(name)
    if number is None:
        return None
    leader, plus, _ = name.rpartition("+")
    path = f"{settings.jobs}/{name}"
    try:
        text = read_small(path)
        since = os.stat(path, follow_symlinks=False).st_mtime
        return parsed(text, int(leader) if plus else None, number, since)
    except (OSError, ValueError, KeyError, Trouble):
        return None


def number_of(name: str) -> int | None:
    """The job whose record has this name; None where no record is called so."""
    leader, plus, own = name.rpartition("+")
    parts = (leader, own) if plus else (own,)
    return int(own) if all(part.isascii() and part.isdecimal() for part in parts) else None


def parsed(text: str, leader: int | None, number: int, since: float) -> Job:
    """The record in a file's text. Raises ValueError, KeyError where it is none, or another job's."""
    pairs = [line.partition("=")[::2] for line in text.splitlines()]
    one = dict(pairs)
    if int(one["job"]) != number:
        raise ValueError("it is another job's")
    return Job(
        job=number,
        restart=int(one.get("restart") or 0),
        uid=int(one["uid"]),
        gid=int(one.get("gid") or one["uid"]),
        gpus=tuple(int(part) for part in one.get("gpus", "").split(",") if part),
        leader=leader,
        mode=one.get("mode", ""),
        conf=one.get("conf", ""),
        percentage=int(one["percentage"]) if "percentage" in one else None,
        daemons=tuple(value for key, value in pairs if key == "daemon"),
        since=since,
        why=one.get("why", ""),
    )


def _one_line(text: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in text)[:_LONGEST_WHY]
