"""Whether Slurm may start a job on a node, as far as its files say: State, DownNodes, and the partitions it is in.

Reservations and what an admin set live stand in no file, and are not known here.
Source: slurm.conf.5 (NodeName State, DownNodes, PartitionName State, NodeSet).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from hybridgpu.consumers.slurm.conf import NodeRecord, SlurmFiles
from hybridgpu.consumers.slurm.hostlist import BadHostlist, expand
from hybridgpu.consumers.slurm.partitions import Memberships, Partition, joined, partitions
from hybridgpu.consumers.slurm.release import Release

_CLOSED = ("down", "drain", "fail", "future", "cloud", "external", "power", "maint", "error", "reserved")


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
            down.update(dict.fromkeys(_hosts(line.pairs[0].value, release), word))
    every = tuple(partitions(files, release))
    return Openness(down, _reachable(every, Memberships(files, release)) if files.complete and every else None)


def _reachable(every: Iterable[Partition], memberships: Memberships) -> frozenset[str] | None:
    """The nodes of all partitions that are UP; None where a list cannot be read, or means every node."""
    texts = dict.fromkeys(partition.nodes for partition in every if partition.is_up)
    members = joined(memberships.of(text) for text in texts)
    return None if members.every or members.unclear else members.names


def _hosts(text: str, release: Release) -> tuple[str, ...]:
    try:
        return expand(text, release.hostlist_suffix)
    except BadHostlist:
        return ()
