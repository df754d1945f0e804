"""Rendered files, judged by the real slurmd of three releases against a table written by hand."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings

from hybridgpu.inventory.load import load_site
from hybridgpu.render.proof import prove
from hybridgpu.render.tree import render_tree, slurm_texts
from testbed.slurm.root import SlurmdReport
from tests.conftest import root_of, soak
from tests.slurm.inventories import Case, Node, cases

pytestmark = pytest.mark.slurm

SLURM_CONF = """\
ClusterName=t
SlurmctldHost=ctl
SelectType=select/cons_tres
Include nodes.conf
Include gpu.conf
PartitionName=all Nodes=ALL Default=YES
"""

SPLITS = {"22.05": False, "24.11": True, "26.05": True}


@pytest.mark.parametrize("version", sorted(SPLITS))
def test_slurmd_sees_what_the_table_says(
    version: str, tmp_path_factory: pytest.TempPathFactory, record_property: Callable[[str, object], None]
) -> None:
    root = root_of(version)
    counts: Counter[str] = Counter()

    @settings(
        max_examples=soak(30, 400),
        deadline=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
        print_blob=False,
    )
    @given(cases(version, splits=SPLITS[version]))
    def judge(case: Case) -> None:
        files = render(case, tmp_path_factory.mktemp("case"))
        for node in case.nodes:
            report = root.slurmd_g(files, node.name)
            agree(report, node, files)
        counts.update(inventories=1, nodes=len(case.nodes), devices=sum(len(node.gpus) for node in case.nodes))

    judge()
    seen = f"{counts['inventories']} inventories, {counts['nodes']} nodes, {counts['devices']:,} devices"
    record_property("measured", f"Slurm {root.version}: {seen}: as the table says")


def render(case: Case, folder: Path) -> dict[str, str]:
    """The case through the reader, the compiler, the renderer and its proof; the files slurmd reads."""
    inventory = folder / "inventory.yaml"
    inventory.write_text(yaml.safe_dump(case.inventory, sort_keys=False))
    facts = {}
    for node, content in case.facts.items():
        facts[node] = str(folder / f"{node}.json")
        Path(facts[node]).write_text(json.dumps(content))
    loaded = load_site(str(inventory), facts, for_render=True)
    assert loaded.site, [f.message for f in loaded.findings]
    tree = render_tree(loaded.site)
    assert [f for f in prove(loaded.site, tree) if f.is_error] == []
    return {"slurm.conf": SLURM_CONF, **slurm_texts(tree)}


def agree(report: SlurmdReport, node: Node, files: dict[str, str]) -> None:
    shown = f"{node}\n{report}\n" + "\n".join(f"--- {name}\n{text}" for name, text in files.items())
    assert not report.died, shown
    assert report.messages == (), shown
    gpus = [d for d in report.devices if d.name == "gpu"]
    seen = [(d.type, d.files, d.cores, d.links) for d in gpus]
    assert seen == [(r.type, r.files, r.cores, r.links) for r in node.gpus], shown
    shared = {(d.name, d.files, d.count) for d in report.devices if d.name in ("mps", "shard") and d.count}
    assert shared == {(node.shared, row.files, node.shares) for row in node.gpus if node.shared}, shown
    assert sum(r.count for r in report.records if r.name == "hybridgpu_k8s") == node.kubernetes_cards, shown
    assert sum(r.count for r in report.records if r.name == "nic") == node.nics, shown
