"""Slurm's line language: comments, continuation, escapes, quotes, case and Include, as its own parser reads them.

slurm.conf, gres.conf and cgroup.conf are written in it. What a key means, and whether it may stand where it does, is
not known here; text that is no pair is handed on as `rest`. Source: S:src/common/parse_config.c.
"""

from __future__ import annotations

import posixpath
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from hybridgpu.files.slurmbuffer import overruns
from hybridgpu.model.finding import Place

OpenText = Callable[[str], str]
"""Gives a file's text. FileNotFoundError: there is no such file. KeyError: not among the files we were given."""

_SPACE = " \t\n\v\f\r"
_PAIR = re.compile(
    rf"[{_SPACE}]*([A-Za-z0-9_.]+)[{_SPACE}]*[-*+/]?=[{_SPACE}]*"
    rf'(?:"([^"]*)"|([^{_SPACE}]+))(?=[{_SPACE}]|\Z)'
)
_INCLUDE = re.compile(rf"include[{_SPACE}]+([^{_SPACE}]+)", re.IGNORECASE)
_COMMENT = re.compile(r"(?<!\\)(?:\\\\)*#")
_MAX_DEPTH = 32
_MAX_INCLUDES = 2000
"""How many Includes of one file and of what it brings in are followed: chains of them can double at every step."""


@dataclass(frozen=True, slots=True)
class Pair:
    """One `Key=value`; the value without its quotes."""

    key: str
    value: str
    place: Place


@dataclass(frozen=True, slots=True)
class SlurmLine:
    """One logical line. `rest` is what follows the last pair, where Slurm can't go on; empty where all was read."""

    pairs: tuple[Pair, ...]
    rest: str
    rest_place: Place

    @property
    def place(self) -> Place:
        """Where the line begins to mean something."""
        return self.pairs[0].place if self.pairs else self.rest_place

    def get(self, *keys: str) -> Pair | None:
        """The pair in force for the first of these keys (lower case) that the line has: the last one of that key."""
        for key in keys:
            for pair in reversed(self.pairs):
                if pair.key.lower() == key:
                    return pair
        return None


@dataclass(frozen=True, slots=True)
class Include:
    """One Include line. `name` as written with %c filled in, `path` the file it means.

    `found` is the file that was read for it; empty where `problem` says why none was: the file is `missing`, was
    `not given` to us, is in a `loop`, the name is a `pattern`, it has %c and `no cluster` is named before it in its
    file, or there were `too many` before it. `overrun`: Slurm reads on behind the name, and stumbles (see slurmbuffer).
    """

    name: str
    path: str
    place: Place
    found: str = ""
    problem: Literal["", "missing", "not given", "loop", "pattern", "no cluster", "too many"] = ""
    overrun: bool = False


@dataclass(frozen=True, slots=True)
class SlurmText:
    """A file and all it includes, as one sequence of lines in the order Slurm sees them. `files`: what was read."""

    lines: tuple[SlurmLine, ...]
    includes: tuple[Include, ...]
    files: tuple[str, ...]


def read(
    path: str,
    open_text: OpenText,
    beside: str | None = None,
    locate: Callable[[str], str] = posixpath.normpath,
) -> SlurmText:
    """Read a file and what it includes; raises what `open_text` raises for `path` itself.

    Relative names are looked for in the folder `beside`; None: in that of the file that includes. `locate` says under
    which path a file is there.
    """
    reading = _Reading(open_text, beside, locate)
    reading.follow(path, open_text(path), ())
    return SlurmText(tuple(reading.lines), tuple(reading.includes), tuple(reading.files))


