"""A card that Slurm and Kubernetes both give out, and every way in which they do not."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from hybridgpu.model.finding import Severity
from tests.check.cross_sites import WHOLE, crossed, labels, mig_gres, node, nodes, slurm

LINE = "NodeName=gpu01 CPUs=128 RealMemory=500000 Gres=gpu:a100:8"
BOTH = slurm(LINE)
CLOSED_TAINT = ("hybridgpu.io/closed", "slurm", "NoSchedule")
TWICE_ID = "site-cards-offered-twice"
FOUR = "Name=gpu Type=a100 File=/dev/nvidia[{}]\n"

TWICE: dict[str, tuple[Mapping[str, str], Mapping[str, str]]] = {
    "plain": (BOTH, nodes(node("gpu01", {"gpu": 8}, labels()))),
    "without labels": (BOTH, nodes(node("gpu01", {"gpu": 8}))),
    "by labels alone": (BOTH, nodes(node("gpu01", None, labels()))),
    "with its domain": (BOTH, nodes(node("gpu01.example.org", {"gpu": 8}, labels()))),
    "other case": (slurm(LINE.replace("gpu01", "GPU01")), nodes(node("gpu01", {"gpu": 8}, labels()))),
    "by its host name": (
        slurm("NodeName=c1 NodeHostname=gpu01 Gres=gpu:a100:8"),
        nodes(node("gpu01", {"gpu": 8}, labels())),
    ),
    "a taint that GPU pods tolerate": (
        BOTH,
        nodes(node("gpu01", {"gpu": 8}, labels(), [("nvidia.com/gpu", "present", "NoSchedule")])),
    ),
    "a taint that only prefers": (
        BOTH,
        nodes(node("gpu01", {"gpu": 8}, labels(), [("slurm", "", "PreferNoSchedule")])),
    ),
    "half in Slurm, all in Kubernetes": (
        slurm("NodeName=gpu01 Gres=gpu:a100:4", gres=FOUR.format("0-3")),
        nodes(node("gpu01", {"gpu": 8}, labels())),
    ),
    "renamed shares": (BOTH, nodes(node("gpu01", {"gpu.shared": 80, "gpu": 0}, labels(8, "time-slicing", 10)))),
    "instances on both sides": (
        slurm("NodeName=gpu01 Gres=gpu:1g.10gb:14", gres=mig_gres(cards=2)),
        nodes(node("gpu01", {"mig-1g.10gb": 14}, labels(2, mig="mixed"))),
    ),
    "one of two partitions is up": (
        slurm(LINE, partition="PartitionName=a Nodes=gpu01 State=DOWN\nPartitionName=b Nodes=gpu01"),
        nodes(node("gpu01", {"gpu": 8}, labels())),
    ),
}

NOT_TWICE: dict[str, tuple[Mapping[str, str], Mapping[str, str]]] = {
    "nothing is allocatable": (BOTH, nodes(node("gpu01", {"gpu": 0}, labels()))),
    "the plugin is told to stay away": (
        BOTH,
        nodes(node("gpu01", {"gpu": 0}, labels() | {"nvidia.com/gpu.deploy.device-plugin": "false"})),
    ),
    "no status, and the plugin is told to stay away": (
        BOTH,
        nodes(node("gpu01", None, labels() | {"nvidia.com/gpu.deploy.device-plugin": "false"})),
    ),
    "no status, and our taint": (BOTH, nodes(node("gpu01", None, labels(), [CLOSED_TAINT]))),
    "drained": (slurm(LINE + " State=DRAIN"), nodes(node("gpu01", {"gpu": 8}, labels()))),
    "down": (slurm(LINE + " State=DOWN Reason=kubernetes"), nodes(node("gpu01", {"gpu": 8}, labels()))),
    "future": (slurm(LINE + " State=FUTURE"), nodes(node("gpu01", {"gpu": 8}, labels()))),
    "cloud": (slurm(LINE + " State=CLOUD"), nodes(node("gpu01", {"gpu": 8}, labels()))),
    "down by DownNodes": (
        slurm(LINE, "DownNodes=gpu[01-02] State=DOWN Reason=kubernetes"),
        nodes(node("gpu01", {"gpu": 8}, labels())),
    ),
    "its only partition is down": (
        slurm(LINE, partition="PartitionName=k8s Nodes=gpu01 State=DOWN"),
        nodes(node("gpu01", {"gpu": 8}, labels())),
    ),
    "down by the partitions' default": (
        slurm(LINE, partition="PartitionName=DEFAULT State=DOWN\nPartitionName=k8s Nodes=gpu01"),
        nodes(node("gpu01", {"gpu": 8}, labels())),
    ),
    "in no partition": (
        slurm(LINE, "NodeName=cpu01", partition="PartitionName=cpu Nodes=cpu01"),
        nodes(node("gpu01", {"gpu": 8}, labels())),
    ),
    "in a node set whose partition is down": (
        slurm(
            LINE,
            "NodeName=cpu01 Feature=plain",
            "NodeSet=k8s Nodes=gpu01",
            "NodeSet=rest Feature=plain",
            partition="PartitionName=a Nodes=k8s State=INACTIVE\nPartitionName=b Nodes=rest",
        ),
        nodes(node("gpu01", {"gpu": 8}, labels())),
    ),
    "no GPUs in Slurm": (
        slurm("NodeName=gpu01 CPUs=8", "NodeName=gpu02 Gres=gpu:a100:8", gres=f"NodeName=gpu02 {WHOLE}"),
        nodes(node("gpu01", {"gpu": 8}, labels()), node("gpu02", {"gpu": 0}, labels())),
    ),
    "split by card": (
        slurm("NodeName=gpu01 Gres=gpu:a100:4", gres=FOUR.format("0-3")),
        nodes(node("gpu01", {"gpu": 4}, labels())),
    ),
    "split by card, told by the device files": (
        slurm("NodeName=gpu01 Gres=gpu:a100:4", gres=FOUR.format("4-7")),
        nodes(node("gpu01", {"gpu": 4})),
    ),
    "split by card, instances": (
        slurm("NodeName=gpu01 Gres=gpu:1g.10gb:7", gres=mig_gres()),
        nodes(node("gpu01", {"mig-1g.10gb": 7}, labels(2, mig="mixed"))),
    ),
    "a Node without GPUs": (
        BOTH,
        nodes(node("gpu01", {}, {"nvidia.com/gpu.present": "false"}), node("head", {}, {})),
    ),
}


@pytest.mark.parametrize("case", TWICE)
def test_cards_offered_twice(case: str, tmp_path: Path) -> None:
    found = [f for f in crossed(tmp_path, *TWICE[case]) if f.rule.id == TWICE_ID]
    assert len(found) == 1, found
    assert found[0].severity is Severity.ERROR
    assert found[0].place and found[0].place.file.endswith("slurm.conf")
    assert found[0].related[0].place.file.endswith("nodes.yaml")


@pytest.mark.parametrize("case", NOT_TWICE)
def test_cards_offered_once(case: str, tmp_path: Path) -> None:
    assert [f for f in crossed(tmp_path, *NOT_TWICE[case]) if f.rule.id.startswith("site-cards-")] == []


def test_the_message_names_node_and_numbers(tmp_path: Path) -> None:
    (found,) = crossed(tmp_path, *TWICE["plain"])
    assert found.message == (
        "gpu01: Slurm offers gpu:a100:8 and Kubernetes nvidia.com/gpu: 8: the same cards are given out twice"
    )
    assert found.place and found.place.line == 8


def test_nodes_of_one_line_make_one_finding(tmp_path: Path) -> None:
    site = slurm("NodeName=gpu[01-07] Gres=gpu:a100:8")
    (found,) = crossed(tmp_path, site, nodes(*(node(f"gpu0{n}", {"gpu": 8}, labels()) for n in range(1, 8))))
    assert found.message.startswith("gpu01, gpu02, gpu03, gpu04, gpu05 and 2 more: ")


@pytest.mark.parametrize(
    ("closed", "named"),
    [
        (node("gpu01", {"gpu": 8}, labels(), [("dedicated", "slurm", "NoSchedule")]), "dedicated=slurm:NoSchedule"),
        (node("gpu01", {"gpu": 8}, labels(), [("slurm", "", "NoExecute")]), "slurm:NoExecute"),
        (node("gpu01", {"gpu": 8}, labels(), cordoned=True), "spec.unschedulable"),
    ],
)
def test_a_taint_alone_is_fragile(closed: str, named: str, tmp_path: Path) -> None:
    (found,) = crossed(tmp_path, BOTH, nodes(closed))
    assert found.rule.id == "site-cards-held-by-taint-only"
    assert found.severity is Severity.WARNING
    assert named in found.message


def test_a_plugin_that_sees_the_other_cards_splits_the_node(tmp_path: Path) -> None:
    daemonset = """\
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: plugin-of-split-nodes, namespace: nvidia}
spec:
  selector: {matchLabels: {app: plugin}}
  template:
    metadata: {labels: {app: plugin}}
    spec:
      containers:
      - name: nvidia-device-plugin-ctr
        image: nvcr.io/nvidia/k8s-device-plugin:v0.20.0
        command: [nvidia-device-plugin]
        env:
        - {name: NVIDIA_VISIBLE_DEVICES, value: "CARDS"}
"""
    site = slurm("NodeName=gpu01 Gres=gpu:a100:4", gres=FOUR.format("0-3"))
    for visible, firing in (("4,5,6,7", []), ("0,1,2,3", [TWICE_ID]), ("all", [TWICE_ID])):
        plugin = {"kubernetes/plugin.yaml": daemonset.replace("CARDS", visible)}
        found = crossed(tmp_path, site, nodes(node("gpu01", {"gpu": 4})), plugin)
        assert [f.rule.id for f in found] == firing, visible
