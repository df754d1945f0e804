"""cgroup.conf, key by key and value by value. tests/slurm/test_values.py holds the same texts against slurmd."""

from __future__ import annotations

import pytest

from hybridgpu.consumers.slurm import RELEASES
from tests.consumers.slurm.sites import judged, site

VALUES = {
    "flag": "yes",
    "percent": "10.5",
    "number": "10",
    "text": "/x",
    "plugin": "autodetect",
    "obsolete": "/x",
    "removed": "/x",
}
KEYS = {
    f"{key}={VALUES.get(takes, 'yes')}"
    for release in RELEASES.values()
    for key, takes in release.cgroup_keys.items()
    if takes != "defunct"
}
"""Every key that any release knows, with a value that it takes."""

TAKEN = (
    *("ConstrainCores=up", "ConstrainRAMSpace=NO", "constraincores=1", "AllowedRAMSpace=-5", "AllowedRAMSpace=1e3"),
    *("AllowedRAMSpace=0x10", "AllowedRAMSpace=.5", "AllowedRAMSpace=+5.", "AllowedRAMSpace=infinite"),
    *("AllowedRAMSpace=nan", "MemorySwappiness=100", "MemorySwappiness=010", "MinRAMSpace=10k"),
    *("MinRAMSpace=unlimited", "CgroupPlugin=cgroup/v1"),
)
REFUSED = (
    *("ConstrainCores=maybe", "IgnoreSystemd=maybe", "ConstrainDevices=y", "ConstrainCores=on", "AllowedRAMSpace=x"),
    *("AllowedRAMSpace=10%", "AllowedRAMSpace=1e60", "AllowedRAMSpace=1_0", "AllowedRAMSpace=95,5"),
    *("MemorySwappiness=abc", "MemorySwappiness=-1", "MinRAMSpace=1.5", "MinRAMSpace=99999999999999999999"),
    *("MinRAMSpace=0x1g", "MinRAMSpace=5kk", "ConstrainDevice=yes", "AllowedRAMSpace=", "ConstrainCores"),
    "ConstrainCores=yes ConstrainDevices=yes",
)
COMPLAINED = ("MemorySwappiness=101", "AllowedDevicesFile=/x", "ConstrainCores=no\nConstrainCores=yes")


def with_cgroup(text: str) -> dict[str, str]:
    return site(nodes="NodeName=n1 CPUs=8", records="", types=None, cgroup_conf=text)


@pytest.mark.parametrize("major", RELEASES)
@pytest.mark.parametrize("text", TAKEN)
def test_what_is_taken(text: str, major: str) -> None:
    assert judged(with_cgroup(text), major).findings == ()


@pytest.mark.parametrize("major", RELEASES)
@pytest.mark.parametrize("text", REFUSED)
def test_what_stops_the_daemons(text: str, major: str) -> None:
    result = judged(with_cgroup(text), major)
    assert result.fatal and result.nodes["n1"].fatal
    assert [str(f.place).partition(":")[0] for f in result.findings] == ["cgroup.conf"]


@pytest.mark.parametrize("text", COMPLAINED)
def test_what_the_daemons_complain_of(text: str) -> None:
    result = judged(with_cgroup(text))
    assert not result.fatal
    assert [finding.severity for finding in result.findings] == ["warning"]


@pytest.mark.parametrize(
    ("text", "major", "words"),
    [
        ("EnableControllers=yes", "22.05", "came with 23.02"),
        ("EnableExtraControllers=x", "24.11", "came with 25.05"),
        ("CgroupSlice=x", "24.11", "came with 25.11"),
        ("ConstrainKmemSpace=no", "24.11", "was dropped in 23.11"),
        ("RootOwnedCgroups=no", "22.05", "came with 23.02"),
        ("RootOwnedCgroups=no", "26.05", "was dropped in 23.11"),
        ("CgroupReleaseAgentDir=/x", "22.05", "has been removed"),
        ("CgroupReleaseAgentDir=/x", "26.05", "was dropped in 25.11"),
        ("CgroupAutomount=maybe", "24.11", "no effect"),
        ("Include none.conf\n", "24.11", "no such file"),
        ("CgroupPlugin=cgroup/v3", "24.11", "allowed: autodetect, cgroup/v1, cgroup/v2, disabled"),
        ("CgroupPlugin=disabled", "23.11", "allowed: autodetect, cgroup/v1, cgroup/v2"),
    ],
)
def test_a_key_of_another_release_is_said_to_be_one(text: str, major: str, words: str) -> None:
    findings = judged(with_cgroup(text), major).findings
    assert len(findings) == 1 and words in findings[0].message


def test_the_keys_that_are_offered_are_alive() -> None:
    (finding,) = judged(with_cgroup("ConstrainRAM=yes"), "24.11").findings
    assert "ConstrainRAMSpace" in finding.hint
    dead = ("Kmem", "CgroupAutomount", "AllowedDevicesFile", "CgroupReleaseAgentDir", "EnableExtraControllers")
    assert not any(key in finding.message for key in dead)
