"""The path of each node in a document, as a person names it: what a Go program's own words often leave out."""

from __future__ import annotations

from hybridgpu.files.gotree import GoKey, GoList, GoMap, GoNode, GoScalar
from hybridgpu.files.quoting import shown

_LONGEST = 160


class Paths:
    """The paths below a root (`sharing.timeSlicing.resources[0].replicas`); a node that aliases share has its last.

    On a stack of its own, and each node once: depth and aliases are whoever wrote the file's. Paths end where nobody
    would read them.
    """

    def __init__(self, root: GoNode | None) -> None:
        self._found: dict[int, str] = {}
        waiting: list[tuple[GoNode, str]] = [] if root is None else [(root, "")]
        while waiting:
            node, path = waiting.pop()
            if id(node) in self._found or len(path) > _LONGEST:
                continue
            self._found[id(node)] = path
            if isinstance(node, GoList):
                waiting += ((item, f"{path}[{number}]") for number, item in enumerate(node.items))
            elif isinstance(node, GoMap):
                for key, value in node.entries:
                    below = f"{path}.{key.name}" if path else key.name
                    self._found[id(key)] = below
                    waiting.append((value, below))

    def located(self, node: GoNode | GoKey, words: str) -> str:
        """The words, with the path and the value that they are about."""
        path = self._found.get(id(node), "")
        if not path or not path.isprintable() or len(path) > _LONGEST:
            return words
        return f"{words} ({path} is {shown(node.text)})" if isinstance(node, GoScalar) else f"{words} ({path})"
