"""How many of a node's cards each side gives out, and how many there are: whether the node is split by card."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hybridgpu.check.cross.fence import selected
from hybridgpu.check.cross.slurmnode import SlurmNode, card, instances
from hybridgpu.consumers.kubernetes.given import KubeNode, Operand
from hybridgpu.model.catalogue import NotFound, find
from hybridgpu.model.facts import Facts
from hybridgpu.model.offer import SlurmOffer

_MIG = "nvidia.com/mig-"
_SHARED = ".shared"
_SLICES = re.compile(r"(?:[0-9]+c\.)?([0-9]+)g\.")
_COMPUTE_SLICES = 7
_INDICES = re.compile(r"[0-9]+(,[0-9]+)*")
_FILE = re.compile(r"/dev/nvidia([0-9]+)")


def devices(node: KubeNode) -> dict[str, int]:
    """Its allocatable devices by resource, without `.shared` and without what replicas multiply."""
    found: dict[str, int] = {}
    for resource, count in (node.allocatable or {}).items():
        name = resource.removesuffix(_SHARED)
        replicas = number(node.labels.get(f"{name}.replicas")) or 1
        if count and (name == "nvidia.com/gpu" or name.startswith(_MIG)):
            found[name] = found.get(name, 0) + -(-count // replicas)
    return found


def number(text: str | None) -> int | None:
    """The number that a label says, None where there is none."""
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 10 else None


def is_split(slurm: SlurmNode, kube: KubeNode, facts: Facts | None, operands: Sequence[Operand]) -> bool:
    """Whether the two sides may well give out different cards of one node."""
    mine, theirs = _slurm_cards(slurm.offer), _kubernetes_cards(kube)
    if mine is None or theirs is None:
        return False
    numbers = {number for number in map(card, slurm.offer.gpus if slurm.offer else ()) if number is not None}
    for operand in (operand for operand in operands if selected(operand.selector, kube)):
        visible = operand.env.get("NVIDIA_VISIBLE_DEVICES", "")
        if operand.program == "device-plugin" and _INDICES.fullmatch(visible) and numbers:
            theirs_by_index = {int(index) for index in visible.split(",")}
            if len(theirs_by_index) == theirs:
                return not theirs_by_index & numbers
    return mine + theirs <= _physical(slurm.offer, kube, facts)


def _slurm_cards(offer: SlurmOffer | None) -> int | None:
    """Cards, at least: instances whose files nobody knows are packed as tightly as can be."""
    if offer is None:
        return None
    known = {number for number in map(card, offer.gpus) if number is not None}
    unknown = [gpu for gpu in offer.gpus if card(gpu) is None]
    counted = instances(SlurmOffer(tuple(unknown)))
    return len(known) + (len(unknown) if counted is None else _packed(counted, _COMPUTE_SLICES))


def _kubernetes_cards(node: KubeNode) -> int | None:
    """Cards, at least; None where the file does not say."""
    found = devices(node)
    if not found:
        return None
    product = node.labels.get("nvidia.com/gpu.product", "")
    model = find(product.partition("-MIG-")[0].removesuffix("-SHARED"))
    slices = _COMPUTE_SLICES if isinstance(model, NotFound) or not model.compute_slices else model.compute_slices
    whole = found.pop("nvidia.com/gpu", 0)
    profiles = {name.removeprefix(_MIG): count for name, count in found.items()}
    single = product.partition("-MIG-")[2].removesuffix("-SHARED")
    if single and whole:
        profiles, whole = {single: whole}, 0
    return whole + _packed(profiles, slices)


def _packed(profiles: dict[str, int], slices: int) -> int:
    sizes = {name: _SLICES.match(name) for name in profiles}
    total = sum(int(size[1]) * profiles[name] for name, size in sizes.items() if size)
    return -(-total // slices)


def _physical(offer: SlurmOffer | None, node: KubeNode, facts: Facts | None) -> int:
    """How many cards there are, at least: by GFD's label, by facts, and by the device files that Slurm names."""
    labelled = number(node.labels.get("nvidia.com/gpu.count")) or 0
    if "-MIG-" in node.labels.get("nvidia.com/gpu.product", ""):
        labelled = 0  # it counts instances there
    gpus, others = (offer.gpus, offer.others) if offer else ((), ())
    files = [gpu.files[0] for gpu in gpus if gpu.files]
    files += [file for other in others for file in other.files]
    named = [int(found[1]) + 1 for file in files if (found := _FILE.fullmatch(file))]
    return max(labelled, len(facts.gpus) if facts else 0, *named, 0)
