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
        _put(devices / "cpu/online", every)
        for number, socket in enumerate(self.sockets):
            for core in socket:
                for cpu in every & set(core):
                    folder = devices / f"cpu/cpu{cpu}"
                    _put(folder / "topology/thread_siblings_list", every & set(core))
                    _put(folder / "topology/physical_package_id", [number])
                    for cache in (group for group in self.l3 if cpu in group):
                        _put(folder / "cache/index3/shared_cpu_list", every & set(cache))
        for number, node in enumerate(self.numa):
            _put(devices / f"node/node{number}/cpulist", every & set(node))


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


def _put(path: Path, numbers: Iterable[int]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(",".join(map(str, sorted(numbers))) + "\n")
