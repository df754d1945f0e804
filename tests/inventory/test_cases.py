"""Folders of inputs that hurt: each says in expect.yaml what must be found in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from hybridgpu.files import yamlerror, yamltree
from hybridgpu.inventory import (
    classes,
    clean,
    kubernetesblock,
    layout,
    nodeentry,
    nodekeys,
    owners,
    read,
    report,
    sharing,
    sitegres,
    slurmblock,
    together,
)
from hybridgpu.inventory.read import read_inventory
from hybridgpu.model.finding import Finding, Rule

CASES = sorted((Path(__file__).parent.parent / "data" / "cases").glob("inventory-*"))
SEVERAL = {"inventory-yaml-alias"}
"""Cases whose one mistake stands in two places."""


MODULES = (
    *(classes, clean, kubernetesblock, layout, nodeentry, nodekeys, owners, read, report, sharing, sitegres),
    *(slurmblock, together, yamltree, yamlerror),
)
FIRED_ELSEWHERE = {
    "inventory-too-many-mistakes": "test_read.test_thousands_of_mistakes_end_the_reading",
    "inventory-unconfirmed-catalogue": "test_read.test_unconfirmed_data_in_use_is_told_once",
    "yaml-too-many-mistakes": "test_yamltree.test_a_hostile_file_is_refused_within_a_second",
}


def found(case: Path) -> tuple[Finding, ...]:
    """Every finding that counts, errors and warnings."""
    findings = read_inventory(str(case / "inventory.yaml")).findings
    return tuple(finding for finding in findings if finding.severity != "info")


def expected(case: Path) -> dict[str, Any]:
    return dict(yaml.safe_load((case / "expect.yaml").read_text()))


def meets(finding: Finding, expect: dict[str, Any]) -> bool:
    words = f"{finding.message} {finding.hint}".lower()
    assert finding.place
    return (
        expect["expect"] in (finding.severity, "any")
        and all(str(word).lower() in words for word in expect["mentions"])
        and finding.place.line == expect.get("line", finding.place.line)
    )


def test_there_are_cases() -> None:
    assert len(CASES) > 80
    assert sum(expected(case)["expect"] == "clean" for case in CASES) >= 8


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case.name).removeprefix("inventory-"))
def test_a_case_is_found_as_it_says_and_only_once(case: Path) -> None:
    findings, expect = found(case), expected(case)
    if expect["expect"] == "clean":
        assert [str(finding.message) for finding in findings] == []
        assert read_inventory(str(case / "inventory.yaml")).inventory is not None
    else:
        assert any(meets(finding, expect) for finding in findings), [f"{f.place} {f.message}" for f in findings]
        assert len(findings) == (2 if case.name in SEVERAL else 1), [f"{f.place} {f.message}" for f in findings]
        assert (read_inventory(str(case / "inventory.yaml")).inventory is None) == (expect["expect"] == "error")


def rules() -> set[str]:
    """Every rule of the modules that read an inventory."""
    return {value.id for module in MODULES for value in vars(module).values() if isinstance(value, Rule)}


def test_every_rule_fires_in_some_case() -> None:
    fired = {finding.rule.id for case in CASES for finding in found(case)}
    assert rules() - fired == set(FIRED_ELSEWHERE)
