"""Many files taken as one site: what each kind's judge says of them, together, and in the order of the files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from hybridgpu.check.kinds import Input, Kind, inputs
from hybridgpu.consumers.slurm.release import Release
from hybridgpu.inventory.facts import read_facts
from hybridgpu.inventory.load import load_site
from hybridgpu.model.finding import Finding, Place, Related, Rule, Severity
from hybridgpu.render.proof import prove
from hybridgpu.render.tree import render_tree

NOTHING_KNOWN = Rule(
    "check-nothing-known",
    Severity.ERROR,
    "A file or folder was named in which there is nothing that hybridgpu can judge.",
    "Name an inventory (kind: Inventory) or facts (kind: Facts), or a folder that holds some.",
    "hybridgpu",
)
FACTS_TWICE = Rule(
    "check-facts-twice",
    Severity.ERROR,
    "Two files hold facts of one node, and which of them is true is not known.",
    "Name the newer one only.",
    "hybridgpu",
)


@dataclass(frozen=True, slots=True)
class Checked:
    """What was found, and the files that were judged."""

    findings: tuple[Finding, ...]
    files: tuple[str, ...]


def check(paths: Sequence[str], release: Release | None = None) -> Checked:
    """Judges the files at `paths` as one site, for this Slurm release where one is given.

    Raises FileNotFoundError for a path that is not there.
    """
    found: list[Input] = []
    findings: list[Finding] = []
    for path in paths:
        here = list(inputs([path]))
        found += here
        if not here:
            message = f"{path} holds no inventory and no facts"
            findings.append(Finding(NOTHING_KNOWN, Place(path, 1), message, NOTHING_KNOWN.fix))
    # A file that was named is judged even where it does not look like an inventory: it may be a broken one.
    inventories = [i.path for i in found if i.kind is not Kind.FACTS]
    facts: dict[str, str] = {}
    for file in (i for i in found if i.kind is Kind.FACTS):
        first = facts.setdefault(file.node, file.path)
        if first != file.path:
            related = (Related(Place(first, 1), "the first ones"),)
            findings.append(
                Finding(FACTS_TWICE, Place(file.path, 1), f"facts of {file.node} again", FACTS_TWICE.fix, related)
            )
    for inventory in inventories:
        findings += _inventory(inventory, facts, release)
    if not inventories:
        findings += _facts_alone(facts.values())
    return Checked(tuple(dict.fromkeys(findings)), tuple(i.path for i in found))


def _inventory(path: str, facts: dict[str, str], release: Release | None) -> Iterator[Finding]:
    loaded = load_site(path, facts, release=release)
    yield from loaded.findings
    if loaded.site:
        yield from prove(loaded.site, render_tree(loaded.site))


def _facts_alone(paths: Iterable[str]) -> Iterator[Finding]:
    for path in paths:
        yield from read_facts(path)[1]
