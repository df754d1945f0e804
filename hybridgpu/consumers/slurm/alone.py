"""gres.conf without the nodes' lines: judged as if every node had in Gres= exactly what its records say.

So all is found that slurmd dies of whatever slurm.conf says. Nothing is said of slurm.conf itself, and no offer is
made: how much of gres.conf a node has is slurm.conf's to say.
"""

from __future__ import annotations

from hybridgpu.consumers.slurm import detect, gresconf, merge, shares
from hybridgpu.consumers.slurm.gresconf import Record
from hybridgpu.consumers.slurm.gresindex import GresIndex
from hybridgpu.consumers.slurm.nodegres import Wanted
from hybridgpu.consumers.slurm.release import Release
from hybridgpu.consumers.slurm.verdict import Verdict
from hybridgpu.files.slurmlines import SlurmLine
from hybridgpu.model.naming import gres_id

_CORES = 2**16
"""More than any node has: how many are there is not known."""


def judge(index: GresIndex, names: tuple[str, ...], release: Release, verdict: Verdict) -> None:
    """Judge the records of each set of nodes to which the same lines apply; lines for all nodes are a set too."""
    shapes = dict.fromkeys(tuple(groups) for groups in index.of_node.values())
    for groups in shapes or {(): None}:
        _judge(index.lines(groups), index, names, release, verdict)


def _judge(
    lines: list[SlurmLine], index: GresIndex, names: tuple[str, ...], release: Release, verdict: Verdict
) -> None:
    mine = Verdict(unjudged=verdict.unjudged)
    local = [line for line in lines if line.pairs[0].key.lower() == "nodename"]
    auto = detect.in_force(local, index.autodetect, release, mine)
    raw = gresconf.records(lines, names, _CORES, release, mine)
    merge.validate(raw, names, mine)
    if not mine.fatal:
        records = merge.merge(raw, _wanted(raw, names), names, auto is not None, None, mine)
        if auto is None or not any(record.shared for record in records):
            shares.load(records, raw, names, release, mine)
    verdict.take((finding for finding in mine.findings if finding.place is not None), mine.fatal)


def _wanted(records: list[Record], names: tuple[str, ...]) -> dict[str, Wanted]:
    """What Gres= would say: the counts of the records, by type where they have one."""
    wants: dict[str, Wanted] = {}
    for name in names:
        mine = [record for record in records if record.id == gres_id(name)]
        types: dict[str, int] = {}
        for record in mine:
            if record.type is not None and not record.shared:
                types[record.type] = types.get(record.type, 0) + record.count
        if total := sum(record.count for record in mine):
            wants[name] = Wanted(name, total, tuple(types.items()))
    return wants
