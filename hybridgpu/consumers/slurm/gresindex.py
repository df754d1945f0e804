"""Which lines of gres.conf apply to which node. Nothing is judged but the lists of nodes themselves."""

from __future__ import annotations

from collections.abc import Sequence, Set

from hybridgpu.consumers.slurm.gresconf import NODES_UNKNOWN, NODES_UNREADABLE
from hybridgpu.consumers.slurm.hostlist import BadHostlist, expand, unclosed
from hybridgpu.consumers.slurm.hostsuffix import written_out
from hybridgpu.consumers.slurm.release import Release
from hybridgpu.consumers.slurm.verdict import Verdict
from hybridgpu.files.slurmlines import Pair, SlurmLine


class GresIndex:
    """The lines of gres.conf by node: grouped by the text of their NodeName, so that each text is expanded once."""

    def __init__(self, lines: Sequence[SlurmLine], known: Set[str] | None, release: Release, verdict: Verdict) -> None:
        """`known` are the nodes of slurm.conf; None where not all of them can be known."""
        self.known = known
        self.everywhere: list[tuple[int, SlurmLine]] = []
        self.groups: list[list[tuple[int, SlurmLine]]] = []
        self.of_node: dict[str, list[int]] = {}
        self.autodetect: Pair | None = None
        self.filed: set[str] = set()
        self.contents: dict[tuple[tuple[str, str], ...], int] = {}
        self.unreadable: dict[str, BadHostlist] = {}
        by_text: dict[str, int] = {}
        for at, line in enumerate(lines):
            key = line.pairs[0].key.lower() if line.pairs else ""
            named = line.get("name")
            if named and line.get("file", "files", "multiplefiles"):
                self.filed.add(named.value)
            if key == "autodetect":
                self.autodetect = line.pairs[0]
            elif key == "name":
                self.everywhere.append((at, line))
            elif key == "nodename":
                text = line.pairs[0].value
                if text not in by_text:
                    by_text[text] = len(self.groups)
                    self.groups.append([])
                    self._assign(text, line, release, verdict)
                self.groups[by_text[text]].append((at, line))
                if bad := self.unreadable.get(text):
                    verdict.note(NODES_UNREADABLE, line.place, f"NodeName={text}: {bad}", written_out(text))

    def _assign(self, text: str, line: SlurmLine, release: Release, verdict: Verdict) -> None:
        try:
            nodes = expand(text, release.hostlist_suffix, release.hostlist_unclosed)
        except BadHostlist as bad:
            self.unreadable[text] = bad
            return
        if release.hostlist_unclosed and (token := unclosed(text)):
            self.unreadable[text] = BadHostlist(f"'{token}' is not closed")
        if self.known is not None and nodes and self.known.isdisjoint(nodes):
            message = f"NodeName={text}: slurm.conf has no node of this name"
            verdict.note(NODES_UNKNOWN, line.pairs[0].place, message)
        group = len(self.groups) - 1
        for node in dict.fromkeys(nodes):
            self.of_node.setdefault(node, []).append(group)

    def lines(self, groups: tuple[int, ...]) -> list[SlurmLine]:
        """The lines that apply where these groups do, in file order."""
        mine = self.everywhere + [entry for group in groups for entry in self.groups[group]]
        return [line for _, line in sorted(mine, key=lambda entry: entry[0])]

    def content(self, line: SlurmLine) -> int:
        """A number that is the same for lines that say the same to a node: NodeName's value is not part of it."""
        starts_with_name = line.pairs[0].key.lower() == "name"
        text = tuple((p.key.lower(), p.value) for p in line.pairs[0 if starts_with_name else 1 :])
        return self.contents.setdefault(text if starts_with_name else (("", ""), *text), len(self.contents))
