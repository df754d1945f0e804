"""The words that generated configurations are made of: every key of slurm.conf and cgroup.conf, with values for them.

A key with an entry of its own takes those values, right ones first, then wrong ones; others take those of their kind.
Left out is what depends on the machine (users, plugin folders) and what turns slurmd's answer off (its log).
Source: S:src/common/read_config.c slurm_conf_options on 22.05, 24.11 and 26.05, S:src/interfaces/cgroup.c.
"""

from __future__ import annotations

from collections.abc import Mapping

GPU_TYPES = ("a100", "h100", "a100-sxm4-80gb", "h100_80gb_hbm3", "v100s", "4090", "A100")
MIG_TYPES = ("1g.10gb", "2g.20gb", "3g.40gb", "1g.10gb+me", "4g.20gb", "1g.23gb", "7g.80gb")
FLAGS = (
    *("nvidia_gpu_env", "no_gpu_env", "amd_gpu_env", "CountOnly", "one_sharing", "all_sharing", "opencl_env"),
    *("nvidia_gpu_env,opencl_env", "explicit", "bogus", "Nvidia_GPU_env", "intel_gpu_env", "env_uuid", "env_vendor"),
    *("nvidia_gpu_env,env_uuid", "one_sharing,all_sharing", "no_gpu_env,explicit", "countonly", "nvidia_gpu_envx", ""),
)

Values = tuple[tuple[str, ...], tuple[str, ...]]
"""What is right, what is wrong."""

_NUMBERS: Values = (("1", "2", "30", "600", "0x10", "010", "+5"), ("abc", "-1", "1.5", "30s", "1M", "", "0x", "9 9"))
KINDS: Mapping[str, Values] = {
    "16": (_NUMBERS[0], (*_NUMBERS[1], "65536", "1K", "99999999999999999999")),
    "32": ((*_NUMBERS[0], "1K", "UNLIMITED"), (*_NUMBERS[1], "4294967296", "4194304K", "1KB", "99999999999999999999")),
    "64": ((*_NUMBERS[0], "1K", "infinite", "4294967296"), (*_NUMBERS[1], "99999999999999999999", "1KiB")),
    "flag": (("yes", "no", "YES", "true", "0", "1", "Down", "up"), ("2", "y", "on", "off", "", "enabled")),
    "percent": (("95", "95.5", "1e2", "0x10", "infinite", ".5", "+3"), ("95%", "abc", "1,5", "", "1e99")),
    "text": (("x", "a,b", "some/thing", "/etc/slurm/x", "7", "a=b,c=d"), ("", "a#b", "x\\ y")),
}

