"""Where values stand in a JSON text. Read only once something in it is wrong, and then in one walk; judges nothing.

Python's reader keeps no places. What is not asked for is skipped by that reader, so the walk costs little more than a
second reading.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

Path = tuple[str | int, ...]
"""Where a value stands: `("gpus", 3, "uuid")`."""

_BLANKS = re.compile(r"[ \t\n\r]*")
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]]')
_COLON = re.compile(r"[ \t\n\r]*:")
_DECODER = json.JSONDecoder()


def offsets(text: str, paths: Iterable[Path]) -> dict[Path, int]:
    """The offset at which each path's value begins in a JSON text; paths that are not there are left out."""
    wanted = _Wanted()
    for path in paths:
        wanted.add(path)
    found: dict[Path, int] = {}
    _walk(text, _after(text, 0), wanted, (), found)
    return found


def second_key(text: str) -> int | None:
    """The offset of the first key of a JSON text that stands in its object already."""
    keys: list[set[str]] = []
    for token in _TOKEN.finditer(text):
        mark = token[0]
        if mark in "{[":
            keys.append(set())
        elif mark in "}]":
            keys.pop()
        elif _COLON.match(text, token.end()):
            name = json.loads(mark)
            if name in keys[-1]:
                return token.start()
            keys[-1].add(name)
    return None


@dataclass(slots=True)
class _Wanted:
    """The paths asked for, as a tree: `here` if one of them ends at this value."""

    here: bool = False
    below: dict[str | int, _Wanted] = field(default_factory=dict)

    def add(self, path: Path) -> None:
        node = self
        for step in path:
            node = node.below.setdefault(step, _Wanted())
        node.here = True


def _walk(text: str, at: int, wanted: _Wanted, path: Path, found: dict[Path, int]) -> int:
    """Notes the values wanted from the one that begins at `at`; gives the offset behind it."""
    if wanted.here:
        found[path] = at
    opening = text[at]
    if not wanted.below or opening not in "{[":
        return _DECODER.raw_decode(text, at)[1]
    at = _after(text, at + 1)
    number = 0
    while text[at] not in "}]":
        step: str | int = number
        if opening == "{":
            step, at = _DECODER.raw_decode(text, at)
            at = _after(text, _after(text, at) + 1)  # behind the colon
        below = wanted.below.get(step)
        at = _walk(text, at, below, (*path, step), found) if below else _DECODER.raw_decode(text, at)[1]
        at = _after(text, at)
        if text[at] == ",":
            at = _after(text, at + 1)
        number += 1
    return at + 1


def _after(text: str, at: int) -> int:
    found = _BLANKS.match(text, at)
    return found.end() if found else at
