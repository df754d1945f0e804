"""The DeviceMap: which card each device of the NodeConfig is since this boot. Its form, and its way to the disk.

Hooks read it, and nothing else of ours; so it is small, whole at any moment, and readable for every user. Binding is
done in bind.py.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hybridgpu.files.tree import replace_alone
from hybridgpu.model.finding import Rule, Severity
from hybridgpu.model.sharing import Sharing

NOT_WRITTEN = Rule(
    "device-map-not-written",
    Severity.ERROR,
    "The DeviceMap could not be written after the cards were brought to what is wanted: no hook starts an MPS daemon.",
    "Mend what is named, and run it again: what is right stays.",
    "docs/devicemap.md",
)

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True, slots=True)
class BoundDevice:
    """One device. `slurm_index` is Slurm's number for it, None where Slurm does not offer it.

    `index` is its card's in PCI order, `minor` the N of the card's /dev/nvidiaN, `uuid` its own (`GPU-...`, `MIG-...`),
    `parent_uuid` that of an instance's card.
    """

    slurm_index: int | None
    index: int
    minor: int
    uuid: str
    pci_bus_id: str
    files: tuple[str, ...]
    memory_bytes: int
    profile: str | None
    parent_uuid: str | None


@dataclass(frozen=True, slots=True)
class DeviceMap:
    """One node's devices in the order of the NodeConfig. `gres_types`: the names in its Gres=, in their order."""

    boot_id: str
    node: str
    sharing: Sharing
    gres_types: tuple[str, ...]
    devices: tuple[BoundDevice, ...]


def boot_id() -> str:
    """The id of this boot, as the kernel has it. Raises OSError where there is no /proc."""
    return _BOOT_ID.read_text(encoding="utf-8").strip()


def as_json(devices: DeviceMap) -> str:
    """The text of devices.json (docs/devicemap.md), one device a line."""
    sharing = devices.sharing
    mps = {"whole_gpu_jobs": sharing.whole_gpu_jobs, "compute_mode": sharing.compute_mode} if sharing.daemons else None
    head = {
        "apiVersion": "hybridgpu/v1",
        "kind": "DeviceMap",
        "boot_id": devices.boot_id,
        "node": devices.node,
        "mode": sharing.mode,
        "mps": mps,
        "gres_types": devices.gres_types,
    }
    lines = ",".join(f"\n {json.dumps(dict(_fields(device)))}" for device in devices.devices)
    return f'{json.dumps(head)[:-1]},\n"devices": [{lines}\n]}}\n'


def write(path: Path, content: str) -> None:
    """Replaces the file at once, 0644 whatever was there; its folder is made where it is missing. Raises OSError."""
    if not path.parent.exists():
        path.parent.mkdir(parents=True)
        path.parent.chmod(0o755)
    replace_alone(path, content.encode(), keep=False)


def _fields(device: BoundDevice) -> Iterator[tuple[str, Any]]:
    return ((name, getattr(device, name)) for name in device.__slots__)
