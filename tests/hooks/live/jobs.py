"""The jobs of the live tests, and what each of their tasks is to see. Data only; all of them run at once.

HOLD in a command is a program that tells what its task sees and then waits until the test lets it go; TELL only tells.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Job:
    """A command line of sh, run as `user`.

    `nodes`: where it runs; a cluster without them leaves it out. `tells`: how often a task of it tells. `share`: the
    percentage that its tasks have, `shares`: where it depends on the node. `sees`: how many devices each task has, none
    of them twice; empty where each has all of the job's. `positions`: by the task's number, which of the job's devices
    it has. `whole_node`: its prolog is told all GPUs, its tasks none.
    """

    name: str
    command: str
    nodes: tuple[str, ...]
    tells: int = 1
    share: int | None = None
    shares: Mapping[str, int] = field(default_factory=dict)
    sees: tuple[int, ...] = ()
    positions: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    user: str = "alice"
    whole_node: bool = False


QUIET = "--quiet --immediate=40"
BATCH = "sbatch --output=/dev/null"

PAIRS = tuple(
    Job(f"{user}-{place}", f"{BATCH} -w m3 --gres=mps:20 --wrap 'HOLD'", ("m3",), share=20, user=user)
    for user in ("alice", "bob")
    for place in ("first", "second")
)
"""Four jobs that Slurm puts on one GPU: of two users, two each."""

RESTARTED = Job(
    "restarted",
    f"{BATCH} --nodes=2 -w m1,m2 --gres=mps:30 --wrap 'TELL; srun TELL; HOLD'",
    ("m1", "m2"),
    tells=4,
    share=30,
    user="bob",
)
"""A job on two nodes with no step between its last and its end: slurmd is restarted beside it, its extern step killed,
and sweeps see nothing of it on the second node but the extern step."""

REQUEUED = Job(
    "requeued", f"{BATCH} --requeue -w m2 --gres=mps:25 --wrap 'HOLD'", ("m2",), tells=2, share=25, user="bob"
)

SHARES = (
    *PAIRS,
    RESTARTED,
    REQUEUED,
    Job("srun", f"srun {QUIET} -w m1 --gres=mps:30 HOLD", ("m1",), share=30),
    Job("all-of-one", f"srun {QUIET} -w m1 --gres=mps:100 HOLD", ("m1",), share=100),
    Job("one-percent", f"srun {QUIET} -w m1 --gres=mps:1 HOLD", ("m1",), share=1, user="bob"),
    Job("salloc", "salloc --quiet -w m1 --gres=mps:35 srun --quiet HOLD", ("m1",), share=35),
    Job("batch", f"{BATCH} -w m1 --gres=mps:25 --wrap 'TELL; srun TELL; srun HOLD'", ("m1",), tells=3, share=25),
    Job("array", f"{BATCH} -w m2 --array=1-2 --gres=mps:15 --wrap 'HOLD'", ("m2",), tells=2, share=15),
    Job("two-tasks", f"srun {QUIET} -w m2 --ntasks=2 --gres=mps:25 HOLD", ("m2",), tells=2, share=25),
    Job("four-on-two", f"srun {QUIET} -w m1,m2 --nodes=2 --ntasks=4 --gres=mps:25 HOLD", ("m1", "m2"), 4, 25),
    Job(
        "uneven",
        f"srun {QUIET} -w m1,m2 --nodes=2 --ntasks=3 --distribution=block --gres=mps:24 HOLD",
        ("m1", "m2"),
        tells=3,
        share=24,
        user="bob",
    ),
    Job("smaller-step", f"{BATCH} -w m2 --gres=mps:40 --wrap 'srun --gres=mps:10 HOLD'", ("m2",), share=10),
    Job(
        "het",
        f"srun {QUIET} -w m1 --gres=mps:20 HOLD : -w m2 --ntasks=2 --gres=mps:50 HOLD",
        ("m1", "m2"),
        tells=3,
        shares={"m1": 20, "m2": 50},
    ),
    Job("whole-card-beside", f"srun {QUIET} -w m2 --gres=gpu:1 HOLD", ("m2",)),
    Job("without-gres", f"srun {QUIET} -w m2 HOLD", ("m2",)),
)

WHOLE = (
    Job("gpu-1", f"srun {QUIET} -w w1 --gres=gpu:1 HOLD", ("w1",)),
    Job("gpu-1-batch", f"{BATCH} -w w1 --gres=gpu:1 --wrap 'TELL; srun HOLD'", ("w1",), tells=2, user="bob"),
    Job(
        "gpus-per-task",
        f"srun {QUIET} -w w1 --ntasks=2 --gpus-per-task=2 HOLD",
        ("w1",),
        tells=2,
        sees=(2, 2),
    ),
    Job(
        "gpu-bind-map",
        f"srun {QUIET} -w w1 --ntasks=2 --gres=gpu:2 --gpu-bind=map_gpu:1,0 HOLD",
        ("w1",),
        tells=2,
        positions={0: (1,), 1: (0,)},
    ),
    Job("gpu-8-exclusive-process", f"srun {QUIET} -w w2 --gres=gpu:8 HOLD", ("w2",), user="bob"),
    Job("gpu-8", f"{BATCH} -w w3 --gres=gpu:8 --wrap 'HOLD'", ("w3",)),
    Job(
        "gpu-bind-single",
        f"srun {QUIET} -w w4 --ntasks=3 --gres=gpu:3 --gpu-bind=single:1 HOLD",
        ("w4",),
        tells=3,
        sees=(1, 1, 1),
    ),
    Job(
        "exact-steps",
        f"{BATCH} -w w4 --ntasks=2 --gres=gpu:3"
        " --wrap 'srun --exact -n1 --gres=gpu:1 HOLD & srun --exact -n1 --gres=gpu:2 HOLD & wait'",
        ("w4",),
        tells=2,
        sees=(1, 2),
        user="bob",
    ),
    Job("whole-node", f"srun {QUIET} -w w5 --exclusive HOLD", ("w5",), whole_node=True),
    Job("whole-mps-node", f"srun {QUIET} -w m4 --exclusive HOLD", ("m4",), whole_node=True),
    Job(
        "het-whole",
        f"srun {QUIET} -w w4 --gres=gpu:1 HOLD : -w c2 --gres=gpu:a100-sxm4-80gb:1 HOLD",
        ("w4", "c2"),
        tells=2,
    ),
)

_INSTANCES = tuple(
    job
    for node in ("c1", "c2")
    for job in (
        Job(f"3g-{node}", f"srun {QUIET} -w {node} --gres=gpu:3g.40gb:1 HOLD", (node,)),
        Job(f"1g-two-{node}", f"{BATCH} -w {node} --gres=gpu:1g.10gb:2 --wrap 'HOLD'", (node,), user="bob"),
        Job(
            f"1g-bound-{node}",
            f"srun {QUIET} -w {node} --ntasks=2 --gres=gpu:1g.10gb:2 --gpu-bind=single:1 HOLD",
            (node,),
            tells=2,
            sees=(1, 1),
        ),
        Job(
            f"card-array-{node}",
            f"{BATCH} -w {node} --array=1-2 --gres=gpu:a100-sxm4-80gb:1 --wrap 'HOLD'",
            (node,),
            tells=2,
        ),
        Job(
            f"card-and-3g-{node}",
            f"srun {QUIET} -w {node} --gres=gpu:a100-sxm4-80gb:1,gpu:3g.40gb:1 HOLD",
            (node,),
        ),
    )
)

SHARDS = (
    Job("shard", f"srun {QUIET} -w s1 --gres=shard:3 HOLD", ("s1",)),
    Job("shard-batch", f"{BATCH} -w s1 --gres=shard:1 --wrap 'TELL; srun HOLD'", ("s1",), tells=2, user="bob"),
    Job("card-beside-shards", f"srun {QUIET} -w s1 --gres=gpu:1 HOLD", ("s1",)),
)

JOBS = (*SHARES, *WHOLE, *_INSTANCES, *SHARDS)
