"""Who knows a node and who owns its GPUs: `schedulers` and `owner` of a node entry."""

from __future__ import annotations

from dataclasses import dataclass

from hybridgpu.consumers.slurm.release import RELEASES, Release
from hybridgpu.files.quoting import listed
from hybridgpu.files.yamltree import Mapping, Scalar
from hybridgpu.inventory.indices import IndexSetError, read_indices, shown_indices, whole
from hybridgpu.inventory.report import Report
from hybridgpu.model.finding import Rule, Severity
from hybridgpu.model.sharing import Scheduler
from hybridgpu.model.site import OPERATOR

NO_BLOCK = Rule(
    "inventory-scheduler-without-block",
    Severity.ERROR,
    "A scheduler that the inventory does not describe cannot be configured.",
    "Add its block (`slurm:` or `kubernetes:`), or name the other scheduler.",
    "docs/inventory.md",
)
NOT_KNOWN_TO_NODE = Rule(
    "inventory-owner-not-among-schedulers",
    Severity.ERROR,
    "The node is not known to the scheduler that is to own its GPUs, so nobody could use them.",
    "Add the owner to `schedulers`, or choose another owner.",
    "docs/inventory.md",
)
TWICE = Rule(
    "inventory-scheduler-twice",
    Severity.ERROR,
    "One name stands for two.",
    "Name each scheduler once.",
    "docs/inventory.md",
)
INDICES = Rule(
    "inventory-owner-gpu-indices",
    Severity.ERROR,
    "A GPU that two schedulers own is booked twice; one that nobody owns is lost.",
    "Name each of the node's GPUs in exactly one of the sets.",
    "docs/inventory.md",
)
SPLIT_UNDER_OPERATOR = Rule(
    "inventory-split-under-operator",
    Severity.ERROR,
    "The GPU operator's plugin sees every card of a node, so Kubernetes would offer Slurm's GPUs as well.",
    "Give the node to one owner, or use delivery: device-plugin.",
    "GPU operator: its device plugin DaemonSet sets NVIDIA_VISIBLE_DEVICES=all",
)
SPLIT_IN_MPS = Rule(
    "inventory-split-in-mps",
    Severity.ERROR,
    "NVIDIA's MPS daemon for Kubernetes takes every card of a node, Slurm's too.",
    "Choose another mode, or give the node to one owner.",
    "k8s-device-plugin cmd/mps-control-daemon",
)
SPLIT_UNCONFINED = Rule(
    "inventory-split-not-confined",
    Severity.ERROR,
    "This Slurm release cannot keep jobs off the GPUs of Kubernetes.",
    "Give the node to one owner, or use a Slurm release that can.",
    "measured: a second GRES confines on 24.11, not on 22.05",
)


SPLIT_DETECTED = Rule(
    "inventory-split-under-autodetect",
    Severity.ERROR,
    "AutoDetect finds every card of a node, so Slurm would offer the GPUs of Kubernetes as well.",
    'Give the node to one owner, or set autoDetect: "off".',
    "S:src/plugins/gres/gpu/gres_gpu.c _merge_system_gres_conf",
)


@dataclass(frozen=True, slots=True)
class Cluster:
    """What an entry is judged against: which schedulers have a block, how the plugin is delivered, AutoDetect."""

    present: tuple[Scheduler, ...]
    delivery: str
    autodetect: str = "off"


def read_schedulers(entry: Mapping, cluster: Cluster, report: Report) -> tuple[Scheduler, ...]:
    """The schedulers that know the node; by default those whose block exists."""
    words = entry.scalars("schedulers")
    seen: list[Scheduler] = []
    for word in words:
        scheduler = Scheduler(word.text)
        if scheduler in seen:
            report.add(TWICE, word, f"{scheduler} stands in schedulers twice")
        elif _has_block(word, scheduler, cluster, report):
            seen.append(scheduler)
    return tuple(s for s in Scheduler if s in seen) if words else cluster.present


def read_owners(
    entry: Mapping, gpus: int, schedulers: tuple[Scheduler, ...], cluster: Cluster, report: Report
) -> tuple[Scheduler, ...]:
    """One owner per GPU index; none where a mistake hides them, which is reported. `gpus` 0: the number is unknown."""
    owner = entry.get("owner")
    if isinstance(owner, Scalar):
        _may_own(owner, Scheduler(owner.text), schedulers, cluster, report)
        return (Scheduler(owner.text),) * gpus
    if not isinstance(owner, Mapping) or not gpus:
        return ()
    owners: dict[int, Scheduler] = {}
    complete = not owner.broken
    for word, value in owner.entries:
        if not isinstance(value, Scalar):
            continue
        scheduler = Scheduler(word.text)
        _may_own(word, scheduler, schedulers, cluster, report)
        try:
            mine = read_indices(value.text, gpus)
        except IndexSetError as error:
            report.add(INDICES, value, f"owner {scheduler}: {error}")
            complete = False
            continue
        if both := [index for index in mine if index in owners]:
            report.add(INDICES, value, f"GPU {shown_indices(both)} has two owners: {owners[both[0]]} and {scheduler}")
        owners |= dict.fromkeys(mine, scheduler)
    if complete and len(owners) < gpus:
        rest = shown_indices(set(range(gpus)) - set(owners))
        report.add(INDICES, owner, f"GPU {rest} has no owner; the node's GPUs are {whole(gpus)}")
    return tuple(owners[index] for index in range(gpus)) if len(owners) == gpus else ()


def judge_split(entry: Mapping, mode: str, release: Release, cluster: Cluster, report: Report) -> None:
    """Reports what forbids to split a node, if the entry asks for that."""
    owner = entry.mapping("owner")
    if owner is None or len(owner.entries) < 2 or owner.broken:
        return
    if cluster.delivery == OPERATOR:
        report.add(SPLIT_UNDER_OPERATOR, owner, "a node cannot be split under the GPU operator")
    if mode == "mps":
        report.add(SPLIT_IN_MPS, owner, "a node in mode mps cannot be split")
    if cluster.autodetect != "off":
        report.add(SPLIT_DETECTED, owner, f"a node cannot be split under autoDetect: {cluster.autodetect}")
    if Scheduler.SLURM in cluster.present and not release.other_gres_confines:
        able = listed(r.major for r in RELEASES.values() if r.other_gres_confines)
        report.add(SPLIT_UNCONFINED, owner, f"a node cannot be split with Slurm {release}; releases that can: {able}")


def _has_block(word: Scalar, scheduler: Scheduler, cluster: Cluster, report: Report) -> bool:
    if scheduler in cluster.present or not cluster.present:  # without any block that alone is reported
        return True
    report.add(NO_BLOCK, word, f"{scheduler} is named, and the inventory has no `{scheduler}:` block")
    return False


def _may_own(
    word: Scalar, scheduler: Scheduler, schedulers: tuple[Scheduler, ...], cluster: Cluster, report: Report
) -> None:
    if _has_block(word, scheduler, cluster, report) and schedulers and scheduler not in schedulers:
        known = listed(schedulers)
        report.add(NOT_KNOWN_TO_NODE, word, f"{scheduler} is the owner and not among the node's schedulers ({known})")
