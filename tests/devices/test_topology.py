"""Which of Slurm's cores the CPUs near a card are, on machines of many kinds."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybridgpu.devices.port import Unread
from hybridgpu.devices.topology import core_range, cores_in_order, cpu_set, read_topology
from tests.devices.sysfs import Cpus, plain

INTERLEAVED = Cpus([[[0, 8], [2, 10], [4, 12], [6, 14]], [[1, 9], [3, 11], [5, 13], [7, 15]]])
"""CPUs dealt out to the sockets in turn, as some vendors' firmware does."""

CLUSTERED = Cpus(
    [[[0], [2], [4], [6]], [[1], [3], [5], [7]]],
    numa=[[0, 4], [1, 5], [2, 6], [3, 7]],
)
"""The same with two NUMA nodes a socket, dealt out as well: hwloc counts node by node."""

CACHES = Cpus([[[0], [1], [2], [3]]], l3=[[0, 2], [1, 3]])
ADJACENT = Cpus([[[0, 1], [2, 3]], [[4, 5], [6, 7]]])
"""Siblings with adjacent numbers, as on POWER and in virtual machines."""

SECOND_FIRST = Cpus([[[4], [5]], [[0], [1]]])
"""The socket with the lowest CPU is the first, whatever its id."""


@pytest.mark.parametrize(
    ("cpus", "near", "expected"),
    [
        (plain(2, 4, 1), "0-3", "0-3"),
        (plain(2, 4, 1), "4-7", "4-7"),
        (plain(2, 4, 2), "0-3,8-11", "0-3"),
        (plain(2, 4, 2), "4-7,12-15", "4-7"),
        (plain(2, 4, 2), "0-15", "0-7"),
        (plain(2, 4, 2), "12-15", "4-7"),
        (plain(2, 64, 2, numa=4), "48-63,176-191", "48-63"),
        (plain(2, 64, 2, numa=4), "112-127,240-255", "112-127"),
        (plain(1, 32, 2), "0-63", "0-31"),
        (ADJACENT, "4-7", "2-3"),
        (ADJACENT, "1", "0"),
        (INTERLEAVED, "0,2,4,6,8,10,12,14", "0-3"),
        (INTERLEAVED, "1,3,5,7,9,11,13,15", "4-7"),
        (INTERLEAVED, "0-3", "0-1,4-5"),
        (CLUSTERED, "0,4", "0-1"),
        (CLUSTERED, "2,6", "2-3"),
        (CLUSTERED, "1,5", "4-5"),
        (CACHES, "0,2", "0-1"),
        (SECOND_FIRST, "0-1", "0-1"),
        (SECOND_FIRST, "4-5", "2-3"),
        (plain(1, 4, 1), "", None),
        (plain(1, 4, 1), "9", None),
    ],
)
def test_cores_near_a_card(cpus: Cpus, near: str, expected: str | None, tmp_path: Path) -> None:
    cpus.write(tmp_path)
    topology = read_topology(tmp_path)
    assert not isinstance(topology, Unread)
    assert core_range(cpu_set(near), topology) == expected


@pytest.mark.parametrize(
    ("offline", "near", "expected"),
    [
        (range(8, 16), "0-3", "0-3"),  # the second threads, as `nosmt` leaves it
        ([1], "0-3,8-11", "0-3"),  # one thread: the core stays
        ([1, 9], "0-3,8-11", "0-2"),  # a whole core: those behind it move up
        ([1, 9], "4-7,12-15", "3-6"),
        ([4, 5, 6, 7, 12, 13, 14, 15], "4-7,12-15", None),  # a whole socket
    ],
)
def test_offline_cpus_are_not_counted(offline: list[int], near: str, expected: str | None, tmp_path: Path) -> None:
    whole = plain(2, 4, 2)
    Cpus(whole.sockets, whole.numa, offline=frozenset(offline)).write(tmp_path)
    topology = read_topology(tmp_path)
    assert not isinstance(topology, Unread)
    assert core_range(cpu_set(near), topology) == expected


@given(st.permutations(range(16)), st.integers(1, 2), st.integers(1, 4))
def test_every_cpu_is_in_one_core_and_sockets_do_not_mix(order: list[int], threads: int, sockets: int) -> None:
    cores = [sum(1 << cpu for cpu in order[at : at + threads]) for at in range(0, 16, threads)]
    size = len(cores) // sockets or 1
    groups = [sum(cores[at : at + size]) for at in range(0, len(cores), size)]
    counted = cores_in_order(cores, groups)
    assert sorted(counted) == sorted(cores)
    of = [next(number for number, group in enumerate(groups) if group & core) for core in counted]
    assert [number for at, number in enumerate(of) if of[at - 1 : at] != [number]] == list(dict.fromkeys(of))
    firsts = [group & -group for group in (groups[number] for number in dict.fromkeys(of))]
    assert firsts == sorted(firsts)


@pytest.mark.parametrize(
    ("break_it", "said"),
    [
        (lambda devices: (devices / "cpu/online").unlink(), "cpu/online answered No such file"),
        (lambda devices: (devices / "cpu/online").write_text("all\n"), "invalid literal"),
        (
            lambda devices: (devices / "cpu/cpu1/topology/physical_package_id").unlink(),
            "physical_package_id answered No",
        ),
        (lambda devices: (devices / "cpu/cpu1/topology/thread_siblings_list").write_bytes(b"\xff"), "codec"),
    ],
)
def test_what_cannot_be_read_is_said(break_it: object, said: str, tmp_path: Path) -> None:
    plain(1, 4, 1).write(tmp_path)
    assert callable(break_it)
    break_it(tmp_path / "sys/devices/system")
    topology = read_topology(tmp_path)
    assert isinstance(topology, Unread)
    assert said in str(topology)


def test_this_machine_can_be_read() -> None:
    topology = read_topology(Path("/"))
    assert not isinstance(topology, Unread)
    online = Path("/sys/devices/system/cpu/online").read_text()
    assert sum(topology) == cpu_set(online)
    assert core_range(cpu_set(online), topology) == (f"0-{len(topology) - 1}" if len(topology) > 1 else "0")
