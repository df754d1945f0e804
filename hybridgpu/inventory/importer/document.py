"""An inventory as text that people go on writing: block style, short mappings on one line, guesses marked where made.

Data in, text out. Every word is quoted by the YAML library where any reader might take it for something else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import yaml

Value = str | int | bool | Sequence[Any] | Mapping[str, Any]

_NUMBER = re.compile(r"0|[1-9][0-9]{0,17}")
_PLAIN = re.compile(r"[A-Za-z0-9/_][A-Za-z0-9/_.+-]*(?:\[[0-9,-]+\][A-Za-z0-9_.-]*)*")
_LONGEST = 110
"""Characters of a mapping that is written on one line."""

_INDENT = "  "


@dataclass(frozen=True, slots=True)
class Entry:
    """One key of a mapping. `guess`: why the value is a guess, empty where it is none."""

    key: str
    value: Value | Block | tuple[Block, ...]
    guess: str = ""


@dataclass(frozen=True, slots=True)
class Block:
    """A mapping; short ones stand on one line, unless they are `tall`."""

    entries: tuple[Entry, ...]
    tall: bool = False

    def get(self, key: str) -> object:
        """The value of a key, None where it is not there."""
        return next((entry.value for entry in self.entries if entry.key == key), None)

    @property
    def guessed(self) -> bool:
        """Whether a guess stands somewhere in it."""
        return any(e.guess or (isinstance(e.value, Block) and e.value.guessed) for e in self.entries)


@dataclass(frozen=True, slots=True)
class Guess:
    """A value of the text that was guessed: its line, what is written there, and why."""

    line: int
    written: str
    why: str


def number(text: str) -> str | int:
    """A value that is a plain number as one, so that it is written without quotes."""
    return int(text) if _NUMBER.fullmatch(text) else text


def text_of(block: Block) -> tuple[str, tuple[Guess, ...]]:
    """The mapping as the text of a file, and the guesses in it by line."""
    lines: list[str] = []
    guesses: list[Guess] = []
    for line, why in _lines(block, ""):
        if why:
            guesses.append(Guess(len(lines) + 1, line.strip().removeprefix("- "), why))
        lines.append(f"{line}  # guessed: {why}" if why else line)
    return "".join(f"{line}\n" for line in lines), tuple(guesses)


def _lines(block: Block, indent: str) -> Iterator[tuple[str, str]]:
    """Each line with why it is a guess."""
    for entry in block.entries:
        why = _one_line(entry.guess)
        match entry.value:
            case Block():
                flat = _flat(entry.value)
                line = f"{indent}{_pair(entry.key, flat)}" if flat is not None else ""
                if flat is not None and len(line) <= _LONGEST:
                    yield line, why
                else:
                    yield f"{indent}{_word(entry.key)}:", why
                    yield from _lines(entry.value, indent + _INDENT)
            case [Block(), *_] as items:
                yield f"{indent}{_word(entry.key)}:", why
                for item in items:
                    yield from _item(item, indent)
            case value:
                yield f"{indent}{_pair(entry.key, value)}", why


def _item(block: Block, indent: str) -> Iterator[tuple[str, str]]:
    """The lines of a list's item: the first begins with the dash."""
    mark = f"{indent}- "
    for line, why in _lines(block, indent + _INDENT):
        yield mark + line[len(mark) :], why
        mark = indent + _INDENT


def _flat(block: Block) -> dict[str, Any] | None:
    """The block as one value, where it can stand on one line: no guess in it needs a line of its own."""
    if block.guessed or block.tall:
        return None
    record: dict[str, Any] = {}
    for entry in block.entries:
        value = _flat(entry.value) if isinstance(entry.value, Block) else entry.value
        if value is None or (isinstance(value, tuple) and value and isinstance(value[0], Block)):
            return None
        record[entry.key] = value
    return record


def _one_line(why: str) -> str:
    """A reason as a comment: printable, on one line."""
    words = " ".join(why.split())
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in words)


class _Dumper(yaml.SafeDumper):
    """Quotes what is not plainly a word, and writes every mapping and list on one line."""

    def ignore_aliases(self, data: object) -> bool:
        del data
        return True


def _string(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    """Plain where it is a word to every reader; the library still quotes what its resolvers know (off, 24.11)."""
    tag = "tag:yaml.org,2002:str"
    plain = _PLAIN.fullmatch(text) and dumper.resolve(yaml.ScalarNode, text, (True, False)) == tag  # type: ignore[no-untyped-call]
    return dumper.represent_scalar(tag, text, style=None if plain else '"')


_Dumper.add_representer(str, _string)


def _pair(key: str, value: Value) -> str:
    """`key: value` on one line."""
    return _dump({key: value})[1:-1] if isinstance(value, list | tuple | dict) else f"{_word(key)}: {_word(value)}"


def _word(value: Value) -> str:
    """A scalar outside of brackets, where a hostlist needs no quotes."""
    if isinstance(value, str | int):
        return _scalar(value)
    return _dump_block(value)


@lru_cache(maxsize=4096, typed=True)
def _scalar(value: str | int) -> str:
    """Remembered: an inventory says few words over and over, and the library takes its time for each."""
    return _dump_block(value).removesuffix("...").rstrip()


def _dump(data: Any) -> str:  # noqa: ANN401 - any tree of mappings, lists and scalars
    return yaml.dump(
        data, Dumper=_Dumper, sort_keys=False, default_flow_style=True, width=2**20, allow_unicode=False
    ).rstrip("\n")


def _dump_block(value: Value) -> str:
    return yaml.dump(value, Dumper=_Dumper, width=2**20, allow_unicode=False).rstrip("\n")
