"""What is collected while a file is judged: findings, and whether the daemon would have died. Local to one judging."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from hybridgpu.model.finding import Finding, Place, Related, Rule


@dataclass(slots=True)
class Verdict:
    """Findings in the order they arose; `fatal` once one of them stops the daemon."""

    findings: list[Finding] = field(default_factory=list)
    fatal: bool = False

    def note(
        self, rule: Rule, place: Place | None, message: str, hint: str = "", related: Iterable[Related] = ()
    ) -> None:
        """Add a finding the daemon survives."""
        finding = Finding(rule, place, message, hint, tuple(related))
        if finding not in self.findings:
            self.findings.append(finding)

    def die(
        self, rule: Rule, place: Place | None, message: str, hint: str = "", related: Iterable[Related] = ()
    ) -> None:
        """Add a finding the daemon dies of."""
        self.fatal = True
        self.note(rule, place, message, hint, related)

    def take(self, finding: Finding) -> None:
        """Add a finding made elsewhere that the daemon dies of."""
        self.fatal = True
        self.findings.append(finding)
