"""Cores as Slurm counts them: hwloc itself, out of a Slurm root, over the same sysfs trees that we read."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from hybridgpu.devices.port import Unread
from hybridgpu.devices.topology import read_topology
from tests.conftest import lacking, root_of, soak
from tests.devices.machines import MACHINES
from tests.devices.sysfs import Cpus
from tests.devices.test_topology import ADJACENT, CACHES, CLUSTERED, INTERLEAVED, SECOND_FIRST

pytestmark = pytest.mark.slurm

HWLOC = """
import ctypes, json, os, sys
import xml.etree.ElementTree as tree
os.environ.update(HWLOC_COMPONENTS="linux,stop", HWLOC_THISSYSTEM="0")
hwloc = ctypes.CDLL(sys.argv[1])
INCLUDE_DISALLOWED = ctypes.c_ulong(1)  # as slurmd sets it
found = []
for root in sys.argv[2:]:
    os.environ["HWLOC_FSROOT"] = root
    topology, out = ctypes.c_void_p(), root + "/hwloc.xml"
    assert hwloc.hwloc_topology_init(ctypes.byref(topology)) == 0
    assert hwloc.hwloc_topology_set_flags(topology, INCLUDE_DISALLOWED) == 0
    assert hwloc.hwloc_topology_load(topology) == 0
    assert hwloc.hwloc_topology_export_xml(topology, out.encode(), ctypes.c_ulong(0)) == 0
    hwloc.hwloc_topology_destroy(topology)
    cores = [o.get("cpuset") for o in tree.parse(out).iter("object") if o.get("type") == "Core"]
    found.append([sum(int(word or "0", 16) << 32 * at for at, word in enumerate(c.split(",")[::-1])) for c in cores])
print(json.dumps(found))
"""
"""The CPUs of each core in hwloc's logical order, for each root."""


def cores_by_hwloc(roots: Sequence[Path]) -> list[list[int]]:
    library = next(root_of("22.05").path.glob("usr/lib/*/libhwloc.so.15"))
    run = subprocess.run([sys.executable, "-c", HWLOC, str(library), *map(str, roots)], capture_output=True, text=True)
    if "GLIBC" in run.stderr:
        lacking("the root's hwloc needs a newer C library than this machine has")
    assert run.returncode == 0, run.stderr
    found: list[list[int]] = json.loads(run.stdout)
    return found


def drawn(seed: int) -> Cpus:
    """A machine with its CPU numbers dealt out in any way, and some of them offline."""
    chance = random.Random(seed)
    sockets, nodes, caches = chance.choice([1, 2, 4]), chance.choice([1, 1, 2, 4]), chance.choice([1, 1, 2])
    cores, threads = chance.choice([1, 2, 3]), chance.choice([1, 2])
    total = sockets * nodes * caches * cores * threads
    numbers = list(range(total))
    chance.shuffle(numbers)
    deal = iter(numbers)
    every = [
        [[[[next(deal) for _ in range(threads)] for _ in range(cores)] for _ in range(caches)] for _ in range(nodes)]
        for _ in range(sockets)
    ]
    return Cpus(
        [[core for node in socket for cache in node for core in cache] for socket in every],
        [[cpu for cache in node for core in cache for cpu in core] for socket in every for node in socket],
        [[cpu for core in cache for cpu in core] for socket in every for node in socket for cache in node],
        frozenset(chance.sample(range(total), chance.choice([0, 0, 1, total // 4]) if total > 4 else 0)),
    )


KNOWN = [INTERLEAVED, CLUSTERED, CACHES, ADJACENT, SECOND_FIRST, *(built.cpus for built in MACHINES.values())]


def test_hwloc_counts_cores_as_we_do(tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    machines = [*KNOWN, *(drawn(seed) for seed in range(soak(30, 2000)))]
    roots = [tmp_path / str(number) for number in range(len(machines))]
    for cpus, root in zip(machines, roots, strict=True):
        cpus.write(root)
    cores = 0
    for cpus, root, counted in zip(machines, roots, cores_by_hwloc(roots), strict=True):
        ours = read_topology(root)
        assert not isinstance(ours, Unread)
        assert list(ours) == counted, cpus
        cores += len(counted)
    record_property("measured", f"hwloc: {len(machines)} machines, {cores:,} cores: counted alike")
