"""Many files taken as one site: what each kind's judge says of them, together, and in the order of the files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hybridgpu.check.kinds import Input, Kind, inputs
from hybridgpu.check.rendering import unrendered
from hybridgpu.consumers.slurm.release import Release
from hybridgpu.inventory.facts import read_facts
from hybridgpu.inventory.hosts import fold
from hybridgpu.inventory.load import Loaded, load_site
from hybridgpu.model.finding import Finding, Place, Related, Rule, Severity

NOTHING_KNOWN = Rule(
    "check-nothing-known",
    Severity.ERROR,
    "A file or folder was named in which there is nothing that hybridgpu can judge.",
    "Name an inventory (kind: Inventory) or facts (kind: Facts), or a folder that holds some.",
    "hybridgpu",
)
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
NODE_IN_TWO = Rule(
    "check-node-in-two-inventories",
    Severity.ERROR,
    "Two inventories say what one node must be.",
    "Name the node in one of them; a leftover copy belongs elsewhere.",
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
        here = list(inputs(path))
        found += here
        findings += _unjudged(path, here)
    # A file that was named is judged even where it does not look like an inventory: it may be a broken one.
    inventories = [i.path for i in found if i.kind in (Kind.INVENTORY, Kind.UNKNOWN)]
    facts: dict[str, str] = {}
    for file in (i for i in found if i.kind is Kind.FACTS):
        first_file = facts.setdefault(file.node, file.path)
        if first_file != file.path:
            related = (Related(Place(first_file, 1), "the first ones"),)
            message = f"facts of {file.node} again"
            findings.append(Finding(FACTS_TWICE, Place(file.path, 1), message, FACTS_TWICE.fix, related))
            findings += read_facts(file.path)[1]
    first: dict[str, str] = {}
    for path in inventories:
        loaded = load_site(path, facts, release=release)
        findings += [*loaded.findings, *unrendered(loaded), *_in_two(loaded, first)]
    if not inventories:
        findings += [finding for path in facts.values() for finding in read_facts(path)[1]]
    judged = (Kind.INVENTORY, Kind.FACTS, Kind.UNKNOWN)
    return Checked(tuple(dict.fromkeys(findings)), tuple(i.path for i in found if i.kind in judged))


def _unjudged(path: str, here: list[Input]) -> Iterator[Finding]:
    if not here:
        message = f"{path} holds no inventory and no facts"
        yield Finding(NOTHING_KNOWN, Place(path, 1), message, NOTHING_KNOWN.fix)
    for file in here:
        if file.kind is Kind.UNREADABLE:
            yield Finding(UNREADABLE, Place(file.path, 1), f"cannot be read: {file.why}", UNREADABLE.fix)
        elif file.kind is Kind.SLURM:
            message = f"{file.path} is {file.kind.value}; `check` judges inventories and facts so far"
            yield Finding(NOTHING_KNOWN, Place(file.path, 1), message, NOTHING_KNOWN.fix)


def _in_two(loaded: Loaded, first: dict[str, str]) -> Iterator[Finding]:
    """The nodes of an inventory that another one has as well; `first` remembers who named a node first."""
    inventory = loaded.inventory
    if inventory is None:
        return
    for group in inventory.groups:
        again: dict[str, list[str]] = {}
        for host in group.hosts:
            if (other := first.setdefault(host, inventory.file)) != inventory.file:
                again.setdefault(other, []).append(host)
        for other, hosts in again.items():
            related = (Related(Place(other, 1), "the other inventory"),)
            yield Finding(
                NODE_IN_TWO, group.place, f"{fold(hosts)} stands in {other} as well", NODE_IN_TWO.fix, related
            )
