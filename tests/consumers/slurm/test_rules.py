"""Every rule fires on the mistake it is for, at the place of the mistake, and stays silent on what is right."""

from __future__ import annotations

import pytest

from hybridgpu.consumers.slurm import RELEASES, RULES
from hybridgpu.model.finding import Severity
from tests.consumers.slurm.sites import MIG, found, judged, site

GPUS = "Name=gpu Type=a100 File=/dev/nvidia[0-1]"
PLAIN = "Name=gpu File=/dev/nvidia[0-1]"
NODE = "NodeName=n1 CPUs=8 Sockets=2 CoresPerSocket=4"
ALSO = "NodeName=n2 CPUs=8 Sockets=2 CoresPerSocket=4"
TMPFS = site(conf="PrologFlags=Contain\nJobContainerType=job_container/tmpfs")

FIRES: dict[str, tuple[dict[str, str], str, list[str]]] = {
    "slurm-line-unreadable": (site(records=f"{GPUS} Cores"), "gres.conf:1:42", ["Cores"]),
    "slurm-unknown-key": (site(records=f"{GPUS} Fiel=x"), "gres.conf:1:42", ["Fiel", "did you mean File"]),
    "slurm-include-missing": (site(conf="Include gone.conf"), "slurm.conf:6:9", ["gone.conf"]),
    "slurm-include-without-cluster-name": (site(records="Include %c.conf"), "gres.conf:1:9", ["%c", "ClusterName"]),
    "slurm-include-pattern": (site(conf="Include conf.d/*.conf"), "slurm.conf:6:9", ["conf.d/*.conf"]),
    "slurm-include-not-pushed": (
        site(conf="SlurmctldParameters=cloud_dns,enable_configless\nInclude /etc/other.conf"),
        "slurm.conf:7:9",
        ["/etc/other.conf", "enable_configless"],
    ),
    "slurm-container-bad-value": (
        {**TMPFS, "job_container.conf": "AutoBasePath=ja\nBasePath=/var/jobs\n"},
        "job_container.conf:1:1",
        ["AutoBasePath=ja", "yes"],
    ),
    "slurm-container-base-path": (
        {**TMPFS, "job_container.conf": "BasePath=/var Dirs=/tmp,/var/tmp\n"},
        "job_container.conf:1:1",
        ["/var", "/var/tmp"],
    ),
    "slurm-suspends-closed-nodes": (
        site(conf="SuspendProgram=/s\nSuspendTime=600"),
        "slurm.conf:6:1",
        ["n1", "SuspendExcStates", "DRAIN"],
    ),
    "slurm-include-without-line-end": (
        site(records="Include a.conf# here", a_conf="AutoDetect=off\n"),
        "gres.conf:1:9",
        ["a.conf", "line end"],
    ),
    "slurm-bad-setting": (site(conf="MessageTimeout=1m"), "slurm.conf:6:1", ["MessageTimeout=1m", "65535"]),
    "slurm-select-type-unknown": (site(conf="SelectType=cons_tres"), "slurm.conf:6:1", ["did you mean", "cons_tres"]),
    "slurm-file-names-nothing": (site("gpu:1", 'Name=gpu File=""'), "gres.conf:1:10", ["File"]),
    "slurm-settings-exclude": (site(conf="MCSParameters=enforced"), "slurm.conf:6:1", ["MCSPlugin"]),
    "slurm-setting-missing": ({**site(), "slurm.conf": "SlurmctldHost=ctl\n"}, "slurm.conf:1:1", ["ClusterName"]),
    "slurm-include-loop": (site(conf="Include slurm.conf"), "slurm.conf:6:9", ["slurm.conf"]),
    "slurm-include-not-given": (site(conf="Include /etc/other.conf"), "slurm.conf:6:9", ["/etc/other.conf"]),
    "slurm-default-with-address": (site(conf="NodeName=DEFAULT NodeAddr=a"), "slurm.conf:6:18", ["NodeAddr"]),
    "slurm-key-twice": (site(conf="Prolog=/a\nTaskProlog=/x\nTaskProlog=/y"), "slurm.conf:8:1", ["TaskProlog=/y"]),
    "slurm-bad-number": (site(nodes=f"{NODE} Weight=-1"), "slurm.conf:6:47", ["Weight=-1"]),
    "slurm-bad-hostlist": (site(nodes="NodeName=n[1-2 CPUs=8"), "slurm.conf:6:1", ["n[1-2"]),
    "slurm-node-twice": (site(nodes=f"{NODE}\nNodeName=n[1-2] CPUs=8"), "slurm.conf:7:1", ["n1"]),
    "slurm-address-count": (site(nodes="NodeName=n[1-3] NodeAddr=a[1-2]"), "slurm.conf:6:17", ["2", "3"]),
    "slurm-bad-node-state": (site(nodes=f"{NODE} State=bogus"), "slurm.conf:6:47", ["bogus"]),
    "slurm-node-named-all": (site(nodes="NodeName=ALL CPUs=8"), "slurm.conf:6:1", ["ALL"]),
    "slurm-hardware-mismatch": (site(nodes=NODE.replace("=8", "=7")), "slurm.conf:6:13", ["CPUs=7", "8"]),
    "slurm-shared-without-gpu": (site("", "", types="shard"), "slurm.conf:5:1", ["shard"]),
    "slurm-grestypes-name-twice": (site(types="gpu,gpu"), "slurm.conf:5:1", ["gpu twice"]),
    "slurm-gres-names-collide": (site(types="gpu,abcde,bbcdd"), "slurm.conf:5:1", ["abcde", "bbcdd"]),
    "slurm-gres-not-in-grestypes": (site("gpu:a100:2,nic:1"), "slurm.conf:6:47", ["nic", "GresTypes"]),
    "slurm-gres-unreadable": (site("gpu:1g.10gb"), "slurm.conf:6:47", ["1g.10gb"]),
    "slurm-type-taken-for-count": (
        site("gpu:4090", "Name=gpu Type=4090 File=/dev/nvidia0"),
        "slurm.conf:6:47",
        ["4090"],
    ),
    "slurm-typed-and-untyped": (site("gpu:a100:1,gpu:1"), "slurm.conf:6:47", ["type"]),
    "slurm-bare-gres-ends-list": (site("gpu:2,gpu", PLAIN), "slurm.conf:6:47", ["gpu"]),
    "slurm-gres-record-without-name": (site(records=f"{GPUS}\nNodeName=n1 Count=1"), "gres.conf:2:1", ["n1"]),
    "slurm-gres-nodes-unreadable": (site(records=f"{GPUS}\nNodeName=n[1 {GPUS}"), "gres.conf:2:1", ["n[1"]),
    "slurm-gres-nodes-unknown": (site(records=f"{GPUS}\nNodeName=m[1-9] {GPUS}"), "gres.conf:2:1", ["m[1-9]"]),
    "slurm-inline-autodetect": (site(records=f"{GPUS} AutoDetect=nvml"), "gres.conf:1:42", ["AutoDetect=nvml"]),
    "slurm-file-and-multiplefiles": (site(records=f"{GPUS} MultipleFiles=/a,/b"), "gres.conf:1:42", ["MultipleFiles"]),
    "slurm-multiplefiles-with-one-file": (site(records="Name=gpu MultipleFiles=/a"), "gres.conf:1:10", ["/a"]),
    "slurm-bad-file-list": (site(records="Name=gpu File=/dev/nvidia[1-0]"), "gres.conf:1:10", ["1-0"]),
    "slurm-bad-count": (site(records=f"{GPUS} Count=2x"), "gres.conf:1:42", ["2x"]),
    "slurm-count-differs-from-files": (site(records=f"{GPUS} Count=3"), "gres.conf:1:42", ["Count=3", "2"]),
    "slurm-flags-differ": (
        site(records=["Name=gpu File=/dev/nvidia0 Flags=amd_gpu_env", "Name=gpu File=/dev/nvidia1 Flags=no_gpu_env"]),
        "gres.conf:2:28",
        ["no_gpu_env"],
    ),
    "slurm-no-gpu-env-and-env": (site(records=f"{GPUS} Flags=no_gpu_env,opencl_env"), "gres.conf:1:42", ["opencl_env"]),
    "slurm-flag-unknown": (site(records=f"{GPUS} Flags=one_shring"), "gres.conf:1:42", ["one_shring", "one_sharing"]),
    "slurm-links-invalid": (site(records=f"{GPUS} Links=0,0"), "gres.conf:1:42", ["-1"]),
    "slurm-cores-invalid": (site(records=f"{GPUS} Cores=0-8"), "gres.conf:1:42", ["0-8", "0-7"]),
    "slurm-gres-name-case": (site("gpu:2", "Name=GPU File=/dev/nvidia[0-1]"), "gres.conf:1:1", ["GPU", "gpu"]),
    "slurm-some-records-with-file": (site(records=f"{GPUS}\nName=gpu Type=a100"), "gres.conf:2:1", ["File"]),
    "slurm-some-records-with-type": (site(records=f"{GPUS}\nName=gpu File=/dev/nvidia2"), "gres.conf:2:1", ["Type"]),
    "slurm-duplicate-records": (site("gpu:2", "Name=gpu\nName=gpu"), "gres.conf:2:1", ["duplicate"]),
    "slurm-more-than-configured": (site("gpu:a100:1"), "gres.conf:1:1", ["1 more"]),
    "slurm-not-configured": (site("nic:1", types="gpu,nic"), "gres.conf:1:1", ["no gpu"]),
    "slurm-fewer-than-configured": (site("gpu:a100:3"), "slurm.conf:6:47", ["3", "2"]),
    "slurm-counts-differ": (site("nic:3", "Name=nic Count=2", types="nic"), "slurm.conf:6:47", ["3", "2"]),
    "slurm-gpu-without-file": (site(records="Name=gpu Type=a100 Count=2"), "gres.conf:1:1", ["File"]),
    "slurm-type-case": (site("gpu:A100:2"), "gres.conf:1:1", ["a100", "A100"]),
    "slurm-type-dropped": (site("gpu:2"), "gres.conf:1:1", ["Type=a100"]),
    "slurm-autodetect-unknown": (site(records=f"AutoDetect=amdgpu\n{GPUS}"), "gres.conf:1:1", ["amdgpu", "nvml"]),
    "slurm-autodetect-twice": (
        site(records=["NodeName=n1 AutoDetect=nvml", "NodeName=n[1-2] AutoDetect=off", GPUS]),
        "gres.conf:2:17",
        ["off", "nvml"],
    ),
    "slurm-autodetect-cannot-see-mig": (site("gpu:1g.10gb:7", "AutoDetect=nvidia"), "gres.conf:1:1", ["MIG", "7"]),
    "slurm-autodetect-assumed": (site(records="AutoDetect=nvml"), "gres.conf:1:1", ["2 GPUs"]),
    "slurm-device-twice": (site("gpu:a100:4", [GPUS, GPUS]), "gres.conf:2:1", ["/dev/nvidia0"]),
    "slurm-shares-without-gpu": (site("shard:4", "", types="gpu,shard"), "slurm.conf:6:47", ["shard"]),
    "slurm-shares-with-and-without-file": (
        site("gpu:2,shard:9", [PLAIN, "Name=shard File=/dev/nvidia[0-1] Count=8"], types="gpu,shard"),
        "slurm.conf:6:47",
        ["Count=8", "Count=1"],
    ),
    "slurm-shares-lost": (
        site("gpu:2,shard:9", [PLAIN, "Name=shard File=/dev/nvidia[0-1] Count=9"], types="gpu,shard"),
        "gres.conf:2:1",
        ["4 each", "1 are lost"],
    ),
    "slurm-shares-discarded": (
        site("gpu:2,shard:8", [PLAIN, "Name=shard File=/dev/nvidia5 Count=8"], types="gpu,shard"),
        "gres.conf:2:1",
        ["/dev/nvidia5", "8"],
    ),
    "slurm-mps-on-mig": (site("gpu:1g.10gb:2,mps:100", MIG, types="gpu,mps"), "slurm.conf:6:47", ["mps", "MIG"]),
    "slurm-mps-and-shard": (site("gpu:a100:2,mps:200,shard:8", types="gpu,mps,shard"), "slurm.conf:6:47", ["both"]),
    "slurm-node-invalid": (site(records=f"{GPUS} Cores=0-1"), "gres.conf:1:1", ["socket", "since 24.11"]),
    "slurm-instance-twice": (site("gpu:1g.10gb:2", [MIG[0], MIG[0]]), "gres.conf:2:1", ["nvidia-cap66", "two"]),
    "slurm-gres-punctuation": (site("gpu:a100=2"), "slurm.conf:6:47", ["gpu:a100=2", "write Gres=gpu:a100:2"]),
    "slurm-types-collide": (
        site(
            nodes=f"{NODE} Gres=gpu:4g.20gb:1\n{ALSO} Gres=gpu:1g.23gb:1",
            records=["NodeName=n1 Name=gpu Type=4g.20gb File=/dev/nvidia0", f"NodeName=n2 {PLAIN}"],
        ),
        "slurm.conf:7:47",
        ["4g.20gb", "1g.23gb"],
    ),
    "slurm-shares-need-cons-tres": (
        site(types="gpu,shard", conf="SelectType=select/linear"),
        "slurm.conf:6:1",
        ["linear"],
    ),
    "slurm-tres-without-slurmdbd": (site(conf="AccountingStorageTRES=gres/gpu"), "slurm.conf:6:1", ["gres/gpu"]),
    "slurm-prolog-flag-unknown": (site(conf="PrologFlags=Alloc,Fast"), "slurm.conf:6:1", ["Fast", "Contain"]),
    "slurm-prolog-flags-exclude": (
        site(conf="PrologFlags=nohold,X11"),
        "slurm.conf:6:1",
        ["nohold,X11", "nohold", "beside X11"],
    ),
    "slurm-prolog-serial-lost": (site(conf="PrologFlags=Serial,RunInJob"), "slurm.conf:6:1", ["Serial", "RunInJob"]),
    "slurm-namespace-needs-contain": (
        site(conf="PrologFlags=Alloc\nJobContainerType=job_container/tmpfs"),
        "slurm.conf:7:1",
        ["job_container/tmpfs", "PrologFlags=Alloc", "Contain"],
    ),
    "slurm-mps-prolog-late": (
        site("gpu:a100:2,mps:4", types="gpu,mps", conf="Prolog=/p"),
        "slurm.conf:6:1",
        ["PrologFlags"],
    ),
    "slurm-mps-private-shm": (
        site("gpu:a100:2,mps:200", types="gpu,mps", conf="JobContainerType=job_container/tmpfs"),
        "slurm.conf:6:1",
        ["job_container/tmpfs", "mps"],
    ),
    "slurm-constrain-devices-off": (site(cgroup_conf="ConstrainDevices=no"), "cgroup.conf:1:1", ["ConstrainDevices"]),
    "slurm-constrain-devices-unused": (
        site(conf="TaskPlugin=task/none", cgroup_conf="ConstrainDevices=yes"),
        "slurm.conf:6:1",
        ["task/none"],
    ),
    "slurm-bad-port": (site(nodes=f"{NODE} Port=0"), "slurm.conf:6:47", ["Port=0", "1 to 65535"]),
    "slurm-node-value-reset": (
        site(nodes=f"{NODE} CoreSpecCount=8"),
        "slurm.conf:6:47",
        ["CoreSpecCount=8", "8 cores"],
    ),
    "slurm-cgroup-bad-value": (site(cgroup_conf="ConstrainCores=maybe"), "cgroup.conf:1:1", ["maybe", "yes, no"]),
    "slurm-cgroup-key-without-effect": (
        site(cgroup_conf="CgroupAutomount=yes"),
        "cgroup.conf:1:1",
        ["CgroupAutomount"],
    ),
    "slurm-cgroup-swappiness-too-high": (site(cgroup_conf="MemorySwappiness=101"), "cgroup.conf:1:1", ["101", "100"]),
    "slurm-grestypes-order": (
        site("gpu:a100:2,shard:8", types="gpu,shard,mps"),
        "slurm.conf:5:1",
        ["shard job", "CUDA_VISIBLE_DEVICES"],
    ),
}
ELSEWHERE = {
    *("slurm-plugin-unknown", "slurm-partition-nodes-unknown", "slurm-listed-nodes-unknown"),
    *("slurm-weight-not-tracked", "slurm-tracked-gres-unknown", "slurm-tres-unknown", "slurm-file-is-no-path"),
    *("slurm-types-out-of-device-order", "slurm-card-beside-its-instances", "slurm-card-holds-fewer"),
    *("slurm-capability-of-another-card", "slurm-autodetect-profile-unknown"),
    *("slurm-mig-split", "slurm-detected-differs", "slurm-not-detected", "slurm-detected-ignored"),
    *("slurm-include-from-copy", "slurm-includes-too-many", "slurm-file-not-read"),
    *("slurm-gres-conf-ambiguous", "slurm-gres-conf-not-given"),
}
"""Rules that need an older release, hardware, or files on disk, or have tables of their own: fired in test_consume,
test_detect, test_gather, test_names and test_devices."""


