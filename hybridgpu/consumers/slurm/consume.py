"""What slurmd and slurmctld of one release do with a site's files: an offer for each node, or why there is none.

The work is done once for each distinct shape (what the node's line says, and which records of gres.conf apply to it),
so that ten thousand equal nodes cost little more than one. Nothing is read or written here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from hybridgpu.consumers.slurm import (
    alone,
    cgroupconf,
    cluster,
    collisions,
    containerconf,
    detect,
    deviceorder,
    gresconf,
    hardware,
    includes,
    instances,
    merge,
    nodegres,
    nodeline,
    nodelists,
    otherlines,
    plugins,
    registration,
    settings,
    shares,
    weights,
)
from hybridgpu.consumers.slurm.causes import once
from hybridgpu.consumers.slurm.conf import UNKNOWN_KEY, NodeRecord, SlurmFiles, unknown_key
from hybridgpu.consumers.slurm.gresconf import Record
from hybridgpu.consumers.slurm.gresindex import GresIndex
from hybridgpu.consumers.slurm.hardware import Hardware
from hybridgpu.consumers.slurm.nodegres import SHARED, Wanted
from hybridgpu.consumers.slurm.nvml import DetectedGpu
from hybridgpu.consumers.slurm.release import RELEASES, Release, history
from hybridgpu.consumers.slurm.unjudged import left_open, unjudged
from hybridgpu.consumers.slurm.verdict import Verdict
from hybridgpu.files.slurmlines import Pair, SlurmLine
from hybridgpu.model.finding import Finding, Related, Rule, Severity
from hybridgpu.model.naming import gres_id
from hybridgpu.model.offer import OtherGres, SlurmDevice, SlurmOffer

GRES_NOT_GIVEN = Rule(
    "slurm-gres-conf-not-given",
    Severity.INFO,
    "gres.conf is not among the inputs: the nodes' GPUs are taken to be what Gres= says, and their devices not judged.",
    "Give gres.conf too, or the folder in which slurm.conf lies.",
    "S:src/interfaces/gres.c gres_node_config_load",
)

_MOST_HINTS = 100
"""So many unknown keys get a nearest right word: a file with more is no slurm.conf, and the search takes its time."""


@dataclass(frozen=True, slots=True)
class Registered:
    """One record as slurmd registers it (and `slurmd -G` prints it): one GRES, one or several devices."""

    name: str
    type: str | None
    count: int
    files: tuple[str, ...] = ()
    cores: str | None = None
    links: str | None = None


@dataclass(frozen=True, slots=True)
class NodeResult:
    """One node's part of a consumption; equal nodes share one.

    offer: what the node offers Slurm; None where slurmd dies, and `fatal` is true then.
    invalid: the reason for which slurmctld would turn the node INVALID, in its words.
    registered: slurmd's records in its order, shares beside their GPUs.
    """

    offer: SlurmOffer | None
    findings: tuple[Finding, ...] = ()
    fatal: bool = False
    invalid: str | None = None
    registered: tuple[Registered, ...] = ()


@dataclass(frozen=True, slots=True)
class Consumption:
    """What one release makes of a site's files. `cluster` are the findings that are no single node's."""

    release: Release
    nodes: Mapping[str, NodeResult]
    cluster: tuple[Finding, ...] = ()
    fatal: bool = False

    def offer_of(self, node: str) -> SlurmOffer | None:
        """The offer of a node; None where slurmd dies, or where no line names the node."""
        result = self.nodes.get(node)
        return result.offer if result else None

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Every finding once: the cluster's, then the nodes' in the order of their lines."""
        seen = dict.fromkeys(self.cluster)
        for result in {id(result): result for result in self.nodes.values()}.values():
            seen.update(dict.fromkeys(result.findings))
        return tuple(seen)


