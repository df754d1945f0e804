"""A site as reconcile leaves it: inventory, the tree rendered from it, and Node objects. Nothing contradicts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings

from hybridgpu.check.site import check
from hybridgpu.consumers.kubernetes import Labelled, consume
from hybridgpu.consumers.slurm import release
from hybridgpu.inventory.load import Loaded, load_site
from hybridgpu.model.finding import Severity
from hybridgpu.model.sharing import Scheduler
from hybridgpu.model.site import KubernetesCluster, NodeConfig, Site
from hybridgpu.render.kubernetes.config import plugin_config
from hybridgpu.render.kubernetes.node import node_side
from hybridgpu.render.kubernetes.proof import node_seen
from tests.check.test_rendered import written
from tests.conftest import soak
from tests.kubernetes import inventories as hybrid
from tests.sites import CONFINING
from tests.slurm.inventories import Case


def node_object(config: NodeConfig, cluster: KubernetesCluster) -> dict[str, Any]:
    """The Node as it stands once the node is what it must be; on an open one feature discovery has written, too."""
    side = node_side(config.body, cluster)
    assert side is not None
    labels = {key: value for key, value in side["labels"].items() if value is not None}
    if side["open"]:
        data = yaml.safe_dump(plugin_config(config.body, cluster).data)
        found = consume(data, node_seen(config.body), {"MPS_ROOT": "/run/nvidia/mps"}).discovery
        assert isinstance(found, Labelled)
        labels |= found.labels
    allocatable = {name: str(count) for name, count in side["allocatable"].items()} or {"nvidia.com/gpu": "0"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": config.kubernetes_name, "labels": {"nvidia.com/gpu.present": "true", **labels}},
        "spec": {"taints": side["taints"]} if side["taints"] else {},
        "status": {"allocatable": {"cpu": "64", **allocatable}},
    }


def lived_in(case: Case, folder: Path) -> Site:
    """The inventory and the tree, with slurm.conf and the Node objects beside them."""
    written(case, folder)
    loaded: Loaded = load_site(str(folder / "inventory.yaml"), {p.stem: str(p) for p in (folder / "facts").iterdir()})
    site = loaded.site
    assert site is not None and site.kubernetes is not None
    if (folder / "tree" / "slurm").is_dir():
        (folder / "tree" / "slurm" / "slurm.conf").write_text(CONFINING)
    objects = [
        node_object(config, site.kubernetes)
        for config in site.nodes.values()
        if Scheduler.KUBERNETES in config.body.schedulers
    ]
    (folder / "nodes.yaml").write_text(yaml.safe_dump_all(objects, sort_keys=False))
    return site


def crossed(*paths: Path) -> list[str]:
    found = check([str(path) for path in paths], release(hybrid.RELEASE)).findings
    return [f"{f.rule.id}: {f.message}" for f in found if f.rule.id.startswith("site-") and f.severity != Severity.INFO]


@pytest.mark.parametrize("delivery", [hybrid.CHART, hybrid.OPERATOR])
def test_a_reconciled_site_contradicts_nothing(delivery: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    @settings(max_examples=soak(25, 300), deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(hybrid.cases(delivery))
    def judge(case: Case) -> None:
        folder = tmp_path_factory.mktemp("site")
        site = lived_in(case, folder)
        assert crossed(folder) == []
        # Without the inventory nobody says that a reservation closes Slurm's side of Kubernetes' own nodes.
        given_away = [
            config.name
            for config in site.nodes.values()
            if set(Scheduler) <= set(config.body.schedulers) and set(config.body.owners) == {Scheduler.KUBERNETES}
        ]
        found = crossed(folder / "tree", folder / "nodes.yaml")
        assert any("offered-twice" in line for line in found) == bool(given_away), found
        assert all(line.startswith(("site-cards-offered-twice", "site-node-unknown")) for line in found), found

    judge()
