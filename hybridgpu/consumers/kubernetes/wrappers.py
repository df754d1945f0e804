"""Values of Helm charts that stand inside other objects, of Argo CD, Flux, k3s, Kustomize, and whose values they are.

What the values say is read elsewhere. Sources: Argo CD Application (spec.source.helm), Flux HelmRelease v2, k3s
HelmChart, Kustomize helmCharts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from hybridgpu.files.gotree import GoList, GoMap, GoNode, GoScalar
from hybridgpu.files.manifest import Manifest, at


@dataclass(frozen=True, slots=True)
class Values:
    """Values that begin at `root` of `manifest`, whose namespace is here the one into which the chart is installed.

    `chart` is the chart's name, "" where nothing says it.
    """

    manifest: Manifest
    root: GoNode
    chart: str


def wraps(manifest: Manifest) -> bool:
    """Whether the object is one that holds values of charts."""
    return manifest.kind in _READ


def wrapped(manifest: Manifest) -> Iterator[Values]:
    """All values in the object; texts that cannot be read are passed over."""
    spaces = (at(manifest.root, *path) for path in _NAMESPACES.get(manifest.kind, ()))
    space = next((node.text for node in spaces if isinstance(node, GoScalar) and node.value), "")
    manifest = replace(manifest, namespace=space)
    for chart, node in _READ[manifest.kind](manifest.root) if wraps(manifest) else ():
        name = chart.text.rpartition("/")[2] if isinstance(chart, GoScalar) and chart.value is not None else ""
        if isinstance(node, GoMap):
            yield Values(manifest, node, name)
        elif isinstance(node, GoScalar) and isinstance(node.value, str) and (inside := manifest.inside(node)):
            yield Values(inside, inside.root, name)


_Found = Iterator[tuple[GoNode | None, GoNode | None]]


def _application(root: GoNode) -> _Found:
    spec = at(root, "spec")
    for source in (at(spec, "source"), *_items(at(spec, "sources"))):
        # Argo CD takes valuesObject where both are given.
        values = at(source, "helm", "valuesObject")
        yield at(source, "chart"), at(source, "helm", "values") if values is None else values


def _application_set(root: GoNode) -> _Found:
    template = at(root, "spec", "template")
    yield from _application(template) if template is not None else ()


def _release(root: GoNode) -> _Found:
    yield at(root, "spec", "chart", "spec", "chart"), at(root, "spec", "values")


def _helm_chart(root: GoNode) -> _Found:
    chart = at(root, "spec", "chart") or at(root, "metadata", "name")
    for key in ("valuesContent", "values"):
        yield chart, at(root, "spec", key)


def _kustomization(root: GoNode) -> _Found:
    for chart in _items(at(root, "helmCharts")):
        yield at(chart, "name"), at(chart, "valuesInline")


def _items(node: GoNode | None) -> tuple[GoNode, ...]:
    return node.items if isinstance(node, GoList) else ()


_READ = {
    "Application": _application,
    "ApplicationSet": _application_set,
    "HelmRelease": _release,
    "HelmChart": _helm_chart,
    "HelmChartConfig": _helm_chart,
    "Kustomization": _kustomization,
}
_NAMESPACES = {
    "Application": (("spec", "destination", "namespace"),),
    "ApplicationSet": (("spec", "template", "spec", "destination", "namespace"),),
    "HelmRelease": (("spec", "targetNamespace"), ("metadata", "namespace")),
    "HelmChart": (("spec", "targetNamespace"),),
    "Kustomization": (("namespace",),),
}
