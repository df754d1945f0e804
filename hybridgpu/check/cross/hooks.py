"""The hooks that slurm.conf names, as they lie on disk: globs that match nothing, scripts that cannot be run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hybridgpu.consumers.slurm.given import SlurmSide
from hybridgpu.model.finding import Finding


def judge_hooks(slurm: SlurmSide, roots: Sequence[str]) -> Iterator[Finding]:
    """Findings on Prolog, Epilog and their kin whose folder lies in one of `roots` (folders that were named)."""
    del slurm, roots
    yield from ()
