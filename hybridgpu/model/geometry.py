"""Which MIG layouts a card can hold, and what they leave over.

A layout is legal if its instances have places that do not overlap, no profile exceeds its count and the media engines
suffice; the compute slices then suffice by themselves (MIG user guide). Pure arithmetic over the catalogue's tables.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from hybridgpu.model.gpu import GpuModel, Instance, Placement, Profile
from hybridgpu.model.misfit import Misfit, explain
from hybridgpu.model.packing import engines_exceeded, fits, largest_first

__all__ = ["Layout", "Leftover", "Misfit", "arrange", "can_add", "holds", "layouts", "leftover", "misplaced"]


@dataclass(frozen=True, slots=True)
class Layout:
    """Instances that one card holds together, in the order of creation."""

    instances: tuple[Instance, ...]

    @property
    def profiles(self) -> dict[str, int]:
        """How many of each profile, largest profile first."""
        return dict(Counter(instance.profile.name for instance in self.instances))


@dataclass(frozen=True, slots=True)
class Leftover:
    """What a layout does not use: how many compute slices, and which memory slices."""

    compute: int
    memory: tuple[int, ...]


def arrange(model: GpuModel, wanted: Mapping[str, int]) -> tuple[Instance, ...] | Misfit:
    """The instances of a layout in the order of creation, or why the card cannot hold it.

    `wanted` maps profile names to counts (0: none). Largest profile first, each at the lowest free start that still
    lets the rest fit; ids are the ones the driver is expected to give.
    """
    instances = _instances(model, wanted)
    return explain(model, wanted) if instances is None else instances


def holds(model: GpuModel, wanted: Mapping[str, int]) -> bool:
    """Whether the card can hold the layout: `arrange` without the reason, which costs far more than the answer."""
    return _instances(model, wanted) is not None


def _instances(model: GpuModel, wanted: Mapping[str, int]) -> tuple[Instance, ...] | None:
    profiles: list[Profile] = []
    for name, count in wanted.items():
        profile = model.profile(name)
        if profile is None or not 0 <= count <= profile.max_count:
            return None
        profiles += [profile] * count
    return fits(model, profiles) if profiles else ()


@cache
def layouts(model: GpuModel, attributes: bool = False) -> tuple[Layout, ...]:
    """Every multiset of profiles to which nothing can be added in any arrangement, with its places; largest first.

    Of plain profiles only, unless `attributes` asks for +me, -me, +gfx and +me.all too. Empty for a card without MIG.
    """
    profiles = sorted((p for p in model.profiles if attributes or not p.attribute), key=largest_first)
    legal = _legal(model, profiles)
    maximal = (counts for counts in legal if not any(_plus(counts, i) in legal for i in range(len(profiles))))
    return tuple(Layout(legal[counts]) for counts in sorted(maximal, reverse=True) if legal[counts])


def leftover(model: GpuModel, instances: Iterable[Instance]) -> Leftover:
    """The slices of the card that these instances do not take."""
    instances = tuple(instances)
    taken = {s for i in instances for s in range(i.placement.start, i.placement.start + i.placement.size)}
    compute = model.compute_slices - sum(instance.profile.compute for instance in instances)
    return Leftover(compute, tuple(s for s in range(model.slices) if s not in taken))


def can_add(model: GpuModel, instances: Iterable[Instance]) -> tuple[Profile, ...]:
    """The profiles one more of which fits beside these instances without moving any of them."""
    instances = tuple(instances)
    present = [instance.profile for instance in instances]
    return tuple(
        profile
        for profile in model.profiles
        if present.count(profile) < profile.max_count
        and engines_exceeded(model, [*present, profile]) is None
        and any(not any(place.overlaps(i.placement) for i in instances) for place in profile.placements)
    )


def misplaced(model: GpuModel, name: str, placement: Placement) -> str | None:
    """Why no instance of a profile can lie there, in words. A compute instance (`1c.3g.40gb`) lies where its GPU
    instance does.

    A profile is held against its places only where those were seen on the model: an unknown one may be new.
    """
    start, size = placement.start, placement.size
    if model.slices and start + size > model.slices:
        return f"ends at memory slice {start + size - 1}; {model.name} has 0 to {model.slices - 1}"
    profile = model.profile(re.sub(r"^[0-9]+c\.", "", name))
    if profile is None or not profile.confirmed or placement in profile.placements:
        return None
    starts = ", ".join(map(str, profile.starts))
    return f"is impossible for {name} on {model.name}; allowed: start {starts}, size {profile.size}"


def _legal(model: GpuModel, profiles: Sequence[Profile]) -> dict[tuple[int, ...], tuple[Instance, ...]]:
    """Every legal multiset, as counts per profile, with its arrangement.

    Grown one instance at a time: what is legal stays so when an instance is taken away.
    """
    empty = (0,) * len(profiles)
    legal: dict[tuple[int, ...], tuple[Instance, ...]] = {empty: ()}
    edge = [empty]
    while edge:
        counts = edge.pop()
        last = max((i for i, count in enumerate(counts) if count), default=0)
        for more in (_plus(counts, i) for i in range(last, len(profiles))):
            instances = fits(model, [p for p, n in zip(profiles, more, strict=True) for _ in range(n)])
            if instances is not None:
                legal[more] = instances
                edge.append(more)
    return legal


def _plus(counts: tuple[int, ...], at: int) -> tuple[int, ...]:
    return (*counts[:at], counts[at] + 1, *counts[at + 1 :])
