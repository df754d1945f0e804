"""A list of tolerations as records, wherever it stands, and whether one of them is for a taint."""

from __future__ import annotations

from hybridgpu.consumers.kubernetes.given import Taint
from hybridgpu.files.gotree import GoList, GoMap, GoNode, GoScalar
from hybridgpu.model.site import Toleration


def read_tolerations(node: GoNode | None) -> tuple[Toleration, ...] | None:
    """The entries of the list that are mappings; None where there is no list."""
    if not isinstance(node, GoList):
        return None
    return tuple(_toleration(item) for item in node.items if isinstance(item, GoMap))


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """As Kubernetes decides it (k8s.io/api core/v1 Toleration.ToleratesTaint)."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator == "Exists":
        return True
    return bool(toleration.key) and (toleration.value or "") == taint.value


def _toleration(entry: GoMap) -> Toleration:
    def word(key: str) -> str | None:
        node = entry.get(key)
        return node.text if isinstance(node, GoScalar) and node.value is not None else None

    return Toleration(word("key"), word("operator"), word("value"), word("effect"))
