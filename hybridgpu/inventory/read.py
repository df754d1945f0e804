"""An inventory file to an Inventory, with every mistake in it found in one run, each at its line and column."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from hybridgpu.consumers.slurm.release import NEWEST, Release
from hybridgpu.files.quoting import listed, shown
from hybridgpu.files.source import read_source
from hybridgpu.files.yamltree import Mapping, Node, Scalar, one_document, parse_yaml
from hybridgpu.inventory.classes import ReadClass, read_class
from hybridgpu.inventory.clean import clean, word, words
from hybridgpu.inventory.entries import Inventory, KubernetesSettings
from hybridgpu.inventory.hostindex import HostIndex
from hybridgpu.inventory.kubernetesblock import read_kubernetes
from hybridgpu.inventory.nodeentry import Frame, ReadEntry, read_entry
from hybridgpu.inventory.owners import Cluster
from hybridgpu.inventory.report import Enough, Report, in_order
from hybridgpu.inventory.schema import INVENTORY
from hybridgpu.inventory.sitegres import judge_line
from hybridgpu.inventory.slurmblock import ReadSlurm, judge_autodetect, judge_hooks, judge_prolog_flags, read_slurm
from hybridgpu.inventory.slurmfiles import judge_files, readers
from hybridgpu.inventory.together import entries_within_limit, judge_catalogue, judge_names, judge_types
from hybridgpu.model.finding import Finding, Place, Rule, Severity
from hybridgpu.model.sharing import Scheduler

EMPTY = Rule(
    "inventory-empty-file",
    Severity.ERROR,
    "There is no inventory in the file.",
    "Begin with `apiVersion: hybridgpu/v1` and `kind: Inventory`.",
    "docs/inventory.md",
)
NO_SCHEDULER = Rule(
    "inventory-no-scheduler",
    Severity.ERROR,
    "Without a scheduler there is nothing to configure.",
    "Add a `slurm:` or a `kubernetes:` block.",
    "docs/inventory.md",
)
SLURMD_MAJOR = Rule(
    "inventory-slurmd-of-another-time",
    Severity.ERROR,
    "slurmctld does not speak with these nodes' slurmd: it may be no newer, and only a few majors older.",
    "Upgrade slurmctld first, then the nodes, before slurmctld is too far ahead.",
    "S:src/common/slurm_protocol_common.h SLURM_MIN_PROTOCOL_VERSION; S:doc/html/upgrades.shtml",
)


@dataclass(frozen=True, slots=True)
class Reading:
    """What came of reading a file. `inventory` is None if a finding is an error; findings are sorted by place."""

    inventory: Inventory | None
    findings: tuple[Finding, ...]


def read_inventory(path: str, text: bytes | None = None, release: Release | None = None) -> Reading:
    """Reads the inventory at `path`, or its content `text` where that is given; `path` is then only shown. `release`
    is judged by in place of slurm.version.

    Raises OSError where the file is not there or may not be read; all else that is wrong with it is a finding.
    """
    source = read_source(path, text)
    if isinstance(source, Finding):
        return Reading(None, (source,))
    with _without_collection():
        return _reading(path, source.text, release)


@contextmanager
def _without_collection() -> Iterator[None]:
    """Pauses Python's cycle collector: looking for cycles in a large tree, which has none, takes half the time."""
    paused = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if paused:
            gc.enable()


def _reading(path: str, text: str, release: Release | None) -> Reading:
    document, findings = one_document(path, parse_yaml(path, text))
    report = Report(path)
    report.findings += findings
    inventory = None
    if document is not None:
        try:
            inventory = _read(document, report, release)
        except Enough:
            inventory = None
    elif not findings:
        report.findings.append(Finding(EMPTY, Place(path, 1), "the file holds nothing", EMPTY.fix))
    refused = any(finding.is_error for finding in report.findings)
    return Reading(None if refused else inventory, in_order(report.findings))


