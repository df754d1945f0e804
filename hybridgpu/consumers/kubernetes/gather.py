"""From files that were given to records of what they say about GPUs."""

from __future__ import annotations

from collections.abc import Sequence

from hybridgpu.consumers.kubernetes.given import KubeFiles
from hybridgpu.files.kinds import Input
from hybridgpu.model.finding import Finding


def gather(given: Sequence[Input]) -> tuple[KubeFiles, tuple[Finding, ...]]:
    """What the Kubernetes files among `given` say, and what hinders reading them."""
    del given
    return KubeFiles(), ()