_WORDS_16 = """AccountingStoragePort AcctGatherNodeFreq BatchStartTimeout CompleteWait EioTimeout EpilogTimeout
ExtSensorsFreq FairShareDampeningFactor FastSchedule GetEnvTimeout GroupUpdateForce GroupUpdateTime HealthCheckInterval
HealthCheckTimeout InactiveLimit JobFileAppend JobRequeue KillOnBadExit KillWait MaxTasksPerNode MessageTimeout
OverTimeLimit PrologEpilogTimeout PrologTimeout PropagatePrioProcess ResumeRate ResumeTimeout ResvOverRun
ReturnToService SchedulerTimeSlice SlurmctldTimeout SlurmdTimeout SuspendRate SuspendTimeout TCPTimeout TreeWidth
UnkillableStepTimeout VSizeFactor WaitTime"""
_WORDS_32 = """EpilogMsgTime JobCompPort KeepAliveTime MaxArraySize MaxBatchRequeue MinJobAge PriorityWeightAge
PriorityWeightAssoc PriorityWeightFairshare PriorityWeightJobSize PriorityWeightPartition PriorityWeightQOS
SlurmdPort"""
_WORDS_64 = "DefCPUPerGPU DefMemPerCPU DefMemPerGPU DefMemPerNode MaxMemPerCPU MaxMemPerNode"
_WORDS_FLAG = "AllowSpecResourcesUsage DisableRootJobs PriorityFavorSmall TrackWCKey UsePAM"
_WORDS_TEXT = """AccountingStorageBackupHost AccountingStorageExternalHost AccountingStorageHost AccountingStorageLoc
AccountingStorageParameters AccountingStoragePass AccountingStorageUser AccountingStoreFlags AcctGatherEnergyType
AcctGatherFilesystemType AcctGatherInfinibandType AcctGatherInterconnectType AcctGatherProfileType AuthAltParameters
AuthAltTypes BackupAddr BackupController BcastParameters BurstBufferParameters BurstBufferType CertgenParameters
CertgenType CertmgrParameters CliFilterParameters CliFilterPlugins ControlAddr ControlMachine CoreSpecPlugin CpuFreqDef
CpuFreqGovernors CryptoType DataParserParameters DependencyParameters Epilog EpilogSlurmctld ExtSensorsType
FederationParameters GpuFreqDef HealthCheckProgram InteractiveStepOptions JobAcctGatherFrequency JobAcctGatherType
JobCompHost JobCompLoc JobCompParams JobCompPass JobCompPassScript JobCompType JobCompUser JobCredentialPrivateKey
JobCredentialPublicCertificate JobSubmitPlugins LaunchType LicenseParameters Licenses LogTimeFormat MailDomain
MetricsAuthUsers MetricsParameters MetricsType MpiDefault MpiParams NodeFeaturesPlugins PowerParameters PowerPlugin
PrEpParameters PrEpPlugins PreemptParameters PriorityFlags PriorityParameters PrioritySiteFactorParameters
PrioritySiteFactorPlugin PriorityType PriorityWeightTRES PrivateData Prolog PrologSlurmctld RebootProgram RequeueExit
RequeueExitHold ResumeFailProgram ResumeProgram ResvEpilog ResvProlog RoutePlugin SbcastParameters SchedulerAuth
SchedulerType ScronParameters SlurmSchedLogFile SlurmctldAddr SlurmctldHttpAuthParameters SlurmctldLogFile
SlurmctldParameters SlurmctldPidFile SlurmctldPlugstack SlurmctldPrimaryOffProg SlurmctldPrimaryOnProg
SlurmdHttpAuthParameters SrunEpilog SrunPortRange SrunProlog StateSaveLocation SuspendExcNodes SuspendExcParts
SuspendExcStates SuspendProgram SwitchParameters SwitchType TaskEpilog TaskPlugin TaskProlog TopologyParam
UnkillableStepProgram X11Parameters"""

_TIMES: Values = (("5", "1-0", "00:10:00", "10:30", "2-12:30"), ("abc", "1:", "-1", "1-2-3", "1:2:3:4", "", "5m", "0"))
_LEVELS: Values = (("info", "error", "VERBOSE", "5"), ("bogus", "loud", "-1", "", "infox", "99"))

