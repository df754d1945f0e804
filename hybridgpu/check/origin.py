"""Findings about rendered text, told at the place of the inventory that it comes from: the text is nobody's file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from ClusterShell.NodeSet import NodeSet, NodeSetException

from hybridgpu.files.tree import Content
from hybridgpu.inventory.entries import Inventory
from hybridgpu.model.finding import Finding, Place

_SHOWN = 100
"""Characters of a rendered line that a message repeats."""


def at_origin(findings: Iterable[Finding], inventory: Inventory, files: Mapping[str, Content]) -> Iterator[Finding]:
    """The findings with places in the inventory; those with other places are left as they are."""
    texts: dict[str, list[str]] = {}
    entries: dict[str, Place] = {}
    for finding in findings:
        if finding.place is None or not finding.place.file.startswith(("slurm/", "kubernetes/")):
            yield finding
            continue
        if not entries:
            entries = {host: group.place for group in inventory.groups for host in group.hosts}
        line = _line(finding.place, files, texts)
        shown = line if len(line) <= _SHOWN else f"{line[:_SHOWN]}..."
        message = f"{finding.message}; rendered as `{shown}` in {finding.place.file}" if line else finding.message
        place = _origin(line, inventory, entries)
        # What is related is rendered text as well, and told by the message.
        yield replace(finding, place=place, message=message, related=())


def _line(place: Place, files: Mapping[str, Content], texts: dict[str, list[str]]) -> str:
    if place.file not in files:
        return ""
    if place.file not in texts:
        texts[place.file] = files[place.file]().decode().splitlines()
    lines = texts[place.file]
    return lines[place.line - 1] if place.line <= len(lines) else ""


def _origin(line: str, inventory: Inventory, entries: Mapping[str, Place]) -> Place:
    """The raw line or the setting of the site, or the first entry of the line's nodes, or the `slurm:` block."""
    slurm = inventory.slurm
    key, _, rest = line.partition("=")
    places = slurm.places if slurm else {}
    for text in (line.lower(), key.lower()):
        if text in places:
            return places[text]
    if key == "NodeName":
        try:
            first = next(iter(NodeSet(rest.split(maxsplit=1)[0])))
        except (NodeSetException, StopIteration, IndexError):
            first = ""
        if first in entries:
            return entries[first]
    return slurm.place if slurm else Place(inventory.file, 1)
