"""A NodeName line's keys in the inventory's words: defaults resolved, spellings and numbers as it takes them.

What a key means is Slurm's business; what cannot stand in an inventory is told, and left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from hybridgpu.consumers.slurm import NodeRecord, Release
from hybridgpu.consumers.slurm.hostlist import expand
from hybridgpu.consumers.slurm.nodeline import node_names
from hybridgpu.consumers.slurm.values import is_count, unsigned
from hybridgpu.files.slurmlines import Pair
from hybridgpu.inventory.importer.told import Told
from hybridgpu.inventory.nodekeys import ADDRESS_KEYS, OUR_GRES, is_gres_entry
from hybridgpu.inventory.schema import VALUE
from hybridgpu.model.finding import Rule, Severity

VALUE_LOST = Rule(
    "import-node-value-lost",
    Severity.ERROR,
    "An inventory cannot hold the value, so the rendered NodeName line would lack the key.",
    "Write the value as one word without quotes, # and backslashes, and import again.",
    "docs/inventory.md",
)
STATE_LOST = Rule(
    "import-node-state-lost",
    Severity.ERROR,
    "hybridgpu writes no State: the nodes would become ordinary ones, which power saving and dynamic nodes are not.",
    "Keep the NodeName lines of these nodes in slurm.conf, and leave them out of the inventory.",
    "slurm.conf.5 State",
)
STATE_DROPPED = Rule(
    "import-node-state-dropped",
    Severity.WARNING,
    "hybridgpu writes no State: at a fresh start slurmctld takes the nodes for UNKNOWN, and uses them once they "
    "register. A State that slurmctld has saved stays.",
    "Drain the nodes (scontrol update state=drain), which slurmctld remembers.",
    "slurm.conf.5 State",
)

_NUMBERS = {
    **dict.fromkeys(("Boards", "CoreSpecCount", "CoresPerSocket", "CPUs", "Sockets", "SocketsPerBoard"), 16),
    **dict.fromkeys(("ThreadsPerCore", "RestrictedCoresPerGPU"), 16),
    **dict.fromkeys(("TmpDisk", "Weight"), 32),
    **dict.fromkeys(("MemSpecLimit", "RealMemory"), 64),
}
"""How many bits Slurm reads them in; beyond 16 with a K behind (S:src/common/read_config.c _parse_nodename)."""

_ALIASES = {"procs": "CPUs", "feature": "Features"}
_ORDINARY = ("unknown", "idle")
_KEPT_BY_SLURM = ("down", "drain", "fail")
_NOT_PARAMETERS = frozenset(("nodename", "state", "gres", "reason", *(key.lower() for key in ADDRESS_KEYS)))


@dataclass(frozen=True, slots=True)
class NodeLine:
    """A NodeName line in the inventory's words. `keys` without Gres and addresses, in the order in force.

    `gres` is the site's own part of Gres=; `addresses` have one value per node of the line, in its order.
    """

    nodes: tuple[str, ...]
    keys: tuple[tuple[str, str], ...]
    gres: str
    addresses: tuple[tuple[str, tuple[str, ...]], ...]


def node_line(record: NodeRecord, release: Release, told: Told) -> NodeLine:
    """The line's nodes and keys; what an inventory cannot hold goes into `told`."""
    nodes = node_names(record, release)
    state = record.values.get("state")
    if state:
        _judge_state(record, state, told)
    return NodeLine(
        nodes=nodes,
        keys=tuple(_parameters(record, release, told)),
        gres=site_gres(record, told),
        addresses=tuple(_addresses(record, len(nodes), release, told)),
    )


def site_gres(record: NodeRecord, told: Told) -> str:
    """The entries of Gres= that are not hybridgpu's, each with its count."""
    kept = []
    for token in _tokens(record):
        entry = _counted(token)
        if token.partition(":")[0] in OUR_GRES or entry.endswith(":0"):
            continue
        if is_gres_entry(entry):
            kept.append(entry)
        else:
            told.add(VALUE_LOST, record.values["gres"].place, f"{record.names}: Gres={token} cannot stand there")
    return ",".join(kept)


def _tokens(record: NodeRecord) -> list[str]:
    gres = record.values.get("gres")
    return [token.partition("(")[0] for token in gres.value.split(",") if token] if gres else []


def _counted(token: str) -> str:
    """An entry without a count stands for one (S:src/interfaces/gres.c _get_gres_cnt)."""
    name, _, last = token.rpartition(":")
    return token if name and is_count(last) else f"{token}:1"


def _judge_state(record: NodeRecord, state: Pair, told: Told) -> None:
    lower = state.value.lower()
    if lower in _ORDINARY:
        return
    rule = STATE_DROPPED if lower.startswith(_KEPT_BY_SLURM) else STATE_LOST
    told.add(rule, state.place, f"{record.names}: State={state.value} is not taken over")


def _parameters(record: NodeRecord, release: Release, told: Told) -> Iterator[tuple[str, str]]:
    spelled = {key.lower(): key for key in release.node_keys} | _ALIASES
    written: set[str] = set()
    for lower, pair in record.values.items():
        if lower in _NOT_PARAMETERS or (lower in _ALIASES and _other_spelling(lower) in record.values):
            continue
        key = spelled.get(lower, pair.key)
        value = _value(key, pair, told, record)
        if value is not None and key not in written:
            written.add(key)
            yield key, value


def _other_spelling(alias: str) -> str:
    return _ALIASES[alias].lower()


def _value(key: str, pair: Pair, told: Told, record: NodeRecord) -> str | None:
    """The value as an inventory takes it: numbers in plain decimal digits, as Slurm reads them."""
    bits = _NUMBERS.get(key)
    if bits:
        read = unsigned(pair.value, bits, kilo=bits > 16)
        return None if read is None else str(read)
    value = ",".join(part.strip() for part in pair.value.split(","))
    if re.fullmatch(VALUE.pattern, value):
        return value
    told.add(VALUE_LOST, pair.place, f"{record.names}: {pair.key}={pair.value} cannot stand in an inventory")
    return None


def _addresses(record: NodeRecord, nodes: int, release: Release, told: Told) -> Iterator[tuple[str, tuple[str, ...]]]:
    """NodeAddr, NodeHostname, Port and BcastAddr, one value for each node."""
    for key in ADDRESS_KEYS:
        pair = record.values.get(key.lower())
        if pair is None:
            continue
        text = pair.value
        if key == "Port" and "[" not in text and re.search("[-,]", text):
            text = f"[{text}]"
        values = expand(text, release.hostlist_suffix, release.hostlist_unclosed)
        if len(values) in (1, nodes):
            yield key, values * nodes if len(values) == 1 else values
        else:
            told.add(VALUE_LOST, pair.place, f"{pair.key}={pair.value} has {len(values)} values for {nodes} nodes")
