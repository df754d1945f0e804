"""The driver by NVML, through pynvml: each value by the calls it takes, each call's error in the value's place.

Nothing here judges, orders or gives up half-way: one card that is lost hides no other. A call may hang in the kernel
for ever; whoever reads does so within a time limit (timelimit.py).
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import pynvml

from hybridgpu.devices.port import CardReading, DriverReading, InstanceReading, MigMode, Unread, short_bus_id
from hybridgpu.errors import Unavailable
from hybridgpu.model.gpu import Placement
from hybridgpu.model.sharing import ComputeMode

T = TypeVar("T")

_CPU_WORDS = 512
"""Room for 32,768 CPUs in words of 64 bits, as Slurm's plugin has (S:src/plugins/gpu/nvml/gpu_nvml.c MAX_CPUS)."""

_COMPUTE_MODES = {
    pynvml.NVML_COMPUTEMODE_DEFAULT: ComputeMode.DEFAULT,
    # Exclusive by thread was removed with CUDA 8; NVML: "use exclusive process instead".
    pynvml.NVML_COMPUTEMODE_EXCLUSIVE_THREAD: ComputeMode.EXCLUSIVE_PROCESS,
    pynvml.NVML_COMPUTEMODE_EXCLUSIVE_PROCESS: ComputeMode.EXCLUSIVE_PROCESS,
    pynvml.NVML_COMPUTEMODE_PROHIBITED: ComputeMode.PROHIBITED,
}
_NAMES = {pynvml.NVML_SUCCESS: "SUCCESS"} | {
    value: name.removeprefix("NVML_ERROR_") for name, value in vars(pynvml).items() if name.startswith("NVML_ERROR_")
}
_NO_DRIVER = {
    "LIBRARY_NOT_FOUND": "libnvidia-ml.so.1 is not there: install NVIDIA's driver, or say where it is (--driver-root)",
    "DRIVER_NOT_LOADED": "NVIDIA's kernel driver is not loaded, or its device files are missing: see `nvidia-smi`",
    "LIB_RM_VERSION_MISMATCH": "the driver's library and its kernel module are of two versions: it was upgraded while "
    "loaded; reload the module, or reboot",
    "NO_PERMISSION": "the driver's device files (/dev/nvidiactl) may not be opened by this user",
    "GPU_IS_LOST": "a GPU fell off the bus, and the driver answers nothing; see the kernel's log for Xid 79; reboot",
}
"""What the first call's answer means for a person."""


class Nvml:
    """NVML of the library at a path, or of the one that the loader finds: a `Driver`."""

    def __init__(self, library: Path | None = None, at: Callable[[str], object] = str) -> None:
        """`at` is told which card is asked next, for whoever is left waiting."""
        self._library, self._at = library, at

    def read(self) -> DriverReading:
        """Asks for everything. Raises Unavailable where the driver as a whole does not answer."""
        with session(self._library):
            try:
                version = str(pynvml.nvmlSystemGetDriverVersion())
                count = int(pynvml.nvmlDeviceGetCount())
            except pynvml.NVMLError as error:
                raise _unavailable(error) from None
            except UnicodeDecodeError:
                raise Unavailable("device", (), "the driver's version is no text") from None
            cards = tuple(_card(number, self._at) for number in range(count))
            self._at("")
            return DriverReading(version, cards)


@contextmanager
def session(library: Path | None) -> Iterator[None]:
    """NVML, initialised. Raises Unavailable("device", ...) with what a person can do about it."""
    if library is not None:
        try:  # what is loaded under this name is what pynvml gets
            ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)
        except OSError as error:
            raise Unavailable("device", (), f"the driver's library cannot be loaded: {error}") from None
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        raise _unavailable(error) from None
    try:
        yield
    finally:
        with suppress(pynvml.NVMLError):
            pynvml.nvmlShutdown()


def _unavailable(error: Any) -> Unavailable:  # noqa: ANN401 - pynvml is not typed
    name = error_name(error.value)
    return Unavailable("device", (), _NO_DRIVER.get(name, f"the driver answers {name}"))


def error_name(code: int) -> str:
    """An answer by its name in nvml.h, without the prefix: `SUCCESS`, `IN_USE`; its number where it has none."""
    return str(_NAMES.get(code, code))


def ask(call: Callable[..., T], *arguments: Any) -> T | Unread:  # noqa: ANN401 - what C takes
    """The call's value, or its answer where that is an error."""
    try:
        return call(*arguments)
    except pynvml.NVMLError as error:
        return Unread(call.__name__, error_name(error.value))
    except UnicodeDecodeError:
        return Unread(call.__name__, "bytes that are no text")


def _then(value: Any | Unread, convert: Callable[[Any], T]) -> T | Unread:  # noqa: ANN401 - what C gives
    return value if isinstance(value, Unread) else convert(value)


