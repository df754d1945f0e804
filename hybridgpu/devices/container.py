"""Whether this machine's driver comes in a container of the GPU operator's, and so only after kubelet. Changes nothing.

Told apart from a driver that is broken: of that, something is always there.
"""

from __future__ import annotations

import ctypes
from pathlib import Path

from hybridgpu.devices.kernel import driver_root
from hybridgpu.devices.nodeconfig import NodeWanted
from hybridgpu.model.site import OPERATOR

_KERNEL = "proc/driver/nvidia"
_LIBRARY = "libnvidia-ml.so.1"


def comes_in_container(wanted: NodeWanted, root: Path) -> bool:
    """Whether the operator brings the driver, and has not yet: its node, no kernel module loaded, no library there."""
    if wanted.kubernetes is None or wanted.kubernetes.delivery != OPERATOR:
        return False
    where = driver_root(root)
    return not (where.kernel / _KERNEL).exists() and where.library is None and not _loads()


def _loads() -> bool:
    """Whether the loader finds the library, as NVML's callers have it looked for."""
    try:
        ctypes.CDLL(_LIBRARY)
    except OSError:
        return False
    return True
