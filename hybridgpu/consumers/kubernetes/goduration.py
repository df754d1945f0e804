"""A time in Go's notation (`1m30s`), or why it is none, in Go's words. Source: Go's time.ParseDuration."""

from __future__ import annotations

import re

_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART = re.compile(r"(?P<number>\d*(?:\.\d*)?)(?P<unit>[^\d.]*)", re.A)
_MOST_SECONDS = 2**63 / 1e9


def parse_duration(text: str) -> float | str:
    """Seconds, or Go's words for what is wrong with the text."""
    invalid = f"time: invalid duration {_quoted(text)}"
    sign, rest = (-1.0, text[1:]) if text.startswith("-") else (1.0, text.removeprefix("+"))
    if rest == "0":
        return 0.0
    if not rest:
        return invalid
    total = 0.0
    while rest:
        match = _PART.match(rest)
        if match is None or match["number"] in ("", "."):
            return invalid
        if not match["unit"]:
            return f"time: missing unit in duration {_quoted(text)}"
        if match["unit"] not in _UNITS:
            return f"time: unknown unit {_quoted(match['unit'])} in duration {_quoted(text)}"
        total += float(match["number"]) * _UNITS[match["unit"]]
        rest = rest[match.end() :]
    return sign * total if total < _MOST_SECONDS else invalid


def _quoted(text: str) -> str:
    """As package time quotes: every byte that is not printable ASCII as \\xNN."""
    return '"' + "".join(_quoted_byte(byte) for byte in text.encode("utf-8", "surrogatepass")) + '"'


def _quoted_byte(byte: int) -> str:
    if byte < 0x20 or byte > 0x7F:
        return f"\\x{byte:02x}"
    return f"\\{byte:c}" if byte in b'"\\' else chr(byte)
