"""`hybridgpu node sweep`: what ended jobs left of their MPS daemons is removed, and said. The timer's `hybridgpu-hook
sweep` does the same without this package."""

from __future__ import annotations

import json
import os

import click

from hybridgpu.check.formats import printable
from hybridgpu.cli import FAILED, failed, say
from hybridgpu.cli.options import hooks_conf_option, output_option, pause_option


@click.command()
@hooks_conf_option
@pause_option(2)
@click.option(
    "--ended",
    multiple=True,
    type=click.IntRange(1, 0xFFFFFFFF),
    metavar="JOB",
    help="A job that you know to be over, where nothing here tells. Refused where it shows on this node. Repeatable.",
)
@output_option("text", "json")
def command(hooks_conf: str, pause: float, ended: tuple[int, ...], output: str) -> int:
    """Remove daemons, holds and records of jobs that ended, and stray files of ours; running jobs are left alone.

    What is uncertain stays: a job without a step daemon has ended only where PrologFlags=Contain was in force, and two
    looks found nothing of it. Exit code 1: something could not be removed. Needs root.
    """
    from hybridgpu.mps.journal import trouble
    from hybridgpu.mps.settings import read
    from hybridgpu.mps.sweep import sweep
    from hybridgpu.mps.trouble import Trouble

    if os.geteuid() != 0:
        return failed("node sweep needs root")
    try:
        settings = read(hooks_conf)
        actions = sweep(settings, pause, frozenset(ended))
    except Trouble as problem:
        return failed(str(problem))
    if lost := trouble(settings):
        say(printable(lost))
    if output == "json":
        record = [{"what": a.what, "name": a.name, "why": a.why, "failed": a.failed} for a in actions]
        click.echo(json.dumps({"actions": record}, indent=2))
    else:
        for action in actions:
            outcome = "could not be removed" if action.failed else "removed"
            click.echo(printable(f"{action.what} {action.name} {outcome}: {action.why}"))
    if not actions:
        say("nothing to remove")
    return FAILED if any(action.failed for action in actions) else 0
