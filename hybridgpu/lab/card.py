"""A card in memory: what NVML is known to make of it, call by call, and what befalls it from outside.

Its rules are a card's own alone (NVML API reference, MIG user guide), those of the simulated driver in testbed/driver;
one contract test holds the two to each other. The devices port over such cards is cards.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import count
from uuid import UUID

from hybridgpu.devices.port import ComputeInstance, Cut, GpuInstance, Holder, MigMode, Use
from hybridgpu.model.gpu import GpuModel, Placement, Profile
from hybridgpu.model.packing import engines_exceeded, gpu_instance_id
from hybridgpu.model.sharing import ComputeMode

SUCCESS, IN_USE, NOT_SUPPORTED, NOT_FOUND = "SUCCESS", "IN_USE", "NOT_SUPPORTED", "NOT_FOUND"
INVALID_ARGUMENT, INSUFFICIENT_RESOURCES, RESET_REQUIRED = (
    "INVALID_ARGUMENT",
    "INSUFFICIENT_RESOURCES",
    "RESET_REQUIRED",
)

_HOPPER = (9, 0)
_COMPUTE_PROFILES = (1, 2, 3, 4, 6, 7, 8)
"""Compute slices that a compute instance may have (NVML_COMPUTE_INSTANCE_PROFILE_*)."""


class Broken(StrEnum):
    """How a card is broken: it fell off the bus, hangs, answers nonsense, needs a reset; or a client that no list
    shows holds it.
    """

    LOST = "lost"
    HANG = "hang"
    UNKNOWN = "unknown"
    RESET_REQUIRED = "reset-required"
    IN_USE = "in-use"


_serials = count(1)


@dataclass(slots=True)
class LabCard:
    """One card. `starts` has, by GPU instance and compute instance, where that begins; the rest is as it is seen."""

    model: GpuModel
    uuid: str
    bus_id: str = "0000:07:00.0"
    minor: int = 0
    passthrough: bool = False
    broken: Broken | None = None
    mig: bool = False
    pending: bool = False
    compute_mode: ComputeMode = ComputeMode.DEFAULT
    instances: dict[int, GpuInstance] = field(default_factory=dict)
    starts: dict[tuple[int, int], int] = field(default_factory=dict)
    holders: tuple[Holder, ...] = ()

    @property
    def keeps_mode(self) -> bool:
        """Whether a new MIG mode needs a reset, and lasts over a reboot: up to Hopper both (MIG user guide)."""
        return self.model.compute_capability < _HOPPER

    @property
    def idle(self) -> bool:
        """Whether nothing holds the card."""
        return not self.holders and self.broken is not Broken.IN_USE

    def seen(self) -> Cut:
        """The card as it is."""
        mode = MigMode(self.mig, self.pending) if self.model.has_mig else None
        instances = sorted(self.instances.values(), key=lambda i: i.placement)
        holders = sorted(self.holders, key=lambda h: (list(Use).index(h.use), h.pid))
        return Cut(mode, self.compute_mode, tuple(instances), tuple(holders))

    def set_mig(self, on: bool) -> tuple[str, str]:
        """The answer to the call, and to the activation that it tries."""
        if not self.model.has_mig:
            return NOT_SUPPORTED, SUCCESS
        if self.mig == on:
            self.pending = on
            return SUCCESS, SUCCESS
        if self.instances or not (self.keeps_mode or self.idle):
            return IN_USE, SUCCESS
        self.pending = on
        if self.keeps_mode and self.passthrough:
            return SUCCESS, RESET_REQUIRED
        if not self.idle:
            return SUCCESS, IN_USE
        self._activate(on)
        return SUCCESS, SUCCESS

    def set_compute_mode(self, mode: ComputeMode) -> str:
        """A card in MIG mode has no other than the default."""
        if self.mig and mode is not ComputeMode.DEFAULT:
            return NOT_SUPPORTED
        self.compute_mode = mode
        return SUCCESS

    def create_instance(self, profile: Profile, placement: Placement) -> str:
        """At this place and no other."""
        if not self.mig:
            return NOT_SUPPORTED
        if placement not in profile.placements:
            return INVALID_ARGUMENT
        present = [p for i in self.instances.values() if (p := self.model.profile(i.profile))]
        taken = any(placement.overlaps(i.placement) for i in self.instances.values())
        if taken or present.count(profile) >= profile.max_count or engines_exceeded(self.model, [*present, profile]):
            return INSUFFICIENT_RESOURCES
        gi = gpu_instance_id(self.model, placement)
        self.instances[gi] = GpuInstance(gi, profile.name, placement, ())
        return SUCCESS

    def create_compute(self, instance: GpuInstance, slices: int) -> str:
        """At the first place that is free; known sizes are those that compute_sizes tells."""
        there = [(self.starts[instance.gi, c.ci], c.slices) for c in instance.computes]
        for start in _compute_starts(self._slices(instance), slices):
            if not any(start < s + size and s < start + slices for s, size in there):
                taken = {c.ci for c in instance.computes}
                ci = next(number for number in count() if number not in taken)
                new = ComputeInstance(ci, slices, f"MIG-{UUID(int=next(_serials))}")
                self._put(instance, sorted((*instance.computes, new), key=lambda c: c.ci))
                self.starts[instance.gi, ci] = start
                return SUCCESS
        return INSUFFICIENT_RESOURCES

    def compute_sizes(self, instance: GpuInstance) -> tuple[int, ...]:
        """How many slices a compute instance of this GPU instance may have."""
        whole = self._slices(instance)
        parts = (s for s in _COMPUTE_PROFILES if s < min(whole, 5) and (whole, s) != (4, 3))
        return (*parts, whole)

    def destroy_compute(self, instance: GpuInstance, compute: ComputeInstance) -> str:
        """Not while a process runs in it."""
        if self.broken is Broken.IN_USE or any((h.gi, h.ci) == (instance.gi, compute.ci) for h in self.holders):
            return IN_USE
        self._put(instance, [c for c in instance.computes if c != compute])
        del self.starts[instance.gi, compute.ci]
        return SUCCESS

    def destroy_instance(self, instance: GpuInstance) -> str:
        """Not while anything is in it."""
        if instance.computes or self.broken is Broken.IN_USE:
            return IN_USE
        del self.instances[instance.gi]
        return SUCCESS

    def run(self, holder: Holder) -> None:
        """Lets a process appear: on a card with MIG in a compute instance that is there."""
        there = {(i.gi, c.ci) for i in self.instances.values() for c in i.computes} if self.mig else {(None, None)}
        assert (holder.gi, holder.ci) in there  # noqa: S101 - a slip of a test
        self.holders = (*self.holders, holder)

    def end(self, pid: int) -> None:
        """Ends a process."""
        self.holders = tuple(holder for holder in self.holders if holder.pid != pid)

    def reset(self) -> str:
        """As `nvidia-smi --gpu-reset` does."""
        if self.passthrough:
            return NOT_SUPPORTED
        if not self.idle:
            return IN_USE
        self.broken = None
        self._activate(self.pending)
        return SUCCESS

    def reboot(self) -> None:
        """Processes and instances are gone; the mode stays only where the card keeps it."""
        self.holders, self.broken = (), None
        self._activate(self.pending and self.keeps_mode)

    def _activate(self, mig: bool) -> None:
        self.mig = self.pending = mig
        self.compute_mode = ComputeMode.DEFAULT
        self.instances.clear()
        self.starts.clear()

    def _put(self, instance: GpuInstance, computes: list[ComputeInstance]) -> None:
        self.instances[instance.gi] = replace(instance, computes=tuple(computes))

    def _slices(self, instance: GpuInstance) -> int:
        profile = self.model.profile(instance.profile)
        assert profile is not None  # noqa: S101 - it was created by it
        return profile.compute


def _compute_starts(whole: int, slices: int) -> Iterator[int]:
    """Where compute instances of a size may begin: three slices take the place of four."""
    step = 4 if slices == 3 else slices
    return iter(range(0, whole - slices + 1, step))
