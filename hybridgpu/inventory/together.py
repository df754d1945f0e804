"""What is wrong only when an inventory's entries are seen together: names used twice, types that are one to Slurm."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from hybridgpu.files.yamltree import Mapping, Scalar
from hybridgpu.inventory.entries import NodeGroup
from hybridgpu.inventory.hosts import MOST_NODES, count, fold
from hybridgpu.inventory.nodeentry import HOSTS, ReadEntry
from hybridgpu.inventory.report import Report
from hybridgpu.model.catalogue import unconfirmed
from hybridgpu.model.finding import Place, Rule, Severity
from hybridgpu.model.gpu import GpuModel
from hybridgpu.model.naming import gres_id, same_name_other_meaning, slurm_type
from hybridgpu.model.sharing import Scheduler

NODE_TWICE = Rule(
    "inventory-node-twice",
    Severity.ERROR,
    "A node can be only one thing.",
    "Name each node once.",
    "docs/inventory.md",
)
KUBERNETES_NAME_TWICE = Rule(
    "inventory-kubernetes-name-twice",
    Severity.ERROR,
    "Two nodes would be one in Kubernetes.",
    "Put {host} into kubernetesName.",
    "docs/inventory.md",
)
TYPE_COLLISION = Rule(
    "inventory-type-collision",
    Severity.ERROR,
    "Slurm compares types by a 32-bit sum of their bytes: a job that asks for one of these is given the other.",
    "Choose another `type` for one of the classes; a longer or shorter name breaks the tie.",
    "S:src/interfaces/gres.c gres_build_id; measured on 22.05.8, 24.11.5, 26.05.5",
)
TWO_MEANINGS = Rule(
    "inventory-profile-of-two-meanings",
    Severity.WARNING,
    "Jobs that ask for the profile get one or the other.",
    "Tell users, or let them ask for a node feature besides.",
    "hybridgpu/model/catalogue.toml",
)
UNCONFIRMED = Rule(
    "inventory-unconfirmed-catalogue",
    Severity.INFO,
    "The layout was judged by data that was not seen on this card.",
    "Compare with `nvidia-smi mig -lgipp` on a node.",
    "hybridgpu/model/catalogue.toml",
)


def entries_within_limit(entries: Sequence[Mapping], report: Report) -> int:
    """How many of the entries may be read with their hosts; the first one beyond what is possible is reported."""
    total = 0
    for at, entry in enumerate(entries):
        where = entry.scalar("hosts")
        hosts = count(where.text) if where else 0
        total += hosts if hosts <= MOST_NODES else 0  # a list that is too long by itself is reported by itself
        if where and total > MOST_NODES:
            report.add(HOSTS, where, f"up to here {total} hosts; at most {MOST_NODES} are possible")
            return at
    return len(entries)


def judge_names(entries: Iterable[ReadEntry], report: Report) -> None:
    """Reports nodes that are named twice, in one entry or in two, and names in Kubernetes that two nodes would have."""
    seen: dict[str, Scalar] = {}
    in_kubernetes: dict[str, tuple[str, Scalar]] = {}
    for entry in entries:
        if entry.where is None:
            continue
        again: dict[Scalar, list[str]] = {}
        for host in entry.hosts:
            first = seen.setdefault(host, entry.where)
            if first is not entry.where:
                again.setdefault(first, []).append(host)
        if len(set(entry.hosts)) < len(entry.hosts):
            twice = [host for host, times in Counter(entry.hosts).items() if times > 1]
            report.add(NODE_TWICE, entry.where, f"{fold(twice)} stands in this hostlist twice")
        for first, hosts in again.items():
            message = f"{fold(hosts)} stands in line {first.line} already"
            report.add(NODE_TWICE, entry.where, message, related=((first, "the first one"),))
        _judge_kubernetes_names(entry, in_kubernetes, report)


def _judge_kubernetes_names(entry: ReadEntry, seen: dict[str, tuple[str, Scalar]], report: Report) -> None:
    group, where = entry.group, entry.kubernetes_name or entry.where
    if group is None or where is None or Scheduler.KUBERNETES not in group.schedulers:
        return
    for host in entry.hosts:
        name = group.kubernetes_name.replace("{host}", host)
        other, first = seen.setdefault(name, (host, where))
        if other != host:
            message = f"the nodes {other} and {host} would both be {name} in Kubernetes"
            report.add(KUBERNETES_NAME_TWICE, where, message, related=((first, other),))
            return


def judge_types(groups: Iterable[NodeGroup], report: Report) -> None:
    """Reports Slurm types with one id that are two names, or one name of a whole GPU and of a profile."""
    first: dict[int, _Type] = {}
    told: set[frozenset[str]] = set()
    for one in _types(groups):
        other = first.setdefault(gres_id(one.name), one)
        pair = frozenset((one.name, other.name))
        if (other.name, other.whole) != (one.name, one.whole) and pair not in told:
            told.add(pair)
            message = f"to Slurm the types {one.name} and {other.name} are one and the same"
            if one.name == other.name:
                message = f"the type {one.name} would stand for a whole GPU and for a MIG profile"
            report.add(TYPE_COLLISION, one.place, message, related=((other.place, other.name),))


def judge_catalogue(groups: Iterable[NodeGroup], report: Report) -> None:
    """Reports profiles that mean two things on two models, and what is not confirmed about the models that are cut."""
    profiles: dict[GpuModel, dict[str, Place]] = {}
    sentences: dict[str, Place] = {}
    for model, names, place in _cut(groups):
        for name in names:
            profiles.setdefault(model, {}).setdefault(name, place)
        if sentence := unconfirmed(model, names):
            sentences.setdefault(sentence, place)
    for twin in same_name_other_meaning(profiles):
        one, other = profiles[twin.one].get(twin.profile), profiles[twin.other].get(twin.profile)
        if one and other:
            message = f"{twin.profile} means two things in this cluster: {twin.difference}"
            report.add(TWO_MEANINGS, other, message, related=((one, f"on {twin.one.name}"),))
    for sentence, place in sentences.items():
        report.add(UNCONFIRMED, place, sentence)


@dataclass(frozen=True, slots=True)
class _Type:
    """A type that Slurm is told, of a whole GPU or of a MIG profile, with the place that brings it."""

    name: str
    whole: bool
    place: Place


def _types(groups: Iterable[NodeGroup]) -> Iterator[_Type]:
    """Every type that Slurm is told; equal entries once."""
    seen: set[tuple[str, str | None, str]] = set()
    for group in groups:
        if Scheduler.SLURM not in group.schedulers:
            continue
        of_class = group.node_class
        for model, instances in zip(of_class.gpus, group.layout, strict=True):
            for profile in [None] if instances is None else dict.fromkeys(i.profile.name for i in instances):
                key = (model.name, profile, of_class.name)
                if key not in seen:
                    seen.add(key)
                    place = of_class.place if profile is None else group.place
                    yield _Type(slurm_type(model, profile, of_class.type), profile is None, place)


def _cut(groups: Iterable[NodeGroup]) -> Iterator[tuple[GpuModel, tuple[str, ...], Place]]:
    """Each model that is cut, its profiles, and where; equal entries once."""
    seen: set[tuple[str, tuple[str, ...]]] = set()
    for group in groups:
        for model, instances in zip(group.node_class.gpus, group.layout, strict=True):
            names = tuple(dict.fromkeys(i.profile.name for i in instances or ()))
            if names and (model.name, names) not in seen:
                seen.add((model.name, names))
                yield model, names, group.place
