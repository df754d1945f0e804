"""A YAML document as a Go program holds it before its types are filled: values, their places, and what is wrong.

Records only; goyaml makes them, gojson fills types from them. A tree may share nodes (YAML's aliases), so nothing here
compares or prints it as a whole.
"""

from __future__ import annotations

from dataclasses import dataclass

from hybridgpu.files.goscalar import GoValue


@dataclass(frozen=True, slots=True, eq=False)
class GoScalar:
    """A value; `text` as it was written, for messages."""

    value: GoValue
    text: str
    line: int
    column: int


@dataclass(frozen=True, slots=True, eq=False)
class GoList:
    """A list, in the order written."""

    items: tuple[GoNode, ...]
    line: int
    column: int


@dataclass(frozen=True, slots=True, eq=False)
class GoKey:
    """A key as text, and where it stands: a number or bool has become the text JSON would have."""

    name: str
    line: int
    column: int


@dataclass(frozen=True, slots=True, eq=False)
class GoMap:
    """One entry a key, sorted by the key's bytes, as json.Marshal writes them; of a key twice the last is left."""

    entries: tuple[tuple[GoKey, GoNode], ...]
    line: int
    column: int

    def get(self, name: str) -> GoNode | None:
        """The value of a key, matched exactly as map[string]json.RawMessage does."""
        return next((value for key, value in self.entries if key.name == name), None)

    def key(self, name: str) -> GoKey | None:
        """The key itself, for its place."""
        return next((key for key, _ in self.entries if key.name == name), None)


GoNode = GoScalar | GoList | GoMap


@dataclass(frozen=True, slots=True)
class GoError:
    """Why the program gives the file up, in its own words, and where (line and column count from 1)."""

    words: str
    line: int
    column: int


@dataclass(frozen=True, slots=True)
class KeyTwice:
    """A key that stood in one mapping before: the later one counts. `differs`: the values are not the same scalar."""

    name: str
    first: GoKey
    again: GoKey
    differs: bool


@dataclass(frozen=True, slots=True)
class GoYaml:
    """What was read: `root` (None where `error` says why not), and what go-yaml passes over without a word.

    `ignored` is where a second document begins that is not read.
    """

    root: GoNode | None
    error: GoError | None = None
    twice: tuple[KeyTwice, ...] = ()
    ignored: tuple[int, int] | None = None
