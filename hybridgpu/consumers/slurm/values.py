"""Values of GRES keys as Slurm's C code reads them: counts with a suffix, ranges of cores, lists of links.

Text in, numbers out, None where Slurm refuses; whether that matters is the caller's to say.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_MAX_LINK = 1023
_SUFFIXES: Mapping[str, int] = {
    "": 1,
    **{f"{unit}{ending}": 1024**power for power, unit in enumerate("kmgtp", 1) for ending in ("", "ib")},
    **{f"{unit}b": 1000**power for power, unit in enumerate("kmgtp", 1)},
}


def multiplier(suffix: str) -> int | None:
    """K, KiB = 1024, KB = 1000 ... P; None for an unknown suffix (S:slurm_protocol_defs.c suffix_mult)."""
    return _SUFFIXES.get(suffix.lower())


def count(text: str) -> int | None:
    """Count= as slurmd computes it, in 64 bits without sign (-3 is a huge number); None where it refuses."""
    found = re.match(r"[+-]?[0-9]+", text)
    digits = found[0] if found else "0"
    factor = multiplier(text[found.end() :] if found else text)
    if factor is None or not -(2**63) < int(digits) < 2**63 - 1:
        return None
    total = int(digits) * factor % 2**64
    return total if total < 2**64 - 2 else None


def core_set(text: str, cores: int) -> frozenset[int] | None:
    """The cores that a Cores= text names, as Slurm's bitmaps read it; None where one lies beyond `cores`.

    What is no digit, comma or dash is skipped, and a part without digits is core 0 (bitfmt2int).
    """
    if ":" in text:
        return _stepped(text, cores)
    chosen: set[int] = set()
    for part in [] if text[:1] in ("", ",") else text.split(","):
        low, dash, high = re.sub(r"[^0-9-]", "", part).rpartition("-")
        last = int(high or 0)
        first = int(low.rpartition("-")[2] or 0) if dash else last
        if max(first, last) >= cores:
            return None
        chosen.update(range(first, last + 1))
    return frozenset(chosen)


def _stepped(text: str, cores: int) -> frozenset[int] | None:
    """`0-8:2` is 0, 2, 4, 6: the last number is not part of it."""
    found = re.fullmatch(r"([0-9]*)-([0-9]*):([0-9]+)", text)
    if not found or int(found[3]) == 0 or int(found[2] or 0) < int(found[1] or 0):
        return None
    chosen = frozenset(range(int(found[1] or 0), int(found[2] or 0), int(found[3])))
    return None if any(core >= cores for core in chosen) else chosen


def links_fault(text: str) -> str | None:
    """What slurmd has against a Links= text, in words; None where it takes it (gres_links_validate)."""
    if not text:
        return "is empty"
    tokens = [token for token in text.split(",") if token]
    values = [int(t) if re.fullmatch(r"\s*[+-]?[0-9]+", t) else None for t in tokens]
    if any(value is None or not -2 <= value <= _MAX_LINK for value in values):
        return "holds what is no number from -2 to 1023"
    if values.count(-1) != 1:
        return f"has {values.count(-1)} times -1, must have one"
    return None
