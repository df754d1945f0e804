"""One finding for all the nodes of which one sentence is true, at the place of the first one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from hybridgpu.inventory.hosts import fold
from hybridgpu.model.finding import Finding, Place, Related, Rule

_Key = tuple[Rule, str, str, str]


@dataclass(slots=True)
class Groups:
    """Collects sentences with the nodes that they are about; nodes named in different files stay apart."""

    nodes: dict[_Key, list[str]] = field(default_factory=dict)
    first: dict[_Key, tuple[Place, tuple[Related, ...]]] = field(default_factory=dict)

    def add(
        self, rule: Rule, place: Place, node: str, words: str, related: tuple[Related, ...] = (), hint: str = ""
    ) -> None:
        """`words` follow the names of the nodes."""
        key = (rule, place.file, words, hint or rule.fix)
        self.nodes.setdefault(key, []).append(node)
        self.first.setdefault(key, (place, related))

    def findings(self) -> Iterator[Finding]:
        """The findings in the order in which their first nodes came."""
        for key, nodes in self.nodes.items():
            rule, _, words, hint = key
            place, related = self.first[key]
            yield Finding(rule, place, f"{fold(nodes)}: {words}", hint, related)
