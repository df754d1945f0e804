"""What a run of `node apply` did, or would do, as text and as JSON. Decides nothing."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hybridgpu.devices.application import Application
    from hybridgpu.devices.nodeconfig import NodeWanted
    from hybridgpu.devices.outcome import Outcome
    from hybridgpu.devices.port import Holder
    from hybridgpu.model.finding import Finding
    from hybridgpu.planes.kubernetes.migmanager import MigManager


@dataclass(slots=True)
class Report:
    """What a run has to say in the end; `devices` is the path of the map that was written."""

    wanted: NodeWanted
    findings: list[Finding]
    application: Application | None = None
    devices: Path | None = None
    mig_manager: MigManager | None = None
    remarks: list[str] = field(default_factory=list)

    def changed(self, *, dry_run: bool) -> bool:
        """Whether anything was done to a card, or, in a dry run, would be."""
        if self.application is None:
            return False
        return self.application.to_change if dry_run else self.application.changed


def as_text(report: Report, *, dry_run: bool) -> str:
    """A line for each thing done, or to do; then one that sums up."""
    lines: list[str] = []
    application = report.application
    if application is not None:
        for outcome in application.outcomes:
            lines += [str(effect) for effect in (outcome.left if dry_run else outcome.done)]
        if application.clients:
            names = ", ".join(application.clients)
            lines.append(f"would stop and start again: {names}" if dry_run else f"stopped and started again: {names}")
    if report.mig_manager is not None:
        lines.append(f"mig-manager: {report.mig_manager.progress}: {report.mig_manager.why}")
    return "".join(f"{line}\n" for line in [*lines, _sentence(report, dry_run=dry_run)])


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
        "mig_manager": manager and {"progress": manager.progress, "why": manager.why, "paused": manager.paused},
        "devices": str(report.devices) if report.devices else None,
        "remarks": report.remarks,
        "findings": [record(finding) for finding in report.findings],
    }
    return json.dumps(whole, indent=1) + "\n"


def _sentence(report: Report, *, dry_run: bool) -> str:
    application, node = report.application, report.wanted.node
    if application is None:
        return f"{node}: nothing was done here"
    outcomes = application.outcomes
    touched = sum(bool(outcome.left if dry_run else outcome.done) for outcome in outcomes)
    right = sum(outcome.state.good for outcome in outcomes)
    verb = "to change" if dry_run else "changed"
    return f"{node}: {right} of {_cards(len(outcomes))} as wanted, {touched} {verb}"


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
