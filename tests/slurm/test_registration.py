"""slurmctld is the judge of what a registration is worth: a node that we call INVALID must be so, for our reason."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator

import pytest

from hybridgpu.consumers.slurm import RELEASES, consume, load
from hybridgpu.consumers.slurm.registration import NO_REASON
from testbed.slurm.cluster import SLURM_CONF, Cluster, ports
from testbed.slurm.root import SlurmRoot
from tests.conftest import soak
from tests.slurm.confgen import Generator

NODES_A_CLUSTER = 24
NODES = {
    "good": ("gpu:a100:2", ["Name=gpu Type=a100 File=/dev/nvidia[0-1]"]),
    "toofew": ("gpu:a100:3", ["Name=gpu Type=a100 File=/dev/nvidia[0-1]"]),
    "toofewuntyped": ("gpu:3", ["Name=gpu File=/dev/nvidia[0-1]"]),
    "more": ("gpu:1", ["Name=gpu File=/dev/nvidia[0-1]"]),
    "case": ("gpu:v100:1", ["Name=gpu Type=V100 File=/dev/nvidia0"]),
    "casetwice": (
        "gpu:v100:2",
        ["Name=gpu Type=V100 File=/dev/nvidia0 Cores=0-3", "Name=gpu Type=V100 File=/dev/nvidia1"],
    ),
    "partsocket": ("gpu:2", ["Name=gpu File=/dev/nvidia[0-1] Cores=0-1"]),
    "twosockets": ("gpu:2", ["Name=gpu File=/dev/nvidia[0-1] Cores=2-5"]),
    "wholesockets": ("gpu:2", ["Name=gpu File=/dev/nvidia0 Cores=0-3", "Name=gpu File=/dev/nvidia1 Cores=4-7"]),
    "smallsockets": ("gpu:2", ["Name=gpu File=/dev/nvidia[0-1] Cores=0-3"]),
    "allcores": ("gpu:2", ["Name=gpu File=/dev/nvidia[0-1] Cores=0-7"]),
    "beyond": ("gpu:1", ["Name=gpu File=/dev/nvidia0 Cores=0-99"]),
    "somecores": ("gpu:2", ["Name=gpu File=/dev/nvidia0 Cores=0-3", "Name=gpu File=/dev/nvidia1"]),
    "longlinks": ("gpu:a100:1", ["Name=gpu Type=a100 File=/dev/nvidia0 Links=-1,4,4"]),
    "nofile": ("gpu:a100:1", ["Name=gpu Type=a100"]),
    "norecord": ("gpu:2", []),
    "remainder": ("gpu:4,shard:18", ["Name=gpu File=/dev/nvidia[0-3]", "Name=shard File=/dev/nvidia[0-3] Count=18"]),
    "spread": ("gpu:4,shard:18", ["Name=gpu File=/dev/nvidia[0-3]", "Name=shard Count=18"]),
    "spreadtyped": ("gpu:a100:2,shard:8", ["Name=gpu Type=a100 File=/dev/nvidia[0-1]", "Name=shard Count=8"]),
    "namecase": ("gpu:1", ["Name=GPU File=/dev/nvidia0"]),
    "onetype": (
        "gpu:a100:1,gpu:h100:2",
        ["Name=gpu Type=a100 File=/dev/nvidia0", "Name=gpu Type=h100 File=/dev/nvidia1"],
    ),
    "collide": (
        "gpu:4g.20gb:1,gpu:1g.23gb:1",
        ["Name=gpu Type=4g.20gb File=/dev/nvidia0", "Name=gpu Type=1g.23gb File=/dev/nvidia1"],
    ),
    "nicfiles": ("nic:4", ["Name=nic File=/dev/nvidia[8-9]"]),
    "niccount": ("nic:4", ["Name=nic Count=2"]),
    "shares": ("gpu:2,shard:8", ["Name=gpu File=/dev/nvidia[0-1]", "Name=shard File=/dev/nvidia0 Count=8"]),
    "discarded": ("gpu:2,shard:8", ["Name=gpu File=/dev/nvidia[0-1]", "Name=shard File=/dev/nvidia5 Count=8"]),
}
HARDWARE = {"smallsockets": "Sockets=4 CoresPerSocket=2"}


def files() -> dict[str, str]:
    lines = [
        f"NodeName={node} Port={port} {HARDWARE.get(node, 'Sockets=2 CoresPerSocket=4')} RealMemory=1000 "
        f"Gres={NODES[node][0]}"
        for node, port in ports(NODES).items()
    ]
    records = [f"NodeName={node} {record}" for node, (_, mine) in NODES.items() for record in mine]
    return {
        "slurm.conf": SLURM_CONF,
        "nodes.conf": "\n".join([*lines, ""]),
        "gpu.conf": "GresTypes=gpu,shard,nic\n",
        "gres.conf": "\n".join([*records, ""]),
    }


def cut(reason: str | None) -> str | None:
    """A reason without who set it and when, and up to where it looks like another key (`i=1`) to who splits it."""
    return reason and re.sub(r"( \[[^]]*\]| i=.*)$", "", NO_REASON if reason.startswith(NO_REASON) else reason)


def reasons(cluster: Cluster) -> dict[str, str | None]:
    """What slurmctld has against each node: a reason, or None."""
    seen = cluster.show_nodes()
    return {
        node: cut(shown.get("Reason", NO_REASON)) if "INVALID" in shown["State"] else None
        for node, shown in seen.items()
    }


def ours(files: dict[str, str], release: str) -> dict[str, str | None]:
    """What we say it has."""
    return {node: cut(result.invalid) for node, result in consume(load(files), RELEASES[release]).nodes.items()}


@pytest.fixture(scope="module")
def cluster(slurm_root: SlurmRoot) -> Iterator[Cluster]:
    with Cluster(slurm_root, files(), list(NODES)) as running:
        running.wait_registered()
        yield running


def test_a_node_is_invalid_where_we_say_so_and_for_our_reason(cluster: Cluster) -> None:
    assert reasons(cluster) == ours(files(), cluster.root.release)


def agree(theirs: str | None, ours: str | None) -> bool:
    """Whether both call the node INVALID, for one reason where slurmctld gives a true one."""
    return theirs is not None if ours == NO_REASON else theirs == ours


def generated(release: str, number: int) -> dict[str, str]:
    """A cluster of generated nodes.

    Left out are those whose slurmd would die, and those that slurmctld judges by which node registers first: Cores
    without File count only once some node has a File for the name.
    """
    rng = random.Random(f"{release} {number}")
    kinds = ["gpu", rng.choice(("shard", "mps")), "nic", "fpga"]
    slurm, gres = list[str](), list[str]()
    head = {"slurm.conf": SLURM_CONF, "gpu.conf": f"GresTypes={','.join(kinds)}\n"}
    for node, port in ports(f"g{n}" for n in range(NODES_A_CLUSTER)).items():
        wanted = [kind for kind in kinds if kind == "gpu" or rng.random() < 0.4]
        line, records = Generator(rng, damage=rng.choice((0, 1, 1, 2))).node(node, wanted, port)
        alone = {**head, "nodes.conf": "Include one.conf\n", "one.conf": f"{line}\n", "gres.conf": "\n".join(records)}
        consumed = consume(load(alone), RELEASES[release])
        result = consumed.nodes.get(node)
        early = result and any(record.cores and not record.files for record in result.registered)
        if result and not result.fatal and not early:
            slurm.append(f"{line}\n")  # one that ends in a backslash takes no other with it
            gres += [f"{record}\n" for record in records]
    return {**head, "nodes.conf": "\n".join([*slurm, ""]), "gres.conf": "\n".join([*gres, ""])}


@pytest.mark.parametrize("number", range(soak(2, 20)))
def test_generated_nodes_are_invalid_where_we_say_so(
    slurm_root: SlurmRoot, number: int, record_property: Callable[[str, object], None]
) -> None:
    mine = generated(slurm_root.release, number)
    said = ours(mine, slurm_root.release)
    with Cluster(slurm_root, mine, list(said)) as running:
        running.wait_registered()
        theirs = reasons(running)
    wrong = {node: (theirs[node], said[node]) for node in said if not agree(theirs[node], said[node])}
    assert not wrong, "\n".join(mine.values())
    bad = sum(reason is not None for reason in said.values())
    record_property("measured", f"Slurm {slurm_root.version}: {len(said)} nodes, {bad} INVALID: all as expected")
