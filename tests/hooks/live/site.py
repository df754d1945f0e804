"""Live clusters for tests of hooks: an inventory with a node of each kind, varied as Slurm's facts ask for.

Each node's cards have minor numbers in another order than PCI's, and one card's compute mode is not the default.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pynvml

from testbed.driver.cut import Cut, cut
from testbed.driver.machine import Machine
from testbed.hooks import cgroups
from testbed.hooks.cluster import HookCluster
from testbed.hooks.inventory import inventory
from testbed.slurm.root import SUITES, SlurmRoot
from tests.conftest import lacking
from tests.simulated import load_driver, nvml

MINORS = (3, 2, 1, 0, 7, 6, 5, 4)
CARDS = {
    "name": "hooks",
    "gpus": [
        {"model": "A100-SXM4-80GB", "pci": f"0000:{bus:02x}:00.0", "minor": minor}
        for bus, minor in zip((0x07, 0x0F, 0x47, 0x4E, 0x87, 0x90, 0xB7, 0xBD), MINORS, strict=True)
    ],
}
CUTS: Mapping[int, Cut] = {0: (("3g.40gb", 0), ("3g.40gb", 4)), 1: tuple(("1g.10gb", start) for start in range(7))}
_LAYOUT = "layout: {0: {3g.40gb: 2}, 1: {1g.10gb: 7}, 2-7: off}"

_WHOLE = "{mode: exclusive, mps: {wholeGpuJobs: true}}"
_WHOLE_EXCLUSIVE = "{mode: exclusive, mps: {wholeGpuJobs: true, computeMode: exclusive_process}}"

NODES = {
    "m1": "{mode: mps}",
    "m2": "{mode: mps}",
    "m3": "{mode: mps}",
    "m4": "{mode: mps}",
    "w1": _WHOLE,
    "w2": _WHOLE_EXCLUSIVE,
    "w3": _WHOLE,
    "w4": _WHOLE_EXCLUSIVE,
    "w5": _WHOLE,
    "c1": f"{{mode: mig, {_LAYOUT}}}",
    "c2": f"{{mode: mig, {_LAYOUT}, mps: {{wholeGpuJobs: true}}}}",
    "s1": "{mode: time-slicing, replicas: 4}",
}
"""What each node is for: m shares, w whole GPUs with a daemon, c MIG instances, s shards."""

EXCLUSIVE_PROCESS = tuple(node for node, sharing in NODES.items() if sharing == _WHOLE_EXCLUSIVE)
WITH_DAEMONS = tuple(node for node, sharing in NODES.items() if "wholeGpuJobs" in sharing)

PROHIBITED = 5
"""The PCI index of the card whose compute mode is not the default before any job."""

SITE_TASK_PROLOG = """\
#!/bin/sh
echo "export SITE_GIVEN=${CUDA_VISIBLE_DEVICES-unset}"
"""
"""The site's own task prolog, before ours by its name: it keeps what Slurm itself gave the task."""

LATE_TASK_PROLOG = """\
#!/bin/sh
echo "export SITE_CAME_LAST=yes"
"""


@dataclass(frozen=True, slots=True)
class Variation:
    """One way to configure a cluster. `settings`: lines behind slurm.conf, where they win; `files` as in Cluster.

    `releases`: those that know the settings. `contained`: an extern step of each job is on each of its nodes.
    """

    name: str
    nodes: tuple[str, ...] = tuple(NODES)
    settings: str = ""
    confined: bool = True
    releases: tuple[str, ...] = tuple(SUITES)
    contained: bool = True
    files: Mapping[str, str] = field(default_factory=dict)


@contextmanager
def running(root: SlurmRoot, variation: Variation, folder: Path) -> Iterator[HookCluster]:
    """A cluster in this variation, all nodes registered."""
    missing = cgroups.missing()
    if missing:
        lacking(missing)
    load_driver()
    machines = {node: _machine(folder / node, node) for node in variation.nodes}
    # A requeued job waits until its credentials have expired: 120 s, unless told otherwise.
    settings = f"AuthInfo=cred_expire=5\n{variation.settings}"
    text = inventory(root.release, {node: NODES[node] for node in variation.nodes})
    files = {
        "/etc/slurm/taskprolog.d/10-site": SITE_TASK_PROLOG,
        "/etc/slurm/taskprolog.d/90-site": LATE_TASK_PROLOG,
        **variation.files,
    }
    with HookCluster(root, text, machines, settings=settings, files=files, confined=variation.confined) as cluster:
        cluster.wait_registered()
        yield cluster


def _machine(folder: Path, node: str) -> Machine:
    machine = Machine.make(folder, CARDS)
    with nvml(machine):
        if node.startswith("c"):
            for card, wanted in CUTS.items():
                cut(card, wanted)
        pynvml.nvmlDeviceSetComputeMode(
            pynvml.nvmlDeviceGetHandleByIndex(PROHIBITED), pynvml.NVML_COMPUTEMODE_PROHIBITED
        )
    return machine