def test_every_rule_has_a_firing_case_and_a_name_of_its_own() -> None:
    ids = [rule.id for rule in RULES]
    assert len(ids) == len(set(ids))
    assert set(FIRES) | ELSEWHERE == set(ids)


@pytest.mark.parametrize("rule", FIRES)
def test_a_rule_fires_where_the_mistake_is(rule: str) -> None:
    files, place, words = FIRES[rule]
    findings = [finding for finding in judged(files).findings if finding.rule.id == rule]
    assert [str(finding.place) for finding in findings][:1] == [place]
    for word in words:
        assert word in findings[0].message + findings[0].hint


CLEAN: dict[str, dict[str, str]] = {
    "whole GPUs": site(),
    "untyped GPUs": site("gpu:2", PLAIN),
    "one record a GPU": site(records=[f"Name=gpu Type=a100 File=/dev/nvidia{n}" for n in (0, 1)]),
    "cores of whole sockets": site(
        records=["Name=gpu Type=a100 File=/dev/nvidia0 Cores=0-3", "Name=gpu Type=a100 File=/dev/nvidia1 Cores=4-7"]
    ),
    "links": site(
        records=["Name=gpu Type=a100 File=/dev/nvidia0 Links=-1,4", "Name=gpu Type=a100 File=/dev/nvidia1 Links=4,-1"]
    ),
    "MIG": site("gpu:1g.10gb:2", MIG),
    "MIG beside a whole GPU": site("gpu:1g.10gb:2,gpu:a100:1", [*MIG, "Name=gpu Type=a100 File=/dev/nvidia1"]),
    "MIG with shards spread": site("gpu:1g.10gb:2,shard:8", [*MIG, "Name=shard Count=8"], types="gpu,shard"),
    "shards by file": site(
        "gpu:a100:2,shard:8", [GPUS, *(f"Name=shard File=/dev/nvidia{n} Count=4" for n in (0, 1))], types="gpu,shard"
    ),
    "shards without a record": site("gpu:a100:2,shard:8", types="gpu,mps,shard"),
    "mps in both orders of nothing else": site("gpu:a100:2,mps:200", types="mps,gpu"),
    "mps beside shard, with a task prolog": site(
        "gpu:a100:2,mps:200",
        types="gpu,mps,shard",
        conf="Prolog=/p\nPrologFlags=Contain\nTaskProlog=/t",
    ),
    "a node without GPUs": site(nodes=f"{NODE} Gres=gpu:a100:2\n{ALSO}", records=f"NodeName=n1 {GPUS}"),
    "no GPUs at all": site(nodes=NODE, records="", types=None),
    "other GRES": site(
        "gpu:a100:2,nic:2,hybridgpu_k8s:2",
        [GPUS, "Name=nic Count=2", "Name=hybridgpu_k8s File=/dev/nvidia[4-5]"],
        types="gpu,nic,hybridgpu_k8s",
    ),
    "counts in thousands": site("gpu:a100:2,shard:2K", types="gpu,shard"),
    "no_consume and sockets": site("gpu:a100:no_consume:2(S:0-1)"),
    "AutoDetect off": site(records=f"AutoDetect=off\n{GPUS}"),
    "AutoDetect off for a node": site(records=f"AutoDetect=nvml\nNodeName=n1 AutoDetect=off\n{GPUS}"),
    "records in an Include": site(records="Include more.conf", more_conf=GPUS),
    "defaults": site(nodes=f"NodeName=DEFAULT {NODE[12:]} Gres=gpu:a100:2\nNodeName=n[1-2] NodeAddr=a[1-2]"),
    "a default taken back": site(nodes=f'NodeName=DEFAULT Gres=nic:1\n{NODE} Gres=""', records="", types="nic"),
    "equal flags": site(records=[f"Name=gpu Type=a100 File=/dev/nvidia{n} Flags=nvidia_gpu_env" for n in (0, 1)]),
    "devices confined": site(conf="TaskPlugin=task/cgroup,task/affinity", cgroup_conf="ConstrainDevices=yes"),
    "accounting": site(conf="AccountingStorageType=accounting_storage/slurmdbd\nAccountingStorageTRES=gres/gpu"),
    "two prologs": site(conf="Prolog=/a\nProlog=/b\nEpilog=/c\nEpilog=/d"),
    "a node range wider than the cluster": site(records=f"NodeName=n[1-99] {GPUS}"),
    "a private /dev/shm without mps": site(conf="JobContainerType=job_container/tmpfs\nPrologFlags=Contain"),
    "a private /tmp alone beside mps": {
        **site("gpu:a100:2,mps:200", types="gpu,mps", conf="JobContainerType=job_container/tmpfs\nPrologFlags=Contain"),
        "job_container.conf": "AutoBasePath=true\nBasePath=/var/jobs Dirs=/tmp\n",
    },
    "power saving": site(conf="SuspendProgram=/s\nSuspendTime=600\nSuspendExcNodes=n[1-9]"),
    "records for dynamic nodes": site(records=f"{GPUS}\nNodeName=d[1-9] {GPUS}", conf="MaxNodeCount=100"),
}
OLDER = {"MIG with shards spread": "22.05", "two prologs": "23.11", "a private /tmp alone beside mps": "22.05"}
"""What is no longer clean on this release and before."""


@pytest.mark.parametrize("name", CLEAN)
def test_what_is_right_has_no_finding_on_any_release_that_takes_it(name: str) -> None:
    for major in RELEASES:
        if major > OLDER.get(name, ""):
            assert judged(CLEAN[name], major).findings == (), major


@pytest.mark.parametrize("name", OLDER)
def test_what_an_older_release_does_not_take(name: str) -> None:
    assert all(judged(CLEAN[name], major).findings for major in RELEASES if major <= OLDER[name])


def test_rules_speak_to_a_person() -> None:
    for rule in RULES:
        assert rule.what_happens.endswith(".") and rule.fix.endswith((".", ")", "..."))
        assert rule.source and isinstance(rule.severity, Severity)


def test_a_mistake_of_one_node_is_no_finding_of_another() -> None:
    nodes = f"{NODE} Gres=gpu:a100:3\n{ALSO} Gres=gpu:a100:2"
    result = judged(site(nodes=nodes))
    assert result.nodes["n1"].findings and not result.nodes["n2"].findings and not result.cluster
    assert found(site(nodes=nodes)).keys() == {"slurm-fewer-than-configured"}
