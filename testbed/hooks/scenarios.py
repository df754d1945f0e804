"""The jobs whose hooks are recorded, and the clusters on which they run. Data only; record.py runs them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from testbed.driver.cut import Cut
from testbed.hooks.installed import EPILOG, PROLOG, TASK_PROLOG


@dataclass(frozen=True, slots=True)
class Scenario:
    """A command line of sh, run as alice; TELL in it stands for a program that tells what its task sees."""

    name: str
    command: str


@dataclass(frozen=True, slots=True)
class Site:
    """A cluster: `sharing` by node, keys below the inventory's `slurm:`, lines behind slurm.conf, and its jobs."""

    name: str
    nodes: Mapping[str, str]
    scenarios: tuple[Scenario, ...]
    settings: str = ""
    slurm: str = ""
    confined: bool = True
    cuts: Mapping[int, Cut] = field(default_factory=dict)
    stepd: bool = False

    @property
    def machine(self) -> dict[str, Any]:
        """The description of each node's machine: minor numbers are not in PCI order."""
        cards = [
            {"model": "A100-SXM4-80GB", "pci": f"0000:{bus:02x}:00.0", "minor": minor}
            for bus, minor in zip((0x07, 0x0F, 0x47, 0x4E, 0x87, 0x90, 0xB7, 0xBD), MINORS, strict=True)
        ]
        return {"name": "recorded", "gpus": cards}


@dataclass(frozen=True, slots=True)
class StepdJob:
    """A job that runs until it is cancelled, and how many step daemons it has on all nodes."""

    command: str
    steps: int


MINORS = (3, 2, 1, 0, 7, 6, 5, 4)
HOOKS = f"Prolog={PROLOG}\nEpilog={EPILOG}\nTaskProlog={TASK_PROLOG}\n"
"""For a site to which ours would render no hooks."""

QUICK_REQUEUE = "AuthInfo=cred_expire=5\n"
"""A requeued job waits until its credentials have expired: 120 s, unless told otherwise."""

MPS, SHARES = "{mode: mps}", "{mode: time-slicing, replicas: 4}"

_JOBS = (
    Scenario("gpu-1", "srun --gres=gpu:1 TELL"),
    Scenario("gpu-2", "srun --gres=gpu:2 TELL"),
    Scenario("gpu-8", "srun --gres=gpu:8 TELL"),
    Scenario("mps-25", "srun --gres=mps:25 TELL"),
    Scenario("mps-100", "srun --gres=mps:100 TELL"),
    Scenario("mps-25-batch", "sbatch --wait --output=/dev/null --gres=mps:25 --wrap 'TELL; srun TELL; srun TELL'"),
    Scenario("mps-25-two-tasks", "srun --ntasks=2 --gres=mps:25 TELL"),
    Scenario("mps-25-two-nodes", "srun --nodes=2 --ntasks=4 --gres=mps:25 TELL"),
    Scenario("exclusive", "srun --exclusive TELL"),
    Scenario("none", "srun TELL"),
    Scenario("array", "sbatch --wait --output=/dev/null --array=1-2 --gres=gpu:1 --wrap 'TELL'"),
    Scenario("het-two-nodes", "srun --nodelist=n1 --gres=gpu:1 TELL : --nodelist=n2 --gres=gpu:2 TELL"),
    Scenario("het-mps", "srun --nodelist=n1 --gres=mps:25 TELL : --nodelist=n2 --ntasks=2 --gres=mps:50 TELL"),
    Scenario(
        "het-batch",
        "printf '%s\\n' '#!/bin/sh' '#SBATCH --gres=mps:25 --nodelist=n1' '#SBATCH hetjob'"
        " '#SBATCH --gres=mps:50 --nodelist=n2' TELL 'srun --het-group=0,1 TELL' | sbatch --wait --output=/dev/null",
    ),
    Scenario(
        "requeue",
        "job=$(sbatch --parsable --requeue --output=/dev/null --gres=mps:25"
        """ --wrap 'TELL; [ -n "$SLURM_RESTART_COUNT" ] || sleep 60')"""
        '; until [ -n "$(squeue --noheader --states=RUNNING --jobs=$job)" ]; do sleep 0.1; done; sleep 0.5'
        "; scontrol requeue $job",
    ),
    Scenario("gpus-per-task", "srun --ntasks=2 --gpus-per-task=2 TELL"),
    Scenario("gpu-bind", "srun --ntasks=4 --gres=gpu:4 --gpu-bind=single:1 TELL"),
    Scenario("gpu-bind-map", "srun --ntasks=2 --gres=gpu:2 --gpu-bind=map_gpu:1,0 TELL"),
    Scenario(
        "exact-steps",
        "sbatch --wait --output=/dev/null --ntasks=2 --gres=gpu:4 --wrap"
        " 'srun --exact --ntasks=1 --gres=gpu:1 TELL & srun --exact --ntasks=1 --gres=gpu:2 TELL & wait'",
    ),
    Scenario("four-tasks-two-nodes", "srun --nodes=2 --ntasks=4 --gres=gpu:1 TELL"),
    Scenario("uneven-tasks", "srun --nodes=2 --ntasks=3 --distribution=block --gres=mps:25 TELL"),
    Scenario("salloc", "salloc --gres=gpu:1 srun TELL 2>&1"),
    Scenario("batch", "sbatch --wait --output=/dev/null --gres=gpu:2 --wrap 'TELL; srun TELL'"),
)


