"""A node's NodeConfig, read back from the file that render wrote (docs/nodeconfig.md): what this node must be.

Only what a node needs of it for itself is kept. Every mistake of the file is found in one run.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from hybridgpu.devices.record import Record
from hybridgpu.devices.systemd import UNIT_NAME
from hybridgpu.devices.wantedcard import WantedCard, contradictions
from hybridgpu.files.source import read_source
from hybridgpu.files.stamp import Ownership, ownership
from hybridgpu.model.finding import Finding, Place, Rule, Severity
from hybridgpu.model.gpu import Placement
from hybridgpu.model.sharing import ComputeMode, Mode, Scheduler, Sharing
from hybridgpu.model.site import Device

_SOURCE = "docs/nodeconfig.md"

ILLEGAL = Rule(
    "node-config-illegal",
    Severity.ERROR,
    "The NodeConfig does not say what this node must be, so nothing is done by it.",
    "Install the file that `hybridgpu render` wrote for this node.",
    _SOURCE,
)
EDITED = Rule(
    "node-config-edited",
    Severity.WARNING,
    "The NodeConfig was changed by hand: it is taken as it stands, and the next render writes over it.",
    "Change the inventory and render.",
    "hybridgpu/files/stamp.py",
)
_HOSTS = "Install the file nodes/NAME.json of this node; where slurmd runs under another name, give NodeHostname."
OF_ANOTHER = Rule(
    "node-config-of-another",
    Severity.WARNING,
    "The NodeConfig names another host than this one: if it is another node's, all that is done by it is wrong.",
    _HOSTS,
    "S:src/slurmd/slurmd/slurmd.c _read_config",
)
NOT_CUT = Rule(
    "node-config-not-of-this-host",
    Severity.ERROR,
    "The NodeConfig names another host than this one, so no card is changed by it: instances in use here would go.",
    _HOSTS,
    "S:src/slurmd/slurmd/slurmd.c _read_config",
)


@dataclass(frozen=True, slots=True)
class KubernetesWanted:
    """A node's Kubernetes side: the config's hash, whether it is open there, and what it then offers.

    `delivery` is what brings the plugin; `labels` are the Node's as they must be, None: absent.
    """

    config: str
    open: bool
    visible_devices: tuple[int, ...] | None
    allocatable: Mapping[str, int]
    delivery: str
    labels: Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class NodeWanted:
    """All that this node must be.

    `hosts` are the names that its host may have; `gres` is its Gres= value, None outside Slurm; `devices` are in
    Slurm's order; `clients` are the site's services that hold the cards; `kubernetes_name` is its Node's name.
    """

    node: str
    hosts: frozenset[str]
    sharing: Sharing
    gres: str | None
    kubernetes: KubernetesWanted | None
    cards: tuple[WantedCard, ...]
    devices: tuple[Device, ...]
    kubernetes_name: str = ""
    clients: tuple[str, ...] = ()
    file: str = ""

    @property
    def place(self) -> Place | None:
        """Where it was read, for findings on it as a whole."""
        return Place(self.file, 1) if self.file else None

    def slurm_index(self, device: Device) -> int | None:
        """The number by which Slurm knows a device; None outside Slurm, and for Kubernetes' cards of a split node."""
        mine = self.slurm_devices
        return mine.index(device) if device in mine else None

    @property
    def slurm_devices(self) -> tuple[Device, ...]:
        """The devices Slurm is to offer, in its order: all of them, on a split node only Slurm's own."""
        if self.gres is None:
            return ()
        if len({card.owner for card in self.cards}) < 2:
            return self.devices
        return tuple(d for d in self.devices if self.cards[d.index].owner is Scheduler.SLURM)


def read_node_config(path: str, content: bytes | None = None) -> tuple[NodeWanted | None, tuple[Finding, ...]]:
    """The NodeConfig in the file at `path`, or in its content; None where a finding is an error.

    Raises OSError where the file is not there.
    """
    source = read_source(path, content)
    if isinstance(source, Finding):
        return None, (source,)
    try:
        value = json.loads(source.text)
    except (ValueError, RecursionError) as error:
        return None, (Finding(ILLEGAL, Place(path, getattr(error, "lineno", 1)), f"this is not JSON: {error}"),)
    problems: list[str] = []
    wanted = _wanted(Record.of(value, "the file", problems), path)
    if problems:
        return None, tuple(Finding(ILLEGAL, Place(path, 1), problem) for problem in problems)
    edited = ownership(source.text.encode()) is Ownership.EDITED
    return wanted, (Finding(EDITED, Place(path, 1), "the file was edited since hybridgpu wrote it"),) if edited else ()


