"""`hybridgpu check`: every mistake in what was named, with file and line."""

from __future__ import annotations

import socket
from pathlib import Path

import click

from hybridgpu.check import formats
from hybridgpu.check.site import Live, check
from hybridgpu.cli import FAILED, say, tell
from hybridgpu.cli.options import PATH, default_inventory, named_release, output_option, timeout_option
from hybridgpu.errors import Refused
from hybridgpu.model.finding import Severity
from hybridgpu.model.spelling import nearest

NODE_CONFIG, SLURM_FOLDER = "/etc/hybridgpu/node.json", "/etc/slurm"


@click.command()
@click.argument("paths", nargs=-1, type=PATH, metavar="[PATH]...")
@click.option("--slurm-version", metavar="X.Y", help="Judge for this Slurm, whatever the files name.")
@click.option("--explain", metavar="RULE", help="Explain a rule and exit.")
@click.option("--strict", is_flag=True, help="Exit with 1 for a warning, too.")
@click.option("--live", is_flag=True, help="Hold the files against this node's cards, too.")
@click.option("--config", default=NODE_CONFIG, show_default=True, type=PATH, help="Its NodeConfig, with --live.")
@click.option("--driver-root", default="/", show_default=True, type=PATH, help="With --live: where the driver lies.")
@timeout_option
@output_option("text", "json", "sarif", "github")
def command(
    paths: tuple[str, ...],
    slurm_version: str | None,
    explain: str | None,
    strict: bool,
    live: bool,
    config: str,
    driver_root: str,
    timeout: float,
    output: str,
) -> int:
    """Find every mistake in inventories, facts, Slurm's files and Kubernetes manifests.

    PATH is a file or a folder; files are told apart by content, and together they are one site. Without any:
    HYBRIDGPU_INVENTORY, else /etc/hybridgpu/inventory.yaml.

    With --live, on a node: its cards against its NodeConfig, Slurm's files and the device plugin's config among PATH;
    without any, those of /etc/slurm.
    """
    if explain:
        click.echo(_explained(explain), nl=False)
        return 0
    here = _live(config, driver_root, timeout) if live else None
    default = ([SLURM_FOLDER] if Path(SLURM_FOLDER).is_dir() else []) if live else [default_inventory()]
    checked = check(paths or default, None if slurm_version is None else named_release(slurm_version), here)
    findings = checked.findings
    if output == "json":
        click.echo(formats.as_json(findings, checked.files), nl=False)
    elif output == "sarif":
        click.echo(formats.sarif(findings), nl=False)
    elif output == "github":
        click.echo(formats.github(findings), nl=False)
    else:
        click.echo(formats.text(findings), nl=False)
        say(f"{formats.summary(findings)} in {len(checked.files)} file{'s' if len(checked.files) != 1 else ''}")
    worst = {finding.severity for finding in findings}
    return FAILED if Severity.ERROR in worst or (strict and Severity.WARNING in worst) else 0


def _live(config: str, driver_root: str, timeout: float) -> Live:
    """This node as its driver shows it. Raises Refused where its NodeConfig or its cards cannot be read."""
    from hybridgpu.devices.factsof import facts_of
    from hybridgpu.devices.nodeconfig import of_another, read_node_config
    from hybridgpu.devices.observe import observe

    wanted, findings = read_node_config(config)
    if wanted is None:
        raise Refused(findings)
    seen = facts_of(observe(Path(driver_root), timeout), wanted.node)
    findings += (*of_another(wanted, socket.gethostname()), *seen.findings)
    if seen.facts is None:
        raise Refused(findings)
    tell(findings)
    return Live(wanted, seen.facts)


def _explained(name: str) -> str:
    from hybridgpu.check.rules import RULES
    from hybridgpu.check.rules import explain as told

    rules = {rule.id: rule for rule in RULES}
    if name in rules:
        return told(rules[name])
    near = nearest(name, rules)
    raise click.UsageError(f"no rule {name!r}." + (f" Did you mean {near!r}?" if near else " See docs/rules.md."))
