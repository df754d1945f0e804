"""What Kubernetes' side of a NodeConfig says: the config a node runs, the marks that open or close it, its offer.

Data only. No file that holds it is a trigger: a label recuts a card, so nothing but reconcile ever sets one.
"""

from __future__ import annotations

from typing import Any

from hybridgpu.model.labels import CLOSED, DEPLOY_PLUGIN, MIG_CONFIG, OUR_CONFIG, PLUGIN_CONFIG
from hybridgpu.model.sharing import Scheduler
from hybridgpu.model.site import OPERATOR, KubernetesCluster, NodeBody
from hybridgpu.render.kubernetes.config import in_kubernetes, plugin_config
from hybridgpu.render.kubernetes.migparted import layout_name
from hybridgpu.render.kubernetes.offer import expected


def node_side(body: NodeBody, cluster: KubernetesCluster | None) -> dict[str, Any] | None:
    """The `kubernetes` field of a NodeConfig; None for a node that Kubernetes does not know."""
    if cluster is None or not in_kubernetes(body):
        return None
    config = plugin_config(body, cluster)
    is_open = Scheduler.KUBERNETES in body.owners
    taint = {"key": CLOSED, "value": "owner", "effect": "NoSchedule"}
    return {
        "delivery": cluster.delivery,
        "namespace": cluster.namespace,
        "config": config.hash,
        "open": is_open,
        "labels": _labels(body, cluster, config.hash, is_open=is_open),
        "taints": [] if is_open else [taint],
        "visible_devices": list(config.visible) if config.visible is not None else None,
        "allocatable": expected(body).allocatable if is_open else {},
    }


def _labels(body: NodeBody, cluster: KubernetesCluster, config: str, *, is_open: bool) -> dict[str, str | None]:
    """Labels to set; None: to be absent."""
    if cluster.delivery != OPERATOR:
        # A label left by a release with several keys would crash the sidecar of ours.
        return {OUR_CONFIG: config if is_open else None, PLUGIN_CONFIG: None}
    return {
        OUR_CONFIG: None,
        PLUGIN_CONFIG: config,
        MIG_CONFIG: layout_name(body),
        DEPLOY_PLUGIN: "true" if is_open else "false",
    }