def _wanted(top: Record, path: str) -> NodeWanted:
    top.word("apiVersion", "hybridgpu/v1")
    top.word("kind", "NodeConfig")
    said = len(top.problems)
    cards = tuple(_card(card) for card in top.records("gpus"))
    if len(top.problems) == said and [card.index for card in cards] != list(range(len(cards))):
        top.problem("gpus", f"has the indices {[card.index for card in cards]}; allowed: 0, 1, 2 ...")
    devices = tuple(_device(device, cards) for device in top.records("devices"))
    if devices and not cards and len(top.problems) == said:
        top.problem("gpus", "is empty, and there are devices")
    if len(top.problems) == said:  # what is wrong in itself is read as empty, and would only be said once more
        top.problems.extend(contradictions(cards, devices))
    slurm, kubernetes = top.record_or_null("slurm"), top.record_or_null("kubernetes")
    node, kubernetes_name, addresses = top.text("node"), top.text("kubernetes_name"), top.record("addresses")
    named = [addresses.text("NodeHostname")] if "NodeHostname" in addresses.fields else []
    return NodeWanted(
        node=node,
        hosts=frozenset((node, kubernetes_name, *named)),
        sharing=_sharing(top.record("sharing"), top.choice("mode", Mode)),
        gres=slurm.text("gres") if slurm else None,
        kubernetes=_kubernetes(kubernetes) if kubernetes else None,
        cards=cards,
        devices=devices,
        kubernetes_name=kubernetes_name,
        clients=_clients(top),
        file=path,
    )


def _clients(top: Record) -> tuple[str, ...]:
    """The field was not there from the beginning."""
    clients = top.texts("clients") if "clients" in top.fields else ()
    for wrong in [name for name in clients if not UNIT_NAME.fullmatch(name)]:
        top.problem("clients", f"has {wrong!r}; allowed: names of systemd units")
    return clients


def of_another(wanted: NodeWanted, hostname: str, rule: Rule = OF_ANOTHER) -> tuple[Finding, ...]:
    """A finding where this host, by its full or short name, is none that the NodeConfig is for: a warning, or `NOT_CUT`
    for whoever changes cards.
    """
    if hostname.partition(".")[0] in {host.partition(".")[0] for host in wanted.hosts}:
        return ()
    message = f"it is for {wanted.node}; this host is {hostname}"
    return (Finding(rule, wanted.place, message),)


def _sharing(record: Record, mode: Mode) -> Sharing:
    return Sharing(
        mode=mode,
        replicas=record.number_or_null("replicas"),
        mig_strategy=record.text("mig_strategy"),
        rename_by_default=record.flag("rename_by_default"),
        fail_requests_greater_than_one=record.flag("fail_requests_greater_than_one"),
        whole_gpu_jobs=record.flag("whole_gpu_jobs"),
        compute_mode=record.choice("compute_mode", ComputeMode),
    )


def _kubernetes(record: Record) -> KubernetesWanted:
    labels = record.record("labels")
    return KubernetesWanted(
        config=record.text("config"),
        open=record.flag("open"),
        visible_devices=record.numbers_or_null("visible_devices"),
        allocatable=record.counts("allocatable"),
        delivery=record.text("delivery"),
        labels={name: labels.text_or_null(name) for name in labels.fields},
    )


def _card(record: Record) -> WantedCard:
    return WantedCard(
        index=record.number("index"),
        model=record.text("model"),
        owner=record.choice("owner", Scheduler),
        mig=record.flag("mig"),
        compute_mode=record.choice("compute_mode", ComputeMode),
    )


def _device(record: Record, cards: tuple[WantedCard, ...]) -> Device:
    index = record.number("index")
    if 0 < len(cards) <= index:
        record.problem("index", f"is {index}; the node has {len(cards)} cards")
    profile, placement = record.text_or_null("profile"), record.record_or_null("placement")
    if (profile is None) != (placement is None):
        record.problem("placement", "must be there where profile is, and only there")
    return Device(
        index=index,
        pci_bus_id=record.text_or_null("pci_bus_id"),
        minor=record.number("minor"),
        files=record.texts("files"),
        type=record.text("type"),
        model=cards[index].model if index < len(cards) else "",
        memory_bytes=record.number("memory_bytes"),
        profile=profile,
        placement=Placement(placement.number("start"), placement.number("size")) if placement else None,
        cores=record.text_or_null("cores"),
        links=record.numbers_or_null("links"),
        assumed=record.flag("assumed"),
    )