class _Reading:
    """The state of one `read`: what has been seen so far."""

    def __init__(self, open_text: OpenText, beside: str | None, locate: Callable[[str], str]) -> None:
        self.open_text = open_text
        self.cluster_name: str | None = None
        self.beside = beside
        self.locate = locate
        self.lines: list[SlurmLine] = []
        self.includes: list[Include] = []
        self.files: list[str] = []

    def follow(self, path: str, text: str, ancestors: tuple[str, ...]) -> None:
        self.files.append(path)
        overrun: frozenset[int] | None = None
        for logical in _logical_lines(path, text):
            include = _INCLUDE.match(logical.text)
            if include:
                if not logical.ended and include.end() == len(logical.text) and overrun is None:
                    overrun = overruns(text)
                self._include(include, logical, (*ancestors, path), bool(overrun and logical.place(0).line in overrun))
                continue
            line = _parse(logical)
            if line is None:
                continue
            self.lines.append(line)
            if line.pairs and line.pairs[0].key.lower() == "clustername":
                self.cluster_name = line.pairs[0].value

    def _include(self, include: re.Match[str], logical: _Logical, ancestors: tuple[str, ...], overrun: bool) -> None:
        """Follow an Include: %c stands for the cluster, and a name is never a pattern."""
        rest = logical.text[include.end() :].lstrip(_SPACE)
        if rest:
            place = logical.place(len(logical.text) - len(rest))
            self.lines.append(SlurmLine((), rest.rstrip(_SPACE), place))
        nameless = "%c" in include[1] and self.cluster_name is None
        name = include[1].replace("%c", "%c" if self.cluster_name is None else self.cluster_name.lower())
        folder = posixpath.dirname(ancestors[-1]) if self.beside is None else self.beside
        path = posixpath.normpath(posixpath.join(folder, name))
        at = len(self.includes)
        found = Include(name, path, logical.place(include.start(1)), overrun=overrun)
        over = at >= _MAX_INCLUDES
        self.includes.append(replace(found, problem="too many" if over else "no cluster" if nameless else "pattern"))
        if over or nameless or "*" in name:
            return
        file = self.locate(path)
        file = path if file in ancestors else file  # a copy of its own name is another file
        text, problem = self._open(file, ancestors)
        self.includes[at] = replace(found, problem=problem, found="" if problem else file)
        if not problem:
            self.follow(file, text, ancestors)

    def _open(self, path: str, ancestors: tuple[str, ...]) -> tuple[str, Literal["", "missing", "not given", "loop"]]:
        if path in ancestors or len(ancestors) > _MAX_DEPTH:
            return "", "loop"
        try:
            return self.open_text(path), ""
        except FileNotFoundError:
            return "", "missing"
        except KeyError:
            return "", "not given"


@dataclass(frozen=True, slots=True)
class _Logical:
    """A line after comments, continuation and escapes: `offsets[i]` of `text` stands in the file at `marks[i]`.

    `ended`: a line end follows the text, and not a comment or the end of the file.
    """

    path: str
    text: str
    offsets: list[int]
    marks: list[tuple[int, int]]
    ended: bool = True

    def place(self, offset: int) -> Place:
        at = bisect_right(self.offsets, offset) - 1
        line, column = self.marks[at]
        return Place(self.path, line, column + offset - self.offsets[at])


def _logical_lines(path: str, text: str) -> Iterator[_Logical]:
    """Strip comments first, then join continued lines, then drop escapes: Slurm's order (_get_next_line)."""
    physical = text.split("\n")
    if physical and not physical[-1]:
        physical.pop()
    joined, offsets, marks = "", [], []
    for number, raw in enumerate(physical, 1):
        part = without_comment(raw)
        kept = _without_continuation(part) if "\\" in part else None
        offsets.append(len(joined))
        marks.append((number, 1))
        joined += part if kept is None else kept
        if kept is not None and number < len(physical):
            continue
        if joined.strip(_SPACE):
            ended = part is raw and kept is None and (number < len(physical) or text.endswith("\n"))
            line = _Logical(path, joined, offsets, marks, ended)
            yield _unescaped(line) if "\\" in joined else line
        joined, offsets, marks = "", [], []


def without_comment(line: str) -> str:
    """Cut at the first `#` that has no odd run of backslashes before it; quotes do not protect it."""
    found = _COMMENT.search(line)
    return line[: found.end() - 1] if found else line


def _without_continuation(line: str) -> str | None:
    """The line up to its continuation mark (an odd run of backslashes, blanks may follow), or None without one."""
    body = line.rstrip(_SPACE)
    if (len(body) - len(body.rstrip("\\"))) % 2 == 0:
        return None
    return body[:-1]


def _unescaped(escaped: _Logical) -> _Logical:
    """Drop every backslash that escapes a character, keeping track of columns."""
    joined, text = escaped.text, list[str]()
    new_offsets, new_marks = [0], [escaped.marks[0]]
    starts = frozenset(escaped.offsets)
    at = 0
    while at < len(joined):
        if at in starts or joined[at] == "\\":
            at += joined[at] == "\\"
            place = escaped.place(at)
            new_offsets.append(len(text))
            new_marks.append((place.line, place.column))
            if at == len(joined):
                break
        text.append(joined[at])
        at += 1
    return _Logical(escaped.path, "".join(text), new_offsets, new_marks, escaped.ended)


def _parse(logical: _Logical) -> SlurmLine | None:
    """All pairs from the left, as far as Slurm's expression for a pair goes; None for a blank line."""
    pairs: list[Pair] = []
    text, at = logical.text, 0
    while found := _PAIR.match(text, at):
        key, quoted, plain = found.groups()
        pairs.append(Pair(key, plain if quoted is None else quoted, logical.place(found.start(1))))
        at = found.end()
    rest = text[at:]
    blanks = len(rest) - len(rest.lstrip(_SPACE))
    rest = rest.strip(_SPACE)
    if not pairs and not rest:
        return None
    return SlurmLine(tuple(pairs), rest, logical.place(at + blanks))
