"""A node's GPUs as Slurm has them, card by card: which device files belong together, and what is cut from what.

Read from what the node offers, not from the lines that say so. Which model a card is, is not asked here.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from hybridgpu.model.facts import Facts
from hybridgpu.model.naming import capability_number, card_minor, card_of_capability, parts_of_card
from hybridgpu.model.offer import SlurmDevice, SlurmOffer
from hybridgpu.model.site import KUBERNETES_CARDS

_PROFILE = re.compile(r"(?:^|[_.:-])([0-9]+g\.[0-9]+gb(?:[+-][a-z]+(?:\.all)?)?)$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class SeenInstance:
    """A MIG instance: its profile, Slurm's type of it; `prefix` is what the type says before the profile.

    `parts`: it takes one of so many equal parts of the card's memory, as its capability file shows; 0 where none does.
    """

    profile: str
    type: str
    prefix: str = ""
    parts: int = 0


@dataclass(frozen=True, slots=True)
class SeenCard:
    """One card that Slurm has a part of. `minor` is None where AutoDetect finds it.

    `type` is that of a whole GPU (None: untyped, or cut); `instances` are what is cut from it, () for a whole one.
    """

    minor: int | None
    type: str | None
    instances: tuple[SeenInstance, ...] = ()


@dataclass(frozen=True, slots=True)
class SlurmView:
    """A node's cards in Slurm, by minor number where it is known.

    `loose` are profiles of instances that AutoDetect finds, on cards nobody knows. `shared` is mps, shard or None, and
    `shares` how much of it each device holds. `kept` are the minors of cards that hybridgpu keeps for Kubernetes.
    `foreign` is a device file that no NVIDIA card has; `unknown` a type of an instance whose profile is not known.
    """

    cards: tuple[SeenCard, ...]
    loose: tuple[SeenInstance, ...] = ()
    shared: str | None = None
    shares: tuple[int, ...] = ()
    kept: tuple[int, ...] = ()
    foreign: str | None = None
    unknown: str | None = None


def view(offer: SlurmOffer, facts: Facts | None) -> SlurmView:
    """The cards behind an offer. Facts tell the profile of an instance whose type does not."""
    whole: list[SeenCard] = []
    cut: dict[int, list[SeenInstance]] = {}
    loose: list[SeenInstance] = []
    foreign: str | None = None
    unknown: str | None = None
    for device in offer.gpus:
        place = _place(device, facts)
        if place is None:
            foreign = foreign or ",".join(device.files)
            continue
        minor, capability = place
        if capability is None and not (minor is None and _profile(device.type)):
            whole.append(SeenCard(minor, device.type))
            continue
        instance = _instance(device, minor, capability, facts)
        if instance is None:
            unknown = unknown or device.type or "without a type"
        elif minor is None:
            loose.append(instance)
        else:
            cut.setdefault(minor, []).append(instance)
    cards = [*whole, *(SeenCard(minor, None, tuple(instances)) for minor, instances in cut.items())]
    return SlurmView(
        cards=tuple(sorted(cards, key=lambda card: -1 if card.minor is None else card.minor)),
        loose=tuple(loose),
        shared=offer.sharing,
        shares=tuple(device.shares for device in offer.gpus),
        kept=tuple(_kept(offer)),
        foreign=foreign,
        unknown=unknown,
    )


def usual(counts: Counter[int]) -> int:
    """The share that most devices hold, of several alike the larger."""
    return max(counts, key=lambda share: (counts[share], share), default=0)


def _place(device: SlurmDevice, facts: Facts | None) -> tuple[int | None, int | None] | None:
    """Minor number of the card and number of the last capability file, None each where there is none; None for files
    that are no NVIDIA card's."""
    if not device.files:
        return None, None
    numbers = [number for file in device.files if (number := capability_number(file)) is not None]
    cards = [minor for file in device.files if (minor := card_minor(file)) is not None]
    if len(numbers) + len(cards) < len(device.files) or len(cards) > 1:
        return None
    capability = numbers[-1] if numbers else None
    if cards:
        return cards[0], capability
    return (_card_of(capability, facts), capability) if capability is not None else None


def _card_of(capability: int, facts: Facts | None) -> int:
    """The card of a capability file, by the driver's usual numbering where facts do not tell."""
    for gpu in facts.gpus if facts else ():
        if any(capability in (i.gi_minor, i.ci_minor) for i in gpu.instances):
            return gpu.minor
    return card_of_capability(capability)


def _instance(
    device: SlurmDevice, minor: int | None, capability: int | None, facts: Facts | None
) -> SeenInstance | None:
    kind = device.type or ""
    profile = _profile(kind)
    if profile:
        parts = 0 if facts or minor is None or capability is None else parts_of_card(minor, capability)
        return SeenInstance(profile, kind, kind[: -len(profile)].rstrip("_.:-"), parts)
    for gpu in facts.gpus if facts else ():
        for instance in gpu.instances:
            if capability is not None and capability in (instance.gi_minor, instance.ci_minor):
                return SeenInstance(instance.profile, kind)
    return None


def _profile(kind: str | None) -> str | None:
    found = _PROFILE.search(kind or "")
    return found[1].lower() if found else None


def _kept(offer: SlurmOffer) -> Iterator[int]:
    for other in offer.others:
        if other.name == KUBERNETES_CARDS:
            yield from (minor for file in other.files if (minor := card_minor(file)) is not None)
