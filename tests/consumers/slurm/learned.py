"""What slurmd taught us when generated pairs were compared: each was once judged otherwise than by slurmd -G.

The files, and the releases of 22.05, 24.11 and 26.05 whose slurmd dies of them; the others start.
"""

from __future__ import annotations

from tests.consumers.slurm.sites import site

ALL = "22.05 24.11 26.05"
NEWER = "24.11 26.05"
HEAD = "ClusterName=c\nSlurmctldHost=ctl\nNodeName=n1 CPUs=8\nPartitionName=p Nodes=ALL\n"
TYPES = {"a.conf": "GresTypes=gpu\n"}


def conf(*lines: str) -> dict[str, str]:
    return site(conf="\n".join(lines))


def selecting(plugin: str, *lines: str) -> dict[str, str]:
    return conf(f"SelectType={plugin}", *lines)


def node(words: str, more: str = "") -> dict[str, str]:
    return site(nodes=f"NodeName=n1 CPUs=8 Gres=gpu:a100:2 {words}\n{more}")


LEARNED: dict[str, tuple[dict[str, str], str]] = {
    # Includes
    "%c in gres.conf has no cluster name": (site(records="Include %c.conf", c_conf="AutoDetect=off\n"), ALL),
    "%c after ClusterName": ({**site(conf="Include %c.conf"), "c.conf": "KillWait=30\n"}, ""),
    "%c before ClusterName": ({"slurm.conf": f"Include %c.conf\n{HEAD}", "c.conf": "KillWait=30\n"}, ALL),
    "an Include without a line end": ({"slurm.conf": f"{HEAD}Include a.conf", **TYPES}, ALL),
    "an Include without a line end, nothing but a line end behind it": (
        {"slurm.conf": f"{HEAD}#12345678901234567890\nInclude a.conf", **TYPES},
        "",
    ),
    "an Include with a comment at once": ({"slurm.conf": f"{HEAD}Include a.conf# here\n", **TYPES}, ALL),
    "an Include with a comment of one word at once": ({"slurm.conf": f"{HEAD}Include a.conf#here\n", **TYPES}, ""),
    # host lists
    "a bracket that is never closed": (node("NodeAddr=b[1"), NEWER),
    "a range without an end": (site(nodes="NodeName=n[1-] CPUs=8 Gres=gpu:a100:2"), ""),
    "a range without a beginning": (site(nodes="NodeName=n1,n[-2] CPUs=8 Gres=gpu:a100:2"), ALL),
    "a range with letters behind its first number": (site(nodes="NodeName=n[1a-3],n1 CPUs=8"), ""),
    "an empty Port": (node('Port=""'), ""),
    "an empty BcastAddr": (node('BcastAddr=""'), ""),
    "an empty NodeAddr": (node('NodeAddr=""'), ALL),
    "an empty NodeName": (node("", 'NodeName="" CPUs=8'), ALL),
    "a NodeName of nothing but commas": (node("", "NodeName=, CPUs=8"), ""),
    # numbers and words
    "an empty number": (conf('KillWait=""'), ""),
    "a number that is a plus": (conf('KeepAliveTime="+"'), ALL),
    "a number with a plus": (conf("KeepAliveTime=+5"), ""),
    "a K beyond 32 bits": (conf("PriorityWeightAge=4194304K"), ALL),
    "a K for 16 bits": (conf("KillWait=1K"), ALL),
    "an empty number of cgroup.conf": (site(cgroup_conf='AllowedSwapSpace=""\n'), ""),
    "a flag that is none": (conf("UsePAM=on"), ALL),
    "a number of a defunct key": (conf("GetEnvTimeout=abc"), "22.05 24.11"),
    "a time with letters": (conf("PriorityMaxAge=5m"), ALL),
    "a time in days and hours": (conf("PriorityMaxAge=1-0"), ""),
    "a time that lacks a part": (conf("PriorityDecayHalfLife=1:"), ALL),
    "a time before zero": (conf("PreemptExemptTime=-5"), ""),
    "decay of 0 without a reset": (conf("PriorityDecayHalfLife=0"), ALL),
    "decay of 0 with a reset": (conf("PriorityDecayHalfLife=0", "PriorityUsageResetPeriod=DAILY"), ""),
    "a port that falls": (conf("SlurmctldPort=6820-6817"), ALL),
    "a level of another name": (conf("SlurmctldDebug=loud"), ALL),
    "a flag of DebugFlags that came later": (conf("DebugFlags=AuditTLS"), "22.05 24.11"),
    "a flag of DebugFlags that is none": (conf("DebugFlags=Gres,bogus"), ALL),
    "a wrong word in ReconfigFlags": (conf("ReconfigFlags=Keep"), ""),
    "limits in small letters": (conf("PropagateResourceLimits=all"), ALL),
    "a SuspendTime beyond 32 bits": (conf("SuspendTime=99999999999"), NEWER),
    "a SuspendTime of a partition beyond 32 bits": (conf("PartitionName=q SuspendTime=99999999999"), ALL),
    "a removed key": (conf("SallocDefaultCommand=srun"), ALL),
    # what excludes what
    "two units of selection": (conf("SelectTypeParameters=CR_Core,CR_Socket"), ALL),
    "shared GRES in SelectTypeParameters": (conf("SelectTypeParameters=CR_Core,LL_SHARED_GRES"), "22.05"),
    "cores for select/linear": (selecting("select/linear", "SelectTypeParameters=CR_Core"), "22.05"),
    "a selection without a plugin": (selecting("select/bogus"), "22.05"),
    "topology/tree for select/linear": (selecting("select/linear", "TopologyPlugin=topology/tree"), NEWER),
    "MaxNodeCount for select/linear": (selecting("select/linear", "MaxNodeCount=9"), ALL),
    "MaxNodeCount below the nodes": (site(conf="MaxNodeCount=1", nodes="NodeName=n[1-2] CPUs=8"), ALL),
    "MaxNodeCount of 0": (conf("MaxNodeCount=0"), NEWER),
    "PreemptMode without PreemptType": (conf("PreemptMode=REQUEUE"), ALL),
    "PreemptMode=SUSPEND alone": (conf("PreemptType=preempt/qos", "PreemptMode=SUSPEND"), ALL),
    "PreemptMode=SUSPEND,GANG": (conf("PreemptType=preempt/qos", "PreemptMode=SUSPEND,GANG"), ""),
    "MCSParameters without MCSPlugin": (conf("MCSParameters=ondemand"), ALL),
    "a log level without a log": (conf("SlurmSchedLogLevel=1"), ALL),
    "OOMKillStep without task/cgroup": (conf("TaskPluginParam=OOMKillStep"), ALL),
    "START_ONLY beside another state": (conf("HealthCheckNodeState=START_ONLY,IDLE"), "26.05"),
    "IPv4 off and IPv6 not on": (conf("CommunicationParameters=DisableIPv4"), ALL),
    "any JobContainerType without Contain": (conf("JobContainerType=bogus"), "26.05"),
    "a TLSType without a plugin": (conf("TLSType=tls/bogus"), "22.05 26.05"),
    "a HashPlugin without a plugin": (conf("HashPlugin=hash/bogus"), ALL),
    "no ClusterName": ({"slurm.conf": HEAD.replace("ClusterName=c\n", "")}, ALL),
    "no SlurmctldHost": ({"slurm.conf": HEAD.replace("SlurmctldHost=ctl\n", "")}, ALL),
    "ControlMachine in its place": ({"slurm.conf": HEAD.replace("SlurmctldHost", "ControlMachine")}, ""),
    # other lines
    "a SlurmctldHost twice": (conf("SlurmctldHost=ctl"), ALL),
    "a SlurmctldHost with an open parenthesis": (conf("SlurmctldHost=b(10.0.0.2"), ALL),
    "a key behind SlurmctldHost": (conf("SlurmctldHost=b Port=1"), ALL),
    "a key of a partition that came later": (conf("PartitionName=q PowerDownOnIdle=yes"), "22.05"),
    "a number of a partition that is none": (conf("PartitionName=q MaxNodes=many"), ALL),
    "a State of a partition that is none": (conf("PartitionName=q State=IDLE"), ALL),
    "a State of a partition by its beginning": (conf("PartitionName=q State=UPX"), ""),
    "a PreemptMode of a partition that is none": (conf("PartitionName=q PreemptMode=bogus"), "22.05"),
    "a NodeSet with the name of a node": (conf("NodeSet=n1 Nodes=n1"), NEWER),
    "a key behind NodeSet": (conf("NodeSet=x Foo=1"), ALL),
    "FrontendName": (conf("FrontendName=f"), ALL),
    "a state that slurmctld alone sets": (node("State=MAINT"), ALL),
    "External nodes": (node("State=External"), "22.05 24.11"),
    # gres.conf
    "an empty File": (site("gpu:1", 'Name=gpu File=""'), ""),
    "an empty File of shares": (
        site("gpu:2,shard:8", ["Name=gpu File=/dev/nvidia[0-1]", 'Name=shard File="" Count=8'], types="gpu,shard"),
        ALL,
    ),
    "a Count with a blank before it": (site("gpu:1", 'Name=gpu File=/dev/nvidia0 Count="\f1"'), ""),
    "Cores with a blank": (site("gpu:1", 'Name=gpu File=/dev/nvidia0 Cores="0 3"'), ""),
    "Links with a blank": (site("gpu:1", 'Name=gpu File=/dev/nvidia0 Links=" -1"'), ""),
}
