"""Which files there are and what kind each is, told by content and never by name. Reads only their beginnings."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

_HEAD = 65536
_KIND = re.compile(rb"""^[{ \t]*["']?kind["']?[ \t]*:[ \t]*["']?(\w+)|["']kind["']\s*:\s*["'](\w+)["']""", re.MULTILINE)
_NODE = re.compile(rb'"node"\s*:\s*"([A-Za-z0-9._-]+)"')
_WRITTEN_BY_US = ("NodeConfig", "DeviceMap")
_OURS = re.compile(rb"""apiVersion["']?[ \t]*:[ \t]*["']?hybridgpu/""")
_SLURM = re.compile(
    rb"^[ \t]*(ClusterName|NodeName|PartitionName|GresTypes|Name|AutoDetect|ConstrainDevices)[ \t]*=", re.M | re.I
)


class Kind(Enum):
    """What `check` knows how to judge, and what it knows to be something else."""

    INVENTORY = "inventory"
    FACTS = "facts"
    SLURM = "a Slurm configuration file"
    UNREADABLE = "unreadable"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Input:
    """One file to check. `node`: the node that facts say they are of. `why`: what hinders reading, for UNREADABLE."""

    path: str
    kind: Kind
    node: str = ""
    why: str = ""


def inputs(path: str) -> Iterator[Input]:
    """The file at `path`, or every file below that folder that is of a kind we judge, or that cannot be read.

    Raises FileNotFoundError where there is nothing at `path`.
    """
    if not Path(path).is_dir():
        yield _input(path)
        return
    for directory, below, names in os.walk(path):
        below[:] = sorted(name for name in below if not name.startswith("."))
        for name in sorted(names):
            file = Path(directory, name)
            if stat.S_ISREG(file.lstat().st_mode):
                found = _input(str(file))
                if found.kind in (Kind.INVENTORY, Kind.FACTS, Kind.UNREADABLE):
                    yield found


def _input(path: str) -> Input:
    try:
        if not stat.S_ISREG(Path(path).stat().st_mode):
            return Input(path, Kind.UNKNOWN)
        with Path(path).open("rb") as file:
            head = file.read(_HEAD)
    except (FileNotFoundError, NotADirectoryError):
        raise
    except OSError as error:
        return Input(path, Kind.UNREADABLE, why=error.strerror or str(error))
    kind = _kind(head)
    named = _NODE.search(head) if kind is Kind.FACTS else None
    return Input(path, kind, named[1].decode() if named else Path(path).stem)


def _kind(head: bytes) -> Kind:
    found = _KIND.search(head)
    kind = (found[1] or found[2]).decode() if found else None
    if kind == "Facts":
        return Kind.FACTS
    # A misspelt kind below our apiVersion is an inventory with a mistake in it.
    if kind == "Inventory" or (kind not in _WRITTEN_BY_US and _OURS.search(head)):
        return Kind.INVENTORY
    return Kind.SLURM if _SLURM.search(head) else Kind.UNKNOWN
