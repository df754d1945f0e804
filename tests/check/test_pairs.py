"""One host in both schedulers' files: check and import take the same names for it."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from hybridgpu.check.importing import import_site
from tests.check.cross_sites import crossed, labels, node, nodes, slurm, write

ONE: dict[str, tuple[str, str, str]] = {
    "one name": ("NodeName=gpu01", "gpu01", ""),
    "another case": ("NodeName=GPU01", "gpu01", ""),
    "Kubernetes has the domain": ("NodeName=gpu01", "gpu01.example.org", ""),
    "Slurm has the domain": ("NodeName=gpu01.example.org", "gpu01", ""),
    "the kubelet's host name": ("NodeName=gpu01", "node-7f", "gpu01"),
    "the kubelet's host name, with the domain": ("NodeName=gpu01", "node-7f", "gpu01.example.org"),
    "a host name of its own in Slurm": ("NodeName=slot7 NodeHostname=gpu01", "gpu01", ""),
    "an address that is a name": ("NodeName=slot7 NodeAddr=gpu01.example.org", "gpu01", ""),
}
TWO: dict[str, tuple[str, str, str]] = {
    "two names": ("NodeName=gpu01", "gpu02", ""),
    "two domains": ("NodeName=gpu01.a.org", "gpu01.b.org", ""),
    "an address of the other": ("NodeName=gpu01 NodeAddr=10.0.0.1", "10.0.0.2", ""),
}


def paired(folder: Path, line: str, name: str, host: str) -> tuple[bool, bool]:
    """Whether check, and whether import, takes Slurm's node and the Node for one host."""
    more = {"kubernetes.io/hostname": host} if host else {"kubernetes.io/hostname": name}
    files = (slurm(f"{line} Gres=gpu:a100:8"), nodes(node(name, {"gpu": 8}, labels() | more)))
    check = any(f.rule.id == "site-cards-offered-twice" for f in crossed(folder, *files))
    text = import_site([str(write(folder, *files))]).text
    entries = yaml.load(text, Loader=yaml.BaseLoader)["nodes"]
    return check, len(entries) == 1 and "," not in entries[0]["hosts"] and "[" not in entries[0]["hosts"]


@pytest.mark.parametrize("case", ONE)
def test_one_host(case: str, tmp_path: Path) -> None:
    assert paired(tmp_path, *ONE[case]) == (True, True)


@pytest.mark.parametrize("case", TWO)
def test_two_hosts(case: str, tmp_path: Path) -> None:
    assert paired(tmp_path, *TWO[case]) == (False, False)
