"""Files on disk into clusters: which belong together, what is read in whose place, and what is not known."""

from __future__ import annotations

from pathlib import Path

import pytest

from hybridgpu.check.site import check
from hybridgpu.consumers.slurm import RELEASES, gather
from hybridgpu.files.kinds import Input, inputs
from hybridgpu.model.finding import Severity
from tests.conftest import root_of
from tests.consumers.slurm.sites import MIG, site

GRES = "Name=gpu Type=a100 File=/dev/nvidia[0-1]\n"
NODE = "NodeName=n1 CPUs=8 Sockets=2 CoresPerSocket=4 Gres=gpu:a100:2\n"
BARE = "ClusterName=c\nSlurmctldHost=ctl\nPartitionName=p Nodes=ALL\n"
CONF = f"{BARE}GresTypes=gpu\n{NODE}"
MPS_NODE = NODE.strip() + ",mps:200\n"
CGROUP = "ConstrainDevices=yes\n"
TMPFS = "PrologFlags=Contain\nJobContainerType=job_container/tmpfs\n"


def laid(folder: Path, files: dict[str, str | bytes]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)


def given(folder: Path, paths: tuple[str, ...]) -> list[Input]:
    return [file for path in paths for file in inputs(str(folder / path))]


def told(folder: Path, paths: tuple[str, ...]) -> list[str]:
    """The findings of the whole command, as `rule file:line`, the worst first and infos last."""
    found = check([str(folder / path) for path in paths]).findings
    order = sorted(found, key=lambda finding: finding.severity is Severity.INFO)
    return [f"{f.rule.id} {str(f.place).removeprefix(f'{folder}/').rpartition(':')[0]}" for f in order]


Case = tuple[dict[str, str | bytes], tuple[str, ...], list[str]]

