"""One entry of `nodes:`, all its parts put together: hosts, class, owner, sharing, layout, NodeName keys."""

from __future__ import annotations

import re
from collections.abc import Mapping as Table
from dataclasses import dataclass

from hybridgpu.consumers.slurm.hostlist import MAX_NAME, number_at_end_below
from hybridgpu.consumers.slurm.release import Release
from hybridgpu.files.quoting import listed, shown
from hybridgpu.files.yamltree import Mapping, Node, Scalar
from hybridgpu.inventory.classes import ReadClass
from hybridgpu.inventory.clean import nearest_short, word
from hybridgpu.inventory.entries import NodeGroup
from hybridgpu.inventory.hosts import HostlistError, expand, fold
from hybridgpu.inventory.layout import judge_single, read_layout
from hybridgpu.inventory.nodekeys import NodeKeys, pair, read_keys
from hybridgpu.inventory.owners import Cluster, judge_split, read_owners, read_schedulers
from hybridgpu.inventory.report import Report
from hybridgpu.inventory.sharing import read_sharing
from hybridgpu.model.finding import Rule, Severity
from hybridgpu.model.sharing import Mode, Scheduler

HOSTS = Rule(
    "inventory-bad-hostlist",
    Severity.ERROR,
    "The hostlist names no hosts that can be configured.",
    "Write host names as Slurm does: gpu[001-032],login1.",
    "ClusterShell RangeSet; S:src/common/hostlist.c",
)
HOST_NAME = Rule(
    "inventory-illegal-host-name",
    Severity.ERROR,
    "The name cannot be a node's.",
    "Use letters, digits, '.', '_' and '-', a letter or digit first, and names as short as host names are.",
    "RFC 1123; S:src/common/read_config.c (DEFAULT); S:src/common/hostlist.c hostlist_next, hostname_create",
)
KUBERNETES_NAME = Rule(
    "inventory-illegal-kubernetes-name",
    Severity.ERROR,
    "The API server knows no node of this name.",
    "Set kubernetesName to the name that `kubectl get nodes` shows, with {host} for the host name.",
    "Kubernetes: node names are DNS-1123 subdomains",
)
UNKNOWN_CLASS = Rule(
    "inventory-unknown-class",
    Severity.ERROR,
    "The class says which GPUs the nodes have; this one is not among nodeClasses.",
    "Use one of nodeClasses, or add the class.",
    "docs/inventory.md",
)
NVIDIA_IN_MIG = Rule(
    "inventory-autodetect-cannot-see-mig",
    Severity.ERROR,
    "AutoDetect=nvidia does not see MIG instances: slurmd would offer whole cards, or fewer than configured.",
    "Set autoDetect to off or nvml.",
    "gres.conf(5)",
)

_HOST_LABEL = r"[A-Za-z0-9_-]{1,63}"
_HOST = re.compile(rf"(?![._-])(?=.{{1,239}}$){_HOST_LABEL}(?:\.{_HOST_LABEL})*(?<!-)")
"""Labels of 63 characters (RFC 1123), and as many in all as a file `.NAME.json.hybridgpu` may have."""

_LABEL = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_DNS_NAME = re.compile(rf"(?=.{{1,253}}$){_LABEL}(?:\.{_LABEL})*")


@dataclass(frozen=True, slots=True)
class Frame:
    """What all entries are judged against. `classes` has None for a class that is broken beyond use."""

    cluster: Cluster
    classes: Table[str, ReadClass | None]
    release: Release
    autodetect: Scalar | None
    gres_types: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ReadEntry:
    """An entry as far as it is right. `group` is None where a mistake, which is reported, hides what it is."""

    hosts: tuple[str, ...]
    where: Scalar | None
    kubernetes_name: Scalar | None
    group: NodeGroup | None
    in_slurm: bool
    of_class: ReadClass | None
    keys: NodeKeys


