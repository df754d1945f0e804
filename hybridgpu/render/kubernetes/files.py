"""The files below `kubernetes/`: each safe to apply, or to hand to its owner, at any time."""

from __future__ import annotations

from collections.abc import Iterator

from hybridgpu.model.sharing import Mode
from hybridgpu.model.site import OPERATOR, KubernetesCluster, NodeBody, Site
from hybridgpu.render.kubernetes import chart, operator
from hybridgpu.render.kubernetes.config import PluginConfig, in_kubernetes, plugin_config
from hybridgpu.render.kubernetes.yamltext import document, documents

_SHARERS = {
    Mode.TIME_SLICING: "time-slicing: sharers take turns; no memory limit, no fault isolation, no security boundary.",
    Mode.MPS: "mps: limits are per client process; a fault of one client ends the others; no security boundary.",
}


_PATCHED = (
    "It replaces what the ClusterPolicy has of these keys, on every node of the operator, also outside the inventory:",
    "nodes labelled with a key of another device-plugin ConfigMap, unlabelled MIG nodes under mig.strategy single, and",
    "tolerations that the inventory does not name (kubernetes.tolerations) lose what they had. Plugin, feature",
    "discovery and mig-manager restart.",
)


def kubernetes_files(site: Site) -> dict[str, bytes]:
    """Path below `kubernetes/` and content of each file, those included that must be kept of an older tree."""
    cluster = site.kubernetes
    bodies = kubernetes_bodies(site)
    made: dict[str, bytes] = {}
    if cluster is not None and bodies:
        configs = {config.hash: config for config in (plugin_config(body, cluster) for body in bodies)}
        made.update(
            _operator(site, cluster, bodies, configs)
            if cluster.delivery == OPERATOR
            else _chart(site, cluster, configs)
        )
    kept = {c.name: c.text.encode() for c in site.retained.plugin_configs if c.kind == "file"}
    return {**{path: content for path, content in kept.items() if path not in made}, **made}


def kubernetes_bodies(site: Site) -> list[NodeBody]:
    """The distinct bodies of the nodes that Kubernetes knows, in the order of the inventory."""
    bodies = {id(config.body): config.body for config in site.nodes.values()}
    return [body for body in bodies.values() if in_kubernetes(body)]


def _chart(site: Site, cluster: KubernetesCluster, configs: dict[str, PluginConfig]) -> Iterator[tuple[str, bytes]]:
    head = [f"Site {site.name}. Helm values for nvidia-device-plugin {chart.VERSION}."]
    notes = [
        "Once beside all configs, unless the site has node-feature-discovery already:",
        _helm("nfd", "nfd", cluster),
    ]
    yield "chart/nfd.yaml", document([*head, *notes], chart.nfd_values(cluster))
    for config in configs.values():
        notes = [*head, _helm(config.hash, f"values-{config.hash}", cluster), *_about(config)]
        yield f"chart/values-{config.hash}.yaml", document(notes, chart.values(config, cluster))
        if config.visible is not None:
            notes = [f"Site {site.name}. The device plugin of split nodes: it may see {list(config.visible)} alone."]
            objects = chart.split_objects(config, cluster)
            yield f"chart/daemonset-{config.hash}.yaml", documents([*notes, *_about(config)], objects)


def _helm(release: str, file: str, cluster: KubernetesCluster) -> str:
    return (
        f"helm upgrade --install hybridgpu-{release} nvdp/nvidia-device-plugin --version {chart.VERSION} "
        f"-n {cluster.namespace} --create-namespace -f {file}.yaml"
    )


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
    patch = operator.cluster_policy_patch(cluster)
    yield "operator/clusterpolicy-patch.yaml", document([head, owner, *_PATCHED], patch)
    helm = "For the owner of the release: helm upgrade ... --reuse-values -f THIS"
    yield "operator/helm-values.yaml", document([head, helm, *_PATCHED], operator.helm_values(cluster))


def _about(config: PluginConfig) -> list[str]:
    return [_SHARERS[config.mode]] if config.mode in _SHARERS else []
