"""RULES is complete, its ids are unique, and what is derived from it is current."""

from __future__ import annotations

import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import hybridgpu
from hybridgpu.check.rules import RULES, as_markdown, explain
from hybridgpu.model.finding import Rule
from tests.cli.test_main import hybridgpu_


def test_every_rule_of_the_package_is_in_the_tuple() -> None:
    modules = [importlib.import_module(m.name) for m in pkgutil.walk_packages(hybridgpu.__path__, "hybridgpu.")]
    defined = {value.id for module in modules for value in vars(module).values() if isinstance(value, Rule)}
    assert {rule.id for rule in RULES} == defined


def test_ids_are_unique_and_of_one_form() -> None:
    ids = [rule.id for rule in RULES]
    assert sorted(ids) == sorted(set(ids))
    assert [name for name in ids if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)+", name)] == []


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_a_rule_says_what_happens_what_to_do_and_how_that_is_known(rule: Rule) -> None:
    assert all(part.strip() for part in (rule.what_happens, rule.fix, rule.source))
    assert rule.what_happens in explain(rule)


def test_the_list_in_docs_is_current() -> None:
    assert Path("docs/rules.md").read_text() == as_markdown(), "python -m hybridgpu.check.rules > docs/rules.md"


def test_explain() -> None:
    shown = hybridgpu_("check", "--explain", "render-offer-differs")
    assert shown.returncode == 0
    assert shown.stdout.startswith("render-offer-differs (error)\n")
    wrong = hybridgpu_("check", "--explain", "render-offer-differ")
    assert wrong.returncode == 64
    assert "Did you mean 'render-offer-differs'?" in wrong.stderr
