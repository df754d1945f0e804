"""`hybridgpu check`: every mistake in what was named, with file and line."""

from __future__ import annotations

import click

from hybridgpu.check import formats
from hybridgpu.check.site import check
from hybridgpu.cli import FAILED, say
from hybridgpu.cli.options import PATH, default_inventory, named_release, output_option
from hybridgpu.model.finding import Severity
from hybridgpu.model.spelling import nearest


@click.command()
@click.argument("paths", nargs=-1, type=PATH, metavar="[PATH]...")
@click.option("--slurm-version", metavar="X.Y", help="Judge for this Slurm, whatever the files name.")
@click.option("--explain", metavar="RULE", help="Explain a rule and exit.")
@click.option("--strict", is_flag=True, help="Exit with 1 for a warning, too.")
@output_option("text", "json", "sarif", "github")
def command(paths: tuple[str, ...], slurm_version: str | None, explain: str | None, strict: bool, output: str) -> int:
    """Find every mistake in inventories, facts, Slurm's files and Kubernetes manifests.

    PATH is a file or a folder; files are told apart by content, and together they are one site. Without any:
    HYBRIDGPU_INVENTORY, else /etc/hybridgpu/inventory.yaml.
    """
    if explain:
        click.echo(_explained(explain), nl=False)
        return 0
    checked = check(paths or (default_inventory(),), None if slurm_version is None else named_release(slurm_version))
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


def _explained(name: str) -> str:
    from hybridgpu.check.rules import RULES
    from hybridgpu.check.rules import explain as told

    rules = {rule.id: rule for rule in RULES}
    if name in rules:
        return told(rules[name])
    near = nearest(name, rules)
    raise click.UsageError(f"no rule {name!r}." + (f" Did you mean {near!r}?" if near else " See docs/rules.md."))
