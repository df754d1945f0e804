"""What one node's GPUs look like in Slurm's two files: the Gres= value and the lines of gres.conf.

Works on a NodeBody, so once for all equal nodes. Decides nothing about refusal: what Slurm makes of the text is
consumers' business, and the proof's.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import groupby

from hybridgpu.consumers.slurm import RELEASES
from hybridgpu.consumers.slurm.nodegres import SHARED
from hybridgpu.model.sharing import Mode, Scheduler
from hybridgpu.model.site import KUBERNETES_CARDS, Device, NodeBody
from hybridgpu.render.hostlist import fold_device

_MPS_PER_GPU = 100
_ALL_AT_ONCE = "all_sharing"
"""Else Slurm shares one GPU of a node at a time, while the others stay idle or whole: the default of mps, and of it
alone (gres.conf.5 one_sharing; run on 22.05, 24.11, 26.05)."""


def shares_per_gpu(body: NodeBody) -> tuple[str, int] | None:
    """The shared GRES of this node and how many units of it each GPU holds; None where GPUs are not shared."""
    if body.sharing.mode is Mode.MPS:
        return "mps", _MPS_PER_GPU
    if body.sharing.mode is Mode.TIME_SLICING and body.sharing.replicas:
        return "shard", body.sharing.replicas
    return None


def gres_value(body: NodeBody) -> str:
    """The Gres= value: types in the order of their lowest device, with counts; then shares, the site's own, ours."""
    counts: dict[str, int] = {}
    for device in body.slurm_devices:
        counts[device.type] = counts.get(device.type, 0) + 1
    parts = [f"gpu:{name}:{count}" for name, count in counts.items()]
    if shares := shares_per_gpu(body):
        name, each = shares
        parts.append(f"{name}:{each * len(body.slurm_devices)}")
    if body.slurm and body.slurm.gres:
        parts.append(body.slurm.gres)
    if cards := _kubernetes_minors(body):
        parts.append(f"{KUBERNETES_CARDS}:{len(cards)}")
    return ",".join(parts)


def written_files(device: Device, body: NodeBody, gres_types: Collection[str]) -> tuple[str, ...]:
    """The device files that gres.conf names for a device: all of them, or an instance's last one alone."""
    return device.files[-1:] if instances_by_one_file(body, gres_types) else device.files


def instances_by_one_file(body: NodeBody, gres_types: Collection[str]) -> bool:
    """Whether MIG instances stand in gres.conf by their compute instance's file alone.

    So on a release that takes the three files of an instance for three GPUs once GresTypes holds mps or shard. The one
    file keeps other jobs out as well as all three do: nobody opens an instance without it.
    """
    if body.slurm is None or not RELEASES[body.slurm.version].splits_mig:
        return False
    return any(name in gres_types for name in SHARED) and any(device.profile for device in body.slurm_devices)


def gres_lines(body: NodeBody, gres_types: Collection[str]) -> tuple[str, ...]:
    """The node's lines of gres.conf without their NodeName=, in the order Slurm must read them."""
    return tuple(_lines(body, gres_types))


def _lines(body: NodeBody, gres_types: Collection[str]) -> Iterator[str]:
    autodetect = body.slurm.autodetect if body.slurm else "off"
    yield f"AutoDetect={autodetect}"
    if autodetect == "off":
        yield from _device_lines(body, gres_types)
    if shares := shares_per_gpu(body):
        name, each = shares
        flags = f" Flags={_ALL_AT_ONCE}" if name == "mps" else ""
        for device in body.slurm_devices:
            yield f"Name={name} Count={each} File={device.files[0]}{flags}"
    if cards := _kubernetes_minors(body):
        yield f"Name={KUBERNETES_CARDS} File={fold_device(cards)}"


def _device_lines(body: NodeBody, gres_types: Collection[str]) -> Iterator[str]:
    for (name, cores, links, whole), run in groupby(
        body.slurm_devices, lambda d: (d.type, d.cores, d.links, d.profile is None)
    ):
        suffix = f" Cores={cores}" if cores else ""
        if whole:
            suffix += f" Links={','.join(map(str, links))}" if links else ""
            yield f"Name=gpu Type={name} File={fold_device([device.minor for device in run])}{suffix}"
            continue
        for device in run:
            files = written_files(device, body, gres_types)
            key = "MultipleFiles" if len(files) > 1 else "File"
            yield f"Name=gpu Type={name} {key}={','.join(files)}{suffix}"


def _kubernetes_minors(body: NodeBody) -> list[int]:
    if not body.split:
        return []
    return sorted({d.minor for d in body.devices if body.owners[d.index] is Scheduler.KUBERNETES})
