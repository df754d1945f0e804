"""A GPU model and what MIG can cut from it. Knows no file, no driver and no scheduler."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, order=True)
class Placement:
    """Where an instance lies on the card, in the card's memory slices: `start`, and `size` slices long."""

    start: int
    size: int

    def overlaps(self, other: Placement) -> bool:
        """Whether the two share a memory slice."""
        return self.start < other.start + other.size and other.start < self.start + self.size


@dataclass(frozen=True, slots=True)
class Profile:
    """One kind of MIG instance of one model.

    `name` as nvidia-smi writes it (`1g.10gb+me`), `attribute` its suffix (`+me`, or empty), `compute` its compute
    slices, `size` its memory slices, `starts` the memory slices it may begin at, `max_count` how many a card holds,
    `memory_gb` the number in its name, `smi_id` nvidia-smi's profile ID (None: never seen), `confirmed` whether it was
    seen on the card rather than taken from the family. `decoders` and `ofa` are the video decoders and optical flow
    accelerators it takes where the family has too few for every combination; 0 elsewhere. `min_driver` is a driver
    branch (`525`) where the profile came later than the card.
    """

    name: str
    attribute: str
    compute: int
    size: int
    starts: tuple[int, ...]
    max_count: int
    memory_gb: int
    smi_id: int | None
    confirmed: bool
    decoders: int = 0
    ofa: int = 0
    min_driver: str | None = None

    @property
    def placements(self) -> tuple[Placement, ...]:
        """Every place this profile may lie, lowest first."""
        return tuple(Placement(start, self.size) for start in self.starts)


@dataclass(frozen=True, slots=True)
class GpuModel:
    """One GPU model of the catalogue.

    `name` as the driver names it, without the vendor, spaces as hyphens (`H100-80GB-HBM3`); `driver_name` in full
    (`NVIDIA H100 80GB HBM3`), which cards of several memory sizes may share; `memory_gib` the number in the name of the
    profile that takes the whole card, without MIG the data sheet's; `slices` the memory slices that MIG placements
    count in (0: no MIG); `pci_ids` the device ids, lower-case hex; `notes` what a user must be told, above all what is
    not `confirmed`; `sources` where the data is from, by the short names explained in the data file.
    """

    name: str
    driver_name: str
    memory_gib: int
    compute_capability: tuple[int, int]
    slices: int = 0
    compute_slices: int = 0
    profiles: tuple[Profile, ...] = ()
    aliases: tuple[str, ...] = ()
    pci_ids: tuple[str, ...] = ()
    confirmed: bool = True
    min_driver: str | None = None
    notes: str = ""
    sources: tuple[str, ...] = field(default=())

    @property
    def has_mig(self) -> bool:
        """Whether the catalogue knows profiles that the card can be cut into."""
        return bool(self.profiles)

    @property
    def memory_bytes(self) -> int:
        """Nominal memory in bytes, for use where no facts are had."""
        return self.memory_gib * 2**30

    def profile(self, name: str) -> Profile | None:
        """The profile of this exact name, or None."""
        return next((p for p in self.profiles if p.name == name), None)


@dataclass(frozen=True, slots=True)
class Instance:
    """A MIG instance as planned: what, where, and the ids the driver is expected to give it.

    `gi` is the GPU instance id and `ci` the compute instance id within it (0: one compute instance spans it). Both are
    assumptions until facts are read: see geometry.gpu_instance_id.
    """

    profile: Profile
    placement: Placement
    gi: int
    ci: int = 0
