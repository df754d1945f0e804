"""A live Slurm cluster in which each node's slurmd sees a simulated machine of its own, with its cards and its CPUs.

It is the cluster of testbed.slurm in every other respect, and judges nothing. What happens to a machine outside once
the cluster is up is not seen inside: each node has a copy.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping

from testbed.driver import library
from testbed.driver.machine import Machine
from testbed.slurm.cluster import Cluster, slurmd
from testbed.slurm.root import SlurmRoot

_ENTER = """\
machine=/machines/$1
shift
mount --bind "$machine/proc/driver" /proc/driver
mount --bind "$machine/dev/nvidia-caps" /dev/nvidia-caps
[ ! -d "$machine/sys/devices/system/cpu" ] ||
    set -- HWLOC_FSROOT="$machine" HWLOC_COMPONENTS=linux,stop HWLOC_THISSYSTEM=0 "$@"
exec env GPUSIM_ROOT="$machine" LD_LIBRARY_PATH=/machines/library "$@"
"""


class MachineCluster(Cluster):
    """A running cluster over machines by node; the root needs Slurm's gpu/nvml plugin (slurmroot.plugin)."""

    def __init__(self, root: SlurmRoot, files: Mapping[str, str], machines: Mapping[str, Machine]) -> None:
        super().__init__(root, files, tuple(machines))
        self.machines = machines

    def _furnish(self) -> None:
        super()._furnish()
        self.inside.folder("/machines")
        folders = {node: machine.root for node, machine in self.machines.items()}
        for name, folder in {**folders, "library": library.build().parent}.items():
            subprocess.run(["cp", "-a", str(folder), str(self.inside.path(f"/machines/{name}"))], check=True)

    def start_slurmd(self, node: str) -> None:
        """Start one node's slurmd over its machine, in a mount namespace of its own."""
        enter = ("unshare", "--mount", "--propagation", "private", "sh", "-euc", _ENTER, "sh", node)
        self.inside.start(slurmd(node), [*enter, "slurmd", "-D", "-N", node])
