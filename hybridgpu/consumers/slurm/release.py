"""How the Slurm releases differ, one frozen record a major: the only place that knows a version number.

Everybody else asks for a capability, never for a version. Each record after the first says only what that release
changed. "S@X:path" is a file of SchedMD/slurm on the branch of major X; "measured" was run on that release.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from hybridgpu.consumers.slurm.confkeys import COMMON, GRES_FLAGS, NODE_KEYS
from hybridgpu.consumers.slurm.settingtypes import DEBUG_FLAGS, PARTITION_KEYS, SELECT_PARAMETERS, Stop

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

CgroupValue = Literal["flag", "percent", "number", "plugin", "text", "defunct", "obsolete", "removed"]
"""What a key of cgroup.conf takes: yes or no, a number with a fraction, a whole number, a plugin, or any text.

`defunct` and `obsolete` keys do nothing but give a line in the log at every start (an error, a warning); a `removed`
one is known only in order to die of it.
"""


@dataclass(frozen=True, slots=True)
class Release:
    """One Slurm major (`24.11`) and what its daemons do with the files.

    autodetect: the values that gres.conf's AutoDetect takes (S:src/interfaces/gres.c _handle_autodetect_flags).
    autodetect_sees_mig: those of them that find MIG instances (gres.conf.5: `nvidia` does not).
    nvml_profile_from: gpu/nvml takes an instance's profile from the driver's name of it, or makes one of its
        attributes (gpu_nvml.c _handle_mig; Bug 17705, 23.02.6; measured 22.05, 24.11, 26.05).
    nvml_links_instances: an instance has Links too, its place among those of its card, by which it is sorted (Bug
        17482, 23.02.7; measured 22.05, 24.11, 26.05).
    nvml_takes_empty_mig: a card with MIG on and no instance is taken whole, with an error in the log; before, slurmd
        dies of it (Ticket 21047; measured 22.05, 24.11, 26.05).
    gres_flags: the words Flags= is searched for (gres_flags_parse); every other word is ignored without a message.
    bare_flags_count: Flags that name no environment, too, must equal those of the record of the name before, and take
        away the default environments (_parse_gres_config).
    flags_compared: which flags of two records of a name must agree: those for the environment, or all.
    splits_mig: once GresTypes holds mps or shard, a MultipleFiles record becomes one device a file
        (S@22.05:gres_c_s.c _build_sharing_list; mended in 23.02.7 and 23.11.0).
    checks_plain_files: a GRES without a plugin of its own may not name a device file twice (gres_node_config_load).
    hostlist_suffix: text behind the last bracket of a host list is taken (`n[1-2]-ib`), not refused (hostlist.c).
    hostlist_unclosed: a bracket that is never closed makes a wrong name (`n[1-2`: `n]`), and is no error (hostlist.c).
    conf_keys: the keys of slurm.conf (read_config.c slurm_conf_options).
    defunct_keys: those of them that do nothing, whatever they say (read_config.c _defunct_option).
    setting_words: the comma-separated words that DebugFlags, SelectTypeParameters ... take, for keys whose words are
        not the same in all releases (debug_str2flags, parse_select_type_param ...), and the plugins of SelectType
        and its like (src/plugins), of PriorityType the default first.
    stops_on: settings that stop a daemon of this release and did not always (read_config.c _validate_and_set_defaults).
    partition_keys: the keys of a PartitionName line (read_config.c _parse_partitionname).
    node_keys: the keys of a NodeName line (read_config.c _parse_nodename).
    prolog_flags: the values of PrologFlags (prolog_str2flags).
    cgroup_keys: the keys of cgroup.conf and what each takes, see CgroupValue (_read_slurm_cgroup_conf, in
        S@22.05:src/common/cgroup.c, later S:src/interfaces/cgroup.c; measured 22.05, 24.11, 26.05).
    cgroup_plugins: the values of CgroupPlugin (cgroup_g_init; slurmd -D on 22.05, 24.11, 26.05).
    reload: what makes a changed Gres= hold: `scontrol reconfigure`, or a restart of slurmctld and the node's slurmd
        (measured: 22.05 restart, 24.11 and 26.05 reconfigure; scontrol.1 of 23.11).
    prolog_lines_add_up, task_prolog_lines_add_up: a second Prolog= (Epilog=), TaskProlog= line adds to the first, or
        replaces it (read_config.c: array or string; measured 22.05, 24.11).
    types_must_be_configured: a registered type that Gres= does not name makes the node INVALID (_valid_gres_type).
    cores_must_match_sockets: Cores that are not whole sockets make it INVALID (_check_core_range_matches_sock).
    cores_of_one_socket: so do those of two whole sockets, if they are not all of the node (measured 24.11, 26.05).
    select_default: SelectType where slurm.conf names none (read_config.h DEFAULT_SELECT_TYPE).
    other_gres_confines: a second GRES keeps jobs off the device files it names (measured: not 22.05).
    reason_survives_resume: the Reason stays on a node after state=resume; None: not measured.
    majors_back: how many majors older than slurmctld a slurmd may be; newer it may never be
        (S:src/common/slurm_protocol_common.h SLURM_MIN_PROTOCOL_VERSION).
    includes_from: the folder in which a relative name of Include is looked for: that of the file that includes, or
        slurm.conf's (parse_config.c _parse_include_directive).
    container_keys: the keys of job_container.conf and what each takes; `container_alone` are those that may begin a
        line and then stand alone on it (S@25.05:src/plugins/job_container/tmpfs/read_jcconf.c, from 25.11
        S:src/plugins/namespace/tmpfs/read_jcconf.c).
    container_none: BasePath=none switches the plugin off on a node (the same).
    relative_hooks: the hooks, in lower case, that may be named without a folder: they lie beside slurm.conf
        (S:src/slurmd/slurmd/slurmd.c _read_config).
    prolog_uuids: what the prolog's CUDA_VISIBLE_DEVICES holds under AutoDetect=nvml: `mig` UUIDs of instances only,
        `all` those of whole cards too (gres_common.c, gpu_nvml.c).
    """

    major: str
    autodetect: tuple[str, ...]
    autodetect_sees_mig: tuple[str, ...]
    nvml_profile_from: Literal["attributes", "name"]
    nvml_links_instances: bool
    nvml_takes_empty_mig: bool
    gres_flags: tuple[str, ...]
    bare_flags_count: bool
    flags_compared: Literal["env", "all"]
    splits_mig: bool
    checks_plain_files: bool
    hostlist_suffix: bool
    hostlist_unclosed: bool
    conf_keys: frozenset[str]
    defunct_keys: frozenset[str]
    setting_words: Mapping[str, tuple[str, ...]]
    stops_on: frozenset[Stop]
    partition_keys: frozenset[str]
    node_keys: frozenset[str]
    prolog_flags: tuple[str, ...]
    cgroup_keys: Mapping[str, CgroupValue]
    cgroup_plugins: tuple[str, ...]
    reload: Literal["restart", "reconfigure"]
    prolog_lines_add_up: bool
    task_prolog_lines_add_up: bool
    types_must_be_configured: bool
    cores_must_match_sockets: bool
    cores_of_one_socket: bool
    select_default: str
    other_gres_confines: bool
    reason_survives_resume: bool | None
    majors_back: int
    prolog_uuids: Literal["mig", "all"]
    includes_from: Literal["includer", "slurm.conf"]
    container_keys: Mapping[str, CgroupValue]
    container_alone: frozenset[str]
    container_none: bool
    relative_hooks: frozenset[str]

    def __str__(self) -> str:
        return self.major

    @property
    def slurmds(self) -> tuple[str, ...]:
        """The majors, of those we know, whose slurmd a slurmctld of this release works with, oldest first."""
        known = tuple(RELEASES)
        own = known.index(self.major)
        return known[max(0, own - self.majors_back) : own + 1]


def _taking(value: CgroupValue, *keys: str) -> dict[str, CgroupValue]:
    return dict.fromkeys(keys, value)


def _without(keys: Mapping[str, CgroupValue], *gone: str) -> dict[str, CgroupValue]:
    return {key: value for key, value in keys.items() if key not in gone}


def _with(words: Mapping[str, tuple[str, ...]], **more: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    return {**words, **{key: (*words[key], *added) for key, added in more.items()}}


def _but(words: Mapping[str, tuple[str, ...]], key: str, *gone: str) -> dict[str, tuple[str, ...]]:
    return {**words, key: tuple(word for word in words[key] if word not in gone)}


_OTHER_CONS = ("OTHER_CONS_RES", "OTHER_CONS_TRES", "CR_ALLOCATE_FULL_SOCKET")
_SHARING = ("ENFORCE_BINDING_GRES", "LL_SHARED_GRES", "MULTIPLE_SHARING_GRES_PJ", "ONE_TASK_PER_SHARING_GRES")
_KMEM = ("AllowedKmemSpace", "ConstrainKmemSpace", "MaxKmemPercent", "MinKmemSpace")

_22_05 = Release(
    major="22.05",
    autodetect=("nvml", "rsmi", "oneapi", "off"),
    autodetect_sees_mig=("nvml",),
    nvml_profile_from="attributes",
    nvml_links_instances=True,
    nvml_takes_empty_mig=False,
    gres_flags=GRES_FLAGS,
    bare_flags_count=False,
    flags_compared="env",
    splits_mig=True,
    checks_plain_files=False,
    hostlist_suffix=False,
    hostlist_unclosed=True,
    conf_keys=COMMON | {"AccountingStorageLoc", "FrontendName", "SchedulerAuth", "SlurmctldPlugstack"},
    defunct_keys=frozenset(("SchedulerAuth",)),
    setting_words={
        "DebugFlags": (*DEBUG_FLAGS, "ExtSensors", "FrontEnd", "TimeCray", "WorkQ", "WorkQueue"),
        "PreemptMode": ("off", "cluster", "cancel", "requeue", "on", "suspend", "gang", "within"),
        "PriorityType": ("priority/basic", "priority/multifactor"),
        "ProctrackType": tuple(f"proctrack/{name}" for name in ("cgroup", "linuxproc", "pgid", "cray_aries")),
        "SelectType": tuple(f"select/{name}" for name in ("cons_tres", "linear", "cons_res", "cray_aries")),
        "SelectTypeParameters": (*SELECT_PARAMETERS, *_OTHER_CONS),
        "State": ("cloud", "drain", "fail"),
        "TaskPlugin": tuple(f"task/{name}" for name in ("affinity", "cgroup", "none", "cray_aries")),
        "TaskPluginParam": ("SlurmdOffSpec",),
    },
    stops_on=frozenset(("select-type", "partition-preempt")),
    partition_keys=PARTITION_KEYS,
    node_keys=NODE_KEYS,
    prolog_flags=("Alloc", "Contain", "DeferBatch", "NoHold", "Serial", "X11"),
    cgroup_keys={
        **_taking("flag", "CgroupAutomount", "ConstrainCores", "ConstrainDevices", "ConstrainKmemSpace"),
        **_taking("flag", "ConstrainRAMSpace", "ConstrainSwapSpace", "IgnoreSystemd", "IgnoreSystemdOnFailure"),
        **_taking("flag", "MemoryLimitEnforcement"),
        **_taking("percent", "AllowedKmemSpace", "AllowedRAMSpace", "AllowedSwapSpace", "MaxKmemPercent"),
        **_taking("percent", "MaxRAMPercent", "MaxSwapPercent", "MemoryLimitThreshold"),
        **_taking("number", "MemorySwappiness", "MinKmemSpace", "MinRAMSpace"),
        **_taking("plugin", "CgroupPlugin"),
        **_taking("text", "CgroupMountpoint"),
        **_taking("obsolete", "AllowedDevicesFile"),
        **_taking("removed", "CgroupReleaseAgentDir"),
    },
    cgroup_plugins=("autodetect", "cgroup/v1", "cgroup/v2"),
    reload="restart",
    prolog_lines_add_up=False,
    task_prolog_lines_add_up=False,
    types_must_be_configured=False,
    cores_must_match_sockets=False,
    cores_of_one_socket=False,
    select_default="select/linear",
    other_gres_confines=False,
    reason_survives_resume=False,
    majors_back=2,
    prolog_uuids="mig",
    includes_from="includer",
    container_keys={"AutoBasePath": "flag", **_taking("text", "BasePath", "InitScript", "NodeName")},
    container_alone=frozenset(("AutoBasePath",)),
    container_none=False,
    relative_hooks=frozenset(),
)
_23_02 = replace(
    _22_05,
    major="23.02",
    nvml_profile_from="name",
    nvml_links_instances=False,
    hostlist_unclosed=False,
    setting_words=_but(
        _with(_22_05.setting_words, DebugFlags=("JobComp",)),
        "SelectTypeParameters",
        *_OTHER_CONS,
    ),
    stops_on=_22_05.stops_on | {"suspend-time"},
    partition_keys=PARTITION_KEYS | {"MaxCPUsPerSocket", "PowerDownOnIdle"},
    conf_keys=_22_05.conf_keys - {"SlurmctldPlugstack"} | {"MaxBatchRequeue", "PreemptParameters", "SuspendExcStates"},
    gres_flags=(*_22_05.gres_flags, "explicit"),
    bare_flags_count=True,
    flags_compared="all",
    splits_mig=False,
    checks_plain_files=True,
    prolog_flags=(*_22_05.prolog_flags, "ForceRequeueOnFail"),
    cgroup_keys={**_22_05.cgroup_keys, "EnableControllers": "flag", "RootOwnedCgroups": "flag"},
    reason_survives_resume=None,
    includes_from="slurm.conf",
    container_keys={**_22_05.container_keys, "Dirs": "text", "Shared": "flag"},
    container_alone=_22_05.container_alone | {"Dirs", "Shared"},
)
_23_11 = replace(
    _23_02,
    major="23.11",
    defunct_keys=_23_02.defunct_keys
    | {"ExtSensorsFreq", "ExtSensorsType", "JobCredentialPrivateKey", "JobCredentialPublicCertificate"},
    setting_words={
        **_with(_23_02.setting_words, DebugFlags=("GLOB_SILENCE", "Sack"), SelectTypeParameters=_SHARING),
        "PriorityType": ("priority/multifactor", "priority/basic"),
        "SelectType": ("select/cons_tres", "select/linear", "select/cray_aries"),
        "TaskPlugin": ("task/affinity", "task/cgroup", "task/cray_aries"),
    },
    stops_on=_23_02.stops_on - {"select-type"} | {"submit-line", "linear-tree"},
    autodetect=("nvml", "rsmi", "oneapi", "nrt", "off"),
    hostlist_suffix=True,
    cgroup_keys={
        **_without(_23_02.cgroup_keys, "RootOwnedCgroups", *_KMEM),
        "CgroupAutomount": "defunct",
        "SignalChildrenProcesses": "flag",
    },
    reload="reconfigure",
    select_default="select/cons_tres",
    types_must_be_configured=True,
    container_none=True,
    relative_hooks=frozenset(("prolog", "epilog")),
)
_24_05 = replace(
    _23_11,
    major="24.05",
    defunct_keys=_23_11.defunct_keys - {"SchedulerAuth"} | {"CoreSpecPlugin", "PowerParameters", "PowerPlugin"},
    setting_words={
        key: tuple(word for word in words if not word.endswith(("ExtSensors", "TimeCray", "cray_aries")))
        for key, words in _with(_23_11.setting_words, DebugFlags=("AuditRPCs", "DBD_Agent", "TLS")).items()
    },
    partition_keys=_23_11.partition_keys | {"ExclusiveTopo"},
    conf_keys=_23_11.conf_keys - {"SchedulerAuth"} | {"HashPlugin", "TLSParameters", "TLSType"},
    node_keys=_23_11.node_keys | {"RestrictedCoresPerGPU"},
    prolog_flags=(*_23_11.prolog_flags, "RunInJob"),
    cgroup_keys={**_23_11.cgroup_keys, "SystemdTimeout": "number"},
    cgroup_plugins=(*_23_11.cgroup_plugins, "disabled"),
    prolog_lines_add_up=True,
)
_24_11 = replace(
    _24_05,
    major="24.11",
    setting_words=_with(
        _24_05.setting_words,
        DebugFlags=("ConMgr",),
        TaskPluginParam=("OOMKillStep",),
    ),
    stops_on=_24_05.stops_on - {"partition-preempt"} | {"node-count", "nodeset-names"},
    conf_keys=_24_05.conf_keys | {"CertmgrParameters", "CertmgrType", "DataParserParameters"},
    autodetect=("nvml", "rsmi", "oneapi", "nrt", "nvidia", "off"),
    nvml_takes_empty_mig=True,
    cores_must_match_sockets=True,
    other_gres_confines=True,
    reason_survives_resume=True,
    majors_back=3,
    container_keys={
        **_24_05.container_keys,
        "EntireStepInNS": "flag",
        **_taking("text", "CloneNSScript", "CloneNSEpilog"),
        **_taking("number", "CloneNSScript_Wait", "CloneNSEpilog_Wait"),
    },
    container_alone=_24_05.container_alone
    | {"EntireStepInNS", "CloneNSScript", "CloneNSEpilog", "CloneNSScript_Wait", "CloneNSEpilog_Wait"},
)
_25_05 = replace(
    _24_11,
    major="25.05",
    defunct_keys=_24_11.defunct_keys | {"GetEnvTimeout"},
    setting_words=_but(
        _with(
            _24_11.setting_words,
            DebugFlags=("AuditTLS",),
            State=("external",),
            TaskPluginParam=("SlurmdSpecOverride",),
        ),
        "DebugFlags",
        "FrontEnd",
    ),
    stops_on=_24_11.stops_on | {"tls-type"},
    partition_keys=_24_11.partition_keys | {"Topology"},
    conf_keys=_24_11.conf_keys - {"FrontendName"}
    | {"CertgenParameters", "CertgenType", "EpilogTimeout", "PrologTimeout"},
    node_keys=_24_11.node_keys | {"Topology"},
    cgroup_keys={**_24_11.cgroup_keys, "EnableExtraControllers": "text"},
    reason_survives_resume=None,
)
_25_11 = replace(
    _25_05,
    major="25.11",
    cores_of_one_socket=True,
    defunct_keys=_25_05.defunct_keys | {"AccountingStorageUser"},
    setting_words=_with(_25_05.setting_words, DebugFlags=("Metrics", "Namespace"), PreemptMode=("priority",)),
    conf_keys=_25_05.conf_keys - {"AccountingStorageLoc"}
    | {"CliFilterParameters", "HttpParserType", "JobCompPassScript", "MetricsType", "NamespaceType", "UrlParserType"},
    node_keys=_25_05.node_keys | {"GresConf", "Parameters"},
    cgroup_keys={**_without(_25_05.cgroup_keys, "CgroupReleaseAgentDir"), "CgroupSlice": "text"},
    prolog_uuids="all",
    relative_hooks=_25_05.relative_hooks | {"taskprolog", "taskepilog"},
)
_26_05 = replace(
    _25_11,
    major="26.05",
    setting_words=_with(
        _25_11.setting_words,
        DebugFlags=("thread", "threads"),
        SelectTypeParameters=("CR_NO_DIST_TOPO_BLOCK",),
    ),
    stops_on=_25_11.stops_on | {"health-states"},
    partition_keys=_25_11.partition_keys | {"Exclusive"},
    conf_keys=_25_11.conf_keys
    | {"HealthCheckTimeout", "LicenseParameters", "MetricsAuthUsers", "MetricsParameters", "PowerAction"}
    | {"SlurmctldHttpAuthParameters", "SlurmdHttpAuthParameters"},
    autodetect=("full", "nvml", "rsmi", "oneapi", "nrt", "nvidia", "off"),
    autodetect_sees_mig=("full", "nvml"),
    gres_flags=(*_25_11.gres_flags, "env_uuid"),
    bare_flags_count=False,
    node_keys=_25_11.node_keys | {"SuspendTime"},
    cgroup_keys={**_25_11.cgroup_keys, "CgroupJobIdPaths": "flag"},
    reason_survives_resume=False,
)

RELEASES: Mapping[str, Release] = MappingProxyType(
    {r.major: r for r in (_22_05, _23_02, _23_11, _24_05, _24_11, _25_05, _25_11, _26_05)}
)
"""Every release we know, oldest first."""

NEWEST: Release = _26_05


def release(version: str) -> Release | None:
    """The record for `24.11`, `24.11.5` or a package's `24.11.5-4+deb13u1`; None for a major we do not know."""
    found = re.match(r"(\d\d\.\d\d)(?![\d])", version.strip())
    return RELEASES.get(found[1]) if found else None


def history(key: str, release: Release, keys_of: Callable[[Release], Iterable[str]]) -> str:
    """`came with 25.11`, `was dropped in 23.11`: why this release does not know a key that others do; else empty."""
    order = list(RELEASES.values())
    having = [at for at, other in enumerate(order) if key.lower() in {known.lower() for known in keys_of(other)}]
    here = order.index(release)
    if not having or here in having:
        return ""
    later = [at for at in having if at > here]
    return f"came with {order[later[0]]}" if later else f"was dropped in {order[having[-1] + 1]}"


def nearest_releases(text: str) -> tuple[str, ...]:
    """The majors around a version that is none: `23.5` lies between 23.02 and 23.11, and `24.5` is 24.05 in short."""
    found = re.match(r"\s*v?(\d\d)\.(\d{1,2})(?!\d)", text)
    if not found:
        return ()
    wanted = (int(found[1]), int(found[2]))
    known = {(int(major[:2]), int(major[3:])): major for major in RELEASES}
    if wanted in known:
        return (known[wanted],)
    before, after = [k for k in known if k < wanted][-1:], [k for k in known if k > wanted][:1]
    return tuple(known[key] for key in (*before, *after))
