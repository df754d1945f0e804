"""`hybridgpu-hook sweep`: what a timer and the boot run, so that a hook that never came or died leaves nothing.

One line on standard output for each thing that was removed, or could not be; the journal has it already.
"""

from __future__ import annotations

from hybridgpu.hooks.told import say
from hybridgpu.mps import journal, sweep

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from hybridgpu.mps.settings import Settings


def run(settings: Settings, write: Callable[[str], object], pause: float = sweep.PAUSE) -> int:
    """Sweep once. Gives the exit code: 1 where something could not be removed."""
    failed = False
    if lost := journal.trouble(settings):  # no other hook says so, for each would
        say(lost, "sweep")
    for action in sweep.sweep(settings, pause):
        failed |= action.failed
        outcome = "failed" if action.failed else "removed"
        write(f"{action.what} {action.name}: {outcome}: {action.why}\n")
    return 1 if failed else 0
