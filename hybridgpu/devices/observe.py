"""One look at this machine's cards: driver, the kernel's files and the CPUs, within a time limit. Judges nothing."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hybridgpu.devices.kernel import KernelReading, driver_root, read_kernel
from hybridgpu.devices.port import Driver, DriverReading, Unread
from hybridgpu.devices.timelimit import Progress, TooLate, too_late, within
from hybridgpu.devices.topology import Topology, read_topology


@dataclass(frozen=True, slots=True)
class Observation:
    """All that was read. `topology`: the CPUs of each core, in Slurm's order."""

    driver: DriverReading
    kernel: KernelReading
    topology: Topology | Unread


def observe(root: Path, seconds: float) -> Observation:
    """Reads the driver at a driver root. Raises Unavailable("device", ...) where it does not answer in `seconds`."""
    next(root.iterdir(), None)  # no such folder, or none that may be read: said here, not by a child
    progress = Progress()
    try:
        return within(seconds, lambda: _look(root, progress))
    except TooLate:
        raise too_late(seconds, str(progress) or "a card") from None


def look(driver: Driver, root: Path) -> Observation:
    """The same through any driver, in this process: where it hangs, so does this."""
    where = driver_root(root)
    told = driver.read()
    cut = any(card.instances for card in told.cards)
    sysfs = where.kernel if (where.kernel / "sys/devices/system/cpu").is_dir() else Path("/")
    return Observation(told, read_kernel(where, capabilities=cut), read_topology(sysfs))


def _look(root: Path, progress: Progress) -> Observation:
    from hybridgpu.devices.nvml import Nvml

    return look(Nvml(driver_root(root).library, progress.at), root)
