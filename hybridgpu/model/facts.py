"""What a node's driver reports about its cards, as immutable records. Reading them from a file is not done here."""

from __future__ import annotations

from dataclasses import dataclass

from hybridgpu.model.gpu import Placement


@dataclass(frozen=True, slots=True)
class InstanceFacts:
    """One MIG instance: `gi`, `ci` the ids; `gi_minor`, `ci_minor` the capability file numbers (None: unread)."""

    uuid: str
    profile: str
    placement: Placement | None
    gi: int
    ci: int
    gi_minor: int | None
    ci_minor: int | None


@dataclass(frozen=True, slots=True)
class GpuFacts:
    """One card. `index` is the PCI order (nvidia-smi's), `minor` the N of /dev/nvidiaN, `cores` a Slurm core range.

    `links` are the NVLinks to each GPU by index, -1 at the card itself. `mig_pending`: whether MIG is on after the
    next reset, None where that is not told.
    """

    index: int
    minor: int
    uuid: str
    pci_bus_id: str
    model: str
    memory_bytes: int
    mig_enabled: bool | None
    compute_mode: str
    cores: str | None
    links: tuple[int, ...] | None
    instances: tuple[InstanceFacts, ...]
    mig_pending: bool | None = None


@dataclass(frozen=True, slots=True)
class Facts:
    """One node's facts. `file` is where they were read, for messages."""

    node: str
    driver_version: str
    gpus: tuple[GpuFacts, ...]
    file: str = ""
