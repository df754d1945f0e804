"""`hybridgpu node apply`: this node's cards brought to what its NodeConfig says."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hybridgpu.cli import FAILED, say, say_more, tell
from hybridgpu.cli.options import PATH, output_option, seconds_option, timeout_option
from hybridgpu.errors import Refused, Unavailable

if TYPE_CHECKING:
    from hybridgpu.cli.node.report import Report
    from hybridgpu.devices.application import Machine
    from hybridgpu.devices.clients import Clients
    from hybridgpu.devices.cut import Target
    from hybridgpu.devices.effect import Effect
    from hybridgpu.devices.port import Unread
    from hybridgpu.devices.runfolder import RunFolder
    from hybridgpu.model.facts import Facts

CHANGES = 2


@dataclass(frozen=True, slots=True)
class Options:
    """What was asked for. `kubeconfig` None: mig-manager is not spoken to."""

    root: Path
    run: Path
    dry_run: bool
    boot: bool
    timeout: float
    client_timeout: float
    kubeconfig: str | None
    wait: float


@dataclass(frozen=True, slots=True)
class Seen:
    """What the driver and the kernel say of a node whose cards are the right ones; `files` are those in /dev."""

    facts: Facts
    files: frozenset[str] | Unread


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
    from hybridgpu.cli.node.report import Report, as_json, as_text
    from hybridgpu.devices.nodeconfig import of_another, read_node_config

    wanted, findings = read_node_config(config)
    if wanted is None:
        raise Refused(findings)
    report = Report(wanted, [*findings, *of_another(wanted, socket.gethostname())])
    options = Options(Path(driver_root), Path(folder), dry_run, boot, timeout, client_timeout, kubeconfig, wait)
    good = _run(report, options)
    tell(report.findings)
    for remark in report.remarks:
        say(remark)
    click.echo(as_json(report, dry_run=dry_run) if output == "json" else as_text(report, dry_run=dry_run), nl=False)
    if not good or any(finding.is_error for finding in report.findings):
        return FAILED
    return CHANGES if detailed_exitcode and report.changed(dry_run=dry_run) else 0


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
    if not options.boot and options.kubeconfig is None:
        why = (
            "there is no driver here, and this node's is to come in the GPU operator's container: once that runs say "
            "--driver-root /run/nvidia/driver, or --kubeconfig PATH, to have mig-manager cut"
        )
        raise Unavailable("device", (), why)
    report.remarks.append("the driver comes in the GPU operator's container, after kubelet: mig-manager cuts")
    return options.boot or _mig_manager(report, options)


def _foreseen(report: Report, options: Options, run: RunFolder) -> bool:
    """--dry-run: what is in the way is an error here, too."""
    from hybridgpu.devices.application import foresee
    from hybridgpu.devices.outcome import State, findings

    with _machine(report, options, _facts(report, options), _clients(options, run)) as (targets, machine):
        seen = report.application = foresee(targets, machine)
    report.findings += [*seen.findings, *findings(seen.outcomes)]
    good = all(outcome.state.good or outcome.state is State.PLANNED for outcome in seen.outcomes)
    return good and _mig_manager(report, options)


def _applied(report: Report, options: Options, run: RunFolder) -> bool:
    """The real run. What was stopped is started again however it ends, also what a run that was killed had stopped."""
    from hybridgpu.devices.application import apply
    from hybridgpu.devices.interrupt import deferred

    clients = _clients(options, run)
    with deferred() as interrupts:
        try:
            facts = _facts(report, options)
            with _machine(report, options, facts, clients) as (targets, machine):
                done = apply(targets, machine, lambda effect: _begins(effect, options, run), interrupts)
        except BaseException:
            tell(clients.start_stopped())
            raise
    report.application = done
    report.findings += done.findings
    if not done.good or not _mig_manager(report, options):
        return False
    return _bound(report, run, _facts(report, options) if done.changed or report.mig_manager else facts)


def _begins(effect: Effect, options: Options, run: RunFolder) -> None:
    """Says what is done next, for the log of a run that never ends, and takes the map away before UUIDs change."""
    from hybridgpu.devices.effect import SetComputeMode
    from hybridgpu.devices.runfolder import DEVICES

    say_more(str(effect), always=options.boot)
    if not isinstance(effect, SetComputeMode):
        (run.path / DEVICES).unlink(missing_ok=True)


def _clients(options: Options, run: RunFolder) -> Clients:
    from hybridgpu.devices.clients import Clients
    from hybridgpu.devices.devicemap import boot_id
    from hybridgpu.devices.systemd import Systemd

    return Clients(Systemd.here(), run, boot_id(), options.client_timeout, wait=not options.boot)


def _facts(report: Report, options: Options) -> Seen:
    """What the driver says. Raises Refused where a card is dead, or another than the NodeConfig says."""
    from hybridgpu.devices.bind import CARD_DIFFERS, differences
    from hybridgpu.devices.factsof import facts_of
    from hybridgpu.devices.observe import observe

    seen = observe(options.root, options.timeout)
    found = facts_of(seen, report.wanted.node)
    if found.facts is None:
        raise Refused([*report.findings, *found.findings])
    others = [finding for finding in differences(report.wanted, found.facts) if finding.rule is CARD_DIFFERS]
    if others:
        raise Refused([*report.findings, *others])
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
    """The part of mig-manager, on a node that has one; without a kubeconfig only what must be there is said."""
    from hybridgpu.model.labels import MIG_CONFIG
    from hybridgpu.model.site import OPERATOR

    side, name = report.wanted.kubernetes, report.wanted.kubernetes_name
    if side is None or side.delivery != OPERATOR or not side.labels.get(MIG_CONFIG):
        return True
    if options.kubeconfig is None or options.boot:
        label = f"{MIG_CONFIG}={side.labels[MIG_CONFIG]}"
        report.remarks.append(f"Node {name} must have the label {label} (reconcile sets it; so does --kubeconfig)")
        return True
    from hybridgpu.devices.devicemap import boot_id
    from hybridgpu.planes.kubernetes.asking import look, settle
    from hybridgpu.planes.kubernetes.migmanager import findings
    from hybridgpu.planes.kubernetes.nodes import ApiNodes

    nodes = ApiNodes(options.kubeconfig)
    if options.dry_run:
        report.mig_manager = look(nodes, name, side.labels, boot_id())
        return True
    report.mig_manager = settle(nodes, name, side.labels, boot_id(), options.wait)
    said = findings(name, report.mig_manager)
    report.findings += said
    return not said


def _bound(report: Report, run: RunFolder, seen: Seen) -> bool:
    """Writes the DeviceMap of cards that are as wanted."""
    from hybridgpu.devices.bind import bind
    from hybridgpu.devices.devicemap import as_json, boot_id, write
    from hybridgpu.devices.runfolder import DEVICES
    from hybridgpu.files.tree import read_file

    bound = bind(report.wanted, seen.facts, seen.files, boot_id())
    report.findings += bound.findings
    if bound.devices is None:
        return False
    report.devices, content = run.path / DEVICES, as_json(bound.devices)
    if read_file(run.path, DEVICES) != content.encode():
        write(report.devices, content)
    return True
