"""What a run of `node apply` did, or would do, as text and as JSON. Decides nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hybridgpu.devices.application import Application
    from hybridgpu.devices.devicemap import BoundDevice
    from hybridgpu.devices.nodeconfig import NodeWanted
    from hybridgpu.devices.outcome import Outcome
    from hybridgpu.devices.port import Holder
    from hybridgpu.model.finding import Finding
    from hybridgpu.planes.kubernetes.migmanager import MigManager


@dataclass(slots=True)
class Report:
    """What a run has to say in the end; `devices` is the path of the map, where it is right, and `bound` what is in it;
    `map_changed` whether it was, or with --dry-run would be, written.
    """

    wanted: NodeWanted
    findings: list[Finding]
    application: Application | None = None
    devices: Path | None = None
    mig_manager: MigManager | None = None
    remarks: list[str] = field(default_factory=list)
    map_changed: bool = False
    bound: tuple[BoundDevice, ...] = ()

    def changed(self, *, dry_run: bool) -> bool:
        """Whether anything was, or in a dry run would be, changed: a card, the map, the Node, a client left stopped."""
        done = self.application
        cards = done is not None and (done.to_change if dry_run else done.changed)
        started = done is not None and bool(done.resumed)
        return cards or started or self.map_changed or bool(self.mig_manager and self.mig_manager.asked)


def as_text(report: Report, *, dry_run: bool) -> str:
    """A line for each thing done, or to do; then one that sums up."""
    lines: list[str] = []
    application = report.application
    if application is not None:
        for outcome in application.outcomes:
            lines += [str(effect) for effect in (outcome.left if dry_run else outcome.done)]
        cut = {outcome.card.index for outcome in application.outcomes if outcome.done}
        for device in report.bound:
            if device.index in cut:
                what = device.profile or "the card"
                lines.append(f"GPU {device.index} at {device.pci_bus_id}: {what} is {device.uuid}")
        lines += _clients(application, dry_run=dry_run)
    if report.map_changed:
        lines.append("would write the DeviceMap" if dry_run else f"wrote {report.devices}")
    if report.mig_manager is not None:
        asked = "" if not report.mig_manager.asked else "would be asked: " if dry_run else "asked: "
        lines.append(f"mig-manager: {asked}{report.mig_manager.progress}: {report.mig_manager.why}")
    return "".join(f"{line}\n" for line in [*lines, _sentence(report, dry_run=dry_run)])


def _clients(application: Application, *, dry_run: bool) -> Iterator[str]:
    """What became of the services, or would."""
    again = [name for name in application.clients if name not in application.down]
    if again:
        yield f"{'would stop and start' if dry_run else 'stopped and started'} again: {', '.join(again)}"
    if application.down:
        yield f"stopped, and do not run: {', '.join(application.down)}"
    if application.resumed:
        verb = "would start" if dry_run else "started"
        yield f"{verb} what an earlier run had stopped: {', '.join(application.resumed)}"


def as_json(report: Report, *, dry_run: bool) -> str:
    """The form of docs/apply.md."""
    from hybridgpu.check.formats import record

    application, manager = report.application, report.mig_manager
    whole: dict[str, Any] = {
        "node": report.wanted.node,
        "dry_run": dry_run,
        "changed": report.changed(dry_run=dry_run),
        "summary": _sentence(report, dry_run=dry_run),
        "cards": [_card(outcome) for outcome in application.outcomes] if application else [],
        "clients": list(application.clients) if application else [],
        "down": list(application.down) if application else [],
        "resumed": list(application.resumed) if application else [],
        "mig_manager": manager
        and {"progress": manager.progress, "why": manager.why, "paused": manager.paused, "asked": manager.asked},
        "devices": str(report.devices) if report.devices else None,
        "devices_changed": report.map_changed,
        "remarks": report.remarks,
        "findings": [record(finding) for finding in report.findings],
    }
    return json.dumps(whole, indent=1) + "\n"


def _sentence(report: Report, *, dry_run: bool) -> str:
    from hybridgpu.devices.outcome import State

    application, node = report.application, report.wanted.node
    if application is None:
        return f"{node}: nothing was done here"
    outcomes = application.outcomes
    touched = sum(bool(outcome.left if dry_run else outcome.done) for outcome in outcomes)
    right = sum(outcome.state.good for outcome in outcomes)
    verb = "to change" if dry_run else "changed"
    unread = sum(outcome.state is State.UNREAD for outcome in outcomes)
    not_read = f", {unread} not read" if unread else ""
    return f"{node}: {right} of {_cards(len(outcomes))} as wanted, {touched} {verb}{not_read}"


def _cards(count: int) -> str:
    return f"{count} card{'s' if count != 1 else ''}"


def _card(outcome: Outcome) -> dict[str, Any]:
    from hybridgpu.devices.effect import as_record

    card = outcome.card
    return {
        "index": card.index,
        "minor": card.minor,
        "pci_bus_id": card.pci_bus_id,
        "uuid": card.uuid,
        "state": outcome.state,
        "why": outcome.why,
        "done": [as_record(effect) for effect in outcome.done],
        "left": [as_record(effect) for effect in outcome.left],
        "holders": [_holder(holder) for holder in outcome.holders],
        "rolled_back": outcome.rolled_back,
    }


def _holder(holder: Holder) -> dict[str, Any]:
    from hybridgpu.devices.openfiles import process

    who = process(holder.pid)
    return {
        "pid": holder.pid,
        "uid": who.uid,
        "command": who.command,
        "belongs": who.belongs,
        "use": holder.use,
        "gi": holder.gi,
        "ci": holder.ci,
    }
