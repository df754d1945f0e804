"""Which MIG layouts a card can hold, and where their instances lie. Pure arithmetic over the catalogue's placements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hybridgpu.model.gpu import GpuModel, Instance, Placement, Profile
from hybridgpu.model.spelling import nearest_words


@dataclass(frozen=True, slots=True)
class Misfit:
    """A layout that the card cannot hold. `reason` is a sentence that names every profile asked for."""

    reason: str
    nearest: tuple[str, ...] = ()


def arrange(model: GpuModel, wanted: Mapping[str, int]) -> tuple[Instance, ...] | Misfit:
    """The instances of a layout in the order of creation, or why the card cannot hold it.

    `wanted` maps profile names to counts. Largest profile first, each at the lowest free start that still lets the
    rest fit. Ids are the ones the driver is expected to give: first free of a range per size.
    """
    profiles: list[Profile] = []
    for name, count in wanted.items():
        profile = model.profile(name)
        if profile is None:
            names = [p.name for p in model.profiles]
            return Misfit(f"{model.name} has no MIG profile {name!r}", nearest_words(name, names, 3))
        profiles += [profile] * count
    profiles.sort(key=lambda p: (-p.size, -p.compute, p.name))
    placed = _place(profiles, ())
    if placed is None:
        asked = " + ".join(f"{count} x {name}" for name, count in wanted.items())
        return Misfit(f"{asked} does not fit on {model.name}")
    return _numbered(model, placed)


def _place(
    rest: Sequence[Profile], placed: tuple[tuple[Profile, Placement], ...]
) -> tuple[tuple[Profile, Placement], ...] | None:
    if not rest:
        return placed
    for placement in rest[0].placements:
        if not any(placement.overlaps(other) for _, other in placed):
            done = _place(rest[1:], (*placed, (rest[0], placement)))
            if done is not None:
                return done
    return None


def _numbered(model: GpuModel, placed: Sequence[tuple[Profile, Placement]]) -> tuple[Instance, ...]:
    first = {1: 0, 2: 1, 4: 3, 8: 7}
    taken: dict[int, int] = {}
    instances = []
    for profile, placement in placed:
        share = model.slices // profile.size
        gi = taken.get(share, first[share])
        taken[share] = gi + 1
        instances.append(Instance(profile, placement, gi))
    return tuple(instances)
