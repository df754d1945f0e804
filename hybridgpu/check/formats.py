"""Findings as text, JSON, SARIF and GitHub annotations: data in, text out. Judges nothing and filters nothing."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from hybridgpu import __version__
from hybridgpu.model.finding import Finding, Rule, Severity

_SARIF_LEVEL = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}
_GITHUB_LEVEL = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}


def text(findings: Sequence[Finding]) -> str:
    """One finding a paragraph, as compilers write them: place, severity, message and rule; then what it rests on."""
    lines: list[str] = []
    for finding in findings:
        where = f"{_clean(str(finding.place))}: " if finding.place else ""
        lines.append(f"{where}{finding.severity}: {_clean(finding.message)} [{finding.rule.id}]")
        lines += [f"    see {_clean(str(r.place))}: {_clean(r.message)}" for r in finding.related]
        if finding.hint:
            lines.append(f"    hint: {_clean(finding.hint)}")
    return "".join(f"{line}\n" for line in lines)


def summary(findings: Sequence[Finding]) -> str:
    """How many of each severity, for a person: `2 errors, 1 warning`."""
    counts = [(severity, sum(f.severity is severity for f in findings)) for severity in Severity]
    told = [f"{n} {severity}{'s' if n != 1 and severity != 'info' else ''}" for severity, n in counts if n]
    return ", ".join(told) or "nothing found"


def as_json(findings: Sequence[Finding], checked: Sequence[str]) -> str:
    """The contract of `check -o json`: `{"findings": [...], "checked": [...]}`; no place gives nulls."""
    return json.dumps({"findings": [_record(f) for f in findings], "checked": list(checked)}, indent=2) + "\n"


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
        body = _escaped(f.message + (f"\nhint: {f.hint}" if f.hint else ""))
        lines.append(f"::{_GITHUB_LEVEL[f.severity]} {place}title={_property(f.rule.id)}::{body}\n")
    return "".join(lines)


def _record(finding: Finding) -> dict[str, Any]:
    place = finding.place
    return {
        "rule": finding.rule.id,
        "severity": finding.severity.value,
        "file": place.file if place else None,
        "line": place.line if place else None,
        "column": place.column if place else None,
        "message": finding.message,
        "hint": finding.hint,
        "source": finding.rule.source,
        "related": [
            {"file": r.place.file, "line": r.place.line, "column": r.place.column, "message": r.message}
            for r in finding.related
        ],
    }


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
        "message": {"text": finding.message + (f" Hint: {finding.hint}" if finding.hint else "")},
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
    return {"physicalLocation": {"artifactLocation": {"uri": file}, "region": region}}


def _clean(message: str) -> str:
    """What was read may hold terminal escapes; a message must not."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in message)


def _escaped(message: str) -> str:
    return message.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(value: str) -> str:
    return _escaped(value).replace(":", "%3A").replace(",", "%2C")
