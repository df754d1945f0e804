"""Slurm's host lists (`n[01-04,7],gpu[1-2]x[3-4]`), which also name device files: expanded in the order written.

ClusterShell's sets sort and drop doubles, and Slurm's lists do neither; device order is what Slurm numbers GPUs by.
Source: S:src/common/hostlist.c.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

_TOKEN = re.compile(r"(?:\[[^\[\]]*\]|[^\t, \n])+")
_RANGE = re.compile(r"(\s*\+?([0-9]+))(?:([^0-9x-][^x-]*)?-\s*\+?([0-9]+)|-?)", re.ASCII)
"""strtoul's numbers: blanks and a plus before them, and anything but an x behind the first one; `1-` is 1."""
_NUMBER_AT_END = re.compile(r"(?<![0-9])[0-9]{20,}\Z")
_LAST_NUMBER = re.compile(r"[0-9]+\Z")
_MAX_RANGE = 64 * 1024
_MAX_NAMES = 16 * _MAX_RANGE
_MAX_WIDTH = 256
_LARGEST = 2**64 - 1

MAX_NAME = 78
"""Characters of a name that every walk over a host list gives back: hostlist_next leaves longer ones out, since it
writes the prefix and then the number into 80 bytes."""


class BadHostlist(ValueError):
    """A host list that Slurm does not take; the text says which part and why."""


@lru_cache(maxsize=1024)
def expand(text: str, suffix: bool = True, may_stay_open: bool = False) -> tuple[str, ...]:
    """Every name of the list, doubles included.

    `suffix` says whether text behind the last bracket is taken (Release.hostlist_suffix), `may_stay_open` whether a
    bracket that is never closed is (Release.hostlist_unclosed, see `unclosed`). Raises BadHostlist.
    """
    names: list[str] = []
    for token in _TOKEN.findall(text):
        names.extend(_expand_token(token, suffix, may_stay_open) if "[" in token else (_plain(token),))
        if len(names) > _MAX_NAMES:
            raise BadHostlist(f"'{_cut(text)}': this names more than {_MAX_NAMES} hosts or files")
    return tuple(names)


def unclosed(text: str) -> str | None:
    """A part of the list whose last bracket is never closed; releases up to 22.05 make one wrong name of it: `n[1-2`
    is the host `n]` (S@22.05:src/common/hostlist.c _hostlist_create_bracketed)."""
    return next((token for token in _TOKEN.findall(text) if "]" not in token.rpartition("[")[2] and "[" in token), None)


def number_at_end_below(name: str, limit: int = _LARGEST) -> bool:
    """Whether the number that ends the name, if one does, is below `limit`: by default one that may end a range, too.

    Slurm reads the number into 64 bits: strtoul gives the largest instead of a larger one, and the node is not found.
    The largest itself ends a single name, but not a range: there slurmd walks on for ever (slurmd -G of 22.05, 24.11,
    26.05: no node record; segmentation fault).
    """
    found = _NUMBER_AT_END.search(name)
    return found is None or _is_below(found[0], limit)


def _is_below(digits: str, limit: int) -> bool:
    digits = digits.lstrip("0")
    return len(digits) <= 20 and int(digits or 0) < limit


def _plain(token: str) -> str:
    if not number_at_end_below(token, _LARGEST + 1):
        raise BadHostlist(f"'{_cut(token)}': Slurm reads no number of more than 64 bits at the end of a name")
    return token


def _cut(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."


def _expand_token(token: str, suffix: bool, may_stay_open: bool) -> list[str]:
    """The last bracket of a token varies fastest, the ones before it are loops around it."""
    head, bracket, tail = token.rpartition("[")
    if not bracket:
        return [token]
    ranges, closing, behind = tail.partition("]")
    if not closing and not may_stay_open:
        raise BadHostlist(f"'{_cut(token)}': '[' is never closed")
    if not closing:
        return [f"{head}]" if head else tail]
    if behind and not suffix:
        raise BadHostlist(f"'{_cut(token)}': text after the last ']' is not taken by this release")
    prefixes, numbers = _prefixes(head, token), _numbers(ranges, token)
    _judge_size(prefixes, numbers, token, _MAX_NAMES)
    return [f"{prefix}{number}{behind}" for prefix in prefixes for number in numbers]


def _prefixes(head: str, token: str) -> list[str]:
    before, bracket, rest = head.rpartition("[")
    if not bracket or "]" not in rest:
        return [head]
    ranges, _, behind = rest.rpartition("]")
    prefixes, numbers = _prefixes(before, token), _numbers(ranges, token)
    _judge_size(prefixes, numbers, token, _MAX_RANGE)
    return [f"{prefix}{number}{behind}" for prefix in prefixes for number in numbers]


def _judge_size(prefixes: list[str], numbers: list[str], token: str, most: int) -> None:
    """Slurm stops at 64 Ki prefixes (hostlist.h MAX_PREFIX_CNT); what the last bracket makes of them, we do."""
    if len(prefixes) * len(numbers) > most:
        raise BadHostlist(f"'{_cut(token)}': the brackets multiply to more than {most} names")


def _numbers(ranges: str, token: str) -> list[str]:
    """`01-03,7` as texts; a range keeps the width of its first number."""
    numbers: list[str] = []
    for part in ranges.split(","):
        found = _RANGE.fullmatch(part)
        if not found:
            raise BadHostlist(f"'{_cut(token)}': '{_cut(part)}' is not a range of numbers")
        if not all(_is_below(digits, _LARGEST) for digits in (found[2], found[4] or found[2])):
            raise BadHostlist(f"'{_cut(token)}': '{_cut(part)}' holds a number that does not fit into 64 bits")
        width = len(found[1]) + len(found[3] or "")
        if width > _MAX_WIDTH:
            raise BadHostlist(f"'{_cut(token)}': '{_cut(part)}' has more than {_MAX_WIDTH} digits")
        low, high = int(found[2]), int((found[4] or found[2])[-_MAX_WIDTH:])
        if low > high:
            raise BadHostlist(f"'{_cut(token)}': the range '{_cut(part)}' runs backwards")
        if high - low >= _MAX_RANGE:
            raise BadHostlist(f"'{_cut(token)}': the range '{_cut(part)}' is too long (at most {_MAX_RANGE})")
        numbers += [str(n).zfill(width) for n in range(low, high + 1)]
        if len(numbers) > _MAX_NAMES:
            raise BadHostlist(f"'{_cut(token)}': this names more than {_MAX_NAMES} hosts or files")
    return numbers


def folded(names: Sequence[str], most: int = 8) -> str:
    """The names in their order as a list for people, runs of numbers in brackets: `gpu[01-03],login`."""
    runs: list[list[str]] = []
    for name in names:
        before = runs[-1][-1] if runs else ""
        if before and _next(before) == name:
            runs[-1].append(name)
        else:
            runs.append([name])
    texts = [run[0] if len(run) == 1 else _bracketed(run[0], run[-1]) for run in runs]
    return ",".join(texts[:most]) + (f" and {len(texts) - most} more" if len(texts) > most else "")


def _next(name: str) -> str:
    found = _LAST_NUMBER.search(name)
    if not found or len(found[0]) > _MAX_WIDTH:
        return ""
    return f"{name[: found.start()]}{str(int(found[0]) + 1).zfill(len(found[0]))}"


def _bracketed(first: str, last: str) -> str:
    start, end = _LAST_NUMBER.search(first), _LAST_NUMBER.search(last)
    if not start or not end:
        return f"{first},{last}"
    return f"{first[: start.start()]}[{start[0]}-{end[0]}]"
