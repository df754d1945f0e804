"""`hybridgpu render`: writes what Slurm and each node must be, or shows the difference to what is there."""

from __future__ import annotations

import json
from collections.abc import Collection
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import click

from hybridgpu.check.formats import printable, text
from hybridgpu.check.rendering import Rendering, rendered
from hybridgpu.cli import say
from hybridgpu.cli.options import PATH, inventory_argument, output_option
from hybridgpu.errors import Refused
from hybridgpu.files import diff, tree
from hybridgpu.inventory.load import load_site
from hybridgpu.inventory.shelf import facts_in
from hybridgpu.render.obstacles import in_the_way
from hybridgpu.render.tree import PARTS, SYNCED

CHANGES = 2
"""Exit code under --detailed-exitcode: done, and there are changes."""


@click.command()
@inventory_argument
@click.option("--to", "target", required=True, type=PATH, help="The folder to write to.")
@click.option("--facts", type=PATH, help="A folder of facts, NAME.json a node.")
@click.option("--only", type=click.Choice(PARTS), help="Write (or compare) this part alone.")
@click.option("--diff", "show", is_flag=True, help="Show what would change, and write nothing.")
@click.option("--overwrite", is_flag=True, help="Move files that are in the way to NAME.orig.")
@click.option("--forget", is_flag=True, help="Drop what the tree there obliges to keep: GresTypes, configs.")
@click.option("--detailed-exitcode", is_flag=True, help="Exit with 2 where there are changes.")
@output_option("text", "json")
def command(inventory: str, target: str, facts: str | None, show: bool, output: str, **options: Any) -> int:  # noqa: ANN401
    """Write the configuration that INVENTORY asks for below a folder.

    INVENTORY is a file; without it HYBRIDGPU_INVENTORY, else /etc/hybridgpu/inventory.yaml. Nothing is written where
    anything is wrong.
    """
    loaded = load_site(inventory, facts_in(facts) if facts else None, for_render=True)
    if loaded.site is None:
        raise Refused(loaded.findings)
    root = Path(target)
    with nullcontext() if show else tree.locked(root):
        rendering = rendered(loaded, root, only=options["only"], forget=options["forget"])
        blocked = [o for o in rendering.plan.obstacles if not (options["overwrite"] and o.movable)]
        if blocked and not show:
            raise Refused([*rendering.findings, *in_the_way(root, blocked)])
        if not show:
            tree.write(root, rendering.plan, rendering.wanted, SYNCED)
    if rendering.findings:
        say(text(rendering.findings).rstrip("\n"))
    click.echo(_report(rendering, root, output=output, show=show), nl=False)
    return CHANGES if options["detailed_exitcode"] and rendering.plan.changes else 0


def _report(rendering: Rendering, root: Path, *, output: str, show: bool) -> str:
    plan = rendering.plan
    changed = {"create": plan.create, "replace": plan.replace, "remove": plan.remove}
    moved = [obstacle.path for obstacle in plan.obstacles]
    if output == "json":
        counts = {"unchanged": len(plan.unchanged), "findings": len(rendering.findings)}
        record = {**changed, "move_aside": moved, **counts, "written": not show}
        return json.dumps(record, indent=2) + "\n"
    if show:
        return "".join(f"{printable(line)}\n" for line in diff.unified(root, plan, rendering.wanted))
    changed["move aside"] = tuple(moved)
    return "".join(_told(verb, paths) for verb, paths in changed.items() if paths) or "nothing to change\n"


def _told(verb: str, paths: Collection[str]) -> str:
    folders: dict[str, list[str]] = {}
    for path in paths:
        folder = path.split("/", 1)[0]
        folders.setdefault(folder if folder == "nodes" else path, []).append(path)
    return "".join(f"{verb} {diff.fold_paths(group)}\n" for group in folders.values())
