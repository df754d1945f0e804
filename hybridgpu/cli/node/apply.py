"""`hybridgpu node apply`: this node's cards brought to what its NodeConfig says."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hybridgpu.cli import FAILED, say, say_more, tell
from hybridgpu.cli.options import PATH, output_option, seconds_option, timeout_option
from hybridgpu.errors import Refused, Unavailable

if TYPE_CHECKING:
    from hybridgpu.cli.node.mapped import Seen
    from hybridgpu.cli.node.report import Report
    from hybridgpu.devices.application import Machine
    from hybridgpu.devices.clients import Clients
    from hybridgpu.devices.cut import Target
    from hybridgpu.devices.effect import Effect
    from hybridgpu.devices.interrupt import Interrupts
    from hybridgpu.devices.runfolder import RunFolder
    from hybridgpu.planes.kubernetes.nodes import Nodes

CHANGES = 2


@dataclass(frozen=True, slots=True)
class Options:
    """What was asked for. `nodes` None: mig-manager is not spoken to."""

    root: Path
    run: Path
    dry_run: bool
    boot: bool
    timeout: float
    client_timeout: float
    wait: float
    interrupts: Interrupts
    nodes: Nodes | None = field(default=None, kw_only=True)


@click.command()
@click.option(
    "--config", default="/etc/hybridgpu/node.json", show_default=True, type=PATH, help="This node's NodeConfig."
)
@click.option("--run", "folder", default="/run/hybridgpu", show_default=True, type=PATH, help="Lock, state, DeviceMap.")
@click.option("--driver-root", default="/", show_default=True, type=PATH, help="Where the driver's files lie.")
@click.option("--dry-run", is_flag=True, help="Say what would be done; change nothing.")
@click.option("--boot", is_flag=True, help="At boot: leave a driver that comes in a container to mig-manager.")
@click.option("--detailed-exitcode", is_flag=True, help="Exit with 2 where there were, or with --dry-run are, changes.")
@click.option("--kubeconfig", type=PATH, metavar="PATH", help="Ask mig-manager by this; `in-cluster` in a pod.")
@seconds_option("--wait", 300, "How long to wait for mig-manager.")
@seconds_option("--client-timeout", 120, "How long one service may take to stop or start.")
@timeout_option
@output_option("text", "json")
def command(
    config: str,
    folder: str,
    driver_root: str,
    dry_run: bool,
    boot: bool,
    detailed_exitcode: bool,
    kubeconfig: str | None,
    wait: float,
    client_timeout: float,
    timeout: float,
    output: str,
) -> int:
    """Bring this node's cards to what its NodeConfig says, and write which device is which.

    Only what differs is touched. A card that is in use stays as it is, and who uses it is named; services that hold the
    cards are stopped for as long as it takes.
    """
    from hybridgpu.cli.node.report import as_json, as_text
    from hybridgpu.devices.interrupt import answered

    with answered() as interrupts:
        options = Options(Path(driver_root), Path(folder), dry_run, boot, timeout, client_timeout, wait, interrupts)
        try:
            report, options = _inputs(config, kubeconfig, options)
        except (Refused, Unavailable, OSError):
            _start_left_behind(options)
            raise
        try:
            good = _run(report, options)
        except Refused as refused:
            if report.application is None:
                raise Refused([*report.findings, *refused.findings]) from None
            report.findings += refused.findings
            good = False
        interrupts.held = True
        tell(report.findings)
        for remark in report.remarks:
            say(remark)
        click.echo(as_json(report, dry_run=dry_run) if output == "json" else as_text(report, dry_run=dry_run), nl=False)
    if not good or any(finding.is_error for finding in report.findings):
        return FAILED
    return CHANGES if detailed_exitcode and report.changed(dry_run=dry_run) else 0


def _inputs(config: str, kubeconfig: str | None, options: Options) -> tuple[Report, Options]:
    """All that is given, read before anything is touched. Raises Refused, Unavailable, and OSError with the path."""
    from dataclasses import replace

    from hybridgpu.cli.node.migask import nodes_by
    from hybridgpu.cli.node.report import Report
    from hybridgpu.devices.nodeconfig import NOT_CUT, of_another, read_node_config

    wanted, findings = read_node_config(config)
    if wanted is None:
        raise Refused(findings)
    others = of_another(wanted, socket.gethostname(), NOT_CUT)
    if others:
        raise Refused([*findings, *others])
    nodes = None if options.boot else nodes_by(kubeconfig)
    return Report(wanted, list(findings)), replace(options, nodes=nodes)


def _run(report: Report, options: Options) -> bool:
    """Does what was asked for, and notes it; gives whether the node is as it must be, with --dry-run can be made so."""
    from hybridgpu.devices.container import comes_in_container
    from hybridgpu.devices.runfolder import RunFolder

    if comes_in_container(report.wanted, options.root):
        return _handed_over(report, options)
    if options.dry_run:
        return _foreseen(report, options, RunFolder(options.run))
    run = RunFolder.at(options.run)
    with run.locked():
        return _applied(report, options, run)


def _handed_over(report: Report, options: Options) -> bool:
    """A node whose driver comes with the operator's container: mig-manager cuts, when it is there."""
    from hybridgpu.devices.container import CONTAINER_ROOT

    _start_left_behind(options)
    if not options.boot and options.nodes is None:
        why = (
            "the host has no driver, and this node's is to come in the GPU operator's container: once that runs say "
            f"--driver-root {CONTAINER_ROOT}, or --kubeconfig PATH, to have mig-manager cut"
        )
        raise Unavailable("device", (), why)
    report.remarks.append("the driver comes in the GPU operator's container, after kubelet: mig-manager cuts")
    return options.boot or _mig_manager(report, options)


