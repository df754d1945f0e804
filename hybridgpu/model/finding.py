"""The only form of bad news: a rule, a place, and a sentence a person can act on.

Every part of hybridgpu that judges something returns findings; nothing here decides how they are printed, and
nothing here raises. A `Rule` is a constant that stands beside the code that yields it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """How bad it is: what is asked for is not in force; without effect or fragile; an assumption."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True, slots=True)
class Place:
    """Where in a file: line and column count from 1."""

    file: str
    line: int
    column: int = 1

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class Rule:
    """One kind of mistake. `since` and `until`: the first and last release of the program that it holds for."""

    id: str
    severity: Severity
    what_happens: str
    fix: str
    source: str
    since: str | None = None
    until: str | None = None


@dataclass(frozen=True, slots=True)
class Related:
    """A second place that a finding is about, and what it has to do with it."""

    place: Place
    message: str


@dataclass(frozen=True, slots=True)
class Finding:
    """One firing of a rule. `message` says what was read and what is allowed; `hint` how to mend it."""

    rule: Rule
    place: Place | None
    message: str
    hint: str = ""
    related: tuple[Related, ...] = ()

    @property
    def severity(self) -> Severity:
        """The rule's severity: a finding never changes it."""
        return self.rule.severity

    @property
    def is_error(self) -> bool:
        """Whether this finding makes a command refuse."""
        return self.rule.severity is Severity.ERROR
