"""`hybridgpu import`: a first inventory from what a site has, with what had to be guessed marked in it."""

from __future__ import annotations

from pathlib import Path

import click

from hybridgpu.check.formats import printable, summary, text
from hybridgpu.check.importing import Imported, import_site
from hybridgpu.cli import FAILED, say
from hybridgpu.cli.options import PATH, named_release


@click.command(name="import")
@click.argument("paths", nargs=-1, required=True, type=PATH, metavar="PATH...")
@click.option("--slurm-version", metavar="X.Y", help="The site's Slurm; else it is guessed.")
@click.option("--to", "target", type=PATH, help="Write to this file, which must not be there, not to stdout.")
def command(paths: tuple[str, ...], slurm_version: str | None, target: str | None) -> int:
    """Write a first inventory from what a site has.

    PATH is a file or a folder of Slurm's files, facts or Kubernetes objects; they are told apart by content, and
    together they are one site. What had to be guessed is marked in the inventory. Exit code 1: something of the site is
    not in it, and stderr says what.
    """
    imported = import_site(paths, None if slurm_version is None else named_release(slurm_version))
    if target:
        with Path(target).open("x", encoding="utf-8") as file:
            file.write(imported.text)
    else:
        click.echo(imported.text, nl=False)
    errors = [finding for finding in imported.findings if finding.is_error]
    others = [finding for finding in imported.findings if not finding.is_error]
    if errors:
        click.echo(text(errors), err=True, nl=False)
    if others:
        say(text(others).rstrip("\n"))
    say(_summary(imported))
    return FAILED if errors else 0


def _summary(imported: Imported) -> str:
    """The guesses, each with its line, and how many of everything."""
    guesses = imported.guesses
    lines = [f"line {guess.line}: {printable(guess.written)} is a guess: {printable(guess.why)}" for guess in guesses]
    many = f"{len(guesses)} guess{'es' if len(guesses) != 1 else ''}"
    return "\n".join([*lines, f"{many}, {summary(imported.findings)}"])
