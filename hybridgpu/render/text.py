"""Records to text through the templates. The templates hold text, {{ }} and for; whatever decides is done before."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

from hybridgpu.model.site import Site
from hybridgpu.render import notes, slurm

if TYPE_CHECKING:
    from jinja2 import Environment


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    # Not HTML: escaping would spoil configuration files. What users write was judged when it was read.
    loader = PackageLoader("hybridgpu", "templates")
    return Environment(loader=loader, undefined=StrictUndefined, autoescape=False, trim_blocks=True)  # noqa: S701


def _fill(template: str, **values: object) -> bytes:
    return _environment().get_template(template).render(**values).strip("\n").encode() + b"\n"


def slurm_files(site: Site) -> Iterator[tuple[str, bytes]]:
    """Name and content of each file below `slurm/`; none where no node is in Slurm."""
    cluster = site.slurm
    if cluster is None or not slurm.slurm_nodes(site):
        return
    blocks = slurm.gres_blocks(site)
    yield "gres.conf", _fill("gres.conf.j2", notes=notes.gres_notes(site), blocks=blocks, site_lines=cluster.site.gres)
    yield "nodes.conf", _fill("nodes.conf.j2", notes=notes.nodes_notes(site), nodes=slurm.node_lines(site))
    settings = slurm.gpu_settings(site, cluster)
    yield "gpu.conf", _fill("gpu.conf.j2", notes=notes.gpu_notes(site), settings=settings)
    settings = slurm.cgroup_settings(site, cluster)
    yield "cgroup.conf", _fill("cgroup.conf.j2", notes=notes.cgroup_notes(site), settings=settings)
