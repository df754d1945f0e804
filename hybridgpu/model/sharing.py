"""How a node's GPUs are shared, and who may start work on them: the words of the inventory as types."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Mode(StrEnum):
    """One per node, the same for both schedulers."""

    EXCLUSIVE = "exclusive"
    TIME_SLICING = "time-slicing"
    MPS = "mps"
    MIG = "mig"


class Scheduler(StrEnum):
    """A scheduler that a node is known to, and that may own its GPUs."""

    SLURM = "slurm"
    KUBERNETES = "kubernetes"


class ComputeMode(StrEnum):
    """NVML's compute modes, as facts and NodeConfigs write them."""

    DEFAULT = "default"
    EXCLUSIVE_PROCESS = "exclusive_process"
    PROHIBITED = "prohibited"


@dataclass(frozen=True, slots=True)
class Sharing:
    """What a node entry's `sharing` block says, with its defaults filled in.

    `replicas` is None where the mode has none. `mig_strategy` is `mixed` or `single`. The layout itself is not
    here: it is in the devices of the NodeConfig.
    """

    mode: Mode
    replicas: int | None = None
    mig_strategy: str = "mixed"
    rename_by_default: bool = False
    fail_requests_greater_than_one: bool = True
    whole_gpu_jobs: bool = False
    compute_mode: ComputeMode = ComputeMode.DEFAULT

    @property
    def daemons(self) -> bool:
        """Whether jobs of Slurm get MPS daemons: shares of GPUs in mode mps, whole devices where opted in."""
        return self.mode is Mode.MPS or self.whole_gpu_jobs
