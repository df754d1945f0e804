"""The tolerations of NVIDIA's pods: what they have, what the site says they have, and ours, so that a closed node keeps
its operands. Both Helm charts and the ClusterPolicy replace the whole list, so the whole list is written.
"""

from __future__ import annotations

from collections.abc import Iterable

from hybridgpu.model.labels import CHART_TOLERATIONS, CLOSED
from hybridgpu.model.site import Toleration

OURS = {"key": CLOSED, "operator": "Exists"}

CHART = CHART_TOLERATIONS

OPERATOR = ({"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},)
"""The operator's `daemonsets.tolerations` (values.yaml of v26.3)."""

OPERATOR_NFD_WORKER = (
    {"key": "node-role.kubernetes.io/control-plane", "operator": "Equal", "value": "", "effect": "NoSchedule"},
    {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
)
"""The operator's `node-feature-discovery.worker.tolerations` (values.yaml of v26.3)."""

NFD_WORKER = (
    {"key": "node-role.kubernetes.io/master", "operator": "Equal", "value": "", "effect": "NoSchedule"},
    {"key": "nvidia.com/gpu", "operator": "Equal", "value": "present", "effect": "NoSchedule"},
)
"""The chart's `nfd.worker.tolerations` (values.yaml of 0.20.0)."""


def merged(theirs: Iterable[dict[str, str]], site: Iterable[Toleration]) -> list[dict[str, str]]:
    """The operands' own, the site's and ours, each once."""
    every = [*theirs, *(_fields(toleration) for toleration in site), OURS]
    return [toleration for position, toleration in enumerate(every) if toleration not in every[:position]]


def _fields(toleration: Toleration) -> dict[str, str]:
    fields = {
        "key": toleration.key,
        "operator": toleration.operator,
        "value": toleration.value,
        "effect": toleration.effect,
    }
    return {name: value for name, value in fields.items() if value is not None}
