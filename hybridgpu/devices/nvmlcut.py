"""One card cut by NVML, through pynvml: what there is of it, and one change at a time. Decides nothing.

Handles are asked for anew by each call, since whoever else cuts the card makes them void. A call may hang in the kernel
for ever; whoever cuts does so within a time limit (limited.py).
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TypeVar

import pynvml

from hybridgpu.devices.nvml import ask, compute_mode, error_name, mig_mode, session
from hybridgpu.devices.port import ComputeInstance, Cut, GpuInstance, Holder, NotDone, Unread, Use
from hybridgpu.model.gpu import Placement
from hybridgpu.model.sharing import ComputeMode

T = TypeVar("T")

_NO_INSTANCE = 0xFFFFFFFF
"""What NVML writes as the instance of a process that is on the whole card."""

_NO_SUCH_PROFILE = ("NOT_SUPPORTED", "INVALID_ARGUMENT")
_NO_SUCH_LIST = ("NOT_SUPPORTED", "FUNCTION_NOT_FOUND")

_LISTS: tuple[tuple[Use, Callable[[Any], Any]], ...] = (
    (Use.COMPUTE, pynvml.nvmlDeviceGetComputeRunningProcesses_v3),
    (Use.GRAPHICS, pynvml.nvmlDeviceGetGraphicsRunningProcesses_v3),
    (Use.MPS, pynvml.nvmlDeviceGetMPSComputeRunningProcesses_v3),
)
"""By their version: what pynvml calls by the plain name raises an error of its own where the driver is older."""

_COMPUTE_MODES = {
    ComputeMode.DEFAULT: pynvml.NVML_COMPUTEMODE_DEFAULT,
    ComputeMode.EXCLUSIVE_PROCESS: pynvml.NVML_COMPUTEMODE_EXCLUSIVE_PROCESS,
    ComputeMode.PROHIBITED: pynvml.NVML_COMPUTEMODE_PROHIBITED,
}


class _Untold(Exception):
    """Ends a look at a call that failed; never leaves this module."""

    def __init__(self, unread: Unread) -> None:
        super().__init__(str(unread))
        self.unread = unread


@dataclass(frozen=True, slots=True)
class _Found:
    """A GPU instance by its handle, with the name of its profile."""

    handle: Any
    gi: int
    profile: str
    placement: Placement


class NvmlCutter:
    """NVML of the library at a path, or of the one that the loader finds: a `Cutter`. Open between enter and exit."""

    def __init__(self, library: Path | None = None) -> None:
        self._library = library
        self._open = ExitStack()

    def __enter__(self) -> Self:
        """Raises Unavailable("device", ...) where there is no driver that answers at all."""
        self._open.enter_context(session(self._library))
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def look(self, card: str) -> Cut | Unread:
        """All of one card."""
        try:
            device = _must(pynvml.nvmlDeviceGetHandleByUUID, card)
            mig, mode = mig_mode(device), compute_mode(device)
            if isinstance(mig, Unread):
                return mig
            if isinstance(mode, Unread):
                return mode
            uuids = _uuids(device) if mig and mig.current else {}
            found = _instances(device) if mig and mig.current else ()
            instances = (_instance(each, uuids) for each in sorted(found, key=lambda each: each.placement))
            return Cut(mig, mode, tuple(instances), tuple(_holders(device)))
        except _Untold as untold:
            return untold.unread

    def set_mig(self, card: str, on: bool) -> str | NotDone:
        """Sets the mode, and opens NVML anew, since the card may have been reset."""
        wanted = pynvml.NVML_DEVICE_MIG_ENABLE if on else pynvml.NVML_DEVICE_MIG_DISABLE
        answer = _change(lambda device: _must(pynvml.nvmlDeviceSetMigMode, device, wanted), card)
        self._open.close()
        self._open.enter_context(session(self._library))
        return answer if isinstance(answer, NotDone) else error_name(answer)

    def set_compute_mode(self, card: str, mode: ComputeMode) -> NotDone | None:
        """Sets the compute mode."""
        return _change(lambda device: _must(pynvml.nvmlDeviceSetComputeMode, device, _COMPUTE_MODES[mode]), card)

    def create_gpu_instance(self, card: str, profile: str, placement: Placement) -> NotDone | None:
        """Creates it there."""

        def create(device: Any) -> None:  # noqa: ANN401 - pynvml is not typed
            numbers = {name: number for name, number, _ in _profiles(device)}
            if profile not in numbers:
                raise _Untold(Unread("nvmlDeviceGetGpuInstanceProfileInfoV", f"no profile {profile}"))
            place = ctypes.byref(pynvml.c_nvmlGpuInstancePlacement_t(placement.start, placement.size))
            _must(pynvml.nvmlDeviceCreateGpuInstanceWithPlacement, device, numbers[profile], place)

        return _change(create, card)

    def create_compute_instance(self, card: str, placement: Placement, slices: int) -> NotDone | None:
        """Creates it at the first place that is free in the GPU instance."""

        def create(device: Any) -> None:  # noqa: ANN401
            found = _at(device, placement)
            number = next((n for n, size, _ in _compute_profiles(found.handle) if size == slices), None)
            if number is None:
                raise _Untold(Unread("nvmlGpuInstanceGetComputeInstanceProfileInfoV", f"no profile of {slices} slices"))
            _must(pynvml.nvmlGpuInstanceCreateComputeInstance, found.handle, number)

        return _change(create, card)

    def destroy_compute_instance(self, card: str, placement: Placement, compute: ComputeInstance) -> NotDone | None:
        """Destroys it, where it has the UUID that was seen."""

        def destroy(device: Any) -> None:  # noqa: ANN401
            found = _at(device, placement)
            handle = _must(pynvml.nvmlGpuInstanceGetComputeInstanceById, found.handle, compute.ci)
            if _uuids(device).get((found.gi, compute.ci), "") != compute.uuid:
                raise _Untold(Unread("nvmlDeviceGetUUID", "NOT_FOUND"))
            _must(pynvml.nvmlComputeInstanceDestroy, handle)

        return _change(destroy, card)

    def destroy_gpu_instance(self, card: str, instance: GpuInstance) -> NotDone | None:
        """Destroys it, where it is what was seen."""

        def destroy(device: Any) -> None:  # noqa: ANN401
            found = _at(device, instance.placement)
            if (found.gi, found.profile) != (instance.gi, instance.profile):
                raise _Untold(Unread("nvmlGpuInstanceGetInfo", "NOT_FOUND"))
            _must(pynvml.nvmlGpuInstanceDestroy, found.handle)

        return _change(destroy, card)


def _must(call: Callable[..., T], *arguments: Any) -> T:  # noqa: ANN401
    value = ask(call, *arguments)
    if isinstance(value, Unread):
        raise _Untold(value)
    return value


def _change(change: Callable[[Any], T], card: str) -> T | NotDone:
    """What the change gives, or the first call on its way that failed."""
    try:
        return change(_must(pynvml.nvmlDeviceGetHandleByUUID, card))
    except _Untold as untold:
        return NotDone(untold.unread.call, untold.unread.answer)


def _text(name: Any) -> str:  # noqa: ANN401
    return name if isinstance(name, str) else bytes(name).decode("ascii", "replace")


def _profiles(device: Any) -> Iterator[tuple[str, int, int]]:  # noqa: ANN401
    """The GPU instance profiles of a card: name as nvidia-smi writes it, id, how many a card holds."""
    for kind in range(pynvml.NVML_GPU_INSTANCE_PROFILE_COUNT):
        info = ask(pynvml.nvmlDeviceGetGpuInstanceProfileInfo, device, kind)
        if not isinstance(info, Unread):
            yield _text(info.name).removeprefix("MIG "), int(info.id), int(info.instanceCount)
        elif info.answer not in _NO_SUCH_PROFILE:
            raise _Untold(info)


def _compute_profiles(handle: Any) -> Iterator[tuple[int, int, int]]:  # noqa: ANN401
    """The compute instance profiles of a GPU instance: id, compute slices, how many it holds."""
    for kind in range(pynvml.NVML_COMPUTE_INSTANCE_PROFILE_COUNT):
        info = ask(pynvml.nvmlGpuInstanceGetComputeInstanceProfileInfo, handle, kind, 0)
        if not isinstance(info, Unread):
            yield int(info.id), int(info.sliceCount), int(info.instanceCount)
        elif info.answer not in _NO_SUCH_PROFILE:
            raise _Untold(info)


def _instances(device: Any) -> Iterator[_Found]:  # noqa: ANN401
    """The GPU instances of a card in MIG mode, also those that hold nothing."""
    for profile, number, most in _profiles(device):
        for handle in _listed(pynvml.nvmlDeviceGetGpuInstances, pynvml.c_nvmlGpuInstance_t, most, device, number):
            info = _must(pynvml.nvmlGpuInstanceGetInfo, handle)
            yield _Found(handle, int(info.id), profile, Placement(info.placement.start, info.placement.size))


def _at(device: Any, placement: Placement) -> _Found:  # noqa: ANN401
    found = next((each for each in _instances(device) if each.placement == placement), None)
    if found is None:
        raise _Untold(Unread("nvmlDeviceGetGpuInstances", "NOT_FOUND"))
    return found


def _instance(found: _Found, uuids: dict[tuple[int, int], str]) -> GpuInstance:
    computes: dict[int, ComputeInstance] = {}
    for number, slices, most in _compute_profiles(found.handle):
        kind = pynvml.c_nvmlComputeInstance_t
        for handle in _listed(pynvml.nvmlGpuInstanceGetComputeInstances, kind, most, found.handle, number):
            ci = int(_must(pynvml.nvmlComputeInstanceGetInfo, handle).id)
            computes[ci] = ComputeInstance(ci, slices, uuids.get((found.gi, ci), ""))
    return GpuInstance(found.gi, found.profile, found.placement, tuple(computes[ci] for ci in sorted(computes)))


def _listed(call: Callable[..., Any], kind: Any, most: int, *arguments: Any) -> Iterator[Any]:  # noqa: ANN401
    """The handles that a call writes into an array, of which there are at most so many."""
    handles, count = (kind * most)(), ctypes.c_uint(most)
    _must(call, *arguments, handles, ctypes.byref(count))
    return iter(handles[: count.value])


def _uuids(device: Any) -> dict[tuple[int, int], str]:  # noqa: ANN401
    """The UUIDs of a card's MIG devices by GPU instance and compute instance."""
    found: dict[tuple[int, int], str] = {}
    for number in range(_must(pynvml.nvmlDeviceGetMaxMigDeviceCount, device)):
        mig = ask(pynvml.nvmlDeviceGetMigDeviceHandleByIndex, device, number)
        if not isinstance(mig, Unread):
            ids = _must(pynvml.nvmlDeviceGetGpuInstanceId, mig), _must(pynvml.nvmlDeviceGetComputeInstanceId, mig)
            found[ids] = _must(pynvml.nvmlDeviceGetUUID, mig)
        elif mig.answer != "NOT_FOUND":
            raise _Untold(mig)
    return found


def _holders(device: Any) -> Iterator[Holder]:  # noqa: ANN401
    """Every process of the three lists, each by pid. Not every driver and card has those of graphics and MPS."""
    for use, call in _LISTS:
        processes = ask(call, device)
        if isinstance(processes, Unread):
            if use is Use.COMPUTE or processes.answer not in _NO_SUCH_LIST:
                raise _Untold(processes)
            continue
        for process in sorted(processes, key=lambda each: int(each.pid)):
            gi, ci = (None if i == _NO_INSTANCE else i for i in (process.gpuInstanceId, process.computeInstanceId))
            yield Holder(process.pid, use, gi, ci)
