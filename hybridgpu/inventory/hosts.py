"""A hostlist to host names in the order written, counted before it is expanded. What a host is for is not known here.

Ranges are ClusterShell's (`gpu[001-010,020]`, `r[1-2]n[1-4]`, `n[0-8/2]`); its node groups (@x), wildcards and set
operators are not taken, since they would make an inventory mean what another file or program says. Order is kept
because NodeAddr, NodeHostname and Port are paired with hosts by position (S:src/common/node_conf.c).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain, product

from ClusterShell.RangeSet import RangeSet, RangeSetParseError

from hybridgpu.files.quoting import listed, shown

MOST_NODES = 65_536
"""Nodes of a cluster, and hosts of a range, that Slurm takes (S:slurm/slurm.h MAX_SLURM_NODES)."""

_PIECE = re.compile(r"\[(?P<ranges>[^\[\]]*)\]|(?P<text>[A-Za-z0-9._:-]+)|(?P<comma>,)")
_RANGE = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9})(?:/([1-9][0-9]{0,8}))?)?")

_SHOWN = 5

_VERY_MANY = 10**12

Part = str | tuple[str, ...]


class HostlistError(ValueError):
    """A hostlist that cannot be read; the text says why."""


def expand(text: str, most: int = MOST_NODES) -> tuple[str, ...]:
    """The hosts of a hostlist, in the order written, twice if they stand there twice. Raises HostlistError.

    Costs no more memory than `most` hosts, whatever the text.
    """
    if text.isalnum() and text.isascii():
        return (text,)
    return tuple(chain.from_iterable(expand_term(term) for term in read_terms(text, most)))


def read_terms(text: str, most: int = MOST_NODES) -> list[list[Part]]:
    """The terms between commas, each as its parts: a string, or the spans of one pair of brackets.

    Raises HostlistError, also where they name more than `most` hosts. Makes none of them.
    """
    terms = list(_terms(text))
    total = sum(_count(term) for term in terms)
    if total > most:
        number = total if total < _VERY_MANY else f"more than {_VERY_MANY}"
        raise HostlistError(f"it names {number} hosts, and at most {most} are possible")
    return terms


def count(text: str) -> int:
    """How many hosts a hostlist names, none where it cannot be read. Makes none of them."""
    try:
        return sum(_count(term) for term in _terms(text))
    except HostlistError:
        return 0


def fold(hosts: Iterable[str]) -> str:
    """A few host names for a message: `gpu004, gpu005 and 7 more`."""
    return listed(dict.fromkeys(hosts), _SHOWN)


def _terms(text: str) -> Iterator[list[Part]]:
    """The terms between commas, each as its parts: a string, or the ranges of one pair of brackets."""
    term: list[Part] = []
    position = 0
    while position < len(text):
        piece = _PIECE.match(text, position)
        if piece is None:
            raise HostlistError(_complaint(text, position))
        position = piece.end()
        if piece["comma"]:
            yield _complete(term)
            term = []
        elif piece["text"]:
            term.append(piece["text"])
        else:
            term.append(tuple(piece["ranges"].split(",")))
    yield _complete(term)


def _complete(term: list[Part]) -> list[Part]:
    if not term:
        raise HostlistError("there is nothing before or after a comma")
    return term


def _complaint(text: str, position: int) -> str:
    character = text[position]
    if character in "[]":
        return f"the bracket at character {position + 1} has no partner"
    if character in "@*?!&^%":
        return f"{character!r} stands for node groups, wildcards or set operations, which an inventory does not take"
    return f"{character!r} at character {position + 1} cannot stand in a host name"


def _count(term: list[Part]) -> int:
    total = 1
    for part in term:
        if not isinstance(part, str):
            total = min(total * sum(_length(span) for span in part), _VERY_MANY)
    return total


def _length(span: str) -> int:
    return len(read_span(span)[0])


def read_span(span: str) -> tuple[range, int]:
    """The numbers of `001-009/2`, and how many digits they have at least. Raises HostlistError."""
    found = _RANGE.fullmatch(span)
    if not found:
        raise HostlistError(f"{shown(span[:40])} in brackets is no number and no range of numbers")
    low, high, step = int(found[1]), int(found[2] or found[1]), int(found[3] or 1)
    if low > high:
        raise HostlistError(f"the range {span} runs backwards")
    return range(low, high + 1, step), len(found[1])


def expand_term(term: list[Part]) -> Iterator[str]:
    """The hosts of one term, in the order written. Raises HostlistError where the ends differ in their digits."""
    choices = [(part,) if isinstance(part, str) else tuple(chain.from_iterable(map(_numbers, part))) for part in term]
    return map("".join, product(*choices))


def _numbers(span: str) -> tuple[str, ...]:
    try:
        return tuple(str(number) for number in RangeSet(span).striter())
    except RangeSetParseError as error:
        raise HostlistError(f"the range {span} is not understood: write both ends with as many digits") from error
