"""YAML text to a tree in which every scalar is still text and every node knows its line and column.

The types of YAML 1.1 are not applied: whoever holds the schema says what `24.10`, `off` or `012` is. What makes a file
mean something other than it shows (aliases, tags, merge keys, a key twice) is reported and not followed. The tree is
built from libyaml's events with a stack of our own, so no depth of nesting can exhaust the C stack.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import yaml

from hybridgpu.files.quoting import shown
from hybridgpu.files.yamlerror import explain
from hybridgpu.model.finding import Finding, Place, Related, Rule, Severity

MOST_DEPTH = 32
MOST_FINDINGS = 200

_SOURCE = "YAML 1.2 chapter 3; hybridgpu reads a plain subset"


def _rule(name: str, what_happens: str, fix: str) -> Rule:
    return Rule(name, Severity.ERROR, what_happens, fix, _SOURCE)


ALIAS = _rule(
    "yaml-alias",
    "Anchors and aliases (&x, *x) are not followed: one line could stand for a million.",
    "Write the value out, or quote it if it is to begin with & or *.",
)
TAG = _rule("yaml-tag", "Tags (!x) are not followed.", "Leave the tag out, or quote a value that begins with !.")
MERGE_KEY = _rule("yaml-merge-key", "Merge keys (<<) are not followed.", "Write the keys out.")
DUPLICATE_KEY = _rule(
    "yaml-duplicate-key",
    "A key stands twice in one mapping; most YAML readers take the last one without a word.",
    "Keep one of the two.",
)
COMPLEX_KEY = _rule(
    "yaml-complex-key",
    "A key is a list or a mapping; usually a template's {{ }} was left in the file.",
    "Use a word as the key; put {{ }} in quotes, or render the template first.",
)
TOO_DEEP = _rule("yaml-too-deep", "The file is nested deeper than is read.", "Remove the surplus brackets.")
SEVERAL_DOCUMENTS = _rule(
    "yaml-several-documents", "Only one document is read.", "Put what follows `---` into a file of its own."
)
TOO_MANY = _rule("yaml-too-many-mistakes", "Reading stopped: there are too many mistakes.", "Mend those above first.")


@dataclass(frozen=True, slots=True)
class Scalar:
    """A word as it was written, without its quotes; `plain` says that it had none."""

    text: str
    plain: bool
    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Sequence:
    """A list, in the order written."""

    items: tuple[Node, ...]
    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Mapping:
    """Keys and values, in the order written; no key stands in it twice."""

    entries: tuple[tuple[Scalar, Node], ...]
    line: int
    column: int

    @property
    def broken(self) -> bool:
        """Whether a value in it has been reported, so that what seems to be missing may not be."""
        return any(isinstance(value, Unreadable) for _, value in self.entries)

    def get(self, key: str) -> Node | None:
        """The value of a key, or None if the key is not there."""
        return next((value for word, value in self.entries if word.text == key), None)

    def key(self, key: str) -> Scalar | None:
        """The key itself, for its place."""
        return next((word for word, _ in self.entries if word.text == key), None)

    def scalar(self, key: str) -> Scalar | None:
        """The value of a key if it is a scalar."""
        value = self.get(key)
        return value if isinstance(value, Scalar) else None

    def mapping(self, key: str) -> Mapping | None:
        """The value of a key if it is a mapping."""
        value = self.get(key)
        return value if isinstance(value, Mapping) else None

    def items(self, key: str) -> tuple[Node, ...]:
        """The items of a key's value if it is a list; else none."""
        value = self.get(key)
        return value.items if isinstance(value, Sequence) else ()

    def scalars(self, key: str) -> tuple[Scalar, ...]:
        """The scalars among the items of a key's value."""
        return tuple(item for item in self.items(key) if isinstance(item, Scalar))


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Where a value stood that has been reported already: nothing more is said about it."""

    line: int
    column: int


Node = Scalar | Sequence | Mapping | Unreadable

_Event = Any  # of libyaml: the stubs know neither tags nor that every event has a mark


@dataclass(frozen=True, slots=True)
class Tree:
    """A file's documents and what is wrong with its YAML. A syntax error ends the file: then `documents` is empty."""

    documents: tuple[Node, ...]
    findings: tuple[Finding, ...]


def parse_yaml(path: str, text: str) -> Tree:
    """The documents of `text`; `path` is only for messages. Never raises, whatever the text."""
    builder = _Builder(path)
    try:
        for event in yaml.parse(text, Loader=yaml.CSafeLoader):
            if not builder.take(event):
                return Tree((), tuple(builder.findings))
    except yaml.YAMLError as error:
        return Tree((), (*builder.findings, explain(path, text, error)))
    return Tree(tuple(builder.documents), tuple(builder.findings))


