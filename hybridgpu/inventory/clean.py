"""Holds a YAML tree against a shape: reports every key and value that is not allowed, and gives back a clean tree.

In the clean tree every value has its shape, and what was reported, an unknown key's value too, is Unreadable, so that
whoever judges further neither stumbles over it nor reports it again. A word that is a right one but for a slip of the
pen is read as that one from there on: the mistakes behind it are found in the same run, but none about its own value.
"""

from __future__ import annotations

import re
from functools import cache

from hybridgpu.files.quoting import listed, shown
from hybridgpu.files.yamltree import Mapping, Node, Scalar, Sequence, Unreadable
from hybridgpu.inventory.report import Report
from hybridgpu.inventory.schema import home_of
from hybridgpu.inventory.shape import Block, Choice, Either, Flag, ListOf, MapOf, Shape, Text, Whole, described
from hybridgpu.inventory.synonyms import synonym
from hybridgpu.model.finding import Rule, Severity
from hybridgpu.model.spelling import is_slip, nearest

_SOURCE = "docs/inventory.md"


def _rule(name: str, what_happens: str, fix: str) -> Rule:
    return Rule(name, Severity.ERROR, what_happens, fix, _SOURCE)


UNKNOWN_KEY = _rule(
    "inventory-unknown-key",
    "The key means nothing here, so what it asks for would not happen.",
    "Use one of the allowed keys, or remove it.",
)
KEY_OF_OTHER_MODE = _rule(
    "inventory-key-of-other-mode",
    "The key has no meaning in this mode, so what it asks for would not happen.",
    "Remove the key, or choose the mode that has it.",
)
MISSING_KEY = _rule("inventory-missing-key", "Without this key nothing can be configured.", "Add the key.")
NO_VALUE = _rule(
    "inventory-no-value",
    "The key is there without a value; hybridgpu does not guess one.",
    "Give a value, or remove the key to have its default.",
)
WRONG_KIND = _rule(
    "inventory-wrong-kind",
    "A word, a list and a mapping are three things; this is not the one that is read here.",
    "Write the value as shown.",
)
UNKNOWN_WORD = _rule("inventory-unknown-word", "The value is none of those allowed.", "Use one of the allowed words.")
NOT_A_NUMBER = _rule(
    "inventory-not-a-number",
    "The value is no number that is allowed.",
    "Write a whole number in decimal digits, without a leading zero, sign, point or unit.",
)
ILLEGAL_TEXT = _rule(
    "inventory-illegal-text",
    "The value could not be used where it has to go: a file's line, a path or an object's name.",
    "Use only the characters allowed.",
)
TOO_FEW = _rule("inventory-empty", "An empty list or mapping asks for nothing.", "Fill it, or remove the key.")

COMMA = 'Inside { } a comma ends a value: put a set with a comma in quotes, as "0-3,6".'
_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_LONGEST_WORD = 64


def clean(node: Node, shape: Shape, report: Report, name: str = "") -> Node:
    """The node as far as it has the shape, Unreadable where it has not; `name` is the key it is the value of."""
    if isinstance(node, Unreadable):
        return node
    if isinstance(node, Scalar) and node.plain and node.text in _NULLS:
        return _refuse(
            NO_VALUE, node, report, f"{_called(name, shape)} has no value; allowed: {described(shape)}", _comma(name)
        )
    match shape:
        case Either():
            return clean(node, shape.scalar if isinstance(node, Scalar) else shape.other, report, name)
        case Block() | MapOf():
            if isinstance(node, Mapping):
                return _block(node, shape, report) if isinstance(shape, Block) else _map(node, shape, report)
        case ListOf():
            if isinstance(node, Sequence):
                return _list(node, shape, report, name)
        case _:
            if isinstance(node, Scalar):
                return _scalar(node, shape, report, name)
    return _refuse(WRONG_KIND, node, report, f"{_called(name, shape)} is {_kind(node)}; allowed: {described(shape)}")


def unknown(rule: Rule, word: Scalar, what: str, allowed: tuple[str, ...], report: Report) -> str | None:
    """Reports a word that is none of those allowed, with the nearest of them, and returns that one."""
    right = nearest_short(word.text, allowed)
    hint = f"Did you mean {right}?" if right else rule.fix
    report.add(rule, word, f"{what} {shown(word.text)} is unknown; allowed: {listed(allowed)}", hint)
    return right


def nearest_short(word: str, words: tuple[str, ...]) -> str | None:
    """The nearest of the words, unless the word is too long to be a slip of the pen."""
    if len(word) > _LONGEST_WORD:
        return None
    same = next((right for right in words if right.lower() == word.lower()), None)
    return same or synonym(word, words) or nearest(word, words)


def word(block: Mapping | None, key: str, default: str) -> str:
    """A clean block's word, or the default where the key is not there (or was reported)."""
    value = block.scalar(key) if block else None
    return value.text if value else default


def flag(block: Mapping | None, key: str, default: bool) -> bool:
    """A clean block's flag, or the default where the key is not there (or was reported)."""
    return word(block, key, str(default).lower()) == "true"


def words(block: Mapping | None, key: str) -> tuple[str, ...]:
    """The words of a clean block's list; none where the key is not there."""
    return tuple(item.text for item in block.scalars(key)) if block else ()


def _comma(key: str) -> str:
    """The hint for a key without a value that is half of an index set."""
    return COMMA if _pattern(r"[0-9-]+").fullmatch(key) else ""


