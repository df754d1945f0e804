"""An observation as facts, or why there are none: the pure core of `hybridgpu discover`.

A card that is dead, or does not tell what facts must say, is refused by name, all of them in one run; what facts may
leave open is null, with a warning that says so. Nothing here reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import zip_longest
from typing import TypeVar

from hybridgpu.devices.kernel import KernelCard, KernelReading
from hybridgpu.devices.observe import Observation
from hybridgpu.devices.port import CardReading, InstanceReading, MigMode, Unread
from hybridgpu.devices.topology import Topology, core_range
from hybridgpu.model.catalogue import NotFound, driver_words, identify
from hybridgpu.model.facts import Facts, GpuFacts, InstanceFacts
from hybridgpu.model.finding import Finding, Rule, Severity
from hybridgpu.model.gpu import Placement
from hybridgpu.model.naming import instance_files

T = TypeVar("T")

_NVML = "NVML API reference, nvmlReturn_t"
_SIGNS_OF_DEATH = ("GPU_IS_LOST", "RESET_REQUIRED", "GPU_NOT_FOUND")

DEAD = Rule(
    "device-dead",
    Severity.ERROR,
    "A card is gone or needs a reset; facts without it would move the index of each card behind it, so none are given.",
    "See the kernel's log for its Xid; reset it (nvidia-smi --gpu-reset -i ADDRESS) or reboot, or have it replaced.",
    f"{_NVML}; NVIDIA Xid catalogue, 79",
)
UNTOLD = Rule(
    "device-untold",
    Severity.ERROR,
    "The driver does not tell of a card what facts must say, so no facts are given.",
    "Run it as root; if the driver still does not answer, see the kernel's log, and reset the card or reboot.",
    _NVML,
)
UNREAD = Rule(
    "device-value-unread",
    Severity.WARNING,
    "A value that facts may leave open could not be read: it is null, and what needs it is left out or assumed.",
    "Run it as root, on the node itself; else see what the driver answered.",
    "docs/facts.md",
)
MIG_PENDING = Rule(
    "device-mig-pending",
    Severity.WARNING,
    "A card's MIG mode changes with its next reset: until then it is what the current mode says.",
    "Reset the card while nothing uses it (nvidia-smi --gpu-reset -i ADDRESS), or reboot; or set the mode back.",
    "NVML API reference, nvmlDeviceGetMigMode",
)
MIG_EMPTY = Rule(
    "device-mig-empty",
    Severity.WARNING,
    "MIG is on and nothing is cut: no program can use the card, and AutoDetect=nvml stops slurmd up to Slurm 24.05.",
    "Cut the card, or turn MIG off.",
    "MIG user guide; S:src/plugins/gpu/nvml/gpu_nvml.c",
)
KERNEL_UNREAD = Rule(
    "device-kernel-unread",
    Severity.WARNING,
    "What the kernel's driver shows below /proc or /dev could not be read, and is not held against what NVML says.",
    "Run it as root on the node, or name the folder of the driver's files: --driver-root.",
    "/proc/driver/nvidia",
)
NO_FILE = Rule(
    "device-file-missing",
    Severity.WARNING,
    "A device file that Slurm's gres.conf will name is not there: slurmd waits for it for 20 s and then stops.",
    "Run nvidia-modprobe for it (`-c MINOR` for a card, `-f /proc/driver/nvidia/capabilities/...` for MIG), at boot.",
    "S:src/interfaces/gres.c _my_stat; nvidia-modprobe(1)",
)
EXCLUDED = Rule(
    "device-excluded",
    Severity.INFO,
    "A card that the driver was told to leave alone is not counted: indices are those of the cards beside it.",
    "Nothing, if it is meant so; else take it out of NVreg_ExcludedGpus.",
    "NVIDIA driver README, NVreg_ExcludedGpus",
)
NO_CARD = Rule(
    "device-none",
    Severity.WARNING,
    "The driver is loaded and knows no card: the node's facts have none.",
    "If the node has cards, see lspci and the kernel's log.",
    "NVML API reference, nvmlDeviceGetCount",
)
UNKNOWN_MODEL = Rule(
    "device-unknown-model",
    Severity.WARNING,
    "The catalogue has no card of this name and memory: no inventory can name it, and nothing is rendered for it.",
    "Report the driver's name of the card and its memory, so that it gets an entry.",
    "hybridgpu/model/catalogue.toml",
)


@dataclass(frozen=True, slots=True)
class Discovered:
    """Facts, or None where a finding is an error."""

    facts: Facts | None
    findings: tuple[Finding, ...]


def facts_of(seen: Observation, node: str) -> Discovered:
    """The node's facts by what was seen, cards in the order of their PCI addresses, which is nvidia-smi's index."""
    findings = [*_dead(seen), *_untold(seen)]
    if findings:
        return Discovered(None, tuple(findings))
    cards = sorted(seen.driver.cards, key=lambda card: address_order(str(card.bus_id)))
    order = [str(card.bus_id) for card in cards]
    gpus = tuple(_gpu(card, index, order, seen) for index, card in enumerate(cards))
    for card, gpu in zip(cards, gpus, strict=True):
        findings += _remarks(card, gpu, seen)
    findings += _kernel_unread(seen.kernel)
    findings += [Finding(EXCLUDED, None, f"{_named(c)} is excluded") for c in _in_kernel(seen.kernel) if c.excluded]
    if not gpus:
        findings.append(Finding(NO_CARD, None, f"the driver {seen.driver.version} knows no card"))
    return Discovered(Facts(node, seen.driver.version, gpus), tuple(findings))


def _kernel_unread(kernel: KernelReading) -> Iterator[Finding]:
    """What of the kernel's side was not read, so that nothing is said of it."""
    if isinstance(kernel.cards, Unread):
        yield Finding(KERNEL_UNREAD, None, f"whether a card is dead is not known: {kernel.cards}")
    if isinstance(kernel.files, Unread):
        yield Finding(KERNEL_UNREAD, None, f"which device files there are is not known: {kernel.files}")


