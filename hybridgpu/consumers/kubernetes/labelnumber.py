"""The number that a label's or a resource's text says: one answer for everybody who counts by labels.

A label may hold any text. What is no plain decimal number of a sane size says nothing; it is never a mistake here.
"""

from __future__ import annotations

_MOST_DIGITS = 9


def label_number(text: str | None) -> int | None:
    """The number that ASCII digits write, at most nine of them; None for any other text, and where there is none."""
    return int(text) if text and len(text) <= _MOST_DIGITS and text.isascii() and text.isdigit() else None
