"""What can be done to a card, as data: a closed union, its text for people, its form for programs, one interpreter.

Which of them are to be done, and whether they may be, is cut's business; here nothing is judged.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, assert_never

from hybridgpu.devices.port import ComputeInstance, Cutter, GpuInstance, NotDone
from hybridgpu.model.gpu import Placement
from hybridgpu.model.sharing import ComputeMode


@dataclass(frozen=True, slots=True)
class Card:
    """One card by its names: index in PCI order, N of /dev/nvidiaN, PCI address, UUID. The last is what is acted on."""

    index: int
    minor: int
    pci_bus_id: str
    uuid: str

    def __str__(self) -> str:
        return f"GPU {self.index} at {self.pci_bus_id} ({self.uuid})"


@dataclass(frozen=True, slots=True)
class SetMig:
    """Turn MIG on or off; also: take a pending mode back, or have one activated that waits for a reset."""

    card: Card
    on: bool

    def __str__(self) -> str:
        return f"{self.card}: turn MIG {'on' if self.on else 'off'}"


@dataclass(frozen=True, slots=True)
class SetComputeMode:
    """Set the compute mode."""

    card: Card
    mode: ComputeMode

    def __str__(self) -> str:
        return f"{self.card}: set compute mode {self.mode}"


@dataclass(frozen=True, slots=True)
class DestroyCompute:
    """Destroy a compute instance of a GPU instance."""

    card: Card
    instance: GpuInstance
    compute: ComputeInstance

    def __str__(self) -> str:
        what = f"{_computes(self.instance.profile, self.compute.slices)} {_at(self.instance)}"
        return f"{self.card}: destroy {what}" + (f" ({self.compute.uuid})" if self.compute.uuid else "")


@dataclass(frozen=True, slots=True)
class DestroyInstance:
    """Destroy a GPU instance in which there is nothing any more."""

    card: Card
    instance: GpuInstance

    def __str__(self) -> str:
        return f"{self.card}: destroy the GPU instance {self.instance.profile} {_at(self.instance)}"


@dataclass(frozen=True, slots=True)
class CreateInstance:
    """Create a GPU instance at a place."""

    card: Card
    profile: str
    placement: Placement

    def __str__(self) -> str:
        return f"{self.card}: create a GPU instance {self.profile} at memory slice {self.placement.start}"


@dataclass(frozen=True, slots=True)
class CreateCompute:
    """Create a compute instance of so many slices in the GPU instance at a place."""

    card: Card
    profile: str
    placement: Placement
    slices: int

    def __str__(self) -> str:
        return f"{self.card}: create {_computes(self.profile, self.slices)} at memory slice {self.placement.start}"


Effect = SetMig | SetComputeMode | DestroyCompute | DestroyInstance | CreateInstance | CreateCompute

_NAMES: dict[type[Effect], str] = {
    SetMig: "set-mig",
    SetComputeMode: "set-compute-mode",
    DestroyCompute: "destroy-compute-instance",
    DestroyInstance: "destroy-gpu-instance",
    CreateInstance: "create-gpu-instance",
    CreateCompute: "create-compute-instance",
}


def perform(effect: Effect, cutter: Cutter) -> str | NotDone:
    """Does it, by one call of the port: `SUCCESS`, how a mode's activation was answered, or why it was not done."""
    card = effect.card.uuid
    match effect:
        case SetMig():
            return cutter.set_mig(card, effect.on)
        case SetComputeMode():
            done = cutter.set_compute_mode(card, effect.mode)
        case DestroyCompute():
            done = cutter.destroy_compute_instance(card, effect.instance.placement, effect.compute)
        case DestroyInstance():
            done = cutter.destroy_gpu_instance(card, effect.instance)
        case CreateInstance():
            done = cutter.create_gpu_instance(card, effect.profile, effect.placement)
        case CreateCompute():
            done = cutter.create_compute_instance(card, effect.placement, effect.slices)
        case _:
            assert_never(effect)
    return done or "SUCCESS"


def as_record(effect: Effect) -> dict[str, Any]:
    """An effect for `-o json`: `effect` its name, `gpu`, `pci_bus_id`, `uuid` of its card, what it is done with, and
    its `text`.
    """
    card = effect.card
    record: dict[str, Any] = {"effect": _NAMES[type(effect)], "gpu": card.index, "pci_bus_id": card.pci_bus_id}
    record["uuid"] = card.uuid
    for field in fields(effect):
        if field.name != "card":
            record |= _plain(field.name, getattr(effect, field.name))
    return record | {"text": str(effect)}


def _plain(name: str, value: object) -> dict[str, Any]:
    match value:
        case GpuInstance():
            return {"gi": value.gi, "profile": value.profile, **_plain("placement", value.placement)}
        case ComputeInstance():
            return {"ci": value.ci, "slices": value.slices, "instance_uuid": value.uuid}
        case Placement():
            return {name: {"start": value.start, "size": value.size}}
    return {name: value}


def _computes(profile: str, slices: int) -> str:
    """A compute instance's name: that of the profile where it spans the GPU instance, else `1c.3g.40gb`."""
    return profile if profile.startswith(f"{slices}g.") else f"{slices}c.{profile}"


def _at(instance: GpuInstance) -> str:
    return f"at memory slice {instance.placement.start}"
