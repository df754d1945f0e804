"""The lines of slurm.conf that are records but no nodes: partitions, node sets, controllers; what stops Slurm in them.

Source: S:src/common/read_config.c _parse_partitionname, _parse_nodeset, _parse_slurmctld_host, _load_slurmctld_host,
_parse_power_action, _parse_frontend; slurmd -G on 22.05, 24.11, 26.05.
"""

from __future__ import annotations

from collections.abc import Mapping, Set

from hybridgpu.consumers.slurm import settingtypes as types
from hybridgpu.consumers.slurm.conf import UNKNOWN_KEY, SlurmFiles, unknown_key
from hybridgpu.consumers.slurm.partitions import partitions
from hybridgpu.consumers.slurm.release import Release, history
from hybridgpu.consumers.slurm.settingchecks import preempt_fault, suspend_fault, time_fault, type_fault
from hybridgpu.consumers.slurm.settings import BAD_SETTING, SETTINGS_EXCLUDE
from hybridgpu.consumers.slurm.values import unsigned
from hybridgpu.consumers.slurm.verdict import Verdict
from hybridgpu.files.slurmlines import Pair, SlurmLine
from hybridgpu.model.finding import Finding, Related

_STATES = ("up", "down", "drain", "inactive")
_SHARING = ("no", "exclusive", "yes", "force")
_EXCLUSIVE = ("no", "none", "node", "user", "topo")
_SELECT = ("cr_core", "cr_socket")


def judge(files: SlurmFiles, names: Set[str], release: Release, verdict: Verdict) -> None:
    """Everything in these lines that stops a daemon; `names` are the nodes of slurm.conf."""
    for line in files.records.get("partitionname", ()):
        _judge_keys(line, tuple(release.partition_keys), release, verdict)
        for key, pair in {pair.key.lower(): pair for pair in line.pairs[1:]}.items():
            fault = type_fault(key, pair.value, types.PARTITION_NUMBERS, types.PARTITION_FLAGS)
            if fault:
                verdict.die(BAD_SETTING, pair.place, f"{pair.key}={pair.value}: {fault}")
    for partition in partitions(files, release):
        _judge_partition(partition.own, partition.pairs, release, verdict)
    for kind, keys in types.RECORD_KEYS.items():
        for line in files.records.get(kind, ()):
            _judge_keys(line, keys, release, verdict)
    _judge_nodesets(files, names, release, verdict)
    most = files.setting("MaxNodeCount")
    count = unsigned(most.value, 32, kilo=True) if most else None
    if most and count is not None and (count or "node-count" in release.stops_on) and len(names) > count:
        verdict.die(SETTINGS_EXCLUDE, most.place, f"{most.key}={most.value}, but there are {len(names)} nodes")
    _judge_controllers(files, verdict)
    for line in files.records.get("poweraction", ()):
        _judge_power(line, verdict)
    for line in files.records.get("frontendname", ()):
        message = "FrontendName needs a Slurm that was built with --enable-front-end"
        verdict.die(BAD_SETTING, line.place, message)


def _judge_keys(line: SlurmLine, allowed: tuple[str, ...], release: Release, verdict: Verdict) -> None:
    known = {key.lower() for key in allowed}
    first = line.pairs[0]
    for pair in line.pairs[1:]:
        if pair.key.lower() in known:
            continue
        past = history(pair.key, release, lambda other: other.partition_keys) if len(allowed) > 9 else ""
        if past:
            message = f"{pair.key} {past}; Slurm {release} does not know it"
            verdict.take([Finding(UNKNOWN_KEY, pair.place, message)], fatal=True)
        else:
            words = f"a {first.key} line takes" if allowed else f"a {first.key} line takes no other key"
            verdict.take([unknown_key(pair, allowed, words)], fatal=True)


def _judge_partition(own: Mapping[str, Pair], all_: Mapping[str, Pair], release: Release, verdict: Verdict) -> None:
    """`own` are the line's pairs, `all_` those with the defaults before it."""

    def bad(pair: Pair, fault: str | None) -> None:
        if fault:
            verdict.die(BAD_SETTING, pair.place, f"{pair.key}={pair.value}: {fault}")

    for key in ("maxtime", "defaulttime"):
        if pair := all_.get(key):
            bad(pair, time_fault(pair.value))
    if (pair := all_.get("preemptmode")) and "partition-preempt" in release.stops_on:
        bad(pair, preempt_fault(pair.value, release))
    if pair := own.get("selecttypeparameters"):
        bad(
            pair,
            None if pair.value.lower().startswith(_SELECT) else "takes CR_Core, CR_Socket, with or without _Memory",
        )
    if pair := own.get("suspendtime"):
        bad(pair, suspend_fault(pair.value))
    if pair := all_.get("oversubscribe") or all_.get("shared"):
        word, colon, _ = pair.value.lower().partition(":")
        known = word in (_SHARING[2:] if colon else _SHARING)
        bad(pair, None if known else "takes NO, EXCLUSIVE, YES or FORCE, the last two with a count as FORCE:4")
    if pair := all_.get("exclusive"):
        bad(pair, None if pair.value.lower() in _EXCLUSIVE else "takes NO, NODE, USER or TOPO")
    if pair := all_.get("state"):
        bad(pair, None if pair.value.lower().startswith(_STATES) else "takes UP, DOWN, DRAIN or INACTIVE")


def _judge_nodesets(files: SlurmFiles, names: Set[str], release: Release, verdict: Verdict) -> None:
    for line in files.records.get("nodeset", ()) if "nodeset-names" in release.stops_on else ():
        if line.pairs[0].value in names:
            message = f"NodeSet={line.pairs[0].value} is the name of a node"
            verdict.die(SETTINGS_EXCLUDE, line.place, message)


def _judge_controllers(files: SlurmFiles, verdict: Verdict) -> None:
    seen: dict[str, Pair] = {}
    for line in files.records.get("slurmctldhost", ()):
        pair = line.pairs[0]
        host, opened, address = pair.value.partition("(")
        right = address.endswith(")") and address.count(")") == 1 if opened else ")" not in pair.value
        if not right:
            verdict.die(BAD_SETTING, pair.place, f"{pair.key}={pair.value}: write it as HOST or HOST(ADDRESS)")
        elif host in seen:
            related = [Related(seen[host].place, "here first")]
            verdict.die(SETTINGS_EXCLUDE, pair.place, f"{pair.key}={host} stands there twice", related=related)
        seen.setdefault(host, pair)


def _judge_power(line: SlurmLine, verdict: Verdict) -> None:
    where, program = line.get("location"), line.get("program")
    named = line.pairs[0].value
    if where is None or where.value.lower() not in ("slurmctld", "slurmd"):
        message = f"PowerAction={named} needs Location=slurmctld or Location=slurmd"
        verdict.die(BAD_SETTING, where.place if where else line.place, message)
    if program is None or not program.value.strip(" "):
        verdict.die(BAD_SETTING, program.place if program else line.place, f"PowerAction={named} needs a Program")
