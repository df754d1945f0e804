"""The order of GresTypes and what it takes from a job's tasks, against the table that was measured."""

from __future__ import annotations

import pytest

from hybridgpu.consumers.slurm.environment import JobSight, lost_by_order, sight

MEASURED = {
    ("gpu,shard,mps", "mps"): JobSight(task_gpus=True, percentage=False),
    ("gpu,shard,mps", "shard"): JobSight(task_gpus=False, percentage=None),
    ("gpu,mps,shard", "mps"): JobSight(task_gpus=False, percentage=True),
    ("gpu,mps,shard", "shard"): JobSight(task_gpus=True, percentage=None),
    ("gpu,mps", "mps"): JobSight(task_gpus=True, percentage=True),
    ("gpu,shard", "shard"): JobSight(task_gpus=True, percentage=None),
    ("gpu,mps,nic,shard", "shard"): JobSight(task_gpus=True, percentage=None),
}


@pytest.mark.parametrize(("order", "kind"), MEASURED)
def test_what_a_job_sees_was_measured(order: str, kind: str) -> None:
    """srun on 22.05.8, 24.11.5 and 26.05.5 alike."""
    assert sight(order.split(","), kind) == MEASURED[order, kind]


LOST = {
    ("gpu,mps,shard", "gpu shard", False): None,
    ("gpu,mps,shard", "gpu mps", False): "the tasks of an mps job get no CUDA_VISIBLE_DEVICES",
    ("gpu,mps,shard", "gpu mps", True): None,
    ("gpu,shard,mps", "gpu mps", True): "the tasks of an mps job get CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=0",
    ("gpu,shard,mps", "gpu shard", True): "the tasks of a shard job get no CUDA_VISIBLE_DEVICES",
    ("gpu,shard,mps", "gpu", False): None,
    ("gpu,mps", "gpu mps", False): None,
}


@pytest.mark.parametrize(("order", "used", "task_prolog"), LOST)
def test_only_what_nodes_offer_can_be_lost(order: str, used: str, task_prolog: bool) -> None:
    assert lost_by_order(order.split(","), used.split(), task_prolog) == LOST[order, used, task_prolog]
