"""The proof of Kubernetes' half: each config, run as NVIDIA's programs run it on its nodes, offers what was asked for.

Holds no rule of theirs: consumers do. Works once per distinct body.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hybridgpu.consumers import kubernetes
from hybridgpu.consumers.kubernetes import Labelled, MpsRuns, Node, PluginRuns, card_of, in_file
from hybridgpu.consumers.kubernetes.pluginrules import RANDOM_LABELS
from hybridgpu.files.tree import Content
from hybridgpu.model.catalogue import find
from hybridgpu.model.finding import Finding, Place, Rule, Severity
from hybridgpu.model.gpu import GpuModel
from hybridgpu.model.sharing import Mode
from hybridgpu.model.site import OPERATOR, KubernetesCluster, NodeBody, Site
from hybridgpu.render.kubernetes.config import in_kubernetes, plugin_config
from hybridgpu.render.kubernetes.files import kubernetes_bodies
from hybridgpu.render.kubernetes.migparted import DISABLED, layout_entry, layout_name
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

_PLUGIN_MAP = "kubernetes/operator/configmap-device-plugin.yaml"
_MIG_MAP = "kubernetes/operator/configmap-mig-parted.yaml"

_OF_THE_CARDS = (RANDOM_LABELS,)
"""What is so because of the cards in a node, whatever is rendered."""


def prove_kubernetes(site: Site, files: Mapping[str, Content]) -> Iterator[Finding]:
    """What is found in the rendered files, and an error for every set of equal nodes whose offer is another."""
    cluster = site.kubernetes
    if cluster is None:
        return
    texts = {path: files[path]() for path in files if path.startswith("kubernetes/")}
    for path, content in texts.items():
        if "configmap-" in path and len(content) > _MOST:
            message = f"{path} would have {len(content)} bytes; a ConfigMap holds {_MOST}"
            yield Finding(TOO_LARGE, Place(path, 1), message, TOO_LARGE.fix)
    read = {path: _documents(content) for path, content in texts.items()}
    nodes = {id(c.body): c.name for c in reversed(list(site.nodes.values())) if in_kubernetes(c.body)}
    proven: set[tuple[object, ...]] = set()
    for body in kubernetes_bodies(site):
        # Minor numbers and device files, in which nodes with facts differ, are nothing to NVIDIA's programs here.
        alike = (body.models, body.sharing, body.owners, tuple((d.index, d.profile) for d in visible_devices(body)))
        if alike in proven:
            continue
        proven.add(alike)
        for file, text in _written(read, body, cluster):
            yield from _plugin(body, cluster, nodes[id(body)], file, text)
        if cluster.delivery == OPERATOR:
            yield from _mig(read, body, nodes[id(body)])


def _documents(content: bytes) -> list[Any]:
    import yaml

    return list(yaml.load_all(content, Loader=yaml.CSafeLoader))


def _written(read: Mapping[str, list[Any]], body: NodeBody, cluster: KubernetesCluster) -> Iterator[tuple[str, str]]:
    """Each file that brings the body's config to its plugin, and the config as it stands there; empty: it does not."""
    config = plugin_config(body, cluster)
    if cluster.delivery == OPERATOR:
        (object_,) = read[_PLUGIN_MAP]
        yield _PLUGIN_MAP, object_["data"].get(config.hash, "")
        return
    path = f"kubernetes/chart/values-{config.hash}.yaml"
    (values,) = read[path]
    (text,) = values["config"]["map"].values()
    yield path, text
    if config.visible is not None:
        path = f"kubernetes/chart/daemonset-{config.hash}.yaml"
        yield path, read[path][0]["data"]["config.yaml"]


def _plugin(body: NodeBody, cluster: KubernetesCluster, name: str, file: str, text: str) -> Iterator[Finding]:
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


def _mig(read: Mapping[str, list[Any]], body: NodeBody, name: str) -> Iterator[Finding]:
    """The config that the node's label names, as written, and the one that is applied without a label.

    Those that NVIDIA generates for other models are no business of this node.
    """
    (object_,) = read[_MIG_MAP]
    (file,) = _documents(object_["data"]["config.yaml"].encode())
    mine = {key: entry for key, entry in file["mig-configs"].items() if key in (DISABLED, layout_name(body))}
    text = dump({**file, "mig-configs": mine})
    for finding in kubernetes.judge_mig_file(text, in_file(_MIG_MAP), node_seen(body)):
        yield Finding(finding.rule, finding.place, f"{name}: {finding.message}", finding.hint, finding.related)
    if mine.get(layout_name(body)) != layout_entry(body):
        message = f"{name}: the layout {layout_name(body)} is not what is written"
        yield Finding(OFFER_DIFFERS, Place(_MIG_MAP, 1), message, OFFER_DIFFERS.fix)


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
