"""Jobs of every kind on live clusters, all at once, in each release and each way a site configures Slurm.

While they run: what their tasks see, and what their daemons are; sweeps find nothing to do, and neither the end of
others, nor slurmd's, nor an extern step's does anything to a daemon. Afterwards: nothing.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.slurm.namespace import attempts
from testbed.slurm.root import SUITES
from tests.conftest import root_of, soak
from tests.hooks.live import nodes
from tests.hooks.live.expected import Site, tasks_wrong, with_grant
from tests.hooks.live.jobs import JOBS, PAIRS, REQUEUED, RESTARTED
from tests.hooks.live.running import Running, wait_idle
from tests.hooks.live.seen import NOTHING_LEFT, compute_modes, devices, granted, left, pipes_reached
from tests.hooks.live.site import NODES, Variation, running

pytestmark = pytest.mark.slurm

CONFIGURED = (
    Variation("as-rendered"),
    Variation("without-shards", tuple(node for node in NODES if node != "s1"), confined=False),
    Variation("shards-first", ("m1", "m2", "m3", "s1"), settings="GresTypes=gpu,shard,mps\n"),
    Variation("alloc", ("m1", "m2", "m3", "s1"), settings="PrologFlags=Alloc\n", confined=False, contained=False),
    Variation("run-in-job", ("m1", "m2", "m3", "w1"), settings="PrologFlags=RunInJob\n", releases=("26.05",)),
    # On 24.11.5 no job with GRES on two nodes ever starts under it, whatever the prolog is.
    Variation("run-in-job", ("m2", "m3", "w1"), settings="PrologFlags=RunInJob\n", releases=("24.11",)),
)
SAMPLE = {
    "as-rendered": "22.05",
    "without-shards": "24.11",
    "shards-first": "26.05",
    "alloc": "22.05",
    "run-in-job": "26.05",
}
LOST = "Slurm lost the size of this job's share"


def cases() -> Iterator[object]:
    """Every release in every variation in soak; else each variation once."""
    for release in SUITES:
        for one in CONFIGURED:
            if release in one.releases and soak(SAMPLE[one.name] == release, full=True):
                yield pytest.param(release, one, id=f"{release}-{one.name}")


@pytest.mark.parametrize(("release", "variation"), list(cases()))
def test_jobs_see_their_devices_and_daemons_and_leave_nothing(
    release: str, variation: Variation, tmp_path: Path
) -> None:
    with running(root_of(release), variation, tmp_path) as cluster:
        before = {node: compute_modes(cluster, node) for node in cluster.nodes}
        with Running(cluster, JOBS) as jobs:
            _requeue(jobs)
            while_they_run(jobs, variation, before)
            if RESTARTED.name in jobs.jobs:
                sweeps_find_nothing(jobs, variation)
                disturbed(jobs, variation)
            one_of_two_ends(jobs)
            for name in jobs.waiting():
                jobs.let_go(name)
            printed = {name: jobs.output(name) for name in jobs.jobs}
            wait_idle(cluster)
            failed = jobs.failed()
            assert not failed, failed
        remains = {node: found for node in cluster.nodes if (found := left(cluster, node)) != NOTHING_LEFT}
        assert not remains, remains
        assert {node: compute_modes(cluster, node) for node in cluster.nodes} == before
        assert {node: seen["State"] for node, seen in cluster.show_nodes().items()} == dict.fromkeys(
            cluster.nodes, "IDLE"
        )
        assert any(LOST in text for text in printed.values()) == lost(variation)


def lost(variation: Variation) -> bool:
    """Whether Slurm loses the percentages of this variation."""
    return "shard,mps" in variation.settings


def _requeue(jobs: Running) -> None:
    (first,) = jobs.told(REQUEUED.name, 1)
    jobs.cluster.scontrol("requeue", first["environment"]["SLURM_JOB_ID"])


def while_they_run(jobs: Running, variation: Variation, before: dict[str, dict[int, str]]) -> None:
    """Every task and every node is as Slurm's grants want it."""
    cluster = jobs.cluster
    site = Site({node: devices(cluster, node) for node in cluster.nodes}, variation.confined, lost(variation))
    told = jobs.everything()
    grants = granted(cluster)
    tasks = {name: with_grant(jobs.jobs[name], seen, grants) for name, seen in told.items()}
    wrong = [line for seen in tasks.values() for line in tasks_wrong(seen, site)]
    for node in cluster.nodes:
        wrong += nodes.wrong(cluster, node, [one for one in grants if one.node == node], site, before[node])
    assert not wrong, "\n".join(wrong)
    pairs = {grant.indices for pair in PAIRS for task in tasks[pair.name] for grant in [task.grant]}
    assert len(pairs) == 1, f"the pairs are to be on one GPU: {pairs}"
    assert {task.grant.restarts for task in tasks[REQUEUED.name]} == {1}


def sweeps_find_nothing(jobs: Running, variation: Variation) -> None:
    """Also where a job shows by its extern step alone, and where by nothing: its batch script is on another node."""
    cluster = jobs.cluster
    number = int(jobs.told(RESTARTED.name)[0]["environment"]["SLURM_JOB_ID"])
    assert (number in nodes.shown_jobs(cluster, "m2")) == variation.contained
    before = {node: nodes.identities(cluster, node) for node in cluster.nodes}
    swept = {node: nodes.swept(cluster, node) for node in cluster.nodes}
    assert swept == dict.fromkeys(cluster.nodes, "")
    for _ in range(soak(2, 10)):
        time.sleep(1)
        assert nodes.swept(cluster, "m2", alone=True) == ""
    assert {node: nodes.identities(cluster, node) for node in cluster.nodes} == before


def disturbed(jobs: Running, variation: Variation) -> None:
    """slurmd restarted, and before that the extern step of a running job killed: no daemon notices."""
    cluster = jobs.cluster
    number = jobs.told(RESTARTED.name)[0]["environment"]["SLURM_JOB_ID"]
    before = nodes.identities(cluster, "m1")
    if variation.contained and "RunInJob" not in variation.settings:  # under which the epilog runs in that step
        there = cluster.processes("m1")
        (extern,) = [one.pid for one in there if one.command == f"slurmstepd: [{number}.extern]"]
        cluster.inside.run(["kill", "-KILL", *(str(one.pid) for one in there if extern in (one.pid, one.ppid))])
    cluster.restart_slurmd("m1")
    assert nodes.swept(cluster, "m1") == ""
    assert nodes.identities(cluster, "m1") == before
    assert cluster.show_job(number)["JobState"] == "RUNNING"


def one_of_two_ends(jobs: Running) -> None:
    """Of alice's two jobs the one that started the daemon, of bob's the other: the daemon is the other's, as it was."""
    cluster = jobs.cluster
    before = nodes.identities(cluster, "m3")
    ended = [jobs.told(name)[0]["environment"]["SLURM_JOB_ID"] for name in ("alice-first", "bob-second")]
    for name in ("alice-first", "bob-second"):
        jobs.let_go(name)
    for job in ended:
        cluster.wait_epilog(job)
    for _ in attempts(20):
        if not any(name.endswith(tuple(f"/holders/{job}" for job in ended)) for name in cluster.state("m3")):
            break
    else:
        raise AssertionError(f"jobs {ended} still hold daemons: {cluster.state('m3')}")
    assert nodes.identities(cluster, "m3") == before
    for name in ("alice-second", "bob-first"):
        (seen,) = jobs.told(name)
        pipe = seen["environment"]["CUDA_MPS_PIPE_DIRECTORY"]
        assert pipes_reached(cluster, "m3", jobs.jobs[name].user, (pipe,)) == {pipe: "connected"}
