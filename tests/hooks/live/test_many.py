"""Many short jobs of two users on the eight GPUs of one node, while sweeps run: nothing is lost, and nothing is left.

And what Slurm itself does not do, on which the task prolog's refusals need not wait.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from testbed.hooks.cluster import HookCluster
from testbed.slurm.namespace import attempts
from testbed.slurm.root import SUITES
from tests.conftest import root_of, soak
from tests.hooks.live import nodes
from tests.hooks.live.expected import MEMORY, MIB, MPS, PERCENTAGE, PIPE, VISIBLE
from tests.hooks.live.jobs import Job
from tests.hooks.live.running import Running, wait_idle
from tests.hooks.live.seen import NOTHING_LEFT, daemons, devices, granted, left
from tests.hooks.live.site import Variation, running

pytestmark = pytest.mark.slurm

JOBS, SHARE = soak(24, 200), 10
EACH = 4
AT_ONCE = min(JOBS, 80)
"""What fits on eight GPUs, ten shares each."""

WIDE = Variation(
    "wide",
    ("m1",),
    settings="PartitionName=wide Nodes=ALL State=UP MaxTime=INFINITE OverSubscribe=FORCE:8\n",
)
"""A partition in which cores are no limit."""

RELEASES = SUITES if soak(0, 1) else ["24.11"]


class Sweeps(threading.Thread):
    """Sweeps a node without end, until it is stopped; `wrong`: what sweeps said that failed."""

    def __init__(self, cluster: HookCluster, node: str) -> None:
        super().__init__()
        self.cluster, self.node = cluster, node
        self.wrong: list[str] = []
        self.count = 0
        self._over = threading.Event()

    def run(self) -> None:
        while not self._over.wait(1):
            done = self.cluster.run_on(self.node, [nodes.HOOK, "sweep"])
            self.count += 1
            if done.returncode != 0:
                self.wrong.append(done.stdout + done.stderr)

    def stop(self) -> None:
        self._over.set()
        self.join()


@pytest.mark.parametrize("release", RELEASES)
def test_many_jobs_over_eight_gpus_leave_nothing(
    release: str, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    arrays = [
        Job(
            f"{user}-{number}",
            f"sbatch -p wide -w m1 --output=/dev/null --array=1-{EACH} --gres=mps:{SHARE} --wrap 'HOLD'",
            ("m1",),
            tells=EACH,
            user=user,
        )
        for number in range(JOBS // EACH // 2)
        for user in ("alice", "bob")
    ]
    with running(root_of(release), WIDE, tmp_path) as cluster:
        sweeps = Sweeps(cluster, "m1")
        with Running(cluster, arrays) as jobs:
            sweeps.start()
            try:
                wait_held(cluster)
                grants = granted(cluster)
                pairs = {(grant.uid, grant.indices) for grant in grants}
                assert len(grants) == AT_ONCE
                assert len(daemons(cluster, "m1")) == len(pairs)
                for name in jobs.jobs:
                    jobs.let_go(name)
                told = jobs.everything()
                wait_idle(cluster, 120)
            finally:
                sweeps.stop()
            failed = jobs.failed()
        assert not failed, failed
        assert (sweeps.wrong, sweeps.count > 0) == ([], True)
        memory = {device.uuid: device.memory for device in devices(cluster, "m1").values()}
        index = {device.uuid: device.index for device in devices(cluster, "m1").values()}
        for task in (task for tasks in told.values() for task in tasks):
            seen, uuid = task["environment"], task["environment"][VISIBLE]
            assert task["mps"] == "connected"
            assert (seen[PIPE], seen[PERCENTAGE], seen[MEMORY]) == (
                f"{MPS}/u{task['uid']}-{index[uuid]}/pipe",
                str(SHARE),
                f"0={memory[uuid] * SHARE // 100 // MIB}M",
            )
        assert left(cluster, "m1") == NOTHING_LEFT
        assert cluster.show_node("m1")["State"] == "IDLE"
        what = f"{JOBS} jobs with shares of {SHARE} over 8 GPUs, {sweeps.count} sweeps meanwhile: nothing left"
        record_property("measured", f"Slurm {cluster.root.version}: {what}")


def wait_held(cluster: HookCluster) -> None:
    """Until as many jobs hold daemons as can at once.

    Not until their tasks run: 24.11's slurmd may go on with a job only when others have ended, for their step daemons
    have inherited the pipe to whose end it reads the prolog's output.
    """
    for _ in attempts(60):
        names = cluster.state("m1")
        if sum("/holders/" in name and not name.endswith("/") for name in names) == AT_ONCE:
            return
    raise AssertionError(f"fewer than {AT_ONCE} holders: {names}")


@pytest.mark.parametrize("release", RELEASES)
def test_slurm_puts_no_two_components_of_a_het_job_on_one_node(release: str, tmp_path: Path) -> None:
    with running(root_of(release), Variation("one-node", ("m1",)), tmp_path) as cluster:
        share = ["--gres=mps:20", "true"]
        named = cluster.inside.run(["srun", "-w", "m1", *share, ":", "-w", "m1", *share], user="alice")
        assert (named.returncode, "Invalid node name" in named.stderr) == (1, True)
        free = cluster.inside.run(["timeout", "5", "srun", *share, ":", *share], user="alice")
        assert free.returncode == 124, free.stderr
        assert left(cluster, "m1") == NOTHING_LEFT
