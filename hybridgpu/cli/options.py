"""Options and arguments that several commands share, so that they mean the same everywhere."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

if TYPE_CHECKING:
    from hybridgpu.consumers.slurm.release import Release

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


class _Path(click.ParamType):  # type: ignore[type-arg]  # generic in newer releases of click only
    """A path that is not empty: an unset variable in a script must not mean the current folder, or nothing."""

    name = "path"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if not value:
            self.fail("the path is empty", param, ctx)
        return value

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        del ctx, param
        return [CompletionItem(incomplete, type="file")]


PATH = _Path()


class _Seconds(click.FloatRange):
    """A length of time; `nan` is none, though no comparison refuses it."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ANN401
        number = super().convert(value, param, ctx)
        if number != number:
            self.fail(f"{value!r} is no length of time", param, ctx)
        return number


def default_inventory() -> str:
    """What is meant where no inventory is named."""
    return os.environ.get("HYBRIDGPU_INVENTORY") or "/etc/hybridgpu/inventory.yaml"


inventory_argument: Decorator = click.argument("inventory", default=default_inventory, type=PATH)
"""INVENTORY, else the environment's HYBRIDGPU_INVENTORY, else /etc/hybridgpu/inventory.yaml."""


def output_option(*choices: str) -> Decorator:
    """`-o`: the form of what goes to stdout, the first choice by default."""
    return click.option(
        "-o", "--output", type=click.Choice(choices), default=choices[0], show_default=True, help="Form of the output."
    )


def seconds_option(name: str, default: float, what: str) -> Decorator:
    """A length of time above 0, a day at most."""
    kind = _Seconds(min=0, max=86400, min_open=True)
    return click.option(name, type=kind, default=default, show_default=True, metavar="SECONDS", help=what)


timeout_option: Decorator = seconds_option("--timeout", 60, "Give up a driver that does not answer.")
"""How long to wait for a driver: a card that hangs hangs in the kernel, where no signal reaches it."""


def named_release(version: str) -> Release:
    """The Slurm release that `--slurm-version` names; wrong usage where it is not known."""
    from hybridgpu.consumers.slurm.release import RELEASES, release

    found = release(version)
    if found is None:
        raise click.UsageError(f"no Slurm {version!r} is known; known are {', '.join(RELEASES)}.")
    return found


hooks_conf_option: Decorator = click.option(
    "--hooks-conf",
    default="/etc/hybridgpu/hooks.conf",
    show_default=True,
    type=PATH,
    help="The hooks' settings, if any.",
)
"""Where the hooks find what they need on this node."""


def pause_option(default: float) -> Decorator:
    """`--pause`: a job without a step daemon has ended only if a second look says so, too."""
    return click.option(
        "--pause",
        type=_Seconds(min=0, max=60),
        default=default,
        show_default=True,
        metavar="SECONDS",
        help="Between two looks for a job of which nothing runs; waited only where there is such a job.",
    )
