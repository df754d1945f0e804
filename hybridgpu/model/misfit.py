"""Why a card cannot hold a MIG layout, as one sentence a person can act on.

Says everything that is wrong in one go, names every profile asked for, and what would fit. Finding places is
packing's business.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product

from hybridgpu.model.gpu import GpuModel, Profile
from hybridgpu.model.packing import engines_exceeded, fits, largest_first
from hybridgpu.model.spelling import nearest_words

_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Misfit:
    """A layout that the card cannot hold: a sentence that says why, and the profiles likely meant by unknown names."""

    reason: str
    nearest: tuple[str, ...] = ()


def explain(model: GpuModel, wanted: Mapping[str, int]) -> Misfit:
    """Why `wanted` (profile name to count) has no place on this model; only called where that is so."""
    asked = " + ".join(f"{count} x {name}" for name, count in wanted.items())
    if not model.has_mig:
        why = f"MIG is not possible here: {model.notes}" if model.notes else "it has no MIG"
        return Misfit(f"{asked} cannot be cut from {model.name}: {why}")
    unknown = [name for name in wanted if model.profile(name) is None]
    if unknown:
        return _unknown(model, asked, unknown)
    if any(count < 0 for count in wanted.values()):
        return Misfit(f"{asked}: the number of instances cannot be negative")
    counts = {profile: count for profile in model.profiles if (count := wanted.get(profile.name, 0))}
    why = "; ".join(_reasons(model, counts))
    options = " or ".join(_shown(part) for part in _parts_that_fit(model, counts))
    return Misfit(f"{asked} does not fit on {model.name}: {why}; what would fit of it: {options}")


def _unknown(model: GpuModel, asked: str, unknown: list[str]) -> Misfit:
    nearest = tuple(dict.fromkeys(near for name in unknown for near in _nearest(model, name)))
    names = ", ".join(profile.name for profile in model.profiles)
    return Misfit(f"{asked}: {model.name} has no profile {' or '.join(unknown)}; its profiles are {names}", nearest)


def _nearest(model: GpuModel, name: str) -> tuple[str, ...]:
    """Profiles of the same compute slices and attribute first (another card's name), then those spelled alike."""
    match = re.fullmatch(r"(\d+)g\.\d+gb(|[+-].*)", name)
    same = [p.name for p in model.profiles if match and (str(p.compute), p.attribute) == match.groups()]
    alike = nearest_words(name, (profile.name for profile in model.profiles), _SHOWN)
    return tuple(dict.fromkeys([*same, *alike]))[:_SHOWN]


def _reasons(model: GpuModel, counts: Mapping[Profile, int]) -> Iterator[str]:
    too_many = [profile for profile, count in counts.items() if count > profile.max_count]
    for profile in too_many:
        yield f"a card holds at most {profile.max_count} of {profile.name} ({_place(profile)})"
    within = [p for p, count in counts.items() for _ in range(min(count, p.max_count))]
    engines = engines_exceeded(model, within)
    if engines:
        yield engines
    memory = sum(profile.size * count for profile, count in counts.items())
    if memory > model.slices:
        each = ", ".join(f"{profile.name} {profile.size}" for profile in counts)
        yield f"together they take {memory} of {model.slices} memory slices ({each})"
    elif not engines and not too_many:
        yield "their places overlap: " + "; ".join(f"{profile.name} {_place(profile)}" for profile in counts)


def _parts_that_fit(model: GpuModel, counts: Mapping[Profile, int]) -> list[Counter[Profile]]:
    """The largest parts of this multiset that a card holds, most memory first; only the first few."""
    profiles = sorted(counts, key=largest_first)
    ranges = [range(min(counts[profile], profile.max_count) + 1) for profile in profiles]
    parts = [Counter(dict(zip(profiles, numbers, strict=True))) for numbers in product(*ranges)]
    parts.sort(key=lambda part: (sum(p.size * n for p, n in part.items()), part.total()), reverse=True)
    found: list[Counter[Profile]] = []
    for part in parts:
        if any(part <= other for other in found):
            continue
        if fits(model, list(part.elements())) is not None:
            found.append(part)
            if len(found) == _SHOWN:
                break
    return found


def _shown(part: Counter[Profile]) -> str:
    return " + ".join(f"{count} x {profile.name}" for profile, count in part.items() if count)


def _place(profile: Profile) -> str:
    first, last = profile.starts[0], profile.starts[-1]
    if len(profile.starts) > 2 and last - first == len(profile.starts) - 1:
        starts = f"{first} to {last}"
    else:
        starts = " or ".join(str(start) for start in profile.starts)
    return f"{profile.size} memory slice{'s' if profile.size > 1 else ''} from slice {starts}"