def _in_kernel(kernel: KernelReading) -> tuple[KernelCard, ...]:
    return () if isinstance(kernel.cards, Unread) else kernel.cards


def _dead(seen: Observation) -> Iterator[Finding]:
    """Each card that is dead, by the driver's answers, or because the kernel has it and the driver does not.

    A card whose address the driver does not tell is one of those that only the kernel has.
    """
    alive = {card.bus_id for card in seen.driver.cards}
    gone = [c for c in _in_kernel(seen.kernel) if c.bus_id not in alive and not c.excluded]
    nameless = [card.bus_id for card in seen.driver.cards if isinstance(card.bus_id, Unread)]
    for lost, answer in zip_longest(gone, nameless):
        where = None if lost is None else lost.bus_id
        name = "a GPU" if lost is None else _card_name(lost.bus_id, lost.minor, seen)
        if answer is None:
            yield _dead_one(where, f"{name} is dead: the kernel's driver has it, and NVML does not show it")
        elif answer.answer in (*_SIGNS_OF_DEATH, "UNKNOWN"):
            yield _dead_one(where, f"{name} is dead: {answer}")
        else:
            yield Finding(UNTOLD, None, f"{name}: {answer}")
    for card in seen.driver.cards:
        sign = next((value for value in _values(card) if value.answer in _SIGNS_OF_DEATH), None)
        if isinstance(card.bus_id, str) and (sign := sign or _all_unknown(card)):
            yield _dead_one(card.bus_id, f"{_card_name(card.bus_id, card.minor, seen)} is dead: {sign}")


def _dead_one(bus_id: str | None, message: str) -> Finding:
    return Finding(DEAD, None, message, DEAD.fix.replace("ADDRESS", bus_id) if bus_id else "")


def _untold(seen: Observation) -> Iterator[Finding]:
    """What facts must say of a card that lives, and its driver did not tell."""
    for card in seen.driver.cards:
        if isinstance(card.bus_id, Unread) or any(v.answer in _SIGNS_OF_DEATH for v in _values(card)):
            continue
        if _all_unknown(card):
            continue
        must = (card.name, card.uuid, card.minor, card.memory_bytes, card.mig, card.compute_mode, card.instances)
        inner = [part for i in _cut(card) for part in (i.uuid, i.profile, i.gi, i.ci)]
        for value in dict.fromkeys(value for value in (*must, *inner) if isinstance(value, Unread)):
            yield Finding(UNTOLD, None, f"{_card_name(card.bus_id, card.minor, seen)}: {value}")


def _values(card: CardReading) -> list[Unread]:
    """Every value of a card that was not told, its instances' too."""
    own = [getattr(card, field.name) for field in fields(card)]
    inner = [getattr(instance, field.name) for instance in _cut(card) for field in fields(instance)]
    return [value for value in (*own, *inner) if isinstance(value, Unread)]


def _all_unknown(card: CardReading) -> Unread | None:
    """A card that answers UNKNOWN to what every card knows is as dead as one that says so."""
    told = (card.name, card.uuid, card.minor, card.memory_bytes)
    return next((v for v in told if isinstance(v, Unread) and v.answer == "UNKNOWN"), None)


def _cut(card: CardReading) -> tuple[InstanceReading, ...]:
    return () if isinstance(card.instances, Unread) else card.instances


def _card_name(bus_id: str, minor: int | Unread | None, seen: Observation) -> str:
    """A card by all its names: index in PCI order over every card there is, bus id, device file."""
    counted = {c.bus_id for c in _in_kernel(seen.kernel) if not c.excluded}
    known = sorted(counted | {c.bus_id for c in seen.driver.cards if isinstance(c.bus_id, str)}, key=address_order)
    if isinstance(minor, Unread) or minor is None:
        minor = next((c.minor for c in _in_kernel(seen.kernel) if c.bus_id == bus_id), None)
    return f"GPU {known.index(bus_id)} at {bus_id}" + ("" if minor is None else f" (/dev/nvidia{minor})")


def _named(card: KernelCard) -> str:
    return f"the GPU at {card.bus_id}" + (f" ({card.uuid})" if card.uuid else "")


