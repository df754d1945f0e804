"""Cgroups for a cluster's nodes: below our own, one folder a node in each hierarchy, removed with the cluster.

Version 1 only, since that is what this machine has. The hierarchies of memory and CPU sets are left out: a machine's
own limits may hang on the first, and the second takes no process before it is told its CPUs.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from testbed.slurm.namespace import attempts

MOUNTS = Path("/sys/fs/cgroup")
NEEDED = ("freezer", "devices")
LEFT_OUT = {"memory", "cpuset"}
_NAME = "hybridgpu-testbed-"
_KILLED_SECONDS = 10


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """One mounted hierarchy: its controllers as /proc/PID/cgroup has them, and our own folder in it."""

    controllers: str
    own: Path

    @property
    def mounted(self) -> str:
        """The name of its mount point."""
        return self.controllers.removeprefix("name=")

    @property
    def options(self) -> str:
        """What mount(8) takes for it."""
        return f"none,{self.controllers}" if self.controllers.startswith("name=") else self.controllers


def hierarchies() -> tuple[Hierarchy, ...]:
    """Those of this process that nodes may use."""
    found = []
    for line in Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines():
        _, controllers, below = line.split(":", 2)
        own = MOUNTS / controllers.removeprefix("name=") / below.lstrip("/")
        if controllers and not LEFT_OUT & set(controllers.split(",")) and own.is_dir():
            found.append(Hierarchy(controllers, own))
    return tuple(found)


def missing() -> str | None:
    """Why nodes can't have cgroups of their own here, in words for a skipped test; None where they can."""
    there = {name for one in hierarchies() for name in one.controllers.split(",")}
    lacking = [name for name in NEEDED if name not in there]
    return f"needs the cgroup v1 hierarchies {' and '.join(lacking)}" if lacking else None


@dataclass(frozen=True, slots=True)
class Cgroups:
    """The folders of one cluster, which `pid`, its first process, gives their name."""

    name: str
    hierarchies: tuple[Hierarchy, ...]

    @classmethod
    def make(cls, pid: int, nodes: tuple[str, ...]) -> Self:
        """Makes them; what clusters have left that were killed before they could close is removed."""
        made = cls(f"{_NAME}{pid}", hierarchies())
        for one in made.hierarchies:
            for left in one.own.glob(_NAME + "*"):
                if not Path("/proc", left.name.removeprefix(_NAME)).exists():
                    _remove(left)
            for node in nodes:
                (one.own / made.name / node).mkdir(parents=True)
        return made

    def renew(self, node: str) -> None:
        """Makes a node's folders anew; every process in them has been killed. Raises OSError where one does not end."""
        for one in self.hierarchies:
            _remove_killed(one.own / self.name / node)
            (one.own / self.name / node).mkdir()

    def processes_files(self, node: str) -> tuple[str, ...]:
        """The files into which a process writes its id to be in the node, one a hierarchy."""
        return tuple(str(one.own / self.name / node / "cgroup.procs") for one in self.hierarchies)

    def place(self, node: str, text: str) -> dict[str, str] | None:
        """From a /proc/PID/cgroup: controllers -> path as the node sees it; None for a process that is not of it."""
        places: dict[str, str] = {}
        for line in text.splitlines():
            _, controllers, path = line.split(":", 2)
            _, mark, below = f"{path}/".partition(f"/{self.name}/{node}/")
            if mark:
                places[controllers] = "/" + below.rstrip("/")
        return places or None

    def remove(self) -> None:
        """Removes the folders, of which every process has been killed. Raises OSError where one does not end."""
        for one in self.hierarchies:
            _remove_killed(one.own / self.name)


def _remove_killed(folder: Path) -> None:
    for _ in attempts(_KILLED_SECONDS):
        with contextlib.suppress(OSError):
            _remove(folder)
            return
    _remove(folder)


def _remove(folder: Path) -> None:
    """Remove a cgroup with those below it; the files in them are the kernel's."""
    with contextlib.suppress(FileNotFoundError):
        for below, _, _ in os.walk(folder, topdown=False):
            Path(below).rmdir()
