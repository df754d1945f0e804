"""Partitions with their defaults, and the nodes that a list means when it names node sets."""

from __future__ import annotations

import time

import pytest

from hybridgpu.consumers.slurm import NEWEST, SlurmFiles, load
from hybridgpu.consumers.slurm.nodeline import node_names
from hybridgpu.consumers.slurm.openness import openness
from hybridgpu.consumers.slurm.partitions import Members, Memberships, partitions

NODES = "NodeName=n[1-2] Features=a,big\nNodeName=n[3-4] Feature=b"
SETS = "NodeSet=two Nodes=n[1-2]\nNodeSet=big Feature=big\nNodeSet=both Nodes=n4 Feature=a\nNodeSet=any Nodes=ALL\n"


def files(conf: str, nodes: str = NODES) -> SlurmFiles:
    return load({"slurm.conf": f"ClusterName=c\n{nodes}\n{conf}\n"})


MEMBERS: dict[str, Members] = {
    "n[1-3]": Members(frozenset(("n1", "n2", "n3"))),
    "two": Members(frozenset(("n1", "n2"))),
    "big,n3": Members(frozenset(("n1", "n2", "n3"))),
    "both": Members(frozenset(("n1", "n2", "n4"))),
    "ALL": Members(frozenset(("ALL",)), every=True),
    "any": Members(frozenset(("ALL",)), every=True),
    "n[1": Members(unclear=True),
    "": Members(),
}


@pytest.mark.parametrize("text", MEMBERS)
def test_the_nodes_of_a_list(text: str) -> None:
    assert Memberships(files(SETS), NEWEST).of(text) == MEMBERS[text]


def test_defaults_hold_for_what_comes_after_them() -> None:
    conf = (
        "PartitionName=a Nodes=n1\nPartitionName=DEFAULT State=DOWN Nodes=n2\nPartitionName=b\nPartitionName=c State=UP"
    )
    found = [(p.name, p.nodes, p.is_up, sorted(p.own)) for p in partitions(files(conf), NEWEST)]
    assert found == [("a", "n1", True, ["nodes"]), ("b", "n2", False, []), ("c", "n2", True, ["state"])]


@pytest.mark.parametrize(
    ("conf", "closed"),
    [
        (f"{SETS}PartitionName=p Nodes=big", ["n3", "n4"]),
        (f"{SETS}PartitionName=p Nodes=any", []),
        ("PartitionName=DEFAULT State=DOWN\nPartitionName=p Nodes=ALL", ["n1", "n2", "n3", "n4"]),
        ("PartitionName=p Nodes=n[1-4]\nDownNodes=n2 State=DRAIN", ["n2"]),
    ],
)
def test_who_is_closed(conf: str, closed: list[str]) -> None:
    given = files(conf)
    opened = openness(given, NEWEST)
    named = [(name, record) for record in given.nodes for name in node_names(record, NEWEST)]
    assert [name for name, record in named if opened.closed(name, record)] == closed


def test_many_sets_and_nodes_cost_little() -> None:
    count = 3000
    nodes = "\n".join(f"NodeName=n{n} Features=f{n}" for n in range(count))
    sets = "\n".join(f"NodeSet=s{n} Feature=f{n}\nPartitionName=p{n} Nodes=s{n}" for n in range(count))
    given = files(sets, nodes)
    start = time.process_time()
    assert openness(given, NEWEST).reachable == frozenset(f"n{n}" for n in range(count))
    assert time.process_time() - start < 2
