"""Inventories for clusters on one machine: nodes of one class, each with a port of its own."""

from __future__ import annotations

from collections.abc import Mapping

from testbed.slurm.cluster import ports

_HEAD = """\
apiVersion: hybridgpu/v1
kind: Inventory
metadata: {{name: hooks}}
slurm: {{version: "{release}"{more}}}
nodeClasses:
  box: {{model: {model}, gpus: {gpus}, slurm: {{CPUs: 32, Sockets: 2, CoresPerSocket: 16, RealMemory: 4000}}}}
nodes:
"""


def inventory(
    release: str, nodes: Mapping[str, str], *, model: str = "A100-SXM4-80GB", gpus: int = 8, slurm: str = ""
) -> str:
    """The text of an inventory: `nodes` maps hosts to their `sharing` as YAML, `slurm` are further keys, as YAML."""
    head = _HEAD.format(release=release, model=model, gpus=gpus, more=f", {slurm}" if slurm else "")
    port = ports(nodes)
    lines = (
        f"- {{hosts: {host}, class: box, owner: slurm, sharing: {sharing}, slurm: {{Port: {port[host]}}}}}\n"
        for host, sharing in nodes.items()
    )
    return head + "".join(lines)
