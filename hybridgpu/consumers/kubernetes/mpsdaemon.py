"""NVIDIA's MPS control daemon for Kubernetes: which daemons it starts, what it tells them, where it gives up.

It checks no flags ("TODO" in its source): what the plugin refuses it may run. Source: k8s-device-plugin v0.20.0
cmd/mps-control-daemon/main.go, mps/manager.go, mps/daemon.go, mps/device.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hybridgpu.consumers.kubernetes.devicemap import Pool, pools, units
from hybridgpu.consumers.kubernetes.node import Card, Node
from hybridgpu.consumers.kubernetes.outcome import MpsDaemon, MpsOutcome, MpsRuns, Refused, Stage, Waits
from hybridgpu.consumers.kubernetes.pluginconfig import PluginConfig
from hybridgpu.consumers.kubernetes.settings import MPS_DAEMON, settings

MOST, MOST_OLD = 48, 16
_NEW_ENOUGH = (7, 5)
_DAEMONS = "error starting plugins: error getting daemons: "


def most_replicas(card: Card) -> int:
    """How many clients one MPS server of this card serves. The source says Volta and tests 7.5: a V100 gets 16."""
    return most_replicas_of(card.capability)


def most_replicas_of(capability: tuple[int, int]) -> int:
    """The same by compute capability."""
    return MOST if capability >= _NEW_ENOUGH else MOST_OLD


def run_mps(config: PluginConfig, node: Node, env: Mapping[str, str]) -> MpsOutcome:
    """What the daemon does on this node, if its pod is started there (label mps.capable, set by feature discovery)."""
    values = settings(config, MPS_DAEMON, env)
    if isinstance(values, str):
        return Refused(Stage.START, values)
    if config.sharing != "mps":
        return MpsRuns()
    found = units(node, values.text("migStrategy"))
    if isinstance(found, str):
        return Refused(Stage.START, _DAEMONS + found)
    daemons = []
    for pool in pools(found, config.replicated):
        if not pool.shared:
            continue
        for unit in pool.units:
            if unit.instance is None and pool.replicas > most_replicas(unit.card):
                excess = f"{pool.replicas} > {most_replicas(unit.card)}"
                words = f"invalid MPS configuration: invalid device maximum allowed replicas exceeded: {excess}"
                return Refused(Stage.START, _DAEMONS + words)
        if any(unit.instance for unit in pool.units):
            return Waits("Failed to start MPS daemon: error setting compute mode EXCLUSIVE_PROCESS")
        cards = tuple(unit.card.index for unit in pool.units)
        daemons.append(MpsDaemon(pool.name, cards, tuple(_commands(pool)), f"/mps/{pool.name}/pipe"))
    return MpsRuns(tuple(daemons))


def _commands(pool: Pool) -> Iterator[str]:
    """Memory in MiB and threads in percent for each client process, rounded down; nothing where memory is unknown."""
    for unit in pool.units:
        if unit.card.memory_bytes:
            limit = unit.card.memory_bytes // pool.replicas // 2**20
            yield f"set_default_device_pinned_mem_limit {unit.index} {limit}M"
    if pool.units:
        yield f"set_default_active_thread_percentage {100 // pool.replicas}"