def one_document(path: str, tree: Tree) -> tuple[Node | None, tuple[Finding, ...]]:
    """The only document, None for a file without any, and the tree's findings with one for a second document."""
    more = [
        Finding(
            SEVERAL_DOCUMENTS, Place(path, d.line, d.column), "a second document begins here", SEVERAL_DOCUMENTS.fix
        )
        for d in tree.documents[1:2]
    ]
    return next(iter(tree.documents), None), (*tree.findings, *more)


@dataclass(slots=True)
class _Open:
    """A collection that is not closed yet. `pending` is a mapping's key that waits for its value."""

    line: int
    column: int
    mapping: bool
    items: list[Node] = field(default_factory=list)
    entries: list[tuple[Scalar, Node]] = field(default_factory=list)
    seen: dict[str, Scalar] = field(default_factory=dict)
    pending: Node | None = None
    spoiled: bool = False

    def mapping_node(self) -> Node:
        """The mapping; Unreadable where nothing is left of it but a key that was reported (`{{ x }}`)."""
        if self.spoiled and not self.entries:
            return Unreadable(self.line, self.column)
        return Mapping(tuple(self.entries), self.line, self.column)


class _Builder:
    """Takes events one by one; `take` is False once there is no sense in going on."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.documents: list[Node] = []
        self.findings: list[Finding] = []
        self._stack: list[_Open] = []

    def take(self, event: _Event) -> bool:
        """Add one event to the tree."""
        kind = type(event)
        if kind is yaml.ScalarEvent:
            self._close(self._scalar(event))
        elif kind is yaml.MappingStartEvent or kind is yaml.SequenceStartEvent:
            line, column = self._decorated(event)
            self._stack.append(_Open(line, column, kind is yaml.MappingStartEvent))
            if len(self._stack) > MOST_DEPTH:
                self._report(TOO_DEEP, (line, column), f"nested more than {MOST_DEPTH} deep")
                return False
        elif kind is yaml.MappingEndEvent:
            self._close(self._stack.pop().mapping_node())
        elif kind is yaml.SequenceEndEvent:
            done = self._stack.pop()
            self._close(Sequence(tuple(done.items), done.line, done.column))
        elif kind is yaml.AliasEvent:
            mark = event.start_mark
            self._report(ALIAS, (mark.line + 1, mark.column + 1), f"the alias *{event.anchor} is not followed")
            self._close(Unreadable(mark.line + 1, mark.column + 1))
        if len(self.findings) >= MOST_FINDINGS:
            self.findings.append(Finding(TOO_MANY, self.findings[-1].place, f"stopped after {MOST_FINDINGS} mistakes"))
            return False
        return True

    def _scalar(self, event: _Event) -> Scalar:
        line, column = self._decorated(event)
        return Scalar(event.value, event.implicit[0], line, column)

    def _decorated(self, event: _Event) -> tuple[int, int]:
        """The node's place; reports an anchor or a tag on it."""
        mark = event.start_mark
        where = mark.line + 1, mark.column + 1
        if event.anchor is not None:
            self._report(ALIAS, where, f"the anchor &{event.anchor} is not followed")
        if event.tag is not None:
            self._report(TAG, where, f"the tag {event.tag} is not followed")
        return where

    def _close(self, node: Node) -> None:
        if not self._stack:
            self.documents.append(node)
            return
        parent = self._stack[-1]
        if not parent.mapping:
            parent.items.append(node)
        elif parent.pending is None:
            parent.pending = node
        else:
            self._pair(parent, parent.pending, node)
            parent.pending = None

    def _pair(self, parent: _Open, key: Node, value: Node) -> None:
        where = key.line, key.column
        if not isinstance(key, Scalar):
            parent.spoiled = True
            if not isinstance(key, Unreadable):
                self._report(COMPLEX_KEY, where, "a key must be a word, and this one is a list or a mapping")
        elif key.plain and key.text == "<<":
            self._report(MERGE_KEY, where, "the merge key << is not followed")
        elif first := parent.seen.get(key.text):
            related = (Related(Place(self.path, first.line, first.column), "the first one"),)
            message = f"the key {shown(key.text)} stands here twice: first in line {first.line}"
            self._report(DUPLICATE_KEY, where, message, related)
        else:
            parent.seen[key.text] = key
            parent.entries.append((key, value))

    def _report(self, rule: Rule, where: tuple[int, int], message: str, related: tuple[Related, ...] = ()) -> None:
        self.findings.append(Finding(rule, Place(self.path, *where), message, rule.fix, related))
