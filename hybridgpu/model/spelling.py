"""The nearest right word to one that is not right. Knows no vocabulary of its own: the caller brings the words."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import SequenceMatcher

_LEAST = 0.6
_SLIP = 0.75
_OWN_WORD = 0.1
_PART = 3
"""A part of a word is taken for the word from so many letters on."""


def nearest(word: str, words: Iterable[str]) -> str | None:
    """The one of `words` most like `word`, whatever its case, or None if none is like it."""
    return next(iter(nearest_words(word, words, 1)), None)


def nearest_words(word: str, words: Iterable[str], count: int) -> tuple[str, ...]:
    """Up to `count` of `words`, most like `word` first; case does not count. Empty if none is like it.

    A word that begins or ends with `word` is like it, however long it is: `CoresPerSocket` is what `Cores` means.
    """
    lower = word.lower()
    matcher = SequenceMatcher()
    matcher.set_seq2(lower)
    scored = []
    for candidate in sorted(set(words)):
        matcher.set_seq1(candidate.lower())
        alike = _likeness(matcher, lower, candidate)
        if alike >= _LEAST:
            scored.append((-alike, candidate))
    return tuple(candidate for _, candidate in sorted(scored)[:count])


def is_slip(word: str, right: str) -> bool:
    """Whether `word` is `right` but for a slip of the pen, so that what was meant is beyond doubt."""
    one, other = word.lower(), right.lower()
    return sorted(one) == sorted(other) or SequenceMatcher(None, other, one).ratio() >= _SLIP


def _likeness(matcher: SequenceMatcher[str], word: str, candidate: str) -> float:
    """From 0 to 1. A part of the candidate counts for more the more of it it is, and if it is a word of its own."""
    part, lower = 0.0, candidate.lower()
    if len(word) >= _PART and (lower.startswith(word) or lower.endswith(word)):
        part = _LEAST + (1 - _LEAST) * len(word) / len(lower)
        rest = candidate[len(word) :] if lower.startswith(word) else candidate[-len(word) :]
        part += _OWN_WORD if rest[:1].isupper() else 0.0
    if min(matcher.real_quick_ratio(), matcher.quick_ratio()) < _LEAST:
        return part
    return max(part, matcher.ratio())
