"""SIGTERM, SIGINT and SIGHUP in a run that changes a machine: answered at once as long as nothing was changed, and from
then on noted, for what was begun is brought to its end, put right and reported.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType

from hybridgpu.errors import Refused
from hybridgpu.model.finding import Finding, Rule, Severity

_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

LEFT_OFF = Rule(
    "left-off",
    Severity.ERROR,
    "A signal ended the run before it changed any card.",
    "Run it again.",
    "docs/apply.md",
)


@dataclass(slots=True)
class Interrupts:
    """The signals that came, in their order; `held`: whether they are but noted."""

    came: list[signal.Signals] = field(default_factory=list)
    held: bool = False

    def hold(self) -> None:
        """From here on a signal is noted, and raises nothing of itself. Raises Refused where one came before."""
        self.held = True
        self.check()

    def check(self) -> None:
        """Raises Refused where one came: called where it is safe to leave off."""
        if self.came:
            raise Refused([Finding(LEFT_OFF, None, f"left off on {self.came[0].name}: no card was changed")])


@contextmanager
def answered() -> Iterator[Interrupts]:
    """Answers signals as this module says; what was in force before is so again afterwards.

    A child that is forked in between does nothing on them: when to stop is its parent's to say.
    """
    interrupts, mine = Interrupts(), os.getpid()

    def note(number: int, frame: FrameType | None) -> None:
        del frame
        if os.getpid() != mine:
            return
        interrupts.came.append(signal.Signals(number))
        if not interrupts.held:
            interrupts.check()

    before = {number: signal.signal(number, note) for number in _SIGNALS}
    try:
        yield interrupts
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
