"""Whole processes timed in turn, A B A B, so that a ratio holds while the machine's speed drifts."""

from __future__ import annotations

import os
import resource
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

Command = Sequence[str]


@dataclass(frozen=True, slots=True)
class Run:
    """One finished process: wall and CPU time in seconds, peak memory in MiB."""

    wall: float
    cpu: float
    peak: float


def run(command: Command) -> Run:
    """Runs a command with its output thrown away. Raises RuntimeError where it fails."""
    begin = time.perf_counter()
    pid = os.posix_spawn(command[0], list(command), os.environ, file_actions=_quiet())
    _, status, usage = os.wait4(pid, 0)
    wall = time.perf_counter() - begin
    if status:
        raise RuntimeError(f"{' '.join(command)}: exit status {os.waitstatus_to_exitcode(status)}")
    return Run(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def in_turn(
    commands: dict[str, Command], runs: int, prepare: Callable[[str], None] = lambda _: None
) -> dict[str, list[Run]]:
    """Each command `runs` times, one after the other in turn, after one round that does not count."""
    results: dict[str, list[Run]] = {name: [] for name in commands}
    for turn in range(runs + 1):
        for name, command in commands.items():
            prepare(name)
            result = run(command)
            if turn:
                results[name].append(result)
    return results


def median(runs: list[Run]) -> Run:
    """The median of each figure by itself."""
    return Run(*(statistics.median(getattr(r, figure) for r in runs) for figure in ("wall", "cpu", "peak")))


def table(results: dict[str, list[Run]]) -> None:
    """Prints medians, and the spread of the wall times."""
    print(f"{'':34} {'wall s':>8} {'min':>8} {'max':>8} {'cpu s':>8} {'peak MiB':>9}")
    for name, runs in results.items():
        middle, walls = median(runs), [r.wall for r in runs]
        print(f"{name:34} {middle.wall:8.3f} {min(walls):8.3f} {max(walls):8.3f} {middle.cpu:8.3f} {middle.peak:9.0f}")


def machine() -> str:
    """What these figures were taken on, as far as it matters."""
    limit = resource.getpagesize() * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{os.cpu_count()} CPUs, {limit:.0f} GiB, Python {sys.version.split()[0]}"


def _quiet() -> list[tuple[int, int, str, int, int]]:
    return [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0), (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0)]
