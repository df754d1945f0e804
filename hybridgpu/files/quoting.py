"""How text that a user wrote is shown in a message: short, on one line, nothing in it that a terminal would obey."""

from __future__ import annotations

from collections.abc import Iterable

_LONGEST = 60
_MOST = 40


def shown(text: str) -> str:
    """The text in quotes, escaped where it is not printable and cut where it is long."""
    if len(text) > _LONGEST:
        text = text[: _LONGEST - 3] + "..."
    return repr(text)


def listed(words: Iterable[str], most: int = _MOST) -> str:
    """`a, b, c`, and how many more there are beyond the first `most`."""
    every = list(words)
    more = f" and {len(every) - most} more" if len(every) > most else ""
    return ", ".join(every[:most]) + more
