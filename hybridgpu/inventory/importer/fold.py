"""Nodes that are alike as classes and entries: the fewest lines that say the same of every node.

Key order is kept, since rendering writes NodeName keys in the order of class and entry: so a class has the keys with
which all of its nodes' lines begin, and what differs is said by the entries.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, count, groupby, takewhile

from ClusterShell.NodeSet import NodeSet, NodeSetException

from hybridgpu.inventory.hosts import HostlistError, expand
from hybridgpu.inventory.importer.document import Block, Entry, Value, number
from hybridgpu.inventory.importer.nodes import NodeDraft
from hybridgpu.inventory.importer.sharing import block as sharing_block
from hybridgpu.inventory.indices import shown_indices
from hybridgpu.inventory.schema import CLASS_NAME
from hybridgpu.model.naming import whole_gpu_type
from hybridgpu.model.sharing import Scheduler

_HARDWARE = (
    "Boards",
    "Sockets",
    "SocketsPerBoard",
    "CoresPerSocket",
    "ThreadsPerCore",
    "CPUs",
    "RealMemory",
    "TmpDisk",
)
_LARGE = re.compile(r"[0-9]{18}")


@dataclass(slots=True)
class _Class:
    """Nodes of one kind, and what all of them have in common."""

    nodes: list[NodeDraft]
    name: str = ""
    type: str | None = None
    keys: tuple[tuple[str, str], ...] = ()
    gres: str = ""


@dataclass(slots=True)
class Folded:
    """The classes and the entries as blocks."""

    classes: list[Entry] = field(default_factory=list)
    entries: list[Block] = field(default_factory=list)


def fold(drafts: Sequence[NodeDraft]) -> Folded:
    """Classes in the order of their first node, and entries likewise."""
    classes = _classes(drafts)
    of_node = {id(node): one for one in classes for node in one.nodes}
    folded = Folded([Entry(one.name, _class_block(one)) for one in classes])
    alike: dict[tuple[object, ...], list[NodeDraft]] = {}
    for node in drafts:
        alike.setdefault(_entry_key(node, of_node[id(node)]), []).append(node)
    folded.entries = [_entry(nodes, of_node[id(nodes[0])]) for nodes in alike.values()]
    return folded


def fold_hosts(names: Iterable[str]) -> str:
    """A hostlist; names with very long numbers stand alone, as does what would not come back as it was."""
    every = list(dict.fromkeys(names))
    short = [name for name in every if not _LARGE.search(name)]
    try:
        text = ",".join([*([str(NodeSet.fromlist(short))] if short else []), *(n for n in every if _LARGE.search(n))])
    except NodeSetException:
        text = ""
    return text if sorted(_expanded(text, len(every))) == sorted(every) else ",".join(every)


def _expanded(text: str, most: int) -> list[str]:
    """The names of a list, none where it cannot be read or has more of them."""
    try:
        return list(expand(text, most))
    except HostlistError:
        return []


def _classes(drafts: Sequence[NodeDraft]) -> list[_Class]:
    """One for each kind of hardware. Nodes without a whole GPU have no say in what one is called."""
    found: dict[tuple[object, ...], _Class] = {}
    undecided: list[NodeDraft] = []
    for node in drafts:
        if node.wholes or not node.keys:
            found.setdefault((*_kind(node), node.type), _Class([], type=node.type)).nodes.append(node)
        else:
            undecided.append(node)
    of_kind = {key[:-1]: one for key, one in reversed(found.items())}
    for node in undecided:
        of_kind.setdefault(_kind(node), _Class([])).nodes.append(node)
    every = {id(one): one for one in (*found.values(), *of_kind.values())}
    order = {id(node): at for at, node in enumerate(drafts)}
    classes = sorted(every.values(), key=lambda one: min(order[id(node)] for node in one.nodes))
    taken: set[str] = set()
    numbers: defaultdict[str, Iterator[int]] = defaultdict(lambda: count(2))
    for one in classes:
        one.nodes.sort(key=lambda node: order[id(node)])
        one.keys, one.gres = _shared_keys(one.nodes), _shared_gres(one.nodes)
        one.name = _name(one, taken, numbers)
        taken.add(one.name)
    return classes


def _kind(node: NodeDraft) -> tuple[object, ...]:
    hardware = tuple((key, value) for key, value in node.keys if key in _HARDWARE)
    return tuple(model.name for model in node.gpus), hardware, bool(node.keys), bool(node.gres)


def _shared_keys(nodes: Sequence[NodeDraft]) -> tuple[tuple[str, str], ...]:
    """The keys with which all lines begin, each with the value that most nodes have."""
    lines = list(dict.fromkeys(node.keys for node in nodes))
    names = [tuple(key for key, _ in line) for line in lines]
    shared = len(list(takewhile(lambda column: len(set(column)) == 1, zip(*names, strict=False))))
    votes = [Counter(node.keys[at][1] for node in nodes) for at in range(shared)]
    return tuple((names[0][at], vote.most_common(1)[0][0]) for at, vote in enumerate(votes))


def _shared_gres(nodes: Sequence[NodeDraft]) -> str:
    return Counter(node.gres for node in nodes).most_common(1)[0][0]


def _name(one: _Class, taken: set[str], numbers: Mapping[str, Iterator[int]]) -> str:
    """After the type or the models, with the number of GPUs, then a running number, where that is taken.

    `numbers`: by what a name begins with, the numbers that no name was tried with.
    """
    node = one.nodes[0]
    base = one.type or "-".join(dict.fromkeys(whole_gpu_type(model) for model in node.gpus))
    base = re.sub(r"[^A-Za-z0-9._-]", "-", base).strip("._-")[: CLASS_NAME.longest - len("-64x-9999")] or "gpu"
    names = (base, f"{base}-{len(node.gpus)}x")
    return next(name for name in chain(names, (f"{base}-{at}" for at in numbers[base])) if name not in taken)


def _class_block(one: _Class) -> Block:
    node = one.nodes[0]
    why = next((node.guesses["model"] for node in one.nodes if "model" in node.guesses), "")
    models = [model.name for model in node.gpus]
    entries = []
    if len(set(models)) == 1:
        entries += [Entry("model", models[0], why), Entry("gpus", len(models))]
    else:
        runs = [{"model": model, "count": len(list(run))} for model, run in groupby(models)]
        entries.append(Entry("gpus", runs, why))
    entries += [Entry("type", one.type)] if one.type else []
    keys = _record(one.keys) | ({"Gres": one.gres} if one.gres else {})
    entries += [Entry("slurm", keys)] if keys else []
    return Block(tuple(entries))


def _own_keys(node: NodeDraft, one: _Class) -> tuple[tuple[str, str], ...]:
    """The keys in which a node differs from its class."""
    shared = dict(one.keys)
    own = tuple((key, value) for key, value in node.keys if shared.get(key) != value)
    return (*own, ("Gres", node.gres)) if node.gres != one.gres else own


def _entry_key(node: NodeDraft, one: _Class) -> tuple[object, ...]:
    keys = tuple(key for key, _ in node.addresses)
    return (
        *(one.name, node.shares, node.owners, node.schedulers, node.kubernetes_name, _own_keys(node, one), keys),
        tuple(sorted((key, why) for key, why in node.guesses.items() if key != "model")),
    )


def _entry(nodes: Sequence[NodeDraft], one: _Class) -> Block:
    node = nodes[0]
    hosts = fold_hosts(n.name for n in nodes)
    guesses = node.guesses
    entries = [
        Entry("hosts", hosts),
        Entry("class", one.name),
        Entry("owner", _owner(node.owners), guesses.get("owner", "")),
        Entry("sharing", sharing_block(node.shares, node.gpus), guesses.get("sharing", "")),
    ]
    if len(node.schedulers) == 1:
        known = [scheduler.value for scheduler in node.schedulers]
        entries.append(Entry("schedulers", known, guesses.get("schedulers", "")))
    if node.kubernetes_name != "{host}":
        entries.append(Entry("kubernetesName", node.kubernetes_name))
    by_name = {n.name: dict(n.addresses) for n in nodes}
    order = [by_name[host] for host in expand(hosts, len(nodes))]  # too many are told when it is read
    ports = len({values.get("Port") for values in order}) == len(order)
    addresses = {key: number(_paired(key, [values[key] for values in order], ports)) for key, _ in node.addresses}
    own = _record(_own_keys(node, one)) | addresses
    entries += [Entry("slurm", own)] if own else []
    return Block(tuple(entries))


def _owner(owners: Sequence[Scheduler]) -> Value:
    if len(set(owners)) == 1:
        return owners[0].value
    sets: dict[Scheduler, list[int]] = {}
    for index, owner in enumerate(owners):
        sets.setdefault(owner, []).append(index)
    return {owner.value: shown_indices(sets[owner]) for owner in Scheduler if owner in sets}


def _paired(key: str, values: Sequence[str], ports: bool) -> str:
    """Values as one word that is paired with the hosts in their order. One port may stand for all, and one address
    where each host has a port of its own (`ports`)."""
    if len(set(values)) == 1 and (key == "Port" or ports or len(values) == 1):
        return values[0]
    if key == "Port":
        numbers = [int(value) for value in values]
        runs = numbers == list(range(numbers[0], numbers[0] + len(numbers)))
        return f"[{numbers[0]}-{numbers[-1]}]" if runs else f"[{','.join(values)}]"
    folded = fold_hosts(values)
    return folded if _expanded(folded, len(values)) == list(values) else ",".join(values)


def _record(keys: Iterable[tuple[str, str]]) -> dict[str, Value]:
    return {key: number(value) for key, value in keys}
