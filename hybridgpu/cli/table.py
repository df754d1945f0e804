"""A table for a person: columns as wide as they must be, two blanks between. Says nothing about what is in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """The heads and the rows, a line each; all have as many cells."""
    widths = [max(len(row[column]) for row in (heads, *rows)) for column in range(len(heads))]

    def lines() -> Iterator[str]:
        for row in (heads, *rows):
            yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() + "\n"

    return "".join(lines())
