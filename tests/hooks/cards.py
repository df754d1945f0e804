"""Devices, records and views for tests of the hooks' pure parts, and the environments that real Slurm gave."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hybridgpu.hooks.taskprolog import Node
from hybridgpu.hooks.visible import DENIED, MISSING, OPEN
from hybridgpu.mps.daemon import View
from hybridgpu.mps.devicemap import Device, DeviceMap
from hybridgpu.mps.job import Job
from hybridgpu.mps.settings import Settings
from hybridgpu.mps.trouble import Trouble

RECORDED = Path(__file__).parent.parent / "data" / "hooks"
GIB = 1 << 30
UID = 1001
SHM = 7


def gpu(index: int) -> Device:
    """A whole card, whose minor number is Slurm's."""
    uuid = f"GPU-00000000-0000-0000-0000-{index:012d}"
    return Device(index, index, uuid, (f"/dev/nvidia{index}",), 40 * GIB)


def instance(index: int, card: int, capability: int) -> Device:
    """A MIG instance of that card, with its two capability files."""
    files = (f"/dev/nvidia{card}", *(f"/dev/nvidia-caps/nvidia-cap{capability + more}" for more in (0, 1)))
    uuid = f"MIG-00000000-0000-0000-0000-{index:012d}"
    return Device(index, card, uuid, files, 5 * GIB, "1g.5gb", gpu(card).uuid)


def gpus(count: int = 8) -> dict[int, Device]:
    return {index: gpu(index) for index in range(count)}


CUT = {0: gpu(0), 1: instance(1, 1, 138), 2: instance(2, 1, 147), 3: instance(3, 2, 273)}
"""A node in mode mig: one whole card, two instances of a second, one of a third."""


def device_map(
    devices: Mapping[int, Device], mode: str = "mps", whole: bool = False, compute_mode: str = "default"
) -> DeviceMap:
    return DeviceMap(mode, mode == "mps" or whole, whole, compute_mode, devices)


def opens(*paths: str, missing: tuple[str, ...] = ()) -> Callable[[str], str]:
    """A device cgroup that lets these files be opened and no others, of which some are not there."""
    return lambda path: MISSING if path in missing else OPEN if path in paths else DENIED


def everything(path: str) -> str:
    """No device cgroup."""
    del path
    return OPEN


def record(job: int, *indices: int, **more: Any) -> Job:  # noqa: ANN401 - whatever a record can have
    return Job(job, 0, UID, UID, indices, **more)


class Seen(Node):
    """A node as it would be seen: these devices, these daemons by name."""

    def __init__(
        self,
        devices: Mapping[int, Device],
        daemons: Mapping[str, View] | None = None,
        probe: Callable[[str], str] = everything,
        shm: int | None = SHM,
        broken: str | None = None,
    ) -> None:
        super().__init__(Settings(run="/nowhere"), shm, probe)
        self._devices, self._daemons, self._broken = devices, daemons or {}, broken

    def devices(self) -> Mapping[int, Device]:
        if self._broken:
            raise Trouble(self._broken)
        return self._devices

    def daemon(self, name: str) -> View | None:
        return self._daemons.get(name)


def view(name: str, *devices: Device, alive: bool = True, uid: int = UID, shm: int | None = SHM) -> View:
    return View(f"/run/hybridgpu/mps/{name}/pipe", uid, list(devices), shm, alive)


@dataclass(frozen=True, slots=True)
class Recorded:
    """One run of a hook, or of a task, under real Slurm (testbed/hooks/record.py).

    `opened`: the device files that it could open. `devices`: its node's, by Slurm's number.
    """

    scenario: str
    confined: bool
    gres_types: str
    command: str
    what: str
    node: str
    environment: dict[str, str]
    opened: tuple[str, ...]
    devices: dict[int, Device]

    def probe(self, path: str) -> str:
        """What it was answered."""
        return OPEN if path in self.opened else DENIED


def recorded(what: str) -> Iterator[Recorded]:
    """Every recorded run of one kind, all releases."""
    for path in sorted(RECORDED.glob("*/*.json")):
        content = json.loads(path.read_text(encoding="utf-8"))
        for run in content.get("runs", ()):
            if run["what"] == what:
                devices = json.loads(path.with_name(f"devices.{content['site']}.json").read_text(encoding="utf-8"))
                yield Recorded(
                    f"{path.parent.name}/{path.stem}",
                    content["confined"],
                    content["gres_types"],
                    content["command"],
                    what,
                    run["node"],
                    run["environment"],
                    tuple(run["devices"]),
                    {device.slurm_index: device for device in _devices(devices[run["node"]])},
                )


def _devices(devices: dict[str, Any]) -> Iterator[Device]:
    for entry in devices["devices"]:
        kept = {name: entry[name] for name in Device.__slots__}
        yield Device(**{**kept, "files": tuple(entry["files"])})
