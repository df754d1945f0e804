"""This node's DeviceMap as the hooks read it (docs/devicemap.md): which card is behind each of Slurm's numbers.

It is believed only when it is root's and of this boot. It says nothing about jobs.
"""

from __future__ import annotations

import json

from hybridgpu.mps.folder import read_small
from hybridgpu.mps.trouble import Trouble

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

MPS, MIG = "mps", "mig"
"""The modes of a node that hooks tell from the others."""

_BIND = "run `hybridgpu node bind` on this node"


class Device:
    """One device: `slurm_index` as in SLURM_JOB_GPUS, `minor` its card's, `profile` and `parent_uuid` on MIG only."""

    __slots__ = ("files", "memory_bytes", "minor", "parent_uuid", "profile", "slurm_index", "uuid")

    def __init__(
        self,
        slurm_index: int,
        minor: int,
        uuid: str,
        files: tuple[str, ...] = (),
        memory_bytes: int = 0,
        profile: str | None = None,
        parent_uuid: str | None = None,
    ) -> None:
        self.slurm_index, self.minor, self.uuid, self.files = slurm_index, minor, uuid, files
        self.memory_bytes, self.profile, self.parent_uuid = memory_bytes, profile, parent_uuid


class DeviceMap:
    """Mode and devices of this node. `compute_mode`: what whole-GPU jobs with a daemon get; None without daemons."""

    __slots__ = ("compute_mode", "daemons", "devices", "mode", "whole_gpu_jobs")

    def __init__(
        self,
        mode: str,
        daemons: bool,
        whole_gpu_jobs: bool,
        compute_mode: str | None,
        devices: Mapping[int, Device],
    ) -> None:
        self.mode, self.daemons, self.whole_gpu_jobs, self.compute_mode = mode, daemons, whole_gpu_jobs, compute_mode
        self.devices = devices

    def of(self, indices: tuple[int, ...]) -> list[Device]:
        """The devices behind Slurm's numbers, in their order; Trouble names the numbers that there are none for."""
        missing = [index for index in indices if index not in self.devices]
        if missing:
            told = ", ".join(str(index) for index in missing)
            raise Trouble(f"Slurm's GPU {told} is not in the DeviceMap: slurmd runs on another gres.conf; {_BIND}")
        return [self.devices[index] for index in indices]


def read(path: str, boot: str) -> DeviceMap:
    """The map at `path`; Trouble where it is missing, broken, another user's, or of another boot than `boot`."""
    try:
        value = json.loads(read_small(path))
        if value["kind"] != "DeviceMap" or value["apiVersion"] != "hybridgpu/v1":
            raise ValueError("it is no DeviceMap of hybridgpu/v1")
        mps = value["mps"]
        devices = [_device(entry) for entry in value["devices"] if entry["slurm_index"] is not None]
        found = DeviceMap(
            mode=_text(value["mode"]),
            daemons=mps is not None,
            whole_gpu_jobs=mps is not None and mps["whole_gpu_jobs"] is True,
            compute_mode=None if mps is None else _text(mps["compute_mode"]),
            devices={device.slurm_index: device for device in devices},
        )
        of_boot = _text(value["boot_id"])
    except FileNotFoundError:
        raise Trouble(f"{path} is not there; {_BIND}") from None
    except PermissionError:
        raise Trouble(f"{path} is for root alone to read, and users' tasks need it: chmod 644 {path}") from None
    except OSError as error:
        raise Trouble(f"{path}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise Trouble(f"{path} cannot be read ({type(error).__name__}: {error}); {_BIND}") from None
    if of_boot != boot:
        raise Trouble(f"{path} is of another boot; {_BIND}")
    return found


def _device(entry: Mapping[str, object]) -> Device:
    return Device(
        slurm_index=_number(entry["slurm_index"]),
        minor=_number(entry["minor"]),
        uuid=_uuid(entry["uuid"]),
        files=_texts(entry["files"]),
        memory_bytes=_number(entry["memory_bytes"]),
        profile=None if entry["profile"] is None else _text(entry["profile"]),
        parent_uuid=None if entry["parent_uuid"] is None else _uuid(entry["parent_uuid"]),
    )


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value


def _texts(value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise TypeError(f"{value!r} is no list")
    return tuple(_text(part) for part in value)


def _number(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise TypeError(f"{value!r} is no number")
    return value


def _uuid(value: object) -> str:
    """A UUID as the driver writes it: nothing in it may part a list or an assignment."""
    text = _text(value)
    if not text.startswith(("GPU-", "MIG-")) or not all(c.isascii() and (c.isalnum() or c in "-/") for c in text):
        raise ValueError(f"{text!r} is no UUID of a GPU")
    return text
