"""What NVIDIA's operator and charts do to nodes that Slurm has too: driver upgrades, and pods that taints keep away."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from hybridgpu.consumers.kubernetes.given import Taint
from hybridgpu.consumers.kubernetes.tolerations import tolerates
from hybridgpu.model.finding import Place, Severity
from hybridgpu.model.site import Toleration
from tests.check.cross_sites import cluster_policy, crossed, labels, node, nodes, slurm
from tests.check.test_cross_membership import KUBE_ONLY, SLURM_ONLY, entry, inventory

Files = Mapping[str, str]
SLURM = slurm("NodeName=gpu01 Gres=gpu:a100:8")
CLOSED = {"gpu": 0}
BOTH = nodes(node("gpu01", CLOSED, labels()), node("web1", {}, {"nvidia.com/gpu.present": "false"}))
ON = cluster_policy("{enabled: true, upgradePolicy: {autoUpgrade: true}}")
OURS = "[{key: nvidia.com/gpu, operator: Exists}, {key: hybridgpu.io/closed, operator: Exists}]"


def values(driver: str) -> Files:
    return {
        "kubernetes/values.yaml": f"driver: {driver}\ndevicePlugin: {{enabled: true}}\ntoolkit: {{enabled: true}}\n"
    }


UPGRADING: dict[str, tuple[Files, ...]] = {
    "a policy that says so": (SLURM, BOTH, ON),
    "the chart says so": (SLURM, BOTH, values("{enabled: true, upgradePolicy: {autoUpgrade: true}}")),
    "the chart's default": (SLURM, BOTH, values("{enabled: true}")),
    "a Node that shows nothing of its GPUs": (SLURM, ON, nodes(node("gpu01", {}, {"nvidia.com/gpu.present": ""}))),
    "no Nodes, and nothing else is known": (SLURM, ON),
    "no Nodes, and an inventory": (SLURM, ON, inventory(entry("gpu01"))),
}
NOT_UPGRADING: dict[str, tuple[Files, ...]] = {
    "off": (SLURM, BOTH, cluster_policy("{enabled: true, upgradePolicy: {autoUpgrade: false}}")),
    "a policy's default": (SLURM, BOTH, cluster_policy("{enabled: true}")),
    "no driver": (SLURM, BOTH, cluster_policy("{enabled: false, upgradePolicy: {autoUpgrade: true}}")),
    "a chart that says nothing of drivers": (
        SLURM,
        BOTH,
        {"kubernetes/values.yaml": "devicePlugin: {enabled: true}\ntoolkit: {enabled: true}\n"},
    ),
    "the node is left out": (
        SLURM,
        ON,
        nodes(node("gpu01", CLOSED, labels() | {"nvidia.com/gpu-driver-upgrade.skip": "true"})),
    ),
    "the host's own driver": (
        SLURM,
        ON,
        nodes(node("gpu01", CLOSED, labels() | {"nvidia.com/gpu.deploy.driver": "pre-installed"})),
    ),
    "no operands": (
        SLURM,
        ON,
        nodes(node("gpu01", CLOSED, {"nvidia.com/gpu.deploy.operands": "false"})),
    ),
    "no node in both": (SLURM, ON, nodes(node("dgx1", CLOSED, labels()), node("dgx2", CLOSED, labels()))),
    "no Slurm": (BOTH, ON),
    "an inventory of Slurm's nodes alone": (SLURM, ON, inventory(entry("gpu01", more=SLURM_ONLY))),
}


@pytest.mark.parametrize("case", UPGRADING)
def test_upgrades_under_slurm(case: str, tmp_path: Path) -> None:
    (found,) = [f for f in crossed(tmp_path, *UPGRADING[case]) if f.rule.id == "site-driver-auto-upgrade"]
    assert found.severity is Severity.WARNING
    assert "autoUpgrade" in found.message
    assert found.place and "slurm.conf" not in found.place.file


@pytest.mark.parametrize("case", NOT_UPGRADING)
def test_no_upgrades_under_slurm(case: str, tmp_path: Path) -> None:
    assert [f.message for f in crossed(tmp_path, *NOT_UPGRADING[case]) if "upgrade" in f.rule.id] == []


def tainted(*taints: tuple[str, str, str], allocatable: Mapping[str, int] | None = None) -> Files:
    return nodes(node("gpu01", CLOSED if allocatable is None else allocatable, labels(), taints))


HOLDING = ("hybridgpu.io/closed", "slurm", "NoSchedule")
DEDICATED = ("dedicated", "gpu", "NoSchedule")
DAEMONSET = """\
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: nvidia-device-plugin-daemonset, namespace: kube-system}
spec:
  selector: {matchLabels: {name: plugin}}
  template:
    metadata: {labels: {name: plugin}}
    spec:
      nodeSelector: SELECTOR
      tolerations: TOLERATIONS
      containers:
      - {name: nvidia-device-plugin-ctr, image: "nvcr.io/nvidia/k8s-device-plugin:v0.20.0"}
