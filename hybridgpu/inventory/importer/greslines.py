"""The lines of gres.conf that an inventory keeps as they are, and what of the others it has no word for.

gres.conf is rendered whole, so a line that is neither kept nor said by the inventory would be gone.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from hybridgpu.consumers.slurm import Release, SlurmFiles
from hybridgpu.consumers.slurm.detect import in_force
from hybridgpu.consumers.slurm.gresindex import GresIndex
from hybridgpu.consumers.slurm.hostlist import BadHostlist, expand
from hybridgpu.consumers.slurm.verdict import Verdict
from hybridgpu.files.slurmlines import Pair, SlurmLine
from hybridgpu.inventory.importer.fold import fold_hosts
from hybridgpu.inventory.importer.told import Told
from hybridgpu.inventory.nodeentry import is_host_name
from hybridgpu.inventory.nodekeys import OUR_GRES
from hybridgpu.inventory.schema import GRES_NAME, RAW_LINE
from hybridgpu.model.finding import Rule, Severity
from hybridgpu.model.site import KUBERNETES_CARDS

LINE_LOST = Rule(
    "import-gres-line-lost",
    Severity.ERROR,
    "gres.conf is rendered whole, and an inventory cannot hold this line: what it says would not hold any more.",
    "Write the line without quotes, # and backslashes; AutoDetect of nodes outside the inventory has no place in it.",
    "docs/inventory.md",
)
FLAGS_LOST = Rule(
    "import-gres-flags-lost",
    Severity.WARNING,
    "hybridgpu writes no Flags but all_sharing for mps: jobs get all the variables of Slurm's defaults, and may share "
    "all GPUs of a node at once.",
    "Nothing is to be done if the flags only took away variables of other vendors' cards.",
    "S:src/interfaces/gres.c gres_flags_parse; gres.conf.5 Flags",
)

_DEFAULT_FLAGS = frozenset(("all_sharing", "nvidia_gpu_env"))


@dataclass(frozen=True, slots=True)
class Detection:
    """The AutoDetect in force on a node: a release's word, `off` where there is none, and where it stands."""

    value: str
    pair: Pair | None


def detections(files: SlurmFiles, nodes: Collection[str], release: Release) -> Mapping[str, Detection]:
    """The AutoDetect of each node."""
    index = GresIndex(files.gres or (), None, release, Verdict())
    known: dict[tuple[int, ...], Detection] = {}
    found: dict[str, Detection] = {}
    for node in nodes:
        groups = tuple(index.of_node.get(node, ()))
        if groups not in known:
            local = [line for line in index.lines(groups) if line.pairs[0].key.lower() == "nodename"]
            pair = in_force(local, index.autodetect, release, Verdict())
            known[groups] = Detection(_word(pair, release), pair)
        found[node] = known[groups]
    return found


def _word(pair: Pair | None, release: Release) -> str:
    text = pair.value.lower() if pair else "off"
    return next((value for value in release.autodetect if value in text), "off")


def raw_lines(
    files: SlurmFiles, imported: Collection[str], left_out: Sequence[str], release: Release, told: Told
) -> tuple[str, ...]:
    """The lines to keep. `imported` are the inventory's nodes, `left_out` those with GPUs that it does not have."""
    lines = [line for line in files.gres or () if line.pairs]
    scope = _Scope(frozenset(imported), tuple(left_out), files.words("GresTypes"), release)
    return tuple(dict.fromkeys(text for line in lines for text in _raw(line, scope, told)))


@dataclass(frozen=True, slots=True)
class _Scope:
    """Whom lines are for: the inventory's nodes, those with GPUs that it does not have; and the names of GresTypes."""

    imported: frozenset[str]
    left_out: tuple[str, ...]
    types: tuple[str, ...]
    release: Release

    def outside(self, nodes: str | None) -> Iterator[str]:
        """The nodes of a GPU line that the inventory does not have; a line for all nodes is one for those with GPUs."""
        if nodes is None:
            yield from self.left_out
            return
        with suppress(BadHostlist):
            yield from (node for node in expand(nodes, self.release.hostlist_suffix) if node not in self.imported)


def _raw(line: SlurmLine, scope: _Scope, told: Told) -> Iterator[str]:
    first, name = line.pairs[0], line.get("name")
    if name is None:
        _judge_detection(line, scope, told)
        return
    if scope.types and name.value not in scope.types:
        return
    ours = name.value.lower() in OUR_GRES
    pairs = [pair for pair in line.pairs if pair.key.lower() not in ("nodename", "autodetect")]
    nodes = first.value if first.key.lower() == "nodename" else None
    if ours:
        _judge_flags(line, told)
        outside = [node for node in scope.outside(nodes) if is_host_name(node)]
        if not outside or name.value.lower() == KUBERNETES_CARDS:
            return
        nodes = fold_hosts(outside)
    text = " ".join([*([f"NodeName={nodes}"] if nodes else []), *(f"{pair.key}={pair.value}" for pair in pairs)])
    legal = ours or re.fullmatch(GRES_NAME.pattern, name.value)
    if legal and re.fullmatch(RAW_LINE.pattern, text) and len(text) <= RAW_LINE.longest and not _spaced(pairs):
        yield text
    else:
        told.add(LINE_LOST, line.place, f"the line for {name.value} cannot stand in an inventory: {text[:100]}")


def _spaced(pairs: Sequence[Pair]) -> bool:
    return any(not pair.value or any(character.isspace() for character in pair.value) for pair in pairs)


def _judge_flags(line: SlurmLine, told: Told) -> None:
    flags = line.get("flags")
    if flags and not {word.lower() for word in flags.value.split(",")} <= _DEFAULT_FLAGS:
        told.add(FLAGS_LOST, flags.place, f"Flags={flags.value} is not taken over")


def _judge_detection(line: SlurmLine, scope: _Scope, told: Told) -> None:
    """AutoDetect that holds for nodes outside the inventory."""
    detect = line.get("autodetect")
    if detect is None or detect.value.lower() == "off":
        return
    nodes = line.pairs[0].value if line.pairs[0].key.lower() == "nodename" else None
    outside = [node for node in scope.outside(nodes) if node in scope.left_out]
    if outside:
        message = f"AutoDetect={detect.value} finds the GPUs of {fold_hosts(outside)}, which are not in the inventory"
        told.add(LINE_LOST, detect.place, message)
