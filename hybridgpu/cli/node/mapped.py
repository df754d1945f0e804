"""The part of the DeviceMap in `node apply`: written anew where it is not as it must be, foreseen in a dry run. Its
trouble is a finding: by then cards may have been cut, and that is told, too.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hybridgpu.errors import Refused, Unavailable
from hybridgpu.model.finding import Finding

if TYPE_CHECKING:
    from hybridgpu.cli.node.report import Report
    from hybridgpu.devices.bind import Bound
    from hybridgpu.devices.port import Unread
    from hybridgpu.model.facts import Facts


@dataclass(frozen=True, slots=True)
class Seen:
    """What the driver and the kernel say of a node whose cards are the right ones; `files` are those in /dev."""

    facts: Facts
    files: frozenset[str] | Unread


def write_map(report: Report, path: Path, look: Callable[[], Seen]) -> tuple[Finding, ...]:
    """Writes the map of cards that are as wanted, where it is another or not readable for all; gives what is wrong."""
    from hybridgpu.devices.devicemap import NOT_WRITTEN, write

    report.devices, report.bound = None, ()
    try:
        seen = look()
        bound, content = _bound(report, seen.facts, seen.files)
        if content is None or bound.devices is None:
            return bound.findings
        if not _is_there(path, content):
            write(path, content)
            report.map_changed = True
    except Refused as refused:
        return refused.findings
    except Unavailable as trouble:
        return (Finding(NOT_WRITTEN, None, str(trouble)),)
    except OSError as error:
        return (Finding(NOT_WRITTEN, None, f"{error.filename or path}: {error.strerror}"),)
    report.devices, report.bound = path, bound.devices.devices
    return bound.findings


def foresee_map(report: Report, path: Path, seen: Seen) -> tuple[Finding, ...]:
    """What is known before the cut to be wrong of the map: a whole card's files do not change with it."""
    from hybridgpu.devices.bind import CUT_DIFFERS
    from hybridgpu.devices.outcome import State

    bound, content = _bound(report, _as_cut(report, seen.facts), seen.files)
    outcomes = report.application.outcomes if report.application else ()
    if all(outcome.state.good or outcome.state is State.PLANNED for outcome in outcomes):
        to_cut = any(outcome.left for outcome in outcomes)
        report.map_changed = to_cut or (content is not None and not _is_there(path, content))
    return tuple(finding for finding in bound.findings if finding.rule is not CUT_DIFFERS)


def _bound(report: Report, facts: Facts, files: frozenset[str] | Unread) -> tuple[Bound, str | None]:
    from hybridgpu.devices.bind import bind
    from hybridgpu.devices.devicemap import as_json, boot_id

    bound = bind(report.wanted, facts, files, boot_id())
    return bound, None if bound.devices is None else as_json(bound.devices)


def _as_cut(report: Report, facts: Facts) -> Facts:
    """The facts with each card whole that is to be: what is to be cut is not known before."""
    from dataclasses import replace

    whole = {card.index for card in report.wanted.cards if not card.mig}
    gpus = tuple(
        replace(gpu, mig_enabled=False, instances=()) if gpu.mig_enabled and gpu.index in whole else gpu
        for gpu in facts.gpus
    )
    return replace(facts, gpus=gpus)


def _is_there(path: Path, content: str) -> bool:
    """Whether the map is there, 0644 and ours: whoever may write it says which card a job gets."""
    from hybridgpu.files.tree import read_file

    if read_file(path.parent, path.name) != content.encode():
        return False
    status = os.lstat(path)
    return stat.S_IMODE(status.st_mode) == 0o644 and status.st_uid == os.geteuid()
