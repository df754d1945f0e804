"""Tabs that YAML does not take as indentation: its readers complain of the character without naming it."""

from __future__ import annotations


def with_tab(words: str, text: str | bytes, line: int) -> str:
    """A reader's words for a mistake, with the tab named where one stands before or in the indentation of its line."""
    lines = (text.decode(errors="replace") if isinstance(text, bytes) else text).split("\n")
    near = lines[max(line - 2, 0) : line]
    at = next((each for each in reversed(near) if "\t" in each[: len(each) - len(each.lstrip())]), None)
    return words if at is None else f"{words}; a tab stands in the indentation, and YAML takes blanks only"
