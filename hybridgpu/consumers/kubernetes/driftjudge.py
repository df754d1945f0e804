"""Nodes whose labels show another number of shares than the config that they choose: the plugin has not read it again.

Source: k8s-device-plugin v0.20.0 cmd/config-manager (it acts on labels alone), internal/lm/resource.go; run.
"""

from __future__ import annotations

from collections.abc import Iterator

from hybridgpu.consumers.kubernetes.configmanager import LABEL
from hybridgpu.consumers.kubernetes.devicemap import WHOLE
from hybridgpu.consumers.kubernetes.given import KubeFiles, KubeNode
from hybridgpu.consumers.kubernetes.labelnumber import label_number
from hybridgpu.consumers.kubernetes.nodeconfig import NodeConfigs, Running
from hybridgpu.consumers.kubernetes.pluginconfig import read_config
from hybridgpu.files.quoting import listed, shown
from hybridgpu.model.finding import Finding, Related, Rule, Severity

DRIFT = Rule(
    "k8s-config-drift",
    Severity.WARNING,
    "A node offers another number of shares than its config says. An edit of the ConfigMap does nothing by itself: the "
    "config-manager looks at labels only, and the plugin goes on with what it has read.",
    "Restart the device plugin's pods there, or label the node with another key and back.",
    "k8s-device-plugin v0.20.0 cmd/config-manager/main.go; run",
)
RULES = (DRIFT,)

_REPLICAS = f"{WHOLE}.replicas"


def judge_drift(files: KubeFiles) -> Iterator[Finding]:
    """A finding for each config and number that nodes show in its place, at the label of the first of them."""
    configs = NodeConfigs(files.sets)
    found: dict[tuple[int, str, int, int], tuple[Running, list[KubeNode]]] = {}
    for node in files.nodes:
        seen = label_number(node.labels.get(_REPLICAS))
        # 0 is a card in MIG mode; a node that offers nothing keeps the labels of before.
        if not seen or not any((node.allocatable or {}).values()):
            continue
        running = configs.running(node)
        wanted = _replicas(running[0]) if len(running) == 1 and not running[0].guess else None
        if wanted is not None and wanted != seen:
            same = (id(running[0].config_set), running[0].key, wanted, seen)
            found.setdefault(same, (running[0], []))[1].append(node)
    for (_, key, wanted, seen), (one, nodes) in found.items():
        place = nodes[0].label_places.get(_REPLICAS, nodes[0].place)
        names = listed(node.name for node in nodes)
        message = f"{names}: {_REPLICAS} is {seen}, and the config {shown(key)} of {one.config_set.source} has {wanted}"
        where = one.config.place if one.config else one.config_set.place
        related = (Related(where, f"chosen by {LABEL}" if nodes[0].labels.get(LABEL) else "its config"),)
        yield Finding(DRIFT, place, message, DRIFT.fix, related)


def _replicas(one: Running) -> int | None:
    """The shares of a whole card, as feature discovery labels them: of two entries for it the first; None: not said."""
    config = read_config(one.config.text).config if one.config else None
    if config is None:
        return None
    entries = config.replicated.entries if config.replicated else ()
    return next((entry.replicas for entry in entries if entry.name == WHOLE), 1)
