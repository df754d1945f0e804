"""What import makes of small sites: the text for what can be said, and a finding for everything that cannot."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from hybridgpu.check.importing import Imported, import_site
from hybridgpu.check.site import check
from hybridgpu.consumers.slurm import release
from hybridgpu.errors import Refused
from hybridgpu.files.yamltree import Mapping as Mapping_
from hybridgpu.files.yamltree import Scalar, one_document, parse_yaml
from hybridgpu.inventory.importer.document import Block, Entry, text_of
from tests.consumers.slurm.sites import CAPS, MIG, site

CASES = Path(__file__).parent.parent / "data" / "cases"
Files = Mapping[str, str]


def imported(folder: Path, files: Files, version: str | None = "24.11") -> Imported:
    """What import gives for these files; the inventory is right, and making it again gives the same."""
    site_folder = folder / "site"
    for name, text in files.items():
        (site_folder / name).parent.mkdir(parents=True, exist_ok=True)
        (site_folder / name).write_text(text)
    result = import_site([str(site_folder)], release(version) if version else None)
    assert import_site([str(site_folder)], release(version) if version else None).text == result.text
    (folder / "inventory.yaml").write_text(result.text)
    assert [f.message for f in check([str(folder / "inventory.yaml")]).findings if f.is_error] == [], result.text
    return result


def rules(result: Imported) -> dict[str, str]:
    """The messages by rule."""
    return {finding.rule.id: finding.message for finding in result.findings}


def data(result: Imported) -> Any:  # noqa: ANN401 - the inventory as data, every scalar text
    return yaml.load(result.text, Loader=yaml.BaseLoader)


def facts(node: str, model: str = "A100-SXM4-80GB", minors: tuple[int, ...] = (0, 1), **more: object) -> str:
    gpus = [
        {
            "index": index,
            "minor": minor,
            "uuid": f"GPU-00000000-0000-0000-0000-{index:012}",
            "pci_bus_id": f"0000:{index + 1:02x}:00.0",
            "model": model,
            "memory_bytes": 80 * 2**30,
            "mig_enabled": False,
            "compute_mode": "default",
            "cores": None,
            "links": None,
            "instances": [],
            **more,
        }
        for index, minor in enumerate(minors)
    ]
    return json.dumps(
        {"apiVersion": "hybridgpu/v1", "kind": "Facts", "node": node, "driver": {"version": "550.54.15"}, "gpus": gpus}
    )


def node(name: str, labels: Mapping[str, str] | None = None, gpus: int = 2, **spec: object) -> str:
    allocatable = {"nvidia.com/gpu": str(gpus)} if gpus else {}
    record = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": dict(labels or {})}}
    return yaml.safe_dump({**record, "spec": spec, "status": {"allocatable": allocatable}})


def closed_site(lines: str) -> dict[str, str]:
    """A node that Slurm's own lines keep jobs from."""
    files = site("gpu:l40s:2", TYPED)
    return files | {"slurm.conf": files["slurm.conf"].replace("PartitionName=p Nodes=ALL", lines)}


CONFIGS = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: gpu-configs, namespace: gpus}
data:
  default: "version: v1"
  ts4: |
    version: v1
    sharing:
      timeSlicing:
        renameByDefault: true
        resources:
        - {name: nvidia.com/gpu, replicas: 4}
  mps8: |
    version: v1
    flags: {mpsRoot: /var/mps}
    sharing:
      mps:
        resources:
        - {name: nvidia.com/gpu, replicas: 8}
"""
POLICY = """\
apiVersion: nvidia.com/v1
kind: ClusterPolicy
metadata: {name: p}
spec: {devicePlugin: {config: {name: gpu-configs, default: default}}}
"""
MIG_PARTED = """\
version: v1
mig-configs:
  half:
  - {devices: [0], mig-enabled: true, mig-devices: {3g.40gb: 2}}
  - {devices: [1], mig-enabled: false}
