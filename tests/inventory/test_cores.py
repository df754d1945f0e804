"""Whole sockets, as Slurm takes them for Cores=."""

from __future__ import annotations

import pytest

from hybridgpu.inventory.cores import Sockets, completed, socket_range


@pytest.mark.parametrize(
    ("keys", "sockets"),
    [
        ({"Sockets": "2", "CoresPerSocket": "32"}, Sockets(2, 32)),
        ({"CPUs": "256", "Sockets": "2", "ThreadsPerCore": "2"}, Sockets(2, 64)),
        ({"cpus": "64", "SOCKETS": "2"}, Sockets(2, 32)),
        ({"Boards": "2", "SocketsPerBoard": "2", "CoresPerSocket": "8"}, Sockets(4, 8)),
        ({"CPUs": "64"}, None),
        ({"Sockets": "2"}, None),
        ({"Sockets": "two", "CoresPerSocket": "8"}, None),
        ({"Sockets": "2", "CPUs": "64", "ThreadsPerCore": "0"}, None),
        ({}, None),
    ],
)
def test_sockets_of_node_keys(keys: dict[str, str], sockets: Sockets | None) -> None:
    assert Sockets.of(keys) == sockets


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
    assert socket_range(cores, Sockets(2, 32)) == written


@pytest.mark.parametrize(
    ("given", "written"),
    [
        ("CPUs=256 Sockets=2 RealMemory=9", "CPUs=256 Sockets=2 CoresPerSocket=128 RealMemory=9"),
        ("CPUs=256 Sockets=2 ThreadsPerCore=2", "CPUs=256 Sockets=2 CoresPerSocket=64 ThreadsPerCore=2"),
        ("Boards=2 SocketsPerBoard=2 CPUs=32", "Boards=2 SocketsPerBoard=2 CoresPerSocket=8 CPUs=32"),
        ("CPUs=64", "CPUs=64"),
        ("CPUs=65 Sockets=2", "CPUs=65 Sockets=2"),
        ("CPUs=2 Sockets=2", "CPUs=2 Sockets=2 CoresPerSocket=1"),
        ("CPUs=64 Sockets=2 CoresPerSocket=16", "CPUs=64 Sockets=2 CoresPerSocket=16"),
        ("Sockets=2", "Sockets=2"),
    ],
)
def test_cores_per_socket_is_completed(given: str, written: str) -> None:
    keys = tuple((key, value) for key, _, value in (pair.partition("=") for pair in given.split()))
    assert " ".join(f"{key}={value}" for key, value in completed(keys)) == written


def test_a_socket_of_one_core() -> None:
    assert socket_range("1", Sockets(2, 1)) == "1"


def test_sockets_beyond_all_measure_are_only_counted() -> None:
    assert socket_range("0-65534", Sockets(65535, 65535)) == "0-65534"
    assert socket_range("0-31", Sockets(65535, 65535)) is None
