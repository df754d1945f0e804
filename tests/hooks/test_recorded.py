"""Recorded jobs from prolog to task: what each task gets must be what its cgroup let it open, on every release."""

from __future__ import annotations

from collections import defaultdict

import pytest

from hybridgpu.hooks import task as tasks
from hybridgpu.hooks.environment import PERCENTAGE, VISIBLE, read
from hybridgpu.hooks.prolog import wanted
from hybridgpu.hooks.taskprolog import MEMORY, PIPE, answered
from hybridgpu.mps.daemon import View
from hybridgpu.mps.job import Job
from tests.hooks.cards import Recorded, Seen, device_map, recorded, view

Where = tuple[str, str]


def mode_of(run: Recorded) -> str:
    if "mps" in run.gres_types and ".shard" not in run.scenario:
        return "mps"
    return "mig" if any(device.profile for device in run.devices.values()) else "time-slicing"


def jobs(whole: bool) -> tuple[dict[Where, list[Job]], dict[str, View]]:
    """The records on each node of each scenario, and the daemons, as the recorded prologs would have left them."""
    records: dict[Where, list[Job]] = defaultdict(list)
    views: dict[str, View] = {}
    for run in recorded("prolog"):
        request = read(run.environment)
        mode = "mps" if request.percentage is not None else mode_of(run)
        daemons = wanted(request, device_map(run.devices, mode, whole))
        for each in daemons:
            views[f"{run.scenario} {run.node} {each.name}"] = view(each.name, *each.devices, uid=each.uid)
        names = tuple(each.name for each in daemons)
        record = Job(
            request.job,
            request.restart or 0,
            request.uid or 0,
            request.gid or 0,
            request.gpus,
            leader=request.leader,
            mode=mode,
            percentage=request.percentage,
            daemons=names,
        )
        where = run.scenario, run.node
        records[where] = [known for known in records[where] if known.job != request.job] + [record]
    return records, views


@pytest.mark.parametrize("whole", [False, True])
def test_every_task_gets_its_own_devices_and_daemon(whole: bool) -> None:
    records, views = jobs(whole)
    shares = named = 0
    for run in recorded("taskprolog"):
        task = tasks.read(run.environment)
        assert task is not None
        mine = [record for record in records[run.scenario, run.node] if task.job in (record.job, record.leader)]
        prefix = f"{run.scenario} {run.node} "
        daemons = {name.removeprefix(prefix): seen for name, seen in views.items() if name.startswith(prefix)}
        answer = answered(task, mine, Seen(run.devices, daemons, run.probe))
        assert answer.refused is None, run.scenario
        given = dict(line.removeprefix("export ").split("=", 1) for line in answer.lines if line.startswith("export "))
        if PERCENTAGE in run.environment:
            shares += 1
            assert PIPE in given, run.scenario
            assert (MEMORY in given) == (task.percentage != 0), run.scenario
        elif not whole:
            assert PIPE not in given, run.scenario
        if VISIBLE in given and run.confined:
            opened = [device.uuid for device in run.devices.values() if {*device.files} <= {*run.opened}]
            assert sorted(given[VISIBLE].split(",")) == sorted(opened), run.scenario
            named += 1
        if not task.visible and task.percentage is None and not task.shards:
            assert answer.lines == [], run.scenario
    assert shares > 20
    assert named > 20


def test_memory_of_all_tasks_of_a_node_is_the_share() -> None:
    """Recorded steps with several tasks: together they have what one would, but for whole MiB."""
    records, views = jobs(whole=False)
    total = 0
    for run in recorded("taskprolog"):
        task = tasks.read(run.environment)
        if task is None or not task.percentage or "SLURM_STEP_ID" not in run.environment:
            continue
        prefix = f"{run.scenario} {run.node} "
        daemons = {name.removeprefix(prefix): seen for name, seen in views.items() if name.startswith(prefix)}
        mine = [record for record in records[run.scenario, run.node] if task.job in (record.job, record.leader)]
        answer = answered(task, mine, Seen(run.devices, daemons, run.probe))
        (line,) = [line for line in answer.lines if MEMORY in line]
        limit = int(line.rpartition("=")[2].removesuffix("M"))
        share = run.devices[0].memory_bytes * task.percentage // 100 >> 20
        if run.environment["SLURM_STEP_ID"].isdecimal():
            assert share - task.beside <= limit * task.beside <= share, run.scenario
            total += task.beside > 1
    assert total > 5
