"""job_container.conf: what slurmd dies of, and which jobs have a /dev/shm to themselves; release by release."""

from __future__ import annotations

import pytest

from hybridgpu.consumers.slurm import RELEASES
from tests.conftest import root_of
from tests.consumers.slurm.sites import found, judged, site

TMPFS = "PrologFlags=Contain\nJobContainerType=job_container/tmpfs"
NODE = "NodeName=n{} CPUs=8 Sockets=2 CoresPerSocket=4 Gres={}"
ALL = tuple(RELEASES)
FROM_24_11 = ("24.11", "25.05", "25.11", "26.05")


def tmpfs(container: str, conf: str = TMPFS, **more: str) -> dict[str, str]:
    return {**site("gpu:a100:2,mps:200", types="gpu,mps", conf=conf, **more), "job_container.conf": container}


DIES: dict[str, tuple[str, tuple[str, ...], str, list[str]]] = {
    "an unknown key": ("BasePath=/j Dir=/tmp", ALL, "slurm-unknown-key", ["Dir"]),
    "an unknown key at the beginning": ("BasePth=/j", ALL, "slurm-unknown-key", ["BasePth", "did you mean BasePath"]),
    "InitScript alone on a line": ("InitScript=/i\nBasePath=/j", ALL, "slurm-unknown-key", ["InitScript"]),
    "NodeName behind BasePath": ("BasePath=/j NodeName=n1", ALL, "slurm-unknown-key", ["NodeName"]),
    "Dirs before there was such a key": ("BasePath=/j Dirs=/tmp", ("22.05",), "slurm-unknown-key", ["came with 23.02"]),
    "EntireStepInNS before 24.11": (
        "EntireStepInNS=yes\nBasePath=/j Dirs=/tmp",
        ("22.05", "23.02", "23.11", "24.05"),
        "slurm-unknown-key",
        ["EntireStepInNS", "came with 24.11"],
    ),
    "two keys where one may be": ("AutoBasePath=yes BasePath=/j", ALL, "slurm-line-unreadable", ["BasePath=/j"]),
    "text": ("BasePath=/j Dirs", ALL, "slurm-line-unreadable", ["Dirs"]),
    "no flag": ("BasePath=/j AutoBasePath=maybe", ALL, "slurm-container-bad-value", ["maybe", "yes"]),
    "no number": ("CloneNSScript_Wait=1s\nBasePath=/j", FROM_24_11, "slurm-container-bad-value", ["1s", "number"]),
    "nodes without a BasePath": ("NodeName=n1 AutoBasePath=yes", ALL, "slurm-container-base-path", ["NodeName=n1"]),
    "/tmp in itself": ("BasePath=/tmp", ALL, "slurm-container-base-path", ["/tmp"]),
    "below /tmp": ("BasePath=/tmp/jobs", ("22.05",), "slurm-container-base-path", ["/tmp/jobs"]),
    "one of Dirs": ("Dirs=/tmp,/scratch\nBasePath=/scratch", ALL[1:], "slurm-container-base-path", ["/scratch"]),
}


@pytest.mark.parametrize("name", DIES)
def test_what_slurmd_dies_of_and_on_which_releases(name: str) -> None:
    container, releases, rule, words = DIES[name]
    for major in ALL:
        result = judged(tmpfs(f"{container}\n"), major)
        mine = [f for f in result.findings if f.rule.id == rule and f.place and f.place.file == "job_container.conf"]
        assert bool(mine) == (major in releases), major
        if mine:
            assert result.fatal
            assert all(word in f"{mine[0].message} {mine[0].hint}" for word in words)


@pytest.mark.parametrize("conf", ["", "JobContainerType=job_container/none"])
def test_a_file_that_nobody_reads_is_not_judged(conf: str) -> None:
    assert judged(tmpfs("nonsense\n", conf)).findings == ()


