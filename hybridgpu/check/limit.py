"""How much is told: of a rule in a file so many findings, of a finding so many places, of a text so many characters.

A file with one mistake in every line, or all in one endless line, would bury what else is wrong. Nothing is judged
here, and nothing is left out in silence: how much more there is stands there.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from hybridgpu.model.finding import Finding, Place, Rule, Severity

TOO_MANY = Rule(
    "check-too-many",
    Severity.INFO,
    "One rule fires so often in one file that not every finding is told.",
    "Mend what is told and check again.",
    "hybridgpu",
)

_MOST = 1000
_MOST_PLACES = 100
_LONGEST = 2000
_END = 300
"""Characters at the end of a text that are told: the reason often stands behind what was read."""


def limited(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The findings without their repetitions: the first 1,000 of a rule in a file, and one that counts the others."""
    told: list[Finding] = []
    counts: dict[tuple[Rule, str], int] = {}
    first_left_out: dict[tuple[Rule, str], Place | None] = {}
    for finding in dict.fromkeys(findings):
        key = finding.rule, finding.place.file if finding.place else ""
        counts[key] = counts.get(key, 0) + 1
        if counts[key] <= _MOST:
            told.append(_short(finding))
        else:
            first_left_out.setdefault(key, finding.place)
    for key, place in first_left_out.items():
        message = f"{counts[key] - _MOST} more findings of {key[0].id} from here on"
        told.append(Finding(TOO_MANY, place, message, TOO_MANY.fix))
    return tuple(told)


def _short(finding: Finding) -> Finding:
    texts = (finding.message, finding.hint, *(related.message for related in finding.related))
    others = len(finding.related) - _MOST_PLACES
    if others <= 0 and all(len(text) <= _LONGEST for text in texts):
        return finding
    related = tuple(replace(each, message=_cut(each.message)) for each in finding.related[:_MOST_PLACES])
    message = _cut(finding.message) + (f" ({others} more places are not shown)" if others > 0 else "")
    return replace(finding, message=message, hint=_cut(finding.hint), related=related)


def _cut(text: str) -> str:
    if len(text) <= _LONGEST:
        return text
    return f"{text[: _LONGEST - _END]}... ({len(text) - _LONGEST} characters more) ...{text[-_END:]}"
