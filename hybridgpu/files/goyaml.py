"""YAML as Go programs read it through sigs.k8s.io/yaml: aliases and merges followed, the last of two keys kept.

Kubernetes' own tools and NVIDIA's read so, and their words for what they refuse are given here. Only the first document
is read. The same events as yamltree's, other rules: that one is for files that hybridgpu itself demands to be plain.
Sources: sigs.k8s.io/yaml v1.6.0 yaml.go; go.yaml.in/yaml/v2 v2.4.3 decode.go.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

from hybridgpu.files.goprint import float_key, sharp
from hybridgpu.files.goscalar import BadScalar, resolve
from hybridgpu.files.gotree import GoError, GoKey, GoList, GoMap, GoNode, GoScalar, GoYaml, KeyTwice

_Event = Any  # of libyaml: the stubs know neither tags nor that every event has a mark

_CONVERT = "error converting YAML to JSON: "
_MERGE_TAG = "tag:yaml.org,2002:merge"
_FEW_ALIASES, _FEW_NODES = 100, 1000
_RATIO_FROM, _RATIO_TO = 400_000, 4_000_000


def load(text: str | bytes) -> GoYaml:
    """The first document of `text`, or the words with which a Go program refuses it. Never raises."""
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    builder = _Builder()
    try:
        events = yaml.parse(data, Loader=yaml.CSafeLoader)
        for event in events:
            if not builder.take(event):
                break
    except yaml.YAMLError as error:
        return GoYaml(None, _refusal(error), tuple(builder.twice))
    if builder.error:
        return GoYaml(None, builder.error, tuple(builder.twice))
    root = builder.root or GoScalar(None, "", 1, 1)
    return GoYaml(None if builder.unsupported else root, builder.unsupported, tuple(builder.twice), _more(events))


def _more(events: Iterator[_Event]) -> tuple[int, int] | None:
    """Where a second document begins that says something; go-yaml never looks at it."""
    try:
        for event in events:
            empty = type(event) is yaml.ScalarEvent and not event.value and event.implicit[0]
            if type(event) not in (yaml.DocumentStartEvent, yaml.DocumentEndEvent, yaml.StreamEndEvent) and not empty:
                return event.start_mark.line + 1, event.start_mark.column + 1
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        return (mark.line + 1, mark.column + 1) if mark else (1, 1)
    return None


def _refusal(error: yaml.YAMLError) -> GoError:
    """libyaml's error as go-yaml words it; its line is one short where the parser, not the scanner, complains."""
    problem = str(
        getattr(error, "problem", None) or getattr(error, "reason", None) or "unknown problem parsing YAML content"
    )
    mark, context = getattr(error, "problem_mark", None), getattr(error, "context_mark", None)
    line = 0
    if mark and mark.line:
        line = mark.line + isinstance(error, yaml.scanner.ScannerError)
    elif context:
        line = context.line
    where = f"line {line}: " if line else ""
    place = (mark.line + 1, mark.column + 1) if mark else (1, 1)
    return GoError(f"{_CONVERT}yaml: {where}{problem}", *place)


@dataclass(slots=True)
class _Open:
    """A collection that is not closed yet. `weight` counts decode steps in it, aliases followed."""

    line: int
    column: int
    mapping: bool
    anchor: str | None
    items: list[GoNode] = field(default_factory=list)
    entries: dict[object, tuple[GoKey, GoNode]] = field(default_factory=dict)
    written: dict[str, tuple[GoKey, GoNode]] = field(default_factory=dict)
    pending: tuple[GoNode, bool] | None = None
    weight: int = 1