SETTINGS: Mapping[str, Values] = {
    **dict.fromkeys(_WORDS_16.split(), KINDS["16"]),
    **dict.fromkeys(_WORDS_32.split(), KINDS["32"]),
    **dict.fromkeys(_WORDS_64.split(), KINDS["64"]),
    **dict.fromkeys(_WORDS_FLAG.split(), KINDS["flag"]),
    **dict.fromkeys(_WORDS_TEXT.split(), KINDS["text"]),
    "AccountingStorageEnforce": (
        ("associations", "limits,qos", "safe", "all", "1", "nojobs,nosteps"),
        ("bogus", "limits;qos", "3", "limits,bogus", ""),
    ),
    "AccountingStorageTRES": (("gres/gpu", "gres/gpu:a100,gres/shard", "gres/mps"), ("gres/foo", "gpu", "", ",")),
    "AccountingStorageType": (
        ("accounting_storage/none", "accounting_storage/slurmdbd"),
        ("accounting_storage/mysql", "slurmdbd", "MySQL", ""),
    ),
    "AccountingStoreJobComment": ((), ("yes", "no", "maybe")),
    "BcastExclude": (("none", "/lib,/usr/lib"), ("lib", "/lib,usr", "")),
    "CommunicationParameters": (
        ("NoInAddrAny", "EnableIPv6", "EnableIPv6,DisableIPv4", "keepaliveinterval=5"),
        ("DisableIPv4", "disableipv4,x", "keepalivetime=-1", ""),
    ),
    "DebugFlags": (
        ("Gres", "gres,CPU_Bind", "NO_CONF_HASH", "Steps"),
        ("bogus", "Gres;Steps", "Gres,bogus", "", "GLOB_SILENCE", "AuditTLS", "WorkQ", "Task", "GresX"),
    ),
    "EnforcePartLimits": (("ALL", "any", "NO", "yes", "1"), ("NONE", "maybe", "", "2")),
    "FirstJobId": (("1", "1000"), ("0", "abc", "4294967295", "99999999")),
    "HashPlugin": (("hash/k12",), ("hash/bogus", "k12", "")),
    "HealthCheckNodeState": (
        ("ANY", "IDLE,CYCLE", "alloc,mixed", "START_ONLY", "NONDRAINED_IDLE"),
        ("bogus", "START_ONLY,IDLE", "REBOOT_ONLY,ANY", "REBOOT_ONLY", "IDLE,START_ONLY"),
    ),
    "JobAcctGatherParams": (("UsePss", "NoShared", "OverMemoryKill"), ("UsePss,NoShared", "bogus", "")),
    "JobContainerType": (("job_container/none",), ("job_container/tmpfs", "bogus", "")),
    "LaunchParameters": (
        ("enable_nss_slurm", "use_interactive_step", "mpir_use_nodeaddr"),
        ("enable_nss_slurm,disable_send_gids", "bogus", ""),
    ),
    "MCSParameters": ((), ("ondemand", "enforced,select", "")),
    "MCSPlugin": (("mcs/none", "mcs/user", "mcs/account"), ("mcs/group", "bogus", "")),
    "MaxDBDMsgs": (("20000", "20K"), ("0", "100", "9999", "abc")),
    "MaxJobCount": (("10000", "1"), ("0", "-1", "abc")),
    "MaxJobId": (("1000000", "67043328"), ("0", "10", "4294967295", "x")),
    "MaxNodeCount": (("100", "65536"), ("65537", "0", "abc", "9999999")),
    "MaxStepCount": (("100", "40000"), ("0", "abc")),
    "NamespaceType": (("namespace/none",), ("namespace/tmpfs", "namespace/linux", "bogus", "")),
    "PreemptExemptTime": (_TIMES[0], _TIMES[1]),
    "PreemptMode": (
        ("OFF", "off", "CLUSTER", "GANG", "OFF,GANG"),
        ("CANCEL", "REQUEUE", "SUSPEND", "SUSPEND,GANG", "bogus", "CANCEL,REQUEUE", "GANG,WITHIN", "WITHIN", ""),
    ),
    "PreemptType": (("preempt/none",), ("preempt/qos", "preempt/partition_prio", "bogus", "")),
    "PriorityCalcPeriod": _TIMES,
    "PriorityDecayHalfLife": _TIMES,
    "PriorityMaxAge": _TIMES,
    "PriorityUsageResetPeriod": (("NONE", "daily", "Weekly"), ("bogus", "hourly", "")),
    "PrologFlags": (
        ("Alloc", "Contain", "alloc,serial", "DeferBatch", "NoHold", "Alloc,Contain"),
        ("bogus", "NoHold,Contain", "X11", "RunInJob", "ForceRequeueOnFail", "Alloc;Contain", "Serial,RunInJob", ""),
    ),
    "PropagatePrioProcess": (("0", "1", "2"), ("3", "9", "abc", "-1")),
    "PropagateResourceLimits": (("ALL", "NONE", "CORE,STACK", "RLIMIT_AS"), ("all", "bogus", "CORE;AS", "")),
    "PropagateResourceLimitsExcept": (("MEMLOCK", "ALL", "NONE"), ("memlock", "CORE,x", "")),
    "ReconfigFlags": (("KeepPartInfo", "keeppartstate"), ("KeepPowerSaveSettings", "Keep", "KeepPartInfo;x", "")),
    "SallocDefaultCommand": ((), ("srun", "")),
    "SchedulerParameters": (
        ("bf_continue", "max_script_size=1000", "defer,nohold_on_prolog_fail"),
        ("max_script_size=999999999", "max_submit_line_size=99999999", "bogus", "MAX_SCRIPT_SIZE=999999999"),
    ),
    "SelectType": (
        ("select/cons_tres", "select/linear"),
        ("select/cons_res", "cons_tres", "select/bogus", ""),
    ),
    "SelectTypeParameters": (
        ("CR_Core", "CR_Core_Memory", "cr_cpu", "CR_Socket", "CR_Core,CR_LLN", "CR_Core,CR_ONE_TASK_PER_CORE"),
        (
            *("bogus", "CR_Core,CR_Socket", "CR_CPU,CR_ONE_TASK_PER_CORE", "CR_Core;x", "", "Memory", "CR_Other"),
            *("CR_Core,MULTIPLE_SHARING_GRES_PJ", "CR_Core,ENFORCE_BINDING_GRES", "CR_Core,LL_SHARED_GRES"),
            *("CR_Core,ONE_TASK_PER_SHARING_GRES", "OTHER_CONS_TRES", "OTHER_CONS_RES,CR_Core", "NHC_NO"),
        ),
    ),
    "SlurmSchedLogLevel": (("0",), ("1", "2", "abc")),
    "SlurmctldDebug": _LEVELS,
    "SlurmctldSyslogDebug": _LEVELS,
    "SlurmdSyslogDebug": (("error", "quiet"), _LEVELS[1]),
    "SlurmctldPort": (("6817", "6817-6820"), ("0", "abc", "6820-6817", "6817-", "6817,6818", "-1", "", "6817x")),
    "SuspendTime": (("300", "NONE", "INFINITE", "-1"), ("abc", "", "99999999999", "-5")),
    "TaskPluginParam": (
        ("none", "cores", "Sockets,verbose", "autobind=threads", "SlurmdOffSpec"),
        (
            *("bogus", "cores,threads", "autobind=x", "autobind=cores,autobind=none", "sched", "cpusets", ""),
            *("OOMKillStep", "SlurmdSpecOverride", "none,none", "boards"),
        ),
    ),
    "TLSType": (("tls/none",), ("tls/bogus", "")),
    "TopologyPlugin": (("topology/none", "topology/tree", "topology/flat"), ("bogus", "", "topology/3d_torus")),
}
"""Every key of slurm.conf that stands alone on its line, but for those that make up a cluster."""

