"""Whose a finding is: what a release finds on a node's lines, told once, with the nodes that it is found on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException

from hybridgpu.consumers.slurm import Consumption
from hybridgpu.inventory.hosts import fold
from hybridgpu.model.finding import Finding


def findings_by_nodes(consumption: Consumption) -> Iterator[Finding]:
    """Every finding once: the cluster's, then the nodes' in the order of their lines, each naming its nodes."""
    of_all = frozenset(consumption.cluster)
    yield from consumption.cluster
    sharing: dict[int, list[str]] = {}
    for node, result in consumption.nodes.items():
        sharing.setdefault(id(result), []).append(node)
    results = {id(result): result for result in consumption.nodes.values()}
    nodes: dict[Finding, list[str]] = {}
    for key, result in results.items():
        for finding in result.findings:
            if finding not in of_all:
                nodes.setdefault(finding, []).extend(sharing[key])
    for finding, names in nodes.items():
        folded = _folded(names)
        said = finding.message.startswith(f"{folded}: ")
        yield finding if said else replace(finding, message=f"{folded}: {finding.message}")


def _folded(names: list[str]) -> str:
    """`n[1-3]`, as Slurm writes it; a few of the names where ClusterShell cannot fold them."""
    try:
        return str(NodeSet.fromlist(names, resolver=RESOLVER_NOGROUP))
    except NodeSetException:
        return fold(names)
