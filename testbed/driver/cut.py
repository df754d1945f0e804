"""Cards cut into MIG instances, by pynvml and at given places: what stands in tests before ours looks at a machine."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

import pynvml

Cut = tuple[tuple[str, int], ...]
"""What a card is cut into: profile and the memory slice it begins at, in the order of creation."""


def cut(card: int, wanted: Cut) -> None:
    """Turns MIG on and creates the instances, a compute instance over each; where the card is idle."""
    device = pynvml.nvmlDeviceGetHandleByIndex(card)
    pynvml.nvmlDeviceSetMigMode(device, 1)
    ids = dict(_profiles(device))
    for profile, start in wanted:
        number, size, slices = ids[profile]
        place = pynvml.c_nvmlGpuInstancePlacement_t(start, size)
        gi = pynvml.nvmlDeviceCreateGpuInstanceWithPlacement(device, number, ctypes.byref(place))
        pynvml.nvmlGpuInstanceCreateComputeInstance(gi, _spanning(gi, slices))


def _profiles(device: Any) -> Iterator[tuple[str, tuple[int, int, int]]]:  # noqa: ANN401 - pynvml is not typed
    """Each profile by name: its id, its size in memory slices, its compute slices."""
    for kind in range(pynvml.NVML_GPU_INSTANCE_PROFILE_COUNT):
        try:
            info = pynvml.nvmlDeviceGetGpuInstanceProfileInfoV(device, kind)
        except pynvml.NVMLError:
            continue
        count = ctypes.c_uint(0)
        pynvml.nvmlDeviceGetGpuInstancePossiblePlacements(device, info.id, None, ctypes.byref(count))
        places = (pynvml.c_nvmlGpuInstancePlacement_t * count.value)()
        pynvml.nvmlDeviceGetGpuInstancePossiblePlacements(device, info.id, places, ctypes.byref(count))
        yield str(info.name).removeprefix("MIG "), (info.id, places[0].size, info.sliceCount)


def _spanning(gi: Any, slices: int) -> int:  # noqa: ANN401
    """The id of the compute instance profile that takes all of the GPU instance."""
    for kind in range(pynvml.NVML_COMPUTE_INSTANCE_PROFILE_COUNT):
        try:
            info = pynvml.nvmlGpuInstanceGetComputeInstanceProfileInfoV(gi, kind, 0)
        except pynvml.NVMLError:
            continue
        if info.sliceCount == slices:
            return int(info.id)
    raise AssertionError(f"no compute instance of {slices} slices")
