"""Good sites of both schedulers: nobody may find anything in them, and each mistake put into one is found."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.check.cross_sites import (
    PRODUCT,
    WHOLE,
    cluster_policy,
    config,
    facts,
    labels,
    loud,
    mig_gres,
    mig_parted,
    node,
    nodes,
    plugin_configs,
    slurm,
)

Files = Mapping[str, str]
CHOICE, CUT = "nvidia.com/device-plugin.config", "nvidia.com/mig.config"
OFF = {"nvidia.com/gpu.deploy.device-plugin": "false"}
OURS = "[{key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}, {key: hybridgpu.io/closed, operator: Exists}]"
CLOSED = [("hybridgpu.io/closed", "slurm", "NoSchedule")]
NO_UPGRADES = "{enabled: true, upgradePolicy: {autoUpgrade: false}}"
HEAD = node(
    "head", {}, {"nvidia.com/gpu.present": "false"}, [("node-role.kubernetes.io/control-plane", "", "NoSchedule")]
)


def policy(**more: str) -> Files:
    return cluster_policy(NO_UPGRADES, OURS, **more)


def by_node() -> tuple[Files, ...]:
    """gpu01, gpu02 are Slurm's; gpu03, gpu04 Kubernetes', who shares them; all are known to both."""
    return (
        slurm(
            "NodeName=DEFAULT CPUs=128 RealMemory=500000",
            "NodeName=gpu[01-02] Gres=gpu:a100:8",
            "NodeName=gpu[03-04] Gres=gpu:a100:8,shard:80 State=DRAIN Reason=kubernetes",
            "NodeName=cpu[01-99] CPUs=64",
            gres=f"NodeName=gpu[01-04] {WHOLE}NodeName=gpu[03-04] Name=shard Count=80\n",
        ),
        nodes(
            HEAD,
            *(node(f"gpu0{n}", {"gpu": 0}, labels() | OFF | {CHOICE: "default"}, CLOSED) for n in (1, 2)),
            *(node(f"gpu0{n}", {"gpu": 80}, labels(8, "time-slicing", 10) | {CHOICE: "shared"}) for n in (3, 4)),
        ),
        plugin_configs(default=config(strategy="mixed"), shared=config("timeSlicing", 10)),
        policy(config_name="plugin-configs", default="default"),
    )


def with_mig() -> tuple[Files, ...]:
    """Two nodes cut alike for both schedulers, by mig-manager; Slurm has the one, Kubernetes the other."""
    seen = {
        f"nvidia.com/mig-1g.10gb.{key}": value
        for key, value in {"count": "14", "product": f"{PRODUCT}-MIG-1g.10gb", "replicas": "1"}.items()
    }
    cut = labels(2, replicas=0, mig="mixed") | seen | {CUT: "all-1g", f"{CUT}.state": "success"}
    return (
        slurm(
            "NodeName=mig[1-2] Gres=gpu:1g.10gb:14",
            "DownNodes=mig2 State=DOWN Reason=kubernetes",
            gres=mig_gres(cards=2),
        ),
        nodes(
            HEAD,
            node("mig1.example.org", {"gpu": 0, "mig-1g.10gb": 0}, cut | OFF, CLOSED),
            node("mig2.example.org", {"gpu": 0, "mig-1g.10gb": 14}, cut),
        ),
        mig_parted(all_1g="{1g.10gb: 7}"),
        facts("mig1", 2, [0, 1]),
        facts("mig2", 2, [0, 1]),
    )


def split() -> tuple[Files, ...]:
    """One node of eight cards, four a side; the plugin sees its own four alone."""
    plugin = """\
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: plugin-split, namespace: nvidia}
spec:
  selector: {matchLabels: {app: plugin-split}}
  template:
    metadata: {labels: {app: plugin-split}}
    spec:
      nodeSelector: {pool: split}
      tolerations: [{operator: Exists}]
      containers:
      - name: nvidia-device-plugin-ctr
        image: nvcr.io/nvidia/k8s-device-plugin:v0.20.0
        env: [{name: NVIDIA_VISIBLE_DEVICES, value: "4,5,6,7"}]
