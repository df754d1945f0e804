"""Nodes on which Slurm and Kubernetes believe the cards cut or shared in different ways."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.check.cross_sites import (
    cluster_policy,
    config,
    crossed,
    labels,
    mig_gres,
    mig_parted,
    node,
    nodes,
    plugin_configs,
    slurm,
)

Files = Mapping[str, str]
CHOICE, CUT = "nvidia.com/device-plugin.config", "nvidia.com/mig.config"
WHOLE = slurm("NodeName=gpu01 Gres=gpu:a100:8")
SHARD = slurm(
    "NodeName=gpu01 Gres=gpu:a100:8,shard:32", gres="Name=gpu Type=a100 File=/dev/nvidia[0-7]\nName=shard Count=32\n"
)
MPS = slurm(
    "NodeName=gpu01 Gres=gpu:a100:8,mps:800", gres="Name=gpu Type=a100 File=/dev/nvidia[0-7]\nName=mps Count=800\n"
)
MIG = slurm("NodeName=gpu01 Gres=gpu:1g.10gb:14", gres=mig_gres(cards=2))
SETS = plugin_configs(
    default=config(),
    shared=config("timeSlicing"),
    served=config("mps"),
    cut=config(strategy="mixed"),
    both=config("timeSlicing", strategy="mixed", resource="nvidia.com/mig-1g.10gb"),
)
LAYOUTS = mig_parted(all_1g="{1g.10gb: 7}", all_3g="{3g.40gb: 2}", some_1g='{"1g.10gb": 5, "2g.20gb": 1}')
NONE = {"gpu": 0}


def chosen(key: str, allocatable: Mapping[str, int] | None = None, **more: str) -> dict[str, str]:
    return nodes(node("gpu01", NONE if allocatable is None else allocatable, {CHOICE: key, **more}))


AUTODETECTED = slurm("NodeName=gpu01 Gres=gpu:1g.10gb:14", gres="AutoDetect=nvml\n")
SHUT = {"nvidia.com/gpu.deploy.device-plugin": "false", "nvidia.com/mig.config.state": "success"}
DIFFER: dict[str, tuple[str, tuple[Files, ...]]] = {
    **{
        f"closed in Kubernetes, and cut otherwise: {what}": ("site-mig-instances-differ", (slurm_files, *more))
        for what, slurm_files, more in (
            (
                "found by AutoDetect",
                AUTODETECTED,
                (LAYOUTS, nodes(node("gpu01", None, {CUT: "all-3g"} | SHUT | labels(2)))),
            ),
            ("written down", MIG, (LAYOUTS, nodes(node("gpu01", NONE, {CUT: "all-3g"} | SHUT)))),
            ("cards not counted", AUTODETECTED, (LAYOUTS, nodes(node("gpu01", NONE, {CUT: "all-3g"} | SHUT)))),
            (
                "a generated config",
                AUTODETECTED,
                (nodes(node("gpu01", NONE, {CUT: "all-3g.40gb"} | SHUT | labels(2))),),
            ),
            ("fewer cards", AUTODETECTED, (LAYOUTS, nodes(node("gpu01", NONE, {CUT: "all-1g"} | SHUT | labels(1))))),
        )
    },
    "mig, and mps chosen": ("site-mode-differs", (MIG, SETS, chosen("served"))),
    "mig, and time-slicing of whole cards chosen": ("site-mode-differs", (MIG, SETS, chosen("shared"))),
    "mig, and whole cards without a strategy chosen": ("site-mode-differs", (MIG, SETS, chosen("default"))),
    "mig, and whole cards seen": ("site-mode-differs", (MIG, nodes(node("gpu01", {"gpu": 2}, labels(2))))),
    "mig, and MIG turned off by label": ("site-mode-differs", (MIG, nodes(node("gpu01", NONE, {CUT: "all-disabled"})))),
    "whole, and instances seen": (
        "site-mode-differs",
        (WHOLE, nodes(node("gpu01", {"mig-1g.10gb": 56}, labels(8, mig="mixed")))),
    ),
    "whole, and an instance's product seen": (
        "site-mode-differs",
        (
            WHOLE,
            nodes(
                node(
                    "gpu01",
                    {"gpu": 56},
                    labels(56, mig="single") | {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB-MIG-1g.10gb"},
                )
            ),
        ),
    ),
    "whole, and a layout chosen": ("site-mode-differs", (WHOLE, LAYOUTS, nodes(node("gpu01", NONE, {CUT: "all-1g"})))),
    "whole, and NVIDIA's own layout chosen": (
        "site-mode-differs",
        (WHOLE, nodes(node("gpu01", NONE, {CUT: "all-1g.10gb"}))),
    ),
    "whole, and mps chosen": ("site-mode-differs", (WHOLE, SETS, chosen("served", {"gpu": 32}))),
    "whole, and mps seen": ("site-mode-differs", (WHOLE, nodes(node("gpu01", {"gpu": 32}, labels(8, "mps", 4))))),
    "mps, and whole cards seen": ("site-mode-differs", (MPS, nodes(node("gpu01", {"gpu": 8}, labels())))),
    "mps, and time-slicing chosen": ("site-mode-differs", (MPS, SETS, chosen("shared", {"gpu": 32}))),
    "shard, and mps chosen": ("site-mode-differs", (SHARD, SETS, chosen("served", {"gpu": 32}))),
    "whole, and time-slicing chosen": ("site-sharing-differs", (WHOLE, SETS, chosen("shared", {"gpu": 32}))),
    "whole, and time-slicing seen": (
        "site-sharing-differs",
        (WHOLE, nodes(node("gpu01", {"gpu": 32}, labels(8, "time-slicing", 4)))),
    ),
    "shard, and whole cards seen": ("site-sharing-differs", (SHARD, nodes(node("gpu01", {"gpu": 8}, labels())))),
    "whole, and the only config shares": (
        "site-sharing-differs",
        (WHOLE, plugin_configs(any=config("timeSlicing")), nodes(node("gpu01", {"gpu": 32}))),
    ),
    "the policy's default is mps": (
        "site-mode-differs",
        (
            WHOLE,
            SETS,
            cluster_policy(config_name="plugin-configs", default="served"),
            nodes(node("gpu01", {"gpu": 32})),
        ),
    ),
    "other instances by layout": (
        "site-mig-instances-differ",
        (MIG, LAYOUTS, nodes(node("gpu01", NONE, {CUT: "all-3g"}))),
    ),
    "fewer instances by layout": (
        "site-mig-instances-differ",
        (MIG, LAYOUTS, nodes(node("gpu01", NONE, {CUT: "some-1g"}))),
    ),
    "more instances by layout": (
        "site-mig-instances-left-over",
        (
            slurm("NodeName=gpu01 Gres=gpu:1g.10gb:5", gres=mig_gres(each=5)),
            LAYOUTS,
            nodes(node("gpu01", NONE, {CUT: "all-1g"})),
        ),
    ),
    "other instances seen": (
        "site-mig-instances-differ",
        (MIG, nodes(node("gpu01", {"mig-3g.40gb": 4}, labels(2, mig="mixed")))),
    ),
}

AGREE: dict[str, tuple[Files, ...]] = {
    "whole on both sides": (WHOLE, SETS, chosen("default")),
    "whole, and a strategy for instances": (WHOLE, SETS, chosen("cut", {"gpu": 8})),
    "shard and time-slicing": (SHARD, SETS, chosen("shared", {"gpu": 32})),
    "shard and time-slicing, other numbers": (SHARD, nodes(node("gpu01", {"gpu": 80}, labels(8, "time-slicing", 10)))),
    "mps on both sides": (MPS, SETS, chosen("served", {"gpu": 32})),
    "mig on both sides": (
        MIG,
        LAYOUTS,
        nodes(node("gpu01", {"mig-1g.10gb": 14}, labels(2, mig="mixed") | {CUT: "all-1g"})),
    ),
    "instances shared by Kubernetes": (MIG, SETS, chosen("both", {"mig-1g.10gb": 14})),
    "time-slicing of whole cards beside instances": (
        MIG,
        plugin_configs(default=config("timeSlicing", strategy="mixed")),
        nodes(node("gpu01", {"mig-1g.10gb": 14}, labels(2, mig="mixed") | {CHOICE: "default"})),
    ),
    "mig on both sides, strategy single": (
        MIG,
        nodes(
            node(
                "gpu01",
                {"gpu": 14},
                labels(14, mig="single") | {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB-MIG-1g.10gb"},
            )
        ),
    ),
    "closed in Kubernetes, cut alike, found by AutoDetect": (
        *(AUTODETECTED, LAYOUTS),
        nodes(node("gpu01", NONE, {CUT: "all-1g"} | SHUT | labels(2))),
    ),
    "closed in Kubernetes, cut alike, cards not counted": (
        *(AUTODETECTED, LAYOUTS),
        nodes(node("gpu01", NONE, {CUT: "all-1g"} | SHUT)),
    ),
    "closed in Kubernetes, cut alike by a generated config": (
        AUTODETECTED,
        nodes(node("gpu01", NONE, {CUT: "all-1g.10gb"} | SHUT | labels(2))),
    ),
    "closed in Kubernetes, whose labels are of before": (MIG, nodes(node("gpu01", NONE, labels(2)))),
    "closed in Kubernetes, whose default shares": (
        WHOLE,
        plugin_configs(any=config("timeSlicing")),
        nodes(node("gpu01", NONE)),
    ),
    "closed in Slurm": (
        slurm("NodeName=gpu01 Gres=gpu:a100:8 State=DRAIN"),
        nodes(node("gpu01", {"gpu": 32}, labels(8, "mps", 4))),
    ),
    "the config of another node": (
        MIG,
        SETS,
        nodes(node("gpu01", NONE), node("other", {"gpu": 32}, {CHOICE: "served"})),
    ),
    "no Node is known": (MIG, plugin_configs(any=config("mps"))),
    "a label whose key no file has": (MIG, chosen("elsewhere")),
    "a layout that no file has": (MIG, LAYOUTS, nodes(node("gpu01", NONE, {CUT: "custom"}))),
    "an AutoDetect that may find instances": (
        slurm("NodeName=gpu01 Gres=gpu:a100:14", gres="AutoDetect=nvml\n"),
        nodes(node("gpu01", NONE, {CUT: "all-1g.10gb"})),
    ),
    "prefixed and attributed types": (
        slurm(
            "NodeName=gpu01 Gres=gpu:nvidia_a100_1g.10gb+me:1",
            gres=mig_gres("nvidia_a100_1g.10gb+me", each=1),
        ),
        mig_parted(me='{"1g.10gb+me": 1}'),
        nodes(node("gpu01", NONE, {CUT: "me"})),
    ),
    "a split node": (
        slurm("NodeName=gpu01 Gres=gpu:1g.10gb:7", gres=mig_gres()),
        nodes(node("gpu01", {"mig-3g.40gb": 2}, labels(2, mig="mixed"))),
    ),
}

MODES = ("site-mode-differs", "site-sharing-differs", "site-mig-instances-differ", "site-mig-instances-left-over")


@pytest.mark.parametrize("case", DIFFER)
def test_sides_that_differ(case: str, tmp_path: Path) -> None:
    rule, files = DIFFER[case]
    found = [f for f in crossed(tmp_path, *files) if f.rule.id in MODES]
    assert [f.rule.id for f in found] == [rule], found
    assert "gpu01" in found[0].message
    assert found[0].place and found[0].place.file.endswith("slurm.conf")
    assert found[0].related and not found[0].related[0].place.file.endswith("slurm.conf")


@pytest.mark.parametrize("case", AGREE)
def test_sides_that_agree(case: str, tmp_path: Path) -> None:
    assert [f.message for f in crossed(tmp_path, *AGREE[case]) if f.rule.id in MODES] == []


def test_the_message_says_what_each_side_believes(tmp_path: Path) -> None:
    (found,) = crossed(tmp_path, *DIFFER["mig, and mps chosen"][1])
    assert "Slurm has mig (Gres=gpu:1g.10gb:14)" in found.message
    assert f"Kubernetes mps: the label {CHOICE}=served chooses mps" in found.message


def test_instances_are_counted_in_the_message(tmp_path: Path) -> None:
    (found,) = crossed(tmp_path, *DIFFER["other instances by layout"][1])
    assert "14 x 1g.10gb" in found.message
    assert "4 x 3g.40gb" in found.message
