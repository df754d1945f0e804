"""Collects what is found wrong in one file, each mistake at its place. Judges nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

from hybridgpu.model.finding import Finding, Place, Related, Rule, Severity

MOST_FINDINGS = 1000

ENOUGH = Rule(
    "inventory-too-many-mistakes",
    Severity.ERROR,
    "Reading stopped: there are too many mistakes.",
    "Mend those above first; most of them are likely one mistake of whatever wrote the file.",
    "hybridgpu limit",
)


class Enough(Exception):
    """Raised inside a reading when the report is full; no reader lets it out."""


class Marked(Protocol):
    """Anything that knows where it stands in the file."""

    @property
    def line(self) -> int:
        """The line, from 1."""

    @property
    def column(self) -> int:
        """The column, from 1."""


class Report:
    """The findings of one file so far. `add` raises Enough once there are too many to be of use."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.findings: list[Finding] = []
        self._doubted: set[Place] = set()

    def place(self, where: Marked) -> Place:
        """The place of a node in this file."""
        return Place(self.file, where.line, where.column)

    def add(
        self, rule: Rule, where: Marked, message: str, hint: str = "", related: tuple[tuple[Marked, str], ...] = ()
    ) -> None:
        """One mistake. `hint` defaults to the rule's fix; `related` are further places with what they have to do."""
        others = tuple(Related(self.place(other), what) for other, what in related)
        self.take(Finding(rule, self.place(where), message, hint or rule.fix, others))

    def doubt(self, where: Marked) -> None:
        """Says that what the value there is meant for is a guess, so that nothing more is reported about it."""
        self._doubted.add(self.place(where))

    def take(self, finding: Finding) -> None:
        """A mistake that somebody else found, with its place in this file."""
        if finding.place in self._doubted:
            return
        if len(self.findings) >= MOST_FINDINGS:
            message = f"stopped after {MOST_FINDINGS} findings"
            self.findings.append(Finding(ENOUGH, finding.place, message, ENOUGH.fix))
            raise Enough
        self.findings.append(replace(finding, hint=finding.hint or finding.rule.fix))


def in_order(findings: list[Finding]) -> tuple[Finding, ...]:
    """Findings sorted by line and column."""
    return tuple(sorted(findings, key=lambda f: (f.place.line, f.place.column) if f.place else (0, 0)))