def consume(
    files: SlurmFiles, release: Release, detected: Mapping[str, Sequence[DetectedGpu]] | None = None
) -> Consumption:
    """Judge the files as this release's daemons would.

    `detected` says what AutoDetect would find on a node; a node that is not in it is taken to have what it configures.
    """
    open_rules = unjudged(files)
    overall = Verdict(files.findings, files.fatal, open_rules)
    _read_gres_conf(files, overall)
    _judge_keys(files, release, overall)
    settings.judge(files, release, overall)
    plugins.judge(files, release, overall)
    cgroupconf.judge(files, release, overall)
    containerconf.judge(files, release, overall)
    _judge_pushed(files, overall)
    for line in files.records.get("nodename", ()):
        nodeline.judge_keys(line, release, overall)
    for node in files.nodes:
        nodeline.judge(node, release, overall)
    nodeline.judge_doubles(files.nodes, release, overall)
    names = _names(files, overall)
    members = [nodeline.node_names(node, release) for node in files.nodes]
    named = {name for mine in members for name in mine}
    otherlines.judge(files, named, release, overall)
    known = named if _all_nodes_known(files) else None
    if known is not None:
        nodelists.judge(files, known, release, overall)
    weights.judge(files, names, release, overall)
    index = GresIndex((files.gres or ()) if names else (), known, release, overall)
    judge = _Judge(files, names, index, release, detected or {}, open_rules, deviceorder.unconfined(files, release))
    results: dict[str, NodeResult] = {}
    for node, mine in zip(files.nodes, members, strict=True):
        for name in mine:
            results[name] = judge.result(node, name)
    if not files.nodes and not files.complete:
        alone.judge(index, names, release, overall)
    _judge_not_given(files, judge.seen, overall)
    collisions.judge(judge.seen, files.gres or (), overall)
    cluster.judge(files, names, judge.seen, release, overall)
    if overall.fatal:
        dead = {id(r): NodeResult(None, r.findings, True) for r in results.values()}
        results = {name: dead[id(result)] for name, result in results.items()}
    return Consumption(release, results, overall.findings, overall.fatal)


def _names(files: SlurmFiles, verdict: Verdict) -> tuple[str, ...]:
    """The names of GresTypes; where they may stand in a part that is not given, those that the files use."""
    types = files.setting("GresTypes")
    if not left_open(files, "GresTypes"):
        return nodegres.contexts(types.value if types else "", types.place if types else None, verdict)
    tokens = (token for node in files.nodes for token in (node.text("gres") or "").split(","))
    used = [token.partition(":")[0].partition("(")[0] for token in tokens]
    used += [name.value for line in files.gres or () if (name := line.get("name"))]
    first = [name for name in ("gpu", *nodegres.SHARED) if name in used or (name == "gpu" and {*used} & {*SHARED})]
    return tuple(dict.fromkeys(name for name in (*first, *used) if name))


def _judge_not_given(files: SlurmFiles, seen: Mapping[int, cluster.SeenNode], verdict: Verdict) -> None:
    """Nodes with GPUs whose gres.conf nobody gave: that is said once."""
    node = next((node for node in seen.values() if "gpu" in node.wants), None)
    if node is not None and not files.gres_known:
        message = f"gres.conf is not among the inputs: the devices of {node.node.names} are taken as Gres= has them"
        verdict.note(GRES_NOT_GIVEN, node.place, message, GRES_NOT_GIVEN.fix)


def _all_nodes_known(files: SlurmFiles) -> bool:
    """Whether slurm.conf, as given, names all nodes: nothing left out, and no room for dynamic nodes (MaxNodeCount)."""
    return bool(files.nodes) and files.complete and files.setting("MaxNodeCount") is None


def _judge_keys(files: SlurmFiles, release: Release, verdict: Verdict) -> None:
    """Keys of slurm.conf that the release does not know."""
    known = {key.lower() for key in release.conf_keys}
    first = [*(pairs[0] for pairs in files.settings.values()), *(lines[0].pairs[0] for lines in files.records.values())]
    unknown = [pair for pair in first if pair.key.lower() not in known]
    keys = tuple(release.conf_keys)
    found = [_unknown(pair, release, keys if n < _MOST_HINTS else ()) for n, pair in enumerate(unknown)]
    verdict.take(found, fatal=bool(found))


