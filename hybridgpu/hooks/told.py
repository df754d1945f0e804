"""What a hook says of itself: one line in the journal, and the reason on standard error where it fails.

Standard error is slurmd's pipe, whose lines go to its log; nothing that we start inherits it.
"""

from __future__ import annotations

import os
import time

from hybridgpu.mps import journal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from hybridgpu.mps.settings import Settings


class Told:
    """The line of one run of a hook, gathered while it runs."""

    def __init__(self, settings: Settings, hook: str, environ: Mapping[str, str]) -> None:
        self._settings, self._hook = settings, hook
        self._began = time.monotonic()
        self._outcomes: list[tuple[str, str]] = []
        self._known = {
            "job": environ.get("SLURM_JOB_ID", ""),
            "restart": environ.get("SLURM_JOB_RESTART_COUNT", ""),
            "uid": environ.get("SLURM_JOB_UID", ""),
            "gpus": environ.get("SLURM_JOB_GPUS", ""),
        }
        self._why: str | None = None

    def outcome(self, outcomes: list[tuple[str, str]]) -> None:
        """What became of which daemon: `started`, `joined`, ..., with its name."""
        self._outcomes += outcomes

    def failed(self, why: str) -> int:
        """Note the failure, tell slurmd, and give the exit code."""
        self._instead("failed", why)
        say(why, self._hook)
        return 1

    def refused(self, why: str) -> int:
        """Note that the job's tasks will be refused, and give the exit code."""
        return self._instead("refused", why)

    def without(self, why: str) -> int:
        """Note that the job goes on without MPS, and give the exit code."""
        return self._instead("without-mps", why)

    def _instead(self, outcome: str, why: str) -> int:
        self._outcomes, self._why = [(outcome, "")], why
        return self.done()

    def done(self) -> int:
        """Note the line, and give the exit code."""
        journal.note(
            self._settings,
            self._hook,
            **{name: value or None for name, value in self._known.items()},
            daemon=",".join(name for _, name in self._outcomes if name) or None,
            outcome=",".join(word for word, _ in self._outcomes) or "nothing",
            seconds=time.monotonic() - self._began,
            why=self._why,
        )
        return 0


def say(text: str, hook: str) -> None:
    """One line on standard error, whatever is in it, and whoever reads it."""
    line = "".join(c if c.isprintable() else "?" for c in f"hybridgpu-hook: {hook}: {text}")
    try:
        os.write(2, line.encode("utf-8", "replace")[:4000] + b"\n")
    except OSError:  # slurmd has gone: the journal has it all
        return