CASES: dict[str, Case] = {
    "a folder": ({"slurm.conf": CONF, "gres.conf": GRES, "cgroup.conf": CGROUP}, ("",), []),
    "files by name": ({"a/slurm.conf": CONF, "a/gres.conf": GRES}, ("a/slurm.conf", "a/gres.conf"), []),
    "files by content": ({"a.txt": CONF, "b.txt": GRES, "c.txt": CGROUP}, ("a.txt", "b.txt", "c.txt"), []),
    "files by content in two folders": ({"a/a.txt": CONF, "b/b.txt": GRES}, ("a/a.txt", "b/b.txt"), []),
    "a mistake in one by content": (
        {"a.txt": CONF, "b.txt": f"{GRES.strip()} Count=3\n"},
        ("b.txt", "a.txt"),
        ["slurm-count-differs-from-files b.txt:1"],
    ),
    "slurm.conf alone": (
        {"slurm.conf": CONF, "gres.conf": "Name=gpu Count=9 File=/dev/nvidia0\n"},
        ("slurm.conf",),
        ["slurm-gres-conf-not-given slurm.conf:5"],
    ),
    "slurm.conf alone, without GPUs": ({"slurm.conf": f"{BARE}NodeName=n1\n"}, ("slurm.conf",), []),
    "shares and MIG in slurm.conf alone": (
        {
            "slurm.conf": f"{BARE}GresTypes=gpu,shard,nic\nNodeName=n1 Gres=gpu:a100:2,shard:9,nic:1\n"
            "NodeName=n2 Gres=gpu:1g.10gb:7\n"
        },
        ("slurm.conf",),
        ["slurm-gres-conf-not-given slurm.conf:5"],
    ),
    "a folder without gres.conf": (
        {"slurm.conf": CONF},
        ("",),
        ["slurm-gpu-without-file slurm.conf:5"],
    ),
    "an empty gres.conf in a folder": (
        {"slurm.conf": CONF, "gres.conf": "# nothing\n"},
        ("",),
        ["slurm-gpu-without-file slurm.conf:5"],
    ),
    "gres.conf in another folder": ({"conf/slurm.conf": CONF, "nodes/gres.conf": GRES}, ("",), []),
    "gres.conf of each node": (
        {"slurm.conf": CONF, "gres-n1.txt": GRES, "gres-n2.txt": GRES},
        ("",),
        ["slurm-gres-conf-ambiguous slurm.conf:1", "slurm-gres-conf-not-given slurm.conf:5"],
    ),
    "backups": (
        {
            "slurm.conf": CONF,
            "gres.conf": GRES,
            "slurm.conf.bak": f"{CONF}Garbage\n",
            "gres.conf.rpmnew": "Fiel=x\n",
            "slurm.conf~": CONF,
            "gres.conf.example": "Name=gpu File=/dev/nvidia0 Count=9\n",
        },
        ("",),
        [
            "slurm-file-not-read gres.conf.example:1",
            "slurm-file-not-read slurm.conf.bak:1",
            "slurm-file-not-read slurm.conf~:1",
        ],
    ),
    "a backup that is named": (
        {"slurm.conf.bak": f"{CONF}Garbage\n", "gres.conf": GRES},
        ("slurm.conf.bak", "gres.conf"),
        ["slurm-line-unreadable slurm.conf.bak:6"],
    ),
    "parts that slurm.conf includes": (
        {
            "slurm.conf": f"{BARE}Include nodes.conf\nInclude conf.d/gpu.conf\n",
            "nodes.conf": NODE,
            "conf.d/gpu.conf": "GresTypes=gpu\n",
            "gres.conf": "Include gres.d/a.conf\n",
            "gres.d/a.conf": GRES,
        },
        ("",),
        [],
    ),
    "a part that nobody includes": (
        {"slurm.conf": CONF, "gres.conf": GRES, "old-nodes.conf": "NodeName=n1 Gres=gpu\n"},
        ("",),
        ["slurm-file-not-read old-nodes.conf:1"],
    ),
    "an Include beside slurm.conf that is not named": (
        {"slurm.conf": f"{BARE}GresTypes=gpu\nInclude nodes.conf\n", "nodes.conf": NODE, "gres.conf": GRES},
        ("slurm.conf", "gres.conf"),
        [],
    ),
    "an Include that is not there, and slurm.conf alone": (
        {"slurm.conf": f"{BARE}Include nodes.conf\n", "gres.conf": GRES},
        ("slurm.conf", "gres.conf"),
        ["slurm-include-not-given slurm.conf:4"],
    ),
    "an Include that is not there, in a folder": (
        {"slurm.conf": f"{CONF}Include more.conf\n", "gres.conf": GRES},
        ("",),
        ["slurm-include-missing slurm.conf:6"],
    ),
    "an Include of another folder of the machine": (
        {"slurm.conf": f"{CONF}Include /nowhere/more.conf\n", "gres.conf": GRES},
        ("",),
        ["slurm-include-not-given slurm.conf:6"],
    ),
    "GresTypes in an Include that is not given": (
        {"slurm.conf": f"{BARE}Include /nowhere/gpu.conf\n{NODE}", "gres.conf": GRES},
        ("",),
        ["slurm-include-not-given slurm.conf:4"],
    ),
    "records in an Include that is not given": (
        {"slurm.conf": CONF, "gres.conf": "Include /nowhere/gres.conf\n"},
        ("",),
        ["slurm-include-not-given gres.conf:1"],
    ),
    "a copied tree": (
        {
            "copy/slurm.conf": f"{BARE}Include /etc/slurm/gpu.conf\nInclude /etc/slurm/conf.d/nodes.conf\n",
            "copy/gpu.conf": "GresTypes=gpu\n",
            "copy/conf.d/nodes.conf": NODE,
            "copy/gres.conf": GRES,
        },
        ("copy",),
        ["slurm-include-from-copy copy/slurm.conf:4", "slurm-include-from-copy copy/slurm.conf:5"],
    ),
    "a copy of the whole root": (
        {
            "etc/slurm/slurm.conf": f"{BARE}GresTypes=gpu\nInclude /srv/slurm/nodes.conf\n",
            "srv/slurm/nodes.conf": NODE,
            "etc/slurm/gres.conf": GRES,
        },
        ("",),
        ["slurm-include-from-copy etc/slurm/slurm.conf:5"],
    ),
    "a copied tree with a mistake": (
        {
            "copy/slurm.conf": f"{BARE}GresTypes=gpu\nInclude /etc/slurm/nodes.conf\n",
            "copy/nodes.conf": f"{NODE.strip()} Weigth=1\n",
            "copy/gres.conf": GRES,
        },
        ("copy",),
        ["slurm-unknown-key copy/nodes.conf:1", "slurm-include-from-copy copy/slurm.conf:5"],
    ),
    "files named one by one that include each other": (
        {
            "a/slurm.conf": f"{BARE}GresTypes=gpu\nInclude /etc/slurm/nodes.conf\n",
            "b/nodes.conf": NODE,
            "c/gres.conf": GRES,
        },
        ("a/slurm.conf", "b/nodes.conf", "c/gres.conf"),
        ["slurm-include-from-copy a/slurm.conf:5"],
    ),
    "a pattern": (
        {"slurm.conf": f"{CONF}Include *.conf\n", "gres.conf": GRES},
        ("",),
        ["slurm-include-pattern slurm.conf:6"],
    ),
    "two clusters": (
        {
            "a/slurm.conf": CONF,
            "a/gres.conf": GRES,
            "b/slurm.conf": CONF.replace(":2", ":3"),
            "b/gres.conf": GRES.replace("0-1", "0-2"),
        },
        ("",),
        [],
    ),
    "two clusters in one folder": ({"alpha.conf": CONF, "beta.conf": CONF, "gres.conf": GRES}, ("",), []),
    "one of two clusters is wrong": (
        {"a/slurm.conf": CONF, "a/gres.conf": GRES, "b/slurm.conf": CONF, "b/gres.conf": f"{GRES.strip()} Count=9\n"},
        ("a", "b"),
        ["slurm-count-differs-from-files b/gres.conf:1"],
    ),
    "slurmdbd.conf": (
        {
            "slurm.conf": CONF,
            "gres.conf": GRES,
            "slurmdbd.conf": "AuthType=auth/munge\nDbdHost=db\nSlurmUser=slurm\nStorageType=x\n",
        },
        ("",),
        [],
    ),
    "parts without slurm.conf": (
        {
            "nodes.conf": NODE.replace("2\n", "2,shard:8\n"),
            "gres.conf": f"{GRES}Name=shard Count=8\n",
            "gpu.conf": "PrologFlags=Alloc\nAccountingStorageTRES=gres/gpu\n",
        },
        ("",),
        [],
    ),
    "nodes alone": ({"nodes.conf": NODE}, ("",), ["slurm-gres-conf-not-given nodes.conf:1"]),
    "nodes whose hardware stands elsewhere": (
        {"nodes.conf": "NodeName=n1 Gres=gpu:a100:2\n", "gres.conf": f"{GRES.strip()} Cores=0-63\n"},
        ("",),
        [],
    ),
    "settings alone": ({"gpu.conf": "GresTypes=gpu,mps\nJobContainerType=job_container/tmpfs\nProlog=/p\n"}, ("",), []),
    "cgroup.conf alone": (
        {"cgroup.conf": "ConstrainDevice=yes\n"},
        ("cgroup.conf",),
        ["slurm-unknown-key cgroup.conf:1"],
    ),
    "comments alone": ({"gres.conf": "# none\n", "cgroup.conf": ""}, ("gres.conf", "cgroup.conf"), []),
    "a mistake in cgroup.conf alone": (
        {"cgroup.conf": "ConstrainDevices=no\nConstrainCore=yes\n"},
        ("cgroup.conf",),
        ["slurm-unknown-key cgroup.conf:2"],
    ),
    "job_container.conf": (
        {
            "slurm.conf": f"{BARE}{TMPFS}GresTypes=gpu,mps\n{MPS_NODE}",
            "gres.conf": GRES,
            "job_container.conf": "NodeName=n1 BasePath=/j Dirs=/tmp\n",
        },
        ("",),
        [],
    ),
    "job_container.conf by another name": (
        {
            "slurm.conf": f"{BARE}{TMPFS}GresTypes=gpu,mps\n{MPS_NODE}",
            "gres.conf": GRES,
            "jc.txt": "NodeName=n1 BasePath=/j\n",
        },
        ("slurm.conf", "gres.conf", "jc.txt"),
        ["slurm-mps-private-shm jc.txt:1"],
    ),
    "job_container.conf not given": (
        {"slurm.conf": f"{BARE}{TMPFS}GresTypes=gpu,mps\n{MPS_NODE}", "gres.conf": GRES},
        ("slurm.conf", "gres.conf"),
        [],
    ),
    "DOS line ends, tabs and a byte order mark": (
        {
            "slurm.conf": b"\xef\xbb\xbf" + CONF.replace("\n", "\r\n").replace(" ", "\t").encode(),
            "gres.conf": GRES.replace("\n", "\r\n"),
        },
        ("",),
        [],
    ),
    "UTF-16": ({"slurm.conf": CONF.encode("utf-16"), "gres.conf": GRES}, ("",), ["file-not-utf-8 slurm.conf:1"]),
    "Latin-1 in a comment": (
        {"slurm.conf": CONF.encode() + b"# M\xfcnchen\n", "gres.conf": GRES},
        ("",),
        ["file-not-utf-8 slurm.conf:6"],
    ),
    "an included file that is no text": (
        {"slurm.conf": f"{BARE}Include gpu.conf\n{NODE}", "gpu.conf": b"GresTypes=gpu\n\x00", "gres.conf": GRES},
        ("",),
        ["file-not-text gpu.conf:2", "slurm-include-not-given slurm.conf:4"],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_said_of_files_on_disk(name: str, tmp_path: Path) -> None:
    files, paths, expected = CASES[name]
    laid(tmp_path, files)
    assert told(tmp_path, paths) == expected


ALONE: dict[str, tuple[str, list[str]]] = {
    "whole GPUs": (GRES, []),
    "for nodes": (f"NodeName=n[1-4] {GRES}NodeName=m1 AutoDetect=off\nNodeName=m1 Name=gpu File=/dev/nvidia0\n", []),
    "MIG": ("\n".join(MIG), []),
    "shares": (f"{GRES}Name=shard Count=4 File=/dev/nvidia0\nName=shard Count=4 File=/dev/nvidia1\n", []),
    "shares of every card": (f"{GRES}Name=mps Count=200\nName=nic Count=2\n", []),
    "AutoDetect": ("AutoDetect=nvml\nName=shard Count=8\n", []),
    "Cores of any machine": (f"{GRES.strip()} Cores=64-127\n", []),
    "File and MultipleFiles": (f"{GRES.strip()} MultipleFiles=/a,/b\n", ["slurm-file-and-multiplefiles gres.conf:1"]),
    "a Count that is not that of the files": (
        f"{GRES.strip()} Count=3\n",
        ["slurm-count-differs-from-files gres.conf:1"],
    ),
    "a device twice": ("Name=gpu File=/dev/nvidia0\n" * 2, ["slurm-device-twice gres.conf:2"]),
    "a device twice on one node": (
        "Name=gpu File=/dev/nvidia0\nNodeName=n1 Name=gpu File=/dev/nvidia0\n",
        ["slurm-device-twice gres.conf:2"],
    ),
    "a device on two nodes": (f"NodeName=n1 {GRES}NodeName=n2 {GRES}", []),
    "some with Type": (f"{GRES}Name=gpu File=/dev/nvidia2\n", ["slurm-some-records-with-type gres.conf:2"]),
    "twice without anything": ("Name=gpu\nName=gpu\n", ["slurm-duplicate-records gres.conf:2"]),
    "a GPU without a file": ("Name=gpu Type=a100 Count=2\n", ["slurm-gpu-without-file gres.conf:1"]),
    "shares that are lost": (f"{GRES}Name=shard Count=9 File=/dev/nvidia[0-1]\n", ["slurm-shares-lost gres.conf:2"]),
    "shares of no card": (f"{GRES}Name=shard Count=9 File=/dev/nvidia7\n", ["slurm-shares-discarded gres.conf:2"]),
    "an unknown key": (f"{GRES.strip()} Tpye=x\n", ["slurm-unknown-key gres.conf:1"]),
    "types that are one": (
        "Name=gpu Type=4g.20gb File=/dev/nvidia0\nName=gpu Type=1g.23gb File=/dev/nvidia1\n",
        ["slurm-types-collide gres.conf:2"],
    ),
}


@pytest.mark.parametrize("name", ALONE)
def test_gres_conf_alone_is_judged_by_itself(name: str, tmp_path: Path) -> None:
    text, expected = ALONE[name]
    laid(tmp_path, {"gres.conf": text})
    assert told(tmp_path, ("gres.conf",)) == told(tmp_path, ("",)) == expected


def test_a_link_leads_to_what_it_names(tmp_path: Path) -> None:
    laid(tmp_path, {"real/base.txt": CONF, "etc/gres.conf": GRES, "etc/x": ""})
    (tmp_path / "etc" / "slurm.conf").symlink_to("../real/base.txt")
    assert told(tmp_path, ("etc",)) == []
    (tmp_path / "linked").symlink_to("etc")
    assert told(tmp_path, ("linked",)) == []
    (tmp_path / "etc" / "gres.conf").write_text(f"{GRES.strip()} Count=3\n")
    assert told(tmp_path, ("linked",)) == ["slurm-count-differs-from-files linked/gres.conf:1"]


def test_what_is_known_of_each_cluster(tmp_path: Path) -> None:
    laid(
        tmp_path,
        {"a/slurm.conf": f"{BARE}Include n.conf\n", "a/n.conf": NODE, "b/gres.conf": GRES, "c/slurm.conf": CONF},
    )
    trees, findings = gather(given(tmp_path, ("a", "b", "c/slurm.conf")))
    assert findings == ()
    names = [tuple(path.removeprefix(f"{tmp_path}/") for path in tree.paths) for tree in trees]
    assert names == [("a/slurm.conf", "a/n.conf"), ("c/slurm.conf",), ("b/gres.conf",)]
    assert [(tree.files.whole, tree.files.gres_known) for tree in trees] == [(True, True), (True, False), (False, True)]


def test_nobody_s_files_make_no_cluster() -> None:
    assert gather([]) == ((), ())


NESTED = {
    "slurm.conf": f"{BARE}GresTypes=gpu\nInclude sub/a.conf\n",
    "sub/a.conf": "Include b.conf\n",
    "sub/b.conf": f"{NODE}",
    "b.conf": NODE.replace("gpu:a100:2", "gpu:a100:1"),
    "gres.conf": GRES,
}


@pytest.mark.parametrize("release", RELEASES)
def test_where_an_include_in_an_include_is_looked_for(release: str, tmp_path: Path) -> None:
    laid(tmp_path, dict(NESTED))
    trees, _ = gather(given(tmp_path, ("",)), RELEASES[release])
    asked = [node.text("gres") for node in trees[0].files.nodes]
    assert asked == (["gpu:a100:2"] if RELEASES[release].includes_from == "includer" else ["gpu:a100:1"])


def test_includes_that_double_at_every_step_end(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {f"{n}.conf": f"Include {n + 1}.conf\n" * 2 for n in range(40)}
    laid(tmp_path, {**files, "slurm.conf": f"{CONF}Include 0.conf\n", "gres.conf": GRES})
    assert "slurm-includes-too-many" in {finding.split()[0] for finding in told(tmp_path, ("",))}


SLURMD: dict[str, tuple[dict[str, str], bool]] = {
    "a pattern": ({**site(conf="Include conf.d/*.conf"), "conf.d/a.conf": "MessageTimeout=10\n"}, True),
    "a pattern in gres.conf": ({**site(records="Include g*.txt"), "g.txt": GRES}, True),
    "a file": ({**site(conf="Include conf.d/a.conf"), "conf.d/a.conf": "MessageTimeout=10\n"}, False),
}


@pytest.mark.slurm
@pytest.mark.parametrize("name", SLURMD)
@pytest.mark.parametrize("release", ["24.11", "26.05"])
def test_slurmd_takes_no_pattern_either(name: str, release: str) -> None:
    files, dies = SLURMD[name]
    assert root_of(release).slurmd_g(files, "n1").died is dies


@pytest.mark.slurm
@pytest.mark.parametrize("release", ["22.05", "24.11", "26.05"])
def test_slurmd_looks_in_the_same_folder(release: str) -> None:
    report = root_of(release).slurmd_g(NESTED, "n1")
    wanted = 2 if RELEASES[release].includes_from == "includer" else 1
    assert sum(record.count for record in report.records) == wanted
