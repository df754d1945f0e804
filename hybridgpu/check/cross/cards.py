"""What the files say of a node's cards, held against its facts: device files, instances and numbers that are not there.

Nodes of an inventory are left out: reading that against facts is its own business, and it may want what is not yet cut.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from hybridgpu.check.cross.groups import Groups
from hybridgpu.check.cross.kubecards import devices
from hybridgpu.check.cross.slurmnode import SlurmNode, card, profile
from hybridgpu.consumers.kubernetes.given import KubeNode
from hybridgpu.consumers.kubernetes.labelnumber import label_number
from hybridgpu.files.quoting import listed
from hybridgpu.model.facts import Facts, GpuFacts
from hybridgpu.model.finding import Finding, Place, Related, Rule, Severity
from hybridgpu.model.hostname import Directory
from hybridgpu.model.labels import MIG_RESOURCE
from hybridgpu.model.naming import instance_files
from hybridgpu.model.offer import SlurmDevice

NOT_THERE = Rule(
    "site-device-not-on-node",
    Severity.ERROR,
    "Slurm's files name a device that the node's driver does not have: slurmd waits 20 s for the file and stops with a "
    "fatal error.",
    "Write gres.conf from what `hybridgpu discover` shows on the node.",
    "S:src/interfaces/gres.c _my_stat; slurmd on 22.05, 24.11, 26.05",
)
CUT_CARD = Rule(
    "site-card-in-mig-mode",
    Severity.ERROR,
    "Slurm's files offer a whole card that is in MIG mode: a job that is given it can run on one instance at most.",
    "Name its instances (MultipleFiles), or turn MIG off on the card.",
    "MIG user guide: with MIG mode on, CUDA sees one instance and never the whole card",
)
OTHER_INSTANCE = Rule(
    "site-instance-of-other-profile",
    Severity.ERROR,
    "A type of Slurm names one MIG profile, and its device files are another's instance: jobs get less, or more, than "
    "they asked for.",
    "Write gres.conf from what `hybridgpu discover` shows on the node.",
    "/proc/driver/nvidia-caps/mig-minors",
)
TOO_MANY = Rule(
    "site-more-gpus-than-cards",
    Severity.ERROR,
    "Slurm's Gres= counts more GPUs than the node has: it registers fewer than configured and turns INVALID.",
    "Set the count to what the node has.",
    "S:src/interfaces/gres.c _node_config_validate",
)
NODE_SHOWS_OTHERS = Rule(
    "site-node-shows-other-cards",
    Severity.WARNING,
    "A Node object and the node's facts show different cards: one of them is older than the other, or a card failed.",
    "Read both anew; `hybridgpu discover` on the node writes its facts.",
    "k8s-device-plugin v0.20.0 internal/lm",
)

_SHOWN = 8
_CAP = re.compile(r"/dev/nvidia-caps/nvidia-cap[0-9]+")


def judge_cards(
    slurm: Sequence[SlurmNode], kube: Sequence[KubeNode], facts: Directory[Facts], named: Directory[str]
) -> Iterator[Finding]:
    """Findings on the nodes that have facts and are in no inventory: `named` has those that are."""
    groups = Groups()
    for node in slurm:
        told = facts.find(node.names)
        if told and node.offer and node.offer.gpus and named.find(node.names) is None:
            _of_slurm(groups, node, told)
    for other in kube:
        told = facts.find(other.host_names)
        if told and named.find(other.host_names) is None:
            _of_kubernetes(groups, other, told)
    yield from groups.findings()


def _of_slurm(groups: Groups, node: SlurmNode, facts: Facts) -> None:
    gpus = node.offer.gpus if node.offer else ()
    cards = {gpu.minor: gpu for gpu in facts.gpus}
    related = (Related(Place(facts.file, 1), "the node's facts"),) if facts.file else ()
    absent: list[str] = []
    cut: list[str] = []
    others: dict[tuple[str, str], list[str]] = {}
    for device in gpus:
        minor = card(device)
        if minor is None:
            continue
        if minor not in cards:
            absent.append(device.files[0])
        elif len(device.files) == 1:
            cut += [device.files[0]] if cards[minor].mig_enabled else []
        else:
            absent += _instance(device, cards[minor], others)
    if absent:
        has = _has(facts)
        words = f"{_listed(absent)} {'is' if len(set(absent)) == 1 else 'are'} not on the node: it has {has}"
        groups.add(NOT_THERE, node.place, node.name, words, related)
    if cut:
        words = (
            f"{_listed(cut)} {'is' if len(set(cut)) == 1 else 'are'} in MIG mode, and Gres={node.gres} offers it whole"
        )
        groups.add(CUT_CARD, node.place, node.name, words, related)
    for (named, real), caps in others.items():
        words = f"Type={named} has the files of {real} ({_listed(caps)})"
        groups.add(OTHER_INSTANCE, node.place, node.name, words, related)
    blind = [device for device in gpus if not device.files]
    total = sum(len(gpu.instances) if gpu.mig_enabled else 1 for gpu in facts.gpus)
    if blind and len(gpus) > total:
        words = f"Gres={node.gres} counts {len(gpus)}, and the node has {_has(facts)}"
        groups.add(TOO_MANY, node.place, node.name, words, related)


def _instance(device: SlurmDevice, found: GpuFacts, others: dict[tuple[str, str], list[str]]) -> list[str]:
    """The device's capability files that no instance of the card has; into `others` go those of another profile."""
    caps = [file for file in device.files[1:] if _CAP.fullmatch(file)]
    there = {file: instance for instance in found.instances for file in instance_files(found.minor, instance)[1:]}
    missing = [file for file in caps if file not in there]
    named = profile(device)
    real = {there[file].profile for file in caps if file in there}
    if not missing and named and real and named.replace("+", ".") not in {p.replace("+", ".") for p in real}:
        others.setdefault((device.type or "", " and ".join(sorted(real))), []).extend(caps)
    return missing


