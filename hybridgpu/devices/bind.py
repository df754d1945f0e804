"""Which card each device of the NodeConfig is, or every way in which the node is not what it must be. Pure.

A device is known by its card's index, the PCI order, and an instance by profile and placement on it. Nothing is bound
by a guess: what Slurm was told of a device, its files, must be what the driver says of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from hybridgpu.devices.devicemap import BoundDevice, DeviceMap
from hybridgpu.devices.factsof import NO_FILE
from hybridgpu.devices.nodeconfig import NodeWanted
from hybridgpu.devices.port import Unread
from hybridgpu.devices.wantedcard import WantedCard
from hybridgpu.model.catalogue import NotFound, find, identify
from hybridgpu.model.facts import Facts, GpuFacts, InstanceFacts
from hybridgpu.model.finding import Finding, Rule, Severity
from hybridgpu.model.naming import device_files, instance_files
from hybridgpu.model.site import Device

_SOURCE = "docs/devicemap.md"

CARD_DIFFERS = Rule(
    "device-differs-from-config",
    Severity.ERROR,
    "A card is missing, or another than the NodeConfig says: what both schedulers were told of this node is not so.",
    "Mend the node; if it is meant to be so, discover, render again and install the new files.",
    _SOURCE,
)
CUT_DIFFERS = Rule(
    "device-cut-differs-from-config",
    Severity.ERROR,
    "A card is not cut as the NodeConfig says: jobs would get instances that are not there, or other ones.",
    "Cut the card as the layout says; MIG instances do not survive a reboot.",
    _SOURCE,
)
FILES_DIFFER = Rule(
    "device-files-differ-from-config",
    Severity.ERROR,
    "The device files of a device are others than Slurm was told, so Slurm's number for it means another card.",
    "Discover, render with --facts and install the new files: minor numbers may change from boot to boot.",
    "facts of the driver, /proc/driver/nvidia; gres.conf(5)",
)
NOT_MADE = Rule(
    "device-file-not-made",
    Severity.ERROR,
    "A device file is not there, so that no job can open the device, and slurmd stops after 20 s of waiting for it.",
    NO_FILE.fix,
    "S:src/interfaces/gres.c _my_stat; nvidia-modprobe(1)",
)


@dataclass(frozen=True, slots=True)
class Bound:
    """The map, or None where a finding is an error."""

    devices: DeviceMap | None
    findings: tuple[Finding, ...]


def bind(wanted: NodeWanted, facts: Facts, files: frozenset[str] | Unread, boot_id: str) -> Bound:
    """The DeviceMap of a node by its NodeConfig and its facts. `files`: those in /dev, unread: not judged."""
    findings = tuple(differences(wanted, facts))
    if not findings and not isinstance(files, Unread):
        findings = tuple(_not_made(wanted, facts, files))
    if findings:
        return Bound(None, findings)
    devices = tuple(_bound(device, wanted, facts.gpus[device.index]) for device in wanted.devices)
    return Bound(DeviceMap(boot_id, wanted.node, wanted.sharing, _gres_names(wanted), devices), ())


def differences(wanted: NodeWanted, facts: Facts) -> Iterator[Finding]:
    """Every way in which the cards are not what the NodeConfig says: number, model, place, cut and files."""
    place = wanted.place
    if len(facts.gpus) != len(wanted.cards):
        message = f"the node has {len(facts.gpus)} GPUs; its NodeConfig has {len(wanted.cards)}"
        yield Finding(CARD_DIFFERS, place, message)
    addresses = {d.index: d.pci_bus_id for d in wanted.devices if d.pci_bus_id is not None}
    pairs = _pairs(wanted, facts, addresses)
    for card in wanted.cards if addresses else ():
        if card not in [card for card, _ in pairs]:
            what = f"GPU {card.index} of the NodeConfig, at {addresses.get(card.index, 'an address it does not say')}"
            yield Finding(CARD_DIFFERS, place, f"{what}: there is no such card")
    for gpu in facts.gpus if addresses else ():
        if gpu not in [gpu for _, gpu in pairs]:
            message = f"GPU {gpu.index} at {gpu.pci_bus_id}: the NodeConfig has no card there"
            yield Finding(CARD_DIFFERS, place, message)
    for card, gpu in pairs:
        devices = [device for device in wanted.devices if device.index == card.index]
        for rule, what in card_differences(card, devices, gpu):
            yield Finding(rule, place, f"GPU {gpu.index} at {gpu.pci_bus_id}: {what}")


def _pairs(wanted: NodeWanted, facts: Facts, addresses: Mapping[int, str]) -> list[tuple[WantedCard, GpuFacts]]:
    """Each card of the NodeConfig with the one that it is: by the address, where there is one of that address, so that
    one that is missing is not taken for all behind it; else, where none is missing, by the index.
    """
    at = {gpu.pci_bus_id: gpu for gpu in facts.gpus}
    pairs = [(card, at.pop(addresses[card.index])) for card in wanted.cards if addresses.get(card.index) in at]
    if len(facts.gpus) == len(wanted.cards):
        left = {gpu.index: gpu for gpu in at.values()}
        taken = {card.index for card, _ in pairs}
        pairs += [(c, left[c.index]) for c in wanted.cards if c.index not in taken and c.index in left]
    return sorted(pairs, key=lambda pair: pair[1].index)


def seen_instance(device: Device, gpu: GpuFacts) -> InstanceFacts | None:
    """The instance of a card that a device is: of its profile, at its placement."""
    same = (i for i in gpu.instances if i.profile == device.profile and i.placement == device.placement)
    return next(same, None)


def seen_files(device: Device, gpu: GpuFacts) -> tuple[str, ...]:
    """The device files that a device has by the facts; the config's own where its instance is not there."""
    if device.profile is None:
        return device_files(gpu.minor)
    instance = seen_instance(device, gpu)
    return device.files if instance is None else instance_files(gpu.minor, instance)


