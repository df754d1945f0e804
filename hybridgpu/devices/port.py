"""The port to a driver: what it tells of its cards, as immutable records, whoever tells it.

Nothing here judges. What a driver did not tell is an `Unread` in the place of the value, so that one failing call
takes nothing else with it. `Driver` is asked what there is; by `Cutter` one card is cut, which is known by its UUID.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from hybridgpu.model.gpu import Placement
from hybridgpu.model.sharing import ComputeMode


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


class Use(StrEnum):
    """How a process holds a card: what of NVML's lists it is in, that it has the card's device file open, or that it is
    the MPS daemon of a job of Slurm's, which has its cards before any client runs.
    """

    COMPUTE = "compute"
    GRAPHICS = "graphics"
    MPS = "mps"
    OPEN_FILE = "open file"
    DAEMON = "MPS daemon"


@dataclass(frozen=True, slots=True)
class Holder:
    """A process on a card: on this compute instance of this GPU instance, by their ids, or, None, on all of it.

    `ancestors` are the pids of the processes that it comes from, the nearest first, where that is known.
    """

    pid: int
    use: Use
    gi: int | None = None
    ci: int | None = None
    ancestors: tuple[int, ...] = field(default=(), compare=False)

    def __str__(self) -> str:
        return f"process {self.pid} ({self.use})"


@dataclass(frozen=True, slots=True)
class ComputeInstance:
    """A compute instance: its id in its GPU instance, how many compute slices it has, its MIG device's UUID."""

    ci: int
    slices: int
    uuid: str


@dataclass(frozen=True, slots=True)
class GpuInstance:
    """A GPU instance: its id, its profile as nvidia-smi writes it, where it lies, and what it is divided into.

    `computes` may be empty: then no program can use it, and no list of MIG devices shows it.
    """

    gi: int
    profile: str
    placement: Placement
    computes: tuple[ComputeInstance, ...]


@dataclass(frozen=True, slots=True)
class Cut:
    """How one card is cut now, and who is on it. `mig` is None where it has no MIG.

    `instances` from the lowest place up; `holders` are NVML's lists, one after the other, each by pid.
    """

    mig: MigMode | None
    compute_mode: ComputeMode
    instances: tuple[GpuInstance, ...]
    holders: tuple[Holder, ...]


@dataclass(frozen=True, slots=True)
class NotDone:
    """A change that the driver refused: the call, and its answer (`IN_USE`). It may still have happened: look."""

    call: str
    answer: str

    def __str__(self) -> str:
        return f"{self.call} answered {self.answer}"


class Cutter(Protocol):
    """One machine's cards, each by its UUID (`GPU-...`), to be cut. Everything is asked anew, nothing is remembered.

    A change is None where it was done. Each method raises Unavailable("device", ...) where the driver does not answer
    at all, be it that the time limit is over: what was asked for may then have happened.
    """

    def look(self, card: str) -> Cut | Unread:
        """All that there is to know of one card before it is cut; Unread where any of it was not told."""
        ...

    def set_mig(self, card: str, on: bool) -> str | NotDone:
        """Sets the mode. NVML tries the reset that activates it: the answer to that (`SUCCESS`, or the mode stays
        pending: `IN_USE`, `RESET_REQUIRED`).
        """
        ...

    def set_compute_mode(self, card: str, mode: ComputeMode) -> NotDone | None:
        """Sets the compute mode."""
        ...

    def create_gpu_instance(self, card: str, profile: str, placement: Placement) -> NotDone | None:
        """Creates a GPU instance of a profile, there and nowhere else, with nothing in it."""
        ...

    def create_compute_instance(self, card: str, placement: Placement, slices: int) -> NotDone | None:
        """Creates a compute instance of so many slices in the GPU instance at this place."""
        ...

    def destroy_compute_instance(self, card: str, placement: Placement, compute: ComputeInstance) -> NotDone | None:
        """Destroys this compute instance in the GPU instance at this place; NOT_FOUND where another has its id."""
        ...

    def destroy_gpu_instance(self, card: str, instance: GpuInstance) -> NotDone | None:
        """Destroys the GPU instance of this id, profile and place; NOT_FOUND where it is not that any more."""
        ...


def short_bus_id(text: str) -> str:
    """A PCI address in lower case with its domain in four digits, more where it needs more; odd text as it is.

    NVML writes eight, the kernel's driver below /proc at least four.
    """
    domain, colon, rest = text.lower().partition(":")
    if not colon or not re.fullmatch(r"[0-9a-f]{1,8}", domain):
        return text.lower()
    return f"{int(domain, 16):04x}:{rest}"
