"""The files below `kubernetes/`: each safe to apply, or to hand to its owner, at any time."""

from __future__ import annotations

from collections.abc import Iterator

from hybridgpu.model.sharing import Mode
from hybridgpu.model.site import KubernetesCluster, NodeBody, Site
from hybridgpu.render.kubernetes import chart, operator
from hybridgpu.render.kubernetes.config import PluginConfig, in_kubernetes, plugin_config
from hybridgpu.render.kubernetes.node import OPERATOR
from hybridgpu.render.kubernetes.yamltext import document, documents

_SHARERS = {
    Mode.TIME_SLICING: "time-slicing: sharers take turns; no memory limit, no fault isolation, no security boundary.",
    Mode.MPS: "mps: limits are per client process; a fault of one client ends the others; no security boundary.",
}


def kubernetes_files(site: Site) -> Iterator[tuple[str, bytes]]:
    """Path below `kubernetes/` and content of each file; none where the site has no Kubernetes."""
    cluster = site.kubernetes
    bodies = kubernetes_bodies(site)
    if cluster is None or not bodies:
        return
    configs = {config.hash: config for config in (plugin_config(body, cluster) for body in bodies)}
    if cluster.delivery == OPERATOR:
        yield from _operator(site, cluster, bodies, configs)
    else:
        yield from _chart(site, cluster, configs)


def kubernetes_bodies(site: Site) -> list[NodeBody]:
    """The distinct bodies of the nodes that Kubernetes knows, in the order of the inventory."""
    bodies = {id(config.body): config.body for config in site.nodes.values()}
    return [body for body in bodies.values() if in_kubernetes(body)]


def _chart(site: Site, cluster: KubernetesCluster, configs: dict[str, PluginConfig]) -> Iterator[tuple[str, bytes]]:
    release = "helm upgrade --install hybridgpu-{} nvdp/nvidia-device-plugin --version 0.20.0 -n " + cluster.namespace
    head = [f"Site {site.name}. Helm values for nvidia-device-plugin 0.20.0."]
    yield (
        "chart/nfd.yaml",
        document([*head, "Once beside all configs: " + release.format("nfd")], chart.nfd_values(cluster)),
    )
    for config in configs.values():
        notes = [*head, release.format(config.hash), *_about(config)]
        yield f"chart/values-{config.hash}.yaml", document(notes, chart.values(config, cluster))
        if config.visible is not None:
            notes = [f"Site {site.name}. The device plugin of split nodes: it may see {list(config.visible)} alone."]
            objects = chart.split_objects(config, cluster)
            yield f"chart/daemonset-{config.hash}.yaml", documents([*notes, *_about(config)], objects)
    for kept in site.retained.plugin_configs:
        if kept.kind == "chart" and kept.name.rpartition("-")[2].removesuffix(".yaml") not in configs:
            yield f"chart/{kept.name}", kept.text.encode()


def _operator(
    site: Site, cluster: KubernetesCluster, bodies: list[NodeBody], configs: dict[str, PluginConfig]
) -> Iterator[tuple[str, bytes]]:
    kept = site.retained.plugin_configs
    head = f"Site {site.name}."
    about = sorted({line for config in configs.values() for line in _about(config)})
    yield (
        "operator/configmap-device-plugin.yaml",
        document([head, *about], operator.plugin_map(configs.values(), cluster, kept)),
    )
    yield "operator/configmap-mig-parted.yaml", document([head], operator.mig_map(bodies, cluster, kept))
    owner = "For the owner of the ClusterPolicy: kubectl patch clusterpolicy NAME --type merge --patch-file THIS"
    yield "operator/clusterpolicy-patch.yaml", document([head, owner], operator.cluster_policy_patch(cluster))
    yield "operator/helm-values.yaml", document([head, "For the owner of the release."], operator.helm_values(cluster))


def _about(config: PluginConfig) -> list[str]:
    return [_SHARERS[config.mode]] if config.mode in _SHARERS else []