def card_differences(card: WantedCard, devices: list[Device], gpu: GpuFacts) -> Iterator[tuple[Rule, str]]:
    """Every way in which one card, with `devices` on it, is not what the NodeConfig says: the rule, and a phrase."""
    if not _is(card.model, gpu):
        yield CARD_DIFFERS, f"it is {gpu.model}; the NodeConfig says {card.model}"
        return
    for bus_id in dict.fromkeys(d.pci_bus_id for d in devices if d.pci_bus_id not in (None, gpu.pci_bus_id)):
        yield CARD_DIFFERS, f"the NodeConfig has it at {bus_id}"
    if card.mig != bool(gpu.mig_enabled):
        yield (
            CUT_DIFFERS,
            f"MIG is {'on' if gpu.mig_enabled else 'off'}; the NodeConfig says {'on' if card.mig else 'off'}",
        )
        return
    cut = list(_cut_differences(devices, gpu))
    yield from ((CUT_DIFFERS, what) for what in cut)
    for device in devices if not cut else ():
        if (seen := seen_files(device, gpu)) != device.files:
            what = device.profile or "the card"
            yield FILES_DIFFER, f"{what} is {', '.join(seen)}; the NodeConfig says {', '.join(device.files)}"


def _cut_differences(devices: list[Device], gpu: GpuFacts) -> Iterator[str]:
    if any(instance.placement is None for instance in gpu.instances):
        yield "where its instances lie could not be read: run it as root"
        return
    wanted = [device for device in devices if device.profile]
    for device in wanted:
        if seen_instance(device, gpu) is None:
            yield f"there is no {_at(device)}"
    for instance in gpu.instances:
        if not any(seen_instance(device, gpu) is instance for device in wanted):
            yield f"there is a {_at(instance)}, which the NodeConfig does not have"


def _at(cut: Device | InstanceFacts) -> str:
    return f"{cut.profile} at memory slice {cut.placement.start if cut.placement else '?'}"


def _is(model: str, gpu: GpuFacts) -> bool:
    """Whether a card is of a model of the catalogue; by its memory, where models of several sizes share a name."""
    wanted, found = find(model), identify(gpu.model, gpu.memory_bytes)
    if isinstance(found, NotFound):
        found = find(gpu.model)
    if isinstance(wanted, NotFound):
        return model == gpu.model
    return wanted == found or (isinstance(found, NotFound) and found.ambiguous and wanted.name in found.candidates)


def _not_made(wanted: NodeWanted, facts: Facts, files: frozenset[str]) -> Iterator[Finding]:
    for device in wanted.devices:
        gpu = facts.gpus[device.index]
        missing = [file for file in seen_files(device, gpu) if file not in files]
        if missing:
            message = f"GPU {gpu.index} at {gpu.pci_bus_id}: there is no {', '.join(missing)}"
            yield Finding(NOT_MADE, wanted.place, message)


def _bound(device: Device, wanted: NodeWanted, gpu: GpuFacts) -> BoundDevice:
    instance = seen_instance(device, gpu) if device.profile else None
    return BoundDevice(
        slurm_index=wanted.slurm_index(device),
        index=gpu.index,
        minor=gpu.minor,
        uuid=instance.uuid if instance else gpu.uuid,
        pci_bus_id=gpu.pci_bus_id,
        files=seen_files(device, gpu),
        memory_bytes=device.memory_bytes if instance else gpu.memory_bytes,
        profile=device.profile,
        parent_uuid=gpu.uuid if instance else None,
    )


def _gres_names(wanted: NodeWanted) -> tuple[str, ...]:
    tokens = (wanted.gres or "").split(",")
    return tuple(dict.fromkeys(token.partition(":")[0].partition("(")[0] for token in tokens if token))
