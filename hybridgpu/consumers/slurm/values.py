"""Values of GRES keys as Slurm's C code reads them: counts with a suffix, ranges of cores, lists of links.

Text in, numbers out, None where Slurm refuses; whether that matters is the caller's to say.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_MAX_LINK = 1023
_WORD = 2**64
_MOST_DIGITS = 1000
_NUMBER = re.compile(r"\s*\+?(0[xX][0-9a-fA-F]+|0[0-7]*|[1-9][0-9]*)")
_HEX = re.compile(r"[+-]?0[xX]")
_SUFFIXES: Mapping[str, int] = {
    "": 1,
    **{f"{unit}{ending}": 1024**power for power, unit in enumerate("kmgtp", 1) for ending in ("", "ib")},
    **{f"{unit}b": 1000**power for power, unit in enumerate("kmgtp", 1)},
}


def multiplier(suffix: str) -> int | None:
    """K, KiB = 1024, KB = 1000 ... P; None for an unknown suffix (S:slurm_protocol_defs.c suffix_mult)."""
    return _SUFFIXES.get(suffix.lower())


def flag(text: str) -> bool | None:
    """A flag of slurm.conf or cgroup.conf (S:src/common/parse_value.c s_p_handle_boolean)."""
    return {
        **dict.fromkeys(("yes", "up", "true", "1"), True),
        **dict.fromkeys(("no", "down", "false", "0"), False),
    }.get(text.lower())


def integer(digits: str) -> int:
    """The number that digits write, a sign before them or not. Beyond any number of C's all are alike: of a thousand
    and more digits only the first are read, where Python would refuse."""
    return int(digits[:_MOST_DIGITS])


def unsigned(text: str, bits: int, kilo: bool = False) -> int | None:
    """A number as C's strtoul with base 0 reads it (010 is 8), `kilo`: with a K behind it
    (S:src/common/parse_value.c s_p_handle_uint16, 32, 64)."""
    most: int = 2**bits - 1
    if text.upper() in ("UNLIMITED", "INFINITE"):
        return most
    found = _NUMBER.match(text)
    digits, rest, factor = (str(found[1]), text[found.end() :], 1) if found else ("0", text, 1)
    if kilo and rest[:1] in ("k", "K"):
        factor, rest = 1024, rest[1:]
    if rest:
        return None
    base = 16 if digits[:2].lower() == "0x" else 8 if digits.startswith("0") else 10
    value = int(digits, base) if base != 10 else integer(digits)
    if value >= _WORD or value * factor % _WORD > most:
        return None
    return value * factor % _WORD


def is_float(text: str) -> bool:
    """Whether s_p_handle_float takes the text: what strtof does, all of it, in the range of 32 bits."""
    if not text or text.upper() in ("UNLIMITED", "INFINITE"):
        return True
    try:
        value = float.fromhex(text) if _HEX.match(text) else float(text)
    except (ValueError, OverflowError):
        return False
    plain = text.strip().lstrip("+-").lower()
    return "_" not in text and (plain[:3] in ("inf", "nan") or abs(value) < 2.0**128)


def count(text: str) -> int | None:
    """Count= as slurmd computes it, in 64 bits without sign (-3 is a huge number); None where it refuses."""
    found = re.match(r"\s*[+-]?[0-9]+", text)
    digits = found[0] if found else "0"
    factor = multiplier(text[found.end() :] if found else text)
    if factor is None or not -(2**63) < integer(digits) < 2**63 - 1:
        return None
    total = integer(digits) * factor % 2**64
    return total if total < 2**64 - 2 else None


def is_count(text: str) -> bool:
    """Whether the last word of a Gres= entry or a request is a count to Slurm: digits, and perhaps a unit
    (S:src/interfaces/gres.c _get_gres_cnt, S:src/plugins/select/cons_tres gres_sched)."""
    found = re.fullmatch(r"[0-9]+(.*)", text)
    return found is not None and multiplier(found[1]) is not None


def core_set(text: str, cores: int) -> frozenset[int] | None:
    """The cores that a Cores= text names, as Slurm's bitmaps read it; None where one lies beyond `cores`.

    What is no digit, comma or dash is skipped, and a part without digits is core 0 (bitfmt2int).
    """
    if ":" in text:
        return _stepped(text, cores)
    chosen: set[int] = set()
    for part in [] if text[:1] in ("", ",") else text.split(","):
        low, dash, high = re.sub(r"[^0-9-]", "", part).rpartition("-")
        last = integer(high or "0")
        first = integer(low.rpartition("-")[2] or "0") if dash else last
        if max(first, last) >= cores:
            return None
        chosen.update(range(first, last + 1))
    return frozenset(chosen)


def _stepped(text: str, cores: int) -> frozenset[int] | None:
    """`0-8:2` is 0, 2, 4, 6: the last number is not part of it."""
    found = re.fullmatch(r"([0-9]*)-([0-9]*):([0-9]+)", text)
    if not found or integer(found[3]) == 0 or integer(found[2] or "0") < integer(found[1] or "0"):
        return None
    chosen = range(integer(found[1] or "0"), integer(found[2] or "0"), integer(found[3]))
    return None if chosen and chosen[-1] >= cores else frozenset(chosen)


def links_fault(text: str) -> str | None:
    """What slurmd has against a Links= text, in words; None where it takes it (gres_links_validate)."""
    if not text:
        return "is empty"
    tokens = [token for token in text.split(",") if token]
    values = [integer(t) if re.fullmatch(r"\s*[+-]?[0-9]+", t) else None for t in tokens]
    if any(value is None or not -2 <= value <= _MAX_LINK for value in values):
        return "holds what is no number from -2 to 1023"
    if values.count(-1) != 1:
        return f"has {values.count(-1)} times -1, must have one"
    return None


def minutes(text: str) -> int | None:
    """A time of slurm.conf in minutes, rounded up: minutes, minutes:seconds, hours:minutes:seconds, days-hours and so
    on; -1 for INFINITE, less for what begins with a dash, None for what is no time
    (S:src/common/parse_time.c time_str2mins, _is_valid_timespec)."""
    if text.upper() in ("-1", "INFINITE", "UNLIMITED"):
        return -1
    days, dash, clock = text.rpartition("-")
    colons = clock.count(":")
    groups = re.findall(r"[0-9]+", text)
    if re.search(r"[^0-9:-]", text) or re.search(r"[:-]", days) or colons > 2 or not groups:
        return None
    if colons and len(groups) < colons + 1 + bool(dash):
        return None
    if dash and not days:
        return -2
    hours, mins, seconds = (
        ([*clock.split(":"), "0", "0"])[:3] if dash or colons == 2 else ["0", *clock.split(":"), "0"][:3]
    )
    parts = ((days, 86400), (hours, 3600), (mins, 60), (seconds, 1))
    total = sum(integer(part or "0") * unit for part, unit in parts)
    return -(-total // 60)
