"""Findings as text, JSON, SARIF and GitHub annotations: data in, text out. Judges nothing and filters nothing."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from hybridgpu import __version__
from hybridgpu.model.finding import Finding, Rule, Severity

_SARIF_LEVEL = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}
_GITHUB_LEVEL = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}


def text(findings: Sequence[Finding]) -> str:
    """One finding a paragraph, as compilers write them: place, severity, message and rule; then what it rests on."""
    lines: list[str] = []
    for finding in findings:
        where = f"{printable(str(finding.place))}: " if finding.place else ""
        lines.append(f"{where}{finding.severity}: {printable(_message(finding))} [{finding.rule.id}]")
        lines += [f"    see {printable(str(r.place))}: {printable(r.message)}" for r in finding.related]
        lines.append(f"    hint: {printable(_hint(finding))}")
    return "".join(f"{line}\n" for line in lines)


def summary(findings: Sequence[Finding]) -> str:
    """How many of each severity, for a person: `2 errors, 1 warning`."""
    counts = [(severity, sum(f.severity is severity for f in findings)) for severity in Severity]
    told = [f"{n} {severity}{'s' if n != 1 and severity != 'info' else ''}" for severity, n in counts if n]
    return ", ".join(told) or "nothing found"


def as_json(findings: Sequence[Finding], checked: Sequence[str]) -> str:
    """The contract of `check -o json`: `{"findings": [...], "checked": [...]}`; no place gives nulls."""
    return json.dumps({"findings": [record(f) for f in findings], "checked": list(checked)}, indent=2) + "\n"


def sarif(findings: Sequence[Finding]) -> str:
    """SARIF 2.1.0, one run, with the rules that fired (OASIS sarif-v2.1.0)."""
    rules = {f.rule.id: f.rule for f in findings}
    driver = {
        "name": "hybridgpu",
        "version": __version__,
        "rules": [_sarif_rule(rule) for _, rule in sorted(rules.items())],
    }
    run = {"tool": {"driver": driver}, "results": [_sarif_result(f) for f in findings]}
    schema = "https://json.schemastore.org/sarif-2.1.0.json"
    return json.dumps({"$schema": schema, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def github(findings: Sequence[Finding]) -> str:
    """Workflow commands that GitHub Actions turns into annotations (GitHub docs, workflow commands)."""
    lines = []
    for f in findings:
        place = f"file={_property(f.place.file)},line={f.place.line},col={f.place.column}," if f.place else ""
        body = _escaped(f"{printable(_message(f))}\nhint: {printable(_hint(f))}")
        lines.append(f"::{_GITHUB_LEVEL[f.severity]} {place}title={_property(f.rule.id)}::{body}\n")
    return "".join(lines)


def record(finding: Finding) -> dict[str, Any]:
    """One finding, as `check -o json` has it."""
    place = finding.place
    return {
        "rule": finding.rule.id,
        "severity": finding.severity.value,
        "file": place.file if place else None,
        "line": place.line if place else None,
        "column": place.column if place else None,
        "message": _message(finding),
        "hint": _hint(finding),
        "source": finding.rule.source,
        "related": [
            {"file": r.place.file, "line": r.place.line, "column": r.place.column, "message": r.message}
            for r in finding.related
        ],
    }


def _message(finding: Finding) -> str:
    """The message, with the releases for which it holds where the rule is not one of every release."""
    rule = finding.rule
    span = " ".join(filter(None, (rule.since and f"since {rule.since}", rule.until and f"until {rule.until}")))
    return f"{finding.message} (holds {span})" if span else finding.message


def _hint(finding: Finding) -> str:
    return finding.hint or finding.rule.fix


def _sarif_rule(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.id,
        "shortDescription": {"text": rule.what_happens},
        "help": {"text": f"{rule.fix} Source: {rule.source}"},
        "defaultConfiguration": {"level": _SARIF_LEVEL[rule.severity]},
    }


def _sarif_result(finding: Finding) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": finding.rule.id,
        "level": _SARIF_LEVEL[finding.severity],
        "message": {"text": f"{_message(finding)} Hint: {_hint(finding)}"},
    }
    if finding.place:
        result["locations"] = [_sarif_location(finding.place.file, finding.place.line, finding.place.column)]
    if finding.related:
        result["relatedLocations"] = [
            _sarif_location(r.place.file, r.place.line, r.place.column) | {"message": {"text": r.message}}
            for r in finding.related
        ]
    return result


def _sarif_location(file: str, line: int, column: int) -> dict[str, Any]:
    region = {"startLine": line, "startColumn": column}
    return {"physicalLocation": {"artifactLocation": {"uri": quote(os.fsencode(file))}, "region": region}}


def printable(text: str) -> str:
    """The text without what a terminal would act on: what was read may hold escapes. Tabs stay."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\t" else c.encode("unicode_escape").decode() for c in text)


def _escaped(message: str) -> str:
    return message.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(value: str) -> str:
    return _escaped(printable(value)).replace(":", "%3A").replace(",", "%2C")
