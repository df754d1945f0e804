"""The plugins that slurm.conf names: whether the release has them. What they do is said elsewhere.

Source: S:src/plugins of each release; S:src/interfaces/select.c, task.c, proctrack.c (slurmd and slurmctld of 22.05,
24.11, 26.05).
"""

from __future__ import annotations

from hybridgpu.consumers.slurm.conf import SlurmFiles
from hybridgpu.consumers.slurm.release import Release, history
from hybridgpu.consumers.slurm.verdict import Verdict
from hybridgpu.files.slurmlines import Pair
from hybridgpu.model.finding import Finding, Rule, Severity
from hybridgpu.model.spelling import is_slip, nearest

SELECT_UNKNOWN = Rule(
    "slurm-select-type-unknown",
    Severity.ERROR,
    "There is no such plugin: slurmctld stops with a fatal error, and up to 23.02 every slurmd too.",
    "Write SelectType=select/cons_tres.",
    "S:src/interfaces/select.c select_g_init; slurmd -G on 22.05; slurmctld of 24.11, 26.05",
)
PLUGIN_UNKNOWN = Rule(
    "slurm-plugin-unknown",
    Severity.ERROR,
    "There is no such plugin: the daemons that load it stop with a fatal error (TaskPlugin and ProctrackType: slurmd).",
    "Write the plugin's right name.",
    "S:src/interfaces/task.c task_g_init, proctrack.c proctrack_g_init; slurmd and slurmctld of 22.05, 24.11, 26.05",
)

RULES = (SELECT_UNKNOWN, PLUGIN_UNKNOWN)

_OTHERS = {
    "AccountingStorageType": ("accounting_storage", "slurmdbd ctld_relay"),
    "AcctGatherEnergyType": ("acct_gather_energy", "gpu ibmaem ipmi pm_counters rapl xcc cray_aries"),
    "AcctGatherProfileType": ("acct_gather_profile", "hdf5 influxdb"),
    "AuthType": ("auth", "jwt munge slurm"),
    "CredType": ("cred", "munge"),
    "JobAcctGatherType": ("jobacct_gather", "cgroup linux"),
    "JobCompType": ("jobcomp", "elasticsearch filetxt kafka lua mysql script"),
    "JobContainerType": ("job_container", "cncu tmpfs"),
    "PreemptType": ("preempt", "partition_prio qos"),
    "PriorityType": ("priority", "basic multifactor"),
    "SchedulerType": ("sched", "backfill builtin"),
    "SwitchType": ("switch", "cray_aries hpe_slingshot nvidia_imex"),
    "TopologyPlugin": ("topology", "3d_torus block default flat hypercube ring torus3d tree"),
}
"""Other keys and the plugins that some release we know has; sites write plugins of their own, so that of these only
slips of the pen are told."""


def task_plugins(files: SlurmFiles, release: Release) -> tuple[str, ...] | None:
    """The task plugins in force by their full names: the prefix may be left out, and from 23.11 `none` anywhere in the
    value means none at all. None where slurm.conf does not say.
    """
    pair = files.setting("TaskPlugin")
    if pair is None:
        return None
    if "none" in pair.value.lower() and "task/none" not in release.setting_words["TaskPlugin"]:
        return ()
    return tuple(f"task/{word.removeprefix('task/')}" for word in pair.value.split(",") if word)


def judge(files: SlurmFiles, release: Release, verdict: Verdict) -> None:
    """Every plugin that the release does not have."""
    select = files.setting("SelectType")
    if select and (fault := _fault("SelectType", select.value, release)):
        finding = Finding(SELECT_UNKNOWN, select.place, f"{select.key}={select.value}: {fault[0]}", fault[1])
        verdict.take([finding], "select-type" in release.stops_on)
    own = files.setting("PluginDir") is not None
    track = files.setting("ProctrackType")
    words = [(track, track.value)] if track else []
    plugin = files.setting("TaskPlugin")
    words += [(plugin, word) for word in task_plugins(files, release) or ()] if plugin else []
    for pair, word in words:
        fault = _fault("ProctrackType" if pair is track else "TaskPlugin", word, release)
        if fault and not (own and not fault[1]):
            verdict.note(PLUGIN_UNKNOWN, pair.place, f"{pair.key}={pair.value}: {fault[0]}", fault[1])
    for key, (prefix, names) in _OTHERS.items():
        other = files.setting(key)
        if other and (meant := _slip(other, prefix, names.split())):
            verdict.note(PLUGIN_UNKNOWN, other.place, f"{key}={other.value} is no plugin", f"did you mean {meant}?")


def _fault(key: str, word: str, release: Release) -> tuple[str, str] | None:
    """What is wrong with a plugin's name, and a hint."""
    allowed = release.setting_words[key]
    if word in allowed:
        return None
    past = history(word, release, lambda other: other.setting_words[key])
    prefix = allowed[0].partition("/")[0]
    near = nearest(word.rpartition("/")[2], [name.partition("/")[2] for name in allowed])
    if past:
        return f"{word} {past.replace('dropped', 'removed')}, Slurm {release} has no such plugin", f"write {allowed[0]}"
    return (
        f"'{word}' is no plugin of Slurm {release}; it has {', '.join(allowed)}",
        f"did you mean {prefix}/{near}?" if near else "",
    )


def _slip(pair: Pair, prefix: str, names: list[str]) -> str:
    """The plugin that a name stands for which is none; empty where it is one, or no slip."""
    value = pair.value
    known = [f"{prefix}/{name}" for name in names]
    if value in known or "none" in value.lower() or not value:
        return ""
    head, slash, bare = value.rpartition("/")
    near = nearest(bare, names)
    meant = near and (is_slip(bare, near) and (not slash or is_slip(head, prefix)))
    return f"{prefix}/{near}" if meant else ""
