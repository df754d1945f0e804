"""The `sharing:` block of a node entry, but for its MIG layout: replicas, names in Kubernetes, MPS."""

from __future__ import annotations

from hybridgpu.consumers.kubernetes.mpsdaemon import most_replicas_of
from hybridgpu.files.yamltree import Mapping, Scalar
from hybridgpu.inventory.clean import MISSING_KEY, flag, word
from hybridgpu.inventory.report import Report
from hybridgpu.model.finding import Rule, Severity
from hybridgpu.model.gpu import GpuModel
from hybridgpu.model.sharing import ComputeMode, Mode, Scheduler, Sharing
from hybridgpu.model.site import OPERATOR

_MPS_SOURCE = "k8s-device-plugin cmd/mps-control-daemon/mps: at most 48 clients, 16 below compute capability 7.5"

MPS_REPLICAS = Rule(
    "inventory-mps-too-many-replicas",
    Severity.ERROR,
    "NVIDIA's MPS daemon does not start, and the plugin waits for it for ever.",
    "Lower replicas.",
    _MPS_SOURCE,
)
RENAME_UNDER_OPERATOR = Rule(
    "inventory-rename-under-operator",
    Severity.ERROR,
    "The operator's default config offers the other resource name at each start of the plugin, and the kubelet counts "
    "per name: a card would be given out twice.",
    "Leave renameByDefault out, or use delivery: device-plugin.",
    "measured: device plugin 0.20.0 under config-manager",
)
SINGLE_UNDER_OPERATOR = Rule(
    "inventory-single-under-operator",
    Severity.WARNING,
    "The operator's default config (mixed) offers the instances by other names at each start of the plugin, and the "
    "kubelet counts per name: for a moment an instance may be given out twice.",
    "Use migStrategy: mixed, or delivery: device-plugin.",
    "measured: device plugin 0.20.0 under config-manager",
)
EXCLUSIVE_PROCESS = Rule(
    "inventory-exclusive-process",
    Severity.ERROR,
    "EXCLUSIVE_PROCESS admits one process a card: without MPS that is no sharing, and MIG does not have it.",
    "Leave computeMode out; it belongs to mode mps, or to mode exclusive with wholeGpuJobs.",
    "NVIDIA MIG user guide; NVML nvmlDeviceSetComputeMode",
)
WITHOUT_SLURM = Rule(
    "inventory-mps-without-slurm",
    Severity.WARNING,
    "The `mps` block is about Slurm jobs; on a node that Slurm does not know it has no effect.",
    "Remove the block, or add slurm to the node's schedulers.",
    "docs/inventory.md",
)


def mps_limit(models: tuple[GpuModel, ...]) -> int:
    """The most replicas that MPS takes on a node with these cards."""
    return min(most_replicas_of(model.compute_capability) for model in models)


def read_sharing(
    block: Mapping, models: tuple[GpuModel, ...], schedulers: tuple[Scheduler, ...], delivery: str, report: Report
) -> Sharing:
    """The clean block with its defaults; what is wrong in it is reported. `models` empty: the cards are unknown."""
    mode = Mode(word(block, "mode", Mode.EXCLUSIVE))
    replicas = block.scalar("replicas")
    in_kubernetes = Scheduler.KUBERNETES in schedulers
    if block.get("replicas") is None and (mode is Mode.TIME_SLICING or (mode is Mode.MPS and in_kubernetes)):
        message = f"replicas is missing; mode {mode} needs it{' on a node in Kubernetes' if mode is Mode.MPS else ''}"
        report.add(MISSING_KEY, block, message, "Add replicas, a whole number from 2.")
    if mode is Mode.MPS and replicas and models:
        _judge_mps_replicas(replicas, models, report)
    rename = block.scalar("renameByDefault")
    if rename and rename.text == "true" and delivery == OPERATOR and in_kubernetes:
        report.add(RENAME_UNDER_OPERATOR, rename, "renameByDefault: true is not possible under the GPU operator")
    single = block.scalar("migStrategy")
    if single and single.text == "single" and delivery == OPERATOR and in_kubernetes:
        report.add(SINGLE_UNDER_OPERATOR, single, "migStrategy: single is fragile under the GPU operator")
    mps = block.mapping("mps")
    if mps:
        _judge_mps(mps, block, mode, schedulers, report)
    return Sharing(
        mode=mode,
        replicas=int(replicas.text) if replicas else None,
        mig_strategy=word(block, "migStrategy", "mixed"),
        rename_by_default=flag(block, "renameByDefault", False),
        fail_requests_greater_than_one=flag(block, "failRequestsGreaterThanOne", True),
        whole_gpu_jobs=flag(mps, "wholeGpuJobs", False),
        compute_mode=ComputeMode(word(mps, "computeMode", ComputeMode.DEFAULT)),
    )


def _judge_mps_replicas(replicas: Scalar, models: tuple[GpuModel, ...], report: Report) -> None:
    limit = mps_limit(models)
    if int(replicas.text) > limit:
        oldest = min(models, key=lambda model: model.compute_capability)
        capability = ".".join(map(str, oldest.compute_capability))
        message = (
            f"{replicas.text} replicas; MPS allows 2 to {limit} on {oldest.name} (compute capability {capability})"
        )
        report.add(MPS_REPLICAS, replicas, message)


def _judge_mps(mps: Mapping, block: Mapping, mode: Mode, schedulers: tuple[Scheduler, ...], report: Report) -> None:
    compute = mps.scalar("computeMode")
    if compute and compute.text == ComputeMode.EXCLUSIVE_PROCESS and block.scalar("mode"):
        whole_jobs = mode is Mode.EXCLUSIVE and flag(mps, "wholeGpuJobs", False)
        if mode is not Mode.MPS and not whole_jobs:
            jobs = " without wholeGpuJobs" if mode is Mode.EXCLUSIVE else ""
            report.add(
                EXCLUSIVE_PROCESS, compute, f"computeMode exclusive_process is not possible in mode {mode}{jobs}"
            )
    if Scheduler.SLURM not in schedulers and mps.entries:
        report.add(WITHOUT_SLURM, block.key("mps") or mps, "the node is not in Slurm, and `mps` is about Slurm jobs")
