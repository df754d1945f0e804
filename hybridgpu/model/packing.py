"""Places for MIG instances on one card: the search itself, and the two limits that places do not show.

Knows counts and slices only. Why a layout cannot be had is misfit's business, which layouts there are geometry's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from hybridgpu.model.gpu import GpuModel, Instance, Placement, Profile


def fits(model: GpuModel, profiles: Sequence[Profile]) -> tuple[Instance, ...] | None:
    """The instances of this multiset of profiles in the order of creation, or None if no card can hold them.

    Largest profile first, each at the lowest free start that still lets the rest fit.
    """
    if any(count > profile.max_count for profile, count in Counter(profiles).items()):
        return None
    if engines_exceeded(model, profiles):
        return None
    return arrangement(model, profiles)


def arrangement(model: GpuModel, profiles: Iterable[Profile]) -> tuple[Instance, ...] | None:
    """As `fits`, by places alone: counts and media engines are not looked at."""
    ordered = sorted(profiles, key=largest_first)
    starts = _search(ordered, 0, 0)
    if starts is None:
        return None
    instances = []
    for profile, start in zip(ordered, starts, strict=True):
        placement = Placement(start, profile.size)
        instances.append(Instance(profile, placement, gpu_instance_id(model, placement)))
    return tuple(instances)


def gpu_instance_id(model: GpuModel, placement: Placement) -> int:
    """The GPU instance id the driver is expected to give an instance at this place.

    Ids number the halves of halves of a card: 0 the whole, 1 and 2 the halves, 3 to 6 the quarters, 7 to 14 the
    eighths, so that the place decides, not the order of creation (NVIDIA/open-gpu-kernel-modules, kmigmgr_ga100.c
    kmigmgrSwizzIdToSpan_GA100; published `nvidia-smi mig -lgi` outputs of A100, H100, A30 and RTX PRO 6000). On some
    cards the halves are the other way round (start 4 is id 1): only facts tell.
    """
    parts = model.slices // placement.size
    return parts - 1 + placement.start // placement.size


def engines_exceeded(model: GpuModel, profiles: Sequence[Profile]) -> str | None:
    """Which media engine these profiles together ask too many of, as a phrase, or None.

    A card has as many as the profile that takes it whole (MIG user guide, supported profiles). That a driver counts
    alike for every mixture of attributes was not seen: catalogue.unconfirmed tells the user.
    """
    whole = max(model.profiles, key=lambda profile: profile.size)
    if sum(profile.ofa for profile in profiles) > whole.ofa:
        takers = ", ".join(dict.fromkeys(profile.name for profile in profiles if profile.ofa))
        return f"only one instance can have the card's optical flow accelerator ({takers})"
    if sum(profile.decoders for profile in profiles) > whole.decoders:
        each = ", ".join(dict.fromkeys(f"{profile.name} {profile.decoders}" for profile in profiles))
        return f"the card's {whole.decoders} video decoders do not suffice (each instance takes its own: {each})"
    return None


def largest_first(profile: Profile) -> tuple[int, int, str]:
    """The order in which instances are created."""
    return -profile.size, -profile.compute, profile.name


def _search(ordered: Sequence[Profile], at: int, taken: int, after: int = -1) -> tuple[int, ...] | None:
    """Starts for `ordered[at:]`, where the bits of `taken` are occupied slices. Starts of equal profiles ascend."""
    if at == len(ordered):
        return ()
    profile = ordered[at]
    for start in profile.starts:
        mask = ((1 << profile.size) - 1) << start
        if start <= after or mask & taken:
            continue
        again = at + 1 < len(ordered) and ordered[at + 1] == profile
        rest = _search(ordered, at + 1, taken | mask, start if again else -1)
        if rest is not None:
            return (start, *rest)
    return None
