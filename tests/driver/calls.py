"""Every name the library serves: how it is called over the world, and what it must answer there."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pynvml as nv

from testbed.driver import library
from tests.driver.world import (
    COMPUTES,
    CUT,
    DRAWS,
    GIB,
    HOPPER,
    SHARES,
    WHOLE,
    WITHOUT_MIG,
    Untyped,
    World,
    fields,
    number,
)  # fmt: skip

NO_INSTANCE = 0xFFFFFFFF
MIB = 2**20
PCI = {
    "domain": 1,
    "bus": 0x0F,
    "device": 0x1F,
    "pciDeviceId": 0x20B210DE,
    "pciSubSystemId": 0,
    "busId": "00000001:0F:1F.0",
}
CLUSTER = bytes.fromhex("00112233445566778899aabbccddeeff")
BUSY = [{"pid": COMPUTES, "usedGpuMemory": GIB, "gpuInstanceId": NO_INSTANCE, "computeInstanceId": NO_INSTANCE}]


@dataclass(frozen=True, slots=True)
class Call:
    """One name of the API; `on` is the card it touches, so that a broken card shows there."""

    symbol: str
    run: Callable[[World], Any]
    expected: Callable[[World], Any]
    on: int | None = None


def raw(symbol: str, *arguments: Untyped) -> None:
    """Call a name that pynvml has no function for, and raise what it answers as pynvml would."""
    code = getattr(library.load(), symbol)(*arguments)
    if code != 0:
        raise nv.NVMLError(code)


def filled(structure: Untyped, symbol: str, *arguments: Untyped) -> dict[str, Any]:
    """What a call writes into a structure, its last argument."""
    raw(symbol, *arguments, ctypes.byref(structure))
    return fields(structure)


def text(symbol: str, handle: Untyped, size: int) -> str:
    buffer = ctypes.create_string_buffer(size)
    raw(symbol, handle, buffer, ctypes.c_uint(size))
    return buffer.value.decode()


def unsigned(symbol: str, *arguments: Untyped) -> int:
    value = ctypes.c_uint()
    raw(symbol, *arguments, ctypes.byref(value))
    return value.value


def listed(symbol: str, element: Untyped, room: int, *arguments: Untyped) -> list[Any]:
    """What a call lists that takes a buffer and a count."""
    buffer, count = (element * room)(), ctypes.c_uint(room)
    raw(symbol, *arguments, buffer, ctypes.byref(count))
    return [buffer[i] for i in range(count.value)]


def processes(symbol: str, structure: Untyped, handle: Untyped) -> list[dict[str, Any]]:
    buffer, count = (structure * 8)(), ctypes.c_uint(8)
    raw(symbol, handle, ctypes.byref(count), buffer)
    return [fields(buffer[i]) for i in range(count.value)]


class ProcessInfoV1(ctypes.Structure):
    _fields_ = [("pid", ctypes.c_uint), ("usedGpuMemory", ctypes.c_ulonglong)]


class EventDataV1(ctypes.Structure):
    _fields_ = [
        ("device", nv.c_nvmlDevice_t),
        ("eventType", ctypes.c_ulonglong),
        ("eventData", ctypes.c_ulonglong),
    ]


def fabric(structure: Untyped, call: Callable[[Any, Any], Any], handle: Untyped) -> dict[str, Any]:
    call(handle, ctypes.byref(structure))
    return fields(structure)


def pci_of_old(symbol: str, *arguments: Untyped) -> dict[str, Any]:
    """The fields that the versions before the third have, and proof that nothing behind them is written."""
    structure = nv.nvmlPciInfo_v2_t()
    ctypes.memset(ctypes.byref(structure), 0xAA, ctypes.sizeof(structure))
    return filled(structure, symbol, *arguments)


UNTOUCHED = 0xAAAAAAAA
RESERVED = {f"reserved{i}": UNTOUCHED for i in range(4)}


def answers(value: Untyped) -> Callable[[World], Any]:
    return lambda _: value


def _event(wait: Callable[[Any], Any]) -> Callable[[World], Any]:
    """Registers the Hopper card with a set, lets an error happen on it, and waits."""

    def run(world: World) -> Untyped:
        events = nv.nvmlEventSetCreate()
        try:
            nv.nvmlDeviceRegisterEvents(world.cards[HOPPER], nv.nvmlEventTypeXidCriticalError, events)
            world.machine.event(WHOLE, 31)
            world.machine.event(HOPPER, 48)
            return fields(wait(events))
        finally:
            nv.nvmlEventSetFree(events)

    return run


def _registered(world: World) -> None:
    events = nv.nvmlEventSetCreate()
    try:
        nv.nvmlDeviceRegisterEvents(world.cards[WHOLE], nv.nvmlEventTypeXidCriticalError, events)
    finally:
        nv.nvmlEventSetFree(events)


def _waited_v1(events: Untyped) -> EventDataV1:
    data = EventDataV1()
    raw("nvmlEventSetWait", events, ctypes.byref(data), ctypes.c_uint(1000))
    return data


def initialise(symbol: str) -> None:
    raw(symbol)
    raw("nvmlShutdown")


def _shut(_: World) -> None:
    """Shut down once more than is held; where that is made to fail, again."""
    raw("nvmlInit_v2")
    try:
        nv.nvmlShutdown()
    except nv.NVMLError:
        library.load().gpusim_faults(None)
        raw("nvmlShutdown")
        raise


SYSTEM = [
    Call("nvmlInitWithFlags", lambda _: (nv.nvmlInit(), nv.nvmlShutdown()), answers((None, None))),
    Call("nvmlInit_v2", lambda _: initialise("nvmlInit_v2"), answers(None)),
    Call("nvmlInit", lambda _: initialise("nvmlInit"), answers(None)),
    Call("nvmlShutdown", _shut, answers(None)),
    Call("nvmlErrorString", lambda _: nv.nvmlErrorString(19), answers("In use by another client")),
    Call("nvmlSystemGetDriverVersion", lambda _: nv.nvmlSystemGetDriverVersion(), answers("550.54.15")),
    Call("nvmlSystemGetNVMLVersion", lambda _: nv.nvmlSystemGetNVMLVersion(), answers("12.550.54.15")),
    Call("nvmlSystemGetCudaDriverVersion", lambda _: nv.nvmlSystemGetCudaDriverVersion(), answers(12040)),
    Call("nvmlSystemGetCudaDriverVersion_v2", lambda _: nv.nvmlSystemGetCudaDriverVersion_v2(), answers(12040)),
    Call("nvmlSystemGetProcessName", lambda _: bool(nv.nvmlSystemGetProcessName(1)), answers(True)),
    Call("nvmlGetExcludedDeviceCount", lambda _: nv.nvmlGetExcludedDeviceCount(), answers(0)),
    Call("nvmlDeviceGetCount_v2", lambda _: nv.nvmlDeviceGetCount(), answers(4)),
    Call("nvmlDeviceGetCount", lambda _: unsigned("nvmlDeviceGetCount"), answers(4)),
]


def _handle(symbol: str, argument: Untyped) -> Callable[[World], int]:
    def run(_: World) -> int:
        device = nv.c_nvmlDevice_t()
        raw(symbol, argument, ctypes.byref(device))
        return number(device)

    return run


def handle_of(index: int) -> Callable[[World], int]:
    return lambda world: number(world.cards[index])


UUID_OF_CUT = "GPU-11111111-2222-3333-4444-555555555555"
HANDLES = [
    Call("nvmlDeviceGetHandleByIndex_v2", lambda _: number(nv.nvmlDeviceGetHandleByIndex(1)), handle_of(WHOLE), WHOLE),
    Call("nvmlDeviceGetHandleByIndex", _handle("nvmlDeviceGetHandleByIndex", 1), handle_of(WHOLE), WHOLE),
    Call(
        "nvmlDeviceGetHandleByPciBusId_v2",
        lambda _: number(nv.nvmlDeviceGetHandleByPciBusId("0001:0F:1f.0")),
        handle_of(WHOLE),
        WHOLE,
    ),
    Call("nvmlDeviceGetHandleByPciBusId", _handle("nvmlDeviceGetHandleByPciBusId", b"07:00.0"), handle_of(CUT), CUT),
    Call(
        "nvmlDeviceGetHandleBySerial",
        lambda _: number(nv.nvmlDeviceGetHandleBySerial("1650522003820")),
        handle_of(CUT),
        CUT,
    ),
    Call("nvmlDeviceGetHandleByUUID", lambda _: number(nv.nvmlDeviceGetHandleByUUID(UUID_OF_CUT)), handle_of(CUT), CUT),
    Call(
        "nvmlDeviceGetHandleByUUIDV",
        lambda _: number(nv.nvmlDeviceGetHandleByUUIDV(UUID_OF_CUT.encode(), nv.NVML_UUID_TYPE_ASCII)),
        handle_of(CUT),
        CUT,
    ),
]

DEVICE = [
    Call("nvmlDeviceGetName", lambda w: nv.nvmlDeviceGetName(w.mig), answers("NVIDIA A100-SXM4-80GB MIG 3g.40gb"), CUT),
    Call("nvmlDeviceGetUUID", lambda w: nv.nvmlDeviceGetUUID(w.cards[CUT]), answers(UUID_OF_CUT), CUT),
    Call("nvmlDeviceGetIndex", lambda w: nv.nvmlDeviceGetIndex(w.cards[HOPPER]), answers(HOPPER), HOPPER),
    Call("nvmlDeviceGetMinorNumber", lambda w: nv.nvmlDeviceGetMinorNumber(w.cards[CUT]), answers(3), CUT),
    Call("nvmlDeviceGetSerial", lambda w: nv.nvmlDeviceGetSerial(w.cards[CUT]), answers("1650522003820"), CUT),
    Call(
        "nvmlDeviceGetCudaComputeCapability",
        lambda w: nv.nvmlDeviceGetCudaComputeCapability(w.cards[WITHOUT_MIG]),
        answers((7, 5)),
        WITHOUT_MIG,
    ),
    Call(
        "nvmlDeviceGetArchitecture",
        lambda w: nv.nvmlDeviceGetArchitecture(w.mig),
        answers(nv.NVML_DEVICE_ARCH_AMPERE),
        CUT,
    ),
    Call(
        "nvmlDeviceGetBrand",
        lambda w: nv.nvmlDeviceGetBrand(w.cards[WITHOUT_MIG]),
        answers(nv.NVML_BRAND_TESLA),
        WITHOUT_MIG,
    ),
    Call(
        "nvmlDeviceGetVirtualizationMode", lambda w: nv.nvmlDeviceGetVirtualizationMode(w.cards[CUT]), answers(0), CUT
    ),
    Call(
        "nvmlDeviceGetMemoryInfo",
        lambda w: fields(nv.nvmlDeviceGetMemoryInfo(w.mig)),
        answers({"total": 40576 * MIB, "free": 40576 * MIB - GIB, "used": GIB}),
        CUT,
    ),
    Call(
        "nvmlDeviceGetMemoryInfo_v2",
        lambda w: fields(nv.nvmlDeviceGetMemoryInfo(w.cards[WHOLE], nv.nvmlMemory_v2)),
        answers({"version": nv.nvmlMemory_v2, "total": 80 * GIB, "reserved": 0, "free": 77 * GIB, "used": 3 * GIB}),
        WHOLE,
    ),
    Call("nvmlDeviceGetAddressingMode", lambda w: nv.nvmlDeviceGetAddressingMode(w.cards[HOPPER]), answers(1), HOPPER),
    Call(
        "nvmlDeviceGetPciInfo_v3",
        lambda w: fields(nv.nvmlDeviceGetPciInfo(w.cards[WHOLE])),
        answers({"busIdLegacy": "0001:0F:1F.0", **PCI}),
        WHOLE,
    ),
    Call(
        "nvmlDeviceGetPciInfo_v2",
        lambda w: pci_of_old("nvmlDeviceGetPciInfo_v2", w.cards[WHOLE]),
        answers({**PCI, "busId": "0001:0F:1F.0", **RESERVED}),
        WHOLE,
    ),
    Call(
        "nvmlDeviceGetPciInfo",
        lambda w: pci_of_old("nvmlDeviceGetPciInfo", w.cards[WHOLE]),
        answers({**PCI, "busId": "0001:0F:1F.0", "pciSubSystemId": UNTOUCHED, **RESERVED}),
        WHOLE,
    ),
    Call(
        "nvmlDeviceGetPciInfoExt",
        lambda w: filled(
            nv.nvmlPciInfoExt_v1_t(version=nv.nvmlPciInfoExt_v1), "nvmlDeviceGetPciInfoExt", w.cards[WHOLE]
        ),
        answers({"version": nv.nvmlPciInfoExt_v1, **PCI, "baseClass": 3, "subClass": 2}),
        WHOLE,
    ),
]

PLACE = [
    Call(
        "nvmlDeviceGetCpuAffinity", lambda w: list(nv.nvmlDeviceGetCpuAffinity(w.cards[CUT], 2)), answers([3, 1]), CUT
    ),
    Call(
        "nvmlDeviceGetCpuAffinityWithinScope",
        lambda w: list(nv.nvmlDeviceGetCpuAffinityWithinScope(w.cards[WHOLE], 2, 1)),
        answers([15, 0]),
        WHOLE,
    ),
    Call(
        "nvmlDeviceGetMemoryAffinity",
        lambda w: list(nv.nvmlDeviceGetMemoryAffinity(w.cards[CUT], 1, 0)),
        answers([2]),
        CUT,
    ),
    Call(
        "nvmlDeviceGetTopologyCommonAncestor",
        lambda w: [nv.nvmlDeviceGetTopologyCommonAncestor(w.cards[CUT], other) for other in w.cards],
        answers([0, 40, 50, 50]),
        CUT,
    ),
    Call(
        "nvmlDeviceGetTopologyNearestGpus",
        lambda w: [number(card) for card in nv.nvmlDeviceGetTopologyNearestGpus(w.cards[CUT], nv.NVML_TOPOLOGY_NODE)],
        lambda w: [number(w.cards[WHOLE])],
        CUT,
    ),
    Call(
        "nvmlDeviceGetNvLinkState",
        lambda w: [nv.nvmlDeviceGetNvLinkState(w.cards[WHOLE], i) for i in range(3)],
        answers([1, 1, 1]),
        WHOLE,
    ),
    Call(
        "nvmlDeviceGetNvLinkRemoteDeviceType",
        lambda w: [nv.nvmlDeviceGetNvLinkRemoteDeviceType(w.cards[WHOLE], i) for i in range(3)],
        answers([0, 0, 2]),
        WHOLE,
    ),
    Call(
        "nvmlDeviceGetNvLinkRemotePciInfo_v2",
        lambda w: fields(nv.nvmlDeviceGetNvLinkRemotePciInfo(w.cards[HOPPER], 1)),
        answers({"busIdLegacy": "0001:0F:1F.0", **PCI}),
        HOPPER,
    ),
    Call(
        "nvmlDeviceGetNvLinkRemotePciInfo",
        lambda w: pci_of_old("nvmlDeviceGetNvLinkRemotePciInfo", w.cards[HOPPER], ctypes.c_uint(0)),
        answers({**PCI, "busId": "0001:0F:1F.0", "pciSubSystemId": UNTOUCHED, **RESERVED}),
        HOPPER,
    ),
    Call(
        "nvmlDeviceGetGpuFabricInfo",
        lambda w: fabric(nv.c_nvmlGpuFabricInfo_t(), nv.nvmlDeviceGetGpuFabricInfo, w.cards[HOPPER]),
        answers({"clusterUuid": CLUSTER, "status": 0, "cliqueId": 7, "state": 3}),
        HOPPER,
    ),
    Call(
        "nvmlDeviceGetGpuFabricInfoV",
        lambda w: [
            fabric(structure, nv.nvmlDeviceGetGpuFabricInfoV, w.cards[HOPPER])
            for structure in (nv.c_nvmlGpuFabricInfo_v2_t(), nv.c_nvmlGpuFabricInfo_v3_t())
        ],
        answers(
            [
                {
                    "version": version,
                    "clusterUuid": CLUSTER,
                    "status": 0,
                    "cliqueId": 7,
                    "state": 3,
                    "healthMask": 0,
                    **more,
                }
                for version, more in ((nv.nvmlGpuFabricInfo_v2, {}), (nv.nvmlGpuFabricInfo_v3, {"healthSummary": 0}))
            ]
        ),
        HOPPER,
    ),
]

MODES = [
    Call("nvmlDeviceGetMigMode", lambda w: nv.nvmlDeviceGetMigMode(w.cards[CUT]), answers([1, 1]), CUT),
    Call("nvmlDeviceSetMigMode", lambda w: nv.nvmlDeviceSetMigMode(w.cards[CUT], 1), answers(0), CUT),
    Call("nvmlDeviceGetComputeMode", lambda w: nv.nvmlDeviceGetComputeMode(w.cards[WHOLE]), answers(0), WHOLE),
    Call("nvmlDeviceSetComputeMode", lambda w: nv.nvmlDeviceSetComputeMode(w.cards[WHOLE], 0), answers(None), WHOLE),
    Call("nvmlDeviceGetPersistenceMode", lambda w: nv.nvmlDeviceGetPersistenceMode(w.cards[WHOLE]), answers(0), WHOLE),
    Call(
        "nvmlDeviceSetPersistenceMode",
        lambda w: nv.nvmlDeviceSetPersistenceMode(w.cards[WHOLE], 0),
        answers(None),
        WHOLE,
    ),
]


def _listing(symbol: str) -> Callable[[World], Untyped]:
    return lambda w: processes(symbol, nv.c_nvmlProcessInfo_t, w.cards[WHOLE])


def _lists(kind: str, pid: int) -> list[Call]:
    name = f"nvmlDeviceGet{kind}RunningProcesses"
    expected = [{**BUSY[0], "pid": pid}]
    return [
        Call(
            name + version,
            _listing(name + version),
            answers(expected),
            WHOLE,
        )
        for version in ("_v3", "_v2")
    ] + [
        Call(
            name,
            lambda w: processes(name, ProcessInfoV1, w.cards[WHOLE]),
            answers([{"pid": pid, "usedGpuMemory": GIB}]),
            WHOLE,
        )
    ]


def _samples(world: World) -> list[dict[str, Any]]:
    return [{**fields(sample), "timeStamp": 0} for sample in nv.nvmlDeviceGetProcessUtilization(world.cards[WHOLE], 0)]


PROCESSES = [
    *_lists("Compute", COMPUTES),
    *_lists("Graphics", DRAWS),
    *_lists("MPSCompute", SHARES),
    Call(
        "nvmlDeviceGetProcessUtilization",
        _samples,
        answers(
            [
                {"pid": pid, "timeStamp": 0, "smUtil": 30, "memUtil": 0, "encUtil": 0, "decUtil": 0}
                for pid in (COMPUTES, SHARES)
            ]
        ),
        WHOLE,
    ),
]

CLOCKS = [
    Call(
        "nvmlDeviceGetSupportedMemoryClocks",
        lambda w: nv.nvmlDeviceGetSupportedMemoryClocks(w.cards[WHOLE]),
        answers([1593]),
        WHOLE,
    ),
    Call(
        "nvmlDeviceGetSupportedGraphicsClocks",
        lambda w: nv.nvmlDeviceGetSupportedGraphicsClocks(w.cards[WHOLE], 1593),
        answers([1410, 1395, 1380]),
        WHOLE,
    ),
    Call(
        "nvmlDeviceGetApplicationsClock",
        lambda w: nv.nvmlDeviceGetApplicationsClock(w.cards[WHOLE], 2),
        answers(1593),
        WHOLE,
    ),
    Call(
        "nvmlDeviceGetDefaultApplicationsClock",
        lambda w: nv.nvmlDeviceGetDefaultApplicationsClock(w.cards[WHOLE], 0),
        answers(1410),
        WHOLE,
    ),
    Call(
        "nvmlDeviceSetApplicationsClocks",
        lambda w: nv.nvmlDeviceSetApplicationsClocks(w.cards[WHOLE], 1593, 1410),
        answers(None),
        WHOLE,
    ),
    Call(
        "nvmlDeviceResetApplicationsClocks",
        lambda w: nv.nvmlDeviceResetApplicationsClocks(w.cards[WHOLE]),
        answers(None),
        WHOLE,
    ),
]

EVENT = {"eventType": 8, "eventData": 48}
EVENTS = [
    Call("nvmlEventSetCreate", lambda _: nv.nvmlEventSetFree(nv.nvmlEventSetCreate()), answers(None)),
    Call("nvmlEventSetFree", lambda _: nv.nvmlEventSetFree(nv.nvmlEventSetCreate()), answers(None)),
    Call(
        "nvmlDeviceGetSupportedEventTypes",
        lambda w: nv.nvmlDeviceGetSupportedEventTypes(w.cards[WHOLE]),
        answers(8),
        WHOLE,
    ),
    Call("nvmlDeviceRegisterEvents", _registered, answers(None), WHOLE),
    Call(
        "nvmlEventSetWait_v2",
        _event(lambda events: nv.nvmlEventSetWait(events, 1000)),
        lambda w: {
            "device": number(w.cards[HOPPER]),
            **EVENT,
            "gpuInstanceId": NO_INSTANCE,
            "computeInstanceId": NO_INSTANCE,
        },
    ),
    Call("nvmlEventSetWait", _event(_waited_v1), lambda w: {"device": number(w.cards[HOPPER]), **EVENT}),
]

CALLS = [*SYSTEM, *HANDLES, *DEVICE, *PLACE, *MODES, *PROCESSES, *CLOCKS, *EVENTS]
