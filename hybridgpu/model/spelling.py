"""The nearest right word to one that is not right. Knows no vocabulary of its own: the caller brings the words."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def nearest(word: str, words: Iterable[str]) -> str | None:
    """The one of `words` most like `word`, whatever its case, or None if none is like it."""
    return next(iter(nearest_words(word, words, 1)), None)


def nearest_words(word: str, words: Iterable[str], count: int) -> tuple[str, ...]:
    """Up to `count` of `words`, most like `word` first; case does not count. Empty if none is like it."""
    spelled = {candidate.lower(): candidate for candidate in sorted(set(words), reverse=True)}
    return tuple(spelled[match] for match in get_close_matches(word.lower(), spelled, n=count, cutoff=0.6))
