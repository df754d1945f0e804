"""Weights and tracking of trackable resources (TRES): every name must be one that accounting tracks.

Source: S:src/common/slurm_protocol_api.c slurm_get_tres_weight_array, S:src/common/assoc_mgr.c
_get_assoc_mgr_tres_list (only what AccountingStorageTRES names is known, also under slurmdbd).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hybridgpu.consumers.slurm.conf import SlurmFiles
from hybridgpu.consumers.slurm.partitions import partitions
from hybridgpu.consumers.slurm.release import Release
from hybridgpu.consumers.slurm.verdict import Verdict
from hybridgpu.files.slurmlines import Pair
from hybridgpu.model.finding import Related, Rule, Severity
from hybridgpu.model.spelling import nearest

WEIGHT_NOT_TRACKED = Rule(
    "slurm-weight-not-tracked",
    Severity.ERROR,
    "A weight names a TRES that AccountingStorageTRES does not track: slurmctld stops with a fatal error.",
    "Name it in AccountingStorageTRES (a GRES needs slurmdbd too), or leave the weight out.",
    "S:src/common/slurm_protocol_api.c _tres_weight_item; slurmctld of 22.05, 24.11, 26.05",
)
TRACKED_UNKNOWN = Rule(
    "slurm-tracked-gres-unknown",
    Severity.WARNING,
    "AccountingStorageTRES tracks a GRES that GresTypes does not name: nothing is ever counted.",
    "Write the name as GresTypes has it: gres/gpu.",
    "S:src/slurmctld/controller.c _init_tres",
)
TRACKED_NO_TRES = Rule(
    "slurm-tres-unknown",
    Severity.ERROR,
    "AccountingStorageTRES names what is no TRES: slurmctld stops with a fatal error.",
    "Write cpu, mem, energy, node, billing, fs/disk, vmem, pages, or gres/NAME, license/NAME, bb/NAME, ic/NAME.",
    "S:src/slurmctld/controller.c _init_tres",
)

RULES = (WEIGHT_NOT_TRACKED, TRACKED_UNKNOWN, TRACKED_NO_TRES)

_ALWAYS = ("cpu", "mem", "energy", "node", "billing", "fs/disk", "vmem", "pages")
_NAMED = ("bb/", "gres/", "license/", "fs/", "ic/")
_USAGE = ("gpumem", "gpuutil")
"""What is tracked with gres/gpu (S:src/common/read_config.c _validate_and_set_defaults)."""


def judge(files: SlurmFiles, names: Sequence[str], release: Release, verdict: Verdict) -> None:
    """`names` are those of GresTypes."""
    tracked = files.setting("AccountingStorageTRES")
    if tracked is None and not files.complete:
        return
    words = [word.lower() for word in files.words("AccountingStorageTRES")]
    if tracked:
        _judge_tracked(tracked, words, names, files.setting("GresTypes") is not None, verdict)
    known = {*_ALWAYS, *words}
    if "gres/gpu" in known:
        known |= {f"gres/{word}" for word in _USAGE}
    for pair in dict.fromkeys(_weights(files, release)):
        _judge_weights(pair, known, tracked, verdict)


def _judge_tracked(tracked: Pair, words: list[str], names: Sequence[str], types: bool, verdict: Verdict) -> None:
    for word in words:
        if word not in _ALWAYS and not word.startswith(_NAMED):
            named = [f"gres/{name}" for name in names]
            near = f"gres/{word}" if word in names else nearest(word, (*_ALWAYS, *named))
            message = f"{tracked.key}={tracked.value}: '{word}' is no TRES"
            verdict.note(TRACKED_NO_TRES, tracked.place, message, f"did you mean {near}?" if near else "")
        name = word.removeprefix("gres/").partition(":")[0]
        known = {one.lower() for one in names}
        if types and word.startswith("gres/") and name not in {*known, *_USAGE}:
            near = nearest(name, names)
            message = f"{tracked.key}={tracked.value}: GresTypes has no {name} (it has {','.join(names)})"
            verdict.note(TRACKED_UNKNOWN, tracked.place, message, f"did you mean gres/{near}?" if near else "")


def _weights(files: SlurmFiles, release: Release) -> Iterator[Pair]:
    """Every list of weights that slurmctld reads."""
    for partition in partitions(files, release):
        if pair := partition.pairs.get("tresbillingweights"):
            yield pair
    for node in files.nodes:
        if pair := node.values.get("tresweights"):
            yield pair
    kind, weight = files.setting("PriorityType"), files.setting("PriorityWeightTRES")
    if weight and (kind.value if kind else release.setting_words["PriorityType"][0]) == "priority/multifactor":
        yield weight


def _judge_weights(pair: Pair, known: set[str], tracked: Pair | None, verdict: Verdict) -> None:
    for entry in pair.value.split(","):
        name, equals, value = entry.partition("=")
        if not entry or not name:
            continue
        if not equals or not value:
            verdict.note(WEIGHT_NOT_TRACKED, pair.place, f"{pair.key}={pair.value}: '{entry}' is no NAME=WEIGHT")
        elif name.lower() not in known:
            said = f"{tracked.key}={tracked.value}" if tracked else "no AccountingStorageTRES"
            message = f"{pair.key}={pair.value}: {name} is not tracked ({said})"
            related = [Related(tracked.place, f"{tracked.key} stands here")] if tracked else []
            verdict.note(WEIGHT_NOT_TRACKED, pair.place, message, _hint(name, known), related)


def _hint(name: str, known: set[str]) -> str:
    near = None if name.lower().startswith("gres/") and "gpu" in name.lower() else nearest(name, sorted(known))
    if near:
        return f"did you mean {near}?"
    return f"write AccountingStorageTRES={name.lower()} with AccountingStorageType=accounting_storage/slurmdbd"
