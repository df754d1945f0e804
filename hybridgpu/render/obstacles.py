"""What is in the way of writing a tree, as findings: files that are not ours to replace."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from hybridgpu.files.tree import Obstacle
from hybridgpu.model.finding import Finding, Place, Rule, Severity

NOT_OURS = Rule(
    "render-file-in-the-way",
    Severity.ERROR,
    "A file that hybridgpu did not write, or that was edited since, is not replaced.",
    "Move what is yours into the inventory (slurm.site), or let --overwrite move the file to NAME.orig.",
    "hybridgpu",
)


def in_the_way(target: Path, obstacles: Iterable[Obstacle]) -> list[Finding]:
    """A finding for each obstacle."""
    return [
        Finding(NOT_OURS, Place(str(target / obstacle.path), 1), f"{obstacle.path}: {obstacle.why}", NOT_OURS.fix)
        for obstacle in obstacles
    ]
