"""What is collected while a file is judged: findings, and whether the daemon would have died. Local to one judging."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from hybridgpu.model.finding import Finding, Place, Related, Rule


class Verdict:
    """Findings in the order they arose, each once; `fatal` as soon as one of them stops the daemon.

    Of rules that are `unjudged`, since what they rest on is not known, nothing is taken.
    """

    def __init__(
        self, findings: Iterable[Finding] = (), fatal: bool = False, unjudged: Collection[Rule] = frozenset()
    ) -> None:
        self._found = dict.fromkeys(findings)
        self.fatal = fatal
        self.unjudged = unjudged

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All of them so far."""
        return tuple(self._found)

    def note(
        self, rule: Rule, place: Place | None, message: str, hint: str = "", related: Iterable[Related] = ()
    ) -> None:
        """Add a finding the daemon survives."""
        if rule not in self.unjudged:
            self._found.setdefault(Finding(rule, place, message, hint, tuple(related)))

    def die(
        self, rule: Rule, place: Place | None, message: str, hint: str = "", related: Iterable[Related] = ()
    ) -> None:
        """Add a finding the daemon dies of."""
        self.fatal = self.fatal or rule not in self.unjudged
        self.note(rule, place, message, hint, related)

    def take(self, findings: Iterable[Finding], fatal: bool) -> None:
        """Add findings made elsewhere."""
        self._found.update(dict.fromkeys(findings))
        self.fatal = self.fatal or fatal
