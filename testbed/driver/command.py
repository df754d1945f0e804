"""The command `gpusim`: a simulated machine made, shown and mistreated from a shell. Parses, calls one method."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from testbed.driver.library import MACHINE, ROOT, NvmlError
from testbed.driver.machine import FAULTS, KINDS, WHOLE_CARD, Machine

DONE, FAILED, USAGE, MISSING = 0, 1, 64, 66


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> None:  # type: ignore[override]
        self.print_usage(sys.stderr)
        print(f"{self.prog}: {message}", file=sys.stderr)
        raise SystemExit(USAGE)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="gpusim", description="A simulated machine with NVIDIA cards, in a folder.")
    parser.add_argument("--root", default=os.environ.get(ROOT), help=f"the machine's folder (default: {ROOT})")
    commands = parser.add_subparsers(dest="command", required=True, parser_class=_Parser)
    make = commands.add_parser("make", help="make a machine from a description (JSON)")
    make.add_argument("description", nargs="?", default=os.environ.get(MACHINE))
    commands.add_parser("show", help="print what the machine is, as JSON")
    run = commands.add_parser("run", help="let a process appear on a card")
    run.add_argument("card", type=int)
    run.add_argument("pid", type=int)
    run.add_argument("--kind", choices=KINDS, default="compute")
    run.add_argument("--gi", type=int, default=WHOLE_CARD, help="GPU instance id, on a card with MIG")
    run.add_argument("--ci", type=int, default=WHOLE_CARD, help="compute instance id within it")
    run.add_argument("--memory", type=int, default=0, metavar="MIB")
    run.add_argument("--utilization", type=int, default=0, metavar="PERCENT")
    commands.add_parser("end", help="end a process").add_argument("pid", type=int)
    broken = commands.add_parser("break", help="break a card")
    broken.add_argument("card", type=int)
    broken.add_argument("fault", choices=FAULTS)
    commands.add_parser("mend", help="mend a card").add_argument("card", type=int)
    commands.add_parser("reset", help="reset a card").add_argument("card", type=int)
    commands.add_parser("reboot", help="reboot the machine")
    event = commands.add_parser("event", help="let a critical error (XID) happen on a card")
    event.add_argument("card", type=int)
    event.add_argument("xid", type=int)
    return parser


def _perform(machine: Machine, asked: argparse.Namespace) -> None:
    match asked.command:
        case "make":
            Machine.make(machine.root, Path(asked.description))
        case "show":
            print(json.dumps(machine.show(), indent=2))
        case "run":
            machine.run(asked.card, asked.pid, asked.kind, asked.gi, asked.ci, asked.memory * 2**20, asked.utilization)
        case "end":
            machine.end(asked.pid)
        case "break":
            machine.break_card(asked.card, asked.fault)
        case "mend":
            machine.mend(asked.card)
        case "reset":
            machine.reset(asked.card)
        case "reboot":
            machine.reboot()
        case "event":
            machine.event(asked.card, asked.xid)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and give its exit status: 0, 1 the driver refused, 64 wrong usage, 66 there is no machine."""
    parser = _parser()
    asked = parser.parse_args(arguments)
    if not asked.root:
        parser.error(f"say --root, or set {ROOT}")
    if asked.command == "make" and not asked.description:
        parser.error(f"make needs a description, or {MACHINE}")
    machine = Machine(Path(asked.root))
    if asked.command != "make" and not (machine.root / "gpusim.state").exists():
        print(f"gpusim: there is no machine in {machine.root}: `gpusim make` makes one", file=sys.stderr)
        return MISSING
    try:
        _perform(machine, asked)
    except NvmlError as error:
        print(f"gpusim: {asked.command}: {error}", file=sys.stderr)
        return FAILED
    return DONE
