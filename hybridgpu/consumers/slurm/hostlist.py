"""Slurm's host lists (`n[01-04,7],gpu[1-2]x[3-4]`), which also name device files: expanded in the order written.

ClusterShell's sets sort and drop doubles, and Slurm's lists do neither; device order is what Slurm numbers GPUs by.
Source: S:src/common/hostlist.c.
"""

from __future__ import annotations

import re
from functools import lru_cache

_TOKEN = re.compile(r"(?:\[[^\]]*\]|[^\t, \n])+")
_RANGE = re.compile(r"([0-9]+)(?:-([0-9]+))?")
_MAX_RANGE = 64 * 1024


class BadHostlist(ValueError):
    """A host list that Slurm does not take; the text says which part and why."""


@lru_cache(maxsize=65536)
def expand(text: str, suffix: bool = True) -> tuple[str, ...]:
    """Every name of the list, doubles included.

    `suffix` says whether text behind the last bracket is taken (Release.hostlist_suffix). Raises BadHostlist.
    """
    if "[" not in text:
        return tuple(_TOKEN.findall(text))
    names: list[str] = []
    for token in _TOKEN.findall(text):
        names.extend(_expand_token(token, suffix))
    return tuple(names)


def _expand_token(token: str, suffix: bool) -> list[str]:
    """The last bracket of a token varies fastest, the ones before it are loops around it."""
    head, bracket, tail = token.rpartition("[")
    if not bracket:
        return [token]
    ranges, closing, behind = tail.partition("]")
    if not closing:
        raise BadHostlist(f"'{token}': '[' is never closed")
    if behind and not suffix:
        raise BadHostlist(f"'{token}': text after the last ']' is not taken by this release")
    numbers = _numbers(ranges, token)
    return [f"{prefix}{number}{behind}" for prefix in _prefixes(head, token) for number in numbers]


def _prefixes(head: str, token: str) -> list[str]:
    before, bracket, rest = head.rpartition("[")
    if not bracket or "]" not in rest:
        return [head]
    ranges, _, behind = rest.rpartition("]")
    return [f"{prefix}{number}{behind}" for prefix in _prefixes(before, token) for number in _numbers(ranges, token)]


def _numbers(ranges: str, token: str) -> list[str]:
    """`01-03,7` as texts; a range keeps the width of its first number."""
    numbers: list[str] = []
    for part in ranges.split(","):
        found = _RANGE.fullmatch(part)
        if not found:
            raise BadHostlist(f"'{token}': '{part}' is not a range of numbers")
        low, high = int(found[1]), int(found[2] or found[1])
        if low > high:
            raise BadHostlist(f"'{token}': the range '{part}' runs backwards")
        if high - low >= _MAX_RANGE:
            raise BadHostlist(f"'{token}': the range '{part}' is too long (at most {_MAX_RANGE})")
        width = len(found[1])
        numbers += [str(n).zfill(width) for n in range(low, high + 1)]
    return numbers
