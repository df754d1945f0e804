"""A list of tolerations as records, wherever it stands. Whether they are enough is not known here."""

from __future__ import annotations

from hybridgpu.consumers.kubernetes.given import Toleration
from hybridgpu.files.gotree import GoList, GoMap, GoNode, GoScalar


def read_tolerations(node: GoNode | None) -> tuple[Toleration, ...] | None:
    """The entries of the list that are mappings; None where there is no list."""
    if not isinstance(node, GoList):
        return None
    return tuple(_toleration(item) for item in node.items if isinstance(item, GoMap))


def _toleration(entry: GoMap) -> Toleration:
    def word(key: str) -> str | None:
        node = entry.get(key)
        return node.text if isinstance(node, GoScalar) and node.value is not None else None

    return Toleration(word("key"), word("operator"), word("value"), word("effect"))
