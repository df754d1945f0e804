"""Sites as a careful admin writes them: slurm.conf and gres.conf that are right, in the styles that people use.

Every site can be said in an inventory. Imports nothing of hybridgpu.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tests.slurm.expected import CUTS, PREFIXED, Cut, cut

HOSTS = ("{0}[01-04]", "{0}1", "{0}-[1-3]", "{0}r[1-2]n[1-2]", "{0}[1-2,5]", "{0}a,{0}b", "{0}[001-012]")
TYPES = ("a100", "h100", "v100", "a100-sxm4-80gb", "l40s", "rtx4090", "tesla_v100", "big", "H100", "t4")
HARDWARE = (
    "CPUs=64 Sockets=2 CoresPerSocket=32 ThreadsPerCore=1",
    "CPUs=128 Boards=1 SocketsPerBoard=2 CoresPerSocket=32 ThreadsPerCore=2",
    "Sockets=2 CoresPerSocket=32",
    "CPUs=64 SocketsPerBoard=2 CoresPerSocket=32",
    "Procs=64 Sockets=2 CoresPerSocket=32",
)
EXTRAS = ("", " Weight=10", " Features=gpu,nvlink Weight=0x14", " Feature=a100 TmpDisk=800000", " CoreSpecCount=2")
MEMORY = ("RealMemory=500000", "RealMemory=512K", "RealMemory=0500")
STATES = ("", " State=UNKNOWN", " State=IDLE")


@dataclass
class Site:
    """The files, and the nodes with GPUs: one of each line."""

    files: dict[str, str] = field(default_factory=dict)
    nodes: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return "\n".join(f"--- {name}\n{text}" for name, text in self.files.items())


@dataclass
class _Kind:
    """What one line of nodes has: its Gres= entries, and its lines of gres.conf without NodeName."""

    gres: list[str]
    lines: list[str]
    shared: str | None = None


def site(rng: random.Random, *, mig_beside_shares: bool = True) -> Site:
    """One site; a release that takes the files of an instance for GPUs has no MIG beside mps and shard."""
    made = Site()
    kinds = [_kind(rng) for _ in range(rng.randint(1, 4))]
    sharing = next((kind.shared for kind in kinds if kind.shared), None)
    kinds = [kind for kind in kinds if kind.shared in (None, sharing)]
    if not mig_beside_shares and any(kind.shared for kind in kinds):
        kinds = [kind for kind in kinds if not any("MultipleFiles" in line for line in kind.lines)]
    nic = rng.random() < 0.3
    everywhere = len(kinds) == 1 and rng.random() < 0.4
    nodes, gres = [], [rng.choice(("", "AutoDetect=off", "# GPUs of this site"))]
    if rng.random() < 0.4:
        nodes.append(f"NodeName=DEFAULT {rng.choice(MEMORY)}{rng.choice(STATES)}")
    for number, kind in enumerate(kinds):
        hosts = rng.choice(HOSTS).format(f"{rng.choice('abgnx')}{number}n")
        first = re.sub(r"\[(\d+)[^\]]*\]", r"\1", hosts).partition(",")[0]
        made.nodes.append(first)
        entries = ",".join([*kind.gres, *(["nic:2"] if nic else [])])
        hardware = rng.choice(HARDWARE) + rng.choice(EXTRAS)
        nodes.append(f"NodeName={hosts}{_address(rng, hosts)} {hardware} {rng.choice(MEMORY)} Gres={entries}")
        gres += kind.lines if everywhere else [f"NodeName={hosts} {line}" for line in kind.lines]
    if nic:
        gres.append(rng.choice(("Name=nic Count=2", "Name=nic File=/dev/null,/dev/zero")))
    if not everywhere and rng.random() < 0.4:
        nodes.append("NodeName=cpu[1-9] CPUs=8" if not nic else "NodeName=cpu[1-9] CPUs=8 Gres=nic:2")
    _write(rng, made, nodes, [line for line in gres if line], {kind.shared for kind in kinds}, nic)
    return made


def _write(
    rng: random.Random, made: Site, nodes: list[str], gres: list[str], shared: set[str | None], nic: bool
) -> None:
    types = ["gpu", *(name for name in ("mps", "shard") if name in shared), *(["nic"] if nic else [])]
    conf = ["ClusterName=Site_1", "SlurmctldHost=ctl(10.0.0.1)", "SelectType=select/cons_tres"]
    conf += [f"GresTypes={','.join(types)}", f"PrologFlags={rng.choice(('Alloc', 'Contain', 'Contain,Serial'))}"]
    conf += rng.choice(([], ["Prolog=/etc/slurm/prolog.d/*", "Epilog=/etc/slurm/epilog.d/*"]))
    conf += rng.choice(([], ["TaskProlog=/etc/slurm/task.sh"]))
    if rng.random() < 0.5:
        made.files["nodes.conf"] = "\n".join([*nodes, ""])
        conf.append("include nodes.conf")
    else:
        conf += nodes
    conf.append("PartitionName=all Nodes=ALL Default=YES")
    made.files["slurm.conf"] = "\n".join([*conf, ""])
    made.files["gres.conf"] = "\n".join([*gres, ""])
    if rng.random() < 0.6:
        made.files["cgroup.conf"] = "ConstrainCores=yes\nConstrainDevices=yes\n"


def _address(rng: random.Random, hosts: str) -> str:
    if "[" not in hosts or rng.random() < 0.7:
        return ""
    return f" NodeAddr=ib-{hosts}"


def _kind(rng: random.Random) -> _Kind:
    makers: Sequence[Callable[[random.Random], _Kind]] = (_whole, _whole, _shard, _mps, _mig, _mig, _two_models)
    return rng.choice(makers)(rng)


def _gpus(rng: random.Random, count: int, kind: str | None) -> list[str]:
    """The lines of whole GPUs: in one range, one by one, or by socket with their cores."""
    name = f"Name=gpu Type={kind}" if kind else "Name=gpu"
    half = count // 2
    match rng.randrange(4):
        case 0 if half:
            near = (f"File=/dev/nvidia[0-{half - 1}] Cores=0-31", f"File=/dev/nvidia[{half}-{count - 1}] Cores=32-63")
            return [f"{name} {files}" for files in near]
        case 1:
            return [f"{name} File=/dev/nvidia{index}" for index in range(count)]
        case 2:
            return [f"{name} Count={count} File={','.join(f'/dev/nvidia{index}' for index in range(count))}"]
    return [f"{name} File=/dev/nvidia{f'[0-{count - 1}]' if count > 1 else '0'}"]


def _whole(rng: random.Random) -> _Kind:
    count, kind = rng.choice((1, 2, 4, 8)), rng.choice((None, *TYPES))
    return _Kind([f"gpu:{kind}:{count}" if kind else f"gpu:{count}"], _gpus(rng, count, kind))


def _shared(rng: random.Random, name: str, each: int) -> _Kind:
    kind = _whole(rng)
    count = int(kind.gres[0].rpartition(":")[2])
    match rng.randrange(3):
        case 0:
            lines = [f"Name={name} Count={each} File=/dev/nvidia{index}" for index in range(count)]
        case 1:
            lines = [f"Name={name} Count={each * count}"]
        case _:
            lines = []
    return _Kind([*kind.gres, f"{name}:{each * count}"], [*kind.lines, *lines], name)


def _shard(rng: random.Random) -> _Kind:
    return _shared(rng, "shard", rng.randint(2, 20))


def _mps(rng: random.Random) -> _Kind:
    return _shared(rng, "mps", 100)


def _mig(rng: random.Random) -> _Kind:
    """A node of one model, its cards cut in one or two ways, perhaps with some left whole."""
    model = rng.choice(("A100-SXM4-80GB", "A100-SXM4-40GB", "H100-80GB-HBM3", "A30", "H200"))
    plain = [one for one in CUTS[model] if not {profile for profile, _ in one.instances} & PREFIXED]
    ways = [rng.choice(plain) for _ in range(rng.choice((1, 1, 2)))]
    count = rng.choice((1, 2, 4))
    cuts: list[Cut | None] = [rng.choice(ways) for _ in range(count)]
    if count > 1 and rng.random() < 0.3:
        cuts[-1] = None
    counts: dict[str, int] = {}
    by_type: dict[str, list[str]] = {}
    for minor, one in enumerate(cuts):
        for kind, files in _rows(model, one, minor):
            counts[kind] = counts.get(kind, 0) + 1
            by_type.setdefault(kind, []).append(f"Name=gpu Type={kind} {files}")
    lines = [line for of in by_type.values() for line in of]
    return _Kind([f"gpu:{kind}:{number}" for kind, number in counts.items()], lines)


def _rows(model: str, one: Cut | None, minor: int) -> list[tuple[str, str]]:
    if one is None:
        return [(model.partition("-")[0].lower(), f"File=/dev/nvidia{minor}")]
    rows = sorted(cut(model, one, minor), key=lambda row: int(row.files[1].rpartition("cap")[2]))
    return [(row.type or "", f"MultipleFiles={','.join(row.files)}") for row in rows]


def _two_models(rng: random.Random) -> _Kind:
    """Two models on one node, called as the driver calls them."""
    first, second = rng.sample(("a100-sxm4-80gb", "l40s", "t4", "a40", "h100_80gb_hbm3"), 2)
    lines = [f"Name=gpu Type={first} File=/dev/nvidia[0-1]", f"Name=gpu Type={second} File=/dev/nvidia[2-3]"]
    return _Kind([f"gpu:{first}:2", f"gpu:{second}:2"], lines)