class _Builder:
    """Takes events one by one; `take` is False once the first document is over."""

    def __init__(self) -> None:
        self.root: GoNode | None = None
        self.error: GoError | None = None
        self.twice: list[KeyTwice] = []
        self.unsupported: GoError | None = None
        self._stack: list[_Open] = []
        self._anchors: dict[str, tuple[GoNode, int] | None] = {}
        self._steps = 1
        self._alias_steps = 0
        self._fatal = False

    def take(self, event: _Event) -> bool:
        """Add one event; a mistake that go-yaml finds only after parsing does not end the reading."""
        kind = type(event)
        if kind is yaml.DocumentStartEvent and event.version not in (None, (1, 1)):
            self._parse_error("found incompatible YAML document", event)
        elif kind is yaml.ScalarEvent:
            self._scalar(event)
        elif kind is yaml.MappingStartEvent or kind is yaml.SequenceStartEvent:
            mark = event.start_mark
            is_mapping = kind is yaml.MappingStartEvent
            self._stack.append(_Open(mark.line + 1, mark.column + 1, is_mapping, event.anchor))
            self._steps += 1
            if event.anchor is not None:
                self._anchors[event.anchor] = None
        elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
            self._end()
        elif kind is yaml.AliasEvent:
            self._alias(event)
        return kind is not yaml.DocumentEndEvent and not self._fatal

    def _fail(self, words: str, line: int, column: int) -> None:
        """Remember the first mistake of the kind found while decoding, which comes after parsing."""
        if self.error is None:
            self.error = GoError(_CONVERT + words, line, column)

    def _parse_error(self, words: str, event: _Event) -> None:
        mark = event.start_mark
        where = f"line {mark.line}: " if mark.line else ""
        self.error = GoError(f"{_CONVERT}yaml: {where}{words}", mark.line + 1, mark.column + 1)
        self._fatal = True

    def _scalar(self, event: _Event) -> None:
        line, column = event.start_mark.line + 1, event.start_mark.column + 1
        plain = event.implicit[0]
        try:
            value = resolve(event.value, event.tag, plain)
        except BadScalar as error:
            self._fail(f"yaml: {error}", line, column)
            value = event.value
        node = GoScalar(value, event.value, line, column)
        if isinstance(value, float) and not math.isfinite(value) and self.unsupported is None:
            self.unsupported = GoError(f"{_CONVERT}json: unsupported value: {sharp(node)}", line, column)
        self._steps += 1
        if event.anchor is not None:
            self._anchors[event.anchor] = (node, 1)
        self._close(node, 1, merge=event.value == "<<" and (plain or event.tag == _MERGE_TAG))

    def _end(self) -> None:
        done = self._stack.pop()
        entries = sorted(done.entries.values(), key=lambda entry: entry[0].name.encode("utf-8", "surrogatepass"))
        node: GoNode = (
            GoMap(tuple(entries), done.line, done.column)
            if done.mapping
            else GoList(tuple(done.items), done.line, done.column)
        )
        if done.anchor is not None:
            self._anchors[done.anchor] = (node, done.weight)
        self._close(node, done.weight)

    def _alias(self, event: _Event) -> None:
        line, column = event.start_mark.line + 1, event.start_mark.column + 1
        name = event.anchor
        node: GoNode = GoScalar(None, f"*{name}", line, column)
        weight = 0
        if name not in self._anchors:
            self.error = GoError(f"{_CONVERT}yaml: unknown anchor '{name}' referenced", line, column)
            self._fatal = True
        elif (target := self._anchors[name]) is None:
            self._fail(f"yaml: anchor '{name}' value contains itself", line, column)
        else:
            node, weight = target
        self._steps += 1 + weight
        self._alias_steps += weight
        if self._alias_steps > _FEW_ALIASES and self._steps > _FEW_NODES and self._too_many_aliases():
            self._fail("yaml: document contains excessive aliasing", line, column)
        self._close(node, 1 + weight)

    def _too_many_aliases(self) -> bool:
        share = min(max((self._steps - _RATIO_FROM) / (_RATIO_TO - _RATIO_FROM), 0), 1)
        return self._alias_steps / self._steps > 0.99 - 0.89 * share

    def _close(self, node: GoNode, weight: int, merge: bool = False) -> None:
        if not self._stack:
            self.root = node
            return
        parent = self._stack[-1]
        parent.weight += weight
        if not parent.mapping:
            parent.items.append(node)
        elif parent.pending is None:
            parent.pending = (node, merge)
        else:
            key, is_merge = parent.pending
            parent.pending = None
            if is_merge:
                self._merge(parent, node)
            else:
                self._pair(parent, key, node)

    def _merge(self, parent: _Open, node: GoNode) -> None:
        """What `<<` brings overrules keys above it, and is overruled by keys below it (decode.go merge)."""
        if self.error is not None:
            return
        maps = tuple(reversed(node.items)) if isinstance(node, GoList) else (node,)
        for source in maps:
            if not isinstance(source, GoMap):
                self._fail("yaml: map merge requires map or sequence of maps as the value", node.line, node.column)
                return
            for key, value in source.entries:
                parent.entries[key.name] = (key, value)

    def _pair(self, parent: _Open, key: GoNode, value: GoNode) -> None:
        if not isinstance(key, GoScalar):
            if self.error is None:  # behind too many aliases nothing is written out
                self._fail(f"yaml: invalid map key: {sharp(key)}", key.line, key.column)
            return
        name = _name(key)
        if name is None:
            if self.error is None:
                words = f"unsupported map key of type: %!s(<nil>), key: <nil>, value: {sharp(value)}"
                self._fail(words, key.line, key.column)
            return
        word = GoKey(name, key.line, key.column)
        if name in parent.written:
            first, before = parent.written[name]
            self.twice.append(KeyTwice(name, first, word, _differ(before, value)))
        parent.written[name] = parent.entries[name] = (word, value)


def _name(key: GoScalar) -> str | None:
    match key.value:
        case None:
            return None
        case bool():
            return "true" if key.value else "false"
        case float():
            return float_key(key.value)
        case _:
            return str(key.value)


def _differ(one: GoNode, other: GoNode) -> bool:
    if isinstance(one, GoScalar) and isinstance(other, GoScalar):
        same = one.value == other.value and type(one.value) is type(other.value)
        return not same and not (_nan(one) and _nan(other))
    return True


def _nan(node: GoScalar) -> bool:
    return isinstance(node.value, float) and math.isnan(node.value)
