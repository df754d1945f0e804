"""AutoDetect: which value is in force on a node, and how slurmd lays the GPUs it finds over the ones configured.

What hardware there is comes in as an argument; without it the configured GPUs are taken as found, and that is said.
Source: S:src/interfaces/gres.c _handle_autodetect_flags, S:src/plugins/gres/gpu/gres_gpu.c _merge_system_gres_conf.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from hybridgpu.consumers.slurm.gresconf import Record
from hybridgpu.consumers.slurm.nvml import DetectedGpu
from hybridgpu.consumers.slurm.release import Release
from hybridgpu.consumers.slurm.values import core_set
from hybridgpu.consumers.slurm.verdict import Verdict
from hybridgpu.files.slurmlines import Pair, SlurmLine
from hybridgpu.model.finding import Place, Rule, Severity
from hybridgpu.model.naming import gres_id
from hybridgpu.model.spelling import nearest

AUTODETECT_UNKNOWN = Rule(
    "slurm-autodetect-unknown",
    Severity.ERROR,
    "slurmd does not know the value and goes on as if AutoDetect were not there: nothing is detected.",
    "Use a value that the release knows.",
    "S:src/interfaces/gres.c _handle_autodetect_flags; slurmd -G on 22.05",
)
AUTODETECT_TWICE = Rule(
    "slurm-autodetect-twice",
    Severity.ERROR,
    "Two NodeName lines give one node different AutoDetect values: slurmd stops with a fatal error.",
    "Give each node one value.",
    "S:src/interfaces/gres.c _handle_local_autodetect",
)
AUTODETECT_BLIND = Rule(
    "slurm-autodetect-cannot-see-mig",
    Severity.ERROR,
    "This AutoDetect finds no MIG instances: the node registers fewer GPUs than configured and turns INVALID.",
    "Use AutoDetect=nvml, or AutoDetect=off with MultipleFiles records.",
    "gres.conf.5 AutoDetect; nebius/soperator, charmed-hpc",
)
AUTODETECT_ASSUMED = Rule(
    "slurm-autodetect-assumed",
    Severity.INFO,
    "What slurmd will detect is not known here: the GPUs that Gres= names are taken as found.",
    "Give the nodes' facts, written as docs/facts.md says.",
    "S:src/plugins/gres/gpu/gres_gpu.c _merge_system_gres_conf",
)
DETECTED_DIFFERS = Rule(
    "slurm-detected-differs",
    Severity.ERROR,
    "Cores or Links of a configured GPU are not what AutoDetect finds: slurmd ignores that GPU.",
    "Leave Cores and Links out where AutoDetect finds them.",
    "S:src/plugins/gres/gpu/gres_gpu.c _validate_cpus_links",
)
NOT_DETECTED = Rule(
    "slurm-not-detected",
    Severity.ERROR,
    "Gres= of slurm.conf asks for a GPU that AutoDetect does not find: the node registers fewer and turns INVALID.",
    "Let the type in Gres= be part of the detected type, and the counts equal.",
    "S:src/plugins/gres/gpu/gres_gpu.c _merge_system_gres_conf",
)
DETECTED_IGNORED = Rule(
    "slurm-detected-ignored",
    Severity.ERROR,
    "AutoDetect finds a GPU that Gres= of slurm.conf does not ask for: no job gets it.",
    "Name it in Gres= with a type that is part of the detected type.",
    "S:src/plugins/gres/gpu/gres_gpu.c _merge_system_gres_conf",
)

RULES = (
    *(AUTODETECT_UNKNOWN, AUTODETECT_TWICE, AUTODETECT_BLIND, AUTODETECT_ASSUMED, DETECTED_DIFFERS),
    *(NOT_DETECTED, DETECTED_IGNORED),
)

ASSUMED_FILE = "detected:"
"""What the file of a GPU begins with that was taken as found: no file at all."""

_MOST_DEVICES = 1024
"""Devices of one name that slurmctld counts on a node (S:src/interfaces/gres.c MAX_GRES_BITMAP)."""

_MIG_TYPE = re.compile(r"(?:^|[_.])[0-9]+g\.[0-9]+gb", re.IGNORECASE)


def in_force(lines: Sequence[SlurmLine], glob: Pair | None, release: Release, verdict: Verdict) -> Pair | None:
    """The AutoDetect that holds for a node, or None (off, unknown, not there).

    `lines` are the node's own (they begin with NodeName); `glob` is the last AutoDetect line of the file.
    """
    local: Pair | None = None
    value = ""
    for line in lines:
        pair = line.get("autodetect")
        if pair is None:
            continue
        mine = _known(pair, release, verdict)
        if value and mine != value:
            verdict.die(
                AUTODETECT_TWICE, pair.place, f"AutoDetect={pair.value}, but before it was {value} for this node"
            )
            continue
        value, local = mine, pair
    if not value and glob is not None:
        value, local = _known(glob, release, verdict), glob
    return local if value not in ("", "off") else None


def _known(pair: Pair, release: Release, verdict: Verdict) -> str:
    """The value slurmd sees: a known word anywhere in the text, in the release's order; `off` only exactly."""
    text = pair.value.lower()
    for value in release.autodetect:
        if text == value or (value != "off" and value in text):
            return value
    allowed = ", ".join(release.autodetect)
    message = f"AutoDetect={pair.value} is unknown to Slurm {release}; known are {allowed}"
    near = nearest(text, release.autodetect)
    verdict.note(AUTODETECT_UNKNOWN, pair.place, message, f"did you mean {near}?" if near else "")
    return ""


