"""Many files taken as one site: what each kind's judge says of them, together, and in the order of the files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hybridgpu.check.cross.site import cross_check
from hybridgpu.check.given import each_once, facts_files, unreadable
from hybridgpu.check.ignore import apply_ignores
from hybridgpu.check.limit import limited
from hybridgpu.check.live import installed_config, judge_live
from hybridgpu.check.rendering import unrendered
from hybridgpu.check.secrets import without_secrets
from hybridgpu.check.whose import findings_by_nodes
from hybridgpu.consumers import kubernetes, slurm
from hybridgpu.consumers.slurm import NEWEST, SlurmSide, detected_from
from hybridgpu.consumers.slurm.hooks import judge_hooks
from hybridgpu.consumers.slurm.release import Release
from hybridgpu.devices.nodeconfig import NodeWanted
from hybridgpu.files.kinds import KUBERNETES, SLURM, Input, Kind, inputs
from hybridgpu.inventory.facts import read_facts
from hybridgpu.inventory.hosts import fold
from hybridgpu.inventory.load import Loaded, load_site
from hybridgpu.model.facts import Facts
from hybridgpu.model.finding import Finding, Place, Related, Rule, Severity

NOTHING_KNOWN = Rule(
    "check-nothing-known",
    Severity.ERROR,
    "A file or folder was named in which there is nothing that hybridgpu can judge.",
    "Name an inventory, facts, Slurm's files, Kubernetes manifests or mig-parted files, or a folder that holds some.",
    "hybridgpu",
)
NODE_IN_TWO = Rule(
    "check-node-in-two-inventories",
    Severity.ERROR,
    "Two inventories say what one node must be.",
    "Name the node in one of them; a leftover copy belongs elsewhere.",
    "hybridgpu",
)

_JUDGED = SLURM | KUBERNETES | {Kind.INVENTORY, Kind.FACTS, Kind.UNREADABLE}


@dataclass(frozen=True, slots=True)
class Checked:
    """What was found, and the files that were judged."""

    findings: tuple[Finding, ...]
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Live:
    """The node that we are on: what it must be, and what its driver says of its cards."""

    wanted: NodeWanted
    facts: Facts


def check(paths: Sequence[str], release: Release | None = None, live: Live | None = None) -> Checked:
    """Judges the files at `paths` as one site, for this Slurm release where one is given.

    With `live` they are also held against the cards of this node, and paths that they name are looked at wherever they
    lie. Raises FileNotFoundError for a path that is not there.
    """
    found: list[Input] = []
    findings: list[Finding] = []
    for path in paths:
        here = list(inputs(path))
        judged = [file for file in here if file.kind in _JUDGED or _meant(file)]
        found += judged
        if not judged:
            message = f"{path} holds nothing that hybridgpu knows"
            findings.append(Finding(NOTHING_KNOWN, Place(path, 1), message, NOTHING_KNOWN.fix))
    found = each_once(found)
    findings += unreadable(found)
    facts, again = facts_files(found)
    loaded = [load_site(path, facts, release=release) for path in _inventories(found)]
    findings += again
    first: dict[str, str] = {}
    for inventory in loaded:
        findings += [*inventory.findings, *unrendered(inventory), *_in_two(inventory, first)]
    theirs = live is not None or any(file.kind in SLURM | KUBERNETES for file in found)
    told = {node: read_facts(path) for node, path in facts.items()} if theirs or not loaded else {}
    if not loaded:
        findings += [finding for _, wrong in told.values() for finding in wrong]
    if theirs:
        seen = {node: node_facts for node, (node_facts, _) in told.items() if node_facts is not None}
        findings += _schedulers(found, paths, seen, loaded, release, live)
    read = [file for file in found if file.kind is not Kind.UNREADABLE]
    kept = apply_ignores(without_secrets(dict.fromkeys(findings), read), read, _rules)
    return Checked(limited(kept), tuple(file.path for file in read))


def _rules() -> Iterator[str]:
    """The ids of all rules; asked for only where a comment names one, since RULES is made from this module too."""
    from hybridgpu.check.rules import RULES

    return (rule.id for rule in RULES)


def _meant(file: Input) -> bool:
    """Whether a file that looks like nothing is one that was named as an inventory: it may be a broken one."""
    named = file.kind is Kind.UNKNOWN and not file.root
    return named and (Path(file.path).name.startswith("inventory") or not Path(file.path).is_file())


def _inventories(found: Sequence[Input]) -> list[str]:
    return [i.path for i in found if i.kind in (Kind.INVENTORY, Kind.UNKNOWN)]


def _schedulers(
    found: Sequence[Input],
    paths: Sequence[str],
    facts: Mapping[str, Facts],
    loaded: Sequence[Loaded],
    release: Release | None,
    live: Live | None,
) -> Iterator[Finding]:
    """What Slurm's and Kubernetes' own files give, alone, together, and on this node's cards."""
    version = next((i.inventory.slurm.version for i in loaded if i.inventory and i.inventory.slurm), None)
    judging = release or (slurm.release(version) if version else None) or NEWEST
    seen = {**facts, live.wanted.node: live.facts} if live else facts
    trees, findings = slurm.gather(found, judging)
    yield from findings
    sides = [SlurmSide(tree, slurm.consume(tree.files, judging, detected_from(seen, judging))) for tree in trees]
    for side in sides:
        yield from findings_by_nodes(side.consumption)
        yield from judge_hooks(side, ["/"] if live else paths)
    kube, findings = kubernetes.gather(found)
    yield from findings
    yield from kubernetes.judge_configuration(kube)
    yield from kubernetes.judge_asks(kube)
    yield from cross_check(sides, kube, seen, loaded)
    if live:
        plugin = installed_config(live.wanted, kube)
        yield from judge_live(
            live.wanted, live.facts, next((s.consumption for s in sides if s.consumption.nodes), None), plugin
        )


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
