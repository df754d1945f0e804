"""What is in the way of writing a tree, as findings: files that are not ours to replace."""

from __future__ import annotations

from pathlib import Path

from hybridgpu.files.tree import TreePlan
from hybridgpu.model.finding import Finding, Place, Rule, Severity

NOT_OURS = Rule(
    "render-file-in-the-way",
    Severity.ERROR,
    "A file that hybridgpu did not write, or that was edited since, is not replaced.",
    "Move what is yours into the inventory (slurm.site), or let --overwrite move the file to NAME.orig.",
    "hybridgpu",
)


def in_the_way(target: Path, plan: TreePlan) -> list[Finding]:
    """A finding for each obstacle of the plan."""
    return [
        Finding(NOT_OURS, Place(str(target / obstacle.path), 1), f"{obstacle.path}: {obstacle.why}", NOT_OURS.fix)
        for obstacle in plan.obstacles
    ]
