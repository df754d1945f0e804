"""Files held against what the nodes' drivers report."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from hybridgpu.model.finding import Severity
from tests.check.cross_sites import crossed, facts, labels, mig_gres, node, nodes, slurm
from tests.check.test_cross_membership import SLURM_ONLY, entry, inventory

Files = Mapping[str, str]
WHOLE = slurm("NodeName=gpu01 Gres=gpu:a100:8")
MIG = slurm("NodeName=gpu01 Gres=gpu:1g.10gb:14", gres=mig_gres(cards=2))

WRONG: dict[str, tuple[tuple[Files, ...], str, tuple[str, ...]]] = {
    "more device files than cards": (
        (WHOLE, facts("gpu01", 4)),
        "site-device-not-on-node",
        ("gpu01", "/dev/nvidia4", "/dev/nvidia7"),
    ),
    "instances where MIG is off": (
        (MIG, facts("gpu01", 2)),
        "site-device-not-on-node",
        ("nvidia-cap66", "no MIG instance"),
    ),
    "an instance that is not there": (
        (
            slurm(
                "NodeName=gpu01 Gres=gpu:1g.10gb:1",
                gres=mig_gres(each=1).replace("cap66", "cap21").replace("cap67", "cap22"),
            ),
            facts("gpu01", 1, [0]),
        ),
        "site-device-not-on-node",
        ("nvidia-cap21", "nvidia-cap22", "7 MIG instances"),
    ),
    "whole cards where MIG is on": (
        (WHOLE, facts("gpu01", 8, [2, 3])),
        "site-card-in-mig-mode",
        ("/dev/nvidia2", "MIG"),
    ),
    "another profile's files": (
        (slurm("NodeName=gpu01 Gres=gpu:2g.20gb:2", gres=mig_gres("2g.20gb", each=2)), facts("gpu01", 1, [0])),
        "site-instance-of-other-profile",
        ("2g.20gb", "1g.10gb"),
    ),
    "a Node that counts fewer": (
        (nodes(node("gpu01", {"gpu": 6}, labels(6))), facts("gpu01", 8)),
        "site-node-shows-other-cards",
        ("6", "8 cards"),
    ),
    "a Node that offers instances": (
        (nodes(node("gpu01", {"mig-1g.10gb": 7}, {})), facts("gpu01", 1)),
        "site-node-shows-other-cards",
        ("mig-1g.10gb", "no card in MIG mode"),
    ),
    "a Node that offers more": (
        (nodes(node("gpu01", {"gpu": 8}, {})), facts("gpu01", 4)),
        "site-node-shows-other-cards",
        ("8", "4 cards"),
    ),
}
RIGHT: dict[str, tuple[Files, ...]] = {
    "whole cards": (WHOLE, facts("gpu01")),
    "some of the cards": (
        slurm("NodeName=gpu01 Gres=gpu:a100:4", gres="Name=gpu Type=a100 File=/dev/nvidia[4-7]\n"),
        facts("gpu01"),
    ),
    "instances": (MIG, facts("gpu01", 2, [0, 1])),
    "instances of a prefixed type": (
        slurm("NodeName=gpu01 Gres=gpu:a100_1g.10gb:7", gres=mig_gres("a100_1g.10gb")),
        facts("gpu01", 1, [0]),
    ),
    "instances of a type that names no profile": (
        slurm("NodeName=gpu01 Gres=gpu:small:7", gres=mig_gres("small")),
        facts("gpu01", 1, [0]),
    ),
    "facts of a node that nobody names": (WHOLE, facts("gpu01"), facts("gpu99", 1)),
    "facts of the node with its domain": (WHOLE, facts("gpu01.example.org")),
    "a Node of whole cards": (nodes(node("gpu01", {"gpu": 8}, labels())), facts("gpu01")),
    "a Node that shares": (nodes(node("gpu01", {"gpu": 32}, labels(8, "time-slicing", 4))), facts("gpu01")),
    "a Node that counts instances": (
        nodes(
            node(
                "gpu01",
                {"gpu": 14},
                labels(14, mig="single") | {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB-MIG-1g.10gb"},
            )
        ),
        facts("gpu01", 2, [0, 1]),
    ),
    "an inventory that wants what is not yet cut": (
        slurm("NodeName=gpu01 Gres=gpu:1g.10gb:56", gres=mig_gres(cards=8)),
        facts("gpu01"),
        inventory(entry("gpu01", sharing="{mode: mig, layout: {all: {1g.10gb: 7}}}", more=SLURM_ONLY)),
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_cards_that_are_not_so(case: str, tmp_path: Path) -> None:
    files, rule, named = WRONG[case]
    found = crossed(tmp_path, *files)
    assert [f.rule.id for f in found] == [rule], [f.message for f in found]
    assert all(word in found[0].message for word in named), found[0].message
    assert found[0].severity is (Severity.WARNING if rule == "site-node-shows-other-cards" else Severity.ERROR)
    assert found[0].related[0].place.file.endswith("gpu01.json")


@pytest.mark.parametrize("case", RIGHT)
def test_cards_that_are_so(case: str, tmp_path: Path) -> None:
    assert [f"{f.rule.id}: {f.message}" for f in crossed(tmp_path, *RIGHT[case])] == []


def test_a_count_that_autodetect_cannot_meet(tmp_path: Path) -> None:
    site = slurm("NodeName=gpu01 Gres=gpu:8", gres="AutoDetect=nvml\n")
    (found,) = crossed(tmp_path, site, facts("gpu01.example.org", 4))
    assert found.rule.id == "site-more-gpus-than-cards"
    assert "counts 8" in found.message
    assert crossed(tmp_path, site, facts("gpu01.example.org", 8)) == []
