"""GPU nodes that one side names and the other does not: scheduler against scheduler, and inventory against both."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from hybridgpu.model.finding import Severity
from tests.check.cross_sites import HEAD, crossed, judged, labels, node, nodes, slurm

Files = Mapping[str, str]
CLOSED = {"gpu": 0}
FOUR = slurm(
    "NodeName=gpu[01-04] Gres=gpu:a100:8",
    "NodeName=cpu[01-20] CPUs=64",
    gres="NodeName=gpu[01-04] Name=gpu Type=a100 File=/dev/nvidia[0-7]\n",
)


def gpu_nodes(*names: str) -> Files:
    return nodes(
        *(node(name, CLOSED, labels()) for name in names), node("head", {}, {"nvidia.com/gpu.present": "false"})
    )


UNKNOWN: dict[str, tuple[tuple[Files, ...], tuple[str, ...]]] = {
    "zeros": ((FOUR, gpu_nodes("gpu01", "gpu02", "gpu03", "gpu4")), ("gpu04", "gpu4")),
    "a slip": ((FOUR, gpu_nodes("gpu01", "gpu02", "gpu03", "gup04")), ("gpu04", "gup04")),
    "zeros everywhere": ((slurm("NodeName=gpu1 Gres=gpu:a100:8"), gpu_nodes("gpu01")), ("gpu1", "gpu01")),
}
OF_ONE: dict[str, tuple[tuple[Files, ...], tuple[str, ...]]] = {
    "Slurm has one more": ((FOUR, gpu_nodes("gpu01", "gpu02", "gpu03")), ("gpu04", "Node objects")),
    "Slurm has many more": (
        (
            slurm(
                "NodeName=dgx[01-06] Gres=gpu:a100:8",
                gres="NodeName=dgx[01-06] Name=gpu Type=a100 File=/dev/nvidia[0-7]\n",
            ),
            gpu_nodes("dgx04", "dgx05", "dgx06"),
        ),
        ("dgx01, dgx02, dgx03", "Node objects"),
    ),
    "Kubernetes has one more": (
        (FOUR, gpu_nodes("gpu01", "gpu02", "gpu03", "gpu04", "gpu05")),
        ("gpu05", "slurm.conf"),
    ),
    "another name": (
        (FOUR, gpu_nodes("gpu01", "gpu02", "gpu03", "gpu04", "infer1", "infer2")),
        ("infer1, infer2",),
    ),
}
KNOWN: dict[str, tuple[Files, ...]] = {
    "the same nodes": (FOUR, gpu_nodes("gpu01", "gpu02", "gpu03", "gpu04")),
    "with domains": (FOUR, gpu_nodes("gpu01.hpc", "gpu02.hpc", "gpu03.hpc", "gpu04.hpc")),
    "CPU nodes of Kubernetes": (
        FOUR,
        nodes(
            *(node(f"gpu0{n}", CLOSED, labels()) for n in range(1, 5)),
            *(node(f"web{n}", {}, {"nvidia.com/gpu.present": "false"}) for n in range(5)),
        ),
    ),
    "Kubernetes' own nodes of another name": (FOUR, gpu_nodes("gpu01", "gpu02", "gpu03", "gpu04", "infer1", "infer2")),
    "neighbours": (FOUR, gpu_nodes("dgx1", "dgx2")),
    "nodes that come and go": (
        slurm("NodeName=gpu01 Gres=gpu:a100:8", "NodeName=aws[1-9] Gres=gpu:a100:8 State=CLOUD"),
        gpu_nodes("gpu01"),
    ),
    "one Node as a sample": (FOUR, nodes(node("gpu01", CLOSED, labels()))),
    "a part of slurm.conf": (
        {"slurm/nodes.conf": "NodeName=gpu01 Gres=gpu:a100:8\n"},
        gpu_nodes("gpu01", "gpu02"),
    ),
    "an Include that was not given": (
        {
            "slurm/slurm.conf": HEAD
            + "Include /elsewhere/more.conf\nNodeName=gpu01 Gres=gpu:a100:8\nPartitionName=a Nodes=ALL\n"
        },
        gpu_nodes("gpu01", "gpu02"),
    ),
    "Kubernetes without GPUs": (FOUR, nodes(node("web1", {}, {"nvidia.com/gpu.present": "false"}))),
    "Slurm without GPUs": (slurm("NodeName=cpu[1-4] CPUs=64"), gpu_nodes("gpu01", "gpu02")),
}


@pytest.mark.parametrize("case", UNKNOWN)
def test_a_node_that_one_side_lacks(case: str, tmp_path: Path) -> None:
    files, named = UNKNOWN[case]
    (found,) = crossed(tmp_path, *files)
    assert found.rule.id == "site-node-unknown-to-other-side"
    assert all(word in found.message for word in named), found.message


@pytest.mark.parametrize("case", KNOWN)
def test_nothing_is_said_of_nodes_that_are_known_or_need_not_be(case: str, tmp_path: Path) -> None:
    assert [f.message for f in crossed(tmp_path, *KNOWN[case]) if "unknown" in f.rule.id] == []


def test_neighbours_are_a_remark(tmp_path: Path) -> None:
    found = [f for f in judged(tmp_path, *KNOWN["neighbours"]) if f.rule.id == "site-no-common-node"]
    assert [f.severity for f in found] == [Severity.INFO]
    assert "gpu01" in found[0].message and "dgx1" in found[0].message


@pytest.mark.parametrize("case", OF_ONE)
def test_nodes_of_one_side_are_a_remark_where_all_names_are_right(case: str, tmp_path: Path) -> None:
    files, named = OF_ONE[case]
    (found,) = [f for f in judged(tmp_path, *files) if f.rule.id.startswith("site-")]
    assert (found.rule.id, found.severity) == ("site-node-of-one-side", Severity.INFO)
    assert all(word in found.message for word in named), found.message


INVENTORY = """\
apiVersion: hybridgpu/v1
kind: Inventory
metadata: {name: leibniz}
slurm: {version: "24.11"}
kubernetes: {delivery: device-plugin, namespace: nvidia}
nodeClasses:
  a100: {model: A100-SXM4-80GB, gpus: 8, type: a100, slurm: {CPUs: 128}}
