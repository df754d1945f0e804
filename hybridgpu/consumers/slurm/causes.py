"""One cause, one finding: what only follows from another finding of the same node is not told beside it.

Which findings there are is not decided here, and a daemon that dies of one stays dead.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from hybridgpu.consumers.slurm import detect, gresconf, merge, nodegres, punctuation, shares
from hybridgpu.consumers.slurm.registration import NO_REASON, NODE_INVALID
from hybridgpu.model.finding import Finding, Rule

_MISSING = frozenset((merge.GPU_WITHOUT_FILE, merge.FEWER_THAN_CONFIGURED, NODE_INVALID, shares.SHARED_NO_GPU))
_OTHERWISE = _MISSING | {
    *(merge.NOT_CONFIGURED, merge.MORE_THAN_CONFIGURED, merge.COUNTS_DIFFER, merge.TYPE_DROPPED),
    *(nodegres.TYPE_AS_COUNT, nodegres.GRES_UNREADABLE, nodegres.BARE_NAME_LAST, nodegres.MIXED_TYPES),
    nodegres.NOT_IN_TYPES,
}
_FOLLOW: Mapping[Rule, frozenset[Rule]] = {
    detect.AUTODETECT_UNKNOWN: _MISSING,
    punctuation.PUNCTUATION: _OTHERWISE,
}
"""What follows from a finding of the first rule: GPUs that nobody looks for, and entries that are not what is meant."""

_TURNS_INVALID = (
    *(merge.FEWER_THAN_CONFIGURED, merge.GPU_WITHOUT_FILE, merge.TYPE_CASE, detect.AUTODETECT_BLIND),
    *(detect.NOT_DETECTED, detect.DETECTED_DIFFERS, gresconf.CORES_INVALID),
)


def once(findings: Iterable[Finding], cut: bool = False) -> tuple[Finding, ...]:
    """The findings of one node without those that follow from others; Slurm's words on an INVALID node are put into
    the finding that says why. `cut`: of a line that the node's records come from not all was read."""
    found = list(findings)
    hidden: set[Rule] = set(_OTHERWISE if cut else ())
    for finding in found:
        hidden |= _FOLLOW.get(finding.rule, frozenset())
        if finding.rule is nodegres.NOT_IN_TYPES and finding.hint:
            hidden |= _OTHERWISE - {nodegres.NOT_IN_TYPES}
    found = [finding for finding in found if finding.rule not in hidden]
    invalid = next((finding for finding in found if finding.rule is NODE_INVALID), None)
    cause = next((finding for finding in found if invalid and _explains(finding, invalid)), None)
    if invalid is None or cause is None:
        return tuple(found)
    said = ", without a reason" if NO_REASON in invalid.message else f": {invalid.message}"
    told = replace(cause, message=f"{cause.message}; the node turns INVALID and drains{said}")
    return tuple(told if finding is cause else finding for finding in found if finding is not invalid)


def _explains(finding: Finding, invalid: Finding) -> bool:
    if finding.rule is gresconf.CORES_INVALID:
        return NO_REASON in invalid.message
    return finding.rule in _TURNS_INVALID and ("count" in invalid.message or "type" in invalid.message)
