"""The MIG configs that mig-manager makes by itself for a node's cards, where no file of one's own takes their place.

Source: mig-parted v0.15.0 pkg/mig/builder; GPU Operator v26.3 assets/state-mig-manager.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from hybridgpu.model.geometry import Misfit, arrange
from hybridgpu.model.gpu import GpuModel

DISABLED, ENABLED, BALANCED = "all-disabled", "all-enabled", "all-balanced"


def cuts(model: GpuModel) -> Iterator[tuple[str, dict[str, int]]]:
    """`all-PROFILE`, as many as a card holds, and `all-balanced`: two 1g, a 2g, and a 3g where there are 7 slices.

    A balanced cut that the card cannot hold is left out: mig-parted would clear the card and fail.
    """
    for profile in model.profiles:
        yield f"all-{profile.name.replace('+', '.')}", {profile.name: profile.max_count}
    balanced = {1: 2, 2: 1, 3: 1} if model.compute_slices == 7 else {1: 2, 2: 1}
    plain = [profile for profile in model.profiles if not profile.attribute]
    chosen = {
        slices: max((p for p in plain if p.compute == slices), key=lambda p: p.max_count, default=None)
        for slices in balanced
    }
    cut = {profile.name: balanced[slices] for slices, profile in chosen.items() if profile}
    if all(chosen.values()) and not isinstance(arrange(model, cut), Misfit):
        yield BALANCED, cut


def names(models: Iterable[GpuModel]) -> frozenset[str]:
    """The names of the configs for cards of these models."""
    return frozenset((DISABLED, ENABLED, BALANCED, *(name for model in models for name, _ in cuts(model))))


def layout(name: str, model: GpuModel) -> tuple[str, ...] | None:
    """The profiles of a card under the config, None where MIG is off. Raises KeyError for a name it does not have."""
    if name == DISABLED or not model.has_mig:
        return None
    return () if name == ENABLED else tuple(Counter(dict(cuts(model))[name]).elements())
