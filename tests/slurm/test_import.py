"""A site's own files against those that import and render make of it: the real slurmd must see the same."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from hybridgpu.check.importing import import_site
from hybridgpu.check.site import check
from hybridgpu.consumers.slurm import RELEASES as RELEASES_KNOWN
from hybridgpu.consumers.slurm import consume, gather, release
from hybridgpu.files.kinds import inputs
from hybridgpu.inventory.load import load_site
from hybridgpu.render.tree import render_tree, slurm_texts
from testbed.slurm.root import SlurmdReport, SlurmRoot
from tests.conftest import root_of, soak
from tests.sites import SLURM_CONF
from tests.slurm.adminsites import site
from tests.slurm.inventories import SPLITS_MIG

pytestmark = pytest.mark.slurm

RELEASES = ("22.05", "24.11", "26.05")
LOST = frozenset(
    f"import-{what}"
    for what in ("type-renamed", "devices-differ", "shares-differ", "other-gres-differ", "order-differs")
)
"""The rules that say that slurmd will see something else."""
CASES = Path(__file__).parent.parent / "data" / "cases"


def imported(files: Mapping[str, str], version: str, folder: Path) -> tuple[dict[str, str], list[str]]:
    """The files that rendering the imported inventory gives, and what import said of what it could not take over."""
    (folder / "slurm").mkdir()
    for name, text in files.items():
        (folder / "slurm" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "slurm" / name).write_text(text)
    result = import_site([str(folder / "slurm")], release(version))
    path = folder / "inventory.yaml"
    path.write_text(result.text)
    assert [f.message for f in check([str(path)]).findings if f.is_error] == [], result.text
    loaded = load_site(str(path), for_render=True)
    assert loaded.site, result.text
    said = [finding.rule.id for finding in result.findings]
    return {"slurm.conf": SLURM_CONF, **slurm_texts(render_tree(loaded.site))}, said


def nodes_of(inventory: Path) -> list[str]:
    """The nodes that Slurm has of an inventory."""
    loaded = load_site(str(inventory))
    return [name for name, config in loaded.site.nodes.items() if config.body.slurm] if loaded.site else []


def seen(report: SlurmdReport, typed: bool) -> list[tuple[object, ...]]:
    """What slurmd lists, without cores, which inventories leave to facts; without types where there were none."""
    rows = [
        (d.name, d.type if typed else None, d.count, d.files) for d in report.devices if d.count and d.name != "nic"
    ]
    nics = sum(record.count for record in report.records if record.name == "nic")
    return [*rows, ("nic", None, nics, ())]


def same(before: SlurmdReport, after: SlurmdReport) -> bool:
    typed = any(device.name == "gpu" and device.type for device in before.devices)
    return seen(before, typed) == seen(after, typed)


def agrees(root: SlurmRoot, before: Mapping[str, str], after: Mapping[str, str], node: str) -> None:
    first, second = root.slurmd_g(before, node), root.slurmd_g(after, node)
    shown = "\n".join(f"--- {name}\n{text}" for files in (before, after) for name, text in files.items())
    assert not first.died and not second.died, (first.messages, second.messages, shown)
    assert same(first, second), shown


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


DEVICES = re.compile(r"/dev/[\w/-]+(?:\[[^]]*\])?")
ROOT_HAS = re.compile(r"/dev/(?:nvidia(?:[0-9]|1[0-5]|\[[0-9]-[0-9]\])|nvidia-caps/nvidia-cap[0-9]{1,3}|null|zero)")
ASKS_THE_MACHINE = re.compile(r"AutoDetect *= *(?!off)", re.IGNORECASE)


def files_of(case: Path) -> dict[str, str]:
    return {str(f.relative_to(case)): f.read_text() for f in case.rglob("*") if f.is_file() and f.suffix != ".yaml"}


def can_be_judged(case: Path) -> bool:
    """Whether the root has all that the case names: no card is detected there, and nothing included by its path."""
    text = "\n".join(files_of(case).values())
    included = re.search("^include +/", text, re.IGNORECASE | re.MULTILINE)
    return not included and not ASKS_THE_MACHINE.search(text) and all(map(ROOT_HAS.fullmatch, DEVICES.findall(text)))


CLEAN = [case for case in sorted(CASES.glob("slurm-clean-*")) if can_be_judged(case)]


@pytest.mark.parametrize("case", CLEAN, ids=lambda case: case.name)
def test_slurmd_sees_the_same_of_a_clean_case_or_import_says_what_is_lost(case: Path, tmp_path: Path) -> None:
    version = "24.11"
    root, judging = root_of(version), RELEASES_KNOWN[version]
    files = files_of(case)
    after, said = imported(files, version, tmp_path)
    tree, _ = gather([*inputs(str(tmp_path / "slurm"))], judging)
    consumed = consume(tree[0].files, judging)
    nodes = [name for name in nodes_of(tmp_path / "inventory.yaml") if consumed.offer_of(name)]
    before = {node: root.slurmd_g(files, node) for node in nodes[:3]}
    reports = {node: root.slurmd_g(after, node) for node in before}
    differing = [node for node, report in before.items() if not same(report, reports[node])]
    assert bool(differing) == bool(LOST & set(said)), (said, before, reports)
