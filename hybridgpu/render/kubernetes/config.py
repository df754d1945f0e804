"""The device plugin's config of one node: what is in the file, and the hash by which a node is told to run it.

Source: NVIDIA/k8s-device-plugin api/config/v1. Every config spells out migStrategy and, where GPUs are shared, what is
asked for by default otherwise: a default that changes with a release would change the offer.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any

from hybridgpu.model.sharing import Mode, Scheduler
from hybridgpu.model.site import KubernetesCluster, NodeBody


@dataclass(frozen=True, slots=True)
class PluginConfig:
    """One distinct config. `visible`: the PCI indices that the plugin may see, on a split node; None: all of them."""

    hash: str
    data: dict[str, Any]
    visible: tuple[int, ...] | None
    mode: Mode


def in_kubernetes(body: NodeBody) -> bool:
    """Whether Kubernetes knows the node."""
    return Scheduler.KUBERNETES in body.schedulers


def plugin_config(body: NodeBody, cluster: KubernetesCluster) -> PluginConfig:
    """The config that the node's plugin runs while Kubernetes owns GPUs there."""
    sharing = body.sharing
    data: dict[str, Any] = {"version": "v1", "flags": {"migStrategy": "none"}}
    if sharing.mode is Mode.MIG:
        data["flags"]["migStrategy"] = sharing.mig_strategy
    if sharing.mode is Mode.MPS:
        data["flags"]["mpsRoot"] = cluster.mps_root
    if sharing.mode in (Mode.TIME_SLICING, Mode.MPS):
        data["sharing"] = {"timeSlicing" if sharing.mode is Mode.TIME_SLICING else "mps": _replicated(body)}
    visible = None
    if body.split:
        visible = tuple(i for i, owner in enumerate(body.owners) if owner is Scheduler.KUBERNETES)
    return PluginConfig(_hash(data, visible), data, visible, sharing.mode)


def _replicated(body: NodeBody) -> dict[str, Any]:
    return {
        "renameByDefault": body.sharing.rename_by_default,
        "failRequestsGreaterThanOne": body.sharing.fail_requests_greater_than_one,
        "resources": [{"name": "nvidia.com/gpu", "replicas": body.sharing.replicas}],
    }


def _hash(data: dict[str, Any], visible: tuple[int, ...] | None) -> str:
    """The first ten hex digits of the SHA-256 of the canonical JSON; of config and visible devices on a split node."""
    whole = data if visible is None else {"config": data, "visible": list(visible)}
    return short_hash(whole)


def short_hash(data: object) -> str:
    """Ten hex digits that stand for this data, the same in every run."""
    canonical = json.dumps(data, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()[:10]
