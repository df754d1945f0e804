"""What each key of slurm.conf takes: numbers and their widths, flags, lists of words. Tables only, read by `settings`.

What differs between releases is in `release`. Source: S:src/common/read_config.c slurm_conf_options,
_parse_partitionname and the functions named beside each table, on the branch of each release.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

Stop = Literal[
    "suspend-time",
    "submit-line",
    "linear-tree",
    "node-count",
    "nodeset-names",
    "health-states",
    "select-type",
    "partition-preempt",
    "tls-type",
]
"""Settings that stop the daemons of some releases only: SuspendTime beyond 32 bits, max_submit_line_size beyond 2 MiB,
topology/tree under select/linear, MaxNodeCount beyond 65536, a NodeSet with the name of a node,
HealthCheckNodeState=START_ONLY beside others, a SelectType or TLSType that has no plugin, a wrong PreemptMode of a
partition."""

_BITS_16 = """AccountingStoragePort AcctGatherNodeFreq BatchStartTimeout CompleteWait EioTimeout EpilogTimeout
ExtSensorsFreq FairShareDampeningFactor FastSchedule GetEnvTimeout GroupUpdateForce GroupUpdateTime
HealthCheckInterval HealthCheckTimeout
InactiveLimit JobFileAppend JobRequeue KillOnBadExit KillWait MaxTasksPerNode MessageTimeout OverTimeLimit
PrologEpilogTimeout PrologTimeout PropagatePrioProcess ResumeRate ResumeTimeout ResvOverRun ReturnToService
SchedulerTimeSlice SlurmSchedLogLevel SlurmctldTimeout SlurmdTimeout SuspendRate SuspendTimeout TCPTimeout TreeWidth
UnkillableStepTimeout VSizeFactor WaitTime"""
_BITS_32 = """EpilogMsgTime FirstJobId JobCompPort KeepAliveTime MaxArraySize MaxBatchRequeue MaxDBDMsgs MaxJobCount
MaxJobId MaxNodeCount MaxStepCount MinJobAge PriorityWeightAge PriorityWeightAssoc PriorityWeightFairshare
PriorityWeightJobSize PriorityWeightPartition PriorityWeightQOS SlurmdPort"""
_BITS_64 = "DefCPUPerGPU DefMemPerCPU DefMemPerGPU DefMemPerNode MaxMemPerCPU MaxMemPerNode"

NUMBERS: Mapping[str, int] = {
    **dict.fromkeys(_BITS_16.lower().split(), 16),
    **dict.fromkeys(_BITS_32.lower().split(), 32),
    **dict.fromkeys(_BITS_64.lower().split(), 64),
}
"""The keys that take a number, in lower case, and its bits."""

FLAGS = frozenset(
    (
        *("accountingstorejobcomment", "allowspecresourcesusage", "disablerootjobs", "priorityfavorsmall"),
        *("trackwckey", "usepam"),
    )
)
"""The keys that take yes or no, in lower case."""

PARTITION_NUMBERS: Mapping[str, int] = {
    **dict.fromkeys(("priority", "priorityjobfactor", "prioritytier", "resumetimeout", "suspendtimeout"), 16),
    **dict.fromkeys(("gracetime", "maxcpuspernode", "maxcpuspersocket", "maxnodes", "minnodes"), 32),
    **dict.fromkeys(_BITS_64.lower().split(), 64),
}
PARTITION_FLAGS = frozenset(
    (
        *("default", "disablerootjobs", "exclusiveuser", "exclusivetopo", "hidden", "lln", "powerdownonidle"),
        *("reqresv", "rootonly"),
    )
)
PARTITION_KEYS = frozenset(
    (
        *("AllocNodes", "AllowAccounts", "AllowGroups", "AllowQos", "Alternate", "CpuBind", "DefCPUPerGPU"),
        *("DefMemPerCPU", "DefMemPerGPU", "DefMemPerNode", "Default", "DefaultTime", "DenyAccounts", "DenyQos"),
        *("DisableRootJobs", "ExclusiveUser", "GraceTime", "Hidden", "LLN", "MaxCPUsPerNode", "MaxMemPerCPU"),
        *("MaxMemPerNode", "MaxTime", "MaxNodes", "MinNodes", "Nodes", "OverSubscribe", "OverTimeLimit"),
        *("PreemptMode", "Priority", "PriorityJobFactor", "PriorityTier", "QOS", "RootOnly", "ReqResv"),
        *("ResumeTimeout", "SelectTypeParameters", "Shared", "State", "SuspendTime", "SuspendTimeout"),
        "TRESBillingWeights",
    )
)
"""The keys of a PartitionName line that every release we know takes (_parse_partitionname)."""

RECORD_KEYS: Mapping[str, tuple[str, ...]] = {
    "downnodes": ("Reason", "State"),
    "nodeset": ("Feature", "Nodes"),
    "poweraction": ("Location", "Program"),
    "slurmctldhost": (),
}
"""The keys behind the first of other lines, by that key in lower case."""

WORDS: Mapping[str, tuple[str, ...]] = {
    "AccountingStorageEnforce": (
        *("1", "associations", "2", "limits", "safe", "wckeys", "qos", "all", "nojobs", "nosteps"),
    ),
    "PropagateResourceLimits": (
        *("ALL", "NONE", "AS", "CORE", "CPU", "DATA", "FSIZE", "MEMLOCK", "NOFILE", "NPROC", "RSS", "STACK"),
    ),
}
"""Keys that take comma-separated words, alike in every release; one that is not known stops every daemon
(_validate_accounting_storage_enforce, parse_rlimits)."""

LEVELS = ("quiet", "fatal", "error", "info", "verbose", "debug", "debug2", "debug3", "debug4", "debug5")
"""What the keys take that set how much is logged, beside a number (log_string2num)."""
LEVEL_KEYS = ("SlurmctldDebug", "SlurmctldSyslogDebug", "SlurmdDebug", "SlurmdSyslogDebug")

ENFORCE_LIMITS = ("yes", "up", "true", "1", "any", "no", "down", "false", "0", "all")
"""EnforcePartLimits (parse_part_enforce_type)."""

RESET_PERIODS = ("none", "now", "daily", "weekly", "monthly", "quarterly", "yearly")
"""PriorityUsageResetPeriod."""

PREEMPT_MODES: Mapping[str, str] = {
    "off": "off",
    "cluster": "off",
    "cancel": "cancel",
    "requeue": "requeue",
    "on": "suspend",
    "suspend": "suspend",
    "gang": "gang",
    "within": "within",
    "priority": "priority",
}
"""The words of PreemptMode and what each stands for (preempt_mode_num)."""

HASHES = ("hash/k12", "hash/sha3")
TLS_TYPES = ("tls/none", "tls/s2n")
CERTIFICATES = ("certmgr/script",)
"""HashPlugin, TLSType, CertmgrType: plugins that slurmd loads as it starts (src/plugins)."""

SELECT_PARAMETERS = (
    *("CR_CPU", "CR_CPU_Memory", "CR_Core", "CR_Core_Memory", "CR_Memory", "CR_Socket", "CR_Socket_Memory"),
    *("CR_ONE_TASK_PER_CORE", "CR_CORE_DEFAULT_DIST_BLOCK", "CR_LLN", "CR_PACK_NODES"),
)
"""SelectTypeParameters, alike in every release (parse_select_type_param); the first seven exclude each other."""
SELECT_UNITS = 7

TASK_UNITS = ("none", "sockets", "cores", "threads")
TASK_BINDS = ("none", "threads", "cores", "sockets")
"""TaskPluginParam: one of the first at most; one of the second behind `autobind=` (_validate_and_set_defaults)."""

DEBUG_FLAGS = (
    *("Accrue", "Agent", "Backfill", "BackfillMap", "BurstBuffer", "cgroup", "CPU_Bind", "CpuFrequency", "Data"),
    *("DB_Archive", "DB_Assoc", "DB_Event", "DB_Job", "DB_QOS", "DB_Query", "DB_Reservation", "DB_Resource"),
    *("DB_Step", "DB_TRES", "DB_Usage", "DB_WCKey", "Dependency", "Elasticsearch", "Energy", "Federation", "Gang"),
    *("Gres", "Hetjob", "Interconnect", "JAG", "JobAccountGather", "JobContainer", "License", "MPI", "Net"),
    *("NetRaw", "Network", "NetworkRaw", "NO_CONF_HASH", "NodeFeatures", "Power", "PowerSave", "Priority"),
    *("Profile", "Protocol", "Reservation", "Route", "Script", "SelectType", "Steps", "Switch", "Task"),
    *("TraceJobs", "Trigger", "Triggers"),
)
"""DebugFlags, alike in every release (debug_str2flags)."""

HEALTH_STATES = ("any", "alloc", "cycle", "idle", "mixed", "nondrained_idle", "reboot_only", "start_only")
HEALTH_ALONE = ("START_ONLY", "REBOOT_ONLY")
"""HealthCheckNodeState: other words are ignored; the last two stand alone (_health_node_state)."""
