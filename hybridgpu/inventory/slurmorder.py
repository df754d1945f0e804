"""In which order Slurm numbers a node's devices, and the Links that follow from it: records only.

Whoever detects decides. Without AutoDetect it is the order of Gres= and of the files, with gpu/nvml that of the Links.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import count

from hybridgpu.consumers.slurm import RELEASES, Release, links_of_card, links_of_instance
from hybridgpu.model.sharing import Scheduler
from hybridgpu.model.site import Device, SlurmNode


def found_by_nvml(slurm: SlurmNode | None) -> Release | None:
    """The release whose gpu/nvml plugin finds the node's devices; None where none does."""
    if slurm is None or slurm.autodetect not in (release := RELEASES[slurm.version]).autodetect_sees_mig:
        return None
    return release


def in_slurm_order(
    devices: Iterable[Device], owners: tuple[Scheduler, ...], slurm: SlurmNode | None
) -> tuple[Device, ...]:
    """The order Slurm will number the devices in: Slurm's own first, and within an owner as written or as detected.

    Without AutoDetect position follows the types of Gres=, which are in the order of their lowest device; with it the
    list is sorted by file, and by the place of -1 in the Links where the plugin gives any
    (S:src/interfaces/gres.c _merge_config; S:src/plugins/gres/gpu/gres_gpu.c).
    """
    ordered = sorted(devices, key=_file_order)
    if release := found_by_nvml(slurm):
        return tuple(sorted(_listed(ordered, len(owners), release), key=_link_order))
    if slurm is None or slurm.autodetect == "off":
        lowest: dict[tuple[Scheduler, str], int] = {}
        for position, device in enumerate(ordered):
            lowest.setdefault((owners[device.index], device.type), position)
        ordered.sort(key=lambda d: lowest[owners[d.index], d.type])
    split = len(set(owners)) > 1
    if split:
        ordered.sort(key=lambda d: owners[d.index] is not Scheduler.SLURM)
    mine = [d for d in ordered if not split or owners[d.index] is Scheduler.SLURM]
    return (*_linked(mine), *(replace(d, links=None) for d in ordered[len(mine) :]))


def _listed(devices: list[Device], cards: int, release: Release) -> Iterator[Device]:
    """The devices with the Links that gpu/nvml gives them: by index, and without facts as if there were no NVLinks."""
    instances = Counter(device.index for device in devices if device.profile)
    position = {index: count() for index in instances}
    for device in devices:
        if device.profile:
            links = links_of_instance(next(position[device.index]), instances[device.index], release)
            yield replace(device, links=links)
        else:
            yield replace(device, links=links_of_card(device.index, cards, device.links))


def _linked(devices: list[Device]) -> list[Device]:
    """The devices with their links in their own order: facts have them by PCI order, and Slurm by its position.

    None where a card is cut: an instance has no links, and a list that is longer than the devices makes the node
    INVALID (S:src/interfaces/gres.c _node_config_validate; slurm.conf's count is of instances then).
    """
    if all(d.links is None for d in devices):
        return devices
    whole = all(d.profile is None for d in devices)
    order = [d.index for d in devices]
    return [replace(d, links=tuple(d.links[i] for i in order) if whole and d.links else None) for d in devices]


def _file_order(device: Device) -> list[int]:
    """The numbers in the device files: Slurm sorts GPUs by file name, numbers by value."""
    return [int(file.rpartition("nvidia")[2].removeprefix("-cap")) for file in device.files]


def _link_order(device: Device) -> tuple[bool, int]:
    return device.links is None, device.links.index(-1) if device.links else -1
