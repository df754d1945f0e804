"""`# hybridgpu: ignore RULE reason`: a finding that somebody has looked at and wants no more of, at one place.

The comment stands behind the line it speaks of, or on a line of its own above it. Only findings whose own place is
there are left out; which findings there are is not known here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from hybridgpu.files.source import Source, read_source
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


@dataclass(frozen=True, slots=True)
class _Ignore:
    """One comment. `line` is the line that it speaks of, `place` its own."""

    rule: str
    reason: str
    line: int
    place: Place


def apply_ignores(
    findings: Iterable[Finding], files: Sequence[str], known: Callable[[], Iterable[str]]
) -> tuple[Finding, ...]:
    """The findings that no comment in `files` silences, and findings on the comments; `known` gives all rules' ids."""
    told = list(findings)
    comments = {(i.place.file, i.line, i.rule): i for path in files for i in _comments(path)}
    if not comments:
        return tuple(told)
    found = list(_mistakes(comments.values(), tuple(known())))
    wrong = {finding.place for finding in found}
    valid = {key: i for key, i in comments.items() if i.place not in wrong}
    kept = [finding for finding in told if _key(finding) not in valid]
    used = {_key(finding) for finding in told}
    found += (
        Finding(UNUSED, i.place, f"{i.rule} finds nothing in line {i.line}", UNUSED.fix)
        for key, i in valid.items()
        if key not in used
    )
    return (*kept, *found)


def _key(finding: Finding) -> tuple[str, int, str] | None:
    return (finding.place.file, finding.place.line, finding.rule.id) if finding.place else None


def _comments(path: str) -> Iterator[_Ignore]:
    try:
        if b"hybridgpu:" not in Path(path).read_bytes():
            return
        source = read_source(path)
    except OSError:
        return
    if not isinstance(source, Source):
        return
    lines = source.text.split("\n")
    for number, line in enumerate(lines, 1):
        found = _COMMENT.search(line)
        if found:
            alone = not line[: found.start()].strip()
            target = _next(lines, number) if alone else number
            yield _Ignore(found[1], found[2], target, Place(path, number, found.start() + 1))


def _next(lines: Sequence[str], number: int) -> int:
    """The first line after `number` that is no comment and not blank."""
    below = enumerate(lines[number:], number + 1)
    return next((n for n, line in below if line.strip() and not line.lstrip().startswith("#")), number)


def _mistakes(comments: Iterable[_Ignore], known: Sequence[str]) -> Iterator[Finding]:
    for comment in comments:
        if comment.rule not in known:
            near = nearest(comment.rule, known)
            hint = f"did you mean {near}?" if near else UNKNOWN_RULE.fix
            message = f"there is no rule {comment.rule!r}" if comment.rule else "no rule is named"
            yield Finding(UNKNOWN_RULE, comment.place, message, hint)
        elif not comment.reason or comment.reason.split()[0] in known:
            message = f"no reason is given for ignoring {comment.rule}"
            if comment.reason:
                message = f"{comment.reason.split()[0]} is a rule, not a reason: one comment ignores one rule"
            yield Finding(WITHOUT_REASON, comment.place, message, WITHOUT_REASON.fix)
