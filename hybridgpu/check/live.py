"""This node's cards against all that was installed for it: its NodeConfig, what Slurm makes of its files, the plugin's.

A pure core: the caller has read the card, and has Slurm's files consumed with what the card really is
(`detected_from(facts, release)`). What a file says for itself is judged elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from hybridgpu.consumers import kubernetes
from hybridgpu.consumers.kubernetes.given import KubeFiles
from hybridgpu.consumers.kubernetes.node import node_of_facts
from hybridgpu.consumers.kubernetes.outcome import PluginRuns
from hybridgpu.consumers.slurm.consume import Consumption, NodeResult
from hybridgpu.devices.bind import differences, seen_files
from hybridgpu.devices.nodeconfig import NodeWanted
from hybridgpu.model.facts import Facts
from hybridgpu.model.finding import Finding, Place, Rule, Severity
from hybridgpu.model.labels import MPS_ROOT
from hybridgpu.model.offer import SlurmDevice
from hybridgpu.model.sharing import ComputeMode, Mode, Scheduler

COMPUTE_MODE = Rule(
    "live-compute-mode",
    Severity.WARNING,
    "A card is in another compute mode than it must be: CUDA programs are refused, or share a card that they must not.",
    "Set it: nvidia-smi -i ADDRESS -c MODE; an MPS daemon that was killed leaves EXCLUSIVE_PROCESS behind.",
    "NVML API reference, nvmlDeviceGetComputeMode; k8s-device-plugin cmd/mps-control-daemon/mps/daemon.go",
)
SLURM_DIFFERS = Rule(
    "live-slurm-differs",
    Severity.ERROR,
    "Slurm's files, on the cards that this node really has, give jobs other devices than the NodeConfig says.",
    "Install the files rendered with this node's facts, and reload Slurm while no job runs here.",
    "S:src/interfaces/gres.c",
)
CORES_DIFFER = Rule(
    "live-slurm-cores",
    Severity.WARNING,
    "Slurm takes other cores for a card's than the driver does: jobs run far from their card.",
    "Install the files rendered with this node's facts.",
    "gres.conf(5), Cores",
)
PLUGIN_DIFFERS = Rule(
    "live-plugin-differs",
    Severity.ERROR,
    "The device plugin, with this config on the cards that this node really has, offers other devices than it must.",
    "Install the config that was rendered for this node, and restart the plugin's pod.",
    "k8s-device-plugin v0.20.0",
)


@dataclass(frozen=True, slots=True)
class PluginFile:
    """The device plugin's config as it is installed: its path, its text, and the variables of its container."""

    path: str
    text: str | bytes
    env: Mapping[str, str]


def installed_config(wanted: NodeWanted, files: KubeFiles) -> PluginFile | None:
    """The device-plugin config that this node runs: the only one given, or the one of its NodeConfig's hash."""
    right = wanted.kubernetes
    given = [(configs, config) for configs in files.sets for config in configs.configs]
    mine = [pair for pair in given if right and pair[1].key.endswith(right.config)]
    chosen = given if len(given) == 1 else mine
    if not chosen:
        return None
    configs, config = chosen[0]
    env = {"MPS_ROOT": MPS_ROOT} if configs.env is None else configs.env
    return PluginFile(config.place.file, config.text, env)


def judge_live(
    wanted: NodeWanted, facts: Facts, slurm: Consumption | None = None, plugin: PluginFile | None = None
) -> tuple[Finding, ...]:
    """Everything in which the node is not what its NodeConfig says, each plane that was given.

    The cards first: where these differ, every other difference follows from that and is not said.
    """
    cards = tuple(differences(wanted, facts))
    findings = [*cards, *_compute_modes(wanted, facts)]
    if not cards and slurm is not None and wanted.gres is not None:
        findings += _slurm(wanted, facts, slurm)
    if not cards and plugin is not None and wanted.kubernetes is not None and wanted.kubernetes.open:
        findings += _plugin(wanted, facts, plugin)
    return tuple(dict.fromkeys(findings))


