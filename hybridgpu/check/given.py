"""What was given, whoever asks: files that cannot be read, and the facts file of each node. Judges no content."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from hybridgpu.files.kinds import Input, Kind
from hybridgpu.inventory.facts import read_facts
from hybridgpu.model.finding import Finding, Place, Related, Rule, Severity

UNREADABLE = Rule(
    "check-unreadable-file",
    Severity.ERROR,
    "A file cannot be read, so nothing is known of it.",
    "Make it readable, or name the other files.",
    "hybridgpu",
)
FACTS_TWICE = Rule(
    "check-facts-twice",
    Severity.ERROR,
    "Two files hold facts of one node, and which of them is true is not known.",
    "Name the newer one only.",
    "hybridgpu",
)


def each_once(found: Iterable[Input]) -> list[Input]:
    """Each file once, under whatever names it was given; one that was found in a folder is known to lie in that."""
    files: dict[str, Input] = {}
    for file in found:
        real = os.path.realpath(file.path)
        if real not in files or (file.root and not files[real].root):
            files[real] = file
    return list(files.values())


def unreadable(found: Iterable[Input]) -> Iterator[Finding]:
    """A finding for each file that cannot be read."""
    for file in found:
        if file.kind is Kind.UNREADABLE:
            yield Finding(UNREADABLE, Place(file.path, 1), f"cannot be read: {file.why}", UNREADABLE.fix)


def facts_files(found: Iterable[Input]) -> tuple[dict[str, str], list[Finding]]:
    """The facts file of each node, and findings on a second one."""
    facts: dict[str, str] = {}
    findings: list[Finding] = []
    for file in found:
        if file.kind is not Kind.FACTS:
            continue
        first = facts.setdefault(file.node, file.path)
        if first != file.path:
            related = (Related(Place(first, 1), "the first ones"),)
            message = f"facts of {file.node} again"
            findings.append(Finding(FACTS_TWICE, Place(file.path, 1), message, FACTS_TWICE.fix, related))
            findings += read_facts(file.path)[1]
    return facts, findings
