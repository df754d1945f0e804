"""What each rendered file tells the person who reads it: the site, what is assumed, what is not promised."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

from hybridgpu.model.sharing import Mode, Scheduler
from hybridgpu.model.site import Site
from hybridgpu.render.gres import instances_by_one_file
from hybridgpu.render.hostlist import fold_hosts
from hybridgpu.render.slurm import TASK_PROLOG, TASK_PROLOGS, gres_types, hooks_wanted, slurm_bodies, slurm_nodes

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
    bodies, types = slurm_bodies(site), gres_types(site)
    modes = {body.sharing.mode for body in bodies}
    yield from (note for mode, note in _SHARERS.items() if mode in modes)
    if any(instances_by_one_file(body, types) for body in bodies):
        yield "MIG: with mps or shard in GresTypes this Slurm takes each file of an instance for a GPU. So instances"
        yield "stand here by their compute instance's file alone, which keeps other jobs out as well as all three do."
    if any(body.assumed for body in bodies):
        yield "assumed: some device files follow the driver's usual numbering; render with --facts before loading this."


def nodes_notes(site: Site) -> Iterator[str]:
    """For nodes.conf."""
    yield from _about(site)
    yield "Include this file from slurm.conf, on every node and controller alike."
    yield from closed_notes(site)


def closed_notes(site: Site) -> Iterator[str]:
    """How to keep Slurm off the GPUs of Kubernetes by hand, until something does it."""
    nodes = closed_to_slurm(site)
    if nodes:
        yield f"Kubernetes owns GPUs of {fold_hosts(nodes)}."
        yield "Nothing in these files keeps Slurm off them. Close each of the nodes by:"
        yield RESERVATION


RESERVATION = (
    "  scontrol create reservation ReservationName=hybridgpu-NODE Nodes=NODE StartTime=now Duration=UNLIMITED "
    "Users=root Flags=MAINT,IGNORE_JOBS"
)
"""Measured on 22.05, 24.11 and 26.05: it survives reload and resume, and leaves other people's drains alone."""


def closed_to_slurm(site: Site) -> list[str]:
    """The nodes in Slurm where Kubernetes owns GPUs: all of them, or on a split node some."""
    return [config.name for config in slurm_nodes(site) if Scheduler.KUBERNETES in config.body.owners]


def gpu_notes(site: Site) -> Iterator[str]:
    """For gpu.conf."""
    yield from _about(site)
    yield "Include this file from slurm.conf; the keys below must not stand there a second time."
    if site.slurm and site.slurm.hooks_enabled and hooks_wanted(site) and (own := site.slurm.site.task_prolog):
        yield f"{TASK_PROLOG} runs what is in {TASK_PROLOGS}."
        path = PurePosixPath(own)
        if path != PurePosixPath(TASK_PROLOG) and PurePosixPath(TASK_PROLOGS) not in path.parents:
            yield "Link the site's own task prolog there, on every node:"
            yield f"  ln -s {own} {TASK_PROLOGS}/90-site"


def cgroup_notes(site: Site) -> Iterator[str]:
    """For cgroup.conf."""
    yield from _about(site)
    yield "Confinement to the granted GPUs also needs, in the site's slurm.conf:"
    yield "TaskPlugin with task/cgroup, and ProctrackType=proctrack/cgroup."


def _about(site: Site) -> Iterator[str]:
    version = site.slurm.version if site.slurm else ""
    yield f"Site {site.name}, Slurm {version}."