"""
    return (
        slurm("NodeName=gpu01 Gres=gpu:a100:4", gres="Name=gpu Type=a100 File=/dev/nvidia[0-3]\n"),
        nodes(node("gpu01", {"gpu": 4}, labels() | {"pool": "split"})),
        {"kubernetes/plugin.yaml": plugin},
    )


def neighbours() -> tuple[Files, ...]:
    """Two clusters that share nothing but an admin."""
    return (
        slurm("NodeName=hpc[1-4] Gres=gpu:a100:8"),
        nodes(HEAD, node("ml-a", {"gpu": 32}, labels(8, "time-slicing", 4)), node("ml-b", {"gpu": 8}, labels())),
        cluster_policy("{enabled: true, upgradePolicy: {autoUpgrade: true}}"),
    )


def served_by_mps() -> tuple[Files, ...]:
    """A node in mode mps on both sides, that Kubernetes has now."""
    return (
        slurm(
            "NodeName=gpu01 Gres=gpu:a100:8,mps:800",
            "NodeName=cpu01 CPUs=64",
            gres=f"NodeName=gpu01 {WHOLE}NodeName=gpu01 Name=mps Count=800\n",
            partition="PartitionName=gpu Nodes=gpu01 State=DOWN\nPartitionName=cpu Nodes=cpu01 Default=YES",
        ),
        nodes(node("gpu01", {"gpu": 32}, labels(8, "mps", 4))),
        {
            "kubernetes/values.yaml": "config:\n  map:\n    default: |\n"
            + "".join(f"      {line}\n" for line in config("mps").splitlines())
            + "gfd: {enabled: true}\nnfd: {enabled: false}\n"
        },
    )


SITES = {"by node": by_node, "with MIG": with_mig, "split": split, "neighbours": neighbours, "mps": served_by_mps}

BROKEN: dict[str, tuple[str, str, str, str, str]] = {
    "a node of Kubernetes opened to Slurm": (
        "by node",
        "slurm/slurm.conf",
        " State=DRAIN Reason=kubernetes",
        "",
        "site-cards-offered-twice",
    ),
    "a domain that is no longer the node's": (
        "with MIG",
        "slurm/slurm.conf",
        "mig[1-2]",
        "mig[2-3]",
        "site-node-unknown",
    ),
    "another layout": ("with MIG", "kubernetes/mig.yaml", "{1g.10gb: 7}", "{3g.40gb: 2}", "site-mig-instances-differ"),
    "our taint no longer tolerated": (
        "by node",
        "kubernetes/policy.yaml",
        "hybridgpu.io/closed",
        "other",
        "site-taint",
    ),
    "drivers upgraded": ("by node", "kubernetes/policy.yaml", "autoUpgrade: false", "autoUpgrade: true", "site-driver"),
    "a plugin that sees Slurm's cards": (
        "split",
        "kubernetes/plugin.yaml",
        "4,5,6,7",
        "0,1,2,3",
        "site-cards-offered-twice",
    ),
    "a partition that is up": (
        "mps",
        "slurm/slurm.conf",
        "Nodes=gpu01 State=DOWN",
        "Nodes=gpu01",
        "site-cards-offered-twice",
    ),
}


@pytest.mark.parametrize("site", SITES)
def test_a_good_site_gives_nothing(site: str, tmp_path: Path) -> None:
    assert loud(tmp_path, *SITES[site]()) == []


@pytest.mark.parametrize("case", BROKEN)
def test_one_mistake_in_a_good_site_is_found(case: str, tmp_path: Path) -> None:
    site, file, old, new, rule = BROKEN[case]
    files = {name: text for part in SITES[site]() for name, text in part.items()}
    assert old in files[file]
    found = loud(tmp_path, files | {file: files[file].replace(old, new)})
    assert any(line.startswith(rule) for line in found), found
