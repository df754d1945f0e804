"""Whether Kubernetes may start GPU work on a node, as far as its Node object shows.

Source: run on Kubernetes 1.36 (a pod that is bound by nodeName is admitted in spite of a NoSchedule taint; with
allocatable 0 it is refused).
"""

from __future__ import annotations

from enum import Enum

from hybridgpu.consumers.kubernetes.given import KubeNode, Taint
from hybridgpu.model.finding import Place
from hybridgpu.model.labels import CLOSED, DEPLOY_OPERANDS, DEPLOY_PLUGIN

_TOLERATED = frozenset(("nvidia.com/gpu",))
"""Taints that keep pods without GPUs away: whoever asks for a GPU tolerates them."""

_PLUGIN_OFF = (DEPLOY_PLUGIN, DEPLOY_OPERANDS)


class Fence(Enum):
    """OPEN: pods are started; HELD: a taint or cordon keeps off the scheduler alone; CLOSED: nothing is offered."""

    OPEN = "open"
    HELD = "held"
    CLOSED = "closed"


def fence(node: KubeNode) -> Fence:
    """How far the node is closed to GPU pods."""
    if not node.offers or any(node.labels.get(label) == "false" for label in _PLUGIN_OFF):
        return Fence.CLOSED
    held = node.unschedulable or any(holds(taint) for taint in node.taints)
    if node.allocatable is None:
        return Fence.CLOSED if held or CLOSED in node.labels else Fence.OPEN
    return Fence.HELD if held else Fence.OPEN


def holds(taint: Taint) -> bool:
    """Whether the taint keeps GPU pods off that do not name it."""
    return taint.effect in ("NoSchedule", "NoExecute") and taint.key not in _TOLERATED


def held_by(node: KubeNode) -> tuple[str, Place]:
    """What holds the scheduler off, and where that stands."""
    for taint in node.taints:
        if holds(taint):
            value = f"={taint.value}" if taint.value else ""
            return f"the taint {taint.key}{value}:{taint.effect}", taint.place
    return "spec.unschedulable", node.place


def offered(node: KubeNode) -> str:
    """What it offers, for a message: `nvidia.com/gpu: 8`."""
    shown = [f"{name}: {count}" for name, count in sorted((node.allocatable or {}).items()) if count]
    return ", ".join(shown) or "its GPUs, as its labels say"
