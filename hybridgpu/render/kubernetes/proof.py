"""The proof of Kubernetes' half: each config, run as NVIDIA's programs run it on its nodes, offers what was asked for.

Holds no rule of theirs: consumers do. Works once per distinct body.
"""

from __future__ import annotations

from collections.abc import Iterator

from hybridgpu.consumers import kubernetes
from hybridgpu.consumers.kubernetes import Labelled, MpsRuns, Node, PluginRuns, card_of, in_file
from hybridgpu.consumers.kubernetes.pluginrules import RANDOM_LABELS
from hybridgpu.model.catalogue import find
from hybridgpu.model.finding import Finding, Place, Rule, Severity
from hybridgpu.model.gpu import GpuModel
from hybridgpu.model.sharing import Mode
from hybridgpu.model.site import KubernetesCluster, NodeBody, Site
from hybridgpu.render.kubernetes.config import in_kubernetes, plugin_config
from hybridgpu.render.kubernetes.files import kubernetes_bodies, kubernetes_files
from hybridgpu.render.kubernetes.migparted import DISABLED, disabled_entry, layout_entry, layout_name
from hybridgpu.render.kubernetes.node import OPERATOR
from hybridgpu.render.kubernetes.offer import expected, visible_devices
from hybridgpu.render.kubernetes.yamltext import dump

OFFER_DIFFERS = Rule(
    "render-kubernetes-offer-differs",
    Severity.ERROR,
    "NVIDIA's programs would make something else of the rendered config than the inventory asks for.",
    "See the findings beside this one; without any it is a bug of hybridgpu, please report it.",
    "hybridgpu",
)


TOO_LARGE = Rule(
    "render-configmap-too-large",
    Severity.ERROR,
    "The API server refuses a ConfigMap of more than 1 MiB.",
    "Let nodes share configs, or render with --forget where no node runs the old ones.",
    "Kubernetes core/v1 MaxSecretSize; pkg/apis/core/validation ValidateConfigMap",
)

_MOST = 2**20

_OF_THE_CARDS = (RANDOM_LABELS,)
"""What is so because of the cards in a node, whatever is rendered."""


def prove_kubernetes(site: Site) -> Iterator[Finding]:
    """What is found in the configs, and an error for every set of equal nodes whose offer is another."""
    cluster = site.kubernetes
    if cluster is None:
        return
    for path, content in kubernetes_files(site).items():
        if "configmap-" in path and len(content) > _MOST:
            message = f"{path} would have {len(content)} bytes; a ConfigMap holds {_MOST}"
            yield Finding(TOO_LARGE, Place(f"kubernetes/{path}", 1), message, TOO_LARGE.fix)
    nodes = {id(c.body): c.name for c in reversed(list(site.nodes.values())) if in_kubernetes(c.body)}
    proven: set[tuple[object, ...]] = set()
    for body in kubernetes_bodies(site):
        # Minor numbers and device files, in which nodes with facts differ, are nothing to NVIDIA's programs here.
        alike = (body.models, body.sharing, body.owners, tuple((d.index, d.profile) for d in visible_devices(body)))
        if alike in proven:
            continue
        proven.add(alike)
        file = _file_of(body, cluster)
        yield from _plugin(body, cluster, nodes[id(body)], file)
        if cluster.delivery == OPERATOR:
            yield from _mig(body, nodes[id(body)])


def _plugin(body: NodeBody, cluster: KubernetesCluster, name: str, file: str) -> Iterator[Finding]:
    text = dump(plugin_config(body, cluster).data)
    env = {"MPS_ROOT": cluster.mps_root}
    node = node_seen(body)
    for finding in kubernetes.judge_plugin_config(text, in_file(file), node, env):
        if finding.rule not in _OF_THE_CARDS:
            yield finding
    consumed = kubernetes.consume(text, node, env)
    want = expected(body)
    if not isinstance(consumed.plugin, PluginRuns):
        said = f"the device plugin would not run: {consumed.plugin}"
    elif consumed.plugin.offer != want:
        said = f"the device plugin would offer {consumed.plugin.offer.allocatable}, not {want.allocatable}"
    elif not isinstance(consumed.discovery, Labelled):
        said = f"feature discovery would not run: {consumed.discovery}"
    elif body.sharing.mode is Mode.MPS and not (consumed.mps_started and isinstance(consumed.mps, MpsRuns)):
        said = f"the MPS daemon would not run: {consumed.mps}"
    else:
        return
    yield Finding(OFFER_DIFFERS, Place(file, 1), f"{name}: {said}", OFFER_DIFFERS.fix)


def _mig(body: NodeBody, name: str) -> Iterator[Finding]:
    """The node's own config: those that NVIDIA generates for other models are no business of this node."""
    entries = {DISABLED: disabled_entry(), layout_name(body): layout_entry(body)}
    text = dump({"version": "v1", "mig-configs": entries})
    where = in_file("kubernetes/operator/configmap-mig-parted.yaml")
    for finding in kubernetes.judge_mig_file(text, where, node_seen(body)):
        yield Finding(finding.rule, finding.place, f"{name}: {finding.message}", finding.hint, finding.related)


def node_seen(body: NodeBody) -> Node:
    """The cards as the plugin's container sees them, out of the catalogue."""
    devices = visible_devices(body)
    cards = []
    for index in dict.fromkeys(device.index for device in devices):
        model = find(body.models[index])
        assert isinstance(model, GpuModel)  # noqa: S101 - a Site holds models of the catalogue only
        profiles = [d.profile for d in devices if d.index == index and d.profile]
        cards.append(card_of(model, index, profiles or None))
    return Node(tuple(cards))


def _file_of(body: NodeBody, cluster: KubernetesCluster) -> str:
    if cluster.delivery == OPERATOR:
        return "kubernetes/operator/configmap-device-plugin.yaml"
    return f"kubernetes/chart/values-{plugin_config(body, cluster).hash}.yaml"
