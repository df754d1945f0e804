"""Inventory and facts to NodeConfigs. A pure function over records: what it is given is legal, and it reads no file.

Without facts all nodes of an entry share one body. With facts each node is compiled on its own, and nodes that come
out equal share a body again, so that what follows works once per distinct node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from ClusterShell.NodeSet import NodeSet

from hybridgpu.inventory.cores import completed, hardware_in, socket_range
from hybridgpu.inventory.entries import Inventory, NodeGroup
from hybridgpu.inventory.slurmorder import found_by_nvml, in_slurm_order
from hybridgpu.model.facts import Facts, GpuFacts
from hybridgpu.model.finding import Finding, Place, Rule, Severity
from hybridgpu.model.gpu import Instance
from hybridgpu.model.naming import capability_file, device_files, slurm_type
from hybridgpu.model.sharing import Scheduler
from hybridgpu.model.site import Device, NodeBody, NodeConfig, SlurmNode

FactsOf = Callable[[str], Facts | None]

ASSUMED_FILES = Rule(
    "inventory-assumed-device-files",
    Severity.INFO,
    "Device files are taken from the driver's usual numbering, not read from a node.",
    "Render with --facts (docs/facts.md) before the files are loaded.",
    "/proc/driver/nvidia-caps/mig-minors of eight hosts; the numbering is a detail of the driver",
)
FACTS_DIFFER = Rule(
    "inventory-facts-show-other-cards",
    Severity.INFO,
    "The facts show cards cut otherwise than they are wanted, so device files are taken from the usual numbering.",
    "Cut the cards, read the facts anew and render again before the files are loaded.",
    "/proc/driver/nvidia-caps/mig-minors: the numbers of an instance are known once it is there",
)
OPEN_TO_SLURM = Rule(
    "inventory-open-to-slurm",
    Severity.INFO,
    "Slurm knows nodes whose GPUs Kubernetes owns, and nothing that is rendered keeps its jobs off them.",
    "Close each node to Slurm by a reservation: the head of nodes.conf has the command.",
    "measured on 22.05, 24.11, 26.05: a reservation (MAINT, IGNORE_JOBS) survives reload and resume",
)
CORES_LEFT_OUT = Rule(
    "inventory-cores-not-whole-sockets",
    Severity.INFO,
    "Cores= is left out: Slurm takes a GPU's cores only as one whole socket, or all of them (24.11+: else INVALID).",
    "Give Sockets and CoresPerSocket of the class as slurmd -C prints them, or redefine sockets (numa_node_as_socket).",
    "S:src/interfaces/gres.c _check_core_range_matches_sock",
)


@dataclass(frozen=True, slots=True)
class _Card:
    """What is known of one card before it is cut into devices."""

    index: int
    minor: int
    pci_bus_id: str | None
    memory_bytes: int
    cores: str | None
    links: tuple[int, ...] | None
    facts: GpuFacts | None


def compile_nodes(inventory: Inventory, facts_of: FactsOf | None = None) -> Iterator[NodeConfig | Finding]:
    """Every node's NodeConfig in the order of the inventory, then remarks (severity info).

    `facts_of` gives a node's facts, already judged against its class, or None where there are none.
    """
    bodies: dict[NodeBody, NodeBody] = {}
    without_facts: dict[str, Place] = {}
    other_cards: dict[str, Place] = {}
    odd_cores: dict[str, Place] = {}
    open_to_slurm: dict[str, Place] = {}
    for group in inventory.groups:
        by_class: NodeBody | None = None
        for position, host in enumerate(group.hosts):
            facts = facts_of(host) if facts_of else None
            if facts is None:
                by_class = by_class or _intern(bodies, _body(inventory, group, None))
                body = by_class
            else:
                body = _intern(bodies, _body(inventory, group, facts))
                if any(g.cores and not c for g, c in zip(facts.gpus, _cores(group, facts, body.slurm), strict=True)):
                    odd_cores[host] = group.place
            if body.assumed:
                (other_cards if facts else without_facts)[host] = group.place
            if Scheduler.KUBERNETES in group.owners and Scheduler.SLURM in group.schedulers:
                open_to_slurm[host] = group.place
            yield _named(group, position, body)
    yield from _remark(ASSUMED_FILES, without_facts, "device files are assumed: there are no facts of these nodes")
    yield from _remark(FACTS_DIFFER, other_cards, "device files are assumed: the facts show the cards cut otherwise")
    yield from _remark(OPEN_TO_SLURM, open_to_slurm, "Kubernetes owns GPUs there, and Slurm may start jobs on them")
    yield from _remark(CORES_LEFT_OUT, odd_cores, "the cores in the facts are not whole sockets of the class")


def _intern(bodies: dict[NodeBody, NodeBody], body: NodeBody) -> NodeBody:
    return bodies.setdefault(body, body)


def _named(group: NodeGroup, position: int, body: NodeBody) -> NodeConfig:
    host = group.hosts[position]
    addresses = tuple((key, values[position]) for key, values in group.addresses.items())
    return NodeConfig(host, group.kubernetes_name.replace("{host}", host), body, addresses)


def _remark(rule: Rule, nodes: dict[str, Place], what: str) -> Iterator[Finding]:
    """One finding for all the nodes, at the first entry concerned."""
    if nodes:
        yield Finding(rule, next(iter(nodes.values())), f"{NodeSet.fromlist(list(nodes))}: {what}", rule.fix)


def _body(inventory: Inventory, group: NodeGroup, facts: Facts | None) -> NodeBody:
    slurm = None
    if Scheduler.SLURM in group.schedulers and inventory.slurm:
        version = group.node_class.slurm_version or inventory.slurm.version or inventory.slurm.cluster.version
        slurm = SlurmNode(version, inventory.slurm.autodetect, completed(group.slurm), group.gres)
    return NodeBody(
        node_class=group.node_class.name,
        models=tuple(model.name for model in group.node_class.gpus),
        schedulers=group.schedulers,
        owners=group.owners,
        sharing=group.sharing,
        devices=in_slurm_order(_devices(group, facts, slurm), group.owners, slurm),
        slurm=slurm,
    )


def _devices(group: NodeGroup, facts: Facts | None, slurm: SlurmNode | None) -> Iterator[Device]:
    cores = _cores(group, facts, slurm) if facts else (None,) * len(group.node_class.gpus)
    for index, model in enumerate(group.node_class.gpus):
        seen = facts.gpus[index] if facts else None
        card = _Card(
            index=index,
            minor=seen.minor if seen else index,
            pci_bus_id=seen.pci_bus_id if seen else None,
            memory_bytes=seen.memory_bytes if seen else model.memory_bytes,
            cores=cores[index],
            links=seen.links if seen else None,
            facts=seen,
        )
        instances = group.layout[index]
        if instances is None:
            yield _whole(group, card)
        else:
            yield from _cut(group, card, instances)


def _whole(group: NodeGroup, card: _Card) -> Device:
    model = group.node_class.gpus[card.index]
    return Device(
        index=card.index,
        pci_bus_id=card.pci_bus_id,
        minor=card.minor,
        files=device_files(card.minor),
        type=slurm_type(model, None, group.node_class.type),
        model=model.name,
        memory_bytes=card.memory_bytes,
        cores=card.cores,
        links=card.links,
        assumed=card.facts is None or bool(card.facts.mig_enabled),
    )


def _cut(group: NodeGroup, card: _Card, instances: tuple[Instance, ...]) -> Iterator[Device]:
    model = group.node_class.gpus[card.index]
    ids = _ids_seen(card.facts, instances) if card.facts else None
    for position, instance in enumerate(instances):
        if ids:
            gi, ci = ids[position]
            files = (*device_files(card.minor), capability_file(gi), capability_file(ci))
        else:
            files = _assumed_files(card.minor, instance.gi, instance.ci)
        yield Device(
            index=card.index,
            pci_bus_id=card.pci_bus_id,
            minor=card.minor,
            files=files,
            type=slurm_type(model, instance.profile.name, group.node_class.type),
            model=model.name,
            memory_bytes=card.memory_bytes * instance.profile.size // model.slices,
            profile=instance.profile.name,
            placement=instance.placement,
            cores=card.cores,
            assumed=ids is None,
        )


@lru_cache(maxsize=4096)
def _assumed_files(minor: int, gi: int, ci: int) -> tuple[str, ...]:
    return device_files(minor, gi, ci)


def _ids_seen(facts: GpuFacts, wanted: tuple[Instance, ...]) -> list[tuple[int, int]] | None:
    """The capability numbers of the wanted instances in their order, where the facts show exactly those instances."""
    if not facts.mig_enabled or len(facts.instances) != len(wanted):
        return None
    seen = {
        (i.profile, i.placement): (i.gi_minor, i.ci_minor)
        for i in facts.instances
        if i.gi_minor is not None and i.ci_minor is not None
    }
    found = [seen.get((w.profile.name, w.placement)) for w in wanted]
    return None if None in found else found  # type: ignore[return-value]


def _cores(group: NodeGroup, facts: Facts, slurm: SlurmNode | None) -> tuple[str | None, ...]:
    """Per GPU the range to write as Cores=, or None where what the facts say is not whole sockets of the class.

    What gpu/nvml finds nobody can leave out: then it is what the facts say, and whether Slurm takes it is proven.
    """
    if found_by_nvml(slurm):
        return tuple(gpu.cores for gpu in facts.gpus)
    hardware = hardware_in(completed(group.slurm))
    return tuple(socket_range(gpu.cores, hardware) if gpu.cores else None for gpu in facts.gpus)
