"""The partitions of slurm.conf with the DEFAULT lines before them resolved, and which nodes each of them has.

What a partition's keys mean is said by those who ask. Source: S:src/common/read_config.c _parse_partitionname;
S:src/slurmctld/read_config.c nodespec_to_hostlist, _add_nodes_with_feature.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from hybridgpu.consumers.slurm.conf import SlurmFiles
from hybridgpu.consumers.slurm.hostlist import BadHostlist, expand
from hybridgpu.consumers.slurm.nodeline import node_names
from hybridgpu.consumers.slurm.release import Release
from hybridgpu.files.slurmlines import Pair, SlurmLine

_EVERYTHING = "all"


@dataclass(frozen=True, slots=True)
class Partition:
    """A partition. `own` are the pairs of its line by lower-case key, `pairs` those with the defaults behind them."""

    name: str
    own: Mapping[str, Pair]
    pairs: Mapping[str, Pair]

    @property
    def nodes(self) -> str:
        """Nodes= as written; empty where there is none."""
        pair = self.pairs.get("nodes")
        return pair.value if pair else ""

    @property
    def is_up(self) -> bool:
        """Whether jobs start there."""
        state = self.pairs.get("state")
        return state is None or state.value.lower().startswith("up")


def partitions(files: SlurmFiles, release: Release) -> Iterator[Partition]:
    """Every partition, in the order of the lines."""
    known = {key.lower() for key in release.partition_keys}
    defaults: dict[str, Pair] = {}
    for line in files.records.get("partitionname", ()):
        own = {pair.key.lower(): pair for pair in line.pairs[1:]}
        if line.pairs[0].value.lower() == "default":
            defaults = defaults | {key: pair for key, pair in own.items() if key in known}
        else:
            yield Partition(line.pairs[0].value, own, ChainMap(own, defaults))


@dataclass(frozen=True, slots=True)
class Members:
    """The nodes that a list names. `every`: all of the cluster are meant; `unclear`: a part of it cannot be read."""

    names: frozenset[str] = frozenset()
    every: bool = False
    unclear: bool = False

    def __contains__(self, name: str) -> bool:
        return self.every or name in self.names


def joined(lists: Iterable[Members]) -> Members:
    """The nodes of all these lists."""
    every = tuple(lists)
    return Members(
        frozenset().union(*(members.names for members in every)),
        any(members.every for members in every),
        any(members.unclear for members in every),
    )


@dataclass(slots=True)
class Memberships:
    """Finds the members of lists that may name node sets; each text and each set is read once."""

    files: SlurmFiles
    release: Release
    sets: Mapping[str, SlurmLine] = field(init=False)
    _of_text: dict[str, Members] = field(default_factory=dict)
    _of_set: dict[str, Members] = field(default_factory=dict)
    _having: dict[str, list[str]] | None = None

    def __post_init__(self) -> None:
        self.sets = {line.pairs[0].value: line for line in self.files.records.get("nodeset", ())}

    def of(self, text: str) -> Members:
        """The nodes of a Nodes= value."""
        if text not in self._of_text:
            self._of_text[text] = self._read(text)
        return self._of_text[text]

    def _read(self, text: str) -> Members:
        words = self._hosts(text)
        if words is None:
            return Members(unclear=True)
        nodes = frozenset(word for word in words if word not in self.sets)
        plain = Members(nodes, any(word.lower() == _EVERYTHING for word in nodes))
        return joined((plain, *(self._set(word) for word in words if word in self.sets)))

    def _set(self, name: str) -> Members:
        if name not in self._of_set:
            line = self.sets[name]
            listed, feature = line.get("nodes"), line.get("feature")
            nodes = self._hosts(listed.value) if listed else ()
            having = self._features().get(feature.value, ()) if feature else ()
            every = any(node.lower() == _EVERYTHING for node in nodes or ())
            self._of_set[name] = Members(frozenset((*(nodes or ()), *having)), every, nodes is None)
        return self._of_set[name]

    def _features(self) -> Mapping[str, list[str]]:
        """The nodes by each of their features."""
        if self._having is None:
            self._having = {}
            for record in self.files.nodes:
                names = node_names(record, self.release)
                for word in {*(record.text("features") or record.text("feature") or "").split(",")} - {""}:
                    self._having.setdefault(word, []).extend(names)
        return self._having

    def _hosts(self, text: str) -> tuple[str, ...] | None:
        try:
            return expand(text, self.release.hostlist_suffix)
        except BadHostlist:
            return None
