"""The release records against the programs: which keys, values and flags slurmd of a release takes."""

from __future__ import annotations

import re

import pytest

from hybridgpu.consumers.slurm import RELEASES
from testbed.slurm.root import SlurmRoot

HEAD = "ClusterName=c\nSlurmctldHost=ctl\nSelectType=select/cons_tres\nPartitionName=p Nodes=ALL\nGresTypes=gpu\n"
NODE = "NodeName=n1 CPUs=8\n"
UNKNOWN = re.compile(r"Parsing error at unrecognized key: (\S+)")


def refused(root: SlurmRoot, slurm_conf: str) -> set[str]:
    """The keys that slurmd does not know, of a file that it reads to its end."""
    messages = root.slurmd_g({"slurm.conf": slurm_conf}, "n1").messages
    return {found[1] for message in messages if (found := UNKNOWN.search(message))}


def test_a_release_takes_its_keys_of_slurm_conf_and_no_other(slurm_root: SlurmRoot) -> None:
    """All but FrontendName, which ends the reading of a Slurm that was built without it."""
    every = frozenset().union(*(release.conf_keys for release in RELEASES.values())) - {"FrontendName"}
    lines = [f"{key}=1" for key in sorted(every)]
    assert refused(slurm_root, "\n".join([*lines, "Bogus=1", ""])) == every - RELEASES[slurm_root.release].conf_keys | {
        "Bogus"
    }


def test_a_release_takes_its_keys_of_a_node_line_and_no_other(slurm_root: SlurmRoot) -> None:
    every = frozenset().union(*(release.node_keys for release in RELEASES.values()))
    lines = [f"NodeName=m{n} {key}=1" for n, key in enumerate(sorted(every))]
    unknown = refused(slurm_root, "\n".join([HEAD, NODE, *lines, "NodeName=x Bogus=1", ""]))
    assert unknown == every - RELEASES[slurm_root.release].node_keys | {"Bogus"}


def test_a_release_takes_its_values_of_autodetect_and_no_other(slurm_root: SlurmRoot) -> None:
    every = {value for release in RELEASES.values() for value in release.autodetect}
    taken: set[str] = set()
    for value in sorted(every):
        files = {"slurm.conf": HEAD + NODE, "gres.conf": f"AutoDetect={value}\n"}
        report = slurm_root.slurmd_g(files, "n1")
        if not any("unknown autodetect flag" in message for message in report.messages):
            taken.add(value)
    assert taken == set(RELEASES[slurm_root.release].autodetect)


@pytest.mark.parametrize("flag", sorted({flag for release in RELEASES.values() for flag in release.prolog_flags}))
def test_a_release_takes_its_prolog_flags_and_no_other(slurm_root: SlurmRoot, flag: str) -> None:
    report = slurm_root.slurmd_g({"slurm.conf": f"{HEAD}{NODE}PrologFlags={flag}\n"}, "n1")
    told = any(message.startswith("fatal: PrologFlags invalid") for message in report.messages)
    assert told is (flag not in RELEASES[slurm_root.release].prolog_flags)


def test_a_second_prolog_adds_up_or_replaces(slurm_root: SlurmRoot) -> None:
    release = RELEASES[slurm_root.release]
    for key, adds_up in (("Prolog", release.prolog_lines_add_up), ("TaskProlog", release.task_prolog_lines_add_up)):
        report = slurm_root.slurmd_g({"slurm.conf": f"{HEAD}{NODE}{key}=/bin/true\n{key}=/bin/false\n"}, "n1")
        told = any("specified more than once" in message for message in report.messages)
        assert told is not adds_up, key


def test_an_autodetect_that_finds_no_library_goes_on(slurm_root: SlurmRoot) -> None:
    """A test machine has no card: this is why AutoDetect is held against hardware that a test gives instead."""
    files = {"slurm.conf": HEAD + NODE.replace("8", "8 Gres=gpu:1"), "gres.conf": "AutoDetect=nvml\n"}
    report = slurm_root.slurmd_g(files, "n1")
    assert (report.died, report.records) == (False, ())
