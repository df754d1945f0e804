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
    """The line of one run of a hook, gathered while it runs. `why`: what went wrong so far."""

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
        self.why: list[str] = []

    def outcome(self, outcomes: list[tuple[str, str]]) -> None:
        """What became of which daemon: `started`, `joined`, ..., with its name; empty where it is of none."""
        self._outcomes += outcomes

    def also(self, why: str) -> None:
        """Something that went wrong, and did not end the hook."""
        self.why.append(why)

    def failed(self, why: str) -> int:
        """Note the failure, tell slurmd, and give the exit code."""
        self.also(why)
        self._outcomes = [("failed", "")]
        self.done()
        say("; ".join(self.why), self._hook)
        return 1

    def done(self) -> int:
        """Note the line, and give the exit code."""
        journal.note(
            self._settings,
            self._hook,
            **{name: value or None for name, value in self._known.items()},
            daemon=",".join(name for _, name in self._outcomes) or None,
            outcome=",".join(word for word, _ in self._outcomes) or "nothing",
            seconds=time.monotonic() - self._began,
            why="; ".join(self.why) or None,
        )
        return 0


def say(text: str, hook: str) -> None:
    """One line on standard error, whatever is in it, and whoever reads it."""
    line = "".join(c if c.isprintable() else "?" for c in f"hybridgpu-hook: {hook}: {text}")
    try:
        os.write(2, line.encode("utf-8", "replace")[:4000] + b"\n")
    except OSError:  # slurmd has gone: the journal has it all
        return
