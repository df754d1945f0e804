"""What slurmd takes of host names, and settings that exclude each other: the limits that consumers hold."""

from __future__ import annotations

import pytest

from hybridgpu.consumers.slurm import RELEASES, consume, load
from hybridgpu.consumers.slurm.hostlist import BadHostlist, expand, number_at_end_below
from testbed.slurm.root import _SETTINGS, SlurmRoot

HEAD = "ClusterName=c\nSlurmctldHost=ctl\nSelectType=select/cons_tres\nPartitionName=p Nodes=ALL\nGresTypes=gpu\n"
FATAL = {"slurm-prolog-flags-exclude", "slurm-namespace-needs-contain", "slurm-prolog-flag-unknown"}

NAMES = {
    "n9999999999999999999": "n9999999999999999999",
    f"n{2**64 - 1}": f"n{2**64 - 1}",
    f"n{2**64}": f"n{2**64}",
    "n99999999999999999998": "n99999999999999999998",
    f"n[{2**64 - 3}-{2**64 - 2}]": f"n{2**64 - 2}",
    f"n[{2**64 - 2}-{2**64 - 1}]": f"n{2**64 - 1}",
    f"n[{2**64}-{2**64 + 1}]": f"n{2**64 + 1}",
    "n[00000000000000000000000000001-00000000000000000000000000002]": "n00000000000000000000000000002",
    "n[0-65535]": "n65535",
    "n[0-65536]": "n7",
}


@pytest.mark.parametrize("names", NAMES)
def test_a_host_list_is_taken_where_slurmd_finds_its_node(slurm_root: SlurmRoot, names: str) -> None:
    report = slurm_root.slurmd_g({"slurm.conf": f"{HEAD}NodeName={names} CPUs=8\n"}, NAMES[names])
    try:
        hosts = expand(names, RELEASES[slurm_root.release].hostlist_suffix)
    except BadHostlist:
        hosts = ()
    assert (NAMES[names] in hosts) is not report.died


def test_a_number_that_may_end_a_range_is_found_alone_and_in_one(slurm_root: SlurmRoot) -> None:
    name = f"n{2**64 - 2}"
    assert number_at_end_below(name)
    for names in (name, f"n[{2**64 - 4}-{2**64 - 2}]"):
        assert not slurm_root.slurmd_g({"slurm.conf": f"{HEAD}NodeName={names} CPUs=8\n"}, name).died


@pytest.mark.parametrize("track", ["linuxproc", "pgid"])
@pytest.mark.parametrize("space", ["", "JobContainerType=job_container/tmpfs", "NamespaceType=namespace/linux"])
@pytest.mark.parametrize(
    "flags",
    [
        "",
        "NoHold",
        "NoHold,Alloc",
        "NOHOLD,contain",
        "NoHold,X11",
        "NoHold,RunInJob",
        "X11",
        "Contain",
        "Serial,RunInJob",
    ],
)
def test_settings_that_exclude_each_other_stop_the_daemons(
    slurm_root: SlurmRoot, flags: str, space: str, track: str
) -> None:
    release = RELEASES[slurm_root.release]
    lines = [f"PrologFlags={flags}" if flags else "", space, f"ProctrackType=proctrack/{track}"]
    if space.partition("=")[0] not in {"", *release.conf_keys}:
        pytest.skip("the release does not know the key")
    files = {"slurm.conf": HEAD + "\n".join(["NodeName=n1 CPUs=8", *lines, ""])}
    settings = {**_SETTINGS, "ProctrackType": f"proctrack/{track}"}
    found = {finding.rule.id for finding in consume(load(files), release).findings}
    report = slurm_root.slurmd_g(files, "n1", settings)
    assert bool(found & FATAL) is report.died, report.messages
    told = any("Serial is incompatible" in message for message in report.messages)
    assert told is ("slurm-prolog-serial-lost" in found and "runinjob" in {f.lower() for f in release.prolog_flags})
