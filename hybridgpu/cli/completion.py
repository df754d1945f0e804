"""`hybridgpu completion`: the script that makes a shell complete our commands, as click writes it."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from hybridgpu.cli import cli


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print the completion script for SHELL: eval "$(hybridgpu completion bash)"."""
    completion = get_completion_class(shell)
    assert completion is not None  # noqa: S101 - the choice above lists what click has
    click.echo(completion(cli, {}, "hybridgpu", "_HYBRIDGPU_COMPLETE").source())
