"""Nodes of both schedulers on which the two believe the GPUs shared, or cut, in different ways."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from hybridgpu.check.cross.fence import Fence, fence
from hybridgpu.check.cross.groups import Groups
from hybridgpu.check.cross.kubecards import devices, is_split
from hybridgpu.check.cross.kubemode import Belief, Believing
from hybridgpu.check.cross.miglayout import asked_for
from hybridgpu.check.cross.pairs import Pair
from hybridgpu.check.cross.slurmnode import card, instances, modes
from hybridgpu.consumers.kubernetes.given import KubeFiles, MigFile
from hybridgpu.model.finding import Finding, Place, Related, Rule, Severity
from hybridgpu.model.labels import MIG_CONFIG, MIG_RESOURCE
from hybridgpu.model.naming import kubernetes_resource
from hybridgpu.model.sharing import Mode

MODE_DIFFERS = Rule(
    "site-mode-differs",
    Severity.ERROR,
    "Slurm and Kubernetes believe one node's cards cut, or served by MPS, in different ways: what one of them offers "
    "is not there, or its daemon locks the other one out.",
    "Give the node one mode: change the Gres= and gres.conf lines, or the config that Kubernetes chooses for it.",
    "k8s-device-plugin v0.20.0 (its MPS daemon sets EXCLUSIVE_PROCESS on every card); MIG user guide",
)
SHARING_DIFFERS = Rule(
    "site-sharing-differs",
    Severity.WARNING,
    "One scheduler gives a node's cards out whole, the other shares them out: whoever was promised a card of its own "
    "gets one that others may be on once the other side is open.",
    "Give the node one mode on both sides: shard in Slurm where Kubernetes has timeSlicing, neither of them elsewhere.",
    "k8s-device-plugin v0.20.0 README (time-slicing gives no exclusive access); slurm gres.html (shard)",
)
INSTANCES_DIFFER = Rule(
    "site-mig-instances-differ",
    Severity.ERROR,
    "Slurm's MIG instances are not the ones that Kubernetes has on the same cards: device files that gres.conf names "
    "are missing, or lead to another instance.",
    "Make gres.conf and the mig-parted layout agree, profile by profile.",
    "MIG user guide; S:src/interfaces/gres.c (a missing file is fatal for slurmd)",
)
INSTANCES_LEFT_OVER = Rule(
    "site-mig-instances-left-over",
    Severity.WARNING,
    "The layout that Kubernetes' mig-manager cuts has instances on the node's cards that Slurm does not name.",
    "Name them in gres.conf and Gres=, or take them out of the layout.",
    "MIG user guide",
)

_HARD = frozenset((Mode.MIG, Mode.MPS))
_CUT = frozenset((Mode.MIG,))


def judge_modes(pairs: Sequence[Pair], kube: KubeFiles) -> Iterator[Finding]:
    """Findings on every node whose two sides cannot both be true."""
    groups = Groups()
    believing = Believing(kube)
    for pair in pairs:
        offer = pair.slurm.offer
        if offer is None or not offer.gpus or pair.slurm.closed:
            continue
        if is_split(pair.slurm, pair.kube, pair.facts, kube.operands):
            continue  # other cards, which may be cut otherwise
        mine = modes(offer)
        closed = fence(pair.kube) is Fence.CLOSED
        told = believing.of(pair.kube)
        differing = [b for b in told if not mine & b.modes and (not closed or _counts_when_closed(mine, b))]
        if differing:
            _add(groups, pair, mine, differing)
        elif mine == _CUT:
            _compare_instances(groups, pair, believing.mig_files, closed)
    yield from groups.findings()


def _counts_when_closed(mine: frozenset[Mode], belief: Belief) -> bool:
    """Where Kubernetes offers nothing only what was chosen for the node counts, and only the cutting of the cards."""
    return belief.explicit and (mine == _CUT or belief.modes == _CUT)


def is_hard(mine: frozenset[Mode], theirs: frozenset[Mode]) -> bool:
    """Whether one of the sides must be wrong about the cards themselves, and not about turns only."""
    return mine <= _HARD or theirs <= _HARD


def _add(groups: Groups, pair: Pair, mine: frozenset[Mode], differing: Sequence[Belief]) -> None:
    hard = [belief for belief in differing if is_hard(mine, belief.modes)]
    belief = (hard or differing)[0]
    words = f"Slurm has {_named(mine)} (Gres={pair.slurm.gres}), and Kubernetes {_named(belief.modes)}: {belief.words}"
    related = (Related(belief.place, f"what Kubernetes believes of {pair.kube.name}"),)
    groups.add(MODE_DIFFERS if hard else SHARING_DIFFERS, pair.slurm.place, pair.slurm.name, words, related)


def _named(found: frozenset[Mode]) -> str:
    if found == frozenset(Mode) - _CUT:
        return "whole cards without MIG"
    return " or ".join(mode.value for mode in Mode if mode in found)


def _compare_instances(groups: Groups, pair: Pair, files: Sequence[MigFile], closed: bool) -> None:
    """Both sides have MIG: the instances, by the layout that the label chooses, else as the Node shows them."""
    offer = pair.slurm.offer
    counted = instances(offer) if offer else None
    if offer is None or counted is None:
        return
    mine: Counter[str] = Counter()
    for name, count in counted.items():
        mine[kubernetes_resource(name)] += count
    number = _cards(pair)
    theirs = asked_for(pair.kube, files, number or 1)
    if theirs is not None:
        # Whoever closes the plugin does not undo the cut. Of cards that nobody counts only the profiles are compared.
        place = pair.kube.label_places.get(MIG_CONFIG, pair.kube.place)
        if number or set(mine) != set(theirs):
            makes = "makes" if number else "makes on each card"
            _compare(groups, pair, (mine, theirs), place, f"{MIG_CONFIG}={pair.kube.labels[MIG_CONFIG]} {makes}")
        return
    theirs = Counter({name: n for name, n in devices(pair.kube).items() if name.startswith(MIG_RESOURCE)})
    if theirs and not closed:
        _compare(groups, pair, (mine, theirs), pair.kube.place, "Kubernetes offers")


def _cards(pair: Pair) -> int:
    """How many cards the node has: by its facts, by Slurm's device files, by what feature discovery says."""
    if pair.facts:
        return len(pair.facts.gpus)
    numbers = set(map(card, pair.slurm.offer.gpus if pair.slurm.offer else ())) - {None}
    return len(numbers) or len(pair.kube.cards.cards if pair.kube.cards else ())


def _compare(groups: Groups, pair: Pair, both: tuple[Counter[str], Counter[str]], place: Place, says: str) -> None:
    mine, theirs = both
    if mine == theirs:
        return
    words = f"Slurm has {_shown(mine)}, and {says} {_shown(theirs)} of the same cards"
    rule = INSTANCES_DIFFER if mine - theirs else INSTANCES_LEFT_OVER
    related = (Related(place, f"what Kubernetes has on {pair.kube.name}"),)
    groups.add(rule, pair.slurm.place, pair.slurm.name, words, related)


def _shown(counts: Counter[str]) -> str:
    short = {name.removeprefix(MIG_RESOURCE): count for name, count in sorted(counts.items())}
    return " + ".join(f"{count} x {name}" for name, count in short.items()) or "no instance"