"""
TYPED = "Name=gpu Type=l40s File=/dev/nvidia[0-1]"
PRODUCT = {"nvidia.com/gpu.product": "NVIDIA-L40S", "nvidia.com/gpu.count": "2"}


def test_a_site_in_full(tmp_path: Path) -> None:
    files = site(
        nodes="\n".join(
            [
                "NodeName=DEFAULT Sockets=2 CoresPerSocket=16 RealMemory=512K State=UNKNOWN",
                "NodeName=g[01-03] NodeAddr=ib-g[01-03] Weight=10 Gres=gpu:l40s:2,nic:2",
                "NodeName=g[04-05] Weight=20 Gres=gpu:l40s:2,shard:8,nic",
                "NodeName=m1 Gres=gpu:1g.10gb:2",
                "NodeName=cpu[1-9] CPUs=32",
            ]
        ),
        records=[
            f"NodeName=g[01-05] {TYPED}",
            *(f"NodeName=g[04-05] Name=shard Count=4 File=/dev/nvidia{minor}" for minor in (0, 1)),
            *(f"NodeName=m1 {line}" for line in MIG),
            "NodeName=g[01-05] Name=nic File=/dev/null,/dev/zero",
        ],
        types="gpu,shard,nic",
        conf="PrologFlags=Contain,X11\nProlog=/etc/slurm/prolog.d/*\nTaskProlog=/etc/slurm/task.sh\n"
        "AccountingStorageType=accounting_storage/slurmdbd\nAccountingStorageTRES=license/ansys,gres/gpu",
        cgroup_conf="ConstrainCores=yes\nConstrainDevices=yes\n",
    )
    files["gres.conf"] = files["gres.conf"].replace(
        "NodeName=g[01-05] Name=nic File", "NodeName=g[01-03] Name=nic File"
    )
    files["gres.conf"] += "NodeName=g[04-05] Name=nic Count=1\n"
    result = imported(tmp_path, files)
    assert result.text == (
        "apiVersion: hybridgpu/v1\n"
        "kind: Inventory\n"
        "metadata: {name: c}\n"
        "slurm:\n"
        '  version: "24.11"\n'
        '  autoDetect: "off"\n'
        "  accounting: slurmdbd\n"
        "  controllers: [ctl]\n"
        "  site:\n"
        "    gresTypes: [nic]\n"
        '    gres: ["NodeName=g[01-03] Name=nic File=/dev/null,/dev/zero", "NodeName=g[04-05] Name=nic Count=1"]\n'
        '    prolog: ["/etc/slurm/prolog.d/*"]\n'
        "    taskProlog: /etc/slurm/task.sh\n"
        "    prologFlags: [Contain, X11]\n"
        "    accountingStorageTRES: [license/ansys]\n"
        '    cgroup: {ConstrainCores: "yes"}\n'
        "nodeClasses:\n"
        "  l40s:\n"
        "    model: L40S\n"
        "    gpus: 2\n"
        '    slurm: {Sockets: 2, CoresPerSocket: 16, RealMemory: 524288, Weight: 10, Gres: "nic:2"}\n'
        "  a100-sxm4-80gb:\n"
        "    model: A100-SXM4-80GB  # guessed: 2 x 1g.10gb fits A100-SXM4-80GB, A100-80GB-PCIe, A100X, A800-SXM4-80GB,"
        " A800-80GB-PCIe, H100-80GB-HBM3 and 3 more\n"
        "    gpus: 1\n"
        "    slurm: {Sockets: 2, CoresPerSocket: 16, RealMemory: 524288}\n"
        "nodes:\n"
        "- hosts: g[01-03]\n"
        "  class: l40s\n"
        "  owner: slurm\n"
        "  sharing: {mode: exclusive}\n"
        "  slurm: {NodeAddr: 'ib-g[01-03]'}\n"
        "- hosts: g[04-05]\n"
        "  class: l40s\n"
        "  owner: slurm\n"
        "  sharing: {mode: time-slicing, replicas: 4}\n"
        '  slurm: {Weight: 20, Gres: "nic:1"}\n'
        "- hosts: m1\n"
        "  class: a100-sxm4-80gb\n"
        "  owner: slurm\n"
        "  sharing: {mode: mig, layout: {all: {1g.10gb: 2}}}\n"
    )
    assert rules(result) == {"import-nodes-without-gpus": "cpu[1-9]: no GPUs"}
    assert [(guess.line, guess.written) for guess in result.guesses] == [(23, "model: A100-SXM4-80GB")]


FIRES: dict[str, Files] = {
    "import-cores-left-out": site("gpu:l40s:2", f"{TYPED} Cores=0-3"),
    "import-links-left-out": site(
        "gpu:l40s:2",
        [f"Name=gpu Type=l40s File=/dev/nvidia{n} Links={links}" for n, links in ((0, "-1,4"), (1, "4,-1"))],
    ),
    "import-type-added": site("gpu:2", "Name=gpu File=/dev/nvidia[0-1]"),
    "import-model-unknown": site("gpu:big:2", "Name=gpu Type=big File=/dev/nvidia[0-1]"),
    "import-order-differs": site("gpu:l40s:2", [f"Name=gpu Type=l40s File=/dev/nvidia{n}" for n in (1, 0)]),
    "import-files-added": site("gpu:1g.10gb:1", f"Name=gpu Type=1g.10gb MultipleFiles=/dev/nvidia0,{CAPS}66"),
    "import-gres-flags-lost": site("gpu:l40s:2", f"{TYPED} Flags=no_gpu_env"),
    "import-node-state-dropped": site(nodes="NodeName=n1 CPUs=8 Gres=gpu:l40s:2 State=DOWN", records=TYPED),
    "import-not-nvidia": site(
        nodes="NodeName=n1 Gres=gpu:l40s:2\nNodeName=n2 Gres=gpu:mi250:1",
        records=[f"NodeName=n1 {TYPED}", "NodeName=n2 Name=gpu Type=mi250 File=/dev/dri/renderD128"],
    ),
    "import-autodetect-differs": site(
        nodes="NodeName=n1 Gres=gpu:l40s:2\nNodeName=n2 Gres=gpu:l40s:2",
        records=["AutoDetect=nvml", "NodeName=n1 AutoDetect=off", f"NodeName=n1 {TYPED}"],
    ),
    "import-nodes-without-gpus": site(
        nodes="NodeName=n1 Gres=gpu:l40s:2\nNodeName=n2 CPUs=8", records=f"NodeName=n1 {TYPED}"
    ),
    "import-task-prolog-hidden": site("gpu:1g.10gb:2", MIG, conf="TaskProlog=/usr/lib/hybridgpu/taskprolog"),
    "import-facts-of-unknown-node": site("gpu:l40s:2", TYPED) | {"facts/n7.json": facts("n7")},
    "import-inventory-given": site("gpu:l40s:2", TYPED) | {"old.yaml": "apiVersion: hybridgpu/v1\nkind: Inventory\n"},
    "import-kubernetes-nodes-not-given": site("gpu:l40s:2", TYPED) | {"configs.yaml": CONFIGS},
}
"""For each rule that is no error a site that fires it."""

LOSES: dict[str, Files] = {
    "import-type-renamed": site(
        "gpu:a100_1g.10gb:1", f"Name=gpu Type=a100_1g.10gb MultipleFiles=/dev/nvidia0,{CAPS}66,{CAPS}67"
    ),
    "import-devices-differ": site("gpu:l40s:2", "Name=gpu Type=l40s File=/dev/nvidia[2-3]"),
    "import-shares-differ": site(
        "gpu:l40s:2,shard:6",
        [TYPED, *(f"Name=shard Count={n} File=/dev/nvidia{m}" for n, m in ((4, 0), (2, 1)))],
        types="gpu,shard",
    ),
    "import-node-value-lost": site(
        nodes='NodeName=n1 CPUs=8 Features="a#b" Gres=gpu:l40s:2'.replace("#", "'"), records=TYPED
    ),
    "import-node-state-lost": site(nodes="NodeName=n1 CPUs=8 Gres=gpu:l40s:2 State=CLOUD", records=TYPED),
    "import-setting-lost": site("gpu:l40s:2", TYPED, conf='Prolog="/etc/slurm/my prolog"'),
    "import-gres-line-lost": site("gpu:l40s:2,nic:1", [TYPED, "Name=nic Count=1 Type=it's"], types="gpu,nic"),
    "import-instance-unknown": site(
        nodes="NodeName=n1 Gres=gpu:l40s:2\nNodeName=n2 Gres=gpu:small:1",
        records=[
            f"NodeName=n1 {TYPED}",
            f"NodeName=n2 Name=gpu Type=small MultipleFiles=/dev/nvidia0,{CAPS}66,{CAPS}67",
        ],
    ),
    "import-layout-impossible": site(
        nodes="NodeName=n1 Gres=gpu:l40s:2\nNodeName=n2 Gres=gpu:7g.80gb:2",
        records=[
            f"NodeName=n1 {TYPED}",
            *(f"NodeName=n2 Name=gpu Type=7g.80gb MultipleFiles=/dev/nvidia0,{CAPS}{n},{CAPS}{n + 1}" for n in (3, 12)),
        ],
    ),
    "import-cards-unknown": site("gpu:l40s:2", TYPED)
    | {"node.yaml": node("k1", {"nvidia.com/gpu.present": "true"}, 0)},
    "import-modes-differ": site("gpu:l40s:2", TYPED)
    | {"configs.yaml": CONFIGS, "n.yaml": node("n1", {"nvidia.com/device-plugin.config": "ts4"})},
    "import-name-illegal": site(nodes="NodeName=n1 Gres=gpu:l40s:2\nNodeName=n;2 Gres=gpu:l40s:2", records=TYPED),
    "import-split-impossible": site(
        nodes="NodeName=n1 Gres=gpu:l40s:2\nNodeName=n2 Gres=gpu:l40s:2,mps:200,hybridgpu_k8s:1",
        records=[TYPED, "NodeName=n2 Name=hybridgpu_k8s File=/dev/nvidia2"],
        types="gpu,mps,hybridgpu_k8s",
    ),
    "import-sharing-lost": {
        "policy.yaml": POLICY,
        "configs.yaml": CONFIGS.replace("namespace: gpus", "namespace: gpu-operator"),
        "n.yaml": node("n1", {**PRODUCT, "nvidia.com/device-plugin.config": "ts4"}),
    },
    "import-other-gres-differ": site("gpu:l40s:2,my-nic:2", [TYPED, "Name=my-nic Count=2"], types="gpu,my-nic"),
}
"""For each rule that says that something is lost a site that fires it."""


@pytest.mark.parametrize("rule", FIRES)
def test_what_is_told_beside_the_inventory(rule: str, tmp_path: Path) -> None:
    result = imported(tmp_path, FIRES[rule])
    assert rule in rules(result)
    assert [finding.message for finding in result.findings if finding.is_error] == []


@pytest.mark.parametrize("rule", LOSES)
def test_what_is_lost_is_an_error(rule: str, tmp_path: Path) -> None:
    result = imported(tmp_path, LOSES[rule])
    lost = {finding.rule.id: finding for finding in result.findings if finding.is_error}
    assert rule in lost
    assert lost[rule].place is not None


REFUSED: dict[str, tuple[Files, str]] = {
    "nothing": ({"notes.txt": "hello"}, "import-nothing-known"),
    "workloads alone": ({"pod.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n"}, "import-no-gpu-nodes"),
    "no GPUs": (site(nodes="NodeName=n1 CPUs=8", records="# none", types=None), "import-no-gpu-nodes"),
    "a fatal mistake": (site("gpu:l40s:2", f"{TYPED} Frobnicate=1"), "slurm-unknown-key"),
    "a node whose slurmd dies": (
        site("gpu:l40s:2", [TYPED, "Name=gpu File=/dev/nvidia2"]),
        "slurm-some-records-with-type",
    ),
    "broken facts": ({"f.json": facts("n1").replace('"index": 0', '"index": "x"')}, "facts-illegal-field"),
    "facts twice": ({"a/n1.json": facts("n1"), "b/n1.json": facts("n1")}, "check-facts-twice"),
    "two clusters": (
        {f"{name}/{file}": text for name in "ab" for file, text in site("gpu:l40s:2", TYPED).items()},
        "import-two-clusters",
    ),
    "a broken manifest": ({"n.yaml": "apiVersion: v1\nkind: Node\nmetadata: {name: [\n"}, "k8s-manifest-unreadable"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_read_is_refused(what: str, tmp_path: Path) -> None:
    files, rule = REFUSED[what]
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    with pytest.raises(Refused) as refused:
        import_site([str(tmp_path)])
    assert rule in {finding.rule.id for finding in refused.value.findings if finding.is_error}


def test_a_release_is_guessed_that_starts_with_the_files(tmp_path: Path) -> None:
    (tmp_path / "new").mkdir()
    (tmp_path / "old").mkdir()
    newest = imported(tmp_path / "new", site("gpu:l40s:2", TYPED), None)
    old = imported(tmp_path / "old", site("gpu:l40s:2", TYPED, conf="SchedulerAuth=auth/none"), None)
    assert data(newest)["slurm"]["version"] == "26.05"
    assert data(old)["slurm"]["version"] == "23.11"
    assert "is a guess" not in newest.text
    assert 'version: "23.11"  # guessed: ' in old.text


def test_facts_say_what_slurm_does_not(tmp_path: Path) -> None:
    """Model, minors and cores: with facts nothing of an untyped node with odd device files is lost."""
    files = site("gpu:2", [f"Name=gpu File=/dev/nvidia{minor} Cores=0-3" for minor in (3, 5)])
    result = imported(tmp_path, files | {"facts/n1.json": facts("n1", minors=(5, 3), cores="0-3")})
    assert data(result)["nodeClasses"] == {
        "a100-sxm4-80gb": {
            "model": "A100-SXM4-80GB",
            "gpus": "2",
            "slurm": {"CPUs": "8", "Sockets": "2", "CoresPerSocket": "4"},
        }
    }
    assert set(rules(result)) == {"import-type-added"}
    assert [guess.written for guess in result.guesses] == []


def test_facts_of_one_node_tell_what_a_type_means(tmp_path: Path) -> None:
    files = site(nodes="NodeName=n[1-2] Gres=gpu:a100:2", records="Name=gpu Type=a100 File=/dev/nvidia[0-1]")
    result = imported(tmp_path, files | {"facts/n2.json": facts("n2")})
    classes = data(result)["nodeClasses"]
    assert {one["model"] for one in classes.values()} == {"A100-SXM4-80GB"}
    assert [guess.why for guess in result.guesses] in ([], ["what other nodes call a100 is one"])


def test_facts_alone(tmp_path: Path) -> None:
    cut: dict[str, Any] = {
        "mig_enabled": True,
        "instances": [
            {
                "uuid": f"MIG-{i}",
                "profile": "3g.40gb",
                "placement": {"start": s, "size": 4},
                "gi": g,
                "ci": 0,
                "gi_minor": None,
                "ci_minor": None,
            }
            for i, s, g in ((0, 0, 1), (1, 4, 2))
        ],
    }
    files = {"n1.json": facts("n1"), "n2.json": facts("n2"), "m1.json": facts("m1", minors=(0,), **cut)}
    result = imported(tmp_path, files, None)
    assert [(e["hosts"], e["owner"], e["sharing"]) for e in data(result)["nodes"]] == [
        ("m1", "slurm", {"mode": "mig", "layout": {"all": {"3g.40gb": "2"}}}),
        ("n[1-2]", "slurm", {"mode": "exclusive"}),
    ]
    assert {guess.written.partition(":")[0] for guess in result.guesses} == {"metadata", "version", "owner"}


KUBERNETES: dict[str, tuple[Files, dict[str, Any], set[str]]] = {
    "in Kubernetes alone": (
        {"configs.yaml": CONFIGS, "n.yaml": node("k1", {**PRODUCT, "nvidia.com/device-plugin.config": "ts4"}, 8)},
        {
            "hosts": "k1",
            "owner": "kubernetes",
            "sharing": {
                "mode": "time-slicing",
                "replicas": "4",
                "renameByDefault": "true",
                "failRequestsGreaterThanOne": "false",
            },
        },
        set(),
    ),
    "by labels alone": (
        {
            "n.yaml": node(
                "k1",
                {
                    "nvidia.com/gpu.product": "NVIDIA-L40S-SHARED",
                    "nvidia.com/gpu.count": "2",
                    "nvidia.com/gpu.sharing-strategy": "mps",
                    "nvidia.com/gpu.replicas": "6",
                },
                12,
            )
        },
        {"hosts": "k1", "owner": "kubernetes", "sharing": {"mode": "mps", "replicas": "6"}},
        set(),
    ),
    "the same in both": (
        site("gpu:l40s:2,shard:8", TYPED, types="gpu,shard")
        | {"configs.yaml": CONFIGS, "n.yaml": node("n1.example.org", {"nvidia.com/device-plugin.config": "ts4"}, 8)},
        {
            "hosts": "n1",
            "owner": "slurm",
            "kubernetesName": "{host}.example.org",
            "sharing": {
                "mode": "time-slicing",
                "replicas": "4",
                "renameByDefault": "true",
                "failRequestsGreaterThanOne": "false",
            },
        },
        set(),
    ),
    "mps has its replicas from Kubernetes": (
        site("gpu:l40s:2,mps:200", TYPED, types="gpu,mps")
        | {"configs.yaml": CONFIGS, "n.yaml": node("n1", {"nvidia.com/device-plugin.config": "mps8"}, 16)},
        {"hosts": "n1", "owner": "slurm", "sharing": {"mode": "mps", "replicas": "8"}},
        set(),
    ),
    "Slurm's line is closed": (
        site(nodes="NodeName=n1 Gres=gpu:l40s:2 State=DRAIN", records=TYPED) | {"n.yaml": node("n1")},
        {"hosts": "n1", "owner": "kubernetes", "sharing": {"mode": "exclusive"}},
        {"import-node-state-dropped"},
    ),
    "Slurm has it in no partition that is up": (
        closed_site("PartitionName=p Nodes=n1 State=DOWN") | {"n.yaml": node("n1")},
        {"hosts": "n1", "owner": "kubernetes", "sharing": {"mode": "exclusive"}},
        set(),
    ),
    "Slurm has it among DownNodes": (
        closed_site("PartitionName=p Nodes=ALL\nDownNodes=n1") | {"n.yaml": node("n1")},
        {"hosts": "n1", "owner": "kubernetes", "sharing": {"mode": "exclusive"}},
        set(),
    ),
    "cordoned": (
        site("gpu:l40s:2", TYPED) | {"n.yaml": node("n1", unschedulable=True)},
        {"hosts": "n1", "owner": "slurm", "sharing": {"mode": "exclusive"}},
        set(),
    ),
    "cut by mig-parted": (
        {
            "mig.yaml": MIG_PARTED,
            "n.yaml": node(
                "k1",
                {
                    "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB",
                    "nvidia.com/gpu.count": "2",
                    "nvidia.com/mig.config": "half",
                },
            ),
        },
        {
            "hosts": "k1",
            "owner": "kubernetes",
            "sharing": {"mode": "mig", "layout": {"0": {"3g.40gb": "2"}, "1": "off"}},
        },
        set(),
    ),
    "instances that labels count": (
        {
            "n.yaml": node(
                "k1",
                {
                    "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB",
                    "nvidia.com/gpu.count": "2",
                    "nvidia.com/mig.strategy": "mixed",
                    "nvidia.com/mig-1g.10gb.count": "14",
                },
                0,
            )
        },
        {"hosts": "k1", "owner": "kubernetes", "sharing": {"mode": "mig", "layout": {"all": {"1g.10gb": "7"}}}},
        set(),
    ),
}
"""Files, what the entry must be (class, schedulers and slurm: aside), and the rules that may fire."""


@pytest.mark.parametrize("what", KUBERNETES)
def test_a_node_in_kubernetes(what: str, tmp_path: Path) -> None:
    files, expected, told = KUBERNETES[what]
    result = imported(tmp_path, files)
    entry = data(result)["nodes"][0]
    assert {key: value for key, value in entry.items() if key not in ("class", "schedulers", "slurm")} == expected
    assert {finding.rule.id for finding in result.findings} <= told


def cut_node(gpus: int = 0, labels: Mapping[str, str] | None = None, **instances: str) -> str:
    """Two A100 of 40 GB with so many instances, by resource, offered and labelled."""
    mig = {f"nvidia.com/{name.replace('_', '.').replace('mig.', 'mig-')}": count for name, count in instances.items()}
    told = {"nvidia.com/gpu.product": "NVIDIA-A100-PCIE-40GB", "nvidia.com/gpu.count": "2"}
    counts = {f"{name}.count": count for name, count in mig.items()}
    record = yaml.safe_load(node("a1", {**told, "nvidia.com/mig.strategy": "mixed", **counts, **(labels or {})}))
    record["status"] = {"allocatable": {"nvidia.com/gpu": str(gpus), **mig}}
    return yaml.safe_dump(record)


INSTANCES: dict[str, tuple[str, dict[str, Any]]] = {
    "each card otherwise": (
        cut_node(mig_1g_5gb="7", mig_3g_20gb="2"),
        {"0": {"3g.20gb": "2"}, "1": {"1g.5gb": "7"}},
    ),
    "each card otherwise, by a config of one's own": (
        cut_node(0, {"nvidia.com/mig.config": "custom"}, mig_1g_5gb="7", mig_3g_20gb="2"),
        {"0": {"3g.20gb": "2"}, "1": {"1g.5gb": "7"}},
    ),
    "a whole card beside": (cut_node(1, mig_1g_5gb="6"), {"0": {"1g.5gb": "6"}, "1": "off"}),
    "alike": (cut_node(mig_1g_5gb="14"), {"all": {"1g.5gb": "7"}}),
}


@pytest.mark.parametrize("what", INSTANCES)
def test_instances_that_are_only_counted_are_dealt_out_as_a_guess(what: str, tmp_path: Path) -> None:
    text, layout = INSTANCES[what]
    result = imported(tmp_path, {"n.yaml": text})
    (found,) = data(result)["nodes"]
    assert found["sharing"] == {"mode": "mig", "layout": layout}
    assert any("instances are counted" in guess.why for guess in result.guesses)


def test_instances_that_fit_on_no_such_cards_are_lost_aloud(tmp_path: Path) -> None:
    result = imported(tmp_path, {"n.yaml": cut_node(mig_1g_5gb="20")})
    assert "20 x 1g.5gb" in rules(result)["import-sharing-lost"]


def test_what_brings_the_plugin(tmp_path: Path) -> None:
    policy = {
        "apiVersion": "nvidia.com/v1",
        "kind": "ClusterPolicy",
        "metadata": {"name": "p"},
        "spec": {
            "mps": {"root": "/var/mps"},
            "devicePlugin": {"config": {"name": "gpu-configs", "default": "default"}},
            "daemonsets": {
                "tolerations": [{"key": "team", "operator": "Equal", "value": "ml", "effect": "NoSchedule"}]
            },
        },
    }
    files = {
        "policy.yaml": yaml.safe_dump(policy),
        "configs.yaml": CONFIGS.replace("namespace: gpus", "namespace: gpu-operator").replace(
            "renameByDefault: true", "renameByDefault: false"
        ),
        "n.yaml": node("k1", PRODUCT),
    }
    block = data(imported(tmp_path, files))["kubernetes"]
    assert block["delivery"] == "gpu-operator"
    assert block["tolerations"] == [{"key": "team", "operator": "Equal", "value": "ml", "effect": "NoSchedule"}]
    assert block["mpsRoot"] == "/var/mps"


def test_hooks_stay_off_where_they_would_take_the_place_of_the_sites(tmp_path: Path) -> None:
    """Slurm 22.05 takes one Prolog line."""
    files = site("gpu:1g.10gb:2", MIG, conf="Prolog=/etc/slurm/prolog.sh")
    result = imported(tmp_path, files, "22.05")
    assert data(result)["slurm"]["hooks"] == {"enabled": "false"}
    assert "enabled: false  # guessed: Slurm 22.05 takes one line of Prolog" in result.text


@pytest.mark.parametrize(
    "word", ["yes", "no", "null", "12e3", "0x1F", "a: b", "- x", "#c", "'", '"', "é", "{", "a,b", "24.10", "~", "1_0"]
)
def test_words_come_back_as_they_were(word: str) -> None:
    text, _ = text_of(
        Block(
            (
                Entry("k", word),
                Entry("l", [word]),
                Entry("m", {word: word}),
                Entry("n", Block((Entry("x", word, word),))),
            )
        )
    )
    read, findings = one_document("x", parse_yaml("x", text))
    assert findings == ()
    assert isinstance(read, Mapping_)
    value, items, mapping, block = (node for _, node in read.entries)
    assert isinstance(value, Scalar) and value.text == word
    assert [item.text for item in read.scalars("l")] == [word]
    assert isinstance(mapping, Mapping_) and [(k.text, getattr(v, "text", None)) for k, v in mapping.entries] == [
        (word, word)
    ]
    assert isinstance(block, Mapping_) and block.scalar("x") is not None and block.scalar("x").text == word  # type: ignore[union-attr]
    assert items
