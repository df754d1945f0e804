"""What becomes of those who ask for GPUs: workloads, quotas and limit ranges, beside what the configs offer."""

from __future__ import annotations

from collections.abc import Iterator

from hybridgpu.consumers.kubernetes.given import KubeFiles
from hybridgpu.model.finding import Finding


def judge_asks(files: KubeFiles) -> Iterator[Finding]:
    """All findings on workloads, quotas and limit ranges."""
    del files
    yield from ()
