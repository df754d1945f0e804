"""What the operator's mig-manager has made of a node's layout, and how it is asked for one, or got going again. Pure.

Its label `nvidia.com/mig.config.state` outlives a reboot, and says not which layout it is about. So a mark of ours
says what was asked, in which boot and when; without that mark the state is not known. mig-manager acts only when the
value of its label changes, and leaves off for ever where a pod does not go in time (mig-parted#485).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any

from hybridgpu.model.finding import Finding, Rule, Severity
from hybridgpu.model.labels import MIG_ASKED, MIG_CONFIG, MIG_CONFIG_STATE, PAUSED, PAUSED_OPERANDS

NOT_CUT = Rule(
    "mig-manager-not-done",
    Severity.ERROR,
    "The GPU operator's mig-manager has not made the node's layout its own: what it does next, and which of its "
    "operands run, is not known.",
    "See the log of its pod on the node. Where it failed or left off, the next `node apply --kubeconfig` asks again, "
    "and brings back what it had put aside.",
    "mig-parted pkg/mig/reconfigure, mig-parted#485",
)

UNREAD = Rule(
    "mig-manager-unread",
    Severity.ERROR,
    "What the GPU operator's mig-manager makes of the node's layout is not known: its Node could not be read or "
    "changed.",
    "See that the API server is up, that the Node is this machine's and its kubelet runs, and that the credentials may "
    "get and patch it; run it again. The cards and the DeviceMap do not wait for that.",
    "docs/apply.md",
)

PATIENCE = timedelta(minutes=30)
"""After this it has left off: it waits 5 minutes for each of five sorts of pods, 30 s for services, then it cuts."""

ASK_AGAIN = "hybridgpu-ask-again"
"""No layout's name: on seeing it mig-manager says `failed`, and touches nothing (`assert --valid-config`). The label is
never taken away instead: where there is none, the operator sets `all-disabled`, and mig-manager takes all apart.
"""

Patch = Mapping[str, Any]
"""A merge patch (RFC 7386) on a Node, with the resourceVersion that it is for: another version is a conflict."""


class Progress(StrEnum):
    """How far mig-manager is with the layout that is wanted."""

    NOT_ASKED = "not-asked"
    UNKNOWN = "unknown"
    PENDING = "pending"
    REBOOTING = "rebooting"
    SUCCESS = "success"
    FAILED = "failed"
    WEDGED = "wedged"
    SILENT = "silent"


ENDED = (Progress.SUCCESS, Progress.FAILED, Progress.WEDGED, Progress.SILENT)
"""Where waiting is of no more use."""

_SAID = {"pending": Progress.PENDING, "rebooting": Progress.REBOOTING, "failed": Progress.FAILED}


@dataclass(frozen=True, slots=True)
class Mark:
    """What was asked for, in which boot of the node, and when."""

    layout: str
    boot_id: str
    at: datetime


@dataclass(frozen=True, slots=True)
class MigManager:
    """What is to be said of one node's, and `why`; `paused` are the operands' labels that it has put aside.

    `asked`: whether the Node was changed to ask it, or, where it was only looked at, would be.
    """

    progress: Progress
    why: str
    paused: tuple[str, ...] = ()
    asked: bool = False


def findings(name: str, seen: MigManager) -> tuple[Finding, ...]:
    """An error where it is not done, and by now should be."""
    if seen.progress is Progress.SUCCESS:
        return ()
    return (Finding(NOT_CUT, None, f"Node {name}: mig-manager: {seen.progress}: {seen.why}"),)


def unread(why: str) -> Finding:
    """An error for a Node that could not be asked."""
    return Finding(UNREAD, None, why)


def reading(node: Mapping[str, Any], wanted: str, boot_id: str, now: datetime) -> MigManager:
    """What a Node says of mig-manager, for the layout wanted, in the boot of this id, at a time (with a zone)."""
    labels, mark = _labels(node), _mark(node)
    paused = tuple(name for name in PAUSED_OPERANDS if labels.get(name) == PAUSED)
    there, state = labels.get(MIG_CONFIG), labels.get(MIG_CONFIG_STATE)
    if there != wanted:
        return MigManager(Progress.NOT_ASKED, f"{MIG_CONFIG} is {there or 'not set'}, not {wanted}", paused)
    if mark is None or (mark.layout, mark.boot_id) != (wanted, boot_id) or mark.at - now > PATIENCE:
        why = f"{MIG_CONFIG_STATE} is {state or 'not set'}, and may be of an earlier boot or layout"
        return MigManager(Progress.UNKNOWN, why, paused)
    if state == "success":
        # It brings its operands back before it says so; where it found the layout right, not even then.
        aside = f", and left {', '.join(paused)} aside" if paused else ""
        return MigManager(Progress.WEDGED if paused else Progress.SUCCESS, f"it has cut{aside}", paused)
    late = now - mark.at > PATIENCE
    if late and (paused or state == "pending"):
        aside = f", and {', '.join(paused)} put aside" if paused else ""
        return MigManager(Progress.WEDGED, f"it is {state} since {_minutes(now - mark.at)}{aside}", paused)
    if state in _SAID:
        return MigManager(_SAID[state], f"it says {state}", paused)
    if late:
        return MigManager(Progress.SILENT, f"no answer for {_minutes(now - mark.at)}: does its pod run on this node?")
    return MigManager(Progress.PENDING, "it has not answered yet", paused)


def ask(node: Mapping[str, Any], labels: Mapping[str, str | None], boot_id: str, now: datetime) -> tuple[Patch, ...]:
    """The patches, one after the other, by which mig-manager is asked for the layout in `labels`, its Node's as they
    must be; none where it has been asked, and is at work or has done it.

    What a mig-manager that left off has put aside is brought back: to what `labels` say, else to `true`, which is what
    it replaces. Each patch but the first is for the Node as the one before left it: `resourceVersion` is put in then.
    """
    wanted = labels.get(MIG_CONFIG)
    assert wanted is not None, "only asked where the operator delivers"  # noqa: S101
    seen = reading(node, wanted, boot_id, now)
    if seen.progress in (Progress.PENDING, Progress.REBOOTING, Progress.SUCCESS):
        return ()
    if seen.progress is Progress.WEDGED and _labels(node).get(MIG_CONFIG_STATE) == "success":
        return ({"metadata": {"labels": _brought_back(seen.paused, labels)}},)  # no more than that is missing
    mark = {MIG_ASKED: json.dumps({"layout": wanted, "boot_id": boot_id, "at": now.astimezone(UTC).isoformat()})}
    there = _labels(node)
    # "rebooting" keeps mig-manager from rebooting once more: it is not ours to take away.
    forget: dict[str, str | None] = {} if there.get(MIG_CONFIG_STATE) == "rebooting" else {MIG_CONFIG_STATE: None}
    last = {"metadata": {"labels": {MIG_CONFIG: wanted, **forget}, "annotations": mark}}
    if seen.progress is Progress.NOT_ASKED:
        # Wedged with that other layout: nobody else would bring these back, if the layout wanted is cut already.
        back = _brought_back(seen.paused, labels) if _left_off(node, boot_id, now) else {}
        return ({"metadata": {**last["metadata"], "labels": {MIG_CONFIG: wanted, **forget, **back}}},)
    back = _brought_back(seen.paused, labels) if seen.progress is not Progress.UNKNOWN else {}
    first = {"metadata": {"labels": {MIG_CONFIG: ASK_AGAIN, **forget, **back}, "annotations": {MIG_ASKED: None}}}
    return (first, last)


def _left_off(node: Mapping[str, Any], boot_id: str, now: datetime) -> bool:
    """Whether it has given up the layout that its label names, whichever that is: asked for in this boot, long ago."""
    layout = _labels(node).get(MIG_CONFIG)
    return layout is not None and reading(node, layout, boot_id, now).progress is Progress.WEDGED


def versioned(patch: Patch, node: Mapping[str, Any]) -> Patch:
    """The patch, for this version of the Node alone."""
    version = node["metadata"]["resourceVersion"]
    return {"metadata": {**patch["metadata"], "resourceVersion": version}}


def _brought_back(paused: tuple[str, ...], labels: Mapping[str, str | None]) -> dict[str, str | None]:
    return {name: labels.get(name, "true") for name in paused}


def _labels(node: Mapping[str, Any]) -> Mapping[str, str]:
    labels: Mapping[str, str] = node["metadata"].get("labels") or {}
    return labels


def _mark(node: Mapping[str, Any]) -> Mark | None:
    """Ours; None where there is none, or it is no mark that we write."""
    text = (node["metadata"].get("annotations") or {}).get(MIG_ASKED, "")
    try:
        record = json.loads(text)
        at = datetime.fromisoformat(record["at"])
        mark = Mark(record["layout"], record["boot_id"], at)
    except (KeyError, TypeError, ValueError, RecursionError):
        return None
    return mark if at.tzinfo else None


def _minutes(span: timedelta) -> str:
    return f"{int(span.total_seconds() // 60)} minutes"