def _unknown(pair: Pair, release: Release, keys: tuple[str, ...]) -> Finding:
    past = history(pair.key, release, lambda other: other.conf_keys) if keys else ""
    if past:
        return Finding(UNKNOWN_KEY, pair.place, f"{pair.key} {past}; Slurm {release} does not know it")
    return unknown_key(pair, keys)


def _judge_pushed(files: SlurmFiles, verdict: Verdict) -> None:
    """Included files that nodes without files of their own do not get."""
    if "enable_configless" in (word.lower() for word in files.words("SlurmctldParameters")):
        verdict.take(includes.not_pushed(files.includes), fatal=False)


def _read_gres_conf(files: SlurmFiles, verdict: Verdict) -> None:
    """Without a single GresTypes name slurmd does not open gres.conf, so nothing in it can stop it."""
    types = files.setting("GresTypes")
    if (types is not None and types.value.strip(",")) or left_open(files, "GresTypes"):
        verdict.take(files.gres_findings, files.gres_fatal)
    elif files.gres:
        message = "slurm.conf has no GresTypes: gres.conf is not read"
        verdict.note(nodegres.NOT_IN_TYPES, files.gres[0].place, message)


@dataclass(slots=True)
class _Judge:
    """Judges nodes, and remembers what it found for each shape."""

    files: SlurmFiles
    names: tuple[str, ...]
    index: GresIndex
    release: Release
    detected: Mapping[str, Sequence[DetectedGpu]]
    unjudged: frozenset[Rule] = frozenset()
    unconfined: bool = False
    seen: dict[int, cluster.SeenNode] = field(default_factory=dict)
    by_line: dict[tuple[int, tuple[int, ...], tuple[DetectedGpu, ...] | None], NodeResult] = field(default_factory=dict)
    clean: dict[tuple[object, ...], NodeResult] = field(default_factory=dict)
    line_keys: dict[tuple[int, ...], tuple[list[SlurmLine], tuple[int, ...]]] = field(default_factory=dict)

    def result(self, node: NodeRecord, name: str) -> NodeResult:
        groups = tuple(self.index.of_node.get(name, ()))
        found = self.detected.get(name)
        hardware_found = None if found is None else tuple(found)
        key = (id(node), groups, hardware_found)
        known = self.by_line.get(key)
        if known is None:
            known = self.by_line[key] = self._new(node, groups, hardware_found)
        return known

    def _new(self, node: NodeRecord, groups: tuple[int, ...], found: tuple[DetectedGpu, ...] | None) -> NodeResult:
        """A shape that is new by its place in the files may still say what another one said, and be clean like it."""
        if groups not in self.line_keys:
            lines = self.index.lines(groups)
            self.line_keys[groups] = (lines, tuple(self.index.content(line) for line in lines))
        lines, contents = self.line_keys[groups]
        gres = node.values.get("gres")
        has = hardware.hardware(node)
        key = (gres.value if gres else "", has, contents, found)
        if key in self.clean:
            return self.clean[key]
        verdict = Verdict(unjudged=self.unjudged)
        wants = nodegres.wanted(gres.value if gres else "", self.names, gres.place if gres else node.place, verdict)
        self.seen[id(node)] = cluster.SeenNode(node, wants)
        result = self._judge(node, lines, wants, has, found, verdict)
        if not result.findings:
            self.clean[key] = result
        return result

    def _judge(
        self,
        node: NodeRecord,
        lines: list[SlurmLine],
        wants: Mapping[str, Wanted],
        has: Hardware,
        found: tuple[DetectedGpu, ...] | None,
        verdict: Verdict,
    ) -> NodeResult:
        gres = node.values.get("gres")
        place = gres.place if gres else node.place
        local = [line for line in lines if line.pairs[0].key.lower() == "nodename"]
        auto = detect.in_force(local, self.index.autodetect, self.release, verdict)
        raw = gresconf.records(lines, self.names, has.cores, self.release, verdict)
        merge.validate(raw, self.names, verdict)
        cut = any(line.rest for line in (node.line, *lines))
        if verdict.fatal:
            return NodeResult(None, once(verdict.findings, cut), True)
        detecting = auto is not None or not self.files.gres_complete
        records = merge.merge(raw, wants, self.names, detecting, place, verdict)
        instances.judge(records, verdict)
        if self.unconfined and not detecting:
            deviceorder.judge(wants.get("gpu"), records, place, verdict)
        if auto is not None and found is None:
            instances.judge_detected(auto, wants.get("gpu"), place, verdict)
        if auto is not None:
            records = self._detect(auto, records, found, has, verdict)
        if not self.files.gres_complete:
            records = detect.assume(records, Pair("AutoDetect", "", place), verdict)
        records = shares.load(records, raw, self.names, self.release, verdict)
        if verdict.fatal:
            return NodeResult(None, once(verdict.findings, cut), True)
        invalid = registration.invalid_reason(
            wants, records, self.names, has, self.release, self._filed(records), node.names
        )
        if registration.NODE_INVALID in self.unjudged:
            invalid = None
        if invalid:
            since = self._since(wants, records, has)
            blamed = registration.place_of(invalid, records, has, node.names)
            related = [Related(place, "the node's Gres= stands here")] if blamed else []
            message = f"{invalid}{since}".replace(f" for node {node.names}", "").replace(f" on node {node.names}", "")
            message = message.replace(f"node {node.names} only", "the node only")
            verdict.note(registration.NODE_INVALID, blamed or place, message, related=related)
        return NodeResult(
            _offer(records, self.names), once(verdict.findings, cut), False, invalid, _registered(records)
        )

    def _since(self, wants: Mapping[str, Wanted], records: list[Record], has: Hardware) -> str:
        """From which release on slurmctld finds fault with the records, in words; empty where every one does."""
        of = (self.names, has)
        filed = self._filed(records)
        finds = [r for r in RELEASES.values() if registration.invalid_reason(wants, records, *of, r, filed)]
        return f" (holds since {finds[0]})" if finds and finds[0] is not next(iter(RELEASES.values())) else ""

    def _filed(self, records: list[Record]) -> frozenset[str]:
        """The names with device files: on any node's lines, or found on this one."""
        return frozenset(self.index.filed).union(record.name for record in records if record.has_file)

    def _detect(
        self,
        auto: Pair,
        records: list[Record],
        found: tuple[DetectedGpu, ...] | None,
        has: Hardware,
        verdict: Verdict,
    ) -> list[Record]:
        if detect.judge_mig(auto, records, self.release, verdict):
            return records
        if found is not None:
            return detect.overlay(records, found, auto.place, has.cores, verdict)
        return detect.assume(records, auto, verdict)


