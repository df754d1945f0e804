"""Which nodes there are, and what each source knows of each: Slurm's lines, Kubernetes' Nodes and facts by one name.

Nodes that an inventory cannot have are left out here, and told.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from hybridgpu.consumers.kubernetes.given import KubeNode
from hybridgpu.consumers.slurm import NEWEST, NodeRecord
from hybridgpu.consumers.slurm.hostnames import host_names
from hybridgpu.consumers.slurm.openness import openness
from hybridgpu.inventory.importer.cards import Card, cards_of
from hybridgpu.inventory.importer.fold import fold_hosts
from hybridgpu.inventory.importer.kubeview import KubeSide, KubeView, kube_view
from hybridgpu.inventory.importer.nodes import NodeSource
from hybridgpu.inventory.importer.parameters import NodeLine, node_line
from hybridgpu.inventory.importer.slurmview import SlurmView, view
from hybridgpu.inventory.importer.sources import Sources
from hybridgpu.inventory.importer.told import Told
from hybridgpu.inventory.nodeentry import is_host_name
from hybridgpu.inventory.schema import MOST_GPUS
from hybridgpu.model.catalogue import NotFound, identify
from hybridgpu.model.facts import Facts
from hybridgpu.model.finding import Place, Rule, Severity
from hybridgpu.model.gpu import GpuModel
from hybridgpu.model.hostname import Directory

NOT_NVIDIA = Rule(
    "import-not-nvidia",
    Severity.WARNING,
    "hybridgpu configures NVIDIA's GPUs: nodes with other ones are left out, and their lines of gres.conf kept as they "
    "are.",
    "Leave their NodeName lines in slurm.conf.",
    "docs/import.md",
)
NAME_ILLEGAL = Rule(
    "import-name-illegal",
    Severity.ERROR,
    "An inventory takes host names of letters, digits, '.', '_' and '-' only; the nodes are left out.",
    "Rename the nodes.",
    "docs/inventory.md",
)
INSTANCE_UNKNOWN = Rule(
    "import-instance-unknown",
    Severity.ERROR,
    "A MIG instance's type names no profile, so what is cut from the card is not known; the nodes are left out.",
    "Import with the facts of the nodes, or call the type by its profile (1g.10gb).",
    "docs/import.md",
)
CARDS_UNKNOWN = Rule(
    "import-cards-unknown",
    Severity.ERROR,
    "How many GPUs the nodes have, or how they are cut, cannot be told; the nodes are left out.",
    "Import with the facts of the nodes.",
    "docs/import.md",
)
WITHOUT_GPUS = Rule(
    "import-nodes-without-gpus",
    Severity.INFO,
    "An inventory has nodes with GPUs only.",
    "Leave the NodeName lines of these nodes in slurm.conf.",
    "docs/import.md",
)
ONLY_FACTS = Rule(
    "import-facts-of-unknown-node",
    Severity.WARNING,
    "Neither Slurm's nor Kubernetes' files name the node, so it is left out.",
    "Give the files that name it, or remove its facts.",
    "docs/import.md",
)


_Line = tuple[NodeRecord, NodeLine]


@dataclass(slots=True)
class Survey:
    """Goes through the sources once. `left_out`: nodes with GPUs that the inventory does not have."""

    sources: Sources
    told: Told
    left_out: list[str] = field(default_factory=list)
    _side: KubeSide = field(init=False)
    _views: dict[int, SlurmView] = field(default_factory=dict)
    _cards: dict[tuple[object, ...], tuple[Card, ...]] = field(default_factory=dict)
    _aside: dict[Rule, dict[str, Place]] = field(default_factory=dict)
    _why: dict[Rule, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._side = KubeSide(self.sources.kube)

    def nodes(self) -> tuple[NodeSource, ...]:
        """The nodes that have GPUs, Slurm's in the order of its lines first."""
        tree, consumption = self.sources.tree, self.sources.consumption
        release = consumption.release if consumption else NEWEST
        lines = [(record, node_line(record, release, self.told)) for record in (tree.files.nodes if tree else ())]
        names = [known for record, _ in lines for known in host_names(record, release)]
        kube = _by_host(names, self.sources.kube.nodes)
        facts = Directory.of(((name,), told) for name, told in self.sources.facts.items())
        every = [*self._slurm(lines, names, kube, facts), *self._kubernetes(kube, facts), *self._facts_alone(names)]
        for rule, nodes in self._aside.items():
            self.told.add(rule, next(iter(nodes.values())), f"{fold_hosts(nodes)}: {self._why[rule]}")
        return tuple(node for node in every if node.cards)

    def _slurm(
        self,
        lines: Sequence[_Line],
        names: Sequence[tuple[str, ...]],
        kube: Mapping[str, KubeNode],
        every: Directory[Facts],
    ) -> Iterator[NodeSource]:
        results = self.sources.consumption.nodes if self.sources.consumption else {}
        hosts = iter(names)
        consumption = self.sources.consumption
        opened = openness(self.sources.tree.files, consumption.release) if self.sources.tree and consumption else None
        for record, line in lines:
            for position, (name, known) in enumerate(zip(line.nodes, hosts, strict=False)):
                result = results.get(name)
                if result is None or result.offer is None:
                    continue
                facts = every.find(known)
                seen = view(result.offer, facts) if facts else self._views.get(id(result))
                seen = seen or self._views.setdefault(id(result), view(result.offer, None))
                closed = opened.closed(name, record) if opened else None
                source = NodeSource(name, _place(record), line, position, seen, closed=closed)
                yield self._judged(source, facts, kube.get(name))

    def _kubernetes(self, matched: Mapping[str, KubeNode], facts: Directory[Facts]) -> Iterator[NodeSource]:
        """Nodes of Kubernetes that Slurm does not have."""
        known = {id(node) for node in matched.values()}
        for node in self.sources.kube.nodes:
            if id(node) not in known and node.has_gpus:
                yield self._judged(NodeSource(node.name, node.place), facts.find(node.host_names), node)

    def _facts_alone(self, names: Sequence[tuple[str, ...]]) -> Iterator[NodeSource]:
        """Nodes that facts alone show: taken where nothing else was given that could name them."""
        named = Directory.of((known, known[0]) for known in (*names, *(n.host_names for n in self.sources.kube.nodes)))
        for name, facts in self.sources.facts.items():
            if named.find((name,)) is not None or not facts.gpus:
                continue
            source = NodeSource(name, Place(facts.file, 1))
            if self.sources.tree is None and not self.sources.kube.nodes:
                yield self._judged(source, facts, None)
            else:
                self._set_aside(ONLY_FACTS, source, "there are facts, and no other file names the node")

    def _judged(self, source: NodeSource, facts: Facts | None, node: KubeNode | None) -> NodeSource:
        """The node with its cards; without any where it is left out."""
        seen = source.seen
        if not is_host_name(source.name):
            self._set_aside(NAME_ILLEGAL, source, "no name that a node can have", gpus=True)
            return source
        if seen and seen.foreign:
            self._set_aside(NOT_NVIDIA, source, f"{seen.foreign} is no NVIDIA GPU", gpus=True)
            return source
        if seen and seen.unknown:
            self._set_aside(INSTANCE_UNKNOWN, source, f"{seen.unknown} is no profile", gpus=True)
            return source
        empty = seen is not None and not (seen.cards or seen.loose or seen.kept)
        kube = self._in_kubernetes(source, facts, node)
        if empty:
            seen = None
            if kube is None:
                self._set_aside(WITHOUT_GPUS, source, "no GPUs")
                return source
        cards = self._cards_of(source, seen, facts, kube)
        if not 0 < len(cards) <= MOST_GPUS:
            self._set_aside(CARDS_UNKNOWN, source, f"{len(cards) or 'no'} cards can be made out", gpus=True)
            return source
        name = node.name if kube and node else None
        return replace(source, seen=seen, kube=kube, cards=cards, kube_name=name)

    def _cards_of(
        self, source: NodeSource, seen: SlurmView | None, facts: Facts | None, kube: KubeView | None
    ) -> tuple[Card, ...]:
        """The cards; nodes of which only Slurm knows, and the same of all, share them."""
        hints = _hints(source.line)
        if facts or kube:
            return cards_of(seen, facts, kube, hints)
        key = (id(seen), hints)
        if key not in self._cards:
            self._cards[key] = cards_of(seen, None, None, hints)
        return self._cards[key]

    def _in_kubernetes(self, source: NodeSource, facts: Facts | None, node: KubeNode | None) -> KubeView | None:
        if node is None or not node.has_gpus:
            return None
        model, cards = None, None
        if facts:
            cards, model = len(facts.gpus), _model(facts)
        elif source.seen:
            cards = len(source.seen.cards) + len(source.seen.kept) or None
        return kube_view(node, self._side, model, cards)

    def _set_aside(self, rule: Rule, source: NodeSource, why: str, gpus: bool = False) -> None:
        self._aside.setdefault(rule, {})[source.name] = source.place
        self._why.setdefault(rule, why)
        if gpus:
            self.left_out.append(source.name)


def _model(facts: Facts) -> GpuModel | None:
    found = [identify(gpu.model, gpu.memory_bytes) for gpu in facts.gpus[:1]]
    return found[0] if found and not isinstance(found[0], NotFound) else None


def _hints(line: NodeLine | None) -> tuple[str, ...]:
    """Words of the line that may name the GPUs: where they have no type, Features often do."""
    return tuple(word for word in dict(line.keys).get("Features", "").split(",") if word) if line else ()


def _place(record: NodeRecord) -> Place:
    gres = record.values.get("gres")
    return gres.place if gres else record.place


def _by_host(names: Iterable[tuple[str, ...]], nodes: Iterable[KubeNode]) -> dict[str, KubeNode]:
    """Kubernetes' nodes by their names in Slurm, paired as check does."""
    kube = Directory.of((node.host_names, node) for node in nodes)
    paired = ((known[0], kube.find(known)) for known in names)
    return {name: node for name, node in paired if node is not None}
