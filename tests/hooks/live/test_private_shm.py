"""job_container/tmpfs gives each job a /dev/shm of its own, through which no MPS daemon is reached: a share is refused
with that reason, whole devices go on without MPS, and no node is drained. Where the site keeps /dev/shm, all is well.

One node a cluster: the plugin's mounts are a machine's.
"""

from __future__ import annotations

from collections.abc import Iterator
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
KEEPS_SHM = " Dirs=/tmp"
"""22.05 does not know Dirs: its slurmd does not start with it."""

PIPE = "/run/hybridgpu/mps/u1001-0/pipe"
CASES = {
    # node, what is asked for, job_container.conf, and then: the status, whether the reason is told, the daemon
    "share": ("m1", "mps:25", "", 1, True, None),
    "whole": ("w1", "gpu:1", "", 0, True, None),
    "share-shm-kept": ("m1", "mps:25", KEEPS_SHM, 0, False, PIPE),
}
SHOW = 'echo "ran $CUDA_VISIBLE_DEVICES $CUDA_MPS_PIPE_DIRECTORY"'


def cases() -> Iterator[object]:
    for place, release in enumerate(SUITES):
        for number, (name, case) in enumerate(CASES.items()):
            known = KEEPS_SHM not in case or release != "22.05"
            if known and soak(place == number, full=True):
                yield pytest.param(release, *case, id=f"{release}-{name}")


@pytest.mark.parametrize(("release", "node", "gres", "dirs", "status", "told", "pipe"), list(cases()))
def test_a_private_shm_refuses_a_share_and_leaves_whole_devices_without_mps(
    release: str, node: str, gres: str, dirs: str, status: int, told: bool, pipe: str | None, tmp_path: Path
) -> None:
    conf = {"job_container.conf": f"NodeName={node} AutoBasePath=true BasePath=/var/jobs{dirs}\n"}
    settings = f"{PLUGIN.get(release, OLD_PLUGIN)}\n"
    with running(
        root_of(release), Variation("private-shm", (node,), settings=settings, files=conf), tmp_path
    ) as cluster:
        ended, said = srun(cluster, gres)
        ran = [line.split()[1:] for line in said.splitlines() if line.startswith("ran ")]
        assert (ended, REASON in said, len(ran)) == (status, told, int(status == 0)), said
        for uuid, *pipes in ran:
            assert uuid.startswith("GPU-")
            assert pipes == ([pipe] if pipe else [])
        wait_idle(cluster)
        assert cluster.show_node(node)["State"] == "IDLE"
        assert left(cluster, node) == NOTHING_LEFT


def srun(cluster: HookCluster, gres: str) -> tuple[int, str]:
    """The status of a job's only step, and what it and srun print.

    On a busy machine the plugin's step daemon sometimes dies at its start, before any task prolog; Slurm gives up the
    job then, and another is tried.
    """
    for _ in range(5):
        done = cluster.inside.run(["srun", "--quiet", f"--gres={gres}", "sh", "-c", SHOW], user="alice", timeout=60)
        said = done.stdout + done.stderr
        if REASON in said or "ran " in said:
            break
    return done.returncode, said
