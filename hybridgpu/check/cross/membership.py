"""GPU nodes that one scheduler's files name and the other's do not: forgotten, misspelt, or meant so."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from hybridgpu.check.cross.pairs import Pair
from hybridgpu.check.cross.slurmnode import SlurmNode
from hybridgpu.consumers.kubernetes.given import KubeNode
from hybridgpu.inventory.hosts import fold
from hybridgpu.model.finding import Finding, Place, Related, Rule, Severity
from hybridgpu.model.hostname import Directory, NearNames, family
from hybridgpu.model.sharing import Scheduler
from hybridgpu.model.site import NodeConfig

UNKNOWN_TO_OTHER = Rule(
    "site-node-unknown-to-other-side",
    Severity.WARNING,
    "A GPU node of each scheduler is unknown to the other, and the two names are nearly one: a name that is misspelt "
    "is another node to either, and nothing keeps the two in step there.",
    "Write the node's name alike on both sides, add it to the other, or keep its files apart.",
    "hybridgpu",
)
NO_COMMON_NODE = Rule(
    "site-no-common-node",
    Severity.INFO,
    "No GPU node of Slurm's files is among the Node objects: the two are taken for neighbours, and not compared.",
    "Give the files of one site; where the names differ, say kubernetesName in the inventory.",
    "hybridgpu",
)
OF_ONE_SIDE = Rule(
    "site-node-of-one-side",
    Severity.INFO,
    "GPU nodes are in one scheduler's files only, beside others that are in both: they are taken for its own.",
    "Nothing, where that is so; else write the name alike on both sides.",
    "hybridgpu",
)

_DOWN = ("future", "cloud", "external")


@dataclass(frozen=True, slots=True)
class _Lone:
    """A GPU node of one side that the other does not know."""

    name: str
    place: Place


def judge_membership(
    slurm: Sequence[SlurmNode],
    kube: Sequence[KubeNode],
    pairs: Sequence[Pair],
    configs: Directory[NodeConfig],
    *,
    complete: bool,
) -> Iterator[Finding]:
    """Findings on the GPU nodes of the one side that the other lacks. `complete`: no NodeName line was left out."""
    here, there = list(_of_slurm(slurm, pairs, configs)), list(_of_kubernetes(kube, slurm, pairs, configs))
    if not any(node.has_gpus for node in slurm) or not any(node.has_gpus for node in kube):
        return
    near = list(_near(here, there))
    yield from (_misspelt(one, other) for one, other in near)
    if not pairs:
        if here and there and not near and complete:
            message = f"Slurm's {_names(here)} and Kubernetes' {_names(there)} have no node in common"
            yield Finding(NO_COMMON_NODE, here[0].place, message, NO_COMMON_NODE.fix)
        return
    told = {lone.name for pair in near for lone in pair}
    mine = [lone for lone in here if lone.name not in told]
    theirs = [lone for lone in there if lone.name not in told]
    # One Node object beside many is a sample, not a list of the cluster.
    if len(kube) > 1 or len(slurm) <= 1:
        yield from _unknown("Kubernetes", mine, theirs)
    if complete:
        yield from _unknown("Slurm", theirs, mine)


def _of_slurm(slurm: Sequence[SlurmNode], pairs: Sequence[Pair], configs: Directory[NodeConfig]) -> Iterator[_Lone]:
    known = {id(pair.slurm) for pair in pairs}
    for node in slurm:
        passing = (node.record.text("state") or "").lower().startswith(_DOWN)
        if node.has_gpus and id(node) not in known and not passing and _in_both(configs.find(node.names)):
            yield _Lone(node.name, node.place)


def _of_kubernetes(
    kube: Sequence[KubeNode], slurm: Sequence[SlurmNode], pairs: Sequence[Pair], configs: Directory[NodeConfig]
) -> Iterator[_Lone]:
    known = {id(pair.kube) for pair in pairs}
    for node in kube:
        if node.has_gpus and id(node) not in known and slurm and _in_both(configs.find(node.host_names)):
            yield _Lone(node.name, node.place)


def _in_both(config: NodeConfig | None) -> bool:
    """Whether the node may be meant for both: an inventory that names one scheduler for it has answered that."""
    return config is None or set(Scheduler) <= set(config.body.schedulers)


def _near(here: Sequence[_Lone], there: Sequence[_Lone]) -> Iterator[tuple[_Lone, _Lone]]:
    names, places = NearNames(), {lone.name: lone for lone in here}
    for lone in here:
        names.add(lone.name)
    for other in there:
        if found := names.near(other.name):
            yield places[found], other


def _misspelt(one: _Lone, other: _Lone) -> Finding:
    message = f"Slurm calls it {one.name} and Kubernetes {other.name}, or these are two nodes that each side lacks"
    hint = f"did you mean {other.name}, or {one.name}? {UNKNOWN_TO_OTHER.fix}"
    return Finding(UNKNOWN_TO_OTHER, one.place, message, hint, (Related(other.place, f"the Node {other.name}"),))


def _unknown(side: str, lone: Sequence[_Lone], others: Sequence[_Lone]) -> Iterator[Finding]:
    """Nodes that `side` lacks. As many of like names that only it has may well be meant: numbers that are off."""
    mine, theirs = (Counter(family(one.name) for one in ones) for ones in (lone, others))
    by_file: dict[tuple[str, Rule], list[_Lone]] = {}
    for one in lone:
        kind = family(one.name)
        rule = UNKNOWN_TO_OTHER if mine[kind] == theirs[kind] else OF_ONE_SIDE
        by_file.setdefault((one.place.file, rule), []).append(one)
    files = "the Node objects do" if side == "Kubernetes" else "slurm.conf does"
    for (_, rule), ones in by_file.items():
        message = f"{_names(ones)}: {files} not have {'it' if len(ones) == 1 else 'them'}, unlike other GPU nodes"
        yield Finding(rule, ones[0].place, message, rule.fix)


def _names(lone: Iterable[_Lone]) -> str:
    return fold(one.name for one in lone)
