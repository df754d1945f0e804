"""Where in the inventory stands what ends up in a line of Slurm's files, so that a finding about it can point there."""

from __future__ import annotations

from collections.abc import Iterator

from hybridgpu.files.yamltree import Mapping, Scalar
from hybridgpu.inventory.report import Report
from hybridgpu.model.finding import Place


def site_places(block: Mapping | None, report: Report) -> dict[str, Place]:
    """`key=value` of gpu.conf and cgroup.conf, keys alone, and raw lines of gres.conf, in lower case -> their place."""
    site = block.mapping("site") if block else None
    return {text.lower(): report.place(where) for text, where in _named(site)} if site else {}


def _named(site: Mapping) -> Iterator[tuple[str, Scalar]]:
    for word, value in site.entries:
        yield word.text, word
        if isinstance(value, Scalar):
            yield f"{word.text}={value.text}", value
    for name in ("prolog", "epilog", "prologFlags", "gresTypes"):
        for item in site.scalars(name):
            yield f"{name}={item.text}", item
    for line in site.scalars("gres"):
        yield line.text, line
    cgroup = site.mapping("cgroup")
    for key, _ in cgroup.entries if cgroup else ():
        yield key.text, key
