"""The keys of a block inside an object or values file: their values by dotted path, their places, and misspelt ones.

Which keys a block may have is told by the caller. Keys that are like none of those are nobody's business here: they may
belong to another release.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from hybridgpu.files.goscalar import GoValue
from hybridgpu.files.gotree import GoKey, GoMap, GoNode, GoScalar
from hybridgpu.files.manifest import Manifest
from hybridgpu.files.quoting import shown
from hybridgpu.model.finding import Finding, Place, Rule
from hybridgpu.model.spelling import is_slip, nearest

_DEPTH = 4


@dataclass(frozen=True, slots=True)
class Block:
    """Keys by their path below the block's root (`devicePlugin.config.name`). `prefix` is the root's own path."""

    manifest: Manifest
    keys: Mapping[str, tuple[GoKey, GoNode]]
    prefix: str = ""

    @property
    def places(self) -> dict[str, Place]:
        """Where each key stands."""
        return {path: self.manifest.place(key) for path, (key, _) in self.keys.items()}

    def place(self, path: str) -> Place:
        """Where a key stands; where the object begins if the key is not given."""
        found = self.keys.get(path)
        return self.manifest.place(found[0] if found else None)

    def node(self, path: str) -> GoNode | None:
        """The value at a path, or None."""
        found = self.keys.get(path)
        return found[1] if found else None

    def value(self, path: str) -> GoValue:
        """The scalar at a path; None where there is none, or null."""
        node = self.node(path)
        return node.value if isinstance(node, GoScalar) else None

    def text(self, path: str) -> str | None:
        """The scalar at a path as it was written; None where there is none, or null."""
        node = self.node(path)
        return node.text if isinstance(node, GoScalar) and node.value is not None else None

    def flag(self, path: str) -> bool | None:
        """The bool at a path, or None."""
        value = self.value(path)
        return value if isinstance(value, bool) else None

    def below(self, path: str) -> tuple[tuple[GoKey, GoNode], ...]:
        """The entries of the mapping at a path."""
        node = self.node(path)
        return node.entries if isinstance(node, GoMap) else ()

    def misspelt(self, rule: Rule, path: str, known: Iterable[str]) -> Iterator[Finding]:
        """A finding for each key of the mapping at `path` ("": the root) that is one of `known` but for a slip."""
        words = tuple(known)
        entries = self.below(path) if path else self._top()
        given = {key.name for key, _ in entries}
        where = ".".join(part for part in (self.prefix, path) if part)
        for key, _ in entries:
            near = None if key.name in words else nearest(key.name, [word for word in words if word not in given])
            if near and is_slip(key.name, near):
                message = f"the key {shown(key.name)} {f'under {where}' if where else 'at the top level'} is not known"
                yield Finding(rule, self.manifest.place(key), message, f"did you mean {near}?")

    def _top(self) -> tuple[tuple[GoKey, GoNode], ...]:
        return tuple(entry for path, entry in self.keys.items() if "." not in path)


def block_of(manifest: Manifest, root: GoNode | None, prefix: str = "") -> Block:
    """The keys of a mapping, four levels deep; of keys that hold a dot only those of the top count."""
    return Block(manifest, dict(_paths(root, "", _DEPTH)), prefix)


def _paths(node: GoNode | None, at: str, depth: int) -> Iterator[tuple[str, tuple[GoKey, GoNode]]]:
    if not isinstance(node, GoMap) or depth == 0:
        return
    for key, value in node.entries:
        path = f"{at}.{key.name}" if at else key.name
        yield path, (key, value)
        yield from _paths(value, path, depth - 1)
