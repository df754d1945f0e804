"""job_container/tmpfs gives each job a /dev/shm of its own, through which no MPS daemon is reached: a share is refused
with that reason, whole devices go on without MPS, and no node is drained. Where the site keeps /dev/shm, all is well.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.hooks.cluster import HookCluster
from testbed.slurm.root import SUITES
from tests.conftest import root_of, soak
from tests.hooks.live.running import wait_idle
from tests.hooks.live.seen import NOTHING_LEFT, left
from tests.hooks.live.site import Variation, running

pytestmark = pytest.mark.slurm

REASON = "this task has a /dev/shm of its own, through which no MPS daemon is reached"
PLUGIN = {"26.05": "NamespaceType=namespace/tmpfs"}
OLD_PLUGIN = "JobContainerType=job_container/tmpfs"
KEEPS_SHM = {"22.05": None, "24.11": "m2", "26.05": "m2"}
"""22.05 knows no Dirs: its slurmd does not start with it."""

SHOW = "echo ran $CUDA_VISIBLE_DEVICES $CUDA_MPS_PIPE_DIRECTORY"


def variation(release: str) -> Variation:
    dirs = {KEEPS_SHM[release]: " Dirs=/tmp"}
    nodes = ("m1", "w1", *(node for node in dirs if node))
    lines = [f"NodeName={node} AutoBasePath=true BasePath=/var/jobs/{node}{dirs.get(node, '')}\n" for node in nodes]
    return Variation(
        "private-shm",
        nodes,
        settings=f"{PLUGIN.get(release, OLD_PLUGIN)}\n",
        files={"job_container.conf": "".join(lines)},
    )


@pytest.mark.parametrize("release", SUITES if soak(0, 1) else ["24.11"])
def test_a_private_shm_refuses_a_share_and_leaves_whole_devices_without_mps(release: str, tmp_path: Path) -> None:
    with running(root_of(release), variation(release), tmp_path) as cluster:
        status, said = srun(cluster, "m1", "mps:25")
        assert (status, REASON in said) == (1, True), said
        assert "ran" not in said.split()
        status, said = srun(cluster, "w1", "gpu:1")
        assert (status, REASON in said) == (0, True), said
        (line,) = [line for line in said.splitlines() if line.startswith("ran")]
        assert line.split()[1].startswith("GPU-")
        assert len(line.split()) == 2, line
        if KEEPS_SHM[release]:
            status, said = srun(cluster, "m2", "mps:25")
            assert status == 0
            assert said.split()[-1] == "/run/hybridgpu/mps/u1001-0/pipe"
        wait_idle(cluster)
        assert {node: seen["State"] for node, seen in cluster.show_nodes().items()} == dict.fromkeys(
            cluster.nodes, "IDLE"
        )
        assert {node: left(cluster, node) for node in cluster.nodes} == dict.fromkeys(cluster.nodes, NOTHING_LEFT)


def srun(cluster: HookCluster, node: str, gres: str) -> tuple[int, str]:
    """The status of a job's only step, and what it and srun print."""
    argv = ["srun", "--quiet", f"--nodelist={node}", f"--gres={gres}", "sh", "-c", SHOW]
    done = cluster.inside.run(argv, user="alice", timeout=60)
    return done.returncode, done.stdout + done.stderr