def _start_left_behind(options: Options) -> None:
    """Starts what a run that was killed had stopped, where this one ends before it comes to its clients."""
    from hybridgpu.devices.runfolder import STOPPED, RunFolder

    options.interrupts.held = True
    try:
        if options.dry_run or not (options.run / STOPPED).exists():
            return
        run = RunFolder.at(options.run)
        with run.locked():
            tell(_clients(options, run).start_stopped().findings)
    except OSError as error:
        say(f"{error.filename}: {error.strerror}")


def _foreseen(report: Report, options: Options, run: RunFolder) -> bool:
    """--dry-run: what is in the way is an error here, too."""
    from hybridgpu.cli.node.mapped import foresee_map
    from hybridgpu.devices.application import foresee
    from hybridgpu.devices.outcome import State, findings
    from hybridgpu.devices.runfolder import DEVICES

    run.check()
    facts = _facts(report, options)
    with _machine(report, options, facts, _clients(options, run)) as (targets, machine):
        seen = report.application = foresee(targets, machine)
    report.findings += [*seen.findings, *findings(seen.outcomes)]
    report.findings += foresee_map(report, run.path / DEVICES, facts)
    good = all(outcome.state.good or outcome.state is State.PLANNED for outcome in seen.outcomes)
    return good and _mig_manager(report, options)


def _applied(report: Report, options: Options, run: RunFolder) -> bool:
    """The real run. What was stopped is started again however it ends, also what a run that was killed had stopped."""
    from hybridgpu.cli.node.mapped import write_map
    from hybridgpu.devices.application import apply
    from hybridgpu.devices.runfolder import DEVICES

    clients, path = _clients(options, run), run.path / DEVICES
    clients.left_behind()  # a list that cannot be read ends it before anything is touched
    try:
        run.check()
        facts = _facts(report, options)
        with _machine(report, options, facts, clients) as (targets, machine):
            options.interrupts.hold()
            done = apply(targets, machine, lambda effect: _begins(effect, options, path), options.interrupts)
    except BaseException:
        options.interrupts.held = True
        tell(clients.start_stopped().findings)
        raise
    report.application = done
    report.findings += done.findings
    if not done.good:
        return False
    wrong = write_map(report, path, lambda: _facts(report, options) if done.changed else facts)
    right = _mig_manager(report, options)
    if report.mig_manager and report.mig_manager.asked:  # it may have cut: then the UUIDs are others
        wrong = write_map(report, path, lambda: _facts(report, options))
        if report.devices is None:
            with suppress(OSError):  # why there is none is among the findings
                path.unlink(missing_ok=True)
    report.findings += wrong
    if options.interrupts.came:
        report.remarks.append(f"{options.interrupts.came[0].name} came: nothing more was waited for")
    return right and report.devices is not None


def _begins(effect: Effect, options: Options, path: Path) -> None:
    """Says what is done next, for the log of a run that never ends, and takes the map away before UUIDs change."""
    from hybridgpu.devices.effect import SetComputeMode

    say_more(str(effect), always=options.boot)
    if not isinstance(effect, SetComputeMode):
        path.unlink(missing_ok=True)


def _clients(options: Options, run: RunFolder) -> Clients:
    from hybridgpu.devices.clients import Clients
    from hybridgpu.devices.devicemap import boot_id
    from hybridgpu.devices.systemd import Systemd

    return Clients(Systemd.here(), run, boot_id(), options.client_timeout, boot=options.boot)


def _facts(report: Report, options: Options) -> Seen:
    """What the driver says. Raises Refused where a card is dead, or another than the NodeConfig says."""
    from hybridgpu.cli.node.mapped import Seen
    from hybridgpu.devices.application import Application
    from hybridgpu.devices.bind import CARD_DIFFERS, differences
    from hybridgpu.devices.factsof import facts_of
    from hybridgpu.devices.observe import observe
    from hybridgpu.devices.withdead import outcomes

    seen = observe(options.root, options.timeout)
    found = facts_of(seen, report.wanted.node)
    if found.facts is None:
        if report.application is None:
            report.application = Application(outcomes(report.wanted, seen))
        raise Refused(found.findings)
    others = [finding for finding in differences(report.wanted, found.facts) if finding.rule is CARD_DIFFERS]
    if others:
        raise Refused(others)
    return Seen(found.facts, seen.kernel.files)


@contextmanager
def _machine(
    report: Report, options: Options, seen: Seen, clients: Clients
) -> Iterator[tuple[tuple[Target, ...], Machine]]:
    from hybridgpu.cli.node.jobdaemons import JobDaemons
    from hybridgpu.devices.application import Machine
    from hybridgpu.devices.cut import targets
    from hybridgpu.devices.kernel import driver_root
    from hybridgpu.devices.limited import LimitedCutter
    from hybridgpu.devices.nvmlcut import NvmlCutter
    from hybridgpu.devices.openfiles import OpenFiles

    wanted, where = targets(report.wanted, seen.facts), driver_root(options.root)
    with LimitedCutter(lambda: NvmlCutter(where.library), options.timeout) as cutter:
        files = OpenFiles([target.card for target in wanted], where.dev, options.timeout)
        yield wanted, Machine(cutter, files, JobDaemons(seen.facts, options.run), clients, report.wanted.clients)


def _mig_manager(report: Report, options: Options) -> bool:
    from hybridgpu.cli.node.migask import ask_mig_manager

    options.interrupts.held = True
    came = options.interrupts.came
    return ask_mig_manager(report, options.nodes, options.wait, lambda: bool(came), dry_run=options.dry_run)
