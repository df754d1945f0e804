"""Values of slurm.conf's single keys that stop every daemon: numbers that are none, unknown words, keys that exclude
each other, and keys that must be there.

What a setting means for GPUs is the cluster's (module cluster). Source: S:src/common/read_config.c
_validate_and_set_defaults, _load_slurmctld_host; slurmd -G on 22.05, 24.11, 26.05.
"""

from __future__ import annotations

from collections.abc import Iterator

from hybridgpu.consumers.slurm import settingtypes as types
from hybridgpu.consumers.slurm.conf import SlurmFiles
from hybridgpu.consumers.slurm.release import Release
from hybridgpu.consumers.slurm.settingchecks import CHECKS, split, type_fault
from hybridgpu.consumers.slurm.values import minutes, unsigned
from hybridgpu.consumers.slurm.verdict import Verdict
from hybridgpu.files.slurmlines import Pair
from hybridgpu.model.finding import Place, Related, Rule, Severity

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


def judge(files: SlurmFiles, release: Release, verdict: Verdict) -> None:
    """Every value that stops a daemon, and what must be there and is not."""
    defunct = {key.lower() for key in release.defunct_keys}
    for key, pairs in files.settings.items():
        for pair in pairs:
            fault = None if key in defunct else type_fault(key, pair.value)
            if fault:
                verdict.die(BAD_SETTING, pair.place, f"{pair.key}={pair.value}: {fault}")
    for key, check in CHECKS.items():
        setting = files.setting(key)
        fault = check(setting.value, release) if setting else None
        if setting and fault:
            verdict.die(BAD_SETTING, setting.place, f"{setting.key}={setting.value}: {fault}")
    for pairs_, message in _exclusions(files, release):
        related = [Related(pair.place, f"{pair.key}={pair.value} stands here") for pair in pairs_[1:]]
        verdict.die(SETTINGS_EXCLUDE, pairs_[0].place, message, related=related)
    if files.complete:
        _judge_missing(files, verdict)


_MAX_JOB_ID = 0x03FF0000
_LAST_JOB_ID = 0x03FFFFFF


def _exclusions(files: SlurmFiles, release: Release) -> Iterator[tuple[list[Pair], str]]:
    """Pairs of settings that no daemon takes together, the one to change first, and why."""
    get = files.setting
    mode, kind = get("PreemptMode"), get("PreemptType")
    plain = kind is None or kind.value == "preempt/none"
    words = {types.PREEMPT_MODES.get(word.lower()) for word in split(mode.value)} if mode else set()
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
    if low is not None and high is not None and low > min(high, _LAST_JOB_ID):
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
    resources = files.setting("SelectTypeParameters")
    units = {unit.lower() for unit in types.SELECT_PARAMETERS[: types.SELECT_UNITS]} - {"cr_memory"}
    named = units & {word.lower() for word in split(resources.value)} if resources else set[str]()
    if resources and named and linear and "select-type" in release.stops_on:
        message = f"{resources.key}={resources.value} with select/linear, which takes CR_Memory"
        yield [resources, *([select] if select else [])], message
    param, plugin = files.setting("TaskPluginParam"), files.setting("TaskPlugin")
    used = plugin.value if plugin and "none" not in plugin.value.lower() else ""
    words = {word.lower() for word in split(param.value)} if param else set()
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