SHARED: dict[str, tuple[str, str | None]] = {
    "by default": ("BasePath=/j\n", "job_container.conf:1:1"),
    "by name": ("BasePath=/j Dirs=/tmp,/dev/shm\n", "job_container.conf:1:13"),
    "by name, for all": ("Dirs=/dev/shm\nBasePath=/j\n", "job_container.conf:1:1"),
    "with all of /dev": ("BasePath=/j Dirs=/dev\n", "job_container.conf:1:13"),
    "not": ("BasePath=/j Dirs=/tmp,/var/tmp\n", None),
    "not, for all": ("Dirs=/tmp\nBasePath=/j\n", None),
    "not on these nodes": ("Dirs=/dev/shm\nNodeName=n1 BasePath=/j Dirs=/tmp\nNodeName=n2 BasePath=/j\n", None),
    "on these nodes": ("Dirs=/tmp\nNodeName=n[1-9] BasePath=/j Dirs=/dev/shm\n", "job_container.conf:2:29"),
    "switched off here": ("BasePath=/j\nNodeName=n1 BasePath=none\n", None),
    "on no node of ours": ("NodeName=n[2-9] BasePath=/j\n", None),
}


@pytest.mark.parametrize("name", SHARED)
def test_whose_shared_memory_an_mps_job_sees(name: str) -> None:
    container, place = SHARED[name]
    finding = found(tmpfs(container)).get("slurm-mps-private-shm")
    assert (str(finding.place) if finding else None) == place
    assert finding is None or str(finding.related[0].place) == "slurm.conf:7:1"


def test_nodes_without_mps_may_have_a_shared_memory_of_their_own() -> None:
    nodes = "\n".join((NODE.format(1, "gpu:a100:2"), NODE.format(2, "gpu:a100:2,mps:200")))
    container = "NodeName=n1 BasePath=/j\nNodeName=n2 BasePath=/j Dirs=/tmp\n"
    files = {**site(types="gpu,mps", nodes=nodes, conf=TMPFS), "job_container.conf": container}
    assert judged(files).findings == ()


@pytest.mark.parametrize("key", ["NamespaceType=namespace/tmpfs", "JobContainerType=job_container/tmpfs"])
def test_the_newer_name_of_the_plugin(key: str) -> None:
    assert found(tmpfs("BasePath=/j\n", f"PrologFlags=Contain\n{key}"))["slurm-mps-private-shm"].related


LINUX: dict[str, tuple[str, str | None]] = {
    "by default": ("defaults:\n  base_path: /j\n", "namespace.yaml:2:14"),
    "by name": ("defaults: {base_path: /j, dirs: '/tmp,/dev/shm'}\n", "namespace.yaml:1:33"),
    "in a list": ("defaults:\n  base_path: /j\n  dir_confs:\n  - path: /dev/shm\n", "namespace.yaml:3:3"),
    "not": ("defaults: {base_path: /j, dirs: /tmp}\n", None),
    "not in a list, which comes first": (
        "defaults: {base_path: /j, dirs: '/tmp,/dev/shm', dir_confs: [{path: /tmp}]}\n",
        None,
    ),
    "not on this node": (
        "defaults: {base_path: /j}\nnode_confs:\n- {nodes: 'n[1-2]', options: {dirs: /tmp}}\n",
        None,
    ),
    "on this node": (
        "defaults: {base_path: /j, dirs: /tmp}\nnode_confs:\n- {nodes: [n1], options: {dirs: /dev/shm}}\n",
        "namespace.yaml:3:33",
    ),
    "switched off": ("defaults: {base_path: none}\n", None),
    "nowhere": ("node_confs: []\n", None),
    "not to be read": ("defaults: [\n", None),
}


@pytest.mark.parametrize("name", LINUX)
def test_the_same_under_namespace_linux(name: str) -> None:
    text, place = LINUX[name]
    conf = "PrologFlags=Contain\nNamespaceType=namespace/linux"
    files = {**site("gpu:a100:2,mps:200", types="gpu,mps", conf=conf), "namespace.yaml": text}
    finding = found(files).get("slurm-mps-private-shm")
    assert (str(finding.place) if finding else None) == place


@pytest.mark.slurm
@pytest.mark.parametrize("release", ["22.05", "24.11", "26.05"])
def test_slurmd_reads_the_keys_that_we_know(release: str) -> None:
    """The plugin itself holds the names of its keys: no more and no fewer than the record of the release."""
    root = root_of(release).path
    plugins = [*root.glob("usr/lib/*/slurm-wlm/*_tmpfs.so"), *root.glob("usr/lib/*/slurm/*_tmpfs.so")]
    assert plugins
    held = plugins[0].read_bytes()
    every = {key for other in RELEASES.values() for key in other.container_keys}
    assert {key for key in every if key.encode() + b"\0" in held} == set(RELEASES[release].container_keys)
