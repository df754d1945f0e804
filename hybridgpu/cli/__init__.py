"""The command line: finds the command, and maps what it raises to an exit code. One file a command, loaded when called.

Exit codes: 0 done; 1 found errors, or could not do it; 2 done, and there are changes (only where asked for with
--detailed-exitcode); 64 wrong usage; 66 an input that is not there; 70 a bug of ours. Nothing here knows what a
command does.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from keyword import iskeyword
from pathlib import Path
from typing import TYPE_CHECKING, Any, Never

import click

from hybridgpu import __version__
from hybridgpu.errors import Bug, HybridgpuError, Refused

if TYPE_CHECKING:
    from hybridgpu.model.finding import Finding

FAILED, USAGE, NO_INPUT, BUG = 1, 64, 66, 70

# name -> what `hybridgpu --help` says of it; the module of the same name, with a _ behind where that is a word of
# Python's, is imported only when it is called
COMMANDS = {
    "check": "Find every mistake in inventories, Slurm files and Kubernetes manifests.",
    "completion": "Print the completion script for a shell.",
    "discover": "Say what this node's driver reports of its GPUs.",
    "import": "Write a first inventory from what a site has.",
    "mig": "Say what MIG can cut from a GPU model.",
    "node": "Work on this node alone, by its NodeConfig.",
    "render": "Write the configuration of Slurm and of every node.",
}


class Commands(click.Group):
    """A group that lists its commands without importing them: `table` says what each is, `package` holds them."""

    def __init__(self, *arguments: Any, table: Mapping[str, str], package: str, **options: Any) -> None:  # noqa: ANN401
        super().__init__(*arguments, **options)
        self._table, self._package = table, package

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Their names, in the order of the table."""
        del ctx
        return list(self._table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of this name, imported now."""
        del ctx
        if cmd_name not in self._table:
            return None
        command = import_module(f"{self._package}.{cmd_name}{'_' if iskeyword(cmd_name) else ''}").command
        assert isinstance(command, click.Command)  # noqa: S101
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The table, for --help."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl(list(self._table.items()))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that is meant; wrong usage, with the nearest right word, where there is none."""
        if args[0] not in self._table:
            from hybridgpu.model.spelling import nearest

            near = nearest(args[0], self._table)
            ctx.fail(f"No such command {args[0]!r}." + (f" Did you mean {near!r}?" if near else ""))
        return super().resolve_command(ctx, args)


@click.group(cls=Commands, table=COMMANDS, package=__name__, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="hybridgpu")
@click.option("-v", "--verbose", count=True, help="Say more; on a bug of ours, show where.")
@click.option("-q", "--quiet", is_flag=True, help="Say nothing but errors on stderr.")
@click.pass_context
def cli(ctx: click.Context, verbose: int, quiet: bool) -> None:
    """One inventory of GPUs and MIG instances, from which Slurm and Kubernetes are configured and kept in agreement."""
    ctx.obj = -1 if quiet else verbose


def say(text: str) -> None:
    """A remark for the person at the terminal: on stderr, and not at all under --quiet."""
    context = click.get_current_context(silent=True)
    if context is None or context.find_root().obj != -1:
        click.echo(text, err=True)


def say_more(text: str, *, always: bool = False) -> None:
    """A step that is being done: on stderr, where -v asks for it, or always, as in a service's log."""
    context = click.get_current_context(silent=True)
    if always or (context is not None and context.find_root().obj > 0):
        say(text)


def tell(findings: Sequence[Finding]) -> None:
    """Findings for the person at the terminal, on stderr: errors always, the rest unless --quiet."""
    from hybridgpu.check.formats import text

    errors = [finding for finding in findings if finding.is_error]
    others = [finding for finding in findings if not finding.is_error]
    if errors:
        click.echo(text(errors), err=True, nl=False)
    if others:
        say(text(others).rstrip("\n"))


def main(arguments: list[str] | None = None) -> Never:
    """Runs the command line and exits the process."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if sys.stderr is None:  # closed by whoever started us
        sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115 - it stands for stderr until the end
    if sys.stdout is None:
        sys.exit(failed("standard output is closed"))
    sys.exit(_run(arguments))


def _run(arguments: list[str]) -> int:
    try:
        result: Any = cli.main(arguments, prog_name="hybridgpu", standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.ClickException as wrong:
        with suppress(BrokenPipeError):
            wrong.show()
        return USAGE
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        return 130
    except BrokenPipeError:  # the reader went away: `hybridgpu check | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except Refused as refusal:
        from hybridgpu.check.formats import text

        click.echo(text(refusal.findings), err=True, nl=False)
        return FAILED
    except Bug as bug:
        return _bug(bug, arguments)
    except HybridgpuError as failure:
        return failed(str(failure))
    except (FileNotFoundError, NotADirectoryError) as missing:
        return failed(f"{missing.filename or missing}: there is no such file or folder", NO_INPUT)
    except OSError as failure:
        return failed(f"{failure.filename}: {failure.strerror}" if failure.filename else str(failure))
    except Exception as bug:
        return _bug(bug, arguments)
    return result if isinstance(result, int) else 0


def failed(message: str, code: int = FAILED) -> int:
    """Says on stderr why it could not be done; gives the exit code."""
    from hybridgpu.check.formats import printable

    with suppress(BrokenPipeError):  # nobody reads: the exit code still tells
        click.echo(f"hybridgpu: {printable(message)}", err=True)
    return code


def _bug(bug: Exception, arguments: list[str]) -> int:
    if any(a.startswith("-v") or a == "--verbose" for a in arguments):
        traceback.print_exception(bug)
    summary = f"{type(bug).__name__}: {bug}" if str(bug) else type(bug).__name__
    return failed(f"a bug of hybridgpu, please report it (-v shows where): {summary}", BUG)
