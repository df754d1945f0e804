"""Counts, cores, links and a line's hardware, as Slurm's C code reads them."""

from __future__ import annotations

import pytest

from hybridgpu.consumers.slurm import load
from hybridgpu.consumers.slurm.hardware import Hardware, hardware
from hybridgpu.consumers.slurm.values import core_set, count, links_fault, unsigned

COUNTS = {
    "4": 4,
    "0": 0,
    "": 0,
    "+2": 2,
    "1K": 1024,
    "2kib": 2048,
    "2KB": 2000,
    "3m": 3 * 2**20,
    "1P": 2**50,
    "-1": None,
    "-3": 2**64 - 3,
    "2x": None,
    "abc": None,
    "0x4": None,
    str(2**63): None,
    "4 ": None,
}
CORES = {
    "0-3": {0, 1, 2, 3},
    "0,4": {0, 4},
    "7": {7},
    "8": None,
    "0-8": None,
    "": set(),
    ",4": set(),
    "4,": {4, 0},
    "abc": {0},
    "a2-3b": {2, 3},
    "0-7:2": {0, 2, 4, 6},
    "0-16:4": None,
    "3-0:1": None,
    "0-4:0": None,
    "x:y": None,
    "1-2-3": {2, 3},
}
LINKS = {"-1,4,4": True, "4,-1": True, "-1": True, "-2,-1,1023": True, "-1,,3": True} | dict.fromkeys(
    ("", "0,0", "-1,-1", "a,-1", "-3,-1", "1024,-1", "1.5,-1"), False
)
NUMBERS = {"8": 8, "0x10": 16, "010": 8, "": 0, "-1": None, "abc": None, "65536": None, "infinite": 65535, "8k": None}
HARDWARE = {
    "CPUs=8 Sockets=2 CoresPerSocket=4": Hardware(2, 4, 1),
    "CPUs=16 Sockets=2 CoresPerSocket=4 ThreadsPerCore=2": Hardware(2, 4, 2),
    "CPUs=8 CoresPerSocket=4": Hardware(2, 4, 1),
    "Procs=8": Hardware(8, 1, 1),
    "CPUs=8": Hardware(8, 1, 1),
    "Boards=2 SocketsPerBoard=2 CoresPerSocket=4": Hardware(4, 4, 1),
    "CPUs=7 CoresPerSocket=4": Hardware(1, 4, 1),
    "Sockets=0 CoresPerSocket=0": Hardware(1, 1, 1),
    "": Hardware(1, 1, 1),
}


@pytest.mark.parametrize("text", COUNTS)
def test_counts(text: str) -> None:
    assert count(text) == COUNTS[text]


@pytest.mark.parametrize("text", CORES)
def test_cores_of_a_node_with_eight(text: str) -> None:
    assert core_set(text, 8) == CORES[text]


@pytest.mark.parametrize("text", LINKS)
def test_links(text: str) -> None:
    assert (links_fault(text) is None) is LINKS[text]


@pytest.mark.parametrize("text", NUMBERS)
def test_numbers(text: str) -> None:
    assert unsigned(text, 16) == NUMBERS[text]


WIDE = {"8k": 8192, "100000": 100000, "8kk": None, "8K": 8192, "18446744073709551616": None, "UNLIMITED": 2**64 - 1}


@pytest.mark.parametrize("text", WIDE)
def test_numbers_of_memory_may_be_in_thousands(text: str) -> None:
    assert unsigned(text, 64, kilo=True) == WIDE[text]


@pytest.mark.parametrize("text", HARDWARE)
def test_hardware(text: str) -> None:
    files = load({"slurm.conf": f"NodeName=DEFAULT {text}\nNodeName=n1\n"})
    assert hardware(files.nodes[0]) == HARDWARE[text]
    assert hardware(load({"slurm.conf": f"NodeName=n1 {text}\n"}).nodes[0]) == HARDWARE[text]
