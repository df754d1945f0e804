"""Rendered files, judged by the real slurmd of three releases against a table written by hand."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import pytest
import yaml
from hypothesis import HealthCheck, given, settings

from hybridgpu.inventory.load import load_site
from hybridgpu.model.catalogue import models
from hybridgpu.render.proof import prove
from hybridgpu.render.tree import render_tree, slurm_texts
from testbed.slurm.root import SlurmdReport
from tests.conftest import root_of, soak
from tests.sites import SLURM_CONF
from tests.slurm.cards import CARDS
from tests.slurm.expected import CUTS, Row, cut, ordered, whole
from tests.slurm.inventories import OLDER, SOCKETS, Case, Node, cases

pytestmark = pytest.mark.slurm

T = TypeVar("T")

SPLITS = {"22.05": False, "24.11": True, "26.05": True}


@pytest.mark.parametrize("version", sorted(SPLITS))
def test_slurmd_sees_what_the_table_says(
    version: str, tmp_path_factory: pytest.TempPathFactory, record_property: Callable[[str, object], None]
) -> None:
    root = root_of(version)
    judges = {None: root} | {older: root_of(older) for older in OLDER[version] if older in SPLITS}
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
        nodes = [node for node in (*case.nodes, *case.further) if node.release in judges]
        for node in nodes:
            agree(judges[node.release].slurmd_g(files, node.name), node, files)
        counts.update(inventories=1, nodes=len(nodes), devices=sum(len(node.gpus) for node in nodes))

    judge()
    seen = f"{counts['inventories']} inventories, {counts['nodes']} nodes, {counts['devices']:,} devices"
    record_property("measured", f"Slurm {root.version}: {seen}: as the table says")


@pytest.mark.parametrize("version", sorted(SPLITS))
def test_every_model_and_layout_is_seen_as_the_table_says(
    version: str, tmp_path_factory: pytest.TempPathFactory, record_property: Callable[[str, object], None]
) -> None:
    """Each model whole, and cut in each way that the table has; a few models a cluster, since slurmd reads it all."""
    root = root_of(version)
    devices = 0
    for some in batched(CARDS, 8):
        case = every_cut(version, some)
        files = render(case, tmp_path_factory.mktemp("case"))
        for node in case.nodes:
            agree(root.slurmd_g(files, node.name), node, files)
        devices += sum(len(node.gpus) for node in case.nodes)
    seen = f"{len(CARDS)} models, {len(CUTS)} with MIG in {sum(map(len, CUTS.values()))} cuts, {devices:,} devices"
    record_property("measured", f"Slurm {root.version}: {seen}: as the table says")


def every_cut(version: str, models: Sequence[str]) -> Case:
    """A cluster with eight cards a node: each model whole, and cut in each way, the last one as often as it takes."""
    head = {"apiVersion": "hybridgpu/v1", "kind": "Inventory", "metadata": {"name": "every"}}
    case = Case({**head, "slurm": {"version": version}, "nodeClasses": {}, "nodes": []})

    def add(host: str, model: str, sharing: dict[str, object], cards: list[list[Row]]) -> None:
        case.inventory["nodes"].append({"hosts": host, "class": model, "owner": "slurm", "sharing": sharing})
        case.nodes.append(Node(host, ordered(cards)))

    for number, model in enumerate(models):
        case.inventory["nodeClasses"][model] = {"model": model, "gpus": "8", "slurm": dict(SOCKETS[0])}
        add(f"m{number}", model, {"mode": "exclusive"}, [[whole(model, minor)] for minor in range(8)])
        for batch in batched(CUTS.get(model, ()), 8):
            each = [*batch, *[batch[-1]] * (8 - len(batch))]
            layout = {str(index): {p: str(n) for p, n in one.layout} for index, one in enumerate(each)}
            rows = [cut(model, one, minor) for minor, one in enumerate(each)]
            add(f"m{number}n{len(case.nodes)}", model, {"mode": "mig", "layout": layout}, rows)
    return case


def batched(items: Iterable[T], size: int) -> Iterator[list[T]]:
    every = list(items)
    return (every[at : at + size] for at in range(0, len(every), size))


def test_the_table_has_every_model_and_profile() -> None:
    """The table is written down apart from the catalogue; of that only the names are read, so that none is left out."""
    catalogue = {model.name: {profile.name for profile in model.profiles} for model in models()}
    assert {name: {p for each in CUTS.get(name, ()) for p, _ in each.layout} for name in CARDS} == catalogue


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
    """Whether slurmd, without a word of complaint, lists what the table has for the node."""
    gpus = [(d.type, d.files, d.cores, d.links) for d in report.devices if d.name == "gpu"]
    shared = {(d.name, d.files, d.count) for d in report.devices if d.name in ("mps", "shard") and d.count}
    kept = tuple(file for d in report.devices if d.name == "hybridgpu_k8s" for file in d.files)
    nics = sum(r.count for r in report.records if r.name == "nic")
    seen = (report.died, report.messages, gpus, shared, kept, nics)
    assert seen == (
        False,
        (),
        [(r.type, r.files, r.cores, r.links) for r in node.gpus],
        {(node.shared, row.files, node.shares) for row in node.gpus if node.shared},
        node.kubernetes_cards,
        node.nics,
    ), f"{node}\n{report}\n" + "\n".join(f"--- {name}\n{text}" for name, text in files.items())
