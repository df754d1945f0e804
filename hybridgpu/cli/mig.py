"""`hybridgpu mig`: what MIG can cut from a GPU model, and what others call it. Offline: no card is looked at."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import click

from hybridgpu.check.migmodel import model_with_mig
from hybridgpu.cli import say
from hybridgpu.cli.options import output_option
from hybridgpu.cli.table import table
from hybridgpu.model.catalogue import models, unconfirmed
from hybridgpu.model.geometry import Layout, layouts, leftover
from hybridgpu.model.gpu import GpuModel, Profile
from hybridgpu.model.naming import kubernetes_resource, slurm_type

_output = output_option("text", "json")


@click.group()
def command() -> None:
    """Say what MIG can cut from a GPU model: its profiles, and every layout a card can hold."""


@command.command()
@click.argument("model", required=False)
@_output
@click.option("--all", "everything", is_flag=True, help="Without MODEL: list the models without MIG, too.")
def profiles(model: str | None, output: str, everything: bool) -> None:
    """Print the profiles of MODEL: slices, places, counts, and the names in Slurm and Kubernetes.

    MODEL is a name as the driver gives it, an alias or a PCI id. Without MODEL, list the models that have MIG.
    """
    if model is None:
        listed = [gpu for gpu in models() if gpu.has_mig or everything]
        as_json = output == "json"
        click.echo(_json({"models": [_model_record(m) for m in listed]}) if as_json else _models_text(listed), nl=False)
        return
    gpu = model_with_mig(model)
    if output == "json":
        record = {**_model_record(gpu), "profiles": [_profile_record(gpu, p) for p in gpu.profiles]}
        click.echo(_json(record), nl=False)
    else:
        click.echo(_profiles_text(gpu), nl=False)
    _tell_notes(gpu, [])


@command.command(name="layouts")
@click.argument("model")
@_output
@click.option("--all", "everything", is_flag=True, help="Include profiles with +me, -me, +gfx and +me.all.")
def layouts_(model: str, output: str, everything: bool) -> None:
    """Print every layout of MODEL to which nothing can be added, with its places and what it leaves unused."""
    gpu = model_with_mig(model)
    found = layouts(gpu, attributes=everything)
    if output == "json":
        click.echo(_json({"model": gpu.name, "layouts": [_layout_record(gpu, one) for one in found]}), nl=False)
    else:
        click.echo(_layouts_text(gpu, found), nl=False)
    _tell_notes(gpu, [profile.name for profile in gpu.profiles] if everything else [])


def _tell_notes(model: GpuModel, together: Sequence[str]) -> None:
    told = unconfirmed(model, together)
    if told:
        say(f"note: {told}")
    if model.confirmed and model.notes:
        say(f"note: {model.name}: {model.notes}")


def _model_record(model: GpuModel) -> dict[str, Any]:
    return {
        "model": model.name,
        "driver_name": model.driver_name,
        "memory_gib": model.memory_gib,
        "compute_capability": ".".join(map(str, model.compute_capability)),
        "mig": model.has_mig,
        "compute_slices": model.compute_slices,
        "memory_slices": model.slices,
        "min_driver": model.min_driver,
        "aliases": list(model.aliases),
        "pci_ids": list(model.pci_ids),
        "slurm_type": slurm_type(model),
        "confirmed": model.confirmed,
        "notes": model.notes,
        "sources": list(model.sources),
    }


def _profile_record(model: GpuModel, profile: Profile) -> dict[str, Any]:
    return {
        "profile": profile.name,
        "attribute": profile.attribute,
        "compute_slices": profile.compute,
        "memory_slices": profile.size,
        "starts": list(profile.starts),
        "max_count": profile.max_count,
        "smi_id": profile.smi_id,
        "min_driver": profile.min_driver,
        "confirmed": profile.confirmed,
        "slurm_type": slurm_type(model, profile.name),
        "kubernetes_resource": kubernetes_resource(profile.name),
    }


def _layout_record(model: GpuModel, layout: Layout) -> dict[str, Any]:
    left = leftover(model, layout.instances)
    return {
        "profiles": layout.profiles,
        "placements": [
            {"profile": i.profile.name, "start": i.placement.start, "size": i.placement.size} for i in layout.instances
        ],
        "unused": {"compute_slices": left.compute, "memory_slices": list(left.memory)},
    }


def _models_text(listed: Sequence[GpuModel]) -> str:
    rows = [
        (m.name, f"{m.memory_gib} GB", f"{m.compute_slices} instances" if m.has_mig else "-", ", ".join(m.aliases))
        for m in listed
    ]
    return table(("MODEL", "MEMORY", "MIG, AT MOST", "ALSO"), rows)


def _profiles_text(model: GpuModel) -> str:
    rows = [
        (
            p.name,
            f"{p.compute}/{model.compute_slices}",
            f"{p.size}/{model.slices}",
            str(p.max_count),
            "-" if p.smi_id is None else str(p.smi_id),
            ",".join(map(str, p.starts)),
            slurm_type(model, p.name),
            kubernetes_resource(p.name),
            p.min_driver or "",
        )
        for p in model.profiles
    ]
    heads = ("PROFILE", "COMPUTE", "MEMORY", "MAX", "ID", "STARTS", "SLURM TYPE", "KUBERNETES RESOURCE", "DRIVER FROM")
    driver = f", MIG from driver {model.min_driver}" if model.min_driver else ""
    title = (
        f"{model.name}: {model.memory_gib} GB, {model.compute_slices} compute and {model.slices} memory slices{driver}"
    )
    return f"{title}\n\n{table(heads, rows)}"


def _layouts_text(model: GpuModel, found: Sequence[Layout]) -> str:
    rows = [
        (
            " + ".join(f"{count} x {name}" for name, count in layout.profiles.items()),
            " ".join(f"{i.profile.name}@{i.placement.start}" for i in layout.instances),
            _unused(model, layout),
        )
        for layout in found
    ]
    title = f"{model.name}: {len(rows)} layouts to which nothing can be added (PROFILE@START, in the order of creation)"
    return f"{title}\n\n{table(('LAYOUT', 'PLACES', 'UNUSED'), rows)}"


def _unused(model: GpuModel, layout: Layout) -> str:
    left = leftover(model, layout.instances)
    parts = []
    if left.compute:
        parts.append(f"{left.compute} compute")
    if left.memory:
        parts.append(f"memory {','.join(map(str, left.memory))}")
    return "; ".join(parts) or "-"


def _json(data: object) -> str:
    return json.dumps(data, indent=2) + "\n"
