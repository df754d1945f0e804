"""Inventories as text for tests: small, and told apart by what a test changes in them."""

from __future__ import annotations

from pathlib import Path

from hybridgpu.inventory.load import Loaded, load_site
from hybridgpu.model.site import Site

HEAD = """\
apiVersion: hybridgpu/v1
kind: Inventory
metadata: {name: t}
slurm: {%s}
kubernetes: {delivery: device-plugin, namespace: gpu}
nodeClasses:
  dgx: {model: A100-SXM4-80GB, gpus: 8, slurm: {CPUs: 256, Sockets: 2, CoresPerSocket: 128, RealMemory: 2000000}}
  old: {model: A100-SXM4-40GB, gpus: 2, slurm: {CPUs: 64, Sockets: 2, RealMemory: 500000}}
  b200: {model: B200, gpus: 2, slurm: {CPUs: 64, Sockets: 2, RealMemory: 500000}}
  mixed: {gpus: [{model: T4, count: 1}, {model: A30, count: 2}, {model: T4, count: 1}], slurm: {CPUs: 64}}
nodes:
"""

SLURM_CONF = """\
ClusterName=t
SlurmctldHost=ctl
SelectType=select/cons_tres
Include nodes.conf
Include gpu.conf
PartitionName=all Nodes=ALL Default=YES
"""
"""What a site writes around what is rendered."""

CONFINING = SLURM_CONF + "ProctrackType=proctrack/cgroup\nTaskPlugin=task/cgroup,task/affinity\n"
"""The same, of a site that confines jobs to their GPUs."""


def inventory(*entries: str, slurm: str = 'version: "24.11"') -> str:
    """An inventory with these node entries (`HOSTS CLASS SHARING`, or a whole flow mapping) and `slurm:` keys."""
    lines = []
    for entry in entries:
        if not entry.startswith("{"):
            hosts, node_class, sharing = entry.split(maxsplit=2)
            lines.append(f"- {{hosts: '{hosts}', class: {node_class}, owner: slurm, sharing: {{mode: {sharing}}}}}\n")
        else:
            lines.append(f"- {entry}\n")
    return HEAD % slurm + "".join(lines)


def loaded(folder: Path, text: str, facts: dict[str, str] | None = None) -> Loaded:
    """What reading and compiling the text gives; `facts` are file contents by node."""
    path = folder / "inventory.yaml"
    path.write_text(text)
    files = {}
    for node, content in (facts or {}).items():
        files[node] = str(folder / f"{node}.json")
        Path(files[node]).write_text(content)
    return load_site(str(path), files, for_render=True)


def site(folder: Path, text: str, facts: dict[str, str] | None = None) -> Site:
    """The Site of an inventory that is right."""
    result = loaded(folder, text, facts)
    assert result.site is not None, [f.message for f in result.findings]
    return result.site
