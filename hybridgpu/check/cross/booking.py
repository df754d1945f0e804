"""One card that both schedulers give out: the node offers it in Slurm and in Kubernetes at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hybridgpu.check.cross.fence import Fence, fence, held_by, offered
from hybridgpu.check.cross.groups import Groups
from hybridgpu.check.cross.kubecards import is_split
from hybridgpu.check.cross.pairs import Pair
from hybridgpu.consumers.kubernetes.given import Operand
from hybridgpu.model.finding import Finding, Related, Rule, Severity
from hybridgpu.model.sharing import Scheduler

TWICE = Rule(
    "site-cards-offered-twice",
    Severity.ERROR,
    "Slurm and Kubernetes both offer the GPUs of a node, and neither asks the other: a job and a pod are given the "
    "same card.",
    "Close one side: in Slurm by State=DRAIN, a partition that is down or a reservation, in Kubernetes by "
    "nvidia.com/gpu.deploy.device-plugin=false, until the node's allocatable is 0.",
    "run on Slurm 22.05, 24.11, 26.05 and Kubernetes 1.36: neither program knows of the other",
)
HELD_BY_TAINT = Rule(
    "site-cards-held-by-taint-only",
    Severity.WARNING,
    "Slurm offers the GPUs of a node that Kubernetes holds back by a taint or cordon alone: a pod that is bound to the "
    "node, or tolerates the taint, is given a card that a job may have.",
    "Stop the device plugin there too (nvidia.com/gpu.deploy.device-plugin=false), so that allocatable is 0.",
    "run on Kubernetes 1.36: kubelet looks at NoExecute only, and refuses a GPU pod only once allocatable is 0",
)


def judge_booking(pairs: Sequence[Pair], operands: Sequence[Operand]) -> Iterator[Finding]:
    """Findings on the nodes that both sides offer, but for those that are split by card."""
    groups = Groups()
    for pair in pairs:
        closed = fence(pair.kube)
        if closed is Fence.CLOSED or not pair.slurm.offers or _known_to_inventory(pair):
            continue
        if is_split(pair.slurm, pair.kube, pair.facts, operands):
            continue
        both = f"Slurm offers {pair.slurm.gres} and Kubernetes {offered(pair.kube)}"
        if closed is Fence.HELD:
            what, place = held_by(pair.kube)
            words = f"{both}; Kubernetes is held off by {what} alone, which stops no pod that is bound to the node"
            related = (Related(place, f"what holds it off on {pair.kube.name}"),)
            groups.add(HELD_BY_TAINT, pair.slurm.place, pair.slurm.name, words, related)
        else:
            related = (Related(pair.kube.place, f"the Node {pair.kube.name}"),)
            groups.add(TWICE, pair.slurm.place, pair.slurm.name, f"{both}: the same cards are given out twice", related)
    yield from groups.findings()


def _known_to_inventory(pair: Pair) -> bool:
    """Whether the inventory gives Kubernetes cards there, and so has said itself that Slurm must be closed."""
    return pair.config is not None and Scheduler.KUBERNETES in pair.config.body.owners
