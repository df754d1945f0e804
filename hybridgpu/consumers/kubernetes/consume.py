"""One config file and one node through all three programs: what each does, and how a container is answered.

Findings are judge's business; here is only what happens.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hybridgpu.consumers.kubernetes.container import Allocator
from hybridgpu.consumers.kubernetes.deviceplugin import run_plugin
from hybridgpu.consumers.kubernetes.labels import run_discovery
from hybridgpu.consumers.kubernetes.mpsdaemon import run_mps
from hybridgpu.consumers.kubernetes.node import Node
from hybridgpu.consumers.kubernetes.outcome import Labelled, LabelOutcome, MpsOutcome, MpsRuns, PluginOutcome
from hybridgpu.consumers.kubernetes.pluginconfig import Reading, read_config


@dataclass(frozen=True, slots=True)
class PluginConsumption:
    """What the programs do. `mps` is what the daemon does if its pod is started: on a node labelled mps.capable.

    `allocator` is None unless the plugin runs.
    """

    reading: Reading
    plugin: PluginOutcome
    discovery: LabelOutcome
    mps: MpsOutcome
    allocator: Allocator | None

    @property
    def mps_started(self) -> bool:
        """Whether feature discovery's label brings the daemon's pod to the node."""
        return _capable(self.discovery)


def consume(text: str | bytes, node: Node, env: Mapping[str, str]) -> PluginConsumption:
    """The programs of v0.20.0 over this file on this node, with these variables in all their containers."""
    reading = read_config(text)
    if reading.config is None:
        refused = reading.refused
        assert refused is not None  # noqa: S101 - read_config gives one of the two
        return PluginConsumption(reading, refused, refused, refused, None)
    config = reading.config
    discovery = run_discovery(config, node, env)
    mps = run_mps(config, node, env)
    plugin, allocator = run_plugin(config, node, env, mps if _capable(discovery) else MpsRuns())
    return PluginConsumption(reading, plugin, discovery, mps, allocator)


def _capable(discovery: LabelOutcome) -> bool:
    return isinstance(discovery, Labelled) and discovery.labels.get("nvidia.com/mps.capable") == "true"
