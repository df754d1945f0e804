"""A site's Slurm files, whole or in part, as they were given: which file is read by whom, and what nobody reads."""

from __future__ import annotations

from dataclasses import dataclass

from hybridgpu.consumers.slurm.conf import SlurmFiles
from hybridgpu.consumers.slurm.consume import Consumption


@dataclass(frozen=True, slots=True)
class SlurmTree:
    """One cluster's files. `paths`: all that were read for it.

    `whole`: slurm.conf itself is there. Without it (nodes.conf and gpu.conf alone, or gres.conf alone) what is not
    written is not known, and nothing is said of it. `gres_known`: gres.conf was given, or its folder was and it is not
    there.
    """

    files: SlurmFiles
    paths: tuple[str, ...]
    whole: bool = True
    gres_known: bool = True


@dataclass(frozen=True, slots=True)
class SlurmSide:
    """A cluster's files, and what its release makes of them."""

    tree: SlurmTree
    consumption: Consumption
