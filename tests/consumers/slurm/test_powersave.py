"""Power saving: which nodes with GPUs it would switch off while they are closed."""

from __future__ import annotations

import pytest

from hybridgpu.consumers.slurm import RELEASES
from tests.consumers.slurm.sites import found, site

GPU = "NodeName=n[1-4] CPUs=8 Sockets=2 CoresPerSocket=4 Gres=gpu:a100:2"
CPU = "NodeName=c[1-4] CPUs=8"
ON = "SuspendProgram=/s\nSuspendTime=600\n"

FIRES: dict[str, tuple[str, str, list[str]]] = {
    "for all nodes": (ON, GPU, ["n1, n2, n3 and 1 more", "no SuspendExcStates"]),
    "for one partition": ("SuspendProgram=/s\nPartitionName=q Nodes=n[2-3] SuspendTime=60", GPU, ["n2, n3 when"]),
    "for a partition of all": ("SuspendProgram=/s\nPartitionName=q Nodes=ALL SuspendTime=60", GPU, ["n1"]),
    "for a partition of nodes with a feature": (
        "SuspendProgram=/s\nNodeSet=g Feature=old\nPartitionName=q Nodes=g SuspendTime=60",
        f"{GPU} Features=new,old",
        ["n1"],
    ),
    "for a node": ("SuspendProgram=/s", f"{GPU} SuspendTime=60", ["n1"]),
    "for a word that is none of Slurm's": ("SuspendProgram=/s\nSuspendTime=UNLIMITED", GPU, ["n1"]),
    "some are excepted": (f"{ON}SuspendExcNodes=n[1-3]", GPU, ["n4 when"]),
    "any two are excepted": (f"{ON}SuspendExcNodes=n[1-4]:2", GPU, ["n1, n2, n3 and 1"]),
    "drained ones are not excepted": (f"{ON}SuspendExcStates=MAINTENANCE", GPU, ["lacks DRAIN,"]),
    "reserved ones are not excepted": (f"{ON}SuspendExcStates=DRAIN,DOWN", GPU, ["lacks MAINTENANCE, RESERVED"]),
}

CLEAN: dict[str, tuple[str, str]] = {
    "no program": ("SuspendTime=600", GPU),
    "no time": ("SuspendProgram=/s", GPU),
    "never": ("SuspendProgram=/s\nSuspendTime=INFINITE", GPU),
    "never, in another word": ("SuspendProgram=/s\nSuspendTime=NONE", GPU),
    "never, in figures": ("SuspendProgram=/s\nSuspendTime=-1", GPU),
    "no GPUs": (ON, CPU),
    "cloud nodes": (ON, f"{GPU} State=CLOUD"),
    "all states": (f"{ON}SuspendExcStates=DRAIN,MAINTENANCE,RESERVED", GPU),
    "enough states": (f"{ON}SuspendExcStates=down,drain,reserved", GPU),
    "all nodes excepted": (f"{ON}SuspendExcNodes=n[1-2],n[3-4]", f"{GPU}\n{CPU}"),
    "ALL excepted": (f"{ON}SuspendExcNodes=ALL", GPU),
    "the partition excepted": (f"{ON}PartitionName=q Nodes=n[1-4]\nSuspendExcParts=q", GPU),
    "a partition of a node set": (f"{ON}NodeSet=g Nodes=n[1-4]\nPartitionName=q Nodes=g\nSuspendExcParts=q", GPU),
    "a node set excepted": (f"{ON}NodeSet=g Nodes=n[1-4]\nSuspendExcNodes=g", GPU),
    "another partition": ("SuspendProgram=/s\nPartitionName=q Nodes=c[1-4] SuspendTime=60", f"{GPU}\n{CPU}"),
    "a partition's time that is a default": (
        "SuspendProgram=/s\nPartitionName=DEFAULT SuspendTime=60\nPartitionName=q Nodes=n2",
        GPU,
    ),
    "a partition of nodes with another feature": (
        "SuspendProgram=/s\nNodeSet=g Feature=old\nPartitionName=q Nodes=g SuspendTime=60",
        f"{GPU} Features=new",
    ),
    "a partition never": (f"{ON}PartitionName=q Nodes=n[1-4] SuspendTime=INFINITE", GPU),
    "a node never": (ON, f"{GPU} SuspendTime=INFINITE"),
}
RECORDS = "NodeName=n[1-4] Name=gpu Type=a100 File=/dev/nvidia[0-1]"


@pytest.mark.parametrize("name", FIRES)
def test_closed_nodes_go_down(name: str) -> None:
    conf, nodes, words = FIRES[name]
    finding = found(site(nodes=nodes, conf=conf, records=RECORDS))["slurm-suspends-closed-nodes"]
    assert all(word in finding.message for word in words), finding.message


@pytest.mark.parametrize("name", CLEAN)
def test_closed_nodes_stay(name: str) -> None:
    conf, nodes = CLEAN[name]
    records = RECORDS if "Gres" in nodes else ""
    assert "slurm-suspends-closed-nodes" not in found(site(nodes=nodes, conf=conf, records=records))


def test_a_release_without_states_to_except_needs_the_nodes() -> None:
    files = site(nodes=GPU, conf=f"{ON}", records=RECORDS)
    assert "22.05 has no SuspendExcStates" in found(files, "22.05")["slurm-suspends-closed-nodes"].message
    files = site(nodes=GPU, conf=f"{ON}SuspendExcNodes=n[1-4]", records=RECORDS)
    assert all("slurm-suspends-closed-nodes" not in found(files, major) for major in RELEASES)


def test_a_partition_knows_none_since_the_nodes_have_times() -> None:
    files = site(nodes=GPU, conf=f"{ON}PartitionName=q Nodes=n[1-4] SuspendTime=None", records=RECORDS)
    lasting = [major for major in RELEASES if "slurm-suspends-closed-nodes" not in found(files, major)]
    assert lasting == ["26.05"]
