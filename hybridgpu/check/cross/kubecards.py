"""How many of a node's cards each side gives out, and how many there are: whether the node is split by card."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hybridgpu.check.cross.slurmnode import SlurmNode, card, card_of_file, instances
from hybridgpu.consumers.kubernetes.given import KubeNode, Operand
from hybridgpu.consumers.kubernetes.labelnumber import label_number
from hybridgpu.model.facts import Facts
from hybridgpu.model.labels import MIG_RESOURCE, SHARED_SUFFIX
from hybridgpu.model.offer import SlurmOffer

_SLICES = re.compile(r"(?:[0-9]+c\.)?([0-9]{1,9})g\.")
_COMPUTE_SLICES = 7
_INDICES = re.compile(r"[0-9]{1,9}(,[0-9]{1,9})*")


def devices(node: KubeNode) -> dict[str, int]:
    """Its allocatable devices by resource, without `.shared` and without what replicas multiply."""
    found: dict[str, int] = {}
    for resource, count in (node.allocatable or {}).items():
        name = resource.removesuffix(SHARED_SUFFIX)
        replicas = label_number(node.labels.get(f"{name}.replicas")) or 1
        if count and (name == "nvidia.com/gpu" or name.startswith(MIG_RESOURCE)):
            found[name] = found.get(name, 0) + -(-count // replicas)
    return found


def is_split(slurm: SlurmNode, kube: KubeNode, facts: Facts | None, operands: Sequence[Operand]) -> bool:
    """Whether the two sides may well give out different cards of one node."""
    mine, theirs = _slurm_cards(slurm.offer), _kubernetes_cards(kube)
    if slurm.offer is None or mine is None or theirs is None:
        return False
    numbers = {number for number in map(card, slurm.offer.gpus) if number is not None}
    if numbers and theirs <= len(_held(slurm.offer) - numbers):
        return True
    indices = {gpu.minor: gpu.index for gpu in facts.gpus} if facts else {}
    mine_by_index = {indices.get(number, number) for number in numbers}
    for operand in (operand for operand in operands if kube.selected_by(operand.selector)):
        visible = operand.env.get("NVIDIA_VISIBLE_DEVICES", "")
        if operand.program == "device-plugin" and _INDICES.fullmatch(visible) and numbers:
            seen = {int(index) for index in visible.split(",")}
            if len(seen) == theirs and not seen & mine_by_index:
                return True
            # Without facts an index may be another card's minor number; all of them are hardly so.
            if seen == mine_by_index or (facts and seen & mine_by_index):
                return False
    return mine + theirs <= _physical(slurm.offer, kube, facts)


def _held(offer: SlurmOffer) -> set[int]:
    """The cards that another GRES names: so Slurm keeps cards of Kubernetes from its jobs."""
    files = (file for other in offer.others for file in other.files)
    return {minor for file in files if (minor := card_of_file(file)) is not None}


def _slurm_cards(offer: SlurmOffer | None) -> int | None:
    """Cards, at least: instances whose files nobody knows are packed as tightly as can be."""
    if offer is None:
        return None
    known = {number for number in map(card, offer.gpus) if number is not None}
    unknown = [gpu for gpu in offer.gpus if card(gpu) is None]
    counted = instances(SlurmOffer(tuple(unknown)))
    return len(known) + (len(unknown) if counted is None else _packed(counted))


def _kubernetes_cards(node: KubeNode) -> int | None:
    """Cards, at least; None where the file does not say."""
    found = devices(node)
    if not found:
        return None
    product = node.labels.get("nvidia.com/gpu.product", "")
    whole = found.pop("nvidia.com/gpu", 0)
    profiles = {name.removeprefix(MIG_RESOURCE): count for name, count in found.items()}
    single = product.partition("-MIG-")[2].removesuffix("-SHARED")
    if single and whole:
        profiles, whole = {single: whole}, 0
    return whole + _packed(profiles)


def _packed(profiles: dict[str, int]) -> int:
    """Cards that so many instances take at least: no card has more compute slices than seven."""
    sizes = {name: _SLICES.match(name) for name in profiles}
    total = sum(int(size[1]) * profiles[name] for name, size in sizes.items() if size)
    return -(-total // _COMPUTE_SLICES)


def _physical(offer: SlurmOffer, node: KubeNode, facts: Facts | None) -> int:
    """How many cards there are: by facts, else by GFD's label, else at least as many as Slurm's device files show."""
    if facts:
        return len(facts.gpus)
    named = {number for number in map(card, offer.gpus) if number is not None} | _held(offer)
    labelled = label_number(node.labels.get("nvidia.com/gpu.count"))
    if labelled and "-MIG-" not in node.labels.get("nvidia.com/gpu.product", ""):  # else it counts instances
        return max(labelled, len(named))
    return max((number + 1 for number in named), default=0)
