"""A site's own files against those that import and render make of it: the real slurmd must see the same."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from hybridgpu.check.importing import import_site
from hybridgpu.check.site import check
from hybridgpu.consumers.slurm import release
from hybridgpu.inventory.load import load_site
from hybridgpu.render.tree import render_tree, slurm_texts
from testbed.slurm.root import SlurmdReport, SlurmRoot
from tests.conftest import root_of, soak
from tests.slurm.adminsites import site
from tests.slurm.inventories import SPLITS_MIG

pytestmark = pytest.mark.slurm

RELEASES = ("22.05", "24.11", "26.05")
CASES = Path(__file__).parent.parent / "data" / "cases"
SLURM_CONF = """\
ClusterName=t
SlurmctldHost=ctl
SelectType=select/cons_tres
Include nodes.conf
Include gpu.conf
PartitionName=all Nodes=ALL Default=YES
"""


def imported(files: Mapping[str, str], version: str, folder: Path) -> tuple[dict[str, str], list[str]]:
    """The files that rendering the imported inventory gives, and what import said of what it could not take over."""
    (folder / "slurm").mkdir()
    for name, text in files.items():
        (folder / "slurm" / name).write_text(text)
    result = import_site([str(folder / "slurm")], release(version))
    path = folder / "inventory.yaml"
    path.write_text(result.text)
    assert [f.message for f in check([str(path)]).findings if f.is_error] == [], result.text
    loaded = load_site(str(path), for_render=True)
    assert loaded.site, result.text
    said = [finding.rule.id for finding in result.findings]
    return {"slurm.conf": SLURM_CONF, **slurm_texts(render_tree(loaded.site))}, said


def seen(report: SlurmdReport, typed: bool) -> list[tuple[object, ...]]:
    """What slurmd lists, without cores, which inventories leave to facts; without types where there were none."""
    rows = [
        (d.name, d.type if typed else None, d.count, d.files) for d in report.devices if d.count and d.name != "nic"
    ]
    nics = sum(record.count for record in report.records if record.name == "nic")
    return [*rows, ("nic", None, nics, ())]


def agrees(root: SlurmRoot, before: Mapping[str, str], after: Mapping[str, str], node: str) -> None:
    first, second = root.slurmd_g(before, node), root.slurmd_g(after, node)
    typed = any(device.name == "gpu" and device.type for device in first.devices)
    shown = "\n".join(f"--- {name}\n{text}" for files in (before, after) for name, text in files.items())
    assert not first.died and not second.died, (first.messages, second.messages, shown)
    assert seen(second, typed) == seen(first, typed), shown


@pytest.mark.parametrize("version", RELEASES)
def test_slurmd_sees_the_same_of_a_careful_admins_site(
    version: str, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    root = root_of(version)
    nodes = 0
    for number in range(soak(20, 200)):
        made = site(random.Random(f"{version} {number}"), mig_beside_shares=version not in SPLITS_MIG)
        folder = tmp_path / str(number)
        folder.mkdir()
        after, said = imported(made.files, version, folder)
        for node in made.nodes:
            agrees(root, made.files, after, node)
        nodes += len(made.nodes)
        assert set(said) <= {
            *("import-model-unknown", "import-type-added", "import-cores-left-out", "import-nodes-without-gpus")
        }, made
    record_property(
        "measured", f"Slurm {root.version}: {number + 1} sites, {nodes} nodes imported: slurmd sees the same"
    )
