"""Facts files by node: read one at a time when a node's turn comes, so that memory does not grow with their number."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from hybridgpu.inventory.entries import Inventory, NodeGroup
from hybridgpu.inventory.facts import judge_facts, read_facts
from hybridgpu.model.facts import Facts
from hybridgpu.model.finding import Finding, Place, Rule, Severity

FACTS_OF_NOBODY = Rule(
    "facts-of-unknown-node",
    Severity.WARNING,
    "Facts of a node that the inventory does not name are not used.",
    "Remove the file, or add the node to the inventory.",
    "hybridgpu",
)


FACTS_UNREADABLE = Rule(
    "facts-unreadable-file",
    Severity.ERROR,
    "The facts of a node are there and cannot be read.",
    "Make the file readable, or remove it.",
    "hybridgpu",
)


def facts_in(folder: str) -> dict[str, str]:
    """Node name -> path of NAME.json in the folder. Raises FileNotFoundError where there is no such folder."""
    if not Path(folder).is_dir():
        raise FileNotFoundError(2, "no such folder", folder)
    return {path.stem: str(path) for path in sorted(Path(folder).glob("*.json"))}


class FactsShelf:
    """The facts files of an inventory's nodes, and every finding made on the way."""

    def __init__(self, files: Mapping[str, str], inventory: Inventory) -> None:
        self.findings: list[Finding] = []
        self._files = files
        self._groups: dict[str, NodeGroup] = {host: group for group in inventory.groups for host in group.hosts}

    def facts_of(self, node: str) -> Facts | None:
        """The node's facts; None where it has none, or where a finding says why they cannot be used."""
        if node not in self._files:
            return None
        try:
            facts, findings = read_facts(self._files[node])
        except OSError as error:
            place = Place(self._files[node], 1)
            self.findings.append(
                Finding(FACTS_UNREADABLE, place, f"cannot be read: {error.strerror}", FACTS_UNREADABLE.fix)
            )
            return None
        if facts is not None:
            findings = (*findings, *judge_facts(facts, self._groups[node], node))
        self.findings += findings
        return None if facts is None or any(f.is_error for f in findings) else facts

    def strangers(self) -> Iterator[Finding]:
        """A warning for each facts file of a node that the inventory does not name."""
        for node, path in self._files.items():
            if node not in self._groups:
                message = f"{node} is not a node of the inventory"
                yield Finding(FACTS_OF_NOBODY, Place(path, 1), message, FACTS_OF_NOBODY.fix)
                yield from read_facts(path)[1]
