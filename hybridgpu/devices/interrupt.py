"""SIGTERM, SIGINT and SIGHUP while a card is being changed: noted, and answered where nothing is half done.

What was begun is brought to its end and put right first; so a handler here never raises.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType

from hybridgpu.errors import Unavailable

_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


@dataclass(slots=True)
class Interrupts:
    """The signals that came, in their order."""

    came: list[signal.Signals] = field(default_factory=list)

    def check(self) -> None:
        """Raises Unavailable where one came: called where it is safe to leave off."""
        if self.came:
            raise Unavailable("device", (), f"left off on {self.came[0].name}: no card was changed")


@contextmanager
def deferred() -> Iterator[Interrupts]:
    """Notes signals instead of being ended by them; what was in force before is so again afterwards."""
    interrupts = Interrupts()

    def note(number: int, frame: FrameType | None) -> None:
        del frame
        interrupts.came.append(signal.Signals(number))

    before = {number: signal.signal(number, note) for number in _SIGNALS}
    try:
        yield interrupts
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