def _card(number: int, at: Callable[[str], object]) -> CardReading:
    at(f"the driver's card {number}")
    card = ask(pynvml.nvmlDeviceGetHandleByIndex, number)
    if isinstance(card, Unread):
        return CardReading(number, card, card, card, card, card, card, card, card, card, card)
    bus_id = _then(ask(pynvml.nvmlDeviceGetPciInfo, card), _bus_id)
    at(f"the card at {bus_id}")
    mig = mig_mode(card)
    return CardReading(
        number=number,
        bus_id=bus_id,
        name=ask(pynvml.nvmlDeviceGetName, card),
        uuid=ask(pynvml.nvmlDeviceGetUUID, card),
        minor=ask(pynvml.nvmlDeviceGetMinorNumber, card),
        memory_bytes=_then(ask(pynvml.nvmlDeviceGetMemoryInfo, card), lambda memory: int(memory.total)),
        mig=mig,
        compute_mode=compute_mode(card),
        affinity=_then(ask(pynvml.nvmlDeviceGetCpuAffinity, card, _CPU_WORDS), _mask),
        peers=_peers(card),
        instances=_instances(card) if isinstance(mig, MigMode) and mig.current else (),
    )


def _bus_id(info: Any) -> str:  # noqa: ANN401
    """`0000:07:00.0` of NVML's `00000000:07:00.0`."""
    text = info.busId  # bytes up to nvidia-ml-py 11
    return short_bus_id(text if isinstance(text, str) else text.decode("ascii", "replace"))


def _mask(words: Any) -> int:  # noqa: ANN401
    return int.from_bytes(bytes(words), "little")


def compute_mode(card: Any) -> ComputeMode | Unread:  # noqa: ANN401
    """A card's compute mode."""
    mode = ask(pynvml.nvmlDeviceGetComputeMode, card)
    if isinstance(mode, Unread):
        return mode
    known = _COMPUTE_MODES.get(mode)
    return Unread("nvmlDeviceGetComputeMode", f"an unknown mode, {mode}") if known is None else known


def mig_mode(card: Any) -> MigMode | Unread | None:  # noqa: ANN401
    """A card's MIG mode, None where it has none."""
    modes = ask(pynvml.nvmlDeviceGetMigMode, card)
    if isinstance(modes, Unread):
        return None if modes.answer in ("NOT_SUPPORTED", "FUNCTION_NOT_FOUND") else modes
    current, pending = modes
    return MigMode(current == pynvml.NVML_DEVICE_MIG_ENABLE, pending == pynvml.NVML_DEVICE_MIG_ENABLE)


def _peers(card: Any) -> tuple[str, ...] | Unread | None:  # noqa: ANN401
    """The far ends of the active links, as Slurm's plugin asks for them (S:src/plugins/gpu/nvml/gpu_nvml.c
    _nvml_get_nvlink_info): a link number that is none of this card's is passed over.
    """
    peers: list[str] = []
    for link in range(pynvml.NVML_NVLINK_MAX_LINKS):
        state = ask(pynvml.nvmlDeviceGetNvLinkState, card, link)
        if isinstance(state, Unread):
            if state.answer in ("NOT_SUPPORTED", "FUNCTION_NOT_FOUND"):
                break
            if state.answer != "INVALID_ARGUMENT":
                return state
        elif state == pynvml.NVML_FEATURE_ENABLED:
            peer = _then(ask(pynvml.nvmlDeviceGetNvLinkRemotePciInfo, card, link), _bus_id)
            if isinstance(peer, Unread) and peer.answer != "NOT_SUPPORTED":
                return peer
            peers.append("" if isinstance(peer, Unread) else peer)
    return tuple(peers) or None


def _instances(card: Any) -> tuple[InstanceReading, ...] | Unread:  # noqa: ANN401
    most = ask(pynvml.nvmlDeviceGetMaxMigDeviceCount, card)
    if isinstance(most, Unread):
        return most
    found: list[InstanceReading] = []
    placements: dict[int, Placement | Unread] = {}
    for number in range(most):
        device = ask(pynvml.nvmlDeviceGetMigDeviceHandleByIndex, card, number)
        if isinstance(device, Unread):
            if device.answer == "NOT_FOUND":
                continue
            return device
        gi = ask(pynvml.nvmlDeviceGetGpuInstanceId, device)
        if not isinstance(gi, Unread) and gi not in placements:
            placements[gi] = _placement(card, gi)
        found.append(
            InstanceReading(
                uuid=ask(pynvml.nvmlDeviceGetUUID, device),
                profile=_profile(device),
                gi=gi,
                ci=ask(pynvml.nvmlDeviceGetComputeInstanceId, device),
                placement=gi if isinstance(gi, Unread) else placements[gi],
            )
        )
    return tuple(found)


def _profile(device: Any) -> str | Unread:  # noqa: ANN401
    """The profile in a MIG device's name, `NVIDIA A100-SXM4-80GB MIG 1g.10gb`: what Slurm's plugin takes, too."""
    name = ask(pynvml.nvmlDeviceGetName, device)
    if isinstance(name, Unread):
        return name
    _, found, profile = name.rpartition("MIG ")
    return profile if found and profile else Unread("nvmlDeviceGetName", f"{name!r}, which names no MIG profile")


def _placement(card: Any, gi: int) -> Placement | Unread:  # noqa: ANN401
    instance = ask(pynvml.nvmlDeviceGetGpuInstanceById, card, gi)
    if isinstance(instance, Unread):
        return instance
    info = ask(pynvml.nvmlGpuInstanceGetInfo, instance)
    return _then(info, lambda known: Placement(known.placement.start, known.placement.size))
