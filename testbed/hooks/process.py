"""A process as /proc shows it. Reads files, judges nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

ZOMBIE = "Z"


@dataclass(frozen=True, slots=True)
class Process:
    """One process: ids as seen in the node, the real uid, `start` in clock ticks since boot.

    `cgroup`: controllers -> path as the node sees it. A zombie has no argv and no environment.
    """

    pid: int
    ppid: int
    uid: int
    state: str
    start: int
    argv: tuple[str, ...]
    environment: Mapping[str, str]
    cgroup: Mapping[str, str]

    @property
    def command(self) -> str:
        """Its title, as `ps` shows it."""
        return " ".join(self.argv).strip()

    @classmethod
    def read(cls, folder: Path, cgroup: Mapping[str, str]) -> Self:
        """From /proc/PID. Raises FileNotFoundError or ProcessLookupError where it has ended."""
        after_name = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()
        return cls(
            pid=int(folder.name),
            ppid=int(after_name[1]),
            uid=folder.stat().st_uid if after_name[0] == ZOMBIE else _uid(folder),
            state=after_name[0],
            start=int(after_name[19]),
            argv=_parts(folder / "cmdline"),
            environment=dict(part.partition("=")[::2] for part in _parts(folder / "environ") if "=" in part),
            cgroup=cgroup,
        )


def _uid(folder: Path) -> int:
    lines = (folder / "status").read_text(errors="replace").splitlines()
    return int(next(line for line in lines if line.startswith("Uid:")).split()[1])


def _parts(file: Path) -> tuple[str, ...]:
    text = file.read_bytes().decode(errors="replace")
    return tuple(text.rstrip("\0").split("\0")) if text else ()