"""


def daemonset(tolerations: str, selector: str = "{}") -> Files:
    text = DAEMONSET.replace("TOLERATIONS", tolerations).replace("SELECTOR", selector)
    return {"kubernetes/plugin.yaml": text}


def chart(tolerations: str = "") -> Files:
    text = "migStrategy: mixed\ngfd: {enabled: true}\nnfd: {enabled: false}\n"
    return {"kubernetes/values.yaml": text + (f"tolerations: {tolerations}\n" if tolerations else "")}


KEPT_AWAY: dict[str, tuple[tuple[Files, ...], str, str]] = {
    "our taint, the operator": (
        (tainted(HOLDING), cluster_policy()),
        "site-taint-not-tolerated",
        "hybridgpu.io/closed",
    ),
    "our taint, the operator's own list": (
        (tainted(HOLDING), cluster_policy(tolerations="[{key: nvidia.com/gpu, operator: Exists}]")),
        "site-taint-not-tolerated",
        "ClusterPolicy",
    ),
    "our taint on a Node that shows nothing of its GPUs": (
        (SLURM, nodes(node("gpu01", {}, {"nvidia.com/gpu.present": ""}, [HOLDING])), cluster_policy()),
        "site-taint-not-tolerated",
        "hybridgpu.io/closed",
    ),
    "our taint, the chart": ((tainted(HOLDING), chart()), "site-taint-not-tolerated", "hybridgpu.io/closed"),
    "our taint, a DaemonSet": (
        (tainted(HOLDING), daemonset("[{key: nvidia.com/gpu, operator: Exists}]")),
        "site-taint-not-tolerated",
        "DaemonSet",
    ),
    "our taint with another value": (
        (tainted(HOLDING), daemonset("[{key: hybridgpu.io/closed, value: kubernetes, effect: NoSchedule}]")),
        "site-taint-not-tolerated",
        "slurm",
    ),
    "another taint where GPUs are offered": (
        (tainted(DEDICATED, allocatable={"gpu": 8}), cluster_policy()),
        "site-taint-not-tolerated",
        "dedicated=gpu:NoSchedule",
    ),
    "an inventory that will set ours": (
        (inventory(entry("gpu01")), cluster_policy()),
        "site-fence-not-tolerated",
        "hybridgpu.io/closed",
    ),
    "an inventory, and the chart": (
        (inventory(entry("gpu01")), chart("[{key: nvidia.com/gpu, operator: Exists}]")),
        "site-fence-not-tolerated",
        "inventory.yaml",
    ),
}
LET_IN: dict[str, tuple[Files, ...]] = {
    "our taint, tolerated": (tainted(HOLDING), cluster_policy(tolerations=OURS)),
    "our taint, tolerated by the chart": (tainted(HOLDING), chart(OURS)),
    "everything tolerated": (tainted(HOLDING, DEDICATED, allocatable={"gpu": 8}), daemonset("[{operator: Exists}]")),
    "a value tolerated": (
        tainted(HOLDING),
        daemonset("[{key: hybridgpu.io/closed, operator: Equal, value: slurm, effect: NoSchedule}]"),
    ),
    "NVIDIA's own taint": (
        tainted(("nvidia.com/gpu", "present", "NoSchedule"), allocatable={"gpu": 8}),
        cluster_policy(),
    ),
    "a taint that only prefers": (
        tainted(("dedicated", "gpu", "PreferNoSchedule"), allocatable={"gpu": 8}),
        cluster_policy(),
    ),
    "another taint that closes the node": (tainted(DEDICATED), cluster_policy()),
    "Kubernetes' own taint": (
        tainted(("node.kubernetes.io/unschedulable", "", "NoSchedule"), allocatable={"gpu": 8}),
        cluster_policy(),
    ),
    "a node without operands": (
        nodes(node("gpu01", CLOSED, labels() | {"nvidia.com/gpu.deploy.operands": "false"}, [HOLDING])),
        cluster_policy(),
    ),
    "a node without GPUs": (
        nodes(node("web", {}, {"nvidia.com/gpu.present": "false"}, [HOLDING]), node("gpu01", CLOSED, labels())),
        cluster_policy(),
    ),
    "pods of other nodes": (tainted(HOLDING), daemonset("[]", "{pool: other}")),
    "an inventory, tolerated": (inventory(entry("gpu01")), cluster_policy(tolerations=OURS)),
    "an inventory whose nodes never change hands": (
        inventory(entry("gpu01", more=SLURM_ONLY), entry("gpu02", "kubernetes", more=KUBE_ONLY)),
        cluster_policy(),
    ),
}


@pytest.mark.parametrize("case", KEPT_AWAY)
def test_pods_that_a_taint_keeps_away(case: str, tmp_path: Path) -> None:
    files, rule, named = KEPT_AWAY[case]
    found = [f for f in crossed(tmp_path, *files) if "tolerated" in f.rule.id]
    assert [f.rule.id for f in found] == [rule], found
    assert named in found[0].message


@pytest.mark.parametrize("case", LET_IN)
def test_pods_that_no_taint_keeps_away(case: str, tmp_path: Path) -> None:
    assert [f.message for f in crossed(tmp_path, *LET_IN[case]) if "tolerated" in f.rule.id] == []


@pytest.mark.parametrize(
    ("toleration", "yes"),
    [
        (Toleration(None, "Exists", None, None), True),
        (Toleration("k", "Exists", None, None), True),
        (Toleration("k", "Exists", None, "NoExecute"), False),
        (Toleration("k", None, "v", "NoSchedule"), True),
        (Toleration("k", "Equal", "w", None), False),
        (Toleration("k", None, None, None), False),
        (Toleration("other", "Exists", None, None), False),
        (Toleration(None, "Equal", "v", None), False),
    ],
)
def test_toleration(toleration: Toleration, yes: bool) -> None:
    assert tolerates(toleration, Taint("k", "v", "NoSchedule", Place("nodes.yaml", 1))) is yes
