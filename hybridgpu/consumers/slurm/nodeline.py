"""A NodeName line of slurm.conf: which nodes it names, and what Slurm refuses in it.

Its Gres= and its hardware are other nouns (nodegres, hardware).
Source: S:src/common/read_config.c _parse_nodename, S:src/common/node_conf.c
expand_nodeline_info.
"""

from __future__ import annotations

import re

from hybridgpu.consumers.slurm import hardware
from hybridgpu.consumers.slurm.conf import DOUBLED_KEY, UNKNOWN_KEY, NodeRecord, unknown_key
from hybridgpu.consumers.slurm.hostlist import BadHostlist, expand, unclosed
from hybridgpu.consumers.slurm.hostsuffix import written_out
from hybridgpu.consumers.slurm.release import Release, history
from hybridgpu.consumers.slurm.values import integer, unsigned
from hybridgpu.consumers.slurm.verdict import Verdict
from hybridgpu.files.slurmlines import Pair, SlurmLine
from hybridgpu.model.finding import Finding, Place, Related, Rule, Severity

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
    "S:src/common/node_conf.c state_str2int; slurmd -G on 22.05, 24.11, 26.05",
)
RESERVED_NAME = Rule(
    "slurm-node-named-all",
    Severity.ERROR,
    "ALL is a reserved word: every daemon stops with a fatal error.",
    "Name the nodes.",
    "S:src/common/read_config.c _parse_nodename; slurmd -G on 22.05, 24.11, 26.05",
)
BAD_PORT = Rule(
    "slurm-bad-port",
    Severity.ERROR,
    "The port is none: every daemon stops with a fatal error.",
    "Write a number from 1 to 65535.",
    "S:src/common/node_conf.c expand_nodeline_info; slurmd -G on 22.05, 24.11, 26.05",
)

RULES = (
    *(BAD_NUMBER, BAD_HOSTLIST, NODE_TWICE, ADDRESS_COUNT, BAD_STATE, RESERVED_NAME, BAD_PORT),
    *hardware.RULES,
)

_BITS = {
    **dict.fromkeys(("boards", "corespeccount", "corespersocket", "cpus", "procs", "sockets", "socketsperboard"), 16),
    **dict.fromkeys(("threadspercore", "restrictedcorespergpu"), 16),
    "tmpdisk": 32,
    "weight": 32,
    "memspeclimit": 64,
    "realmemory": 64,
}
"""The keys that take a number, and how wide it is; those of more than 16 bits take a K behind it."""
_STATES = frozenset(("unknown", "down", "idle", "allocated", "mixed", "future"))
"""States written out; those that may go on behind are in the release's words for State."""


def node_names(node: NodeRecord, release: Release) -> tuple[str, ...]:
    """The nodes of the line in order, doubles included; () where the list cannot be read (judge says so)."""
    try:
        return expand(node.names, release.hostlist_suffix, release.hostlist_unclosed)
    except BadHostlist:
        return ()


def judge_keys(line: SlurmLine, release: Release, verdict: Verdict) -> None:
    """Keys the release does not know, numbers that are none, and keys that stand twice; for NodeName=DEFAULT too."""
    allowed = {key.lower() for key in release.node_keys}
    seen: set[str] = set()
    for pair in line.pairs[1:]:
        key = pair.key.lower()
        if key not in allowed:
            verdict.take([_unknown(pair, release)], fatal=True)
        elif key in _BITS and _number(pair) is None:
            verdict.die(BAD_NUMBER, pair.place, f"{pair.key}={pair.value} is not a number that Slurm takes")
        if key in seen:
            verdict.note(DOUBLED_KEY, pair.place, f"{pair.key} is there twice; {pair.key}={pair.value} holds")
        seen.add(key)


def judge(node: NodeRecord, release: Release, verdict: Verdict) -> None:
    """Everything about the line but Gres= that stops Slurm, or that it mends by itself."""
    judge_keys(node.line, release, verdict)
    state = node.values.get("state")
    starts = release.setting_words["State"]
    if state and not (state.value.lower() in _STATES or state.value.lower().startswith(starts)):
        verdict.die(BAD_STATE, state.place, f"State={state.value} is not a state of a node")
    if not node.names:
        verdict.die(BAD_HOSTLIST, node.place, "NodeName is empty")
    if node.names.lower() == "all":
        verdict.die(RESERVED_NAME, node.place, f"NodeName={node.names} is a reserved word")
    _judge_lists(node, release, verdict)
    hardware.judge(node, verdict)


def _judge_lists(node: NodeRecord, release: Release, verdict: Verdict) -> None:
    _judge_brackets("NodeName", node.names, node.place, release, verdict)
    try:
        count = len(expand(node.names, release.hostlist_suffix, release.hostlist_unclosed))
    except BadHostlist as bad:
        verdict.die(BAD_HOSTLIST, node.place, f"NodeName={node.names}: {bad}", written_out(node.names))
        return
    for key in ("nodeaddr", "nodehostname", "bcastaddr", "port"):
        pair = node.values.get(key)
        if not pair:
            continue
        text = pair.value
        if key == "port" and not text.startswith("[") and re.search("[-,]", text):
            text = f"[{text}]"
        try:
            values = expand(text, release.hostlist_suffix, release.hostlist_unclosed)
        except BadHostlist as bad:
            verdict.die(BAD_HOSTLIST, pair.place, f"{pair.key}={pair.value}: {bad}", written_out(pair.value))
            continue
        _judge_brackets(pair.key, pair.value, pair.place, release, verdict)
        if len(values) not in (1, count) and (values or key not in ("bcastaddr", "port")):
            message = f"{pair.key}={pair.value} names {len(values)} for the {count} nodes of the line"
            verdict.die(ADDRESS_COUNT, pair.place, message)
        wrong = [value for value in values if not 0 < _atoi(value) < 2**16] if key == "port" else []
        if wrong:
            verdict.die(BAD_PORT, pair.place, f"{pair.key}={pair.value}: {wrong[0]} is no port; allowed: 1 to 65535")


def _judge_brackets(key: str, text: str, place: Place | None, release: Release, verdict: Verdict) -> None:
    """A bracket that is never closed, where the release takes it for a name."""
    token = unclosed(text) if release.hostlist_unclosed else None
    if token:
        name = expand(token, may_stay_open=True)[0]
        verdict.note(BAD_HOSTLIST, place, f"{key}={text}: Slurm {release} takes '{token}' for one host, '{name}'")


def _unknown(pair: Pair, release: Release) -> Finding:
    past = history(pair.key, release, lambda other: other.node_keys)
    if past:
        return Finding(UNKNOWN_KEY, pair.place, f"{pair.key} {past}; Slurm {release} does not know it")
    return unknown_key(pair, tuple(release.node_keys), "a NodeName line takes")


def _number(pair: Pair) -> int | None:
    bits = _BITS[pair.key.lower()]
    return unsigned(pair.value, bits, kilo=bits > 16)


def _atoi(text: str) -> int:
    """C's atoi: the number that the text begins with, 0 where it begins with none."""
    found = re.match(r"\s*[+-]?[0-9]+", text)
    return integer(found[0]) if found else 0


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
