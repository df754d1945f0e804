"""The examples are right, and what stands beside them is what they render to."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from hybridgpu.inventory.load import load_site
from hybridgpu.render.proof import prove
from hybridgpu.render.tree import render_tree
from tests.conftest import root_of

RENDER_ANEW = "hybridgpu render examples/NAME/inventory.yaml --to examples/NAME/rendered"
EXAMPLES = sorted(path.parent for path in Path("examples").glob("*/inventory.yaml"))
SLURM_CONF = """\
ClusterName=t
SlurmctldHost=ctl
SelectType=select/cons_tres
AccountingStorageType=accounting_storage/slurmdbd
Include nodes.conf
Include gpu.conf
PartitionName=all Nodes=ALL Default=YES
"""


def test_there_are_four() -> None:
    assert len(EXAMPLES) == 4


@pytest.mark.parametrize("folder", EXAMPLES, ids=lambda path: path.name)
def test_what_stands_beside_it_is_what_it_renders_to(folder: Path) -> None:
    loaded = load_site(str(folder / "inventory.yaml"), for_render=True)
    assert loaded.site is not None
    assert {f.severity for f in loaded.findings} <= {"info"}
    tree = render_tree(loaded.site)
    assert list(prove(loaded.site, tree)) == []
    there = {str(p.relative_to(folder / "rendered")) for p in (folder / "rendered").rglob("*") if p.is_file()}
    assert there == set(tree), RENDER_ANEW
    for path, content in tree.items():
        assert (folder / "rendered" / path).read_bytes() == content(), RENDER_ANEW


@pytest.mark.slurm
@pytest.mark.parametrize("folder", EXAMPLES, ids=lambda path: path.name)
def test_slurmd_takes_it(folder: Path) -> None:
    files = {path.name: path.read_text() for path in (folder / "rendered/slurm").iterdir()}
    files["gpu.conf"] = files["gpu.conf"].replace("X11,", "")  # needs proctrack/cgroup, which the roots do without
    loaded = load_site(str(folder / "inventory.yaml"))
    assert loaded.site is not None
    for release in ("24.11", "26.05"):
        seen = set()
        for config in loaded.site.nodes.values():
            if config.body.slurm is None or id(config.body) in seen:
                continue
            seen.add(id(config.body))
            report = root_of(release).slurmd_g({**files, "slurm.conf": SLURM_CONF}, config.name)
            assert (report.died, report.messages) == (False, ())
            gpus = [device for device in report.devices if device.name == "gpu"]
            assert [d.files for d in gpus] == [d.files for d in config.body.slurm_devices]


def test_the_demo_runs() -> None:
    path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    shown = subprocess.run(["demo/run"], capture_output=True, text=True, check=False, env={"PATH": path})
    assert shown.returncode == 0, shown.stderr
    assert " errors in 1 file" in shown.stderr
    assert "+NodeName=gpu[025-032] " in shown.stdout
