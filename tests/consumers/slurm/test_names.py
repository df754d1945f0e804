"""Names that must be some other file's or line's, or the release's: nodes, plugins, TRES. A row for each way to err."""

from __future__ import annotations

import pytest

from hybridgpu.consumers.slurm import NEWEST
from tests.consumers.slurm.sites import found, site

BOTH = "NodeName=gpu[01-12] CPUs=8 Gres=gpu:a100:2"
DBD = "AccountingStorageType=accounting_storage/slurmdbd\nAccountingStorageTRES=gres/gpu"

MISSED: dict[str, tuple[dict[str, str], str, str, str, list[str]]] = {
    "zeros left out": (
        site(nodes=BOTH, conf="PartitionName=q Nodes=gpu[1-2]"),
        NEWEST.major,
        "slurm-partition-nodes-unknown",
        "slurm.conf:6:17",
        ["partition q", "gpu[1-2]", "did you mean gpu[01-02]?"],
    ),
    "zeros too many": (
        site(conf="PartitionName=q Nodes=n01"),
        "22.05",
        "slurm-partition-nodes-unknown",
        "slurm.conf:6:17",
        ["no NodeName line defines n01", "did you mean n1?"],
    ),
    "one node too many, from DEFAULT": (
        site(conf="PartitionName=DEFAULT Nodes=n[1-2]\nPartitionName=q"),
        NEWEST.major,
        "slurm-partition-nodes-unknown",
        "slurm.conf:6:23",
        ["defines n2"],
    ),
    "in a node set": (
        site(conf="NodeSet=s Nodes=m1\nPartitionName=q Nodes=s,n1"),
        NEWEST.major,
        "slurm-partition-nodes-unknown",
        "slurm.conf:6:11",
        ["m1", "partition q"],
    ),
    "of no node set": (
        site(conf="NodeSet=gpus Nodes=n1\nPartitionName=q Nodes=gpu"),
        NEWEST.major,
        "slurm-partition-nodes-unknown",
        "slurm.conf:7:17",
        ["gpu"],
    ),
    "no list": (
        site(conf="PartitionName=q Nodes=n[1-"),
        NEWEST.major,
        "slurm-partition-nodes-unknown",
        "slurm.conf:6:17",
        ["n[1-", "never closed"],
    ),
    "down, but not there": (
        site(conf="DownNodes=n01 State=DOWN"),
        NEWEST.major,
        "slurm-listed-nodes-unknown",
        "slurm.conf:6:1",
        ["n01", "did you mean n1?"],
    ),
    "kept awake, but not there": (
        site(conf="SuspendExcNodes=n001:2"),
        NEWEST.major,
        "slurm-listed-nodes-unknown",
        "slurm.conf:6:1",
        ["n001"],
    ),
    "cons_res": (
        site(conf="SelectType=select/cons_res"),
        "23.11",
        "slurm-select-type-unknown",
        "slurm.conf:6:1",
        ["was removed in 23.11", "select/cons_tres"],
    ),
    "Cray": (
        site(conf="SelectType=select/cray_aries"),
        "24.05",
        "slurm-select-type-unknown",
        "slurm.conf:6:1",
        ["was removed in 24.05", "select/cons_tres"],
    ),
    "task plugin": (
        site(conf="TaskPlugin=task/afinity,task/cgroup"),
        NEWEST.major,
        "slurm-plugin-unknown",
        "slurm.conf:6:1",
        ["task/afinity", "did you mean task/affinity?"],
    ),
    "task plugin without prefix": (
        site(conf="TaskPlugin=affinity,cgroups"),
        "22.05",
        "slurm-plugin-unknown",
        "slurm.conf:6:1",
        ["did you mean task/cgroup?"],
    ),
    "proctrack": (
        site(conf="ProctrackType=proctrack/cgroups"),
        NEWEST.major,
        "slurm-plugin-unknown",
        "slurm.conf:6:1",
        ["did you mean proctrack/cgroup?"],
    ),
    "proctrack without prefix": (
        site(conf="ProctrackType=cgroup"),
        NEWEST.major,
        "slurm-plugin-unknown",
        "slurm.conf:6:1",
        ["did you mean proctrack/cgroup?"],
    ),
    "proctrack of Cray": (
        site(conf="ProctrackType=proctrack/cray_aries"),
        "24.05",
        "slurm-plugin-unknown",
        "slurm.conf:6:1",
        ["was removed in 24.05"],
    ),
    "gatherer": (
        site(conf="JobAcctGatherType=jobacct_gather/cgroups"),
        NEWEST.major,
        "slurm-plugin-unknown",
        "slurm.conf:6:1",
        ["did you mean jobacct_gather/cgroup?"],
    ),
    "priority plugin": (
        site(conf="PriorityType=priority/multifator"),
        NEWEST.major,
        "slurm-plugin-unknown",
        "slurm.conf:6:1",
        ["did you mean priority/multifactor?"],
    ),
    "billing": (
        site(conf='PartitionName=q Nodes=n1 TRESBillingWeights="CPU=1.0,GRES/gpu=2"'),
        "22.05",
        "slurm-weight-not-tracked",
        "slurm.conf:6:26",
        ["GRES/gpu", "AccountingStorageTRES=gres/gpu"],
    ),
    "billing by type": (
        site(conf=f"{DBD}\nPartitionName=q Nodes=n1 TRESBillingWeights=GRES/gpu:a100=2"),
        NEWEST.major,
        "slurm-weight-not-tracked",
        "slurm.conf:8:26",
        ["GRES/gpu:a100", "gres/gpu"],
    ),
    "billing in DEFAULT": (
        site(conf="PartitionName=DEFAULT TRESBillingWeights=GRES/gpu=2\nPartitionName=q Nodes=n1"),
        NEWEST.major,
        "slurm-weight-not-tracked",
        "slurm.conf:6:23",
        ["GRES/gpu"],
    ),
    "priority": (
        site(conf="PriorityWeightTRES=GRES/gpu=10"),
        "23.11",
        "slurm-weight-not-tracked",
        "slurm.conf:6:1",
        ["GRES/gpu"],
    ),
    "a weight without a number": (
        site(conf="PriorityWeightTRES=CPU"),
        NEWEST.major,
        "slurm-weight-not-tracked",
        "slurm.conf:6:1",
        ["CPU"],
    ),
    "tracked under another name": (
        site(conf=f"{DBD}s"),
        NEWEST.major,
        "slurm-tracked-gres-unknown",
        "slurm.conf:7:1",
        ["gpus", "did you mean gres/gpu?"],
    ),
    "tracked without gres/": (
        site(conf="AccountingStorageType=accounting_storage/slurmdbd\nAccountingStorageTRES=gpu"),
        NEWEST.major,
        "slurm-tres-unknown",
        "slurm.conf:7:1",
        ["'gpu' is no TRES", "did you mean gres/gpu?"],
    ),
}

