"""The `kubernetes:` block: how the device plugin comes to the nodes, and what its pods tolerate already."""

from __future__ import annotations

from hybridgpu.files.yamltree import Mapping, Node
from hybridgpu.inventory.clean import word
from hybridgpu.inventory.entries import KubernetesSettings
from hybridgpu.inventory.report import Report
from hybridgpu.model.finding import Rule, Severity
from hybridgpu.model.labels import MPS_ROOT
from hybridgpu.model.site import OPERATOR, KubernetesCluster, Toleration

_NAMESPACES = {OPERATOR: "gpu-operator", "device-plugin": "nvidia-device-plugin"}

TOLERATION = Rule(
    "inventory-bad-toleration",
    Severity.ERROR,
    "The API server refuses the pods.",
    "Exists takes no value; without a key the operator must be Exists.",
    "Kubernetes core/v1 Toleration; pkg/apis/core/validation ValidateTolerations",
)


def read_kubernetes(node: Node, driver_root: str, report: Report) -> KubernetesSettings:
    """The clean `kubernetes:` block; what is wrong in it is reported."""
    block = node if isinstance(node, Mapping) else None
    delivery = word(block, "delivery", "device-plugin")
    tolerations = block.items("tolerations") if block else ()
    cluster = KubernetesCluster(
        delivery=delivery,
        namespace=word(block, "namespace", _NAMESPACES[delivery]),
        mps_root=word(block, "mpsRoot", MPS_ROOT),
        tolerations=tuple(_toleration(item, report) for item in tolerations if isinstance(item, Mapping)),
        driver_root=driver_root,
        runtime_class=word(block, "runtimeClassName", ""),
    )
    return KubernetesSettings(cluster, report.place(node))


def _toleration(item: Mapping, report: Report) -> Toleration:
    key, operator, value, effect = (word(item, name, "") or None for name in ("key", "operator", "value", "effect"))
    if operator == "Exists" and value:
        report.add(TOLERATION, item.key("value") or item, "operator Exists takes no value")
    if item.get("key") is None and operator != "Exists" and not item.broken:
        report.add(TOLERATION, item, "a toleration without a key needs operator: Exists")
    return Toleration(key, operator, value, effect)
