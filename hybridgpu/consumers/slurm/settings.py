"""Values of slurm.conf's single keys that stop every daemon: numbers that are none, unknown words, keys that exclude
each other, and keys that must be there.

What a setting means for GPUs is the cluster's (module cluster). Source: S:src/common/read_config.c
_validate_and_set_defaults, _load_slurmctld_host; slurmd -G on 22.05, 24.11, 26.05.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from hybridgpu.consumers.slurm import settingtypes as types
from hybridgpu.consumers.slurm.conf import SlurmFiles
from hybridgpu.consumers.slurm.release import Release
from hybridgpu.consumers.slurm.values import flag, minutes, unsigned
from hybridgpu.consumers.slurm.verdict import Verdict
from hybridgpu.files.slurmlines import Pair
from hybridgpu.model.finding import Place, Related, Rule, Severity
from hybridgpu.model.spelling import nearest

BAD_SETTING = Rule(
    "slurm-bad-setting",
    Severity.ERROR,
    "The value is none that the key takes: every daemon stops with a fatal error.",
    "Write one of the values allowed.",
    "S:src/common/read_config.c _validate_and_set_defaults, S:src/common/parse_value.c; slurmd -G of 3 releases",
)
SETTINGS_EXCLUDE = Rule(
    "slurm-settings-exclude",
    Severity.ERROR,
    "The settings exclude each other: every daemon stops with a fatal error.",
    "Change one of them.",
    "S:src/common/read_config.c _validate_and_set_defaults; slurmd -G on 22.05, 24.11, 26.05",
)
SETTING_MISSING = Rule(
    "slurm-setting-missing",
    Severity.ERROR,
    "slurm.conf lacks a key without which every daemon stops with a fatal error.",
    "Write ClusterName and SlurmctldHost.",
    "S:src/common/read_config.c _validate_and_set_defaults, _load_slurmctld_host; slurmd -G on 22.05, 24.11, 26.05",
)

RULES = (BAD_SETTING, SETTINGS_EXCLUDE, SETTING_MISSING)

_MAX_INT = 2**31 - 1
_SCRIPT_SIZE = 512 * 2**20
_LINE_SIZE = 2 * 2**20
_MAX_NODES = 65536
_MAX_JOB_ID = 0x03FF0000
_MIN_DBD_MSGS = 10_000

Fault = str | None
"""What is wrong with a value, in words; None where nothing is."""


def judge(files: SlurmFiles, release: Release, verdict: Verdict) -> None:
    """Every value that stops a daemon, and what must be there and is not."""
    for key, pairs in files.settings.items():
        for pair in pairs:
            fault = None if key in _lower(release.defunct_keys) else type_fault(key, pair.value)
            if fault:
                verdict.die(BAD_SETTING, pair.place, f"{pair.key}={pair.value}: {fault}")
    for key, check in _CHECKS.items():
        setting = files.setting(key)
        fault = check(setting.value, release) if setting else None
        if setting and fault:
            verdict.die(BAD_SETTING, setting.place, f"{setting.key}={setting.value}: {fault}")
    for pairs_, message in _exclusions(files, release):
        related = [Related(pair.place, f"{pair.key}={pair.value} stands here") for pair in pairs_[1:]]
        verdict.die(SETTINGS_EXCLUDE, pairs_[0].place, message, related=related)
    if files.complete:
        _judge_missing(files, verdict)


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
    means = [types.PREEMPT_MODES[word.lower()] for word in _split(value)]
    if sum(mean not in ("gang", "within", "priority") for mean in means) > 1:
        return "takes one mode, beside GANG or WITHIN"
    if "gang" in means and {"within", "priority"} & set(means):
        return "GANG cannot stand beside WITHIN or PRIORITY"
    return None


def suspend_fault(value: str, release: Release) -> Fault:
    """What is wrong with a SuspendTime (_parse_suspend_time)."""
    if value.upper() in ("NONE", "INFINITE", "-1") or "suspend-time" not in release.stops_on:
        return None
    return None if 0 <= _number(value) < 2**32 else "takes seconds, NONE or INFINITE"


def _lower(keys: frozenset[str]) -> frozenset[str]:
    return frozenset(key.lower() for key in keys)


def _split(value: str, at: str = ",") -> list[str]:
    """strtok: the words between separators, empty ones dropped, blanks kept."""
    return [word for word in re.split(f"[{at}]", value) if word]


def _number(text: str) -> int:
    """strtol with base 10: the number that the text begins with, 0 where it begins with none."""
    found = re.match(r"\s*[+-]?[0-9]+", text)
    return int(found[0]) if found else 0


def _unknown(word: str, allowed: tuple[str, ...]) -> str:
    near = nearest(word, allowed)
    return f"'{word}' is not known{f' (did you mean {near}?)' if near else ''}; allowed: {', '.join(allowed)}"


def _words(key: str) -> Callable[[str, Release], Fault]:
    """A check: every comma-separated word is one that the release knows."""

    def check(value: str, release: Release) -> Fault:
        allowed = (*types.WORDS.get(key, ()), *release.setting_words.get(key, ()))
        known = {word.lower() for word in allowed}
        return next((_unknown(word, allowed) for word in _split(value) if word.lower() not in known), None)

    return check


def _one_of(allowed: tuple[str, ...]) -> Callable[[str, Release], Fault]:
    def check(value: str, release: Release) -> Fault:
        del release
        return None if value.lower() in allowed else _unknown(value, allowed)

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
    return None if known else _unknown(value, types.LEVELS)


def _limits(value: str, release: Release) -> Fault:
    """PropagateResourceLimits: the whole value ALL or NONE, or names of limits, in capitals."""
    del release
    allowed = types.WORDS["PropagateResourceLimits"]
    if value in ("ALL", "NONE"):
        return None
    names = [word.removeprefix("RLIMIT_") for word in _split(value, ", \t\n")]
    return next((_unknown(name, allowed) for name in names if name not in allowed[2:]), None)


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
    if not found or int(found[1]) <= 0 or (found[2] is not None and int(found[2]) <= int(found[1]) % 2**16):
        return "takes a port, or a rising range of ports as 6817-6820"
    return None


def _select(value: str, release: Release) -> Fault:
    fault = _words("SelectTypeParameters")(value, release)
    if fault:
        return fault
    units = {word.lower() for word in types.SELECT_PARAMETERS[: types.SELECT_UNITS]}
    words = [word.lower() for word in _split(value)]
    if sum(word in units for word in words) > 1:
        return f"takes one of {', '.join(types.SELECT_PARAMETERS[: types.SELECT_UNITS])}"
    if any(word.startswith("cr_cpu") for word in words) and "cr_one_task_per_core" in words:
        return "CR_ONE_TASK_PER_CORE cannot stand beside CR_CPU*; write CR_Core*"
    return None


def _task(value: str, release: Release) -> Fault:
    allowed = (*types.TASK_UNITS, "verbose", *(f"autobind={bind}" for bind in types.TASK_BINDS))
    allowed += release.setting_words["TaskPluginParam"]
    words = [word.lower() for word in _split(value)]
    unknown = next((word for word in words if word not in {a.lower() for a in allowed}), None)
    if unknown:
        return _unknown(unknown, allowed)
    if sum(word in types.TASK_UNITS for word in words) > 1:
        return f"takes one of {', '.join(types.TASK_UNITS)}"
    if sum(word.startswith("autobind=") for word in words) > 1:
        return "autobind= stands there twice"
    return None


def _excluded_paths(value: str, release: Release) -> Fault:
    del release
    if value.lower() == "none":
        return None
    return next((f"'{path}' is no absolute path" for path in _split(value) if not path.startswith("/")), None)


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
    words = {word.lower() for word in _split(value)} & set(types.HEALTH_STATES)
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


_CHECKS: Mapping[str, Callable[[str, Release], Fault]] = {
    "AccountingStorageEnforce": _words("AccountingStorageEnforce"),
    "AccountingStorageLoc": _removed,
    "AccountingStorageType": _no_mysql,
    "AccountingStoreJobComment": _removed,
    "BcastExclude": _excluded_paths,
    "CommunicationParameters": _networks,
    "DebugFlags": _words("DebugFlags"),
    "EnforcePartLimits": _one_of(types.ENFORCE_LIMITS),
    "FirstJobId": _least(1, 32, "cannot be 0"),
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
    "ReconfigFlags": _words("ReconfigFlags"),
    "SallocDefaultCommand": _removed,
    "SchedulerParameters": _sizes,
    "SelectTypeParameters": _select,
    "SlurmctldPort": _port,
    "SuspendTime": suspend_fault,
    "TaskPluginParam": _task,
    **dict.fromkeys(types.LEVEL_KEYS, _level),
}


def _exclusions(files: SlurmFiles, release: Release) -> Iterator[tuple[list[Pair], str]]:
    """Pairs of settings that no daemon takes together, the one to change first, and why."""
    get = files.setting
    mode, kind = get("PreemptMode"), get("PreemptType")
    plain = kind is None or kind.value == "preempt/none"
    words = {types.PREEMPT_MODES.get(word.lower()) for word in _split(mode.value)} if mode else set()
    acts = bool(words - {"off", "gang", None} - ({"within", "priority"} if not plain else set()))
    if mode and words == {"suspend"}:
        yield [mode], f"{mode.key}={mode.value} needs GANG too"
    if mode and plain and acts:
        yield [mode, *([kind] if kind else [])], f"{mode.key}={mode.value} without PreemptType"
    if kind and kind.value in ("preempt/qos", "preempt/partition_prio") and not acts:
        said = f"PreemptMode={mode.value}" if mode else "no PreemptMode"
        yield [kind, *([mode] if mode else [])], f"{kind.key}={kind.value} with {said}"
    yield from _counts(files, release)
    plugin, params = get("MCSPlugin"), get("MCSParameters")
    if params and not plugin:
        yield [params], f"{params.key}={params.value} without MCSPlugin"
    if plugin and plugin.value == "mcs/group" and not params:
        yield [plugin], f"{plugin.key}={plugin.value} without MCSParameters"
    level = get("SlurmSchedLogLevel")
    if level and unsigned(level.value, 16) and not get("SlurmSchedLogFile"):
        yield [level], f"{level.key}={level.value} without SlurmSchedLogFile"
    decay = get("PriorityDecayHalfLife")
    if decay and minutes(decay.value) == 0 and not get("PriorityUsageResetPeriod"):
        yield [decay], f"{decay.key}={decay.value} without PriorityUsageResetPeriod: usage would grow for ever"
    yield from _plugins(files, release)


def _counts(files: SlurmFiles, release: Release) -> Iterator[tuple[list[Pair], str]]:
    first, last = files.setting("FirstJobId"), files.setting("MaxJobId")
    low = unsigned(first.value, 32, kilo=True) if first else 1
    high = unsigned(last.value, 32, kilo=True) if last else _MAX_JOB_ID
    if low is not None and high is not None and low > min(high, 0x03FFFFFF):
        pair = first or last
        if pair:
            yield [pair, *([last] if first and last else [])], f"FirstJobId {low} is more than MaxJobId {high}"
    nodes, select = files.setting("MaxNodeCount"), files.setting("SelectType")
    chosen = select.value if select else release.select_default
    counted = nodes and (unsigned(nodes.value, 32, kilo=True) or "node-count" in release.stops_on)
    if nodes and counted and "cons_tres" not in chosen:
        yield [nodes, *([select] if select else [])], f"{nodes.key}={nodes.value} with SelectType={chosen}"


def _plugins(files: SlurmFiles, release: Release) -> Iterator[tuple[list[Pair], str]]:
    select, topology = files.setting("SelectType"), files.setting("TopologyPlugin")
    linear = (select.value if select else release.select_default).lower() == "select/linear"
    if topology and linear and topology.value.lower() == "topology/tree" and "linear-tree" in release.stops_on:
        yield [topology, *([select] if select else [])], f"{topology.key}={topology.value} with select/linear"
    param, plugin = files.setting("TaskPluginParam"), files.setting("TaskPlugin")
    used = plugin.value if plugin and "none" not in plugin.value.lower() else ""
    words = {word.lower() for word in _split(param.value)} if param else set()
    for word in ("oomkillstep", "slurmdspecoverride"):
        if param and word in words and "cgroup" not in used:
            yield [param, *([plugin] if plugin else [])], f"{param.key}={param.value} without task/cgroup in TaskPlugin"
    if param and {"slurmdoffspec", "slurmdspecoverride"} <= words:
        yield [param], f"{param.key}={param.value}: SlurmdOffSpec and SlurmdSpecOverride exclude each other"


def _judge_missing(files: SlurmFiles, verdict: Verdict) -> None:
    name = files.setting("ClusterName")
    start = Place(files.slurm_conf, 1)
    if name is None or not name.value:
        verdict.die(SETTING_MISSING, name.place if name else start, "ClusterName is not set")
    if files.records.get("slurmctldhost"):
        return
    control, address = files.setting("ControlMachine"), files.setting("ControlAddr")
    backup = files.setting("BackupAddr")
    if control is None:
        verdict.die(SETTING_MISSING, start, "there is no SlurmctldHost")
    elif "," in control.value and address is None:
        verdict.die(SETTING_MISSING, control.place, f"{control.key}={control.value} without ControlAddr")
    elif backup and not files.setting("BackupController"):
        verdict.die(SETTING_MISSING, backup.place, f"{backup.key}={backup.value} without BackupController")
