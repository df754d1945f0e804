"""What Slurm gave a job: scontrol's one-line records, and the job's own view. Reads text, runs nothing."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

_FIELD = re.compile(r"(?:^|\s)([A-Za-z][\w:/]*)=")
_PART = re.compile(r"(?:[^,(]|\([^)]*\))+")
_GRES = re.compile(r"(?P<name>\w+)(?::(?P<type>[^:(]+))??(?::(?P<count>\d+))?(?:\((?P<where>.*)\))?")


@dataclass(frozen=True, slots=True)
class Granted:
    """One GRES of a job on one node; `where` is Slurm's own word for the devices, as `IDX:0-1` or `0/100,25/100`."""

    name: str
    type: str | None
    count: int
    where: str


@dataclass(frozen=True, slots=True)
class Grant:
    """A job that ran: its id, its nodes as Slurm lists them, its GRES, and the environment that its task had."""

    job: str
    nodes: str
    gres: tuple[Granted, ...]
    environment: Mapping[str, str]

    @classmethod
    def told(cls, output: str) -> Self:
        """From what a task prints with `env -0; scontrol -d -o show job`: entries ended by NUL, then one line."""
        *entries, line = output.split("\0")
        job = record(line)
        seen = dict(entry.split("=", 1) for entry in entries if "=" in entry)
        return cls(job["JobId"], job["NodeList"], gres(job.get("GRES", "")), seen)


def record(line: str) -> dict[str, str]:
    """The `Key=value` pairs of one line of `scontrol -o`; a value may hold spaces, as Reason does."""
    found = list(_FIELD.finditer(line))
    ends = [match.start() for match in found[1:]] + [len(line)]
    return {match[1]: line[match.end() : end].strip() for match, end in zip(found, ends, strict=True)}


def gres(text: str) -> tuple[Granted, ...]:
    """The parts of a GRES list such as `gpu:a100:2(IDX:0-1),nic(CNT:1)`; commas inside brackets do not part it.

    A GRES without device files has its count in the brackets.
    """
    return tuple(_granted(part) for part in _PART.findall(text))


def _granted(part: str) -> Granted:
    found = _GRES.fullmatch(part)
    if found is None:
        raise ValueError(f"not a GRES as scontrol writes it: {part}")
    where = found["where"] or ""
    return Granted(found["name"], found["type"], int(found["count"] or where.removeprefix("CNT:")), where)