def _registered(records: list[Record]) -> tuple[Registered, ...]:
    return tuple(Registered(r.name, r.type, r.count, _known(r.files), r.cores, r.links) for r in records)


def _known(files: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(file for file in files if not file.startswith(detect.ASSUMED_FILE))


def _devices(record: Record) -> Iterator[tuple[str, ...]]:
    """The files of each device of a record; nothing known where AutoDetect is taken at its word."""
    if record.multiple or len(record.files) < 2:
        yield from [record.files] * (1 if record.files else record.count)
    else:
        yield from ((file,) for file in record.files)


def _offer(records: list[Record], names: tuple[str, ...]) -> SlurmOffer:
    kinds = [name for name in names if any(r.name == name and r.shared and r.count for r in records)]
    sharing = kinds[-1] if kinds else None
    counts: dict[tuple[str, ...], int] = {r.files: r.count for r in records if r.name == sharing}
    gpu = gres_id("gpu")
    gpus = tuple(
        SlurmDevice(
            type=record.type,
            files=_known(files),
            shares=counts.get(files, 0),
            cores=record.cores,
            links=tuple(int(link or 0) for link in record.links.split(",")) if record.links else None,
        )
        for record in records
        if record.id == gpu
        for files in _devices(record)
    )
    others = tuple(
        OtherGres(r.name, r.type, r.count, r.files) for r in records if r.id != gpu and not r.shared and r.count
    )
    return SlurmOffer(gpus, sharing, others)