def address_order(bus_id: str) -> tuple[int, ...]:
    """What PCI addresses are sorted by: domain, bus, device, function; what is no address comes last."""
    try:
        return tuple(int(part, 16) for part in bus_id.replace(".", ":").split(":"))
    except ValueError:
        return (1 << 32,)


def _gpu(card: CardReading, index: int, order: Sequence[str], seen: Observation) -> GpuFacts:
    """The facts of a card that told all it must."""
    mig = card.mig if isinstance(card.mig, MigMode) else None
    minor = _told(card.minor)
    return GpuFacts(
        index=index,
        minor=minor,
        uuid=_told(card.uuid),
        pci_bus_id=order[index],
        model=driver_words(_told(card.name)).replace(" ", "-"),
        memory_bytes=_told(card.memory_bytes),
        mig_enabled=mig.current if mig else None,
        compute_mode=_told(card.compute_mode),
        cores=_cores(card.affinity, seen.topology),
        links=link_counts(index, card.peers, order),
        instances=tuple(_instance(instance, minor, seen.kernel) for instance in _cut(card)),
        mig_pending=mig.pending if mig else None,
    )


def _told(value: T | Unread) -> T:
    assert not isinstance(value, Unread)  # noqa: S101 - _untold has seen to it
    return value


def _cores(affinity: int | Unread, topology: Topology | Unread) -> str | None:
    if isinstance(affinity, Unread) or isinstance(topology, Unread):
        return None
    return core_range(affinity, topology)


def link_counts(index: int, peers: Sequence[str] | Unread | None, order: Sequence[str]) -> tuple[int, ...] | None:
    """Links to each card of `order`, -1 at the card itself; None without NVLinks. A link to a switch counts nowhere.

    So Slurm's plugin counts them (S:src/plugins/gpu/nvml/gpu_nvml.c _nvml_get_nvlink_info).
    """
    if peers is None or isinstance(peers, Unread):
        return None
    return tuple(-1 if number == index else list(peers).count(bus_id) for number, bus_id in enumerate(order))


def _instance(instance: InstanceReading, minor: int, kernel: KernelReading) -> InstanceFacts:
    gi, ci = _told(instance.gi), _told(instance.ci)
    numbers = {} if isinstance(kernel.capabilities, Unread) else kernel.capabilities
    return InstanceFacts(
        uuid=_told(instance.uuid),
        profile=_told(instance.profile),
        placement=instance.placement if isinstance(instance.placement, Placement) else None,
        gi=gi,
        ci=ci,
        gi_minor=numbers.get(f"gpu{minor}/gi{gi}/access"),
        ci_minor=numbers.get(f"gpu{minor}/gi{gi}/ci{ci}/access"),
    )


def _remarks(card: CardReading, gpu: GpuFacts, seen: Observation) -> Iterator[Finding]:
    """What there is to say of a card that lives."""
    name = f"GPU {gpu.index} at {gpu.pci_bus_id}"
    for value, why in _nulls(card, gpu, seen):
        yield Finding(UNREAD, None, f"{name}: {value} is null: {why}")
    if gpu.mig_enabled != gpu.mig_pending:
        now, then = ("on", "off") if gpu.mig_enabled else ("off", "on")
        hint = MIG_PENDING.fix.replace("ADDRESS", gpu.pci_bus_id)
        yield Finding(MIG_PENDING, None, f"{name}: MIG is {now}, and will be {then} after a reset", hint)
    elif gpu.mig_enabled and not gpu.instances:
        yield Finding(MIG_EMPTY, None, f"{name}: MIG is on, and there is no instance")
    if isinstance(identify(gpu.model, gpu.memory_bytes), NotFound):
        memory = f"{gpu.memory_bytes / 2**30:.1f} GiB"
        yield Finding(UNKNOWN_MODEL, None, f"{name}: {card.name} of {memory} is not in the catalogue")
    files = (f"/dev/nvidia{gpu.minor}", *(file for i in gpu.instances for file in instance_files(gpu.minor, i)))
    here = seen.kernel.files
    missing = [] if isinstance(here, Unread) else [file for file in dict.fromkeys(files) if file not in here]
    if missing:
        yield Finding(NO_FILE, None, f"{name}: there is no {', '.join(missing)}")


def _nulls(card: CardReading, gpu: GpuFacts, seen: Observation) -> Iterator[tuple[str, Unread | str]]:
    """The values of a card that are null though the card may have them, and why."""
    if isinstance(card.affinity, Unread):
        yield "cores", card.affinity
    elif isinstance(seen.topology, Unread):
        yield "cores", seen.topology
    elif gpu.cores is None:
        yield "cores", "the driver names no CPU that is online"
    if isinstance(card.peers, Unread):
        yield "links", card.peers
    for why in dict.fromkeys(i.placement for i in _cut(card) if isinstance(i.placement, Unread)):
        yield "placement", why
    if any(None in (i.gi_minor, i.ci_minor) for i in gpu.instances):
        numbers = seen.kernel.capabilities
        yield "gi_minor, ci_minor", numbers if isinstance(numbers, Unread) else "mig-minors does not list the instance"
