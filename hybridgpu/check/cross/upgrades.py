"""Driver upgrades that the GPU operator does by itself on nodes where Slurm's jobs run: it knows nothing of them.

Source: gpu-operator v26.3 controllers/upgrade_controller.go (a ClusterPolicy without upgradePolicy: off), values.yaml
(on); k8s-operator-libs (the label that leaves a node out).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hybridgpu.check.cross.pairs import Pair
from hybridgpu.consumers.kubernetes.given import KubeFiles, KubeNode, Policy
from hybridgpu.inventory.hosts import fold
from hybridgpu.inventory.load import Loaded
from hybridgpu.model.finding import Finding, Place, Related, Rule, Severity
from hybridgpu.model.labels import DEPLOY_DRIVER, DEPLOY_OPERANDS

UPGRADES = Rule(
    "site-driver-auto-upgrade",
    Severity.WARNING,
    "The operator upgrades the driver of nodes that are in Slurm as well: it evicts pods, unloads the driver and "
    "uncordons the node, and Slurm's jobs lose their GPUs in between.",
    "Set driver.upgradePolicy.autoUpgrade to false, or label these nodes nvidia.com/gpu-driver-upgrade.skip=true.",
    "gpu-operator v26.3 controllers/upgrade_controller.go; k8s-operator-libs",
)

_SKIP = "nvidia.com/gpu-driver-upgrade.skip"
_KEY = "driver.upgradePolicy.autoUpgrade"


def judge_upgrades(
    kube: KubeFiles, pairs: Sequence[Pair], slurm_has_gpus: bool, inventories: Sequence[Loaded]
) -> Iterator[Finding]:
    """Findings on the policies that upgrade drivers; the nodes in both are told by Node objects, else by inventories.

    Where neither is given, only a policy that says so itself is held against a Slurm that has GPUs.
    """
    for policy in kube.policies:
        if policy.driver_enabled is False or not _upgrades(policy):
            continue
        place = policy.places.get(_KEY, policy.place)
        both = list(_both(pairs, inventories, known=bool(kube.nodes)))
        if both:
            words = f"{_KEY} is {_said(policy)}, and {fold(name for name, _ in both)} {_stand(len(both))} in Slurm too"
            yield Finding(UPGRADES, place, words, UPGRADES.fix, (Related(both[0][1], "a node in both"),))
        elif slurm_has_gpus and policy.auto_upgrade and not kube.nodes and not _named(inventories):
            words = f"{_KEY} is true beside a Slurm that has GPU nodes"
            yield Finding(UPGRADES, place, words, UPGRADES.fix)


def _upgrades(policy: Policy) -> bool:
    """What is not said: on in the operator's chart, off in a ClusterPolicy. Values that name no driver key: no."""
    if policy.auto_upgrade is not None:
        return policy.auto_upgrade
    return policy.chart and any(key == "driver" or key.startswith("driver.") for key in policy.places)


def _said(policy: Policy) -> str:
    return "true" if policy.auto_upgrade else "not given, which is true"


def _stand(count: int) -> str:
    return "is" if count == 1 else "are"


def _both(pairs: Sequence[Pair], inventories: Sequence[Loaded], *, known: bool) -> Iterator[tuple[str, Place]]:
    if known:
        for pair in pairs:
            if pair.slurm.has_gpus and not _left_out(pair.kube):
                yield pair.slurm.name, pair.slurm.place
        return
    for loaded in inventories:
        for group in loaded.inventory.groups if loaded.inventory else ():
            if group.in_both:
                yield from ((host, group.place) for host in group.hosts)


def _left_out(node: KubeNode) -> bool:
    off = node.labels.get(DEPLOY_DRIVER) in ("false", "pre-installed") or node.labels.get(DEPLOY_OPERANDS) == "false"
    return off or node.labels.get(_SKIP) == "true"


def _named(inventories: Sequence[Loaded]) -> bool:
    return any(loaded.inventory for loaded in inventories)
