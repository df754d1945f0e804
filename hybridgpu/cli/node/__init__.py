"""`hybridgpu node`: this node alone. Finds the command; one file a command, loaded when called."""

from __future__ import annotations

import click

from hybridgpu.cli import Commands

COMMANDS = {
    "apply": "Bring the cards to what the NodeConfig says.",
    "bind": "Write which card each device of the NodeConfig is.",
    "show": "List the MPS daemons of this node's jobs, who holds them, and what is left over.",
    "sweep": "Remove what ended jobs left of their MPS daemons.",
}


@click.group(cls=Commands, table=COMMANDS, package=__name__)
def command() -> None:
    """Work on this node alone."""
