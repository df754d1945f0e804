"""Passwords that stand in slurm.conf stay there: findings go to logs, reviews and other people's screens.

What stands behind a key that ends in `Pass` (AccountingStoragePass, JobCompPass ...), on its line or the lines that
continue it, is replaced wherever a finding about that line repeats it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from hybridgpu.files.kinds import SLURM, Input
from hybridgpu.files.source import Source, read_source
from hybridgpu.model.finding import Finding, Place

_KEY = re.compile(r"\w*pass(?:word)?\b[ \t]*[-+*/]?[=:]?", re.IGNORECASE)
_WORDS = re.compile(r"[^\s\"'\\]+")
_MOST_WORDS = 200
"""Of a line with more secret words nothing at all is told: looking for each in all of it would take for ever."""
MASK = "***"


def without_secrets(findings: Iterable[Finding], files: Sequence[Input]) -> Iterator[Finding]:
    """The findings, in which no password of these files is told."""
    secrets = {file.path: lines for file in files if file.kind in SLURM and (lines := _secrets(file.path))}
    for finding in findings:
        yield _masked(finding, secrets) if secrets else finding


def _masked(finding: Finding, secrets: Mapping[str, Mapping[int, frozenset[str]]]) -> Finding:
    words = _at(finding.place, secrets).union(*(_at(related.place, secrets) for related in finding.related))
    if not words:
        return finding
    if len(words) > _MOST_WORDS:
        hidden = tuple(replace(each, message=MASK) for each in finding.related)
        return replace(finding, message=finding.rule.what_happens, hint=finding.rule.fix, related=hidden)
    longest = sorted(words, key=len, reverse=True)
    secret = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, longest))})(?!\w)")
    related = tuple(replace(each, message=secret.sub(MASK, each.message)) for each in finding.related)
    return replace(
        finding, message=secret.sub(MASK, finding.message), hint=secret.sub(MASK, finding.hint), related=related
    )


def _at(place: Place | None, secrets: Mapping[str, Mapping[int, frozenset[str]]]) -> frozenset[str]:
    return secrets.get(place.file, {}).get(place.line, frozenset()) if place else frozenset()


def _secrets(path: str) -> dict[int, frozenset[str]]:
    """The words that are nobody's business, by line."""
    try:
        source = read_source(path)
    except OSError:
        return {}
    if not isinstance(source, Source) or "pass" not in source.text.lower():
        return {}
    found: dict[int, frozenset[str]] = {}
    words: set[str] = set()
    first = 0
    for number, line in enumerate(source.text.split("\n"), 1):
        key = _KEY.search(line)
        words.update(_WORDS.findall(line if words else line[key.end() :] if key else ""))
        if line.rstrip().endswith("\\"):
            first = first or number
            continue
        if words:
            found.update(dict.fromkeys(range(first or number, number + 1), frozenset(words)))
        words, first = set(), 0
    return found