def _read(document: Node, report: Report, release: Release | None) -> Inventory | None:
    top = clean(document, INVENTORY, report)
    if not isinstance(top, Mapping):
        return None
    slurm_node, kubernetes_node = top.get("slurm"), top.get("kubernetes")
    if slurm_node is None and kubernetes_node is None and not top.broken:
        report.add(NO_SCHEDULER, top, "there is neither a `slurm:` nor a `kubernetes:` block")
    slurm = read_slurm(slurm_node, report, release) if slurm_node else None
    devices = top.mapping("devices")
    driver_root = word(devices, "driverRoot", "/")
    kubernetes = read_kubernetes(kubernetes_node, driver_root, report) if kubernetes_node else None
    frame = _frame(top, slurm, kubernetes, report)
    nodes = [entry for entry in top.items("nodes") if isinstance(entry, Mapping)]
    within = entries_within_limit(nodes, report)
    entries = [read_entry(entry, frame, report, at < within) for at, entry in enumerate(nodes)]
    groups = tuple(entry.group for entry in entries if entry.group)
    judge_names(entries, report)
    judge_types(groups, report)
    judge_catalogue(groups, report)
    if slurm:
        judge_hooks(slurm, groups, report)
        _judge_site(slurm, entries, frame, report)
    return Inventory(
        name=word(top.mapping("metadata"), "name", ""),
        file=report.file,
        slurm=slurm.settings if slurm else None,
        kubernetes=kubernetes,
        driver_root=driver_root,
        device_clients=words(devices, "clients"),
        groups=groups,
    )


def _frame(top: Mapping, slurm: ReadSlurm | None, kubernetes: KubernetesSettings | None, report: Report) -> Frame:
    """What the entries are judged against: the schedulers, and every class, which is judged here."""
    blocks = ((Scheduler.SLURM, slurm), (Scheduler.KUBERNETES, kubernetes))
    release = slurm.release if slurm else NEWEST
    gres_types = slurm.settings.cluster.site.gres_types if slurm else ()
    classes: dict[str, ReadClass | None] = {}
    block = top.mapping("nodeClasses")
    for name, node in block.entries if block else ():
        classes[name.text] = None
        if isinstance(node, Mapping):
            classes[name.text] = read_class(name, node, release, gres_types, report)
            version = node.scalar("slurmVersion")
            if version and slurm and (own := classes[name.text]) and own.release != release:
                judge_autodetect(slurm.block, own.release, report, version)
                _judge_major(slurm, own.release, version, report)
    return Frame(
        cluster=Cluster(
            present=tuple(s for s, present in blocks if present),
            delivery=kubernetes.cluster.delivery if kubernetes else "",
            autodetect=slurm.settings.autodetect if slurm else "off",
        ),
        classes=classes,
        release=release,
        autodetect=slurm.block.scalar("autoDetect") if slurm and slurm.block else None,
        gres_types=gres_types,
    )


def _judge_major(slurm: ReadSlurm, own: Release, version: Scalar, report: Report) -> None:
    """Whether slurmctld takes the slurmd of a class, where the cluster's release is known."""
    allowed = slurm.release.slurmds
    if slurm.settings.version and own.major not in allowed:
        message = f"slurmVersion {shown(version.text)} with Slurm {slurm.release}; allowed: {listed(allowed)}"
        named = slurm.block.scalar("version") if slurm.block else None
        report.add(SLURMD_MAJOR, version, message, related=((named, "slurm.version"),) if named else ())


def _judge_site(slurm: ReadSlurm, entries: list[ReadEntry], frame: Frame, report: Report) -> None:
    """What the site has already, as every release in use reads it."""
    site = slurm.block.mapping("site") if slurm.block else None
    lines = site.scalars("gres") if site else ()
    hosts = HostIndex(host for entry in entries for host in entry.hosts) if lines else HostIndex(())
    allowed = [line for line in lines if judge_line(line, frame.gres_types, hosts, report)]
    using = readers(slurm.release, entries)
    judge_prolog_flags(slurm, using, report)
    judge_files(site, entries, allowed, using, report)
