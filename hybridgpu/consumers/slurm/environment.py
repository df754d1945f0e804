"""What the prolog and the tasks of a job see of its GPUs, as far as the order of GresTypes decides it.

Run on 22.05, 24.11 and 26.05 alike (task/none, no AutoDetect). Why, as read: slurmd adds zero-count records of the
other kind for every GPU, in which gres/mps then finds a count of 0; and each plugin's turn, in the order of GresTypes,
unsets what an earlier one set. Whole GPUs and MIG instances are not affected.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from hybridgpu.model.finding import Rule, Severity

TASK_LOSES_GPUS = Rule(
    "slurm-grestypes-order",
    Severity.ERROR,
    "With mps and shard both in GresTypes, their order decides what a job's tasks are told, on every node: "
    "a task that is told of no GPU finds every GPU of the node, or none.",
    "Write GresTypes=gpu,mps,shard, with a task prolog that gives mps tasks their CUDA_VISIBLE_DEVICES back.",
    "srun on 22.05, 24.11, 26.05; S:src/plugins/gres/common/gres_c_s.c, S:src/plugins/gres/mps/gres_mps.c",
)


@dataclass(frozen=True, slots=True)
class JobSight:
    """What a job of one kind (`mps`, `shard`) sees.

    `task_gpus`: its tasks have CUDA_VISIBLE_DEVICES. `percentage`: CUDA_MPS_ACTIVE_THREAD_PERCENTAGE is right, in the
    prolog too; None for a kind that has none.
    """

    task_gpus: bool
    percentage: bool | None


def sight(names: Collection[str], kind: str) -> JobSight:
    """What a job that asks for `kind` sees under GresTypes `names`, in their order."""
    order = [name for name in names if name in ("mps", "shard")]
    last = order[-1:] == [kind]
    if kind == "mps":
        return JobSight(task_gpus=last, percentage=len(order) == 1 or order == ["mps", "shard"])
    return JobSight(task_gpus=last, percentage=None)


def lost_by_order(names: Collection[str], used: Collection[str], task_prolog: bool) -> str | None:
    """What jobs of the kinds that nodes offer are not told, in words; None where nothing is lost.

    A task prolog can give CUDA_VISIBLE_DEVICES back to an mps task, whose prolog knew it; a wrong percentage, or the
    GPUs of a shard task, it cannot.
    """
    lost: list[str] = []
    for kind in ("mps", "shard"):
        if kind not in used:
            continue
        seen = sight(names, kind)
        if seen.percentage is False:
            lost.append("the tasks of an mps job get CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=0")
        if not seen.task_gpus and not (kind == "mps" and task_prolog):
            lost.append(f"the tasks of a{'n' if kind == 'mps' else ''} {kind} job get no CUDA_VISIBLE_DEVICES")
    return "; ".join(lost) or None
