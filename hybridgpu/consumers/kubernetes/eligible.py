"""Where a workload may run, as far as its node selector says: which Nodes, which configs; and selectors that miss.

An affinity that is more than one wanted label, taints and the scheduler's other rules are not followed here. Work is
done once for all workloads that select alike.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from hybridgpu.consumers.kubernetes import askrules as rules
from hybridgpu.consumers.kubernetes import miginforce
from hybridgpu.consumers.kubernetes.configmanager import LABEL
from hybridgpu.consumers.kubernetes.devicemap import WHOLE
from hybridgpu.consumers.kubernetes.given import KubeFiles, KubeNode, Workload
from hybridgpu.consumers.kubernetes.gpunames import base
from hybridgpu.consumers.kubernetes.names import SHARING_LABEL, Names, Source
from hybridgpu.consumers.kubernetes.replicated import PREFIX
from hybridgpu.files.quoting import listed, shown
from hybridgpu.model.finding import Finding
from hybridgpu.model.labels import MIG_CONFIG, OURS
from hybridgpu.model.spelling import nearest

_PRODUCT = f"{WHOLE}.product"
_SHARED_PRODUCT = "-SHARED"
_EVERYWHERE = "DaemonSet"
"""What asks no node to be there: where none is selected it has no pods, and none pends."""

_MANY = 8
_Selects = tuple[frozenset[tuple[str, str]], str]


class Eligible:
    """Where workloads may run. `counted`: whether every Node with GPUs says how many it has."""

    def __init__(self, files: KubeFiles, names: Names) -> None:
        self.nodes, self.names = files.nodes, names
        self.with_gpus = [node for node in files.nodes if node.has_gpus]
        self.counted = bool(self.with_gpus) and all(node.allocatable for node in self.with_gpus) and names.complete
        self._known = {label: _of_configs(label, files) for label in (LABEL, MIG_CONFIG)}
        self._labels = _labels(self.nodes) if self.with_gpus else {}
        self._told = any(node.allocatable is not None for node in self.with_gpus)
        self._named = {node.name: (node,) for node in files.nodes}
        self._matching: dict[_Selects, list[KubeNode]] = {}
        self._sources: dict[_Selects, tuple[Source, ...] | None] = {}
        self._most: dict[_Selects, dict[str, tuple[int, str]]] = {}

    def matching(self, workload: Workload) -> list[KubeNode]:
        """The Nodes that the workload's selector and node name allow."""
        selects = _selects(workload)
        if selects not in self._matching:
            wanted, name = selects
            among = self._named.get(name, ()) if name else self.nodes
            selector = dict(wanted)
            self._matching[selects] = [node for node in among if node.selected_by(selector)]
        return self._matching[selects]

    def sources(self, workload: Workload) -> tuple[Source, ...] | None:
        """The sources whose offer the pods may meet; None where the selector matches nothing that is known."""
        selects = _selects(workload)
        if selects not in self._sources:
            self._sources[selects] = self._met(workload)
        return self._sources[selects]

    def most(self, workload: Workload) -> dict[str, tuple[int, str]]:
        """By resource, how many one Node has at most where the workload may run, and the Node; {} if not all tell."""
        selects = _selects(workload)
        if selects not in self._most and self.counted:
            most: dict[str, tuple[int, str]] = {}
            for node in self.matching(workload) or self.with_gpus:
                for name, count in (node.allocatable or {}).items():
                    most[name] = max(most.get(name, (0, "")), (count, node.name))
            self._most[selects] = most
        return self._most.get(selects, {})

    def judge_selector(self, workload: Workload) -> Iterator[Finding]:
        """Whether the labels that the pods select are on some Node, or a config that could be; and on one together."""
        missing = False
        for label, value in workload.node_selector.items():
            known, where = self._values(label)
            if known is None or value in known:
                continue
            missing = True
            place = workload.selector_places.get(label, workload.place)
            near = nearest(value, known)
            hint = f"did you mean {shown(near)}?" if near else f"there is {listed(sorted(known)[:_MANY])}"
            if not known:
                near = nearest(label, self._labels)
                hint = f"did you mean {near}?" if near else "label the nodes so, or select by a label that they have"
            message = f"the pods select {label}={shown(value)}, and {where} has that"
            yield Finding(rules.SELECTOR, place, message, hint)
        wanted = sorted(label for label in workload.node_selector if label in self._labels)
        if not missing and len(wanted) > 1 and workload.kind != _EVERYWHERE and not self._together(workload, wanted):
            message = f"the pods select {listed(f'{key}={workload.node_selector[key]}' for key in wanted)}"
            places = [workload.selector_places[label] for label in wanted if label in workload.selector_places]
            place = min(places, key=lambda place: (place.line, place.column), default=workload.place)
            yield Finding(rules.SELECTOR, place, f"{message}, and no Node has all of them", rules.SELECTOR.fix)

    def _together(self, workload: Workload, labels: list[str]) -> bool:
        wanted = {label: workload.node_selector[label] for label in labels}
        return any(node.selected_by(wanted) for node in self.nodes)

    def _values(self, label: str) -> tuple[Collection[str] | None, str]:
        """The values of a label that exist: on Nodes where any has it, else those that configs make possible.

        None: not known. A label that Kubernetes or NVIDIA's programs set stands only in Nodes that a cluster printed.
        """
        if label in self._labels:
            return self._labels[label], "no Node"
        if label in self._known:
            known, where = self._known[label]
            return known or None, where
        by_itself = "kubernetes.io/" in label or "k8s.io/" in label or label.startswith((PREFIX, OURS))
        return (frozenset(), "no Node") if self.with_gpus and (self._told or not by_itself) else (None, "")

    def _met(self, workload: Workload) -> tuple[Source, ...] | None:
        sources, wanted = self.names.sources, workload.node_selector
        key = wanted.get(LABEL)
        if key is not None:
            chosen = {node.name for node in self.nodes if node.labels.get(LABEL) == key}
            sources = tuple(s for s in sources if s.key == key or (s.key is None and s.nodes and s.nodes & chosen))
        strategy = wanted.get(SHARING_LABEL)
        if strategy is not None:
            sources = tuple(s for s in sources if strategy in _kinds(s))
        product = wanted.get(_PRODUCT)
        if product is not None:
            suffixed = product.endswith(_SHARED_PRODUCT)
            sources = tuple(s for s in sources if WHOLE not in s.names or (s.names[WHOLE].kind != "none") == suffixed)
        sources = tuple(s for s in sources if all(wanted.get(key, value) == value for key, value in s.selector.items()))
        if wanted or workload.node_name:
            there = frozenset(node.name for node in self.matching(workload))
            sources = tuple(s for s in sources if s.nodes is None or not there or s.nodes & there)
        return sources if sources or not self.names.sources else None


def _selects(workload: Workload) -> _Selects:
    return frozenset(workload.node_selector.items()), workload.node_name


def _kinds(source: Source) -> frozenset[str]:
    """How the source shares cards, as the label of the sharing strategy says; MIG devices have their own."""
    return frozenset(share.kind for name, share in source.names.items() if base(name) == WHOLE)


def _labels(nodes: Iterable[KubeNode]) -> dict[str, set[str]]:
    """Every label of the Nodes, with its values."""
    found: dict[str, set[str]] = {}
    for node in nodes:
        for key, value in node.labels.items():
            found.setdefault(key, set()).add(value)
    return found


def _of_configs(label: str, files: KubeFiles) -> tuple[frozenset[str], str]:
    """The values of a label that configs make possible."""
    if label == LABEL:
        return frozenset(key for each in files.sets for key in each.keys if key), "no config"
    return miginforce.written(miginforce.in_force(files)), "no MIG config"
