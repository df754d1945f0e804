"""What hybridgpu renders, `check` has no word against: the tree alone, under a slurm.conf, and beside its inventory."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings

from hybridgpu.check.rendering import rendered
from hybridgpu.check.site import check
from hybridgpu.consumers.slurm import release
from hybridgpu.files.tree import write
from hybridgpu.inventory.load import load_site
from hybridgpu.model.finding import Severity
from tests.conftest import soak
from tests.kubernetes import inventories as hybrid
from tests.sites import CONFINING
from tests.slurm import inventories as slurm
from tests.slurm.inventories import Case

OTHER_NODES = "NodeName=other[1-2] Gres=gpu:k40:1{nics}\n"
"""Nodes that the site looks after itself: their gres.conf lines are in the inventory, as they stand. They have the
NICs that a line for all nodes gives them."""


def written(case: Case, folder: Path) -> None:
    """The inventory, its facts and the tree that is rendered from them."""
    (folder / "facts").mkdir()
    inventory = folder / "inventory.yaml"
    inventory.write_text(yaml.safe_dump(case.inventory, sort_keys=False))
    facts = {}
    for node, content in case.facts.items():
        facts[node] = str(folder / "facts" / f"{node}.json")
        Path(facts[node]).write_text(json.dumps(content))
    done = rendered(load_site(str(inventory), facts, for_render=True), folder / "tree", only=None, forget=False)
    write(folder / "tree", done.plan, done.wanted, ())


def other_nodes(gres: Path) -> str:
    """The NodeName line of the nodes that gres.conf has beside the inventory's."""
    lines = gres.read_text().splitlines()
    if not any("other[1-2]" in line for line in lines):
        return ""
    return OTHER_NODES.format(nics=",nic:2" * any(line.startswith("Name=nic") for line in lines))


def told(version: str, *paths: Path) -> list[str]:
    judged = check([str(path) for path in paths], release(version))
    return [f"{f.place} {f.severity} {f.rule.id} {f.message}" for f in judged.findings if f.severity != Severity.INFO]


def nothing_new(version: str, folder: Path) -> None:
    """The tree is as good as its inventory: what is said of that alone may be said again, and nothing else."""
    given_facts = [str(path) for path in (folder / "facts").iterdir()]
    said = check([str(folder / "inventory.yaml"), *given_facts], release(version)).findings
    rules = {finding.rule.id for finding in said if finding.severity != Severity.INFO}
    assert not any(finding.is_error for finding in said)

    raw = "gres:" in (folder / "inventory.yaml").read_text()

    def new(*paths: Path) -> list[str]:
        found = [line for line in told(version, *paths) if line.split()[2] not in rules]
        # The site's own lines, of nodes that the inventory has in Kubernetes alone: dead words, as check says.
        return [line for line in found if not (raw and line.split()[2] == "slurm-gres-nodes-unknown")]

    assert new(folder / "tree") == []
    if (gres := folder / "tree/slurm/gres.conf").is_file():  # there is none where no node is in Slurm
        (folder / "tree/slurm/slurm.conf").write_text(CONFINING + other_nodes(gres))
        assert new(folder / "tree") == []
    assert new(folder) == []


@pytest.mark.parametrize("version", ["22.05", "24.11", "26.05"])
def test_trees_of_slurm_sites(version: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    @settings(max_examples=soak(25, 300), deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(slurm.cases(version, splits=version != "22.05"))
    def judge(case: Case) -> None:
        folder = tmp_path_factory.mktemp("site")
        written(case, folder)
        nothing_new(version, folder)

    judge()


@pytest.mark.parametrize("delivery", [hybrid.CHART, hybrid.OPERATOR])
def test_trees_of_hybrid_sites(delivery: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    @settings(max_examples=soak(25, 300), deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(hybrid.cases(delivery))
    def judge(case: Case) -> None:
        folder = tmp_path_factory.mktemp("site")
        written(case, folder)
        nothing_new(hybrid.RELEASE, folder)

    judge()


@pytest.mark.parametrize("example", sorted(path.name for path in Path("examples").iterdir() if path.is_dir()))
def test_the_examples_are_clean(example: str) -> None:
    judged = check([f"examples/{example}"])
    assert [f"{f.place} {f.message}" for f in judged.findings if f.severity != Severity.INFO] == []
