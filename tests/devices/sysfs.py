"""Machines' CPUs as a sysfs tree, from a few words: what topology tests read and simulated machines stand on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Cpus:
    """`sockets`: per socket its cores, each the CPU numbers of its threads. `numa`, `l3`: groups of CPU numbers."""

    sockets: Sequence[Sequence[Sequence[int]]]
    numa: Sequence[Sequence[int]] = ()
    l3: Sequence[Sequence[int]] = ()
    offline: frozenset[int] = field(default=frozenset())

    def write(self, root: Path) -> None:
        """The tree below `root`/sys, as the kernel shows it: an offline CPU is in no list and has no topology."""
        devices = root / "sys/devices/system"
        every = {cpu for socket in self.sockets for core in socket for cpu in core} - self.offline
        _list(devices / "cpu/online", every)
        _list(devices / "cpu/possible", every | self.offline)
        for number, socket in enumerate(self.sockets):
            whole = every & {cpu for core in socket for cpu in core}
            for at, core in enumerate(socket):
                for cpu in every & set(core):
                    folder = devices / f"cpu/cpu{cpu}"
                    _group(folder / "topology/thread_siblings", every & set(core))
                    _group(folder / "topology/core_siblings", whole)
                    _text(folder / "topology/physical_package_id", str(number))
                    _text(folder / "topology/core_id", str(at))
                    for cache in (group for group in self.l3 if cpu in group):
                        _group(folder / "cache/index3/shared_cpu", every & set(cache), "_map")
                        _text(folder / "cache/index3/level", "3")
                        _text(folder / "cache/index3/type", "Unified")
        for number, node in enumerate(self.numa):
            _group(devices / f"node/node{number}/cpu", every & set(node), "map")
            _text(devices / f"node/node{number}/meminfo", f"Node {number} MemTotal: 1048576 kB")
        if self.numa:
            _list(devices / "node/online", range(len(self.numa)))


def plain(sockets: int, cores: int, threads: int, *, numa: int = 1) -> Cpus:
    """Servers as most are: CPUs count the first threads of all cores, then the second; `numa` nodes a socket."""
    total = sockets * cores
    by_socket = [
        [[core + total * thread for thread in range(threads)] for core in range(first, first + cores)]
        for first in range(0, total, cores)
    ]
    size = cores // numa
    nodes = [
        [cpu for core in socket[first : first + size] for cpu in core]
        for socket in by_socket
        for first in range(0, cores, size)
    ]
    return Cpus(by_socket, nodes)


def _group(path: Path, cpus: Iterable[int], mask: str = "") -> None:
    """The two files in which the kernel tells of some CPUs: a mask, and beside it a list."""
    bits = sum(1 << cpu for cpu in cpus)
    words = [f"{bits >> shift & 0xFFFFFFFF:08x}" for shift in range(0, max(bits.bit_length(), 1), 32)]
    _text(path.with_name(path.name + mask), ",".join(reversed(words)))
    _list(path.with_name(f"{path.name}{'' if mask == 'map' else '_'}list"), cpus)


def _list(path: Path, numbers: Iterable[int]) -> None:
    _text(path, ",".join(map(str, sorted(numbers))))


def _text(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{text}\n")
