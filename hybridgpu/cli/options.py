"""Options and arguments that several commands share, so that they mean the same everywhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

DEFAULT_INVENTORY = "/etc/hybridgpu/inventory.yaml"

inventory_argument: Decorator = click.argument(
    "inventory", envvar="HYBRIDGPU_INVENTORY", default=DEFAULT_INVENTORY, type=click.Path()
)
"""INVENTORY, else the environment's HYBRIDGPU_INVENTORY, else /etc/hybridgpu/inventory.yaml."""


def output_option(*choices: str) -> Decorator:
    """`-o`: the form of what goes to stdout, the first choice by default."""
    return click.option(
        "-o", "--output", type=click.Choice(choices), default=choices[0], show_default=True, help="Form of the output."
    )
