"""From an inventory to what lies on a cluster's machines: by our own reading, rendering and binding, in process."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hybridgpu.devices.bind import bind
from hybridgpu.devices.devicemap import as_json
from hybridgpu.devices.factsfile import as_json as facts_json
from hybridgpu.devices.factsof import facts_of
from hybridgpu.devices.nodeconfig import NodeWanted, read_node_config
from hybridgpu.devices.nvml import Nvml
from hybridgpu.devices.observe import Observation, look
from hybridgpu.inventory.load import load_site
from hybridgpu.model.facts import Facts
from hybridgpu.model.finding import Finding
from hybridgpu.render.tree import render_tree, slurm_texts
from testbed.driver import library
from testbed.driver.machine import Machine


class Unfit(Exception):
    """The inventory and the machines of a test do not make a cluster; carries what ours found."""


@dataclass(frozen=True, slots=True)
class Rendered:
    """Slurm's files by name, and what each node must be."""

    slurm: Mapping[str, str]
    nodes: Mapping[str, NodeWanted]


def rendered(inventory: str, machines: Mapping[str, Machine]) -> Rendered:
    """What `render` makes of an inventory's text and of the facts of these machines, by node. Raises Unfit."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        facts = {}
        for node, machine in machines.items():
            facts[node] = str(folder / f"{node}.facts")
            Path(facts[node]).write_text(facts_json(seen(machine, node)[1]), encoding="utf-8")
        loaded = load_site("inventory.yaml", facts, for_render=True, text=inventory.encode())
        if loaded.site is None:
            raise Unfit(_said(loaded.findings))
        files = render_tree(loaded.site)
        nodes = {}
        for node in machines:
            config = folder / f"{node}.json"
            config.write_bytes(files[f"nodes/{node}.json"]())
            wanted, findings = read_node_config(str(config))
            if wanted is None:
                raise Unfit(_said(findings))
            nodes[node] = wanted
    return Rendered(slurm_texts(files), nodes)


def device_map(wanted: NodeWanted, machine: Machine, boot_id: str) -> str:
    """The text of devices.json, as `node bind` writes it on this machine. Raises Unfit."""
    observed, facts = seen(machine, wanted.node)
    bound = bind(wanted, facts, observed.kernel.files, boot_id)
    if bound.devices is None:
        raise Unfit(_said(bound.findings))
    return as_json(bound.devices)


def seen(machine: Machine, node: str) -> tuple[Observation, Facts]:
    """What `discover` says of a machine."""
    with library.over(machine.root):
        observed = look(Nvml(), machine.root)
    found = facts_of(observed, node)
    if found.facts is None:
        raise Unfit(_said(found.findings))
    return observed, found.facts


def _said(findings: tuple[Finding, ...]) -> str:
    return "\n".join(f"{finding.rule.id}: {finding.message}" for finding in findings)