nodes:
"""


def entry(hosts: str, owner: str = "slurm", sharing: str = "{mode: exclusive}", more: str = "") -> str:
    return f"- {{hosts: '{hosts}', class: a100, owner: {owner}, sharing: {sharing}{more}}}\n"


def inventory(*entries: str) -> Files:
    return {"inventory.yaml": INVENTORY + "".join(entries)}


def raw(line: str) -> Files:
    """An inventory without gpu04, and with this line for gres.conf."""
    settings = 'slurm: {version: "24.11", site: {gresTypes: [nic], gres: [\'' + line + "']}}"
    text = INVENTORY.replace('slurm: {version: "24.11"}', settings)
    return {"inventory.yaml": text + entry("gpu[01-03]", more=SLURM_ONLY)}


SLURM_ONLY, KUBE_ONLY = ", schedulers: [slurm]", ", schedulers: [kubernetes]"
BOTH_KNOW = gpu_nodes("gpu01", "gpu02", "gpu03", "gpu04")
SHARD = slurm(
    "NodeName=gpu[01-04] Gres=gpu:a100:8,shard:32",
    gres="Name=gpu Type=a100 File=/dev/nvidia[0-7]\nName=shard Count=32\n",
)
BIG_INSTANCE = slurm(
    "NodeName=gpu[01-04] Gres=gpu:7g.80gb:8",
    gres="Name=gpu Type=7g.80gb File=/dev/nvidia-caps/nvidia-cap[4,139,274,409,544,679,814,949]\n",
)

BESIDE: dict[str, tuple[tuple[Files, ...], str, tuple[str, ...]]] = {
    "a node that slurm.conf lacks": (
        (FOUR, inventory(entry("gpu[01-05]", more=SLURM_ONLY))),
        "site-inventory-node-not-in-files",
        ("gpu05", "Slurm"),
    ),
    "a node that the inventory lacks": (
        (FOUR, inventory(entry("gpu[01-03]", more=SLURM_ONLY))),
        "site-node-not-in-inventory",
        ("gpu04", "inventory.yaml"),
    ),
    "a Node that is not there": (
        (gpu_nodes("gpu01", "gpu02"), inventory(entry("gpu[01-03]", "kubernetes", more=KUBE_ONLY))),
        "site-inventory-node-not-in-files",
        ("gpu03", "Node objects"),
    ),
    "a Node that the inventory lacks": (
        (gpu_nodes("gpu01", "gpu02"), inventory(entry("gpu01", "kubernetes", more=KUBE_ONLY))),
        "site-node-not-in-inventory",
        ("gpu02", "inventory.yaml"),
    ),
    "MIG is wanted": (
        (FOUR, inventory(entry("gpu[01-04]", sharing="{mode: mig, layout: {all: {1g.10gb: 7}}}", more=SLURM_ONLY))),
        "site-inventory-mode-differs",
        ("gpu01", "exclusive", "mig"),
    ),
    "no shares are wanted": (
        (SHARD, inventory(entry("gpu[01-04]", more=SLURM_ONLY))),
        "site-inventory-sharing-differs",
        ("gpu01", "time-slicing", "exclusive"),
    ),
    "half of the cards is wanted": (
        (FOUR, inventory(entry("gpu[01-04]", "{slurm: 0-3, kubernetes: 4-7}"))),
        "site-inventory-cards-differ",
        ("gpu01", "8 x a whole card", "4 x a whole card"),
    ),
    "the node is Kubernetes' alone": (
        (FOUR, inventory(entry("gpu[01-03]", more=SLURM_ONLY), entry("gpu04", "kubernetes", more=KUBE_ONLY))),
        "site-inventory-cards-differ",
        ("gpu04", "Kubernetes alone"),
    ),
    "an instance is a card's whole memory": (
        (
            BIG_INSTANCE,
            inventory(entry("gpu[01-04]", sharing="{mode: mig, layout: {all: {1g.10gb: 1}}}", more=SLURM_ONLY)),
        ),
        "site-inventory-cards-differ",
        ("gpu01", "8 x 7g.80gb", "8 x 1g.10gb"),
    ),
    "raw lines of another GRES": (
        (
            FOUR,
            raw("NodeName=gpu04 Name=nic Count=2"),
        ),
        "site-node-not-in-inventory",
        ("gpu04", "inventory.yaml"),
    ),
    "the Nodes share": (
        (
            nodes(*(node(f"gpu0{n}", {"gpu": 32}, labels(8, "time-slicing", 4)) for n in (1, 2))),
            inventory(entry("gpu[01-02]", "kubernetes", more=KUBE_ONLY)),
        ),
        "site-inventory-sharing-differs",
        ("gpu01", "exclusive", "time-slicing"),
    ),
}
AS_WANTED: dict[str, tuple[Files, ...]] = {
    "the same": (FOUR, BOTH_KNOW, inventory(entry("gpu[01-04]"))),
    "names of Kubernetes": (
        FOUR,
        gpu_nodes("w1-gpu01", "w1-gpu02", "w1-gpu03", "w1-gpu04"),
        inventory(entry("gpu[01-04]", more=", kubernetesName: 'w1-{host}'")),
    ),
    "each its own": (
        slurm("NodeName=gpu[01-02] Gres=gpu:a100:8"),
        gpu_nodes("gpu03", "gpu04"),
        inventory(entry("gpu[01-02]", more=SLURM_ONLY), entry("gpu[03-04]", "kubernetes", more=KUBE_ONLY)),
    ),
    "Kubernetes' cards, which Slurm knows too": (
        FOUR,
        nodes(*(node(f"gpu0{n}", {"gpu": 8}, labels()) for n in range(1, 5))),
        inventory(entry("gpu[01-04]", "kubernetes")),
    ),
    "a node whose lines are the site's own": (
        FOUR,
        raw("NodeName=gpu0[4-5] Name=gpu Type=a100 File=/dev/nvidia[0-7]"),
    ),
    "instances as wanted, each with one file": (
        BIG_INSTANCE,
        inventory(entry("gpu[01-04]", sharing="{mode: mig, layout: {all: {7g.80gb: 1}}}", more=SLURM_ONLY)),
    ),
    "another site's inventory": (FOUR, inventory(entry("dgx[1-2]", more=SLURM_ONLY))),
    "two inventories": (
        FOUR,
        inventory(entry("gpu[01-02]", more=SLURM_ONLY)),
        {"second.yaml": INVENTORY + entry("gpu[03-04]", more=SLURM_ONLY)},
    ),
    "shares as wanted": (
        SHARD,
        inventory(entry("gpu[01-04]", sharing="{mode: time-slicing, replicas: 4}", more=SLURM_ONLY)),
    ),
}


@pytest.mark.parametrize("case", BESIDE)
def test_an_inventory_beside_other_files(case: str, tmp_path: Path) -> None:
    files, rule, named = BESIDE[case]
    found = crossed(tmp_path, *files)
    assert [f.rule.id for f in found] == [rule], [f.message for f in found]
    assert all(word in found[0].message for word in named), found[0].message


@pytest.mark.parametrize("case", AS_WANTED)
def test_an_inventory_beside_its_files(case: str, tmp_path: Path) -> None:
    assert [f"{f.rule.id}: {f.message}" for f in crossed(tmp_path, *AS_WANTED[case])] == []
