"""What is wrong with the value of a single key of slurm.conf, in words: one check a key, no findings.

Source: S:src/common/read_config.c _validate_and_set_defaults and what it calls; slurmd -G on 22.05, 24.11, 26.05.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from hybridgpu.consumers.slurm import settingtypes as types
from hybridgpu.consumers.slurm.release import Release
from hybridgpu.consumers.slurm.values import flag, integer, minutes, unsigned
from hybridgpu.model.spelling import nearest

_SCRIPT_SIZE = 512 * 2**20
_LINE_SIZE = 2 * 2**20
_MAX_NODES = 65536
_MIN_DBD_MSGS = 10_000

Fault = str | None
"""What is wrong with a value, in words; None where nothing is."""


def type_fault(
    key: str, value: str, numbers: Mapping[str, int] = types.NUMBERS, flags: frozenset[str] = types.FLAGS
) -> Fault:
    """What is wrong with a value of a key (lower case) that takes a number or a flag."""
    bits = numbers.get(key)
    if bits and unsigned(value, bits, kilo=bits > 16) is None:
        return f"takes a whole number from 0 to {2**bits - 1}"
    if key in flags and flag(value) is None:
        return "takes yes or no"
    return None


def preempt_fault(value: str, release: Release) -> Fault:
    """What is wrong with a PreemptMode, cluster-wide or of a partition (preempt_mode_num)."""
    fault = _words("PreemptMode")(value, release)
    if fault:
        return fault
    means = [types.PREEMPT_MODES[word.lower()] for word in split(value)]
    if sum(mean not in ("gang", "within", "priority") for mean in means) > 1:
        return "takes one mode, beside GANG or WITHIN"
    if "gang" in means and {"within", "priority"} & set(means):
        return "GANG cannot stand beside WITHIN or PRIORITY"
    return None


NEVER_SUSPENDS = ("none", "infinite", "-1")
PARTITION_NEVER_SUSPENDS = ("infinite", "-1")
"""A SuspendTime that switches power saving off: of the cluster or a node, and of a partition up to 25.11, where `NONE`
is the number 0 (S:src/common/read_config.c _validate_and_set_defaults, _parse_partitionname)."""


def suspend_fault(value: str) -> Fault:
    """What is wrong with a SuspendTime (_parse_suspend_time)."""
    if value.lower() in NEVER_SUSPENDS or 0 <= _number(value) < 2**32:
        return None
    return "takes seconds, NONE or INFINITE"


def _suspend(value: str, release: Release) -> Fault:
    """SuspendTime of the cluster; up to 22.05 that of a partition only was looked at."""
    return suspend_fault(value) if "suspend-time" in release.stops_on else None


def split(value: str, at: str = ",") -> list[str]:
    """strtok: the words between separators, empty ones dropped, blanks kept."""
    return [word for word in re.split(f"[{at}]", value) if word]


def _number(text: str) -> int:
    """strtol with base 10: the number that the text begins with, 0 where it begins with none."""
    found = re.match(r"\s*[+-]?[0-9]+", text)
    return integer(found[0]) if found else 0


def unknown(word: str, allowed: tuple[str, ...]) -> str:
    """Words for a word that is none of the allowed ones, with the nearest of them."""
    near = nearest(word, allowed)
    return f"'{word}' is not known{f' (did you mean {near}?)' if near else ''}; allowed: {', '.join(allowed)}"


def _words(key: str) -> Callable[[str, Release], Fault]:
    """A check: every comma-separated word is one that the release knows."""

    def check(value: str, release: Release) -> Fault:
        allowed = (*types.WORDS.get(key, ()), *release.setting_words.get(key, ()))
        known = {word.lower() for word in allowed}
        return next((unknown(word, allowed) for word in split(value) if word.lower() not in known), None)

    return check


def _one_of(allowed: tuple[str, ...]) -> Callable[[str, Release], Fault]:
    def check(value: str, release: Release) -> Fault:
        del release
        return None if value.lower() in allowed else unknown(value, allowed)

    return check


def time_fault(value: str, least: int | None = -1) -> Fault:
    """What is wrong with a time of at least so many minutes; -1 is INFINITE, None: no bound."""
    read = minutes(value)
    if read is not None and (least is None or read >= least):
        return None
    return "takes minutes, minutes:seconds, hours:minutes:seconds or days-hours[:minutes[:seconds]]"


def _time(least: int | None) -> Callable[[str, Release], Fault]:
    def check(value: str, release: Release) -> Fault:
        del release
        return time_fault(value, least)

    return check


def _level(value: str, release: Release) -> Fault:
    del release
    known = value.lower() in types.LEVELS or value[:1].isdigit()
    return None if known else unknown(value, types.LEVELS)


def _limits(value: str, release: Release) -> Fault:
    """PropagateResourceLimits: the whole value ALL or NONE, or names of limits, in capitals."""
    del release
    allowed = types.WORDS["PropagateResourceLimits"]
    if value in ("ALL", "NONE"):
        return None
    names = [word.removeprefix("RLIMIT_") for word in split(value, ", \t\n")]
    return next((unknown(name, allowed) for name in names if name not in allowed[2:]), None)


def _least(least: int, bits: int, what: str) -> Callable[[str, Release], Fault]:
    def check(value: str, release: Release) -> Fault:
        del release
        number = unsigned(value, bits, kilo=bits > 16)
        return what if number is not None and number < least else None

    return check


def _node_count(value: str, release: Release) -> Fault:
    most = _MAX_NODES if "node-count" in release.stops_on else 2**32
    return f"is more than {most}" if (unsigned(value, 32, kilo=True) or 0) > most else None


def _priority_process(value: str, release: Release) -> Fault:
    del release
    return "takes 0, 1 or 2" if (unsigned(value, 16) or 0) > 2 else None


def _port(value: str, release: Release) -> Fault:
    """A port or a range of ports (strtol, and nothing behind it)."""
    del release
    found = re.fullmatch(r"\s*\+?([0-9]+)(?:-\s*\+?([0-9]+).*)?", value, re.DOTALL)
    if not found or integer(found[1]) <= 0 or (found[2] is not None and integer(found[2]) <= integer(found[1]) % 2**16):
        return "takes a port, or a rising range of ports as 6817-6820"
    return None


def _select(value: str, release: Release) -> Fault:
    fault = _words("SelectTypeParameters")(value, release)
    if fault:
        return fault
    units = {word.lower() for word in types.SELECT_PARAMETERS[: types.SELECT_UNITS]}
    words = [word.lower() for word in split(value)]
    if sum(word in units for word in words) > 1:
        return f"takes one of {', '.join(types.SELECT_PARAMETERS[: types.SELECT_UNITS])}"
    if any(word.startswith("cr_cpu") for word in words) and "cr_one_task_per_core" in words:
        return "CR_ONE_TASK_PER_CORE cannot stand beside CR_CPU*; write CR_Core*"
    return None


def _task(value: str, release: Release) -> Fault:
    allowed = (*types.TASK_UNITS, "verbose", *(f"autobind={bind}" for bind in types.TASK_BINDS))
    allowed += release.setting_words["TaskPluginParam"]
    words = [word.lower() for word in split(value)]
    other = next((word for word in words if word not in {a.lower() for a in allowed}), None)
    if other:
        return unknown(other, allowed)
    if sum(word in types.TASK_UNITS for word in words) > 1:
        return f"takes one of {', '.join(types.TASK_UNITS)}"
    if sum(word.startswith("autobind=") for word in words) > 1:
        return "autobind= stands there twice"
    return None


def _excluded_paths(value: str, release: Release) -> Fault:
    del release
    if value.lower() == "none":
        return None
    return next((f"'{path}' is no absolute path" for path in split(value) if not path.startswith("/")), None)


def _sizes(value: str, release: Release) -> Fault:
    """SchedulerParameters: the two sizes that are bounded."""
    bounds = {"max_script_size=": _SCRIPT_SIZE}
    if "submit-line" in release.stops_on:
        bounds["max_submit_line_size="] = _LINE_SIZE
    for word, most in bounds.items():
        at = value.lower().find(word)
        if at >= 0 and _number(value[at + len(word) :]) > most:
            return f"{word[:-1]} is more than {most}"
    return None


def _networks(value: str, release: Release) -> Fault:
    del release
    off = "disableipv4" in value.lower() and "enableipv6" not in value.lower()
    return "switches IPv4 off and IPv6 not on" if off else None


def _health_states(value: str, release: Release) -> Fault:
    words = {word.lower() for word in split(value)} & set(types.HEALTH_STATES)
    for alone in types.HEALTH_ALONE if "health-states" in release.stops_on else ():
        if alone.lower() in words and len(words) > 1:
            return f"{alone} stands alone"
    return None


def _both(first: str, second: str) -> Callable[[str, Release], Fault]:
    def check(value: str, release: Release) -> Fault:
        del release
        both = first.lower() in value.lower() and second.lower() in value.lower()
        return f"{first} and {second} exclude each other" if both else None

    return check


def _removed(value: str, release: Release) -> Fault:
    del value
    return f"the key has been removed from Slurm; release {release} dies of it"


def _no_mysql(value: str, release: Release) -> Fault:
    del release
    spoiled = "mysql" in value.lower() and "none" not in value.lower()
    return "accounting_storage/mysql is slurmdbd's; write accounting_storage/slurmdbd" if spoiled else None


def _hashes(value: str, release: Release) -> Fault:
    del release
    names = [word.removeprefix("hash/") for word in split(value)]
    return next((unknown(f"hash/{name}", types.HASHES) for name in names if f"hash/{name}" not in types.HASHES), None)


def _tls(value: str, release: Release) -> Fault:
    wrong = "tls-type" in release.stops_on and value not in types.TLS_TYPES
    return unknown(value, types.TLS_TYPES) if wrong else None


def _certificates(value: str, release: Release) -> Fault:
    del release
    return None if value in types.CERTIFICATES else unknown(value, types.CERTIFICATES)


CHECKS: Mapping[str, Callable[[str, Release], Fault]] = {
    "AccountingStorageEnforce": _words("AccountingStorageEnforce"),
    "AccountingStorageLoc": _removed,
    "AccountingStorageType": _no_mysql,
    "AccountingStoreJobComment": _removed,
    "BcastExclude": _excluded_paths,
    "CertmgrType": _certificates,
    "CommunicationParameters": _networks,
    "DebugFlags": _words("DebugFlags"),
    "EnforcePartLimits": _one_of(types.ENFORCE_LIMITS),
    "FirstJobId": _least(1, 32, "cannot be 0"),
    "HashPlugin": _hashes,
    "HealthCheckNodeState": _health_states,
    "JobAcctGatherParams": _both("UsePss", "NoShared"),
    "LaunchParameters": _both("enable_nss_slurm", "disable_send_gids"),
    "MaxDBDMsgs": _least(_MIN_DBD_MSGS, 32, f"must be at least {_MIN_DBD_MSGS}"),
    "MaxJobCount": _least(1, 32, "permits no job"),
    "MaxNodeCount": _node_count,
    "MaxStepCount": _least(1, 32, "permits no step"),
    "PreemptExemptTime": _time(None),
    "PreemptMode": preempt_fault,
    "PriorityCalcPeriod": _time(1),
    "PriorityDecayHalfLife": _time(-1),
    "PriorityMaxAge": _time(-1),
    "PriorityUsageResetPeriod": _one_of(types.RESET_PERIODS),
    "PropagatePrioProcess": _priority_process,
    "PropagateResourceLimits": _limits,
    "PropagateResourceLimitsExcept": _limits,
    "SallocDefaultCommand": _removed,
    "SchedulerParameters": _sizes,
    "SelectTypeParameters": _select,
    "SlurmctldPort": _port,
    "SuspendTime": _suspend,
    "TLSType": _tls,
    "TaskPluginParam": _task,
    **dict.fromkeys(types.LEVEL_KEYS, _level),
}
