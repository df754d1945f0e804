"""An end to everything: a hook that takes too long gives up and cleans, and one that cannot even do that is ended.

slurmd waits for a prolog for ever, unless the site says otherwise (PrologEpilogTimeout).
"""

from __future__ import annotations

import faulthandler
import os
import signal

from hybridgpu.mps.trouble import Trouble

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType, TracebackType


class Overtime(Trouble):
    """The hook's whole time is over."""


class Watchdog:
    """Within its block Overtime is raised after `seconds`; `grace` seconds later the process ends with status 1.

    The end comes from a thread of C: it also ends a call into a driver that does not return.
    """

    def __init__(self, seconds: float, grace: float) -> None:
        self._seconds, self._grace = seconds, grace
        self._nowhere = -1

    def __enter__(self) -> None:
        self._nowhere = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
        faulthandler.dump_traceback_later(self._seconds + self._grace, file=self._nowhere, exit=True)
        signal.signal(signal.SIGALRM, self._bark)
        signal.setitimer(signal.ITIMER_REAL, self._seconds)

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        faulthandler.cancel_dump_traceback_later()
        os.close(self._nowhere)

    def _bark(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        raise Overtime(f"not done after {self._seconds:g} s (WHOLE_SECONDS in hooks.conf)")
