"""A root with Slurm whose slurmd sees a simulated machine: AutoDetect=nvml, by Slurm's own plugin.

It is the root of testbed.slurm in every other respect, and where the machine's folder has CPUs below sys/, slurmd's
hwloc counts those. It judges nothing, and needs Debian's slurm-wlm-nvml-plugin in the root: `plugin` says whether it
is there.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from testbed.driver import library
from testbed.driver.machine import Machine
from testbed.slurm.root import SlurmRoot

_INSIDE = Path(__file__).with_name("inside")


@dataclass(frozen=True, slots=True)
class MachineRoot(SlurmRoot):
    """One release of Slurm over one machine; `slurmd_g` then finds the machine's cards."""

    machine: Machine

    @classmethod
    def over(cls, root: SlurmRoot, machine: Machine) -> MachineRoot:
        """This root, with this machine in it."""
        return cls(root.release, root.path, root.version, machine)

    def enter(self) -> tuple[str, ...]:
        """The command prefix that runs a program in the root, over the machine, in a mount namespace of its own."""
        namespace = ("unshare", "--mount", "--propagation", "private")
        return (*namespace, str(_INSIDE), str(self.path), str(self.machine.root), str(library.build().parent))


def plugin(root: SlurmRoot) -> Path | None:
    """Where Slurm's gpu/nvml plugin lies in the root; None where the root has none."""
    return next(iter(sorted(root.path.glob("usr/lib/*/slurm*/gpu_nvml.so"))), None)