def _refuse(rule: Rule, node: Node, report: Report, message: str, hint: str = "") -> Unreadable:
    report.add(rule, node, message, hint)
    return Unreadable(node.line, node.column)


def _called(name: str, shape: Shape) -> str:
    return name or ("this" if isinstance(shape, Either) else shape.what)


def _kind(node: Node) -> str:
    if isinstance(node, Scalar):
        return f"the word {shown(node.text)}"
    return "a list" if isinstance(node, Sequence) else "a mapping"


def _scalar(node: Scalar, shape: Text | Choice | Flag | Whole, report: Report, name: str) -> Node:
    match shape:
        case Choice() | Flag():
            words = shape.words if isinstance(shape, Choice) else ("true", "false")
            if node.text in words:
                return node
            right = unknown(UNKNOWN_WORD, node, name or shape.what, words, report)
            if right is None or not is_slip(node.text, right):
                return Unreadable(node.line, node.column)
            return Scalar(right, node.plain, node.line, node.column)
        case Whole():
            if _digits().fullmatch(node.text) and shape.least <= int(node.text) <= shape.most:
                return node
            rule = NOT_A_NUMBER
        case Text():
            if len(node.text) <= shape.longest and _pattern(shape.pattern).fullmatch(node.text):
                return node
            rule = ILLEGAL_TEXT
    message = f"{name or shape.what} {shown(node.text)} is not allowed; allowed: {described(shape)}"
    return _refuse(rule, node, report, message)


def _list(node: Sequence, shape: ListOf, report: Report, name: str) -> Node:
    if len(node.items) < shape.least:
        return _refuse(TOO_FEW, node, report, f"{name or shape.what} is empty; allowed: at least {shape.least}")
    items = tuple(clean(item, shape.item, report, f"an item of {name}" if name else "") for item in node.items)
    return Sequence(items, node.line, node.column)


def _map(node: Mapping, shape: MapOf, report: Report) -> Node:
    if len(node.entries) < shape.least:
        return _refuse(TOO_FEW, node, report, f"the mapping {shape.what} is empty; allowed: at least {shape.least}")
    entries = []
    for word, value in node.entries:
        if not isinstance(clean(word, shape.key, report), Unreadable):
            entries.append((word, clean(value, shape.value, report, word.text)))
    return Mapping(tuple(entries), node.line, node.column)


def _block(node: Mapping, shape: Block, report: Report) -> Node:
    node = _known(node, shape, report)
    entries: list[tuple[Scalar, Node]] = []
    mode = _discriminated(node, shape, report, entries)
    for word, value in node.entries:
        key = shape.key(word.text)
        if key is None:
            entries.append((word, value))
        elif key.name == shape.by:
            continue
        elif mode is not None and key.words and mode not in key.words:
            message = f"{key.name} has no meaning with {shape.by} {mode}; it is allowed with {listed(key.words)}"
            report.add(KEY_OF_OTHER_MODE, word, message)
        else:
            entries.append((word, clean(value, key.shape, report, key.name)))
    for key in shape.keys:
        here = not key.words or mode in key.words
        if key.required and here and node.get(key.name) is None:
            allowed = f"; allowed: {described(key.shape)}"
            report.add(MISSING_KEY, node, f"{key.name} is missing here ({shape.what}){allowed}", f"Add {key.name}.")
    return Mapping(tuple(entries), node.line, node.column)


def _discriminated(node: Mapping, shape: Block, report: Report, entries: list[tuple[Scalar, Node]]) -> str | None:
    """The block's discriminating value, cleaned and added to `entries` first; None if there is none to go by."""
    key = shape.key(shape.by) if shape.by else None
    word, value = (node.key(shape.by), node.get(shape.by)) if key else (None, None)
    if key is None or word is None or value is None:
        return None
    done = clean(value, key.shape, report, key.name)
    entries.append((word, done))
    return done.text if isinstance(done, Scalar) else None


def _known(node: Mapping, shape: Block, report: Report) -> Mapping:
    """The mapping with unknown keys reported, and renamed to the nearest key where that one is not there.

    What was meant may be doubtful: then the value is Unreadable, and the key stands for one that is there.
    """
    names = tuple(key.name for key in shape.keys)
    if all(word.text in names for word, _ in node.entries):
        return node
    taken = {word.text for word, _ in node.entries}
    entries = []
    for word, value in node.entries:
        right: str | None = word.text
        if word.text not in names:
            right = _unknown_key(word, value, shape, names, report)
            right = None if right in taken else right
        if right:
            taken.add(right)
            sure = word.text == right or is_slip(word.text, right)
            kept = value if sure else Unreadable(word.line, word.column)
            if word.text != right:
                report.doubt(value)
            entries.append((Scalar(right, True, word.line, word.column), kept))
        else:
            entries.append((word, Unreadable(word.line, word.column)))
    return Mapping(tuple(entries), node.line, node.column)


def _unknown_key(word: Scalar, value: Node, shape: Block, names: tuple[str, ...], report: Report) -> str | None:
    right = nearest_short(word.text, names)
    home = home_of(word.text)
    hint = f"Did you mean {right}?" if right else f"{word.text} belongs in {home}." if home else ""
    if isinstance(value, Scalar) and not value.text:
        hint = _comma(word.text) or hint
    message = f"the key {shown(word.text)} is unknown here ({shape.what}); allowed: {listed(names)}"
    report.add(UNKNOWN_KEY, word, message, hint)
    return right


@cache
def _pattern(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def _digits() -> re.Pattern[str]:
    return _pattern(r"0|[1-9][0-9]{0,17}")
