"""Jobs of every kind on live clusters, all at once, in each release and each way a site configures Slurm.

While they run: what their tasks see, and what their daemons are. Afterwards: nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.hooks.cluster import HookCluster
from testbed.slurm.namespace import attempts
from testbed.slurm.root import SUITES
from tests.conftest import root_of, soak
from tests.hooks.live.expected import MPS, Site, daemon_wrong, served, tasks_wrong, with_grant
from tests.hooks.live.jobs import JOBS, REQUEUED
from tests.hooks.live.running import Running
from tests.hooks.live.seen import (
    NOTHING_LEFT,
    Granted,
    compute_modes,
    daemons,
    devices,
    granted,
    left,
    mounts,
    pipes_reached,
)
from tests.hooks.live.site import EXCLUSIVE_PROCESS, NODES, Variation, running

pytestmark = pytest.mark.slurm

CONFIGURED = (
    Variation("as-rendered"),
    Variation("without-shards", tuple(node for node in NODES if node != "s1"), confined=False),
    Variation("shards-first", ("m1", "m2", "s1"), settings="GresTypes=gpu,shard,mps\n"),
)
HOOK = "/usr/lib/hybridgpu/hybridgpu-hook"


def cases() -> Iterator[object]:
    """Every release in every variation in soak; else each of both once."""
    for place, release in enumerate(SUITES):
        for number, variation in enumerate(CONFIGURED):
            if soak(number == place, full=True):
                yield pytest.param(release, variation, id=f"{release}-{variation.name}")


@pytest.mark.parametrize(("release", "variation"), list(cases()))
def test_jobs_see_their_devices_and_daemons_and_leave_nothing(
    release: str, variation: Variation, tmp_path: Path
) -> None:
    with running(root_of(release), variation, tmp_path) as cluster:
        site = Site(
            {node: devices(cluster, node) for node in cluster.nodes},
            variation.confined,
            lost="shard,mps" in variation.settings,
        )
        before = {node: compute_modes(cluster, node) for node in cluster.nodes}
        with Running(cluster, JOBS) as jobs:
            _requeue(jobs)
            told = jobs.everything()
            grants = granted(cluster)
            tasks = {name: with_grant(jobs.jobs[name], seen, grants) for name, seen in told.items()}
            wrong = [line for seen in tasks.values() for line in tasks_wrong(seen, site)]
            for node in cluster.nodes:
                wrong += _node_wrong(cluster, node, [grant for grant in grants if grant.node == node], site, before)
            assert not wrong, "\n".join(wrong)
            for name in jobs.jobs:
                jobs.let_go(name)
            printed = {name: jobs.output(name) for name in jobs.jobs}
        wait_idle(cluster)
        assert {node: left(cluster, node) for node in cluster.nodes} == dict.fromkeys(cluster.nodes, NOTHING_LEFT)
        assert {node: compute_modes(cluster, node) for node in cluster.nodes} == before
        assert {node: seen["State"] for node, seen in cluster.show_nodes().items()} == dict.fromkeys(
            cluster.nodes, "IDLE"
        )


def _requeue(jobs: Running) -> None:
    if REQUEUED.name in jobs.jobs:
        (first,) = jobs.told(REQUEUED.name, 1)
        jobs.cluster.scontrol("requeue", first["environment"]["SLURM_JOB_ID"])


def _node_wrong(cluster, node, grants, site, before):
    wrong = []
    needed = dict(served(grants, site))
    seen = {one.pipe.split("/")[-2]: one for one in daemons(cluster, node)}
    if sorted(seen) != sorted(needed):
        wrong.append(f"{node}: daemons {sorted(seen)}, expected {sorted(needed)}")
    for name in seen:
        if name in needed:
            (uid,) = {grant.uid for grant in grants if name in dict(served([grant], site))}
            wrong += daemon_wrong(seen[name], uid, [site.devices[node][index].uuid for index in needed[name]], name)
    return wrong


def wait_idle(cluster):
    for _ in attempts(60):
        if not cluster.inside.run(["squeue", "--noheader"]).stdout.strip():
            return
    raise AssertionError("jobs do not end\n" + cluster.logs())