def read_entry(entry: Mapping, frame: Frame, report: Report, with_hosts: bool = True) -> ReadEntry:
    """A clean node entry; what is wrong in it is reported. Its hosts are left alone where `with_hosts` is false."""
    where = entry.scalar("hosts")
    of_class = _class(entry, frame, report)
    models = of_class.entry.gpus if of_class and of_class.complete else ()
    schedulers = read_schedulers(entry, frame.cluster, report)
    hosts = _hosts(where, Scheduler.SLURM in schedulers, report) if where and with_hosts else ()
    owners = read_owners(entry, len(models), schedulers, frame.cluster, report)
    own_release = of_class.release if of_class else frame.release
    keys = read_keys(entry.mapping("slurm"), own_release, frame.gres_types, report)
    if of_class:
        keys = keys.over(of_class.keys)
    addresses = pair(keys, hosts, report) if hosts else {}
    if Scheduler.KUBERNETES in schedulers:
        _judge_kubernetes_names(entry, hosts, report)
    group = None
    block = entry.mapping("sharing")
    if block:
        sharing = read_sharing(block, models, schedulers, frame.cluster.delivery, report)
        mode = word(block, "mode", "")
        judge_split(entry, mode, own_release, frame.cluster, report)
        layout = read_layout(block.get("layout"), models, report) if mode == Mode.MIG else (None,) * len(models)
        judge_single(block, layout, models, report)
        if mode == Mode.MIG and Scheduler.SLURM in schedulers:
            _judge_autodetect(block, frame, own_release, report)
        if of_class and hosts and owners and layout and mode:
            group = NodeGroup(
                hosts=hosts,
                node_class=of_class.entry,
                schedulers=schedulers,
                owners=owners,
                sharing=sharing,
                layout=layout,
                kubernetes_name=word(entry, "kubernetesName", "{host}"),
                slurm=keys.parameters,
                gres=keys.gres,
                addresses=addresses,
                place=report.place(entry),
            )
    in_slurm = Scheduler.SLURM in schedulers
    return ReadEntry(hosts, where, entry.scalar("kubernetesName"), group, in_slurm, of_class, keys)


def _hosts(where: Scalar, in_slurm: bool, report: Report) -> tuple[str, ...]:
    """The hosts that are legal names; the others are reported."""
    try:
        hosts = expand(where.text)
    except HostlistError as error:
        report.add(HOSTS, where, f"hosts {shown(where.text)}: {error}")
        return ()
    bad = [host for host in hosts if not _HOST.fullmatch(host) or host.upper() == "DEFAULT"]
    refused = {host for host in hosts if not _slurm_reads(host)} if in_slurm and not bad else set(bad)
    if bad:
        message = f"hosts {shown(where.text)}: {_cut(bad)} cannot be a node's name"
        hint = "DEFAULT means all nodes in slurm.conf." if bad[0].upper() == "DEFAULT" else ""
        report.add(HOST_NAME, where, message, hint)
    elif refused:
        names = _cut([host for host in hosts if host in refused])
        message = f"hosts {shown(where.text)}: Slurm cannot tell {names} from another node"
        hint = f"Slurm reads at most {MAX_NAME} characters, and a number at the end below {2**64 - 1}."
        report.add(HOST_NAME, where, message, hint)
    return tuple(host for host in hosts if host not in refused) if refused else hosts


def is_host_name(name: str) -> bool:
    """Whether a node of Slurm can stand in an inventory under this name."""
    return bool(_HOST.fullmatch(name)) and name.upper() != "DEFAULT" and _slurm_reads(name)


def _slurm_reads(host: str) -> bool:
    return len(host) <= MAX_NAME and number_at_end_below(host)


def _cut(names: list[str]) -> str:
    return fold([name if len(name) <= MAX_NAME else f"{name[:MAX_NAME]}..." for name in names])


def _class(entry: Mapping, frame: Frame, report: Report) -> ReadClass | None:
    name = entry.scalar("class")
    if name is None:
        return None
    if name.text not in frame.classes:
        known = tuple(frame.classes)
        right = nearest_short(name.text, known)
        message = f"class {shown(name.text)} is not in nodeClasses; allowed: {listed(known) or 'none, it is empty'}"
        report.add(UNKNOWN_CLASS, name, message, f"Did you mean {right}?" if right else "")
        return None
    return frame.classes[name.text]


def _judge_kubernetes_names(entry: Mapping, hosts: tuple[str, ...], report: Report) -> None:
    pattern: Node | None = entry.scalar("kubernetesName")
    text = word(entry, "kubernetesName", "{host}")
    bad = [name for name in (text.replace("{host}", host) for host in hosts) if not _DNS_NAME.fullmatch(name)]
    where = pattern or entry.scalar("hosts")
    if bad and where and (pattern or entry.get("kubernetesName") is None):
        message = f"{fold(bad)} cannot be a node's name in Kubernetes; allowed: a DNS name in lower case"
        report.add(KUBERNETES_NAME, where, message)


def _judge_autodetect(block: Mapping, frame: Frame, release: Release, report: Report) -> None:
    value = frame.autodetect
    if (
        value
        and value.text != "off"
        and value.text in release.autodetect
        and value.text not in release.autodetect_sees_mig
    ):
        message = f"mode mig on a node in Slurm, with autoDetect: {value.text}"
        report.add(NVIDIA_IN_MIG, block.scalar("mode") or block, message, related=((value, "autoDetect"),))
