"""A NodeName line of slurm.conf: which nodes it names, what hardware it says they have, and what Slurm refuses in it.

Its Gres= is another noun (nodegres). Source: S:src/common/read_config.c _parse_nodename, S:src/common/node_conf.c
expand_nodeline_info.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from hybridgpu.consumers.slurm.conf import DOUBLED_KEY, NodeRecord, unknown_key
from hybridgpu.consumers.slurm.hostlist import BadHostlist, expand
from hybridgpu.consumers.slurm.release import Release
from hybridgpu.consumers.slurm.verdict import Verdict
from hybridgpu.files.slurmlines import SlurmLine
from hybridgpu.model.finding import Place, Related, Rule, Severity

BAD_NUMBER = Rule(
    "slurm-bad-number",
    Severity.ERROR,
    "The value is no number that Slurm takes: every daemon stops with a fatal error.",
    "Write a whole number.",
    "S:src/common/parse_value.c s_p_handle_uint16; slurmd -G on 22.05, 24.11, 26.05",
)
BAD_HOSTLIST = Rule(
    "slurm-bad-hostlist",
    Severity.ERROR,
    "The host list cannot be read: every daemon stops with a fatal error.",
    "Write it as name[1-3,7], brackets closed and ranges rising.",
    "S:src/common/hostlist.c; slurmd -G on 22.05, 24.11, 26.05",
)
NODE_TWICE = Rule(
    "slurm-node-twice",
    Severity.ERROR,
    "A node is defined twice: every daemon stops with a fatal error.",
    "Define each node on one line.",
    "S:src/common/node_conf.c _check_callback; slurmd -G on 22.05, 24.11, 26.05",
)
ADDRESS_COUNT = Rule(
    "slurm-address-count",
    Severity.ERROR,
    "The line does not name one address, host or port for each of its nodes: every daemon stops with a fatal error.",
    "Name as many as there are nodes.",
    "S:src/common/node_conf.c expand_nodeline_info; slurmd -G on 22.05, 24.11, 26.05",
)
BAD_STATE = Rule(
    "slurm-bad-node-state",
    Severity.ERROR,
    "Slurm does not know the State: every daemon stops with a fatal error.",
    "Use UNKNOWN, CLOUD, DOWN, DRAIN, FAIL, FAILING or FUTURE.",
    "S:src/common/node_conf.c expand_nodeline_info; slurmd -G on 22.05, 24.11, 26.05",
)
RESERVED_NAME = Rule(
    "slurm-node-named-all",
    Severity.ERROR,
    "ALL is a reserved word: every daemon stops with a fatal error.",
    "Name the nodes.",
    "S:src/common/read_config.c _parse_nodename; slurmd -G on 22.05, 24.11, 26.05",
)
HARDWARE = Rule(
    "slurm-hardware-mismatch",
    Severity.WARNING,
    "CPUs is neither the number of sockets, of cores, nor of threads: Slurm resets it.",
    "Let CPUs be Sockets * CoresPerSocket * ThreadsPerCore, or leave it out.",
    "S:src/common/read_config.c _parse_nodename",
)

RULES = (BAD_NUMBER, BAD_HOSTLIST, NODE_TWICE, ADDRESS_COUNT, BAD_STATE, RESERVED_NAME, HARDWARE)

_NUMBERS = frozenset(
    (
        *("boards", "corespeccount", "corespersocket", "cpus", "procs", "sockets", "socketsperboard"),
        *("threadspercore", "restrictedcorespergpu", "tmpdisk", "weight", "memspeclimit", "realmemory"),
    )
)
_WITH_K = frozenset(("tmpdisk", "weight", "memspeclimit", "realmemory"))
_NUMBER = re.compile(r"\s*\+?(0[xX][0-9a-fA-F]+|0[0-7]*|[1-9][0-9]*)?")
_STATES = frozenset(
    ("unknown", "down", "idle", "allocated", "error", "mixed", "future", "reserved", "planned", "blocked", "invalid")
)
_STATE_STARTS = ("cloud", "external", "drain", "fail", "power", "maint", "reboot", "perfctrs", "no_resp")


@dataclass(frozen=True, slots=True)
class Hardware:
    """What a line says of its nodes: sockets, cores a socket, threads a core."""

    sockets: int
    cores_per_socket: int
    threads: int

    @property
    def cores(self) -> int:
        """The number of cores: what Cores= in gres.conf counts."""
        return self.sockets * self.cores_per_socket


def number(text: str, with_k: bool = False) -> int | None:
    """A number as C's strtoul with base 0 reads it (010 is 8); None where Slurm refuses it."""
    if text.upper() in ("UNLIMITED", "INFINITE"):
        return 2**16 - 1
    found = _NUMBER.match(text)
    digits, rest = (found[1] or "0", text[found.end() :]) if found else ("0", text)
    factor = 1
    if with_k and rest[:1] in ("k", "K"):
        factor, rest = 1024, rest[1:]
    if rest:
        return None
    base = 16 if digits[:2].lower() == "0x" else 8 if digits.startswith("0") else 10
    value = int(digits, base) * factor
    return value if with_k or value <= 0xFFFF else None


