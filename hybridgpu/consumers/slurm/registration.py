"""What slurmctld checks when a node registers for the first time: the reason for turning the node INVALID, or none.

It judges records only (slurmd's result), and knows nothing of jobs that run. Source: S:src/interfaces/gres.c
gres_node_config_unpack, _node_config_validate, _valid_gres_types, _valid_gres_type, _check_core_range_matches_sock.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

from hybridgpu.consumers.slurm.gresconf import Record
from hybridgpu.consumers.slurm.hardware import Hardware
from hybridgpu.consumers.slurm.nodegres import SHARED, Wanted
from hybridgpu.consumers.slurm.release import Release
from hybridgpu.consumers.slurm.values import core_set
from hybridgpu.model.finding import Place, Rule, Severity
from hybridgpu.model.naming import gres_id

NODE_INVALID = Rule(
    "slurm-node-invalid",
    Severity.ERROR,
    "slurmctld turns the node INVALID and drains it; it cannot be resumed before a good registration.",
    "Let slurm.conf and gres.conf agree, then reload.",
    "S:src/interfaces/gres.c _node_config_validate, S:src/slurmctld/node_mgr.c validate_node_specs",
)

RULES = (NODE_INVALID,)

NO_REASON = "no reason given"
"""How a reason begins where slurmctld sets INVALID for Cores beyond the node's, with no Reason or a misleading one.

Run: 26.05 none ("with reason:(null)"), 24.11 none or "count too low (0 < 4)".
"""


def invalid_reason(
    wants: Mapping[str, Wanted],
    records: Sequence[Record],
    names: tuple[str, ...],
    hardware: Hardware,
    release: Release,
    filed: Set[str],
    node: str = "",
) -> str | None:
    """The controller's reason, in its words, for the first GRES name it finds fault with; None where all is well.

    `wants` is what slurm.conf asks for, `records` what slurmd registers. `filed` are the names with device files on any
    node: to slurmctld, one node's File is every node's (gres_node_config_unpack). The same with and without
    SlurmdParameters=config_overrides (run with it, read without).
    """
    for name in names:
        mine = [record for record in records if record.name == name]
        want = wants.get(name, Wanted(name, 0))
        reason = _reason(want, mine, name in filed, bool(wants.keys() & SHARED), hardware, release, node)
        if reason:
            return reason
    return None


def _reason(
    want: Wanted,
    mine: list[Record],
    filed: bool,
    sharing: bool,
    hardware: Hardware,
    release: Release,
    node: str,
) -> str | None:
    name = want.name
    total = sum(record.count for record in mine)
    if want.count > total:
        return f"gres/{name} count reported lower than configured ({total} < {want.count})"
    topology = any(r.cores is not None or r.type is not None for r in mine) or (sharing and name == "gpu")
    if topology and filed and want.count:
        reason = _topology(want, mine, hardware, release, node)
        if reason:
            return reason
    if not topology:
        return None
    if len(mine) > 1:
        for kind, count in want.types:
            found = sum(r.count for r in mine if _is(r, kind))
            if found < count:
                return f"gres/{name}:{kind} count too low ({found} < {count})"
    if release.types_must_be_configured and want.types:
        stray = next((r for r in mine if filed and not any(_is(r, kind) for kind, _ in want.types)), None)
        if stray is not None:
            return f"gres/{name} type ({stray.type}) reported but not configured"
    return None


def _is(record: Record, kind: str) -> bool:
    return gres_id(record.type or "") == gres_id(kind)


def _topology(want: Wanted, mine: list[Record], hardware: Hardware, release: Release, node: str) -> str | None:
    """Cores must be whole sockets (24.11 on), Links no longer than the list of devices."""
    before = 0
    for record in mine:
        if record.cores is not None and release.cores_must_match_sockets:
            reason = _cores(want.name, record.cores, hardware, release.cores_of_one_socket, node)
            if reason:
                return reason
        inside, before = before < want.count, before + record.count
        if record.links is not None and not record.shared and inside:
            length = len(record.links.split(","))
            if length > want.count:
                return (
                    f"Invalid GRES Links value ({record.links}) on node {node}: "
                    f"i={want.count} >= link_len={want.count}."
                )
    return None


def _cores(name: str, text: str, hardware: Hardware, one: bool, node: str) -> str | None:
    """`one`: the cores must be those of one socket, or all; otherwise those of whole sockets."""
    cores = core_set(text, hardware.cores)
    if cores is None:
        return f"{NO_REASON} (gres/{name} has Cores={text}, and node {node} only {hardware.cores} cores)"
    if len(cores) == hardware.cores:
        return None
    for socket in range(hardware.sockets):
        first = socket * hardware.cores_per_socket
        last = first + hardware.cores_per_socket
        inside = sum(1 for core in cores if first <= core < last)
        if inside and (inside != hardware.cores_per_socket or (one and inside != len(cores))):
            return (
                f"gres/{name} GRES core specification {_ranges(cores)} for node {node} doesn't match socket "
                f"boundaries. (Socket {socket} is cores {first}-{last - 1})"
            )
    return None


def place_of(reason: str, records: Sequence[Record], hardware: Hardware, node: str) -> Place | None:
    """Where the record stands whose Cores are the reason; None for another reason."""
    for record in records:
        if record.cores is None:
            continue
        if reason in (_cores(record.name, record.cores, hardware, one, node) for one in (False, True)):
            return record.place
    return None


def _ranges(cores: frozenset[int]) -> str:
    """`0-3,8`, as Slurm prints a bitmap."""
    parts: list[list[int]] = []
    for core in sorted(cores):
        if parts and parts[-1][1] == core - 1:
            parts[-1][1] = core
        else:
            parts.append([core, core])
    return ",".join(f"{low}-{high}" if high > low else str(low) for low, high in parts)
