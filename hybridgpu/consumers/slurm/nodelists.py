"""Lists of nodes elsewhere in slurm.conf than on NodeName lines: whether there are such nodes.

Judged only where every node of the cluster is known. Source: S:src/slurmctld/read_config.c nodespec_to_hostlist,
_build_part_bitmaps, _handle_downnodes_line; S:src/slurmctld/power_save.c _parse_exc_nodes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Set

from hybridgpu.consumers.slurm.conf import SlurmFiles
from hybridgpu.consumers.slurm.hostlist import BadHostlist, expand, folded
from hybridgpu.consumers.slurm.hostsuffix import written_out
from hybridgpu.consumers.slurm.partitions import Memberships, partitions
from hybridgpu.consumers.slurm.release import Release
from hybridgpu.consumers.slurm.verdict import Verdict
from hybridgpu.files.slurmlines import Pair
from hybridgpu.model.finding import Related, Rule, Severity
from hybridgpu.model.spelling import nearest

PARTITION_NODES = Rule(
    "slurm-partition-nodes-unknown",
    Severity.ERROR,
    "A partition names a node that no NodeName line defines: slurmctld stops with 'Invalid node names in partition'.",
    "Write the nodes' names as NodeName has them, leading zeros included.",
    "S:src/slurmctld/read_config.c _build_part_bitmaps; slurmctld of 22.05, 24.11, 26.05",
)
LISTED_NODES = Rule(
    "slurm-listed-nodes-unknown",
    Severity.WARNING,
    "The list names no node that a NodeName line defines: it has no effect, and slurmctld logs an error for each.",
    "Write the nodes' names as NodeName has them, leading zeros included.",
    "S:src/slurmctld/read_config.c _handle_downnodes_line, S:src/slurmctld/power_save.c _parse_exc_nodes",
)

RULES = (PARTITION_NODES, LISTED_NODES)

_MOST_COMPARED = 2000
"""So many names are searched for one that is alike; of more only those that differ in zeros are found."""


def judge(files: SlurmFiles, known: Set[str], release: Release, verdict: Verdict) -> None:
    """Every list of nodes; `known` are all the nodes of the cluster."""
    members = Memberships(files, release)
    names = _Names(known)
    told: set[Pair] = set()
    for partition in partitions(files, release):
        pair = partition.pairs.get("nodes")
        if pair is None or "{" in pair.value:
            continue
        if fault := _fault(pair.value, release):
            message = f"partition {partition.name}: {pair.key}={pair.value}: {fault}"
            verdict.note(PARTITION_NODES, pair.place, message, written_out(pair.value))
        for listed in _lists(pair, members):
            missing = names.missing(listed.value, members)
            if missing and listed not in told:
                told.add(listed)
                message = f"{listed.key}={listed.value}: no NodeName line defines {folded(missing)}"
                related = [Related(pair.place, f"partition {partition.name} has it")] if listed is not pair else []
                said = f"partition {partition.name}: {message}"
                verdict.note(PARTITION_NODES, listed.place, said, names.hint(missing), related)
    for pair in _others(files):
        text = re.sub(r":[0-9]+(?=,|\Z)", "", pair.value)
        missing = names.missing(text, members)
        if missing and len(missing) == len(members.of(text).names) and not members.of(text).every:
            message = f"{pair.key}={pair.value}: no NodeName line defines {folded(missing)}"
            verdict.note(LISTED_NODES, pair.place, message, names.hint(missing))


def _fault(text: str, release: Release) -> str:
    """Why the list cannot be read; empty where it can."""
    try:
        expand(text, release.hostlist_suffix)
    except BadHostlist as bad:
        return str(bad)
    return ""


def _lists(pair: Pair, members: Memberships) -> Iterator[Pair]:
    """The list itself, and those of the node sets that it names."""
    yield pair
    for word in pair.value.split(","):
        line = members.sets.get(word)
        nodes = line.get("nodes") if line else None
        if nodes and "{" not in nodes.value:
            yield nodes


def _others(files: SlurmFiles) -> Iterator[Pair]:
    for line in files.records.get("downnodes", ()):
        yield line.pairs[0]
    excluded = files.setting("SuspendExcNodes")
    if excluded and "{" not in excluded.value:
        yield excluded


class _Names:
    """The nodes of the cluster, and what may be meant by a name that is none of them."""

    def __init__(self, known: Set[str]) -> None:
        self.known = known
        self.by_number = {_unpadded(name): name for name in sorted(known)}

    def missing(self, text: str, members: Memberships) -> list[str]:
        """The names of a list that are neither nodes nor node sets, as they are first written."""
        found = members.of(text)
        inside = {name for word in text.split(",") if word in members.sets for name in members.of(word).names}
        rest = found.names - self.known - members.sets.keys() - inside
        return sorted((name for name in rest if name.lower() != "all"), key=_natural)

    def hint(self, missing: list[str]) -> str:
        """`did you mean gpu[01-02]?`, or empty."""
        padded = [self.by_number.get(_unpadded(name)) for name in missing]
        meant = [name for name in padded if name]
        if not meant and len(self.known) <= _MOST_COMPARED:
            meant = [name for name in (nearest(name, self.known) for name in missing[:3]) if name]
        return f"did you mean {folded(list(dict.fromkeys(meant)))}?" if meant else ""


def _unpadded(name: str) -> str:
    return re.sub(r"0+(?=[0-9])", "", re.sub(r"(?<=[0-9])(?=[^0-9])|(?<=[^0-9])(?=[0-9])", "\0", name)).lower()


def _natural(name: str) -> list[tuple[int, str]]:
    return [(len(part), part) if part.isdigit() else (0, part) for part in re.split("([0-9]+)", name)]
