"""What was rendered is imported and rendered again: Slurm's files say the same, word for word, but for their heads."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, Phase, given, settings

from hybridgpu.check.importing import import_site
from hybridgpu.check.rendering import unrendered
from hybridgpu.consumers.slurm import release
from hybridgpu.inventory.load import Loaded, load_site
from hybridgpu.render.tree import render_tree, slurm_texts
from tests.conftest import soak
from tests.slurm.inventories import Case, cases


def rendered(loaded: Loaded) -> dict[str, str]:
    assert loaded.site, [f.message for f in loaded.findings]
    return slurm_texts(render_tree(loaded.site))


def body(texts: dict[str, str]) -> dict[str, dict[str, list[str]]]:
    """The lines of each file by the nodes that they name, without comments: which nodes come first says nothing."""
    files: dict[str, dict[str, list[str]]] = {}
    for name, text in texts.items():
        for line in filter(None, text.splitlines()):
            if not line.startswith("#"):
                nodes, _, rest = line.partition(" ") if line.startswith("NodeName=") else ("", "", line)
                files.setdefault(name, {}).setdefault(nodes, []).append(rest)
    return files


def written(case: Case, folder: Path) -> tuple[Path, dict[str, str]]:
    """The case as an inventory file and facts by node."""
    inventory = folder / "inventory.yaml"
    inventory.write_text(yaml.safe_dump(case.inventory, sort_keys=False))
    (folder / "facts").mkdir()
    facts = {node: str(folder / "facts" / f"{node}.json") for node in case.facts}
    for node, content in case.facts.items():
        Path(facts[node]).write_text(json.dumps(content))
    return inventory, facts


def trees(loaded: Loaded, folder: Path) -> list[str]:
    """Writes what is rendered for both schedulers, and gives the folders; the nodes' own files tell too much."""
    assert loaded.site
    for path, content in render_tree(loaded.site).items():
        if not path.startswith("nodes/"):
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(content())
    return [str(folder / name) for name in ("slurm", "kubernetes") if (folder / name).is_dir()]


@pytest.mark.parametrize(("version", "splits"), [("22.05", False), ("24.11", True), ("26.05", True)])
def test_rendered_files_come_back(version: str, splits: bool, tmp_path_factory: pytest.TempPathFactory) -> None:
    @settings(
        max_examples=soak(40, 400),
        deadline=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.explicit, Phase.generate),
        print_blob=False,
    )
    @given(cases(version, splits=splits))
    def comes_back(case: Case) -> None:
        folder = tmp_path_factory.mktemp("case")
        inventory, facts = written(case, folder)
        loaded = load_site(str(inventory), facts, for_render=True)
        first = rendered(loaded)
        given_ = [*trees(loaded, folder), *([str(folder / "facts")] if facts else [])]
        imported = import_site(given_, release(version))
        assert [f for f in imported.findings if f.is_error] == [], imported.text
        assert import_site(given_, release(version)).text == imported.text
        (folder / "imported.yaml").write_text(imported.text)
        again = load_site(str(folder / "imported.yaml"), facts, for_render=True)
        assert body(rendered(again)) == body(first), imported.text
        assert [f for f in unrendered(again) if f.is_error] == []

    comes_back()
