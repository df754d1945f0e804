"""The kinds of value an inventory may hold, as data: the language in which schema.py lists the keys.

A shape says what is allowed and what it is called in messages. Reading a value against a shape is `clean`'s work,
drawing a JSON Schema or a page of documentation from it that of `jsonschema` and `reference`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Text:
    """One line of text that matches `pattern` (a regular expression for all of it). `allowed` says it in words."""

    what: str
    pattern: str
    allowed: str
    example: str
    longest: int = 256


@dataclass(frozen=True, slots=True)
class Choice:
    """One of a few words."""

    what: str
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Flag:
    """`true` or `false`, and no other spelling of them."""

    what: str


@dataclass(frozen=True, slots=True)
class Whole:
    """A whole number from `least` to `most`, in decimal digits without a leading zero."""

    what: str
    least: int
    most: int


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list of at least `least` items of one shape."""

    what: str
    item: Shape
    least: int = 0


@dataclass(frozen=True, slots=True)
class MapOf:
    """A mapping whose keys the user chooses: at least `least` of them."""

    what: str
    key: Text
    value: Shape
    least: int = 0


@dataclass(frozen=True, slots=True)
class Key:
    """One key of a block. `default` is shown, not applied; `words` are the values of the block's discriminator for
    which the key is allowed (empty: all of them)."""

    name: str
    shape: Shape
    about: str
    required: bool = False
    default: str = ""
    words: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Block:
    """A mapping with fixed keys. `by` names the key whose value decides which of the others are allowed."""

    what: str
    keys: tuple[Key, ...]
    by: str = ""

    def key(self, name: str) -> Key | None:
        """The key of this name."""
        return next((key for key in self.keys if key.name == name), None)


@dataclass(frozen=True, slots=True)
class Either:
    """A value whose YAML kind says which of two shapes it has: `scalar` for a word, `other` for a mapping or list."""

    scalar: Text | Choice | Whole
    other: Block | ListOf | MapOf


Shape = Text | Choice | Flag | Whole | ListOf | MapOf | Block | Either


def described(shape: Shape) -> str:
    """What is allowed, in a few words, for a message."""
    match shape:
        case Text():
            return f"{shape.allowed}, as {shape.example}"
        case Choice():
            return ", ".join(shape.words)
        case Flag():
            return "true, false"
        case Whole():
            return f"a whole number from {shape.least} to {shape.most}"
        case ListOf():
            return f"a list of {shape.what}"
        case MapOf():
            return f"a mapping, {shape.what}"
        case Block():
            return f"a mapping with {', '.join(key.name for key in shape.keys)}"
        case Either():
            return f"{described(shape.scalar)}; or {described(shape.other)}"
