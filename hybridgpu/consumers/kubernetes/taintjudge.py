"""Workloads that every Node with the GPUs they ask for keeps away by a taint: they pend for ever.

Only Nodes that are given count, and only taints that last: not those that Kubernetes sets and takes away by itself, nor
those with which a node is closed to Kubernetes for a while.
Source: kube-scheduler, TaintToleration; Kubernetes docs, ExtendedResourceToleration.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hybridgpu.consumers.kubernetes import askrules as rules
from hybridgpu.consumers.kubernetes.eligible import Eligible
from hybridgpu.consumers.kubernetes.given import Ask, KubeNode, Taint, Workload
from hybridgpu.consumers.kubernetes.tolerations import tolerates
from hybridgpu.files.quoting import listed, shown
from hybridgpu.model.finding import Finding, Place, Related
from hybridgpu.model.labels import OURS
from hybridgpu.model.site import Toleration
from hybridgpu.model.spelling import is_slip

_KEEPS_OFF = ("NoSchedule", "NoExecute")
_FOR_A_WHILE = (OURS, "node.kubernetes.io/", "node.cloudprovider.kubernetes.io/")
_MOST = 3


def judge_taints(workload: Workload, where: Eligible) -> Iterator[Finding]:
    """A finding for the first GPU of the workload that no Node lets it have."""
    for ask in workload.asks:
        offering = [
            node
            for node in (where.matching(workload) if ask.count != 0 and not workload.node_name else ())
            if (node.allocatable or {}).get(ask.resource)
        ]
        kept = {node.name: taint for node in offering if (taint := _keeps_off(node, workload.tolerations))}
        if offering and len(kept) == len(offering):
            yield _finding(ask, workload, offering, kept)
            return


def _keeps_off(node: KubeNode, tolerations: Sequence[Toleration]) -> Taint | None:
    """A taint of the node that lasts and that none of these is for; None where there is none, or it comes and goes."""
    keeping = [taint for taint in node.taints if taint.effect in _KEEPS_OFF]
    if any(taint.key.startswith(_FOR_A_WHILE) for taint in keeping):
        return None
    return next((taint for taint in keeping if not any(tolerates(each, taint) for each in tolerations)), None)


def _finding(ask: Ask, workload: Workload, offering: Sequence[KubeNode], kept: dict[str, Taint]) -> Finding:
    taint = kept[offering[0].name]
    names = listed([*list(kept)[:_MOST], *(["others"] if len(kept) > _MOST else [])])
    message = f"{ask.resource} is offered by {names} alone, whose taint {taint_text(taint)} the pods do not tolerate"
    place, hint = ask.place, f"add {{key: {taint.key}, operator: Exists, effect: {taint.effect}}} to the tolerations"
    near = _near(workload, taint)
    if near is not None:
        toleration, place = near
        message += f": {_why(toleration, taint)}"
    if taint.key == ask.resource:
        hint += ", unless the admission plugin ExtendedResourceToleration, which adds it, is on"
    related = (Related(taint.place, f"the taint of {offering[0].name}"),)
    return Finding(rules.NOT_TOLERATED, place, message, hint, related)


def _near(workload: Workload, taint: Taint) -> tuple[Toleration, Place] | None:
    """The toleration that is likely meant for the taint: of its key, or of nearly its key."""
    every = list(zip(workload.tolerations, workload.toleration_places, strict=True))
    same = [pair for pair in every if pair[0].key == taint.key]
    return next(iter(same or [pair for pair in every if pair[0].key and is_slip(pair[0].key, taint.key)]), None)


def _why(toleration: Toleration, taint: Taint) -> str:
    """What about the toleration misses the taint."""
    if toleration.key != taint.key:
        return f"its toleration is of {shown(toleration.key or '')}; did you mean {taint.key}?"
    if toleration.effect and toleration.effect != taint.effect:
        return f"its toleration is of the effect {toleration.effect}"
    if toleration.operator not in (None, "", "Equal"):
        return f"its toleration has the operator {shown(toleration.operator or '')}"
    return f"its toleration is of the value {shown(toleration.value or '')}"


def taint_text(taint: Taint) -> str:
    """A taint as kubectl writes it."""
    return f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"