def _has(facts: Facts) -> str:
    cards = _listed([f"/dev/nvidia{gpu.minor}" for gpu in facts.gpus])
    cut = sum(len(gpu.instances) for gpu in facts.gpus)
    return f"{cards or 'no card'}" + (f" with {cut} MIG instances" if cut else " and no MIG instance")


def _listed(files: Sequence[str]) -> str:
    return listed(dict.fromkeys(files), _SHOWN)


def _of_kubernetes(groups: Groups, node: KubeNode, facts: Facts) -> None:
    """GFD counts cards of one model, in MIG mode or not; under `single` it counts instances."""
    product = node.labels.get("nvidia.com/gpu.product", "")
    related = (Related(Place(facts.file, 1), "the node's facts"),) if facts.file else ()
    one_model = len({gpu.model for gpu in facts.gpus}) == 1
    key = "nvidia.com/gpu.count"
    counted = label_number(node.labels.get(key))
    place = node.label_places.get(key, node.place)
    if one_model and counted is not None and "-MIG-" not in product and counted != len(facts.gpus):
        words = f"{key} is {counted}, and the facts show {len(facts.gpus)} cards"
        groups.add(NODE_SHOWS_OTHERS, place, node.name, words, related)
        return
    offered = devices(node)
    cut = {name for name in offered if name.startswith(MIG_RESOURCE)}
    whole = sum(1 for gpu in facts.gpus if not gpu.mig_enabled)
    if cut and whole == len(facts.gpus):
        words = f"it offers {', '.join(sorted(cut))}, and the facts show no card in MIG mode"
        groups.add(NODE_SHOWS_OTHERS, node.place, node.name, words, related)
    elif (found := offered.get("nvidia.com/gpu", 0)) > len(facts.gpus) and whole == len(facts.gpus):
        words = f"it offers {found} of nvidia.com/gpu, and the facts show {len(facts.gpus)} cards"
        groups.add(NODE_SHOWS_OTHERS, node.place, node.name, words, related)
