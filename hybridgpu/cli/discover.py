"""`hybridgpu discover`: what this node's driver says of its cards, as facts."""

from __future__ import annotations

import re
import socket
from pathlib import Path

import click

from hybridgpu.cli import FAILED, say, tell
from hybridgpu.cli.options import PATH, output_option, timeout_option

_NODE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@click.command()
@click.option("--driver-root", default="/", show_default=True, type=PATH, help="Where the driver's files lie.")
@click.option("--to", "target", type=PATH, help="Write to NAME.json in this folder, not to stdout.")
@click.option("--node", metavar="NAME", help="slurmd's name of this node; else the host's short name.")
@timeout_option
@output_option("json", "table")
def command(driver_root: str, target: str | None, node: str | None, timeout: float, output: str) -> int:
    """Say what this node's driver reports of its GPUs and MIG instances: the facts of docs/facts.md.

    A card that is dead or silent is named, and then there are no facts and the exit code is 1. What facts may leave
    open and an ordinary user may not read is null, and said on stderr.
    """
    from hybridgpu.devices.factsfile import as_json, as_table
    from hybridgpu.devices.factsof import facts_of
    from hybridgpu.devices.observe import observe
    from hybridgpu.files.tree import replace_alone

    name = node_name(node)
    found = facts_of(observe(Path(driver_root), timeout), name)
    tell(found.findings)
    if found.facts is None:
        return FAILED
    if target:
        Path(target).mkdir(parents=True, exist_ok=True)
        path = Path(target) / f"{name}.json"
        replace_alone(path, as_json(found.facts).encode())
        say(f"wrote {path}")
    else:
        click.echo(as_table(found.facts) if output == "table" else as_json(found.facts), nl=False)
    return 0


def node_name(given: str | None) -> str:
    """The name given, else what slurmd takes for its own where nobody tells it (S:src/common/read_config.c
    gethostname_short). Wrong usage where that is no name.
    """
    name = socket.gethostname().partition(".")[0] if given is None else given
    if not _NODE.fullmatch(name):
        raise click.UsageError(f"{name!r} is no node name: letters, digits, `.`, `_` and `-`. Say --node NAME.")
    return name
