"""This node's cards against what was installed for it: a firing and a clean case for every rule."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from hybridgpu.check.live import COMPUTE_MODE, CORES_DIFFER, PLUGIN_DIFFERS, SLURM_DIFFERS, PluginFile, judge_live
from hybridgpu.consumers import slurm
from hybridgpu.devices.bind import CARD_DIFFERS
from hybridgpu.devices.factsfile import as_json
from hybridgpu.devices.nodeconfig import NodeWanted, read_node_config
from hybridgpu.inventory.load import load_site
from hybridgpu.model.facts import Facts
from hybridgpu.model.finding import Finding, Rule
from hybridgpu.model.sharing import ComputeMode
from hybridgpu.render.tree import render_tree, slurm_texts
from tests.devices.test_bind import facts
from tests.devices.test_nodeconfig import ENTRIES, INVENTORY

CONF = "ClusterName=t\nSlurmctldHost=c\nSelectType=select/cons_tres\nInclude nodes.conf\nInclude gpu.conf\n"
PARTITION = "PartitionName=all Nodes=ALL Default=YES\n"
NEAR = ("0-31", "0-31", "32-63", "32-63")

Edit = Callable[[str], str]


def same(text: str) -> str:
    return text


class Installed:
    """A node's NodeConfig and both schedulers' files, rendered for its facts; `edit` changes one of the texts."""

    def __init__(self, name: str, told: Facts, folder: Path, version: str = "24.11") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "n1.json").write_text(as_json(told))
        path = folder / "inventory.yaml"
        path.write_text(INVENTORY.format(entry=ENTRIES[name]).replace("24.11", version))
        loaded = load_site(str(path), {"n1": str(folder / "n1.json")}, for_render=True)
        assert loaded.site, [finding.message for finding in loaded.findings]
        tree = render_tree(loaded.site)
        self.version, self.slurm_files = version, slurm_texts(tree)
        wanted, _ = read_node_config("node.json", tree["nodes/n1.json"]())
        assert wanted is not None
        self.wanted: NodeWanted = wanted

    def consumed(self, told: Facts, edit: Edit = same) -> slurm.Consumption:
        texts = {name: edit(text) for name, text in {**self.slurm_files, "slurm.conf": CONF + PARTITION}.items()}
        release = slurm.release(self.version)
        assert release is not None
        return slurm.consume(slurm.load(texts, "slurm.conf"), release, slurm.detected_from({"n1": told}, release))


def near(told: Facts) -> Facts:
    return replace(told, gpus=tuple(replace(gpu, cores=NEAR[gpu.index]) for gpu in told.gpus))


def rules(findings: tuple[Finding, ...]) -> list[Rule]:
    return [finding.rule for finding in findings]


@pytest.mark.parametrize("version", ["22.05", "24.11", "26.05"])
@pytest.mark.parametrize(("name", "cut"), [("exclusive", 0), ("shared", 0), ("mps", 0), ("mig", 3), ("kubernetes", 0)])
def test_what_was_rendered_for_the_node_is_clean(name: str, cut: int, version: str, tmp_path: Path) -> None:
    told = near(facts(cut=cut))
    installed = Installed(name, told, tmp_path, version)
    assert judge_live(installed.wanted, told, installed.consumed(told)) == ()


def test_a_split_node_is_clean(tmp_path: Path) -> None:
    told = near(facts())
    installed = Installed("split", told, tmp_path)
    assert judge_live(installed.wanted, told, installed.consumed(told)) == ()


@pytest.mark.parametrize(
    ("name", "cut", "edit", "said"),
    [
        (
            "exclusive",
            0,
            lambda text: text.replace("File=/dev/nvidia[0-1]", "File=/dev/nvidia[4-5]"),
            "would give a100-sxm4-80gb (/dev/nvidia4) as its GPU 0, which is a100-sxm4-80gb (/dev/nvidia0)",
        ),
        (
            "exclusive",
            0,
            lambda text: text.replace("a100-sxm4-80gb", "h100"),
            "would give h100 (/dev/nvidia0) as its GPU 0",
        ),
        ("exclusive", 0, lambda text: text.replace("NodeName=n1 ", "NodeName=n2 "), "does not know this node"),
        (
            "exclusive",
            0,
            lambda text: text.replace(":4", ":3").replace("[2-3]", "2"),
            "would give 3 GPU devices, not 4",
        ),
        ("exclusive", 0, lambda text: text.replace("[2-3]", "2"), "turns the node INVALID: gres/gpu count reported"),
        ("exclusive", 0, lambda text: text.replace("Name=gpu", "Name=gpu Count=7"), "does not start with these files"),
        ("mig", 3, lambda text: text.replace("nvidia-cap417", "nvidia-cap9"), "nvidia-cap9"),
    ],
)
def test_slurm_gives_other_devices(name: str, cut: int, edit: Edit, said: str, tmp_path: Path) -> None:
    told = near(facts(cut=cut))
    installed = Installed(name, told, tmp_path)
    found = judge_live(installed.wanted, told, installed.consumed(told, edit))
    assert rules(found) == [SLURM_DIFFERS]
    assert found[0].message.startswith("n1: Slurm 24.11 ")
    assert said in found[0].message


def test_slurm_has_other_cores(tmp_path: Path) -> None:
    told = near(facts())
    installed = Installed("exclusive", told, tmp_path)
    now = replace(told, gpus=(replace(told.gpus[0], cores="32-63"), *told.gpus[1:]))
    found = judge_live(installed.wanted, now, installed.consumed(told))
    assert [(f.rule, f.message) for f in found] == [
        (CORES_DIFFER, "GPU 0 at 0000:00:00.0: Slurm has cores 0-31, the driver 32-63")
    ]


def test_cards_that_are_others_stand_alone(tmp_path: Path) -> None:
    """What follows from another card is not said beside it."""
    told = near(facts())
    installed = Installed("exclusive", told, tmp_path)
    found = judge_live(
        installed.wanted, replace(told, gpus=told.gpus[:3]), installed.consumed(told, lambda text: text[:0])
    )
    assert rules(found) == [CARD_DIFFERS] * 2  # how many there are, and which one is missing


@pytest.mark.parametrize(
    ("name", "mode", "fires"),
    [
        ("exclusive", "default", False),
        ("exclusive", "exclusive_process", True),
        ("exclusive", "prohibited", True),
        ("mps", "exclusive_process", True),
    ],
)
def test_compute_modes(name: str, mode: str, fires: bool, tmp_path: Path) -> None:
    told = near(facts())
    installed = Installed(name, told, tmp_path)
    now = replace(told, gpus=(*told.gpus[:3], replace(told.gpus[3], compute_mode=mode)))
    assert rules(judge_live(installed.wanted, now)) == [COMPUTE_MODE] * fires


@pytest.mark.parametrize(("mode", "fires"), [("default", False), ("exclusive_process", False), ("prohibited", True)])
def test_a_compute_mode_that_jobs_get_is_no_difference_nor_is_its_absence(
    mode: str, fires: bool, tmp_path: Path
) -> None:
    told = near(facts())
    wanted = Installed("exclusive", told, tmp_path).wanted
    wanted = replace(
        wanted, cards=tuple(replace(card, compute_mode=ComputeMode.EXCLUSIVE_PROCESS) for card in wanted.cards)
    )
    now = replace(told, gpus=(*told.gpus[:3], replace(told.gpus[3], compute_mode=mode)))
    assert rules(judge_live(wanted, now)) == [COMPUTE_MODE] * fires


SHARED = "version: v1\nsharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: %d}]}}\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (SHARED % 4, None),
        (SHARED % 3, "offers {'nvidia.com/gpu': 12}, not {'nvidia.com/gpu': 16}"),
        (SHARED % 1, "number of replicas must be >= 2"),
        ("version: v1\n", "offers {'nvidia.com/gpu': 4}, not {'nvidia.com/gpu': 16}"),
        ("version: v2\n", "does not run: config: unknown version: v2"),
    ],
)
def test_the_plugin_offers_other_devices(text: str, said: str | None, tmp_path: Path) -> None:
    told = facts()
    installed = Installed("shared", told, tmp_path)
    found = judge_live(installed.wanted, told, None, PluginFile("config.yaml", text, {}))
    assert rules(found) == ([PLUGIN_DIFFERS] if said else [])
    assert not said or said in found[0].message


def test_the_plugin_of_a_split_node_sees_its_own_cards(tmp_path: Path) -> None:
    told = facts()
    installed = Installed("split", told, tmp_path)
    assert judge_live(installed.wanted, told, None, PluginFile("config.yaml", "version: v1\n", {})) == ()
