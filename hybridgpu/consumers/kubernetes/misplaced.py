"""GPUs that an object asks for in a place where Kubernetes does not look: beside `limits`, under a key that is no key.

Only the place is judged, and said: what is asked for in the right one is read by asks.
Source: Kubernetes core/v1 PodSpec, Container, ResourceRequirements; kube-apiserver 1.36, run (fieldValidation).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hybridgpu.consumers.kubernetes.given import Misplaced
from hybridgpu.consumers.kubernetes.gpunames import is_ours, likely
from hybridgpu.consumers.kubernetes.podtemplates import Template, is_own_kind
from hybridgpu.files.gotree import GoKey, GoList, GoMap, GoNode
from hybridgpu.files.manifest import Manifest
from hybridgpu.model.spelling import is_slip, nearest

_CONTAINERS = frozenset(("containers", "initContainers", "ephemeralContainers"))
_FIELDS = ("limits", "requests")
_RESOURCES = "resources"
_FREE = frozenset(
    (
        *("metadata", "status", "nodeSelector", "selector", "matchLabels", "labels", "annotations"),
        *("volumeAttributes", "options", "parameters"),
    )
)
"""Mappings whose keys are anybody's: labels above all, many of which begin with nvidia.com/gpu."""
_DEEPEST = 24


def misplaced(manifest: Manifest, templates: Sequence[Template]) -> tuple[Misplaced, ...]:
    """Every GPU that stands where it does not count; of kinds that are not Kubernetes' own only in containers."""
    found: dict[int, Misplaced] = {}
    if is_own_kind(manifest) and templates:
        _collect(manifest, manifest.root, (), found)
    else:
        for template in templates:
            for container in (*template.init, *template.containers):
                _collect(manifest, container, ("containers", ""), found)
    return tuple(found.values())


def _collect(manifest: Manifest, node: GoNode, path: tuple[str, ...], found: dict[int, Misplaced]) -> None:
    """Each key below that names a GPU, once, but for those in their right place; an item of a list has the key ""."""
    for key, where in _below(node, path):
        if id(key) not in found and not _right(where):
            found[id(key)] = Misplaced(key.name, _shown(where), _instead(key.name, where), manifest.place(key))


def _below(root: GoNode, at: tuple[str, ...]) -> Iterator[tuple[GoKey, tuple[str, ...]]]:
    open_: list[tuple[GoNode, tuple[str, ...]]] = [(root, at)]
    while open_:
        node, path = open_.pop()
        if len(path) > _DEEPEST:
            continue
        if isinstance(node, GoList):
            open_ += ((item, (*path, "")) for item in reversed(node.items))
        elif isinstance(node, GoMap):
            for key, value in reversed(node.entries):
                if _names(key.name, path):
                    yield key, path
                elif key.name not in _FREE:
                    open_.append((value, (*path, key.name)))


def _names(name: str, path: tuple[str, ...]) -> bool:
    """Whether the key means a GPU; a bare word only where resources are spoken of."""
    if not is_ours(name):
        return False
    parent = next((part for part in reversed(path) if part), "")
    return "/" in name or any(is_slip(parent, word) for word in (*_FIELDS, _RESOURCES))


def _right(path: tuple[str, ...]) -> bool:
    """Whether it is a container's limits or requests, or the pod's, which are judged as such."""
    *above, resources, field = ("", "", *path)
    if resources != _RESOURCES or field not in _FIELDS:
        return False
    return above[-1] == "spec" or (above[-1] == "" and above[-2] in _CONTAINERS)


def _shown(path: tuple[str, ...]) -> str:
    """From the container on, or the whole path: `resources.limit`."""
    last = max((number for number, part in enumerate(path) if part in _CONTAINERS), default=None)
    inside = path[last + 2 :] if last is not None else path
    below = ".".join(part or "[]" for part in inside)
    if last is None:
        return below or "the object itself"
    return f"{below} of a container" if below else "a container itself"


def _instead(name: str, path: tuple[str, ...]) -> str:
    right = likely(name) or name
    hint = f"write resources: {{limits: {{{right}: N}}}} in the container"
    last = max((number for number, part in enumerate(path) if part in _CONTAINERS), default=0)
    for part in path[last + 2 :]:
        near = nearest(part, (*_FIELDS, _RESOURCES)) if part not in (*_FIELDS, _RESOURCES) else None
        if near:
            return f"did you mean {near}? {hint[0].upper()}{hint[1:]}"
    return hint
