"""The cards of a node as NVIDIA's programs see them through NVML: what they decide by, and nothing else.

Made from facts, or from the catalogue where there are none. Says nothing of what a program does with them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hybridgpu.model.catalogue import NotFound, find, full_name
from hybridgpu.model.facts import Facts, GpuFacts
from hybridgpu.model.gpu import GpuModel
from hybridgpu.model.naming import device_files, instance_files


@dataclass(frozen=True, slots=True)
class Instance:
    """A MIG device. `attributes` are NVML's, by the suffix of their label (`memory` in MiB, `engines.copy` ...)."""

    profile: str
    uuid: str = ""
    files: tuple[str, ...] = ()
    attributes: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Card:
    """One GPU. `name` in full as the driver gives it, `mig` whether MIG is on (None: the card has none).

    `profiles` are the instance profiles that the card knows, `instances` the MIG devices that are there, in NVML's
    order; `pci_id` is the 16-bit device id, `uuid` empty where nobody asked a driver yet.
    """

    index: int
    name: str
    memory_bytes: int
    capability: tuple[int, int]
    mig: bool | None = None
    instances: tuple[Instance, ...] = ()
    profiles: tuple[str, ...] = ()
    uuid: str = ""
    minor: int | None = None
    model: GpuModel | None = None
    pci_id: int | None = None

    @property
    def id(self) -> str:
        """The UUID, or a stand-in that is as good for telling cards apart."""
        return self.uuid or f"GPU-{self.index}"

    @property
    def file(self) -> str:
        """The device file."""
        return device_files(self.index if self.minor is None else self.minor)[0]


@dataclass(frozen=True, slots=True)
class Node:
    """A node's cards in NVML's order. `imex_channels` are the channel device files that exist."""

    cards: tuple[Card, ...]
    imex_channels: frozenset[int] = frozenset()


def node_of(model: GpuModel, count: int, layouts: Mapping[int, Sequence[str]] | None = None) -> Node:
    """A node of equal cards out of the catalogue; `layouts` has the profiles of the cards that are in MIG mode."""
    cut = layouts or {}
    return Node(tuple(card_of(model, index, cut.get(index)) for index in range(count)))


def node_of_facts(facts: Facts) -> Node:
    """The node that a driver reported. A card that the catalogue does not know has no MIG profiles here."""
    return Node(tuple(_seen(gpu) for gpu in facts.gpus))


def card_of(model: GpuModel, index: int, layout: Sequence[str] | None) -> Card:
    """A card out of the catalogue; `layout` has the profiles of its instances, None where MIG is off."""
    return Card(
        index=index,
        name=model.driver_name,
        memory_bytes=model.memory_bytes,
        capability=model.compute_capability,
        mig=layout is not None if model.has_mig else None,
        instances=tuple(Instance(profile) for profile in layout or ()),
        profiles=tuple(profile.name for profile in model.profiles),
        model=model,
        pci_id=int(model.pci_ids[0], 16) if model.pci_ids else None,
    )


def _seen(gpu: GpuFacts) -> Card:
    found = find(gpu.model)
    model = None if isinstance(found, NotFound) else found
    instances = tuple(Instance(i.profile, i.uuid, instance_files(gpu.minor, i)) for i in gpu.instances)
    return Card(
        index=gpu.index,
        name=full_name(gpu.model),
        memory_bytes=gpu.memory_bytes,
        capability=model.compute_capability if model else (0, 0),
        mig=gpu.mig_enabled if model is None or model.has_mig else None,
        instances=instances,
        profiles=tuple(profile.name for profile in model.profiles) if model else (),
        uuid=gpu.uuid,
        minor=gpu.minor,
        model=model,
        pci_id=int(model.pci_ids[0], 16) if model and model.pci_ids else None,
    )
