"""`hybridgpu render`: writes what Slurm and each node must be, or shows the difference to what is there."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path

import click

from hybridgpu.check.formats import text
from hybridgpu.cli import say
from hybridgpu.cli.options import inventory_argument, output_option
from hybridgpu.errors import Refused
from hybridgpu.files import diff, tree
from hybridgpu.files.tree import Content, TreePlan
from hybridgpu.inventory.load import load_site
from hybridgpu.inventory.shelf import facts_in
from hybridgpu.model.finding import Finding
from hybridgpu.model.site import Retained, Site
from hybridgpu.render.obstacles import in_the_way
from hybridgpu.render.proof import prove
from hybridgpu.render.tree import FOLDERS, SYNCED, render_tree, retained_from

CHANGES = 2
"""Exit code under --detailed-exitcode: done, and there are changes."""


@click.command()
@inventory_argument
@click.option("--to", "target", required=True, type=click.Path(path_type=Path), help="The folder to write to.")
@click.option("--facts", type=click.Path(), help="A folder of facts, NAME.json a node.")
@click.option("--only", type=click.Choice(FOLDERS), help="Write (or compare) this part alone.")
@click.option("--diff", "show", is_flag=True, help="Show what would change, and write nothing.")
@click.option("--overwrite", is_flag=True, help="Move files that are in the way to NAME.orig.")
@click.option("--forget", is_flag=True, help="Do not keep the GresTypes of the tree that is there.")
@click.option("--detailed-exitcode", is_flag=True, help="Exit with 2 where there are changes.")
@output_option("text", "json")
def command(
    inventory: str,
    target: Path,
    facts: str | None,
    only: str | None,
    show: bool,
    overwrite: bool,
    forget: bool,
    detailed_exitcode: bool,
    output: str,
) -> int:
    """Write the configuration that INVENTORY asks for below a folder.

    INVENTORY is a file; without it HYBRIDGPU_INVENTORY, else /etc/hybridgpu/inventory.yaml. Nothing is written where
    anything is wrong.
    """
    loaded = load_site(inventory, facts_in(facts) if facts else None, for_render=True)
    if loaded.site is None:
        raise Refused(loaded.findings)
    site = loaded.site if forget else _remembering(loaded.site, target)
    files, findings = _proven(site, loaded.findings)
    folders = (only,) if only else FOLDERS
    wanted = {path: content for path, content in files.items() if path.split("/", 1)[0] in folders}
    plan = tree.compare(target, wanted, folders)
    if plan.obstacles and not (show or (overwrite and all(o.movable for o in plan.obstacles))):
        raise Refused([*findings, *in_the_way(target, plan)])
    if findings:
        say(text(findings).rstrip("\n"))
    if not show:
        with tree.locked(target):
            tree.write(target, plan, wanted, SYNCED)
    click.echo(_report(plan, target, wanted, findings, output=output, show=show), nl=False)
    return CHANGES if detailed_exitcode and plan.changes else 0


def _remembering(site: Site, target: Path) -> Site:
    retained = retained_from(tree.read_file(target, "slurm/gpu.conf"))
    return replace(site, retained=retained) if retained != Retained() else site


def _proven(site: Site, findings: Collection[Finding]) -> tuple[dict[str, Content], list[Finding]]:
    """The rendered tree, shown to offer what was asked; all findings so far."""
    files = render_tree(site)
    told = [*findings, *prove(site, files)]
    if any(finding.is_error for finding in told):
        raise Refused(told)
    return files, told


def _report(
    plan: TreePlan,
    target: Path,
    wanted: Mapping[str, Content],
    findings: Collection[Finding],
    *,
    output: str,
    show: bool,
) -> str:
    changed = {"create": plan.create, "replace": plan.replace, "remove": plan.remove}
    moved = [obstacle.path for obstacle in plan.obstacles]
    if output == "json":
        counts = {"unchanged": len(plan.unchanged), "findings": len(findings)}
        record = {**changed, "move_aside": moved, **counts, "written": not show}
        return json.dumps(record, indent=2) + "\n"
    if show:
        return "".join(f"{line}\n" for line in diff.unified(target, plan, wanted))
    changed["move aside"] = tuple(moved)
    return "".join(_told(verb, paths) for verb, paths in changed.items() if paths) or "nothing to change\n"


def _told(verb: str, paths: Collection[str]) -> str:
    folders: dict[str, list[str]] = {}
    for path in paths:
        folder = path.split("/", 1)[0]
        folders.setdefault(folder if folder == "nodes" else path, []).append(path)
    return "".join(f"{verb} {diff.fold_paths(group)}\n" for group in folders.values())
