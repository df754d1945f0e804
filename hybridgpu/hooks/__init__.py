"""What Slurm's hooks run where there is something to do: `hybridgpu-hook prolog|epilog|taskprolog|sweep`.

Standard library and mps only, started by slurm/hybridgpu-hook from a copy. Each hook imports only what it needs.
"""

from __future__ import annotations

import os
import sys

from hybridgpu.mps.settings import Settings
from hybridgpu.mps.settings import read as read_settings
from hybridgpu.mps.trouble import Trouble, reason

USAGE = "usage: hybridgpu-hook prolog|epilog|taskprolog|sweep"


def main(arguments: list[str]) -> int:
    """Run one hook over this process's environment.

    Gives its exit code: 64 for wrong usage, 1 for trouble, 3 where a task prolog refuses the task.
    """
    name = arguments[0] if len(arguments) == 1 else ""
    if name not in ("prolog", "epilog", "taskprolog", "sweep"):
        sys.stderr.write(f"{USAGE}\n")
        return 64
    settings = Settings()
    try:
        if name != "taskprolog":  # which needs none of them, and is a user's, who may not be able to read them
            settings = read_settings()
        return _hook(settings, name)
    except (Trouble, OSError) as problem:
        return _failed(settings, name, reason(problem))
    except Exception as bug:  # a traceback says nothing to an admin, and its last line says enough to us
        return _failed(settings, name, f"a bug: {_place(bug)}{type(bug).__name__}: {bug}")


def _hook(settings: Settings, name: str) -> int:
    if name == "taskprolog":
        from hybridgpu.hooks.taskprolog import run as task_prolog

        return task_prolog(settings, os.environ, os.getuid(), sys.stdout.write)
    from hybridgpu.hooks.watchdog import Watchdog

    with Watchdog(settings.whole_seconds, settings.quit_seconds + settings.kill_seconds):
        if name == "prolog":
            from hybridgpu.hooks.prolog import run as prolog

            return prolog(settings, os.environ)
        if name == "epilog":
            from hybridgpu.hooks.epilog import run as epilog

            return epilog(settings, os.environ)
        from hybridgpu.hooks.sweep import run as sweep

        return sweep(settings, sys.stdout.write)


def _failed(settings: Settings, name: str, why: str) -> int:
    """Tell a task's user, by Slurm's `print`, or the journal and slurmd. Gives the exit code.

    What becomes of the task is for slurm/taskprolog.d/50-hybridgpu to say, as where there is no Python at all.
    """
    if name == "taskprolog":
        line = "".join(c if c.isprintable() else "?" for c in why)[:4000]
        sys.stdout.write(f"print hybridgpu: {line}\n")
        return 1
    from hybridgpu.hooks.told import Told

    return Told(settings, name, os.environ).failed(why)


def _place(bug: Exception) -> str:
    trace = bug.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return ""
    return f"{os.path.basename(trace.tb_frame.f_code.co_filename)}:{trace.tb_lineno}: "
