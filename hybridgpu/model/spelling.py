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
    letters = set(lower)
    possible = []
    for candidate in set(words):
        part = _part(lower, candidate)
        most = max(part, _most(lower, letters, candidate.lower()))
        if most >= _LEAST:
            possible.append((-most, candidate, part))
    matcher = SequenceMatcher()
    matcher.set_seq2(lower)
    scored: list[tuple[float, str]] = []
    for most, candidate, part in sorted(possible):
        if len(scored) == count and most > scored[-1][0]:
            break
        matcher.set_seq1(candidate.lower())
        least = max(_LEAST, -scored[-1][0]) if len(scored) == count else _LEAST
        alike = max(part, matcher.ratio()) if matcher.quick_ratio() >= least else part
        if alike >= _LEAST:
            scored = sorted([*scored, (-alike, candidate)])[:count]
    return tuple(candidate for _, candidate in scored)


def is_slip(word: str, right: str) -> bool:
    """Whether `word` is `right` but for a slip of the pen, so that what was meant is beyond doubt."""
    one, other = word.lower(), right.lower()
    return sorted(one) == sorted(other) or SequenceMatcher(None, other, one).ratio() >= _SLIP


def _part(word: str, candidate: str) -> float:
    """From 0 to 1: a part of the candidate counts for more the more of it it is, and if it is a word of its own."""
    lower = candidate.lower()
    if len(word) < _PART or not (lower.startswith(word) or lower.endswith(word)):
        return 0.0
    rest = candidate[len(word) :] if lower.startswith(word) else candidate[-len(word) :]
    return _LEAST + (1 - _LEAST) * len(word) / len(lower) + (_OWN_WORD if rest[:1].isupper() else 0.0)


def _most(word: str, letters: set[str], candidate: str) -> float:
    """What SequenceMatcher's ratio cannot exceed, by the lengths and by the letters that one of the two has alone."""
    others = set(candidate)
    shared = min(len(word) - len(letters - others), len(candidate) - len(others - letters))
    return 2 * shared / (len(word) + len(candidate)) if word or candidate else 1.0
