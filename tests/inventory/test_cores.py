"""Whole sockets, as Slurm takes them for Cores=."""

from __future__ import annotations

import pytest

from hybridgpu.consumers.slurm.hardware import Hardware
from hybridgpu.inventory.cores import completed, socket_range


@pytest.mark.parametrize(
    ("cores", "written"),
    [
        ("0-31", "0-31"),
        ("32-63", "32-63"),
        ("0-63", "0-63"),
        ("0-15,16-31", "0-31"),
        ("0-15", None),
        ("16-47", None),
        ("0-31,48-63", None),
        ("64-95", None),
        ("", None),
        ("a-b", None),
        ("0-31,8-15,3", "0-31"),
        ("0-9999999999", None),
    ],
)
def test_only_whole_sockets_are_written(cores: str, written: str | None) -> None:
    assert socket_range(cores, Hardware(2, 32, 1)) == written


@pytest.mark.parametrize(
    ("given", "written"),
    [
        ("CPUs=256 Sockets=2 RealMemory=9", "CPUs=256 Sockets=2 CoresPerSocket=128 RealMemory=9"),
        ("CPUs=256 Sockets=2 ThreadsPerCore=2", "CPUs=256 Sockets=2 CoresPerSocket=64 ThreadsPerCore=2"),
        ("Boards=2 SocketsPerBoard=2 CPUs=32", "Boards=2 SocketsPerBoard=2 CoresPerSocket=8 CPUs=32"),
        ("CPUs=64", "CPUs=64"),
        ("CPUs=65 Sockets=2", "CPUs=65 Sockets=2"),
        ("CPUs=64 SocketsPerBoard=2 Sockets=4", "CPUs=64 SocketsPerBoard=2 Sockets=4 CoresPerSocket=32"),
        ("CPUs=2 Sockets=2", "CPUs=2 Sockets=2 CoresPerSocket=1"),
        ("CPUs=64 Sockets=2 CoresPerSocket=16", "CPUs=64 Sockets=2 CoresPerSocket=16"),
        ("Sockets=2", "Sockets=2"),
    ],
)
def test_cores_per_socket_is_completed(given: str, written: str) -> None:
    keys = tuple((key, value) for key, _, value in (pair.partition("=") for pair in given.split()))
    assert " ".join(f"{key}={value}" for key, value in completed(keys)) == written


def test_a_socket_of_one_core() -> None:
    assert socket_range("1", Hardware(2, 1, 1)) == "1"


def test_sockets_beyond_all_measure_are_only_counted() -> None:
    assert socket_range("0-65534", Hardware(65535, 65535, 1)) == "0-65534"
    assert socket_range("0-31", Hardware(65535, 65535, 1)) is None
