"""Taints of GPU nodes, ours above all, that NVIDIA's own pods do not tolerate: they are not started there again.

Source: run on Kubernetes 1.36 (with the taint on a node a deleted plugin pod was not created again); gpu-operator
v26.3 controllers/object_controls.go (daemonsets.tolerations replaces the operands' own list where it is not empty).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from hybridgpu.check.cross.groups import Groups
from hybridgpu.check.cross.pairs import Pair
from hybridgpu.consumers.kubernetes.given import KubeFiles, KubeNode, Taint
from hybridgpu.consumers.kubernetes.tolerations import tolerates
from hybridgpu.inventory.load import Loaded
from hybridgpu.model.finding import Finding, Place, Related, Rule, Severity
from hybridgpu.model.labels import CLOSED, DEPLOY_OPERANDS, OURS
from hybridgpu.model.site import Toleration
from hybridgpu.render.kubernetes.tolerations import CHART, OPERATOR

NOT_TOLERATED = Rule(
    "site-taint-not-tolerated",
    Severity.WARNING,
    "A GPU node has a taint that NVIDIA's pods do not tolerate: once such a pod is gone it does not come back, and the "
    "node offers no GPU, without an error anywhere.",
    "Add the toleration to the list that the operands have (it replaces theirs, so name nvidia.com/gpu too).",
    "run on Kubernetes 1.36; gpu-operator v26.3 controllers/object_controls.go",
)
FENCE_NOT_TOLERATED = Rule(
    "site-fence-not-tolerated",
    Severity.WARNING,
    "Nodes that go from one scheduler to the other get the taint hybridgpu.io/closed, which NVIDIA's pods do not "
    "tolerate: the device plugin, feature discovery and the rest do not come back on them.",
    "Add {key: hybridgpu.io/closed, operator: Exists} to the tolerations, beside those that are there.",
    "run on Kubernetes 1.36",
)

_CLOSED = Taint(CLOSED, "", "NoSchedule", Place("", 1))
_BY_KUBERNETES = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/", "node-role.kubernetes.io/")
"""Taints that the DaemonSet controller tolerates by itself, or that stand on no node for work."""


@dataclass(frozen=True, slots=True)
class Tolerating:
    """Who tolerates what: a policy, a chart, an operand."""

    title: str
    place: Place
    tolerations: tuple[Toleration, ...]
    selector: Mapping[str, str]


def judge_tolerations(kube: KubeFiles, pairs: Sequence[Pair], inventories: Sequence[Loaded]) -> Iterator[Finding]:
    """Findings on the taints of GPU nodes, and on our own taint where an inventory says that we will set it.

    A closed Node may show nothing of its GPUs: then Slurm's line of the same host tells.
    """
    pods = list(_pods(kube))
    told: set[Place] = set()
    groups = Groups()
    in_slurm = {id(pair.kube) for pair in pairs if pair.slurm.has_gpus}
    wanted = (node for node in kube.nodes if node.labels.get(DEPLOY_OPERANDS) != "false")
    for node in (node for node in wanted if node.has_gpus or id(node) in in_slurm):
        for taint in (taint for taint in node.taints if _matters(taint, node)):
            for who in (who for who in pods if node.selected_by(who.selector)):
                if not _tolerate(who.tolerations, taint):
                    words = f"{who.title} does not tolerate the taint {_shown(taint)}"
                    told.update([who.place] if taint.key == CLOSED else [])
                    related = (Related(taint.place, f"the taint of {node.name}"),)
                    groups.add(NOT_TOLERATED, who.place, node.name, words, related, f"tolerate {taint.key}")
    yield from groups.findings()
    both = _in_both(inventories)
    for who in pods:
        if both and who.place not in told and not _tolerate(who.tolerations, _CLOSED):
            message = f"{who.title} does not tolerate {CLOSED}, and {both[0]} has nodes in both schedulers"
            related = (Related(both[1], "a node in both"),)
            yield Finding(FENCE_NOT_TOLERATED, who.place, message, FENCE_NOT_TOLERATED.fix, related)


def _tolerate(tolerations: Iterable[Toleration], taint: Taint) -> bool:
    return any(tolerates(toleration, taint) for toleration in tolerations)


def _pods(kube: KubeFiles) -> Iterator[Tolerating]:
    """Whoever starts NVIDIA's pods. Beside a policy that tolerates our taint (a patch) the others are as good as it."""
    operators = _defaults(OPERATOR)
    patched = [policy for policy in kube.policies if _tolerate(policy.tolerations or (), _CLOSED)]
    for policy in patched or kube.policies:
        place = policy.places.get("daemonsets.tolerations", policy.place)
        yield Tolerating(policy.title, place, policy.tolerations or operators, {})
    for chart in kube.charts:
        if chart.plugin or chart.gfd:
            own = _defaults(CHART) if chart.tolerations is None else chart.tolerations
            yield Tolerating(chart.title, chart.places.get("tolerations", chart.place), own, chart.selector)
    for operand in kube.operands:
        yield Tolerating(operand.title, operand.place, operand.tolerations, operand.selector)


def _defaults(entries: Iterable[dict[str, str]]) -> tuple[Toleration, ...]:
    return tuple(Toleration(e.get("key"), e.get("operator"), e.get("value"), e.get("effect")) for e in entries)


def _matters(taint: Taint, node: KubeNode) -> bool:
    """Ours always; another one where the node offers GPUs in spite of it: else it may be what closes the node."""
    if taint.effect not in ("NoSchedule", "NoExecute"):
        return False
    if taint.key.startswith(OURS):
        return True
    foreign = not taint.key.startswith(_BY_KUBERNETES)
    return foreign and bool(node.allocatable and any(node.allocatable.values()))


def _shown(taint: Taint) -> str:
    return f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"


def _in_both(inventories: Sequence[Loaded]) -> tuple[str, Place] | None:
    """An inventory with nodes that both schedulers know, and where the first of them stand."""
    for loaded in inventories:
        for group in loaded.inventory.groups if loaded.inventory else ():
            if group.in_both and loaded.inventory:
                return loaded.inventory.file, group.place
    return None
