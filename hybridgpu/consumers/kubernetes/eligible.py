"""Where a workload may run, as far as its node selector says: which Nodes, which configs; and selectors that miss.

An affinity that is more than one wanted label, taints and the scheduler's other rules are not followed here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hybridgpu.consumers.kubernetes import askrules as rules
from hybridgpu.consumers.kubernetes.configmanager import LABEL
from hybridgpu.consumers.kubernetes.devicemap import WHOLE
from hybridgpu.consumers.kubernetes.given import KubeFiles, KubeNode, Workload
from hybridgpu.consumers.kubernetes.migcut import MIG_LABEL, named_configs
from hybridgpu.consumers.kubernetes.names import SHARING_LABEL, Names, Source
from hybridgpu.files.quoting import listed, shown
from hybridgpu.model.finding import Finding
from hybridgpu.model.spelling import nearest

_PRODUCT = f"{WHOLE}.product"
_SHARED_PRODUCT = "-SHARED"


def matching(workload: Workload, nodes: Iterable[KubeNode]) -> list[KubeNode]:
    """The Nodes that the workload's selector and node name allow."""
    wanted = workload.node_selector.items()
    if workload.node_name:
        return [node for node in nodes if node.name == workload.node_name]
    return [node for node in nodes if all(node.labels.get(key) == value for key, value in wanted)]


def eligible(workload: Workload, files: KubeFiles, names: Names) -> tuple[Source, ...] | None:
    """The sources whose offer the pods may meet; None where the selector matches nothing that is known."""
    sources = names.sources
    wanted = workload.node_selector
    key = wanted.get(LABEL)
    if key is not None:
        chosen = {node.name for node in files.nodes if node.labels.get(LABEL) == key}
        sources = tuple(s for s in sources if s.key == key or (s.key is None and s.nodes and s.nodes & chosen))
        if not sources:
            return None if names.sources else ()
    strategy = wanted.get(SHARING_LABEL)
    if strategy is not None:
        sources = tuple(s for s in sources if any(share.kind == strategy for share in s.names.values()))
    product = wanted.get(_PRODUCT, "")
    if product:
        suffixed = product.endswith(_SHARED_PRODUCT)
        sources = tuple(s for s in sources if WHOLE not in s.names or (s.names[WHOLE].kind != "none") == suffixed)
    there = frozenset(node.name for node in matching(workload, files.nodes))
    if there and (wanted or workload.node_name):
        sources = tuple(s for s in sources if s.nodes is None or s.nodes & there)
    return sources if sources or not names.sources else None


def judge_selector(workload: Workload, files: KubeFiles) -> Iterator[Finding]:
    """Whether the labels of ours that the pods select are on some Node, or a config that could be."""
    for label in (LABEL, MIG_LABEL, _PRODUCT):
        value = workload.node_selector.get(label)
        known, where = _known(label, files)
        if value is None or not known or value in known:
            continue
        near = nearest(value, known)
        hint = f"did you mean {shown(near)}?" if near else f"there is {listed(sorted(known))}"
        message = f"the pods select {label}={shown(value)}, and {where} has that"
        yield Finding(rules.SELECTOR, workload.place, message, hint)


def _known(label: str, files: KubeFiles) -> tuple[frozenset[str], str]:
    """The values of a label that exist: on Nodes where any has it, else those that configs make possible."""
    on_nodes = frozenset(node.labels[label] for node in files.nodes if label in node.labels)
    if on_nodes:
        return on_nodes, "no Node"
    if label == LABEL:
        return frozenset(key for each in files.sets for key in each.keys), "no config"
    return (named_configs(files), "no MIG config") if label == MIG_LABEL else (frozenset(), "")
