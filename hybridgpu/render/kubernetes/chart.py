"""Delivery by the device plugin's Helm chart: a release per distinct config, node-feature-discovery once beside them.

One config a release, chosen by nodeSelector, has no race: config-manager starts with the only key there is, and a
closed node simply matches no release (measured on v0.20.0: with several keys it applies the default first).
"""

from __future__ import annotations

from typing import Any

from hybridgpu.model.labels import OUR_CONFIG
from hybridgpu.model.sharing import Mode
from hybridgpu.model.site import KubernetesCluster
from hybridgpu.render.kubernetes import tolerations
from hybridgpu.render.kubernetes.config import PluginConfig
from hybridgpu.render.kubernetes.yamltext import Literal, dump

_FALLBACK = ["named", "single"]

VERSION = "0.20.0"
"""The release of NVIDIA's chart and device plugin that consumers know, and whose values are written."""

PLUGIN_IMAGE = f"nvcr.io/nvidia/k8s-device-plugin:v{VERSION}"
"""What the DaemonSet of a split node runs: the chart's own image (values.yaml of 0.20.0)."""


def values(config: PluginConfig, cluster: KubernetesCluster) -> dict[str, Any]:
    """The Helm values of the release that runs this config. On a split node it brings feature discovery alone."""
    # The chart writes the key unquoted: a bare hash such as 3795448e16 would be a number there.
    given: dict[str, Any] = {
        "config": {"map": {f"config-{config.hash}": Literal(dump(config.data))}, "fallbackStrategies": _FALLBACK},
        "nodeSelector": {OUR_CONFIG: config.hash},
        "tolerations": tolerations.merged(tolerations.CHART, cluster.tolerations),
        "devicePlugin": {"enabled": config.visible is None},
        "gfd": {"enabled": True},
        "nfd": {"enabled": False},
        "mps": {"root": cluster.mps_root},
    }
    if cluster.driver_root != "/":
        given["nvidiaDriverRoot"] = cluster.driver_root
    if cluster.runtime_class:
        given["runtimeClassName"] = cluster.runtime_class
    if cluster.namespace == "default":
        given["allowDefaultNamespace"] = True
    return given


def nfd_values(cluster: KubernetesCluster) -> dict[str, Any]:
    """The Helm values of the one base release: node-feature-discovery and nothing else."""
    return {
        "devicePlugin": {"enabled": False},
        "gfd": {"enabled": False},
        "nfd": {
            "enabled": True,
            "worker": {"tolerations": tolerations.merged(tolerations.NFD_WORKER, cluster.tolerations)},
        },
    }


def split_objects(config: PluginConfig, cluster: KubernetesCluster) -> list[dict[str, Any]]:
    """ConfigMap and DaemonSet of a split node's plugin: the chart has no way to say which cards it may see.

    NVIDIA_VISIBLE_DEVICES carries PCI indices; not privileged, or the container would see every card. For MIG it has
    the capability and the variable that the chart gives (read from the chart's templates; unconfirmed on hardware).
    """
    assert config.visible is not None  # noqa: S101 - asked for split nodes only
    name = f"hybridgpu-device-plugin-{config.hash}"
    meta = {"name": name, "namespace": cluster.namespace, "labels": {"app.kubernetes.io/managed-by": "hybridgpu"}}
    labels = {"app.kubernetes.io/name": "hybridgpu-device-plugin", OUR_CONFIG: config.hash}
    pod = {
        "priorityClassName": "system-node-critical",
        **({"runtimeClassName": cluster.runtime_class} if cluster.runtime_class else {}),
        "nodeSelector": {OUR_CONFIG: config.hash},
        "tolerations": tolerations.merged(tolerations.CHART, cluster.tolerations),
        "containers": [_plugin(config, cluster)],
        "volumes": [
            {"name": "kubelet-device-plugins-dir", "hostPath": {"path": "/var/lib/kubelet/device-plugins"}},
            {"name": "config", "configMap": {"name": name}},
            *([{"name": "driver-root", "hostPath": {"path": cluster.driver_root}}] if _own_root(cluster) else []),
        ],
    }
    return [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": meta,
            "data": {"config.yaml": Literal(dump(config.data))},
        },
        {
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "metadata": meta,
            "spec": {
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": pod},
            },
        },
    ]


def _plugin(config: PluginConfig, cluster: KubernetesCluster) -> dict[str, Any]:
    env = {
        "CONFIG_FILE": "/config/config.yaml",
        "NVIDIA_VISIBLE_DEVICES": ",".join(map(str, config.visible or ())),
        "NVIDIA_DRIVER_CAPABILITIES": "compute,utility",
    }
    mounts = {"kubelet-device-plugins-dir": "/var/lib/kubelet/device-plugins", "config": "/config"}
    capabilities: dict[str, list[str]] = {"drop": ["ALL"]}
    if config.mode is Mode.MIG:
        env["NVIDIA_MIG_MONITOR_DEVICES"] = "all"
        capabilities["add"] = ["SYS_ADMIN"]
    if _own_root(cluster):
        env["NVIDIA_DRIVER_ROOT"] = cluster.driver_root
        mounts["driver-root"] = "/driver-root"
    return {
        "name": "nvidia-device-plugin-ctr",
        "image": PLUGIN_IMAGE,
        "command": ["nvidia-device-plugin"],
        "env": [{"name": name, "value": value} for name, value in env.items()],
        "securityContext": {"capabilities": capabilities},
        "volumeMounts": [{"name": name, "mountPath": path} for name, path in mounts.items()],
    }


def _own_root(cluster: KubernetesCluster) -> bool:
    return cluster.driver_root != "/"
