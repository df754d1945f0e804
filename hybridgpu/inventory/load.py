"""From files to a Site: the inventory read, the facts of its nodes read and judged, and both compiled."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from hybridgpu.consumers.slurm.release import Release
from hybridgpu.inventory.compile import compile_nodes
from hybridgpu.inventory.entries import Inventory
from hybridgpu.inventory.read import read_inventory
from hybridgpu.inventory.shelf import FactsShelf
from hybridgpu.model.finding import Finding, Rule, Severity
from hybridgpu.model.sharing import Scheduler
from hybridgpu.model.site import NodeConfig, Site

VERSION_MISSING = Rule(
    "inventory-slurm-version-missing",
    Severity.ERROR,
    "What may be rendered for Slurm depends on its release, and the inventory names none.",
    "Set slurm.version to the release that `slurmd -V` prints, in quotes.",
    "docs/inventory.md",
)


@dataclass(frozen=True, slots=True)
class Loaded:
    """A Site, or None where a finding is an error; all findings, in the order they were made; and what was read."""

    site: Site | None
    findings: tuple[Finding, ...]
    inventory: Inventory | None = None


def load_site(
    path: str,
    facts: Mapping[str, str] | None = None,
    *,
    for_render: bool = False,
    release: Release | None = None,
    text: bytes | None = None,
) -> Loaded:
    """Reads the inventory at `path` and the facts files of its nodes (node name -> path).

    Raises FileNotFoundError where the inventory is not there. `for_render`: a Slurm version is demanded.
    `release`: judged by in place of the inventory's slurm.version. `text`: the inventory itself, and `path` is only
    what it is called.
    """
    reading = read_inventory(path, text, release=release)
    findings = list(reading.findings)
    inventory = reading.inventory
    if inventory is None:
        return Loaded(None, tuple(findings))
    if for_render:
        findings += _version_missing(inventory)
    shelf = FactsShelf(facts or {}, inventory)
    nodes: dict[str, NodeConfig] = {}
    for outcome in compile_nodes(inventory, shelf.facts_of if facts else None):
        if isinstance(outcome, Finding):
            findings.append(outcome)
        else:
            nodes[outcome.name] = outcome
    findings += [*shelf.findings, *shelf.strangers()]
    if any(finding.is_error for finding in findings):
        return Loaded(None, tuple(findings), inventory)
    cluster = inventory.slurm.cluster if inventory.slurm else None
    kubernetes = inventory.kubernetes.cluster if inventory.kubernetes else None
    site = Site(inventory.name, nodes, cluster, kubernetes, clients=inventory.device_clients)
    return Loaded(site, tuple(findings), inventory)


def _version_missing(inventory: Inventory) -> Iterator[Finding]:
    settings = inventory.slurm
    in_slurm = any(Scheduler.SLURM in group.schedulers for group in inventory.groups)
    if settings and not settings.version and in_slurm:
        yield Finding(VERSION_MISSING, settings.place, "slurm.version is not given", VERSION_MISSING.fix)
