"""Where a machine's CPUs are, and which of Slurm's cores some of them are. Reads below a root, then only computes.

Slurm counts cores as hwloc does, L# (S:src/slurmd/common/xcpuinfo.c xcpuinfo_hwloc_topo_get): sockets one after the
other, in them dies, NUMA nodes and L3 caches, in these the cores, each group where its lowest CPU stands; siblings of
a core are side by side, CPUs that are offline are not there. A set of CPUs is an int, one bit each.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from hybridgpu.devices.port import Unread

Topology = tuple[int, ...]
"""The CPUs of each core that is online, in Slurm's order."""

_GROUPS = ("topology/die_cpus_list", "cache/index3/shared_cpu_list")
"""What a CPU's folder says of its die and its L3 cache; not every machine has them."""


def cores_in_order(cores: Iterable[int], groups: Iterable[int]) -> Topology:
    """The cores as hwloc counts them, given the groups (sockets, NUMA nodes, caches) that hold some of them."""
    by_size = sorted(groups, key=int.bit_count, reverse=True)

    def place(core: int) -> tuple[int, ...]:
        return (*(_lowest(group) for group in by_size if group & core == core), _lowest(core))

    return tuple(sorted(set(cores), key=place))


def core_range(cpus: int, topology: Topology) -> str | None:
    """Slurm's core range (`0-31`, `0-3,8-11`) of the cores that have one of the CPUs; None where there are none.

    A core is in it as soon as one of its threads is (S:src/slurmd/common/xcpuinfo.c xcpuinfo_mac_to_abs).
    """
    numbers = [number for number, core in enumerate(topology) if core & cpus]
    return ",".join(_ranges(numbers)) or None


def cpu_set(text: str) -> int:
    """The set of a kernel's CPU list: `0-3,8`; empty for an empty list. Raises ValueError where it is none."""
    cpus = 0
    for part in filter(None, text.strip().split(",")):
        first, _, last = part.partition("-")
        low, high = int(first), int(last or first)
        cpus |= ((1 << (high - low + 1)) - 1) << low
    return cpus


def read_topology(root: Path) -> Topology | Unread:
    """The cores of the machine whose sysfs is below `root`/sys; Unread, by the file, where they cannot be read."""
    devices = root / "sys/devices/system"
    try:
        online = _read(devices / "cpu/online")
        cores: list[int] = []
        sockets: dict[str, int] = {}
        groups: dict[str, set[int]] = {name: set() for name in _GROUPS}
        left = online
        while left:
            cpu = devices / f"cpu/cpu{_lowest(left)}"
            core = _read(cpu / "topology/thread_siblings_list") & online or left & -left
            cores.append(core)
            left &= ~core
            socket = _text(cpu / "topology/physical_package_id")
            sockets[socket] = sockets.get(socket, 0) | core
            for name, known in groups.items():
                if not any(group & core for group in known) and (cpu / name).exists():
                    known.add(_read(cpu / name))
        numa = [_read(node / "cpulist") for node in (devices / "node").glob("node[0-9]*")]
    except (OSError, ValueError) as error:
        where = getattr(error, "filename", None) or devices / "cpu"
        return Unread(str(where), getattr(error, "strerror", None) or str(error))
    inner = [group & online for known in (*groups.values(), numa) for group in known]
    return cores_in_order(cores, [*sockets.values(), *inner])


def _lowest(cpus: int) -> int:
    return (cpus & -cpus).bit_length() - 1


def _ranges(numbers: list[int]) -> Iterator[str]:
    start = 0
    for at, number in enumerate(numbers):
        if at + 1 == len(numbers) or numbers[at + 1] != number + 1:
            yield f"{numbers[start]}-{number}" if number > numbers[start] else str(number)
            start = at + 1


def _read(path: Path) -> int:
    return cpu_set(_text(path))


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8").strip()
