"""`hybridgpu node apply` beside a job in an instance that stays: its children have the card's file open, as it has."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.cli.test_apply import Node, node

__all__ = ["node"]

HALVED = "{mode: mig, layout: {0: {2g.12gb: 2}, 1: off}}"
HALF_AND_FOURTHS = "{mode: mig, layout: {0: {2g.12gb: 1, 1g.6gb: 2}, 1: off}}"
FORKS = """
import os, sys, time
file = open(sys.argv[1])
child = os.fork()
print(os.getpid(), child, flush=True) if child else None
time.sleep(60)
"""


@contextmanager
def job(on: Node) -> Iterator[tuple[int, int]]:
    """A job with a card's file open, and its child, by their pids."""
    path = str(on.machine.root / "dev/nvidia0")
    with subprocess.Popen([sys.executable, "-c", FORKS, path], stdout=subprocess.PIPE, start_new_session=True) as run:
        assert run.stdout is not None
        parent, child = map(int, run.stdout.readline().split())
        try:
            yield parent, child
        finally:
            os.killpg(run.pid, 9)


@pytest.mark.parametrize("start", [0, 2])
def test_a_jobs_children_are_where_the_job_is(node: Node, start: int) -> None:
    node.wants(HALVED)
    assert node.report()[0] == 0
    instance = next(i for i in node.machine.show()["gpus"][0]["instances"] if i["start"] == start)
    node.wants(HALF_AND_FOURTHS)
    with job(node) as (parent, child):
        node.machine.run(0, parent, "compute", instance["id"], 0)
        code, report = node.report()
        held = {holder["pid"]: (holder["use"], holder["gi"]) for holder in report["cards"][0]["holders"]}
    if start == 0:  # it stays: only the other one goes
        assert (code, held, node.cut()[0]) == (0, {}, ["1g.6gb", "1g.6gb", "2g.12gb"]), report["findings"]
    else:
        assert (code, node.cut()[0]) == (1, ["2g.12gb"] * 2)
        assert held == {parent: ("compute", instance["id"]), child: ("open file", instance["id"])}
