"""A site's Slurm files, whole or in part, as they were given: which file is read by whom, and what nobody reads."""

from __future__ import annotations

from dataclasses import dataclass

from hybridgpu.consumers.slurm.conf import SlurmFiles
from hybridgpu.consumers.slurm.consume import Consumption


@dataclass(frozen=True, slots=True)
class SlurmTree:
    """One cluster's files, and the paths of all that were read for it."""

    files: SlurmFiles
    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SlurmSide:
    """A cluster's files, and what its release makes of them."""

    tree: SlurmTree
    consumption: Consumption
