"""What an inventory is made from: a cluster's files as Slurm consumes them, facts, and what Kubernetes' files say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hybridgpu.consumers.kubernetes.given import KubeFiles
from hybridgpu.consumers.slurm import Consumption, SlurmTree
from hybridgpu.model.facts import Facts


@dataclass(frozen=True, slots=True)
class Sources:
    """Everything that was read, without a mistake that hides what it means.

    `tree` and `consumption` are both None where no Slurm files were given. `release_guess`: why the consumption's
    release is a guess, empty where somebody named it. `facts` are by node.
    """

    tree: SlurmTree | None = None
    consumption: Consumption | None = None
    release_guess: str = ""
    facts: Mapping[str, Facts] = field(default_factory=dict)
    kube: KubeFiles = field(default_factory=KubeFiles)
