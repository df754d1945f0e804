"""`# hybridgpu: ignore RULE reason`: a finding that somebody has looked at and wants no more of, at one place.

The comment stands behind the line it speaks of, or on a line of its own above it. Only findings whose own place is
there are left out; which findings there are is not known here.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from hybridgpu.files.kinds import SLURM, Input
from hybridgpu.files.quoting import shown
from hybridgpu.files.slurmlines import without_comment
from hybridgpu.files.source import Source, read_source
from hybridgpu.files.yamlvalues import Point, values_of
from hybridgpu.model.finding import Finding, Place, Rule, Severity
from hybridgpu.model.spelling import nearest

WITHOUT_REASON = Rule(
    "check-ignore-without-reason",
    Severity.WARNING,
    "A comment that silences a rule does not say why, and silences nothing.",
    "Write why behind the rule: # hybridgpu: ignore RULE reason.",
    "hybridgpu",
)
UNKNOWN_RULE = Rule(
    "check-ignore-unknown-rule",
    Severity.ERROR,
    "A comment silences a rule that does not exist, so that it silences nothing.",
    "Write the rule as it is printed behind a finding.",
    "hybridgpu",
)
UNUSED = Rule(
    "check-ignore-unused",
    Severity.INFO,
    "A comment silences a rule that finds nothing at its place.",
    "Remove the comment.",
    "hybridgpu",
)

_COMMENT = re.compile(r"#[ \t]*hybridgpu:[ \t]*ignore\b[ \t]*([^\s#]*)[ \t]*(.*?)[ \t\r]*$", re.MULTILINE)


_MOST_BYTES = 64 * 2**20


@dataclass(frozen=True, slots=True)
class _Ignore:
    """One comment. `line` is the line that it speaks of, `place` its own.

    `inside`: where the YAML value begins and ends that it stands in, as a config in a ConfigMap does; of anything
    outside of that it says nothing, since whoever writes a value is not whoever writes the file.
    """

    rule: str
    reason: str
    line: int
    place: Place
    inside: tuple[Point, Point] | None = None

    def silences(self, place: Place) -> bool:
        """Whether a finding at `place`, in the line that the comment speaks of, is meant."""
        return self.inside is None or self.inside[0] <= (place.line, place.column) < self.inside[1]


def apply_ignores(
    findings: Iterable[Finding], files: Sequence[Input], known: Callable[[], Iterable[str]]
) -> tuple[Finding, ...]:
    """The findings that no comment in `files` silences, and findings on the comments; `known` gives all rules' ids."""
    told = list(findings)
    comments = [comment for file in files for comment in _comments(file)]
    if not comments:
        return tuple(told)
    found = list(_mistakes(comments, frozenset(known())))
    wrong = {finding.place for finding in found}
    valid: dict[tuple[str, int, str], list[_Ignore]] = {}
    for comment in comments:
        if comment.place not in wrong:
            valid.setdefault((comment.place.file, comment.line, comment.rule), []).append(comment)
    used: set[Place] = set()
    kept: list[Finding] = []
    for finding in told:
        place = finding.place
        here = valid.get((place.file, place.line, finding.rule.id), ()) if place else ()
        silent = [comment.place for comment in here if place and comment.silences(place)]
        used.update(silent)
        if not silent:
            kept.append(finding)
    found += (
        Finding(UNUSED, i.place, f"{i.rule} finds nothing in line {i.line}", UNUSED.fix)
        for those in valid.values()
        for i in those
        if i.place not in used
    )
    return (*kept, *found)


def _comments(file: Input) -> Iterator[_Ignore]:
    try:
        source = read_source(file.path, most=_MOST_BYTES)
    except OSError:
        return
    if not isinstance(source, Source) or "hybridgpu:" not in source.text:
        return
    lines = source.text.split("\n")
    targets = _targets(lines)
    values = () if file.kind in SLURM else tuple(values_of(source.text))
    for number, line in enumerate(lines, 1):
        found = _COMMENT.search(line)
        if not found:
            continue
        column = found.start() + 1
        inside: tuple[Point, Point] | None = None
        if file.kind in SLURM:
            if len(without_comment(line)) > found.start():  # its # is escaped, and part of a value
                continue
        else:
            at = bisect_right(values, ((number, column), (number, column))) - 1
            inside = values[at] if at >= 0 and (number, column) < values[at][1] else None
        alone = not line[: found.start()].strip()
        yield _Ignore(
            found[1], found[2], targets[number] if alone else number, Place(file.path, number, column), inside
        )


def _targets(lines: Sequence[str]) -> list[int]:
    """For each line, from 1, the next one that is no comment and not blank; itself where there is none."""
    targets = list(range(len(lines) + 1))
    below = 0
    for number in range(len(lines), 0, -1):
        targets[number] = below or number
        line = lines[number - 1].lstrip()
        if line and not line.startswith("#"):
            below = number
    return targets


def _mistakes(comments: Iterable[_Ignore], known: frozenset[str]) -> Iterator[Finding]:
    hints: dict[str, str] = {}
    for comment in comments:
        if comment.rule not in known:
            if comment.rule not in hints:
                near = nearest(comment.rule, known)
                hints[comment.rule] = f"did you mean {near}?" if near else UNKNOWN_RULE.fix
            message = f"there is no rule {shown(comment.rule)}" if comment.rule else "no rule is named"
            yield Finding(UNKNOWN_RULE, comment.place, message, hints[comment.rule])
        elif not comment.reason or comment.reason.split()[0] in known:
            message = f"no reason is given for ignoring {comment.rule}"
            if comment.reason:
                message = f"{comment.reason.split()[0]} is a rule, not a reason: one comment ignores one rule"
            yield Finding(WITHOUT_REASON, comment.place, message, WITHOUT_REASON.fix)
