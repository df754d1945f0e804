"""The site's own words, as each release in use reads them: what Slurm refuses is found in the inventory, not later."""

from __future__ import annotations

from pathlib import Path

import pytest

from hybridgpu.check.rendering import unrendered
from hybridgpu.consumers.slurm import RELEASES
from hybridgpu.inventory.load import load_site
from hybridgpu.inventory.read import read_inventory
from hybridgpu.model.finding import Finding
from tests.consumers.slurm.test_cgroupconf import COMPLAINED, REFUSED, TAKEN
from tests.consumers.slurm.test_hardware import KEPT, RESET

TEXT = """\
apiVersion: hybridgpu/v1
kind: Inventory
metadata: {{name: t}}
slurm: {{version: "{version}", site: {{gresTypes: [nic], gres: [{gres}], cgroup: {{{cgroup}}}}}}}
nodeClasses:
  dgx: {{model: A30, gpus: 2, slurm: {{{keys}}}}}
  old: {{model: A30, gpus: 2{old}}}
nodes:
- {{hosts: "n[1-2]", class: dgx, owner: slurm, sharing: {{mode: exclusive}}}}
- {{hosts: "m[1-2]", class: old, owner: slurm, sharing: {{mode: exclusive}}}}
- {{hosts: n3, class: dgx, owner: slurm, sharing: {{mode: exclusive}}}}
"""


def text(*, version: str = "24.11", gres: str = "", cgroup: str = "", keys: str = "", old: str = "") -> str:
    return TEXT.format(version=version, gres=gres, cgroup=cgroup, keys=keys, old=old)


def found(inventory: str) -> tuple[Finding, ...]:
    return read_inventory("f.yaml", inventory.encode()).findings


def flow(pairs: str, separator: str | None = None) -> str:
    """`A=1 B=2` as keys of a flow mapping."""
    return ", ".join(f"{key}: '{value}'" for key, _, value in (pair.partition("=") for pair in pairs.split(separator)))


ONE_KEY = [pair for pair in (*TAKEN, *REFUSED, *COMPLAINED) if pair.count("=") == 1 and pair[-1] != "="]


@pytest.mark.parametrize("version", ["22.05", "26.05"])
@pytest.mark.parametrize("pair", ONE_KEY)
def test_a_key_of_cgroup_conf_is_judged_at_its_line(pair: str, version: str) -> None:
    findings = found(text(version=version, cgroup=flow(pair)))
    severity = "error" if pair in REFUSED else "warning" if pair in COMPLAINED else None
    assert [(finding.severity, str(finding.place).split(":")[1]) for finding in findings] == (
        [(severity, "4")] if severity else []
    )


@pytest.mark.parametrize("line", [line for line in (*RESET, *KEPT) if not line.startswith(("Port", "Weight=U"))])
def test_a_value_that_slurm_resets_is_a_warning_once_for_all_nodes_of_the_class(line: str) -> None:
    findings = found(text(keys=flow(line)))
    if any(finding.is_error for finding in findings):  # the inventory takes decimal numbers only
        assert {finding.rule.id for finding in findings} == {"inventory-node-key-not-a-number"}
    else:
        expected = {("warning", 6)} if line in RESET else set()
        assert {(f.severity, f.place.line) for f in findings if f.place} == expected


LINES = {
    "NodeName=n[1-2]-ib Name=nic Count=2": "22.05 23.02",
    "NodeName=other[1-2]-ib Name=nic Count=2": "22.05 23.02",
    "NodeName=n[2-1] Name=nic Count=2": " ".join(RELEASES),
    "Name=nic Count=2 NodeName=n1": " ".join(RELEASES),
    "NodeName=other1 Name=nic File=/dev/nic[0": " ".join(RELEASES),
    "NodeName=other1 Name=nic File=/dev/nic[0-1]x": "22.05 23.02",
    "NodeName=other1 Name=nic File=/dev/nic0 Count=2": " ".join(RELEASES),
    "NodeName=other1 Name=nic Count=2": "",
    "NodeName=other1 Name=gpu Type=t4 File=/dev/nvidia0": "",
}


@pytest.mark.parametrize("version", RELEASES)
@pytest.mark.parametrize("line", LINES)
def test_a_raw_line_is_judged_as_the_release_reads_it(line: str, version: str) -> None:
    findings = [finding for finding in found(text(version=version, gres=f"'{line}'")) if finding.is_error]
    assert [str(finding.place).split(":")[1] for finding in findings] == ["4"] * (version in LINES[line].split())


def test_every_bad_raw_line_is_told() -> None:
    lines = ", ".join(f"'NodeName=r{n}n[01-04]-ib Name=nic Count=1'" for n in range(20))
    findings = found(text(version="22.05", gres=lines))
    assert len(findings) == 20
    assert "r7n01-ib,r7n02-ib,r7n03-ib,r7n04-ib" in findings[7].hint


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({"cgroup": "SystemdTimeout: 5"}, ["SystemdTimeout", "class old (m[1-2]) runs 23.11", "same cgroup.conf"]),
        ({"keys": "RestrictedCoresPerGPU: 2"}, ["RestrictedCoresPerGPU came with 24.05", "m[1-2]", "same nodes.conf"]),
    ],
)
def test_what_one_release_in_use_does_not_know_is_an_error(parts: dict[str, str], words: list[str]) -> None:
    assert found(text(**parts)) == ()
    (finding,) = found(text(old=', slurmVersion: "23.11"', **parts))
    assert finding.is_error and all(word in finding.message for word in words)


@pytest.mark.parametrize(
    "parts",
    [{"keys": "CPUs: 8, CoreSpecCount: 8"}, {"cgroup": "CgroupAutomount: yes"}, {"gres": "'Name=nic File=/dev/nic0'"}],
)
def test_a_warning_of_the_inventory_is_not_told_again_for_the_rendered_files(
    parts: dict[str, str], tmp_path: Path
) -> None:
    path = tmp_path / "inventory.yaml"
    path.write_text(text(**parts))
    loaded = load_site(str(path))
    assert [finding.severity for finding in loaded.findings if finding.severity != "info"] == ["warning"]
    assert [finding.message for finding in unrendered(loaded) if finding.severity != "info"] == []
