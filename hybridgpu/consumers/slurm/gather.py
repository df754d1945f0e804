"""From files that were given to clusters: which slurm.conf is a cluster's, and what belongs to it."""

from __future__ import annotations

from collections.abc import Sequence

from hybridgpu.consumers.slurm.given import SlurmTree
from hybridgpu.files.kinds import Input
from hybridgpu.model.finding import Finding


def gather(given: Sequence[Input]) -> tuple[tuple[SlurmTree, ...], tuple[Finding, ...]]:
    """The clusters among the Slurm files that were given, and what is to be said of files that nobody reads."""
    del given
    return (), ()