NOT_EVERYWHERE = frozenset(
    [
        "AccountingStorageLoc",
        "CertgenParameters",
        "CertgenType",
        "CertmgrParameters",
        "CertmgrType",
        "CliFilterParameters",
        "DataParserParameters",
        "EpilogTimeout",
        "HashPlugin",
        "HealthCheckTimeout",
        "HttpParserType",
        "JobCompPassScript",
        "LicenseParameters",
        "MaxBatchRequeue",
        "MetricsAuthUsers",
        "MetricsParameters",
        "MetricsType",
        "NamespaceType",
        "PreemptParameters",
        "PrologTimeout",
        "SchedulerAuth",
        "SlurmctldHttpAuthParameters",
        "SlurmctldPlugstack",
        "SlurmdHttpAuthParameters",
        "SuspendExcStates",
        "TLSParameters",
        "TLSType",
        "UrlParserType",
    ]
)
"""Keys that not all three releases know."""

PARTITION: Mapping[str, Values] = {
    **dict.fromkeys(("AllocNodes", "AllowAccounts", "AllowGroups", "AllowQos", "Alternate", "QOS"), KINDS["text"]),
    **dict.fromkeys(("CpuBind", "DenyAccounts", "DenyQos", "TRESBillingWeights"), KINDS["text"]),
    **dict.fromkeys(("DefCPUPerGPU", "DefMemPerCPU", "DefMemPerGPU", "DefMemPerNode", "MaxMemPerNode"), KINDS["64"]),
    **dict.fromkeys(("GraceTime", "MaxCPUsPerNode", "MaxNodes", "MinNodes"), KINDS["32"]),
    **dict.fromkeys(("Default", "DisableRootJobs", "ExclusiveUser", "Hidden", "LLN", "RootOnly"), KINDS["flag"]),
    **dict.fromkeys(("ReqResv",), KINDS["flag"]),
    **dict.fromkeys(("Priority", "PriorityJobFactor", "PriorityTier", "ResumeTimeout"), KINDS["16"]),
    **dict.fromkeys(("DefaultTime", "MaxTime"), _TIMES),
    "Exclusive": ((), ("NO", "NODE", "bogus", "")),
    "ExclusiveTopo": ((), KINDS["flag"][0]),
    "PowerDownOnIdle": ((), KINDS["flag"][0]),
    "MaxCPUsPerSocket": ((), ("1", "x")),
    "OverSubscribe": (("NO", "YES:4", "FORCE", "exclusive"), ("bogus", "YES:0", "FORCE:", "")),
    "OverTimeLimit": (("5", "UNLIMITED"), ("abc", "-1")),
    "PreemptMode": (("OFF", "CANCEL", "requeue"), ("bogus", "GANG", "CANCEL,REQUEUE", "WITHIN", "PRIORITY", "")),
    "SelectTypeParameters": (("CR_Core", "cr_socket_memory", "CR_Corex"), ("CR_CPU", "bogus", "")),
    "State": (("UP", "down", "DRAIN", "UPX"), ("bogus", "IDLE", "")),
    "SuspendTime": (("300", "INFINITE"), ("abc", "99999999999", "")),
    "Topology": ((), ("x", "")),
    "Foo": ((), ("1",)),
}

