"""slurmd's merge: what slurm.conf says a node has takes records of gres.conf, in slurm.conf's order.

slurm.conf rules: what gres.conf has more is cut off, what it lacks becomes a record without a file. The position of a
device after the merge is its number. Source: S:src/interfaces/gres.c _validate_gres_conf, _merge_config, _merge_gres2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise

from hybridgpu.consumers.slurm.gresconf import Record
from hybridgpu.consumers.slurm.nodegres import SHARED, TYPE_AS_COUNT, Wanted
from hybridgpu.consumers.slurm.verdict import Verdict
from hybridgpu.model.finding import Place, Related, Rule, Severity
from hybridgpu.model.naming import gres_id

SOME_FILES = Rule(
    "slurm-some-records-with-file",
    Severity.ERROR,
    "Some records of one name have File and others do not: slurmd stops with a fatal error.",
    "Give every record of the name a File, or none.",
    "S:src/interfaces/gres.c _foreach_gres_conf; slurmd -G on 22.05, 24.11, 26.05",
)
SOME_TYPES = Rule(
    "slurm-some-records-with-type",
    Severity.ERROR,
    "Some records of one name have Type and others do not: slurmd stops with a fatal error.",
    "Give every record of the name a Type, or none.",
    "S:src/interfaces/gres.c _foreach_gres_conf; slurmd -G on 22.05, 24.11, 26.05",
)
DUPLICATE_RECORDS = Rule(
    "slurm-duplicate-records",
    Severity.ERROR,
    "Two records of one name have neither File nor Type: slurmd stops with a fatal error.",
    "Write one record with the whole count, or give each record its File.",
    "S:src/interfaces/gres.c _foreach_gres_conf; slurmd -G on 22.05, 24.11, 26.05",
)
MORE_THAN_CONFIGURED = Rule(
    "slurm-more-than-configured",
    Severity.ERROR,
    "gres.conf has more than Gres= of slurm.conf: slurmd drops the rest, and no job gets it.",
    "Let Gres= in slurm.conf and the records in gres.conf name the same number.",
    "S:src/interfaces/gres.c _check_conf_mismatch, _merge_gres2",
)
NOT_CONFIGURED = Rule(
    "slurm-not-configured",
    Severity.WARNING,
    "The record applies to a node whose Gres= has nothing of the name: it has no effect there, and slurmd dies if the "
    "device files are not there.",
    "Name the nodes that the record is meant for: NodeName=... Name=...",
    "S:src/interfaces/gres.c _check_conf_mismatch, _my_stat",
)
FEWER_THAN_CONFIGURED = Rule(
    "slurm-fewer-than-configured",
    Severity.ERROR,
    "gres.conf has fewer devices than Gres= of slurm.conf: the rest has no device, or the node turns INVALID.",
    "Let Gres= in slurm.conf and the records in gres.conf name the same number.",
    "S:src/interfaces/gres.c _merge_gres2",
)
COUNTS_DIFFER = Rule(
    "slurm-counts-differ",
    Severity.WARNING,
    "gres.conf counts a GRES without device files otherwise than Gres= of slurm.conf: slurm.conf's count holds.",
    "Let both say the same, or leave the record out of gres.conf.",
    "S:src/interfaces/gres.c _merge_gres2; slurmd -G on 22.05, 24.11, 26.05",
)
GPU_WITHOUT_FILE = Rule(
    "slurm-gpu-without-file",
    Severity.ERROR,
    "A GPU without a device file is dropped: the node registers fewer than configured and turns INVALID.",
    "Add File=/dev/nvidiaN (or MultipleFiles) in gres.conf, or use AutoDetect.",
    "S:src/interfaces/gres.c _find_fileless_gres",
)
TYPE_CASE = Rule(
    "slurm-type-case",
    Severity.ERROR,
    "slurmd takes the type in any case, but slurmctld compares it exactly: to it they are two types.",
    "Write the type alike in slurm.conf and gres.conf.",
    "S:src/interfaces/gres.c _match_type, gres_build_id, _valid_gres_type",
)
TYPE_DROPPED = Rule(
    "slurm-type-dropped",
    Severity.WARNING,
    "Gres= names no type, so slurmd drops the record's Type: no job can ask for it.",
    "Write the type in Gres= too (gpu:TYPE:N), or leave it out of gres.conf.",
    "S:src/interfaces/gres.c _match_type; slurmd -G on 22.05, 24.11, 26.05",
)

RULES = (
    *(SOME_FILES, SOME_TYPES, DUPLICATE_RECORDS, MORE_THAN_CONFIGURED, NOT_CONFIGURED, FEWER_THAN_CONFIGURED),
    *(COUNTS_DIFFER, GPU_WITHOUT_FILE, TYPE_CASE, TYPE_DROPPED),
)


def validate(records: list[Record], names: tuple[str, ...], verdict: Verdict) -> None:
    """The records of one name must agree on having File and Type, and may not say the same thing twice."""
    for name in names:
        mine = [record for record in records if record.id == gres_id(name)]
        for before, record in pairwise(mine):
            related = (Related(before.place, "the record before"),) if before.place else ()
            first = mine[0]
            if record.has_file != first.has_file:
                message = f"some records of {name} have File and others do not"
                verdict.die(SOME_FILES, record.place, message, related=related)
            if record.has_type != first.has_type:
                message = f"some records of {name} have Type and others do not"
                verdict.die(SOME_TYPES, record.place, message, related=related)
            if not first.has_file and not first.has_type:
                message = f"duplicate record of {name} without File and Type"
                verdict.die(DUPLICATE_RECORDS, record.place, message, related=related)


def merge(
    records: list[Record],
    wants: Mapping[str, Wanted],
    names: tuple[str, ...],
    detecting: bool,
    node_place: Place | None,
    verdict: Verdict,
) -> list[Record]:
    """The node's records after slurm.conf has taken what it wants.

    `detecting` says that AutoDetect will look for GPUs, so that missing ones are no finding here.
    """
    merged: list[Record] = []
    for name in names:
        want = wants.get(name)
        pool = [record for record in records if record.id == gres_id(name)]
        if want is not None and want.types and _only_counts(name, pool):
            for record in _counted(want, pool, node_place, verdict):
                _append(merged, record)
            continue
        if want is not None and not want.types:
            _judge_count(want, pool, node_place, verdict)
        if want is not None and want.count:
            for kind, count in want.types or ((None, want.count),):
                taken, missing = _take(kind, count, pool, node_place, verdict)
                if not (detecting and name == "gpu"):
                    _judge_missing(name, kind, count, missing, (taken, pool), node_place, verdict)
                merged += taken
                if missing:
                    _append(merged, Record(name, gres_id(name), kind, missing, (), False, node_place))
        _judge_rest(name, pool, bool(want and want.count), node_place, verdict)
    return merged


def _only_counts(name: str, pool: list[Record]) -> bool:
    """Whether the records of a name but gpu say no more than how many there are: slurm.conf says the same, by type."""
    return name != "gpu" and bool(pool) and not any(record.has_file or record.has_type for record in pool)


def _counted(want: Wanted, pool: list[Record], node_place: Place | None, verdict: Verdict) -> list[Record]:
    """What slurm.conf has of such a name: its own count, by type."""
    count = sum(record.count for record in pool)
    if count != want.count:
        related = [Related(record.place, "counted here") for record in pool[:3] if record.place]
        message = f"{want.name}: Gres= of slurm.conf has {want.count}, and gres.conf {count}; {want.count} holds"
        verdict.note(COUNTS_DIFFER, node_place, message, related=related)
    ids = gres_id(want.name)
    return [Record(want.name, ids, kind, count, (), False, node_place) for kind, count in want.types if count]


def _append(merged: list[Record], record: Record) -> None:
    """A record without a file takes the place of a first record that counts nothing (add_gres_to_list)."""
    if merged and not merged[0].count:
        merged[0] = record
    else:
        merged.append(record)


def _judge_count(want: Wanted, pool: list[Record], node_place: Place | None, verdict: Verdict) -> None:
    """`gpu:4090` beside Type=4090: the type was read as the count."""
    if any(record.type == str(want.count) for record in pool):
        message = f"Gres={want.name}:{want.count} is read as a count of {want.count}, not as a type: it has no count"
        verdict.note(TYPE_AS_COUNT, node_place, message)


def _take(
    kind: str | None, count: int, pool: list[Record], node_place: Place | None, verdict: Verdict
) -> tuple[list[Record], int]:
    """Fill one entry of Gres= from the pool, in its order; an entry without a type takes any and drops its type.

    What is taken leaves the pool; gives the records, and how many are missing.
    """
    taken: list[Record] = []
    at = 0
    while count and at < len(pool):
        record = pool[at]
        if kind is None:
            if record.type is not None:
                message = f"Type={record.type} is dropped: Gres= of slurm.conf names no type"
                verdict.note(TYPE_DROPPED, record.place, message)
            record = replace(record, type=None, has_type=False)
        elif record.type is None or record.type.lower() != kind.lower():
            at += 1
            continue
        elif record.type != kind:
            verdict.note(TYPE_CASE, record.place, f"Type={record.type}, but Gres= of slurm.conf has {kind}")
        del pool[at]
        if record.count > count:
            _judge_cut(record, record.count - count, node_place, verdict)
            record = replace(record, count=count, files=record.files[:count])
        taken.append(record)
        count -= record.count
    return taken, count


def _label(name: str, kind: str | None) -> str:
    return name if kind is None else f"{name}:{kind}"


def _judge_cut(record: Record, rest: int, node_place: Place | None, verdict: Verdict) -> None:
    related = (Related(node_place, "the node's Gres= stands here"),) if node_place else ()
    message = f"{_label(record.name, record.type)}: {rest} more in gres.conf than Gres= of slurm.conf expects"
    verdict.note(MORE_THAN_CONFIGURED, record.place, message, related=related)


def _judge_missing(
    name: str,
    kind: str | None,
    count: int,
    missing: int,
    had: tuple[list[Record], list[Record]],
    node_place: Place | None,
    verdict: Verdict,
) -> None:
    taken, pool = had
    if name == "gpu":
        for record in taken:
            if not record.has_file:
                verdict.note(GPU_WITHOUT_FILE, record.place, f"{record.count} of {_label(name, kind)} without a File")
    if not missing:
        return
    if not taken and not pool:
        if name == "gpu":
            message = f"{_label(name, kind)}: Gres= of slurm.conf has {count}, and gres.conf has no record with a File"
            verdict.note(GPU_WITHOUT_FILE, node_place, message)
        return
    message = f"{_label(name, kind)}: Gres= of slurm.conf has {count}, but gres.conf only {count - missing}"
    others = sorted({f"Type={record.type}" if record.type else "no Type" for record in pool})
    if others:
        message += f"; its other records have {', '.join(others)}"
    related = tuple(Related(record.place, "counted here") for record in taken[:3] if record.place)
    devices = name == "gpu" or any(record.has_file for record in (*taken, *pool))
    verdict.note(FEWER_THAN_CONFIGURED if devices else COUNTS_DIFFER, node_place, message, related=related)


def _judge_rest(name: str, pool: list[Record], configured: bool, node_place: Place | None, verdict: Verdict) -> None:
    for record in pool:
        if not record.count:
            continue
        if configured:
            _judge_cut(record, record.count, node_place, verdict)
        elif name in ("gpu", *SHARED) or record.has_file or not record.everywhere:
            message = f"Gres= of the node has no {name}: {record.count} of {_label(name, record.type)} have no effect"
            verdict.note(NOT_CONFIGURED, record.place, message)
