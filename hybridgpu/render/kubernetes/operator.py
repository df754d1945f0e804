"""Delivery by the GPU operator: two ConfigMaps to apply, a ClusterPolicy patch and Helm values for their owner.

Content-hashed keys: config-manager reacts to a label that changes, never to content that does. A `default` key that
shares nothing: it is what config-manager runs first at every start, whatever the label says (measured on v0.20.0).
Nothing here is written to the ClusterPolicy by us.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from hybridgpu.model.site import KubernetesCluster, NodeBody, RetainedConfig
from hybridgpu.render.kubernetes import migparted, tolerations
from hybridgpu.render.kubernetes.config import PluginConfig
from hybridgpu.render.kubernetes.yamltext import Literal, dump

PLUGIN_MAP = "hybridgpu-device-plugin"
MIG_MAP = "hybridgpu-mig-parted"
DEFAULT = {"version": "v1", "flags": {"migStrategy": "mixed"}}
"""Shares nothing, and a card in MIG mode without instances offers nothing."""


def plugin_map(
    configs: Iterable[PluginConfig], cluster: KubernetesCluster, retained: Iterable[RetainedConfig]
) -> dict[str, Any]:
    """The device plugin's ConfigMap: `default`, the configs in use, and those that were there before."""
    data = {"default": Literal(dump(DEFAULT))}
    data.update({config.name: Literal(config.text) for config in retained if config.kind == "plugin"})
    data.update({config.hash: Literal(dump(config.data)) for config in configs})
    return _config_map(PLUGIN_MAP, cluster, dict(sorted(data.items())))


def mig_map(
    bodies: Iterable[NodeBody], cluster: KubernetesCluster, retained: Iterable[RetainedConfig]
) -> dict[str, Any]:
    """mig-manager's ConfigMap, one file in it: the layouts in use, and those that were there before."""
    found: dict[str, Any] = {c.name: json.loads(c.text) for c in retained if c.kind == "mig"}
    found.update(migparted.configs(bodies))
    file = {"version": "v1", "mig-configs": dict(sorted(found.items()))}
    return _config_map(MIG_MAP, cluster, {"config.yaml": Literal(dump(file))})


def cluster_policy_patch(cluster: KubernetesCluster) -> dict[str, Any]:
    """A merge patch. It removes spec.mig.strategy, which would beat the migStrategy of every config by a variable."""
    return {
        "spec": {
            "mig": {"strategy": None},
            "devicePlugin": {"config": {"name": PLUGIN_MAP, "default": "default"}, "mps": {"root": cluster.mps_root}},
            "migManager": {"config": {"name": MIG_MAP, "default": migparted.DISABLED}},
            "daemonsets": {"tolerations": tolerations.merged(tolerations.OPERATOR, cluster.tolerations)},
        }
    }


def helm_values(cluster: KubernetesCluster) -> dict[str, Any]:
    """The same for the operator's Helm chart, so that an upgrade does not take the patch back."""
    return {
        "mig": {"strategy": ""},
        "devicePlugin": {
            "config": {"create": False, "name": PLUGIN_MAP, "default": "default"},
            "mps": {"root": cluster.mps_root},
        },
        "migManager": {"config": {"create": False, "name": MIG_MAP, "default": migparted.DISABLED}},
        "daemonsets": {"tolerations": tolerations.merged(tolerations.OPERATOR, cluster.tolerations)},
        "node-feature-discovery": {
            "worker": {"tolerations": tolerations.merged(tolerations.OPERATOR_NFD_WORKER, cluster.tolerations)}
        },
    }


def _config_map(name: str, cluster: KubernetesCluster, data: dict[str, Any]) -> dict[str, Any]:
    meta = {"name": name, "namespace": cluster.namespace, "labels": {"app.kubernetes.io/managed-by": "hybridgpu"}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}
