"""The port to a driver: what it tells of its cards, as immutable records, whoever tells it.

Nothing here judges. What a driver did not tell is an `Unread` in the place of the value, so that one failing call
takes nothing else with it. Cutting cards will be a second protocol beside `Driver`, over the same names.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Protocol

from hybridgpu.model.gpu import Placement


@dataclass(frozen=True, slots=True)
class Unread:
    """A value that the driver did not tell: the call it was asked by, and its answer (`GPU_IS_LOST`)."""

    call: str
    answer: str

    def __str__(self) -> str:
        return f"{self.call} answered {self.answer}"


@dataclass(frozen=True, slots=True)
class MigMode:
    """Whether MIG is on, and whether it will be after the next reset."""

    current: bool
    pending: bool


@dataclass(frozen=True, slots=True)
class InstanceReading:
    """One MIG device: `profile` as nvidia-smi writes it (`1g.10gb+me`, `1c.3g.40gb`), `gi`, `ci` the ids.

    `placement` is its GPU instance's; only root may ask for it.
    """

    uuid: str | Unread
    profile: str | Unread
    gi: int | Unread
    ci: int | Unread
    placement: Placement | Unread


@dataclass(frozen=True, slots=True)
class CardReading:
    """One card as the driver tells of it.

    `number` is the driver's own, in its order; `bus_id` like `0000:07:00.0`; `name` the driver's, in full; `minor` the
    N of /dev/nvidiaN; `memory_bytes` in total; `mig` None where the card has no MIG; `affinity` the CPUs near it, a bit
    each; `peers` the bus id at the other end of each active NVLink, empty where that is not told, None without NVLinks;
    `instances` in the driver's order, empty where MIG is off.
    """

    number: int
    bus_id: str | Unread
    name: str | Unread
    uuid: str | Unread
    minor: int | Unread
    memory_bytes: int | Unread
    mig: MigMode | Unread | None
    compute_mode: str | Unread
    affinity: int | Unread
    peers: tuple[str, ...] | Unread | None
    instances: tuple[InstanceReading, ...] | Unread


@dataclass(frozen=True, slots=True)
class DriverReading:
    """All that a driver tells: its version, and every card it knows of, in its own order."""

    version: str
    cards: tuple[CardReading, ...]


class Driver(Protocol):
    """A machine's driver. Every reading is taken anew."""

    def read(self) -> DriverReading:
        """Raises Unavailable("device", ...) where there is no driver that answers at all."""
        ...


def short_bus_id(text: str) -> str:
    """A PCI address in lower case with its domain in four digits, more where it needs more; odd text as it is.

    NVML writes eight, the kernel's driver below /proc at least four.
    """
    domain, colon, rest = text.lower().partition(":")
    if not colon or not re.fullmatch(r"[0-9a-f]{1,8}", domain):
        return text.lower()
    return f"{int(domain, 16):04x}:{rest}"
