"""What each rendered file tells the person who reads it: the site, what is assumed, what is not promised."""

from __future__ import annotations

from collections.abc import Iterator

from hybridgpu.model.sharing import Mode
from hybridgpu.model.site import Site
from hybridgpu.render.slurm import TASK_PROLOG, hooks_wanted, slurm_nodes

_SHARERS = {
    Mode.TIME_SLICING: "shard: jobs on one GPU take turns; no memory limit, no fault isolation, no security boundary.",
    Mode.MPS: (
        "mps: jobs of one user share a daemon; limits are per client process and advisory; "
        "a fault of one client ends the others; no security boundary."
    ),
}


def gres_notes(site: Site) -> Iterator[str]:
    """For gres.conf."""
    yield from _about(site)
    modes = {config.body.sharing.mode for config in slurm_nodes(site)}
    yield from (note for mode, note in _SHARERS.items() if mode in modes)
    if any(config.body.assumed for config in slurm_nodes(site)):
        yield "assumed: some device files follow the driver's usual numbering; render with --facts before loading this."


def nodes_notes(site: Site) -> Iterator[str]:
    """For nodes.conf."""
    yield from _about(site)
    yield "Include this file from slurm.conf, on every node and controller alike."


def gpu_notes(site: Site) -> Iterator[str]:
    """For gpu.conf."""
    yield from _about(site)
    yield "Include this file from slurm.conf; the keys below must not stand there a second time."
    if site.slurm and site.slurm.hooks_enabled and hooks_wanted(site) and site.slurm.site.task_prolog:
        yield f"{TASK_PROLOG} runs the site's own task prolog after itself: {site.slurm.site.task_prolog}"


def cgroup_notes(site: Site) -> Iterator[str]:
    """For cgroup.conf."""
    yield from _about(site)
    yield "Confinement to the granted GPUs also needs, in the site's slurm.conf:"
    yield "TaskPlugin with task/cgroup, and ProctrackType=proctrack/cgroup."


def _about(site: Site) -> Iterator[str]:
    version = site.slurm.version if site.slurm else ""
    yield f"Site {site.name}, Slurm {version}."
