"""The device plugin itself: what it refuses, when it waits for ever, and what it offers the kubelet.

Source: k8s-device-plugin v0.20.0 cmd/nvidia-device-plugin/main.go, plugin-manager.go; internal/plugin; internal/imex.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from hybridgpu.consumers.kubernetes.container import Allocator
from hybridgpu.consumers.kubernetes.devicemap import Pool, pools, units
from hybridgpu.consumers.kubernetes.node import Node
from hybridgpu.consumers.kubernetes.outcome import MpsOutcome, MpsRuns, PluginOutcome, PluginRuns, Refused, Stage, Waits
from hybridgpu.consumers.kubernetes.pluginconfig import PluginConfig
from hybridgpu.consumers.kubernetes.settings import PLUGIN, Settings, settings
from hybridgpu.model.offer import KubernetesOffer, KubernetesResource

LIST_STRATEGIES = ("envvar", "volume-mounts", "cdi-annotations", "cdi-cri")
ID_STRATEGIES = ("uuid", "index")
POLICIES = ("distributed", "packed")
DISCOVERIES = ("auto", "nvml", "tegra")
MIG_STRATEGIES = ("none", "single", "mixed")
_PLUGINS = "error starting plugins: error getting plugins: "
_MANAGERS = f"{_PLUGINS}unable to create plugins: failed to construct resource managers: "
_NO_DAEMON = (
    "Failed to start plugin: error waiting for MPS daemon: error checking MPS daemon health: "
    "failed to send command to MPS daemon: exit status 1"
)


@dataclass(frozen=True, slots=True)
class BadFlag:
    """A flag the plugin will not start with: its key in the file, what was read, the words, and what is allowed."""

    key: str
    words: str
    allowed: tuple[str, ...] = ()


def bad_flags(config: PluginConfig, values: Settings, *, root_known: bool = True) -> Iterator[BadFlag]:
    """Every flag that validateFlags refuses, in its order; the plugin stops at the first.

    `root_known`: whether an empty mpsRoot is really empty, and not given by a chart that nobody showed.
    """
    for strategy in values.words("deviceListStrategy"):
        if strategy not in LIST_STRATEGIES:
            words = f"invalid --device-list-strategy option: invalid strategy: {strategy}"
            yield BadFlag("deviceListStrategy", words, LIST_STRATEGIES)
            break
    if (word := values.text("deviceIDStrategy")) not in ID_STRATEGIES:
        yield BadFlag("deviceIDStrategy", f"invalid --device-id-strategy option: {word}", ID_STRATEGIES)
    if (word := values.text("sharedDevicesAllocationPolicy")) not in POLICIES:
        words = f"invalid --shared-devices-allocation-policy option: {word}"
        yield BadFlag("sharedDevicesAllocationPolicy", words, POLICIES)
    if config.sharing == "mps" and values.text("migStrategy") == "mixed":
        yield BadFlag("mps", "using --mig-strategy=mixed is not supported with MPS", ("none", "single"))
    if config.sharing == "mps" and not values.text("mpsRoot") and root_known:
        yield BadFlag("mpsRoot", "using MPS requires --mps-root to be specified")
    if (word := values.text("deviceDiscoveryStrategy")) not in DISCOVERIES:
        words = f"invalid --device-discovery-strategy option {word}"
        yield BadFlag("deviceDiscoveryStrategy", words, DISCOVERIES)
    if (word := values.text("migStrategy")) not in MIG_STRATEGIES:
        yield BadFlag("migStrategy", f"unknown MIG strategy: {word}", MIG_STRATEGIES)
    channels = values.numbers("channelIDs")
    if channels not in ((), (0,)):
        found = " ".join(map(str, channels))
        words = f"invalid IMEX channel IDs: invalid IMEX config: channelIDs must be [] or [0]; found [{found}]"
        yield BadFlag("channelIDs", words, ("[]", "[0]"))


def run_plugin(
    config: PluginConfig, node: Node, env: Mapping[str, str], daemons: MpsOutcome
) -> tuple[PluginOutcome, Allocator | None]:
    """What the plugin does on this node, beside these MPS daemons; and once it runs, how it answers the kubelet."""
    values = settings(config, PLUGIN, env)
    if isinstance(values, str):
        return Refused(Stage.START, values), None
    bad = next(bad_flags(config, values), None)
    if bad is not None:
        return Refused(Stage.FLAGS, bad.words), None
    for channel in values.numbers("channelIDs"):
        if channel not in node.imex_channels and values.on("required"):
            words = f"error querying IMEX channels: requested IMEX channel channel{channel} does not exist"
            return Refused(Stage.START, _PLUGINS + words), None
    strategy = values.text("migStrategy")
    found = {} if values.text("deviceDiscoveryStrategy") == "tegra" else units(node, strategy)
    if isinstance(found, str):
        return Refused(Stage.START, _MANAGERS + found), None
    offered = pools(found, config.replicated)
    if config.sharing == "mps":
        stopped = _without_mps(offered, daemons)
        if stopped:
            return stopped, None
    channels = tuple(c for c in values.numbers("channelIDs") if c in node.imex_channels)
    ignored = (
        f"Ignoring requested IMEX channel channel{c} (<nil>)" for c in values.numbers("channelIDs") if c not in channels
    )
    offer = KubernetesOffer(
        tuple(KubernetesResource(p.name, tuple(u.device for u in p.units), p.replicas) for p in offered),
        config.sharing if any(pool.shared for pool in offered) else "none",
        config.fail_above_one and any(pool.shared for pool in offered),
    )
    allocator = Allocator(offered, values, config.sharing, config.fail_above_one, channels)
    return PluginRuns(offer, (*config.warnings, *ignored)), allocator


def _without_mps(offered: tuple[Pool, ...], daemons: MpsOutcome) -> Waits | Refused | None:
    """Under mps every resource, shared or not, needs a daemon, and none may hold MIG devices."""
    if any(unit.instance for pool in offered for unit in pool.units):
        words = "unable to create plugins: failed to create plugin: sharing using MPS is not supported for MIG devices"
        return Refused(Stage.START, _PLUGINS + words)
    served = {daemon.resource for daemon in daemons.daemons} if isinstance(daemons, MpsRuns) else set()
    return None if all(pool.name in served for pool in offered) else Waits(_NO_DAEMON)
