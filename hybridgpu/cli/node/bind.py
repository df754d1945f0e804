"""`hybridgpu node bind`: the DeviceMap of this node, which its hooks read."""

from __future__ import annotations

import socket
from pathlib import Path

import click

from hybridgpu.cli import FAILED, say, tell
from hybridgpu.cli.options import PATH, output_option, timeout_option
from hybridgpu.errors import Refused


@click.command()
@click.option(
    "--config", default="/etc/hybridgpu/node.json", show_default=True, type=PATH, help="This node's NodeConfig."
)
@click.option(
    "--to", "target", default="/run/hybridgpu/devices.json", show_default=True, type=PATH, help="The DeviceMap."
)
@click.option("--driver-root", default="/", show_default=True, type=PATH, help="Where the driver's files lie.")
@timeout_option
@output_option("text", "json")
def command(config: str, target: str, driver_root: str, timeout: float, output: str) -> int:
    """Bind each device of the NodeConfig to its card: UUID, minor and device files as they are since this boot.

    A card that is missing or another than the NodeConfig says is named, and then nothing is written and the exit code
    is 1. Run it at boot, before slurmd, and after each cut.
    """
    from hybridgpu.devices.bind import bind
    from hybridgpu.devices.devicemap import as_json, boot_id, write
    from hybridgpu.devices.factsof import NO_FILE, facts_of
    from hybridgpu.devices.nodeconfig import of_another, read_node_config
    from hybridgpu.devices.observe import observe

    wanted, findings = read_node_config(config)
    if wanted is None:
        raise Refused(findings)
    seen = observe(Path(driver_root), timeout)
    found = facts_of(seen, wanted.node)
    if found.facts is None:
        raise Refused([*findings, *found.findings])
    findings += of_another(wanted, socket.gethostname())
    findings += tuple(finding for finding in found.findings if finding.rule is not NO_FILE)  # bind says it, as an error
    bound = bind(wanted, found.facts, seen.kernel.files, boot_id())
    tell([*findings, *bound.findings])
    if bound.devices is None:
        return FAILED
    content = as_json(bound.devices)
    write(Path(target), content)
    if output == "json":
        click.echo(content, nl=False)
    else:
        count = len(bound.devices.devices)
        say(f"wrote {target}: {count} device{'s' if count != 1 else ''} of {wanted.node}")
    return 0
