"""The site's own words as Slurm would find them in its files, judged by Slurm's consumer before anything is rendered.

NodeName keys, raw lines of gres.conf and keys of cgroup.conf go into the rendered files as they are, and every node
reads the same ones: so each release in use judges all of them. What is found is told at the word's place in the
inventory. What hybridgpu writes itself is left out here; its proof is rendering's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from hybridgpu.consumers.slurm import consume, load
from hybridgpu.consumers.slurm.gresconf import judge_alone
from hybridgpu.consumers.slurm.release import Release
from hybridgpu.files.quoting import shown
from hybridgpu.files.yamltree import Mapping, Scalar
from hybridgpu.inventory.cores import completed
from hybridgpu.inventory.nodeentry import ReadEntry
from hybridgpu.inventory.nodekeys import OUR_GRES, NodeKeys, is_reserved
from hybridgpu.inventory.report import Marked, Report
from hybridgpu.model.finding import Finding, Place, Related, Severity
from hybridgpu.model.site import KUBERNETES_CARDS

_HEAD = ("ClusterName=c", "SlurmctldHost=c", "SelectType=select/cons_tres", "MaxNodeCount=65536")
"""Of a slurm.conf that is right. MaxNodeCount: there may be further nodes, which the raw lines are about."""


@dataclass(frozen=True, slots=True)
class Reader:
    """A release that reads the files; `who` runs it, empty for the cluster's own."""

    release: Release
    who: str = ""

    def told(self, what: str) -> str:
        """The end of a sentence about something that another release would take."""
        return f"; {self.who} runs {self.release} and reads the same {what}" if self.who else ""


@dataclass(slots=True)
class _Files:
    """Text of Slurm's files, and which place of the inventory each piece of it comes from."""

    lines: dict[str, list[str]] = field(default_factory=dict)
    origins: dict[tuple[str, int, int], tuple[Marked, str]] = field(default_factory=dict)

    def write(self, file: str, pieces: Sequence[tuple[str, Marked | None]], about: str = "") -> None:
        """A line made of pieces; `about` introduces what is found in it."""
        lines, column = self.lines.setdefault(file, []), 1
        for text, where in pieces:
            if where is not None:
                self.origins[file, len(lines) + 1, column] = (where, about)
            column += len(text) + 1
        lines.append(" ".join(text for text, _ in pieces))

    def texts(self) -> dict[str, str]:
        return {file: "\n".join([*lines, ""]) for file, lines in self.lines.items()}

    def origin(self, place: Place | None) -> tuple[Marked, str] | None:
        """Where the text at a place comes from: its piece, else its line's first; None for what is not the site's."""
        if place is None:
            return None
        key = (place.file, place.line, place.column)
        return self.origins.get(key) or self.origins.get((place.file, place.line, 1))


def readers(release: Release, entries: Sequence[ReadEntry]) -> tuple[Reader, ...]:
    """The releases that read the files: the cluster's, then those of classes that have nodes in Slurm."""
    hosts: dict[str, tuple[Release, list[str]]] = {}
    for entry in entries:
        if entry.in_slurm and entry.of_class and entry.where and entry.of_class.release != release:
            of_class = entry.of_class
            hosts.setdefault(of_class.entry.name, (of_class.release, []))[1].append(entry.where.text)
    found = {release.major: Reader(release)}
    for name, (own, lists) in hosts.items():
        found.setdefault(own.major, Reader(own, f"class {name} ({_cut(','.join(lists))})"))
    return tuple(found.values())


def judge_files(
    site: Mapping | None,
    entries: Sequence[ReadEntry],
    gres_lines: Sequence[Scalar],
    using: Sequence[Reader],
    report: Report,
) -> None:
    """Reports what a release in use finds in the site's words. `gres_lines` are the raw lines that are not refused."""
    files = _files(site, entries, gres_lines)
    loaded = load(files.texts())
    told: set[tuple[str, Place]] = set()
    for reader in using:
        found = (*consume(loaded, reader.release).findings, *judge_alone(loaded.gres or (), reader.release))
        for finding in found:
            origin = files.origin(finding.place)
            if origin is None or finding.place is None or finding.severity is Severity.INFO:
                continue
            where, about = origin
            place = report.place(where)
            if (finding.rule.id, place) not in told:
                told.add((finding.rule.id, place))
                message = f"{about}{finding.message}{reader.told(finding.place.file)}"
                report.take(replace(finding, place=place, message=message, related=_related(finding, files, report)))


def _related(finding: Finding, files: _Files, report: Report) -> tuple[Related, ...]:
    """Those of a finding's other places that are in the inventory."""
    origins = [(files.origin(related.place), related.message) for related in finding.related]
    return tuple(Related(report.place(origin[0]), message) for origin, message in origins if origin)


def _files(site: Mapping | None, entries: Sequence[ReadEntry], gres_lines: Sequence[Scalar]) -> _Files:
    files = _Files()
    for text in (*_HEAD, "Include gpu.conf", "Include nodes.conf"):
        files.write("slurm.conf", [(text, None)])
    names = site.scalars("gresTypes") if site else ()
    ours = tuple(name for name in OUR_GRES if name != KUBERNETES_CARDS)
    further = dict.fromkeys(name.text for name in names if not is_reserved(name.text))
    types = f"GresTypes={','.join([*ours, *further])}"
    files.write("gpu.conf", [(types, names[0] if names else None)])
    files.write("nodes.conf", [("", None)])
    seen: set[str] = set()
    for entry in entries:
        hosts = [host for host in dict.fromkeys(entry.hosts) if host not in seen] if entry.in_slurm else []
        if hosts and entry.where:
            files.write("nodes.conf", list(_node_line(hosts, entry.where, entry.keys)))
            seen.update(hosts)
    files.write("gres.conf", [("", None)])
    for line in gres_lines:
        files.write("gres.conf", [(line.text, line)], f"site.gres {shown(line.text)}: ")
    cgroup = site.mapping("cgroup") if site else None
    for key, value in cgroup.entries if cgroup else ():
        if isinstance(value, Scalar):
            files.write("cgroup.conf", [(f"{key.text}={value.text}", key)], "site.cgroup: ")
    return files


def _node_line(hosts: list[str], where: Scalar, keys: NodeKeys) -> Iterator[tuple[str, Marked | None]]:
    """The line of an entry with the site's own keys. A key that hybridgpu adds stands for those it follows from."""
    yield f"NodeName={','.join(hosts)}", where
    if keys.broken:
        return
    for key, value in completed(keys.parameters):
        yield f"{key}={value}", keys.values.get(key) or keys.values.get("CPUs") or where
    if keys.gres:
        yield f"Gres={keys.gres}", keys.values["Gres"]


def _cut(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."
