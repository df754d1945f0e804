"""Which files there are and what kind each is, told by content and never by name. Reads only their beginnings."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

_HEAD = 65536
_KIND = re.compile(rb"""^[{\s]*["']?kind["']?\s*:\s*["']?(\w+)|["']kind["']\s*:\s*["'](\w+)["']""", re.MULTILINE)
_NODE = re.compile(rb'"node"\s*:\s*"([A-Za-z0-9._-]+)"')
_WRITTEN_BY_US = ("NodeConfig", "DeviceMap")
_OURS = re.compile(rb"""apiVersion["']?\s*:\s*["']?hybridgpu/""")


class Kind(Enum):
    """What `check` knows how to judge."""

    INVENTORY = "inventory"
    FACTS = "facts"


@dataclass(frozen=True, slots=True)
class Input:
    """One file to check. `kind` None: nothing we know. `node`: the node that facts say they are of, "" in others."""

    path: str
    kind: Kind | None
    node: str = ""


def inputs(paths: Iterable[str]) -> Iterator[Input]:
    """Every file named, and every file below a folder named that is of a kind we know.

    A file that is named but of no kind we know comes with kind None. Raises FileNotFoundError.
    """
    for path in paths:
        if not Path(path).is_dir():
            yield input_at(path)
            continue
        for directory, below, names in os.walk(path):
            below[:] = sorted(name for name in below if not name.startswith("."))
            for name in sorted(names):
                file = Path(directory, name)
                if stat.S_ISREG(file.lstat().st_mode) and (found := input_at(str(file))).kind:
                    yield found


def input_at(path: str) -> Input:
    """What one file is, by its first 64 KiB. Raises FileNotFoundError."""
    if not stat.S_ISREG(Path(path).stat().st_mode):
        return Input(path, None)
    with Path(path).open("rb") as file:
        head = file.read(_HEAD)
    found = _KIND.search(head)
    kind = (found[1] or found[2]).decode() if found else None
    if kind == "Facts":
        named = _NODE.search(head)
        return Input(path, Kind.FACTS, named[1].decode() if named else Path(path).stem)
    # A misspelt kind below our apiVersion is an inventory with a mistake in it.
    looks_ours = kind == "Inventory" or (kind not in _WRITTEN_BY_US and _OURS.search(head))
    return Input(path, Kind.INVENTORY if looks_ours else None)
