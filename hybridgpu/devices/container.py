"""Whether this machine's driver is one that the GPU operator's container brings, after kubelet. Changes nothing.

Told apart from a host's driver that is broken by the host's files alone: the container loads its kernel module into the
host's kernel, where the module outlives the container, and is found there before the container comes back.
"""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

from hybridgpu.devices.kernel import driver_root
from hybridgpu.devices.nodeconfig import NodeWanted
from hybridgpu.model.site import OPERATOR

CONTAINER_ROOT = "/run/nvidia/driver"
"""Where the driver's container shows its files on the host (gpu-operator assets/state-driver)."""

_LIBRARY = "libnvidia-ml.so.1"
_PROGRAM = "usr/bin/nvidia-smi"
"""By this the operator itself tells a host's driver (gpu-operator validator, validateHostDriver)."""


def comes_in_container(wanted: NodeWanted, root: Path) -> bool:
    """Whether the operator brings the driver: its node, and of a host's driver neither library nor nvidia-smi."""
    if wanted.kubernetes is None or wanted.kubernetes.delivery != OPERATOR:
        return False
    return driver_root(root).library is None and not os.path.lexists(root / _PROGRAM) and not _loads()


def _loads() -> bool:
    """Whether the loader finds the library, as NVML's callers have it looked for."""
    try:
        ctypes.CDLL(_LIBRARY)
    except OSError:
        return False
    return True
