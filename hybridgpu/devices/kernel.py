"""What the kernel's side of the driver shows in files: its cards, the numbers of MIG's capability files, device files.

Reads below the driver root, as NVIDIA's tools do (nvidia-container-toolkit: driver root, and dev root). Nothing here
judges, and no call of NVML's is needed: a card that NVML lost still stands here.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hybridgpu.devices.port import Unread, short_bus_id

_LIBRARY = "libnvidia-ml.so.1"
_LIBRARY_FOLDERS = (
    *("usr/lib64", "usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu"),
    *("lib64", "lib/x86_64-linux-gnu", "lib/aarch64-linux-gnu"),
)
"""Where a driver root may have the library (k8s-device-plugin cmd/nvidia-device-plugin, internal/cdi root lookup)."""

_DRIVER = "proc/driver/nvidia"
_MINORS = "proc/driver/nvidia-caps/mig-minors"
_FIELD = re.compile(r"^([^:]+):[ \t]*(.*?)[ \t]*$", re.MULTILINE)
_MINOR = re.compile(r"^DeviceFileMinor: *([0-9]+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class DriverRoot:
    """Where a driver's files are: `library` None for the loader's own; `kernel` has proc and sys, `dev` has dev."""

    library: Path | None
    kernel: Path
    dev: Path


@dataclass(frozen=True, slots=True)
class KernelCard:
    """A card as /proc/driver/nvidia/gpus has it; `excluded`: by the module's parameter, so that NVML shows it not."""

    bus_id: str
    minor: int | None
    uuid: str | None
    excluded: bool


@dataclass(frozen=True, slots=True)
class KernelReading:
    """`cards` by bus id; `capabilities` the numbers of capability files by `gpu3/gi1/access`; `files` those in /dev."""

    cards: tuple[KernelCard, ...] | Unread
    capabilities: Mapping[str, int] | Unread
    files: frozenset[str] | Unread


def driver_root(root: Path) -> DriverRoot:
    """What a driver root means: below it are the library and, where it has them, /dev and the driver's /proc.

    A root with a library alone (a driver in a container) leaves the rest where the kernel shows it.
    """
    found = (root / folder / _LIBRARY for folder in _LIBRARY_FOLDERS)
    library = None if root == Path("/") else next((path for path in found if os.path.exists(path)), None)  # noqa: PTH110 - never raises
    kernel = root if (root / _DRIVER).is_dir() else Path("/")
    return DriverRoot(library, kernel, root if (root / "dev").is_dir() else Path("/"))


def read_kernel(root: DriverRoot, *, capabilities: bool) -> KernelReading:
    """The kernel's side; the capability numbers only where they are asked for, since they are many."""
    return KernelReading(
        cards=_cards(root.kernel / _DRIVER / "gpus"),
        capabilities=_capabilities(root.kernel) if capabilities else {},
        files=_files(root.dev),
    )


def _cards(folder: Path) -> tuple[KernelCard, ...] | Unread:
    try:
        return tuple(_card(path) for path in sorted(folder.iterdir()))
    except OSError as error:
        return _unread(folder, error)


def _card(folder: Path) -> KernelCard:
    """A card whose details cannot be read is a card all the same."""
    try:
        fields = dict(_FIELD.findall((folder / "information").read_text(encoding="utf-8", errors="replace")))
    except OSError:
        fields = {}
    minor, uuid = fields.get("Device Minor", ""), fields.get("GPU UUID", "")
    return KernelCard(
        bus_id=short_bus_id(folder.name),
        minor=int(minor) if minor.isascii() and minor.isdigit() else None,
        uuid=None if "?" in uuid else uuid or None,
        excluded=fields.get("GPU Excluded") == "Yes",
    )


def _capabilities(root: Path) -> Mapping[str, int] | Unread:
    """By `gpuMINOR/giN/access` and `gpuMINOR/giN/ciN/access`, where gpu is the minor (S:gpu_nvml.c, Bug 15259).

    From mig-minors, which lists all there can be; where it is not there, from the files of those that are.
    """
    try:
        pairs = (line.split() for line in (root / _MINORS).read_text(encoding="utf-8").splitlines())
        return {name: int(number) for name, number in pairs}
    except FileNotFoundError:
        return _capability_files(root / _DRIVER / "capabilities")
    except (OSError, ValueError) as error:
        return _unread(root / _MINORS, error)


def _capability_files(folder: Path) -> Mapping[str, int] | Unread:
    found: dict[str, int] = {}
    try:
        for pattern in ("gpu*/mig/gi*/access", "gpu*/mig/gi*/ci*/access"):
            for path in folder.glob(pattern):
                number = _MINOR.search(path.read_text(encoding="utf-8"))
                if number:
                    found[str(path.relative_to(folder)).replace("/mig/", "/")] = int(number[1])
    except (OSError, ValueError) as error:
        return _unread(folder, error)
    return found or Unread(str(folder.parents[1] / "nvidia-caps/mig-minors"), "No such file or directory")


def _files(root: Path) -> frozenset[str] | Unread:
    """The device files of NVIDIA's, by the paths they have below the root."""
    try:
        names = [f"/dev/{path.name}" for path in (root / "dev").iterdir() if path.name.startswith("nvidia")]
        caps = root / "dev/nvidia-caps"
        names += [f"/dev/nvidia-caps/{path.name}" for path in (caps.iterdir() if caps.is_dir() else ())]
    except OSError as error:
        return _unread(root / "dev", error)
    return frozenset(names)


def _unread(path: Path, error: OSError | ValueError) -> Unread:
    if isinstance(error, OSError):
        return Unread(str(error.filename or path), error.strerror or str(error))
    return Unread(str(path), f"what is no list of numbers: {error}")
