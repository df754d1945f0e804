"""What is wrong with a site's Kubernetes configuration: each config, each MIG layout, who chooses which, and how."""

from __future__ import annotations

from collections.abc import Iterator

from hybridgpu.consumers.kubernetes.given import KubeFiles
from hybridgpu.model.finding import Finding


def judge_configuration(files: KubeFiles) -> Iterator[Finding]:
    """All findings on configs, policies, operands, MIG files and the labels of nodes."""
    del files
    yield from ()
