"""What is told on the way from files to an inventory: findings, each once. Judges nothing."""

from __future__ import annotations

from collections.abc import Iterable

from hybridgpu.model.finding import Finding, Place, Related, Rule


class Told:
    """Findings in the order they arose."""

    def __init__(self) -> None:
        self._found: dict[Finding, None] = {}

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All of them so far."""
        return tuple(self._found)

    def add(
        self, rule: Rule, place: Place | None, message: str, hint: str = "", related: Iterable[Related] = ()
    ) -> None:
        """One finding; `hint` defaults to the rule's fix."""
        self._found.setdefault(Finding(rule, place, message, hint or rule.fix, tuple(related)))
