"""Slurm's files as records: defaults, doubled keys, files that are there and files that are not."""

from __future__ import annotations

import pytest

from hybridgpu.consumers.slurm import load
from hybridgpu.consumers.slurm.includes import INCLUDE_NO_CLUSTER
from tests.consumers.slurm.sites import found, site


def test_a_later_default_adds_to_an_earlier_one_and_a_line_s_own_value_wins() -> None:
    text = "NodeName=DEFAULT CPUs=8 Gres=gpu:1 Features=a\nNodeName=DEFAULT gres=gpu:2\n"
    files = load({"slurm.conf": text + "NodeName=n1\nNodeName=n2 GRES=gpu:3 Feature=b\nNodeName=DEFAULT CPUs=1\n"})
    values = [{key: pair.value for key, pair in node.values.items()} for node in files.nodes]
    assert values == [
        {"cpus": "8", "gres": "gpu:2", "features": "a"},
        {"cpus": "8", "gres": "gpu:3", "feature": "b"},
    ]
    assert [node.names for node in files.nodes] == ["n1", "n2"]
    assert (files.nodes[0].text("gres"), files.nodes[0].text("port")) == ("gpu:2", None)


def test_a_setting_is_the_last_of_its_kind_in_any_case() -> None:
    files = load({"slurm.conf": "GresTypes=gpu\ngrestypes=gpu, nic\n"})
    pair = files.setting("GRESTYPES")
    assert pair is not None and pair.value == "gpu,"
    files = load({"slurm.conf": 'GresTypes="gpu, nic,"\n'})
    assert files.words("GresTypes") == ("gpu", "nic") and files.words("Prolog") == ()


def test_gres_conf_and_cgroup_conf_lie_beside_slurm_conf() -> None:
    files = load(
        {"a/slurm.conf": "ClusterName=c\n", "a/gres.conf": "Name=gpu\n", "cgroup.conf": "X=1\n"}, "a/slurm.conf"
    )
    assert files.gres is not None and str(files.gres[0].place) == "a/gres.conf:1:1"
    assert files.cgroup is None and files.beside("cgroup.conf") == "a/cgroup.conf"


def test_the_cluster_s_name_stands_in_includes_of_slurm_conf_alone() -> None:
    """slurmd -G on 22.05, 24.11, 26.05: "Did not get ClusterName for include path" in gres.conf, and it dies."""
    zoo = {"zoo.conf": "GresTypes=gpu\n"}
    assert load({"slurm.conf": "ClusterName=Zoo\nInclude %c.conf\n", **zoo}).setting("GresTypes") is not None
    late = load({"slurm.conf": "Include %c.conf\nClusterName=zoo\n", **zoo})
    assert late.fatal and [finding.rule for finding in late.findings] == [INCLUDE_NO_CLUSTER]
    gres = load({"slurm.conf": "ClusterName=zoo\n", "gres.conf": "Include %c.conf\n", **zoo})
    assert gres.gres_fatal and [finding.rule for finding in gres.gres_findings] == [INCLUDE_NO_CLUSTER]


def test_a_missing_slurm_conf_is_the_caller_s() -> None:
    with pytest.raises(FileNotFoundError):
        load({"gres.conf": ""})
    with pytest.raises(KeyError):
        load({})


UNREADABLE = {
    "text behind a single key": (site(conf="MessageTimeout=10 x=1"), "slurm.conf:6:19"),
    "a line without a key": (site(conf="garbage"), "slurm.conf:6:1"),
    "a line of gres.conf without a key": (site(records="garbage"), "gres.conf:1:1"),
    "AutoDetect does not stand with a name": (site(records="AutoDetect=off NodeName=n1"), "gres.conf:1:16"),
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_what_no_daemon_can_read(name: str) -> None:
    files, place = UNREADABLE[name]
    assert str(found(files)["slurm-line-unreadable"].place) == place


UNKNOWN = {
    "at the start of a line": (site(records="Type=a100 Name=gpu"), "AutoDetect, Name, NodeName"),
    "in slurm.conf": (site(conf="GresType=gpu"), "did you mean GresTypes?"),
    "of another release": (site(nodes="NodeName=n1 FrontendAddr=x"), "FrontendAddr"),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_a_key_that_is_not_known_is_fatal(name: str) -> None:
    files, words = UNKNOWN[name]
    finding = found(files)["slurm-unknown-key"]
    assert words in f"{finding.message} {finding.hint}"


KEYS_OF_OTHER_RELEASES = {
    ("SuspendExcStates=DRAIN", "22.05"): "SuspendExcStates came with 23.02; Slurm 22.05 does not know it",
    ("FrontendName=x", "26.05"): "FrontendName was dropped in 25.05; Slurm 26.05 does not know it",
}


@pytest.mark.parametrize(("line", "release"), KEYS_OF_OTHER_RELEASES)
def test_a_key_of_another_release_says_so(line: str, release: str) -> None:
    assert found(site(conf=line), release)["slurm-unknown-key"].message == KEYS_OF_OTHER_RELEASES[line, release]
