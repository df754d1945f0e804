"""cgroup.conf: which keys a release knows, and what each takes. slurmd and slurmctld read it as they start.

What the settings do to jobs is not known here. Source: S:src/interfaces/cgroup.c _read_slurm_cgroup_conf.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hybridgpu.consumers.slurm.conf import DOUBLED_KEY, UNKNOWN_KEY, SlurmFiles, stops, unknown_key
from hybridgpu.consumers.slurm.release import CgroupValue, Release, history
from hybridgpu.consumers.slurm.values import flag, is_float, unsigned
from hybridgpu.consumers.slurm.verdict import Verdict
from hybridgpu.model.finding import Finding, Related, Rule, Severity

if TYPE_CHECKING:
    from hybridgpu.files.slurmlines import Pair

BAD_VALUE = Rule(
    "slurm-cgroup-bad-value",
    Severity.ERROR,
    "The value is none that the key takes: every daemon that reads cgroup.conf stops with a fatal error.",
    "Write one of the values allowed; a number has no unit.",
    "S:src/common/parse_value.c; slurmd -G on 22.05, 24.11, 26.05",
)
DEAD_KEY = Rule(
    "slurm-cgroup-key-without-effect",
    Severity.WARNING,
    "The key does nothing any more, and its daemons complain of it at every start.",
    "Remove the key.",
    "S:src/interfaces/cgroup.c _defunct_option; slurmd -G on 22.05, 24.11, 26.05",
)
TOO_HIGH = Rule(
    "slurm-cgroup-swappiness-too-high",
    Severity.WARNING,
    "Slurm takes 100 instead, with an error in the log at every start.",
    "Write a number from 0 to 100.",
    "S:src/interfaces/cgroup.c _read_slurm_cgroup_conf; slurmd -G on 22.05, 24.11, 26.05",
)

RULES = (BAD_VALUE, DEAD_KEY, TOO_HIGH)

_ALLOWED = {
    "flag": "yes, no",
    "percent": "a number, as 95.5",
    "number": "a whole number from 0",
}


def judge(files: SlurmFiles, release: Release, verdict: Verdict) -> None:
    """Everything that Slurm finds in cgroup.conf as it reads it; nothing where the file is not given."""
    verdict.take(files.cgroup_findings, stops(files.cgroup_findings))
    for pairs in (files.cgroup or {}).values():
        for pair in pairs:
            _judge_pair(pair, release, verdict)
        if len(pairs) > 1:
            last = pairs[-1]
            related = [Related(pair.place, f"{pair.key}={pair.value} stands here") for pair in pairs[:-1]]
            message = f"{last.key} is there twice; {last.key}={last.value} holds"
            verdict.note(DOUBLED_KEY, last.place, message, related=related)


def allowed_keys(release: Release) -> tuple[str, ...]:
    """The keys that the release takes and that do something there."""
    dead = ("defunct", "obsolete", "removed")
    return tuple(sorted(key for key, takes in release.cgroup_keys.items() if takes not in dead))


def _judge_pair(pair: Pair, release: Release, verdict: Verdict) -> None:
    spelled = {key.lower(): key for key in release.cgroup_keys}
    key = spelled.get(pair.key.lower())
    if key is None:
        verdict.take([_unknown(pair, release)], fatal=True)
        return
    takes = release.cgroup_keys[key]
    if takes == "removed":
        message = f"{key} has been removed from Slurm: release {release} dies of it"
        verdict.die(UNKNOWN_KEY, pair.place, message, "remove the key")
    elif takes in ("defunct", "obsolete"):
        verdict.note(DEAD_KEY, pair.place, f"{key} has no effect in Slurm {release}")
    elif not _taken(pair.value, takes, release):
        allowed = _ALLOWED.get(takes) or ", ".join(release.cgroup_plugins)
        message = f"{key}={pair.value} is not taken by Slurm {release}; allowed: {allowed}"
        verdict.die(BAD_VALUE, pair.place, message)
    elif key == "MemorySwappiness" and (unsigned(pair.value, 64, kilo=True) or 0) > 100:
        verdict.note(TOO_HIGH, pair.place, f"{key}={pair.value} is more than 100")


def _taken(value: str, takes: CgroupValue, release: Release) -> bool:
    match takes:
        case "flag":
            return flag(value) is not None
        case "percent":
            return is_float(value)
        case "plugin":
            return value in release.cgroup_plugins
        case "number":
            return unsigned(value, 64, kilo=True) is not None
        case _:
            return True


def _unknown(pair: Pair, release: Release) -> Finding:
    past = history(pair.key, release, lambda other: other.cgroup_keys)
    if past:
        return Finding(UNKNOWN_KEY, pair.place, f"{pair.key} {past}; Slurm {release} does not know it")
    return unknown_key(pair, allowed_keys(release), "allowed in cgroup.conf are")