def _compute_modes(wanted: NodeWanted, facts: Facts) -> Iterator[Finding]:
    """At rest a card is in DEFAULT. Kubernetes' MPS daemon sets EXCLUSIVE_PROCESS on its cards for as long as it runs;
    so do the hooks for a job of whole cards, where the NodeConfig asks for it.
    """
    for card, gpu in zip(wanted.cards, facts.gpus, strict=False):
        served = wanted.sharing.mode is Mode.MPS and card.owner is Scheduler.KUBERNETES
        allowed = (ComputeMode.DEFAULT, ComputeMode.EXCLUSIVE_PROCESS if served else card.compute_mode)
        if gpu.compute_mode not in allowed:
            message = f"GPU {gpu.index} at {gpu.pci_bus_id}: compute mode {gpu.compute_mode}; it must be default"
            yield Finding(COMPUTE_MODE, wanted.place, message)


def _slurm(wanted: NodeWanted, facts: Facts, slurm: Consumption) -> Iterator[Finding]:
    result = slurm.nodes.get(wanted.node)
    said = _slurm_difference(wanted, facts, result)
    if said:
        yield Finding(SLURM_DIFFERS, wanted.place, f"{wanted.node}: Slurm {slurm.release} {said}")
        return
    offered = result.offer.gpus if result and result.offer else ()
    for device, seen in zip(wanted.slurm_devices, offered, strict=True):
        gpu = facts.gpus[device.index]
        # Cores= is left out where it would not be whole sockets: that is no difference.
        if seen.cores and gpu.cores and seen.cores != gpu.cores:
            message = f"GPU {gpu.index} at {gpu.pci_bus_id}: Slurm has cores {seen.cores}, the driver {gpu.cores}"
            yield Finding(CORES_DIFFER, wanted.place, message)


def _slurm_difference(wanted: NodeWanted, facts: Facts, result: NodeResult | None) -> str | None:
    """What Slurm would make of the node instead, in words; None where it is what the NodeConfig says."""
    if result is None:
        return "does not know this node"
    if result.offer is None:
        return "does not start with these files"
    if result.invalid:
        return f"turns the node INVALID: {result.invalid}"
    devices = wanted.slurm_devices
    for position, (device, seen) in enumerate(zip(devices, result.offer.gpus, strict=False)):
        files = seen_files(device, facts.gpus[device.index])
        # Up to Slurm 22.05 an instance may stand by its compute instance's file alone.
        if seen.type != device.type or seen.files not in (files, files[-1:]):
            right = SlurmDevice(device.type, files)
            return f"would give {_shown(seen)} as its GPU {position}, which is {_shown(right)}"
    if len(devices) != len(result.offer.gpus):
        return f"would give {len(result.offer.gpus)} GPU devices, not {len(devices)}"
    return None


def _shown(device: SlurmDevice) -> str:
    return f"{device.type} ({', '.join(device.files) or 'no file'})"


def _plugin(wanted: NodeWanted, facts: Facts, plugin: PluginFile) -> Iterator[Finding]:
    right = wanted.kubernetes
    assert right is not None  # noqa: S101 - the caller has seen to it
    node = node_of_facts(facts)
    if right.visible_devices is not None:
        node = replace(node, cards=tuple(card for card in node.cards if card.index in right.visible_devices))
    runs = kubernetes.consume(plugin.text, node, plugin.env).plugin
    if not isinstance(runs, PluginRuns):
        said = f"the device plugin does not run: {runs}"
    elif dict(runs.offer.allocatable) != dict(right.allocatable):
        said = f"the device plugin offers {runs.offer.allocatable}, not {dict(right.allocatable)}"
    else:
        return
    yield Finding(PLUGIN_DIFFERS, Place(plugin.path, 1), f"{wanted.node}: {said}")