def judge_mig(pair: Pair, records: list[Record], release: Release, verdict: Verdict) -> bool:
    """Whether this AutoDetect is blind for MIG types that Gres= wants and no record gives files for."""
    if any(value in pair.value.lower() for value in release.autodetect_sees_mig):
        return False
    blind = [r for r in records if r.name == "gpu" and not r.files and r.type and _MIG_TYPE.search(r.type)]
    for record in blind:
        message = (
            f"AutoDetect={pair.value} does not see MIG instances, but Gres= has {record.count} of gpu:{record.type}"
        )
        verdict.note(AUTODETECT_BLIND, pair.place, message)
    return bool(blind)


def overlay(
    records: list[Record], found: Sequence[DetectedGpu], place: Place, cores: int, verdict: Verdict
) -> list[Record]:
    """The node's records once detected GPUs are laid over the configured ones; GPUs come first, then the rest.

    A detected type is cut to the configured type that is part of it; type and file must then be equal, and Cores and
    Links where both have them. A configured GPU with a file stays even when nothing like it is detected.
    """
    gpu = gres_id("gpu")
    others = [r for r in records if r.name.lower() != "gpu" and r.count]
    single = [one for r in records if r.name.lower() == "gpu" and r.count for one in _singles(r)]
    system = [
        Record("gpu", gpu, d.type, 1, d.files, True, place, len(d.files) > 1, True, cores=d.cores, links=d.links)
        for d in found
    ]
    system = _cut_types(system, single)
    result: list[Record] = []
    for record in sorted(single, key=_by_file):
        twin = next((s for s in system if _same(record, s)), None)
        if twin is not None:
            system.remove(twin)
            if _agree(record, twin, cores):
                result.append(twin)
            else:
                message = f"{','.join(twin.files)}: Cores={record.cores} Links={record.links}, detected are "
                verdict.note(DETECTED_DIFFERS, record.place, message + f"Cores={twin.cores} Links={twin.links}")
        elif record.files:
            result.append(record)
        else:
            label = f"gpu:{record.type}" if record.type else "gpu"
            verdict.note(NOT_DETECTED, record.place, f"Gres= has {label}, of which too few are detected")
    for record in system:
        message = f"{','.join(record.files)} is detected as {record.type}, and Gres= has no entry left for it"
        verdict.note(DETECTED_IGNORED, place, message)
    return sorted(sorted(result, key=_by_file), key=_by_links) + others


def _singles(record: Record) -> list[Record]:
    if record.count == 1:
        return [record]
    if not record.files:
        return [replace(record, count=1) for _ in range(min(record.count, _MOST_DEVICES))]
    return [replace(record, count=1, files=(file,)) for file in record.files]


def _cut_types(system: list[Record], single: list[Record]) -> list[Record]:
    """Give each detected GPU the longest configured type that its own holds; none left: the type goes, or stays."""
    if not single:
        return system
    strip = not any(r.type for r in single)
    left = sorted(single, key=_by_type)
    cut: list[Record] = []
    for record in sorted(system, key=_by_type):
        match = next((c for c in left if c.type and c.type.lower() in (record.type or "").lower()), None)
        if match is not None:
            left.remove(match)
            cut.append(replace(record, type=match.type))
        elif strip:
            cut.append(replace(record, type=None, has_type=False))
        else:
            cut.append(record)
    return sorted(cut, key=_by_file)


def _same(record: Record, system: Record) -> bool:
    return (record.type is None or record.type == system.type) and (not record.files or record.files == system.files)


def _agree(record: Record, system: Record, cores: int) -> bool:
    if record.cores is not None:
        mine = core_set(record.cores, cores)
        if mine is None or (system.cores is not None and mine != core_set(system.cores, cores)):
            return False
    return record.links is None or system.links is None or record.links == system.links


def _natural(text: str) -> list[tuple[int, int, str]]:
    parts = re.findall(r"[0-9]+|[^0-9]+", text)
    return [(0, len(n := part.lstrip("0")), n) if part.isdigit() else (1, 0, part) for part in parts]


def _by_file(record: Record) -> tuple[bool, list[tuple[int, int, str]]]:
    return not record.files, _natural(",".join(record.files))


def _by_type(record: Record) -> tuple[bool, int, str, bool, list[tuple[int, int, str]]]:
    kind = record.type or ""
    return bool(kind), -len(kind), kind, *_by_file(record)


def _by_links(record: Record) -> tuple[bool, int]:
    links = record.links.split(",") if record.links else []
    return not links, links.index("-1") if "-1" in links else -1


def assume(records: list[Record], auto: Pair, verdict: Verdict) -> list[Record]:
    """Take the GPUs that Gres= names as found; shares that name a file get theirs in the order of the records.

    The files of such GPUs are not known, so a share record's file stands in for the GPU's where the numbers agree.
    """
    blank = [r for r in records if r.name == "gpu" and not r.files]
    if not blank:
        return records
    message = (
        f"AutoDetect={auto.value}: taken as found are {sum(r.count for r in blank)} GPUs that no record gives files for"
    )
    verdict.note(AUTODETECT_ASSUMED, auto.place, message)
    named = list(dict.fromkeys(file for r in records if r.shared for file in r.files))
    total = min(sum(r.count for r in blank), _MOST_DEVICES)
    files = named if len(named) == total else [f"{ASSUMED_FILE}{n}" for n in range(total)]
    result: list[Record] = []
    for record in records:
        if record not in blank:
            result.append(record)
            continue
        mine, files = files[: record.count], files[record.count :]
        result += [replace(record, count=1, files=(file,), has_file=True) for file in mine]
    return result
