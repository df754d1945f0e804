"""A task as its own environment shows it to the task prolog. Everything in it may be its user's invention.

So it is only ever used for that user: the record decides whose job it is (taskprolog.py).
"""

from __future__ import annotations

from hybridgpu.hooks.environment import PERCENTAGE, VISIBLE, number
from hybridgpu.hooks.visible import given

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_FIRST_OWN_STEP = 0xFFFFFFF0
"""Step ids from here on are Slurm's own: batch, extern, interactive (S:slurm/slurm.h.in SLURM_MAX_NORMAL_STEP_ID). A
batch script sees none up to 24.11, and -5 on 26.05 (run)."""

_MOST_TASKS = 65536
"""A node has no more; a longer text is nonsense."""


class Task:
    """`visible`: entries of CUDA_VISIBLE_DEVICES. `percentage`: None where there is none, or no number from 0 to 100.

    `shards`: whether Slurm gave it shards. `beside`: how many tasks of its step run on this node, itself counted.
    """

    __slots__ = ("beside", "job", "percentage", "shards", "visible")

    def __init__(
        self, job: int, visible: tuple[str, ...], percentage: int | None = None, shards: bool = False, beside: int = 1
    ) -> None:
        self.job, self.visible, self.percentage, self.shards, self.beside = job, visible, percentage, shards, beside


def read(environ: Mapping[str, str]) -> Task | None:
    """The task of an environment; None where it names no job."""
    job = number(environ.get("SLURM_JOB_ID", ""))
    if job is None:
        return None
    percentage = number(environ.get(PERCENTAGE, ""))
    return Task(
        job=job,
        visible=given(environ.get(VISIBLE)),
        percentage=percentage if percentage is not None and percentage <= 100 else None,
        shards="SLURM_SHARDS_ON_NODE" in environ,
        beside=_beside(environ),
    )


def _beside(environ: Mapping[str, str]) -> int:
    """Tasks of the step on this node: SLURM_STEP_TASKS_PER_NODE (`2(x3),1`) at SLURM_NODEID.

    A batch script is one task, whatever it has inherited. Where the place is not told, the largest number holds, for
    the shares of all tasks together must fit.
    """
    step = environ.get("SLURM_STEP_ID", "")
    if step.startswith("-") or (number(step) or 0) >= _FIRST_OWN_STEP:
        return 1
    counts: list[tuple[int, int]] = []
    for part in environ.get("SLURM_STEP_TASKS_PER_NODE", "")[:_MOST_TASKS].split(","):
        text, repeated, times = part.partition("(x")
        tasks, nodes = number(text), number(times.removesuffix(")")) if repeated else 1
        if not tasks or not nodes or tasks > _MOST_TASKS:
            return 1
        counts.append((tasks, nodes))
    node = number(environ.get("SLURM_NODEID", ""))
    if node is not None:
        for tasks, nodes in counts:
            if node < nodes:
                return tasks
            node -= nodes
    return max(tasks for tasks, _ in counts)
