"""A task as its environment shows it, in which all may be its user's invention."""

from __future__ import annotations

import pytest

from hybridgpu.hooks.task import read
from tests.hooks.cards import recorded

STEP = {"SLURM_JOB_ID": "12", "SLURM_STEP_ID": "0", "SLURM_NODEID": "0"}


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"SLURM_STEP_TASKS_PER_NODE": "8"}, 8),
        ({"SLURM_STEP_TASKS_PER_NODE": "3,1", "SLURM_NODEID": "1"}, 1),
        ({"SLURM_STEP_TASKS_PER_NODE": "2(x3),1", "SLURM_NODEID": "2"}, 2),
        ({"SLURM_STEP_TASKS_PER_NODE": "2(x3),1", "SLURM_NODEID": "3"}, 1),
        # The place is not told: what all of them together may have must fit.
        ({"SLURM_STEP_TASKS_PER_NODE": "2(x3),5", "SLURM_NODEID": "9"}, 5),
        ({"SLURM_STEP_TASKS_PER_NODE": "2(x3),5", "SLURM_NODEID": "x"}, 5),
        # A batch script is one task, whatever the shell of its sbatch was part of.
        ({"SLURM_STEP_TASKS_PER_NODE": "8", "SLURM_STEP_ID": "4294967291"}, 1),
        ({"SLURM_STEP_TASKS_PER_NODE": "8", "SLURM_STEP_ID": "-5"}, 1),
        ({}, 1),
        *(
            ({"SLURM_STEP_TASKS_PER_NODE": text}, 1)
            for text in ("", "0", "-1", "8(x", "8(x0)", "1e9", "８", "8,", "9" * 9)
        ),
        ({"SLURM_STEP_TASKS_PER_NODE": "1," * 100_000}, 1),
    ],
)
def test_how_many_tasks_share(environment: dict[str, str], expected: int) -> None:
    task = read({**STEP, **environment})
    assert task is not None
    assert task.beside == expected


@pytest.mark.parametrize(
    ("text", "expected"), [("25", 25), ("0", 0), ("100", 100), ("101", None), ("", None), ("2５", None), ("x", None)]
)
def test_percentages(text: str, expected: int | None) -> None:
    task = read({**STEP, "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": text})
    assert task is not None
    assert task.percentage == expected


@pytest.mark.parametrize("job", ["", "12\n13", "../12", "1" * 30, "１２"])
def test_no_job_no_task(job: str) -> None:
    assert read({"SLURM_JOB_ID": job}) is None


def test_every_recorded_task_is_read() -> None:
    """The real numbers of tasks a node: as many as there were task prologs of that step on that node."""
    runs = [run for run in recorded("taskprolog") if run.environment.get("SLURM_STEP_ID", "-").isdecimal()]
    steps = [
        (run.scenario, run.node, run.environment["SLURM_JOB_ID"], run.environment["SLURM_STEP_ID"]) for run in runs
    ]
    assert len(steps) > 30
    for run, step in zip(runs, steps, strict=True):
        task = read(run.environment)
        assert task is not None
        assert task.beside == steps.count(step), run.scenario