NODE: Mapping[str, Values] = {
    "BcastAddr": (("b1",), ("b[1-2]", "b[1", "")),
    "Boards": (("1", "2"), ("0", "abc", "3", "65536", "-1")),
    "CoreSpecCount": (("1", "0"), ("99", "abc", "8", "-1")),
    "CPUSpecList": (("0-1", "0"), ("0-99", "abc", "", "3-1")),
    "CPUs": (("8", "16"), ("7", "0", "abc", "0x8", "65536", "8K", "", "4")),
    "CpuBind": (("core", "none", "socket,verbose"), ("bogus", "core,thread", "")),
    "CoresPerSocket": (("4", "2"), ("0", "abc", "1", "-1", "4.0")),
    "Feature": (("a", "a,b"), ("", "a&b")),
    "Features": (("a,b",), ("",)),
    "Foo": ((), ("1", "x")),
    "GresConf": ((), ("x",)),
    "MemSpecLimit": (("10", "1K"), ("999999", "abc", "-1")),
    "NodeAddr": (("a1", "10.0.0.1"), ("a[1-2]", "a[1-9]", "a[2-1]", "a[1", "")),
    "NodeHostname": (("h1", "localhost"), ("h[1-4]", "h[1-2],h3", "h[1-2", "")),
    "Parameters": ((), ("x", "")),
    "Port": (("7000", "6818"), ("17001-17002", "[17001-17004]", "0", "65536", "abc", "1,2", "", "7000x")),
    "Procs": (("8",), ("abc", "7", "0")),
    "RealMemory": (("1000", "10K"), ("0", "abc", "10MB", "-1", "")),
    "Reason": (("x", "a b c"), ("",)),
    "RestrictedCoresPerGPU": ((), ("1", "x")),
    "Sockets": (("2", "1"), ("0", "abc", "3", "65536")),
    "SocketsPerBoard": (("2", "1"), ("0", "abc", "65536")),
    "State": (
        ("UNKNOWN", "cloud", "DOWN", "DRAIN", "FUTURE", "FAIL"),
        ("bogus", "IDLE+DRAIN", "IDLE", "UP", "downx", "unknown ", "DRAINED", "", "CLOUD+x", "MAINT", "ALLOC"),
    ),
    "SuspendTime": ((), ("300", "x")),
    "TRESWeights": (("CPU=1.0,GRES/gpu=2.0",), ("x", "")),
    "ThreadsPerCore": (("1", "2"), ("0", "abc", "65536")),
    "TmpDisk": (("100", "1K"), ("abc", "4294967296")),
    "Topology": ((), ("x", "")),
    "Weight": (("1", "100"), ("-1", "abc", "UNLIMITED", "4294967295", "4294967296")),
}

CGROUP: Mapping[str, Values] = {
    **dict.fromkeys(("ConstrainCores", "ConstrainDevices", "ConstrainRAMSpace", "ConstrainSwapSpace"), KINDS["flag"]),
    **dict.fromkeys(("IgnoreSystemd", "IgnoreSystemdOnFailure", "EnableControllers"), KINDS["flag"]),
    **dict.fromkeys(("AllowedRAMSpace", "AllowedSwapSpace", "MaxRAMPercent", "MaxSwapPercent"), KINDS["percent"]),
    **dict.fromkeys(("MinRAMSpace", "MemorySwappiness"), KINDS["64"]),
    "CgroupMountpoint": (("/sys/fs/cgroup",), ("",)),
    **dict.fromkeys(
        (
            *("CgroupAutomount", "ConstrainKmemSpace", "AllowedKmemSpace", "MaxKmemPercent", "MinKmemSpace"),
            *("AllowedDevicesFile", "CgroupReleaseAgentDir", "RootOwnedCgroups", "SignalChildrenProcesses"),
            *("SystemdTimeout", "EnableExtraControllers", "CgroupSlice", "CgroupJobIdPaths", "TaskAffinity", "Foo"),
            *("MemoryLimitEnforcement", "MemoryLimitThreshold"),
        ),
        ((), ("yes", "no", "1", "abc", "", "cpu,memory", "/x")),
    ),
}
