"""Which devices a task has: what CUDA_VISIBLE_DEVICES means where Slurm set it, and what was lost where it did not.

A number in it is Slurm's own, or, with ConstrainDevices, a position among the devices that the task's cgroup lets it
open: in the order of Slurm's numbers, of the step, or of the task itself with --gpus-per-task and --gpu-bind
(S:src/interfaces/gres.c _get_usable_gres, bit_consolidate). Both are positions in what the task can open. UUIDs stay
as they are. A binding is never widened to the job's devices.
"""

from __future__ import annotations

import os
import stat

from hybridgpu.hooks.environment import NOTHING_VISIBLE, number
from hybridgpu.mps.trouble import Trouble

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from hybridgpu.mps.devicemap import Device

OPEN, DENIED, MISSING = "open", "denied", "missing"


class Entry:
    """A device that a task has: `uuid` for CUDA_VISIBLE_DEVICES, `device` where the DeviceMap has it."""

    __slots__ = ("device", "uuid")

    def __init__(self, uuid: str, device: Device) -> None:
        self.uuid, self.device = uuid, device


def access(path: str) -> str:
    """OPEN, DENIED or MISSING, for this process: device cgroups answer access(2), and so nothing is opened.

    An open of a card wakes it; and stat(2), which no cgroup denies, tells a denied file from one that is not there.
    """
    try:
        seen = os.stat(path)
    except OSError:
        return MISSING
    if not stat.S_ISCHR(seen.st_mode):
        return MISSING
    return OPEN if os.access(path, os.R_OK) else DENIED


def given(text: str | None) -> tuple[str, ...]:
    """The entries of a CUDA_VISIBLE_DEVICES; none where it shows no device."""
    return () if text is None or text in NOTHING_VISIBLE else tuple(part.strip() for part in text.split(","))


def are_uuids(entries: tuple[str, ...]) -> bool:
    """Whether nothing has to be mapped."""
    return all(entry.startswith(("GPU-", "MIG-")) for entry in entries)


def mapped(
    entries: tuple[str, ...],
    job: tuple[int, ...],
    devices: Mapping[int, Device],
    probe: Callable[[str], str] = access,
) -> list[Entry]:
    """The devices that `entries` name, in their order, for a task of a job whose prolog was told Slurm's numbers `job`.

    `devices`: all of this node, by Slurm's number. A prolog is told of one type of GPU only, where its job has several
    (run on 22.05, 24.11 and 26.05): so others than `job` may be found here. Raises Trouble for an entry that is none.
    """
    numbered = () if are_uuids(entries) else _numbered(job, devices, probe)
    found = []
    for place, entry in enumerate(entries):
        if entry.startswith(("GPU-", "MIG-")):
            here = job[place] if len(entries) == len(job) else None
            found.append(Entry(entry, _named(entry, job, devices, here)))
            continue
        index = number(entry)
        if index is None:
            raise Trouble(f"CUDA_VISIBLE_DEVICES has {entry[:60]!r}; allowed: numbers, GPU-UUIDs and MIG-UUIDs")
        if index >= len(numbered):
            raise Trouble(f"CUDA_VISIBLE_DEVICES has {index}, and this task can open {len(numbered)} GPUs")
        device = devices.get(numbered[index])
        if device is None:
            raise Trouble(f"CUDA_VISIBLE_DEVICES has {index}, and the DeviceMap has no such GPU")
        found.append(Entry(device.uuid, device))
    return found


def lost(job: tuple[int, ...], devices: Mapping[int, Device], probe: Callable[[str], str] = access) -> list[Entry]:
    """What a task has whose CUDA_VISIBLE_DEVICES Slurm lost: of the job's devices those that it can open.

    Slurm unsets it where GresTypes names mps and shard both (run on 22.05, 24.11 and 26.05).
    """
    numbered = _numbered(job, devices, probe)
    return [Entry(devices[index].uuid, devices[index]) for index in job if index in numbered]


def _numbered(job: tuple[int, ...], devices: Mapping[int, Device], probe: Callable[[str], str]) -> tuple[int, ...]:
    """Slurm's numbers of the devices that positions in CUDA_VISIBLE_DEVICES count."""
    unknown = [index for index in job if index not in devices]
    if unknown:
        raise Trouble(f"the DeviceMap has no GPU {_told(tuple(unknown))}, which this job has")
    states = {index: _state(devices[index], probe) for index in sorted(devices)}
    if DENIED not in states.values():
        return tuple(range(max(devices) + 1)) if devices else ()
    gone = tuple(index for index in job if states[index] == MISSING)
    if gone:
        raise Trouble(f"the device files of GPU {_told(gone)}, which this job has, are not there")
    return tuple(index for index in states if states[index] == OPEN)


def _state(device: Device, probe: Callable[[str], str]) -> str:
    seen = {probe(file) for file in device.files}
    return MISSING if MISSING in seen else DENIED if DENIED in seen else OPEN


def _named(entry: str, job: tuple[int, ...], devices: Mapping[int, Device], here: int | None) -> Device:
    """The device that a UUID names; MIG-GPU-<card>/<gi>/<ci> is the form of drivers before 470.42.01.

    Of the old form only the card is in the DeviceMap: the instance is told where the card or the job has one only, or
    by its place where the task has all devices of the job (`here`).
    """
    card = entry[len("MIG-") : entry.find("/")] if entry.startswith("MIG-GPU-") and "/" in entry else None
    fitting = [device for device in devices.values() if entry == device.uuid or (card and card == device.parent_uuid)]
    for known in (job, (here,)):
        if len(fitting) > 1:
            fitting = [device for device in fitting if device.slurm_index in known]
    if len(fitting) != 1:
        raise Trouble(f"CUDA_VISIBLE_DEVICES has {entry[:60]!r}, which is none of the devices of this job")
    return fitting[0]


def _told(indices: tuple[int, ...]) -> str:
    return ", ".join(str(index) for index in indices) or "no GPU"
