"""Whether Slurm may start a job on a node, as far as its files say: State, DownNodes, and the partitions it is in.

Reservations and what an admin set live stand in no file, and are not known here.
Source: slurm.conf.5 (NodeName State, DownNodes, PartitionName State, NodeSet).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from hybridgpu.consumers.slurm.conf import NodeRecord, SlurmFiles
from hybridgpu.consumers.slurm.hostlist import BadHostlist, expand
from hybridgpu.consumers.slurm.release import Release
from hybridgpu.files.slurmlines import SlurmLine

_CLOSED = ("down", "drain", "fail", "future", "cloud", "external", "power", "maint", "error", "reserved")
_EVERYTHING = "all"


@dataclass(frozen=True, slots=True)
class Openness:
    """Which nodes no job starts on. `reachable` are those of an open partition, None where not all are known."""

    down: Mapping[str, str]
    reachable: frozenset[str] | None

    def closed(self, name: str, record: NodeRecord) -> str | None:
        """Why no job starts on the node, in the words of the file; None where one may."""
        state = record.text("state")
        if state and state.lower().startswith(_CLOSED):
            return f"State={state}"
        if name in self.down:
            return f"DownNodes with State={self.down[name]}"
        if self.reachable is not None and name not in self.reachable:
            return "no partition that is UP has it"
        return None


def openness(files: SlurmFiles, release: Release) -> Openness:
    """What the files say of all its nodes."""
    down: dict[str, str] = {}
    for line in files.records.get("downnodes", ()):
        state = line.get("state")
        word = state.value if state else "DOWN"
        if word.lower().startswith(_CLOSED):
            down.update(dict.fromkeys(_hosts(line.pairs[0].value, release) or (), word))
    lines = files.records.get("partitionname", ())
    known = files.complete and any(line.pairs[0].value.lower() != "default" for line in lines)
    return Openness(down, _reachable(files, lines, release) if known else None)


def _hosts(text: str, release: Release) -> tuple[str, ...] | None:
    try:
        return expand(text, release.hostlist_suffix)
    except BadHostlist:
        return None


def _reachable(files: SlurmFiles, lines: Iterable[SlurmLine], release: Release) -> frozenset[str] | None:
    """The nodes of all partitions that are UP; None where a list cannot be read, or means every node."""
    sets = {line.pairs[0].value: line for line in files.records.get("nodeset", ())}
    defaults: dict[str, str] = {}
    found: set[str] = set()
    for line in lines:
        own = {pair.key.lower(): pair.value for pair in line.pairs[1:]}
        if line.pairs[0].value.lower() == "default":
            defaults |= own
            continue
        values = defaults | own
        if values.get("state", "up").lower() != "up":
            continue
        for word in _hosts(values.get("nodes", ""), release) or ("",) * bool(values.get("nodes")):
            members = _members(word, sets, files, release)
            if members is None:
                return None
            found.update(members)
    return frozenset(found)


def _members(word: str, sets: Mapping[str, SlurmLine], files: SlurmFiles, release: Release) -> tuple[str, ...] | None:
    """A node, or the nodes of a NodeSet; None where that is every node or cannot be read."""
    if not word or word.lower() == _EVERYTHING:
        return None
    if word not in sets:
        return (word,)
    line = sets[word]
    listed, feature = line.get("nodes"), line.get("feature")
    nodes = _hosts(listed.value, release) if listed else ()
    if nodes is None or any(node.lower() == _EVERYTHING for node in nodes):
        return None
    wanted = set(feature.value.split(",")) if feature else set()
    having = [
        name
        for record in files.nodes
        if wanted & set((record.text("features") or record.text("feature") or "").split(","))
        for name in _hosts(record.names, release) or ()
    ]
    return (*nodes, *having)
