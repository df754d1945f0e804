"""Where in an object pods are described: in Kubernetes' own kinds by path, in any other wherever `containers` are.

Says what is a user's workload at all: not NVIDIA's own programs, not what has ended, not rules about pods.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from hybridgpu.files.gotree import GoList, GoMap, GoNode, GoScalar
from hybridgpu.files.manifest import Manifest, at

_TEMPLATE = ("spec", "template", "spec")
_PATHS = {
    "Pod": ("spec",),
    "PodTemplate": ("template", "spec"),
    "CronJob": ("spec", "jobTemplate", *_TEMPLATE),
    **dict.fromkeys(
        ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "ReplicationController", "Job"), _TEMPLATE
    ),
}
_OWN_GROUPS = ("v1", "apps", "batch", "extensions")
_RULES_ABOUT_PODS = ("kyverno.io", "gatekeeper.sh", "admissionregistration.k8s.io", "apiextensions.k8s.io")
_NO_PODS = (*_RULES_ABOUT_PODS, "policies.kubewarden.io", "metrics.k8s.io", "nvidia.com", "rbac.authorization.k8s.io")
_DEEPEST = 40

_OPERANDS = frozenset(
    (
        *("k8s-device-plugin", "nvidia-device-plugin", "nvidia-gpu-device-plugin", "gpu-feature-discovery"),
        *("dcgm", "dcgm-exporter", "container-toolkit", "driver", "k8s-driver-manager", "gds", "nvidia-fs", "gdrdrv"),
        *("gpu-operator", "gpu-operator-validator", "k8s-mig-manager", "k8s-dra-driver-gpu", "k8s-cc-manager"),
        *("vgpu-manager", "vgpu-device-manager", "k8s-kata-manager", "kubevirt-gpu-device-plugin"),
    )
)
"""NVIDIA's own programs, by the last part of their images' names."""


@dataclass(frozen=True, slots=True)
class Template:
    """A pod's spec, and its containers; `init` come before them."""

    spec: GoMap
    containers: tuple[GoMap, ...]
    init: tuple[GoMap, ...]


def is_own_kind(manifest: Manifest) -> bool:
    """Whether the API server itself judges the pods of this object."""
    return manifest.kind in _PATHS and _group(manifest) in (*_OWN_GROUPS, "")


def templates(manifest: Manifest) -> tuple[Template, ...]:
    """The pods that an object of a user describes; () where it describes none, or they are over, or NVIDIA's own."""
    if is_own_kind(manifest):
        spec = manifest.get(*_PATHS[manifest.kind])
        found = [_template(spec)] if isinstance(spec, GoMap) else []
    else:
        group = f".{_group(manifest)}"
        without = any(group.endswith(f".{each}") for each in (*_NO_PODS, *_OWN_GROUPS))
        found = [] if without else list(_anywhere(manifest.root))
    operand = any(_image(container) in _OPERANDS for each in found for container in each.containers)
    return () if operand or _over(manifest) else tuple(found)


def maps(node: GoNode | None) -> tuple[GoMap, ...]:
    """The mappings in a list; () where it is none."""
    return tuple(item for item in node.items if isinstance(item, GoMap)) if isinstance(node, GoList) else ()


def text(node: GoNode | None) -> str:
    """A scalar as text; "" where there is none."""
    return str(node.value) if isinstance(node, GoScalar) and node.value is not None else ""


def _group(manifest: Manifest) -> str:
    return manifest.api_version.partition("/")[0]


def _template(spec: GoMap) -> Template:
    return Template(spec, maps(spec.get("containers")), maps(spec.get("initContainers")))


def _anywhere(root: GoMap) -> Iterator[Template]:
    """Every mapping with a list of containers, or, as Argo has it, with one `container`; each node is seen once."""
    seen: set[int] = set()
    open_: deque[tuple[GoNode, int]] = deque((value, 1) for key, value in root.entries if key.name != "status")
    while open_:
        node, depth = open_.popleft()
        if isinstance(node, GoScalar) or id(node) in seen or depth > _DEEPEST:
            continue
        seen.add(id(node))
        if isinstance(node, GoList):
            open_.extend((item, depth + 1) for item in node.items)
            continue
        found = _template(node)
        alone = next((c for key in ("container", "script") if isinstance(c := node.get(key), GoMap)), None)
        if any(each.get("image") or each.get("resources") for each in found.containers):
            yield found
        elif alone is not None and alone.get("image"):
            yield Template(node, (alone,), found.init)
        else:
            open_.extend((value, depth + 1) for _, value in node.entries)


def _image(container: GoMap) -> str:
    return text(container.get("image")).partition("@")[0].rpartition("/")[2].partition(":")[0]


def _over(manifest: Manifest) -> bool:
    """Whether nothing of the object will run any more: it ended, or is an old revision kept at 0."""
    if manifest.kind == "Pod":
        return manifest.text("status", "phase") in ("Succeeded", "Failed")
    if manifest.kind == "Job":
        conditions = maps(manifest.get("status", "conditions"))
        return any(
            text(c.get("type")) in ("Complete", "Failed") and text(c.get("status")) == "True" for c in conditions
        )
    owned = bool(manifest.items("metadata", "ownerReferences"))
    return manifest.kind == "ReplicaSet" and owned and text(at(manifest.root, "spec", "replicas")) == "0"