def hardware(node: NodeRecord) -> Hardware:
    """Sockets, cores and threads, with the defaults and resets that Slurm applies."""

    def of(key: str) -> int | None:
        text = node.text(key)
        return None if text is None else number(text)

    cores = of("corespersocket") or 1
    threads = of("threadspercore") or 1
    boards = of("boards") or 1
    cpus = of("cpus") if of("cpus") is not None else of("procs")
    per_board, sockets = of("socketsperboard"), of("sockets")
    if per_board is not None:
        return Hardware(boards * (per_board or 1), cores, threads)
    if sockets is not None:
        return Hardware(sockets or 1, cores, threads)
    if cpus and cpus >= cores * threads and cpus % (cores * threads) == 0:
        return Hardware(cpus // (cores * threads), cores, threads)
    return Hardware(boards, cores, threads)


def node_names(node: NodeRecord, release: Release) -> tuple[str, ...]:
    """The nodes of the line in order, doubles included; () where the list cannot be read (judge says so)."""
    try:
        return expand(node.names, release.hostlist_suffix)
    except BadHostlist:
        return ()


def judge_keys(line: SlurmLine, release: Release, verdict: Verdict) -> None:
    """Keys the release does not know, numbers that are none, and keys that stand twice; for NodeName=DEFAULT too."""
    allowed = {key.lower() for key in release.node_keys}
    seen: set[str] = set()
    for pair in line.pairs[1:]:
        key = pair.key.lower()
        if key not in allowed:
            verdict.take([unknown_key(pair, tuple(release.node_keys), "a NodeName line takes")], fatal=True)
        elif key in _NUMBERS and number(pair.value, key in _WITH_K) is None:
            verdict.die(BAD_NUMBER, pair.place, f"{pair.key}={pair.value} is not a number that Slurm takes")
        if key in seen:
            verdict.note(DOUBLED_KEY, pair.place, f"{pair.key} is there twice; {pair.key}={pair.value} holds")
        seen.add(key)


def judge(node: NodeRecord, release: Release, verdict: Verdict) -> None:
    """Everything about the line but Gres= that stops Slurm, or that it mends by itself."""
    judge_keys(node.line, release, verdict)
    state = node.values.get("state")
    if state and not (state.value.lower() in _STATES or state.value.lower().startswith(_STATE_STARTS)):
        verdict.die(BAD_STATE, state.place, f"State={state.value} is not a state of a node")
    if node.names.lower() == "all":
        verdict.die(RESERVED_NAME, node.place, f"NodeName={node.names} is a reserved word")
    _judge_lists(node, release, verdict)
    _judge_hardware(node, verdict)


def _judge_lists(node: NodeRecord, release: Release, verdict: Verdict) -> None:
    try:
        count = len(expand(node.names, release.hostlist_suffix))
    except BadHostlist as bad:
        verdict.die(BAD_HOSTLIST, node.place, f"NodeName={node.names}: {bad}")
        return
    for key in ("nodeaddr", "nodehostname", "bcastaddr", "port"):
        pair = node.values.get(key)
        if not pair:
            continue
        text = pair.value
        if key == "port" and not text.startswith("[") and re.search("[-,]", text):
            text = f"[{text}]"
        try:
            given = len(expand(text, release.hostlist_suffix))
        except BadHostlist as bad:
            verdict.die(BAD_HOSTLIST, pair.place, f"{pair.key}={pair.value}: {bad}")
            continue
        if given not in (1, count):
            verdict.die(
                ADDRESS_COUNT, pair.place, f"{pair.key}={pair.value} names {given} for the {count} nodes of the line"
            )


def _judge_hardware(node: NodeRecord, verdict: Verdict) -> None:
    cpus = node.values.get("cpus") or node.values.get("procs")
    count = number(cpus.value) if cpus else None
    if cpus is None or not count:
        return
    has = hardware(node)
    right = (has.sockets, has.cores, has.cores * has.threads)
    if count not in right:
        verdict.note(
            HARDWARE,
            cpus.place,
            f"CPUs={count} is none of {right[0]} sockets, {right[1]} cores, {right[2]} threads; Slurm takes {right[2]}",
        )


def judge_doubles(nodes: tuple[NodeRecord, ...], release: Release, verdict: Verdict) -> None:
    """Nodes that two lines, or one line twice, define."""
    seen: dict[str, Place] = {}
    for node in nodes:
        told = False
        for name in node_names(node, release):
            if name in seen and not told:
                told = True
                related = (Related(seen[name], "defined here first"),) if seen[name] != node.place else ()
                verdict.die(NODE_TWICE, node.place, f"node {name} is defined twice", related=related)
            seen.setdefault(name, node.place)
