"""What a NodeName line says of its nodes' hardware, with the defaults Slurm fills in and the values it resets.

Source: S:src/common/read_config.c _parse_nodename, alike in all releases.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hybridgpu.consumers.slurm.values import core_set, unsigned
from hybridgpu.model.finding import Rule, Severity

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hybridgpu.consumers.slurm.conf import NodeRecord
    from hybridgpu.consumers.slurm.verdict import Verdict

HARDWARE = Rule(
    "slurm-hardware-mismatch",
    Severity.WARNING,
    "CPUs is neither the number of sockets, of cores, nor of threads: Slurm resets it.",
    "Let CPUs be Sockets * CoresPerSocket * ThreadsPerCore, or leave it out.",
    "S:src/common/read_config.c _parse_nodename",
)
VALUE_RESET = Rule(
    "slurm-node-value-reset",
    Severity.WARNING,
    "Slurm takes another value than the one written, with an error in the log at every start.",
    "Write a value that Slurm keeps, or leave the key out.",
    "S:src/common/read_config.c _parse_nodename; slurmd -G on 22.05, 24.11, 26.05",
)

RULES = (HARDWARE, VALUE_RESET)

_BINDINGS = ("no", "none", "socket", "sockets", "ldom", "ldoms", "core", "cores", "thread", "threads", "off")
_BINDING_EXTRAS = ("v", "verbose")


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

    def whole_socket(self, first: int, last: int) -> bool:
        """Whether the cores from `first` to `last` are one socket, or all of them: what Slurm takes for a GPU's Cores=
        (S:src/interfaces/gres.c _check_core_range_matches_sock).
        """
        if (first, last) == (0, self.cores - 1):
            return True
        return first % self.cores_per_socket == 0 and last == first + self.cores_per_socket - 1 and last < self.cores


def hardware(node: NodeRecord) -> Hardware:
    """Sockets, cores and threads of a NodeName line, with the defaults and resets that Slurm applies."""
    keys = ("corespersocket", "threadspercore", "boards", "socketsperboard", "sockets", "cpus", "procs")
    return hardware_of({key: text for key in keys if (text := node.text(key)) is not None})


def hardware_of(values: Mapping[str, str]) -> Hardware:
    """The same of NodeName keys in lower case and their values."""

    def of(key: str) -> int | None:
        return unsigned(values[key], 16) if key in values else None

    cores, threads, boards = of("corespersocket") or 1, of("threadspercore") or 1, of("boards") or 1
    cpus, per_board, sockets = of("cpus" if "cpus" in values else "procs"), of("socketsperboard"), of("sockets")
    if per_board is not None:
        return Hardware(boards * (per_board or 1), cores, threads)
    if sockets is not None:
        return Hardware(sockets or 1, cores, threads)
    if cpus is not None and max(cpus, 1) % (cores * threads) == 0:
        return Hardware(max(cpus, 1) // (cores * threads), cores, threads)
    return Hardware(boards, cores, threads)


def judge(node: NodeRecord, verdict: Verdict) -> None:
    """Every value that Slurm resets, in the order in which it logs them."""
    _judge_binding(node, verdict)
    for key in ("corespersocket", _cpus_key(node), "threadspercore", "socketsperboard", "sockets", "boards"):
        if _of(node, key) == 0:
            _note(node, key, "is invalid; Slurm takes 1", verdict)
    if "sockets" in node.values and "socketsperboard" in node.values:
        _note(node, "sockets", "is not taken beside SocketsPerBoard; Slurm goes by that one", verdict)
    has = hardware(node)
    if has.sockets < (_of(node, "boards") or 1):
        _note(node, "boards", f"is more than the {has.sockets} sockets; Slurm takes 1", verdict)
    cpus = _judge_cpus(node, has, verdict)
    _judge_cores_kept(node, has, cpus, verdict)
    _judge_memory_kept(node, verdict)


def _of(node: NodeRecord, key: str) -> int | None:
    text = node.text(key)
    return None if text is None else unsigned(text, 16)


def _cpus_key(node: NodeRecord) -> str:
    return "procs" if "procs" in node.values and "cpus" not in node.values else "cpus"


def _note(node: NodeRecord, key: str, what: str, verdict: Verdict) -> None:
    pair = node.values[key]
    verdict.note(VALUE_RESET, pair.place, f"{pair.key}={pair.value} {what}")


def _judge_cpus(node: NodeRecord, has: Hardware, verdict: Verdict) -> int:
    """The CPUs that Slurm takes: sockets, cores or threads."""
    key, right = _cpus_key(node), (has.sockets, has.cores, has.cores * has.threads)
    cpus = _of(node, key)
    if cpus is None or max(cpus, 1) in right:
        return right[2] if cpus is None else max(cpus, 1)
    pair = node.values[key]
    message = f"{pair.key}={max(cpus, 1)} is none of {right[0]} sockets, {right[1]} cores, {right[2]} threads"
    verdict.note(HARDWARE, pair.place, f"{message}; Slurm takes {right[2]}")
    return right[2]


def _judge_cores_kept(node: NodeRecord, has: Hardware, cpus: int, verdict: Verdict) -> None:
    """Cores kept for the system: CoreSpecCount, or CPUSpecList."""
    count, listed = _of(node, "corespeccount") or 0, node.text("cpuspeclist")
    if count >= has.cores:
        _note(node, "corespeccount", f"leaves none of the {has.cores} cores; Slurm takes 1", verdict)
    if listed is not None and core_set(listed, cpus) is None:
        _note(node, "cpuspeclist", f"goes beyond the node's {cpus} CPUs (0-{cpus - 1}); Slurm ignores it", verdict)
    elif count and listed is not None:
        _note(node, "corespeccount", "is not taken beside CPUSpecList; Slurm takes 0", verdict)


def _judge_memory_kept(node: NodeRecord, verdict: Verdict) -> None:
    """Memory kept for the system; RealMemory is 1 where it is not written."""
    memory_text, limit_text = node.text("realmemory"), node.text("memspeclimit")
    memory = 1 if memory_text is None else unsigned(memory_text, 64, kilo=True)
    limit = 0 if limit_text is None else unsigned(limit_text, 64, kilo=True)
    if memory is None or limit is None or limit < memory:
        return
    if limit_text is None:
        _note(node, "realmemory", "leaves no memory: Slurm resets MemSpecLimit to 0 because of it", verdict)
    else:
        _note(node, "memspeclimit", f"is not less than RealMemory, {memory}; Slurm takes 0", verdict)


def _judge_binding(node: NodeRecord, verdict: Verdict) -> None:
    """CpuBind: one kind of binding at most, and `verbose` (S:src/common/slurm_resource_info.c xlate_cpu_bind_str)."""
    words = [word.lower() for word in re.split("[,;]", node.text("cpubind") or "") if word]
    kinds = [word for word in words if word not in _BINDING_EXTRAS]
    if len(kinds) > 1 or any(kind not in _BINDINGS for kind in kinds):
        _note(node, "cpubind", "is not one of none, socket, ldom, core, thread, off; Slurm ignores it", verdict)
