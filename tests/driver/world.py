"""A machine with something of everything on it, and NVML over it in this process."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pynvml

from testbed.driver.machine import Machine
from tests.simulated import nvml

Untyped = Any
"""A handle, structure or answer of pynvml's, which has no types."""

GIB = 2**30
DESCRIPTION: dict[str, Any] = {
    "name": "world",
    "driver": "550.54.15",
    "cuda": "12.4",
    "cpus": "0-3",
    "addressing": "hmm",
    "fabric": {"cluster": "00112233-4455-6677-8899-aabbccddeeff", "clique": 7},
    "gpus": [
        {
            "model": "A100-SXM4-80GB",
            "pci": "0000:07:00.0",
            "minor": 3,
            "numa": 1,
            "cpus": "0-1,64",
            "serial": "1650522003820",
            "uuid": "GPU-11111111-2222-3333-4444-555555555555",
        },
        {
            "model": "A100-SXM4-80GB",
            "pci": "0001:0f:1f.0",
            "minor": 0,
            "numa": 1,
            "links": [2, 2, "switch"],
            "memory_clocks": [1593],
            "graphics_clocks": [1410, 1380, 15],
        },
        {"model": "H100-80GB-HBM3", "pci": "0001:47:00.0", "minor": 1, "links": [1, 1]},
        {"model": "T4", "pci": "0001:4e:00.0", "minor": 2},
    ],
}
CUT, WHOLE, HOPPER, WITHOUT_MIG = range(4)
"""The cards: cut into a 3g.40gb at 0 and a 1g.10gb at 4; whole and busy; of another class; without MIG."""

PROFILE_3G, PROFILE_1G, SPANNING_3G, SPANNING_1G = 9, 19, 2, 0
IN_3G, COMPUTES, DRAWS, SHARES = 4000, 4001, 4002, 4003
"""Processes: one in the 3g instance, and one of each kind on the busy card."""


@dataclass(frozen=True, slots=True)
class World:
    """The machine, and handles by which its parts are reached."""

    machine: Machine
    cards: tuple[Any, ...]
    gi: Any
    ci: Any
    mig: Any


@contextmanager
def world(root: Path) -> Iterator[World]:
    machine = Machine.make(root, DESCRIPTION)
    with nvml(machine):
        cards = tuple(pynvml.nvmlDeviceGetHandleByIndex(index) for index in range(4))
        pynvml.nvmlDeviceSetMigMode(cards[CUT], 1)
        gi = pynvml.nvmlDeviceCreateGpuInstance(cards[CUT], PROFILE_3G)
        ci = pynvml.nvmlGpuInstanceCreateComputeInstance(gi, SPANNING_3G)
        small = pynvml.nvmlDeviceCreateGpuInstanceWithPlacement(
            cards[CUT], PROFILE_1G, ctypes.byref(pynvml.c_nvmlGpuInstancePlacement_t(4, 1))
        )
        pynvml.nvmlGpuInstanceCreateComputeInstance(small, SPANNING_1G)
        machine.run(CUT, IN_3G, "compute", gi=1, ci=0, memory=GIB)
        for pid, kind in ((COMPUTES, "compute"), (DRAWS, "graphics"), (SHARES, "mps")):
            machine.run(WHOLE, pid, kind, memory=GIB, utilization=30 if kind != "graphics" else 0)
        yield World(machine, cards, gi, ci, pynvml.nvmlDeviceGetMigDeviceHandleByIndex(cards[CUT], 0))


def fields(structure: Untyped) -> dict[str, Any]:
    """A structure's fields by name, with their values as Python has them; handles as numbers."""
    found: dict[str, Any] = {}
    for name, *_ in structure._fields_ if hasattr(structure, "_fields_") else [(n,) for n in vars(structure)]:
        value = getattr(structure, name)
        if isinstance(value, ctypes.Array):
            value = bytes(value) if value._type_ is ctypes.c_uint8 else list(value)
        elif isinstance(value, ctypes.Structure):
            value = fields(value)
        elif hasattr(value, "contents"):
            value = number(value)
        found[name] = value
    return found


def number(handle: Untyped) -> int:
    """A handle as a number; two handles are the same if these are."""
    return ctypes.cast(handle, ctypes.c_void_p).value or 0
