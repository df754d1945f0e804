"""The hosts that are in both schedulers: Slurm's node and Kubernetes' Node of each, with what else is known of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from hybridgpu.check.cross.slurmnode import SlurmNode
from hybridgpu.consumers.kubernetes.given import KubeNode
from hybridgpu.inventory.load import Loaded
from hybridgpu.model.facts import Facts
from hybridgpu.model.hostname import Directory
from hybridgpu.model.site import NodeConfig


@dataclass(frozen=True, slots=True)
class Pair:
    """One host. `facts` and `config` (what an inventory wants it to be) are None where there are none."""

    slurm: SlurmNode
    kube: KubeNode
    facts: Facts | None = None
    config: NodeConfig | None = None


def nodes_by_name(nodes: Iterable[KubeNode]) -> Directory[KubeNode]:
    """Node objects by their names."""
    return Directory.of((node.host_names, node) for node in nodes)


def facts_by_name(facts: Mapping[str, Facts]) -> Directory[Facts]:
    """Facts by the name that they say."""
    return Directory.of(((name,), told) for name, told in facts.items())


def configs_by_name(inventories: Iterable[Loaded]) -> Directory[NodeConfig]:
    """What the inventories want each node to be; Slurm's name and Kubernetes' find it alike."""
    directory: Directory[NodeConfig] = Directory()
    for loaded in inventories:
        for config in loaded.site.nodes.values() if loaded.site else ():
            directory.add((config.name, config.kubernetes_name), config)
    return directory


def hosts_by_name(inventories: Iterable[Loaded]) -> Directory[str]:
    """The hosts that inventories name, those with mistakes in them too."""
    directory: Directory[str] = Directory()
    for loaded in inventories:
        for group in loaded.inventory.groups if loaded.inventory else ():
            for host in group.hosts:
                directory.add((host, group.kubernetes_name.replace("{host}", host)), host)
    return directory


def paired(
    slurm: Sequence[SlurmNode], kube: Directory[KubeNode], facts: Directory[Facts], configs: Directory[NodeConfig]
) -> Iterator[Pair]:
    """Every host of both sides, in Slurm's order."""
    for node in slurm:
        config = configs.find(node.names)
        names = (*node.names, config.kubernetes_name) if config else node.names
        if (other := kube.find(names)) is not None:
            yield Pair(node, other, facts.find(node.names), config)
