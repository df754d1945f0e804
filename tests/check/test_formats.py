"""Findings in each form: complete, parseable, and safe whatever was read."""

from __future__ import annotations

import json
from dataclasses import replace

from hybridgpu.check.formats import as_json, github, sarif, summary, text
from hybridgpu.model.finding import Finding, Place, Related, Rule, Severity

RULE = Rule("some-rule", Severity.ERROR, "It breaks.", "Mend it.", "slurm.conf(5)")
WARNING = Rule("other-rule", Severity.WARNING, "It bends.", "Straighten it.", "gres.conf(5)")
ERROR = Finding(
    RULE, Place("a,b.yaml", 3, 7), "100% of x\x1b[31m\nis wrong", "say y", (Related(Place("c.yaml", 9), "first"),)
)
PLAIN = Finding(WARNING, None, "no place")


def test_text() -> None:
    assert text([ERROR, PLAIN]) == (
        "a,b.yaml:3:7: error: 100% of x\\x1b[31m\\nis wrong [some-rule]\n"
        "    see c.yaml:9:1: first\n"
        "    hint: say y\n"
        "warning: no place [other-rule]\n"
        "    hint: Straighten it.\n"
    )
    assert text([]) == ""


def test_summary() -> None:
    assert summary([]) == "nothing found"
    assert summary([ERROR, PLAIN, PLAIN]) == "1 error, 2 warnings"


def test_json_is_the_contract() -> None:
    told = json.loads(as_json([ERROR, PLAIN], ["a,b.yaml"]))
    assert told["checked"] == ["a,b.yaml"]
    assert told["findings"][0] == {
        "rule": "some-rule",
        "severity": "error",
        "file": "a,b.yaml",
        "line": 3,
        "column": 7,
        "message": ERROR.message,
        "hint": "say y",
        "source": "slurm.conf(5)",
        "related": [{"file": "c.yaml", "line": 9, "column": 1, "message": "first"}],
    }
    assert told["findings"][1]["line"] is None


def test_sarif() -> None:
    run = json.loads(sarif([ERROR, PLAIN]))["runs"][0]
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == ["other-rule", "some-rule"]
    error, plain = run["results"]
    assert error["locations"][0]["physicalLocation"]["region"] == {"startLine": 3, "startColumn": 7}
    assert error["relatedLocations"][0]["message"]["text"] == "first"
    assert "locations" not in plain
    assert (error["level"], plain["level"]) == ("error", "warning")


def test_github() -> None:
    first, second = github([ERROR, PLAIN]).splitlines()
    assert first == (
        "::error file=a%2Cb.yaml,line=3,col=7,title=some-rule::100%25 of x\\x1b[31m\\nis wrong%0Ahint: say y"
    )
    assert second == "::warning title=other-rule::no place%0Ahint: Straighten it."


def test_a_rule_of_some_releases_says_which() -> None:
    bound = replace(RULE, since="23.11", until="24.05")
    assert "is wrong (holds since 23.11 until 24.05) [some-rule]" in text([replace(ERROR, rule=bound)])
