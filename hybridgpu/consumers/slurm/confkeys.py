"""The keys of slurm.conf that every release we know takes; what a release adds or has dropped is in its record.

A key that is not known is fatal to every daemon, so the list must be whole. Source: S:src/common/read_config.c
slurm_conf_options, on the branch of each release.
"""

COMMON = frozenset(
    (
        *("AccountingStorageBackupHost", "AccountingStorageEnforce", "AccountingStorageExternalHost"),
        *("AccountingStorageHost", "AccountingStorageParameters", "AccountingStoragePass", "AccountingStoragePort"),
        *("AccountingStorageTRES", "AccountingStorageType", "AccountingStorageUser", "AccountingStoreFlags"),
        *("AccountingStoreJobComment", "AcctGatherEnergyType", "AcctGatherFilesystemType"),
        *("AcctGatherInfinibandType", "AcctGatherInterconnectType", "AcctGatherNodeFreq", "AcctGatherProfileType"),
        *("AllowSpecResourcesUsage", "AuthAltParameters", "AuthAltTypes", "AuthInfo", "AuthType", "BackupAddr"),
        *("BackupController", "BatchStartTimeout", "BcastExclude", "BcastParameters", "BurstBufferParameters"),
        *("BurstBufferType", "CliFilterPlugins", "ClusterName", "CommunicationParameters", "CompleteWait"),
        *("ControlAddr", "ControlMachine", "CoreSpecPlugin", "CpuFreqDef", "CpuFreqGovernors", "CredType"),
        *("CryptoType", "DebugFlags", "DefCPUPerGPU", "DefMemPerCPU", "DefMemPerGPU", "DefMemPerNode"),
        *("DependencyParameters", "DisableRootJobs", "DownNodes", "EioTimeout", "EnforcePartLimits", "Epilog"),
        *("EpilogMsgTime", "EpilogSlurmctld", "ExtSensorsFreq", "ExtSensorsType", "FairShareDampeningFactor"),
        *("FastSchedule", "FederationParameters", "FirstJobId", "GetEnvTimeout", "GpuFreqDef", "GresTypes"),
        *("GroupUpdateForce", "GroupUpdateTime", "HealthCheckInterval", "HealthCheckNodeState", "HealthCheckProgram"),
        *("InactiveLimit", "InteractiveStepOptions", "JobAcctGatherFrequency", "JobAcctGatherParams"),
        *("JobAcctGatherType", "JobCompHost", "JobCompLoc", "JobCompParams", "JobCompPass", "JobCompPort"),
        *("JobCompType", "JobCompUser", "JobContainerType", "JobCredentialPrivateKey"),
        *("JobCredentialPublicCertificate", "JobFileAppend", "JobRequeue", "JobSubmitPlugins", "KeepAliveTime"),
        *("KillOnBadExit", "KillWait", "LaunchParameters", "LaunchType", "Licenses", "LogTimeFormat", "MailDomain"),
        *("MailProg", "MaxArraySize", "MaxDBDMsgs", "MaxJobCount", "MaxJobId", "MaxMemPerCPU", "MaxMemPerNode"),
        *("MaxNodeCount", "MaxStepCount", "MaxTasksPerNode", "MCSParameters", "MCSPlugin", "MessageTimeout"),
        *("MinJobAge", "MpiDefault", "MpiParams", "NodeFeaturesPlugins", "NodeName", "NodeSet", "OverTimeLimit"),
        *("PartitionName", "PluginDir", "PlugStackConfig", "PowerParameters", "PowerPlugin", "PreemptExemptTime"),
        *("PreemptMode", "PreemptType", "PrEpParameters", "PrEpPlugins", "PriorityCalcPeriod"),
        *("PriorityDecayHalfLife", "PriorityFavorSmall", "PriorityFlags", "PriorityMaxAge", "PriorityParameters"),
        *("PrioritySiteFactorParameters", "PrioritySiteFactorPlugin", "PriorityType", "PriorityUsageResetPeriod"),
        *("PriorityWeightAge", "PriorityWeightAssoc", "PriorityWeightFairshare", "PriorityWeightJobSize"),
        *("PriorityWeightPartition", "PriorityWeightQOS", "PriorityWeightTRES", "PrivateData", "ProctrackType"),
        *("Prolog", "PrologEpilogTimeout", "PrologFlags", "PrologSlurmctld", "PropagatePrioProcess"),
        *("PropagateResourceLimits", "PropagateResourceLimitsExcept", "RebootProgram", "ReconfigFlags"),
        *("RequeueExit", "RequeueExitHold", "ResumeFailProgram", "ResumeProgram", "ResumeRate", "ResumeTimeout"),
        *("ResvEpilog", "ResvOverRun", "ResvProlog", "ReturnToService", "RoutePlugin", "SallocDefaultCommand"),
        *("SbcastParameters", "SchedulerParameters", "SchedulerTimeSlice", "SchedulerType", "ScronParameters"),
        *("SelectType", "SelectTypeParameters", "SlurmctldAddr", "SlurmctldDebug", "SlurmctldHost"),
        *("SlurmctldLogFile", "SlurmctldParameters", "SlurmctldPidFile", "SlurmctldPort", "SlurmctldPrimaryOffProg"),
        *("SlurmctldPrimaryOnProg", "SlurmctldSyslogDebug", "SlurmctldTimeout", "SlurmdDebug", "SlurmdLogFile"),
        *("SlurmdParameters", "SlurmdPidFile", "SlurmdPort", "SlurmdSpoolDir", "SlurmdSyslogDebug", "SlurmdTimeout"),
        *("SlurmdUser", "SlurmSchedLogFile", "SlurmSchedLogLevel", "SlurmUser", "SrunEpilog", "SrunPortRange"),
        *("SrunProlog", "StateSaveLocation", "SuspendExcNodes", "SuspendExcParts", "SuspendProgram", "SuspendRate"),
        *("SuspendTime", "SuspendTimeout", "SwitchParameters", "SwitchType", "TaskEpilog", "TaskPlugin"),
        *("TaskPluginParam", "TaskProlog", "TCPTimeout", "TmpFS", "TopologyParam", "TopologyPlugin", "TrackWCKey"),
        *("TreeWidth", "UnkillableStepProgram", "UnkillableStepTimeout", "UsePAM", "VSizeFactor", "WaitTime"),
        "X11Parameters",
    )
)

NODE_KEYS = frozenset(
    (
        *("BcastAddr", "Boards", "CoreSpecCount", "CoresPerSocket", "CPUs", "CPUSpecList", "CpuBind", "Feature"),
        *("Features", "Gres", "MemSpecLimit", "NodeAddr", "NodeHostname", "Port", "Procs", "RealMemory", "Reason"),
        *("Sockets", "SocketsPerBoard", "State", "ThreadsPerCore", "TmpDisk", "TRESWeights", "Weight"),
    )
)
"""The keys of a NodeName line that every release knows."""

GRES_FLAGS = (
    *("CountOnly", "nvidia_gpu_env", "amd_gpu_env", "intel_gpu_env", "opencl_env", "one_sharing", "all_sharing"),
    "no_gpu_env",
)
"""The words of gres.conf's Flags= that every release knows, in the order they are searched for."""

GRES_KEYS = (
    *("AutoDetect", "Count", "CPUs", "Cores", "File", "Files", "Flags", "Link", "Links", "MultipleFiles", "Name"),
    *("NodeName", "Type"),
)
"""The keys of a gres.conf record, alike in all releases (S:src/interfaces/gres.c _gres_options)."""
