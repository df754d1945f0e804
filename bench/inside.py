"""Runs inside a root of Slurm, alone: rounds of steps, each a program that is timed as slurmd would wait for it.

PLAN is {"rounds": 9, "first": false, "steps": [{"name": "x", "argv": [...], "env": {...}, "stdin": ""}]}; it prints
{"x": [seconds, ...], ...}. `%d` in argv and env is the number of the round; one round before them warms up, and counts
only where `first` says so. slurmd reads a hook's output to its end, so that is waited for, too.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any


def main(plan: dict[str, Any]) -> dict[str, list[float]]:
    """The times of each step, in the order of the rounds."""
    times: dict[str, list[float]] = {}
    for number in range(1, plan["rounds"] + 2):
        for step in plan["steps"]:
            took = _run(
                [word.replace("%d", str(number)) for word in step["argv"]],
                {key: value.replace("%d", str(number)) for key, value in step["env"].items()},
                step.get("stdin", ""),
            )
            if number > 1 or plan["first"]:
                times.setdefault(step["name"], []).append(took)
    return times


def _run(argv: list[str], environment: dict[str, str], text: str) -> float:
    read, write = os.pipe()
    source, sink = os.pipe()
    os.write(sink, text.encode())
    os.close(sink)
    actions = [(os.POSIX_SPAWN_DUP2, source, 0), (os.POSIX_SPAWN_DUP2, write, 1), (os.POSIX_SPAWN_DUP2, write, 2)]
    begin = time.perf_counter()
    pid = os.posix_spawn(argv[0], argv, environment, file_actions=actions)
    os.close(write)
    said = b""
    while block := os.read(read, 65536):
        said += block
    status = os.waitpid(pid, 0)[1]
    took = time.perf_counter() - begin
    os.close(read)
    os.close(source)
    if status:
        raise SystemExit(f"{argv}: status {os.waitstatus_to_exitcode(status)}: {said.decode(errors='replace')}")
    return took


if __name__ == "__main__":
    print(json.dumps(main(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))))
