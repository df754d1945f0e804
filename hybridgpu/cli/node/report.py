"""What a run of `node apply` did, or would do, as text and as JSON. Decides nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hybridgpu.cli.node.apply import Report
    from hybridgpu.devices.outcome import Outcome
    from hybridgpu.devices.port import Holder


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
    from hybridgpu.devices.application import planned
    from hybridgpu.devices.effect import as_record

    card = outcome.card
    return {
        "index": card.index,
        "minor": card.minor,
        "pci_bus_id": card.pci_bus_id,
        "uuid": card.uuid,
        "state": "planned" if planned(outcome) else outcome.state,
        "why": outcome.why,
        "done": [as_record(effect) for effect in outcome.done],
        "left": [as_record(effect) for effect in outcome.left],
        "holders": list(_holders(outcome)),
        "rolled_back": outcome.rolled_back,
    }


def _holders(outcome: Outcome) -> Iterator[dict[str, Any]]:
    for holder in outcome.holders:
        yield _holder(holder)


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
