"""The names for cutting cards: how each is called over the world, and what it must answer there. See calls.py."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import pynvml as nv

from testbed.driver import library
from tests.driver.calls import Call, answers, filled, handle_of, listed, raw
from tests.driver.world import CUT, PROFILE_1G, PROFILE_3G, SPANNING_3G, WHOLE, Untyped, World, fields, number

A100_3G = {
    "id": 9,
    "isP2pSupported": 0,
    "sliceCount": 3,
    "instanceCount": 2,
    "multiprocessorCount": 42,
    "copyEngineCount": 3,
    "decoderCount": 2,
    "encoderCount": 0,
    "jpegCount": 0,
    "ofaCount": 0,
    "memorySizeMB": 40576,
}
SHARED = {
    "sharedCopyEngineCount": 3,
    "sharedDecoderCount": 2,
    "sharedEncoderCount": 0,
    "sharedJpegCount": 0,
    "sharedOfaCount": 0,
}
COMPUTE_2C = {"id": 1, "sliceCount": 2, "instanceCount": 1, "multiprocessorCount": 28, **SHARED}


class ComputeInstanceInfoV1(ctypes.Structure):
    _fields_ = [
        ("device", nv.c_nvmlDevice_t),
        ("gpuInstance", nv.c_nvmlGpuInstance_t),
        ("id", ctypes.c_uint),
        ("profileId", ctypes.c_uint),
    ]


def _placements(symbol: str, structure: Untyped, *arguments: Untyped) -> list[dict[str, Any]]:
    return [fields(place) for place in listed(symbol, structure, 8, *arguments)]


def _possible(symbol: str) -> Callable[[World], Untyped]:
    return lambda w: _placements(symbol, nv.c_nvmlGpuInstancePlacement_t, w.cards[WHOLE], PROFILE_3G)


def _profile(version: int) -> dict[str, Any]:
    return {"version": version, **A100_3G, "name": "MIG 3g.40gb"}


GPU_INSTANCES = [
    Call(
        "nvmlDeviceGetGpuInstanceProfileInfo",
        lambda w: fields(nv.nvmlDeviceGetGpuInstanceProfileInfo(w.cards[WHOLE], 2, version=1)),
        answers(A100_3G),
        WHOLE,
    ),
    Call(
        "nvmlDeviceGetGpuInstanceProfileInfoV",
        lambda w: fields(nv.nvmlDeviceGetGpuInstanceProfileInfo(w.cards[WHOLE], 2)),
        answers(_profile(nv.nvmlGpuInstanceProfileInfo_v2)),
        WHOLE,
    ),
    Call(
        "nvmlDeviceGetGpuInstanceProfileInfoByIdV",
        lambda w: fields(nv.nvmlDeviceGetGpuInstanceProfileInfoById(w.cards[WHOLE], PROFILE_3G)),
        answers(_profile(nv.nvmlGpuInstanceProfileInfo_v2)),
        WHOLE,
    ),
    *(
        Call(
            symbol,
            _possible(symbol),
            answers([{"start": 0, "size": 4}, {"start": 4, "size": 4}]),
            WHOLE,
        )
        for symbol in ("nvmlDeviceGetGpuInstancePossiblePlacements_v2", "nvmlDeviceGetGpuInstancePossiblePlacements")
    ),
    Call(
        "nvmlDeviceGetGpuInstanceRemainingCapacity",
        lambda w: nv.nvmlDeviceGetGpuInstanceRemainingCapacity(w.cards[CUT], PROFILE_1G),
        answers(2),
        CUT,
    ),
    Call(
        "nvmlDeviceGetGpuInstances",
        lambda w: [
            number(gi)
            for gi in listed("nvmlDeviceGetGpuInstances", nv.c_nvmlGpuInstance_t, 2, w.cards[CUT], PROFILE_3G)
        ],
        lambda w: [number(w.gi)],
        CUT,
    ),
    Call(
        "nvmlDeviceGetGpuInstanceById",
        lambda w: number(nv.nvmlDeviceGetGpuInstanceById(w.cards[CUT], 1)),
        lambda w: number(w.gi),
        CUT,
    ),
    Call(
        "nvmlGpuInstanceGetInfo",
        lambda w: fields(nv.nvmlGpuInstanceGetInfo(w.gi)),
        lambda w: {"device": number(w.cards[CUT]), "id": 1, "profileId": 9, "placement": {"start": 0, "size": 4}},
        CUT,
    ),
]

COMPUTE_INSTANCES = [
    Call(
        "nvmlGpuInstanceGetComputeInstanceProfileInfo",
        lambda w: fields(nv.nvmlGpuInstanceGetComputeInstanceProfileInfo(w.gi, 1, 0, version=1)),
        answers(COMPUTE_2C),
        CUT,
    ),
    Call(
        "nvmlGpuInstanceGetComputeInstanceProfileInfoV",
        lambda w: fields(nv.nvmlGpuInstanceGetComputeInstanceProfileInfo(w.gi, 1, 0)),
        answers({"version": nv.nvmlComputeInstanceProfileInfo_v2, **COMPUTE_2C, "name": "MIG 2c.3g.40gb"}),
        CUT,
    ),
    Call(
        "nvmlGpuInstanceGetComputeInstancePossiblePlacements",
        lambda w: _placements(
            "nvmlGpuInstanceGetComputeInstancePossiblePlacements", nv.c_nvmlComputeInstancePlacement_t, w.gi, 0
        ),
        answers([{"start": start, "size": 1} for start in range(3)]),
        CUT,
    ),
    Call(
        "nvmlGpuInstanceGetComputeInstanceRemainingCapacity",
        lambda w: nv.nvmlGpuInstanceGetComputeInstanceRemainingCapacity(w.gi, 0),
        answers(0),
        CUT,
    ),
    Call(
        "nvmlGpuInstanceGetComputeInstances",
        lambda w: [
            number(ci)
            for ci in listed("nvmlGpuInstanceGetComputeInstances", nv.c_nvmlComputeInstance_t, 3, w.gi, SPANNING_3G)
        ],
        lambda w: [number(w.ci)],
        CUT,
    ),
    Call(
        "nvmlGpuInstanceGetComputeInstanceById",
        lambda w: number(nv.nvmlGpuInstanceGetComputeInstanceById(w.gi, 0)),
        lambda w: number(w.ci),
        CUT,
    ),
    Call(
        "nvmlComputeInstanceGetInfo_v2",
        lambda w: fields(nv.nvmlComputeInstanceGetInfo(w.ci)),
        lambda w: {
            "device": number(w.cards[CUT]),
            "gpuInstance": number(w.gi),
            "id": 0,
            "profileId": 2,
            "placement": {"start": 0, "size": 3},
        },
        CUT,
    ),
    Call(
        "nvmlComputeInstanceGetInfo",
        lambda w: filled(ComputeInstanceInfoV1(), "nvmlComputeInstanceGetInfo", w.ci),
        lambda w: {"device": number(w.cards[CUT]), "gpuInstance": number(w.gi), "id": 0, "profileId": 2},
        CUT,
    ),
]

ATTRIBUTES = {
    "multiprocessorCount": 42,
    **SHARED,
    "gpuInstanceSliceCount": 3,
    "computeInstanceSliceCount": 3,
    "memorySizeMB": 40576,
}
MIG_DEVICES = [
    Call("nvmlDeviceIsMigDeviceHandle", lambda w: nv.nvmlDeviceIsMigDeviceHandle(w.mig).value, answers(1), CUT),
    Call("nvmlDeviceGetMaxMigDeviceCount", lambda w: nv.nvmlDeviceGetMaxMigDeviceCount(w.cards[CUT]), answers(7), CUT),
    Call(
        "nvmlDeviceGetMigDeviceHandleByIndex",
        lambda w: number(nv.nvmlDeviceGetMigDeviceHandleByIndex(w.cards[CUT], 0)),
        lambda w: number(w.mig),
        CUT,
    ),
    Call(
        "nvmlDeviceGetDeviceHandleFromMigDeviceHandle",
        lambda w: number(nv.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(w.mig)),
        handle_of(CUT),
        CUT,
    ),
    Call("nvmlDeviceGetGpuInstanceId", lambda w: nv.nvmlDeviceGetGpuInstanceId(w.mig), answers(1), CUT),
    Call("nvmlDeviceGetComputeInstanceId", lambda w: nv.nvmlDeviceGetComputeInstanceId(w.mig), answers(0), CUT),
    Call("nvmlDeviceGetAttributes_v2", lambda w: fields(nv.nvmlDeviceGetAttributes(w.mig)), answers(ATTRIBUTES), CUT),
    Call(
        "nvmlDeviceGetAttributes",
        lambda w: filled(nv.c_nvmlDeviceAttributes(), "nvmlDeviceGetAttributes", w.mig),
        answers(ATTRIBUTES),
        CUT,
    ),
]


def _cycle(world: World) -> tuple[int, int]:
    """Makes and takes away an instance, by every call for that; gives the ids the two ways of making it gave."""
    card = world.cards[CUT]
    place = ctypes.byref(nv.c_nvmlGpuInstancePlacement_t(5, 1))
    return (
        _fill(nv.nvmlDeviceCreateGpuInstance(card, PROFILE_1G)),
        _fill(nv.nvmlDeviceCreateGpuInstanceWithPlacement(card, PROFILE_1G, place)),
    )


def _fill(gi: Untyped) -> int:
    place = ctypes.byref(nv.c_nvmlComputeInstancePlacement_t(0, 1))
    try:
        made: int = nv.nvmlGpuInstanceGetInfo(gi).id
        ci = nv.nvmlGpuInstanceCreateComputeInstance(gi, 0)
        _destroy(nv.nvmlComputeInstanceDestroy, "nvmlComputeInstanceDestroy", ci)
        ci = nv.nvmlGpuInstanceCreateComputeInstanceWithPlacement(gi, 0, place)
        _destroy(nv.nvmlComputeInstanceDestroy, "nvmlComputeInstanceDestroy", ci)
        return made
    finally:
        _destroy(nv.nvmlGpuInstanceDestroy, "nvmlGpuInstanceDestroy", gi)


def _destroy(call: Callable[[Any], Any], symbol: str, handle: Untyped) -> None:
    """Destroy, and where that is made to fail once, again, so that the next test finds nothing left over."""
    try:
        call(handle)
    except nv.NVMLError:
        library.load().gpusim_faults(None)
        raw(symbol, handle)
        raise


CHANGES = [
    Call(symbol, _cycle, answers((12, 12)), CUT)
    for symbol in (
        "nvmlDeviceCreateGpuInstance",
        "nvmlDeviceCreateGpuInstanceWithPlacement",
        "nvmlGpuInstanceDestroy",
        "nvmlGpuInstanceCreateComputeInstance",
        "nvmlGpuInstanceCreateComputeInstanceWithPlacement",
        "nvmlComputeInstanceDestroy",
    )
]

MIG_CALLS = [*GPU_INSTANCES, *COMPUTE_INSTANCES, *MIG_DEVICES, *CHANGES]