_OTHERS = (
    Scenario("shard-3", "srun --gres=shard:3 TELL"),
    Scenario("3g-1", "srun --gres=gpu:3g.40gb:1 TELL"),
    Scenario("3g-2", "srun --gres=gpu:3g.40gb:2 TELL"),
    Scenario("1g-2", "srun --gres=gpu:1g.10gb:2 TELL"),
    Scenario("1g-2-bound", "srun --ntasks=2 --gres=gpu:1g.10gb:2 --gpu-bind=single:1 TELL"),
    Scenario("whole-and-3g", "srun --gres=gpu:a100-sxm4-80gb:1,gpu:3g.40gb:1 TELL"),
)


def _some(suffix: str, *names: str) -> tuple[Scenario, ...]:
    commands = {one.name: one.command for one in (*_JOBS, *_OTHERS)}
    return tuple(Scenario(f"{name}.{suffix}", commands[name]) for name in names)


_BOTH = {"n1": MPS, "n2": SHARES}
_MIXED = ("gpu-1", "mps-25", "mps-25-batch", "shard-3", "exclusive")
_CUTS = ("3g-1", "3g-2", "1g-2", "1g-2-bound", "whole-and-3g")
_BOUND = ("gpu-2", "mps-25", "gpu-bind", "exact-steps")
_MIG: dict[int, Cut] = {0: (("3g.40gb", 0), ("3g.40gb", 4)), 1: tuple(("1g.10gb", start) for start in range(7))}
_CUT = "{mode: mig, layout: {0: {3g.40gb: 2}, 1: {1g.10gb: 7}, 2-7: off}}"
SITES = (
    Site("mps", {"n1": MPS, "n2": MPS}, _JOBS, settings=QUICK_REQUEUE, stepd=True),
    Site("alloc", {"n1": MPS}, _some("alloc", "gpu-2", "mps-25", "batch"), settings="PrologFlags=Alloc\n"),
    Site("unconfined", {"n1": MPS, "n2": MPS}, _some("unconfined", *_BOUND), confined=False),
    Site("mps-shard", _BOTH, _some("mps-shard", *_MIXED)),
    Site("shard-mps", _BOTH, _some("shard-mps", *_MIXED), settings="GresTypes=gpu,shard,mps\n"),
    Site("shard", {"n1": SHARES}, _some("shard", "shard-3", "gpu-1"), settings=f"PrologFlags=Alloc\n{HOOKS}"),
    Site("mig", {"n1": _CUT}, _some("mig", *_CUTS, "exclusive"), settings="PrologFlags=Alloc\n", cuts=_MIG),
    Site(
        "mig-nvml",
        {"n1": _CUT},
        _some("mig-nvml", *_CUTS),
        settings=f"PrologFlags=Alloc\n{HOOKS}",
        slurm='autoDetect: "nvml"',
        cuts=_MIG,
    ),
    Site("nvml", {"n1": MPS}, _some("nvml", "gpu-2", "mps-25"), slurm='autoDetect: "nvml"'),
)

_FOR_EVER = "sbatch --output=/dev/null --gres=mps:25"
STEPD_JOBS = (
    StepdJob(f"{_FOR_EVER} --nodelist=n1 --wrap 'srun sleep 600 & srun sleep 600'", 3),
    StepdJob(f"{_FOR_EVER} --array=7 --nodelist=n1 --wrap 'sleep 600'", 2),
    StepdJob(
        "printf '%s\\n' '#!/bin/sh' '#SBATCH --gres=mps:25 --nodelist=n1' '#SBATCH hetjob'"
        " '#SBATCH --gres=mps:50 --nodelist=n2' 'srun --het-group=0,1 sleep 600' | sbatch --output=/dev/null",
        5,
    ),
    StepdJob(f"{_FOR_EVER} --nodes=2 --wrap 'sleep 600'", 3),
)