RIGHT: dict[str, tuple[dict[str, str], str]] = {
    "padded alike": (site(nodes=BOTH, conf="PartitionName=q Nodes=gpu[01-02],gpu12"), NEWEST.major),
    "a node set": (site(conf="NodeSet=s Feature=x\nNodeSet=t Nodes=n1\nPartitionName=q Nodes=s,t,n1"), NEWEST.major),
    "a set of sets": (site(conf="NodeSet=s Nodes=t\nNodeSet=t Nodes=n1\nPartitionName=q Nodes=s"), NEWEST.major),
    "a set that nobody uses": (site(conf="NodeSet=s Nodes=m1"), NEWEST.major),
    "a default that nobody takes": (site(conf="PartitionName=DEFAULT Nodes=m1\nPartitionName=q Nodes=n1"), "22.05"),
    "no nodes": (site(conf='PartitionName=q Nodes=""'), NEWEST.major),
    "dynamic nodes": (site(conf="PartitionName=q Nodes=d[1-9]\nMaxNodeCount=100"), NEWEST.major),
    "cons_res while it was there": (site(conf="SelectType=select/cons_res"), "23.02"),
    "Cray while it was there": (site(conf="SelectType=select/cray_aries"), "23.11"),
    "no prefix": (site(conf="TaskPlugin=affinity,cgroup", cgroup_conf="ConstrainDevices=yes"), NEWEST.major),
    "none": (site(conf="TaskPlugin=task/none\nJobCompType=jobcomp/none"), NEWEST.major),
    "a plugin of the site's": (site(conf="PluginDir=/opt/p\nTaskPlugin=task/cgroup,task/ourown"), NEWEST.major),
    "others": (
        site(conf="ProctrackType=proctrack/linuxproc\nPreemptType=preempt/none\nSwitchType=switch/nvidia_imex"),
        NEWEST.major,
    ),
    "plugins of the site's for others": (
        site(conf="JobCompType=jobcomp/ours\nPriorityType=priority/basic\nSwitchType=switch/ours"),
        NEWEST.major,
    ),
    "weights": (
        site(conf=f"{DBD}\nPartitionName=q Nodes=n1 TRESBillingWeights=CPU=1,Mem=0.25G,GRES/gpu=2,gres/gpumem=1G"),
        NEWEST.major,
    ),
    "weights of CPUs": (site(conf="PartitionName=q Nodes=n1 TRESBillingWeights=CPU=1,Node=3"), NEWEST.major),
    "weights that nobody reads": (site(conf="PriorityWeightTRES=GRES/gpu=10"), "22.05"),
    "tracked by type": (site(conf=f"{DBD},gres/gpu:a100,license/matlab"), NEWEST.major),
}


@pytest.mark.parametrize("name", MISSED)
def test_a_name_that_is_none_is_told_with_the_right_one(name: str) -> None:
    files, major, rule, place, words = MISSED[name]
    finding = found(files, major)[rule]
    assert str(finding.place) == place
    for word in words:
        assert word in finding.message + finding.hint


@pytest.mark.parametrize("name", RIGHT)
def test_a_name_that_is_one_is_left_alone(name: str) -> None:
    files, major = RIGHT[name]
    assert found(files, major).keys() <= {"slurm-key-twice"}
