"""A generator of slurm.conf, gres.conf and cgroup.conf: right, slightly wrong, very wrong. It knows nothing of us.

A pair begins as a description that is right (this module); lines and words are damaged (confdamage); then it is
written in a random style, the text itself damaged now and then (conftext). Paths are only those that the Slurm roots
have, since a missing device file costs slurmd 20 seconds; `missing` asks for one.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from tests.slurm.confdamage import Damage
from tests.slurm.conftext import Writer, hostlist
from tests.slurm.confwords import CGROUP, GPU_TYPES, MIG_TYPES, NODE, NOT_EVERYWHERE, PARTITION, SETTINGS

Line = list[tuple[str, str]]

SITES = (
    *(["n1"], ["n1", "n2"], [f"n{i}" for i in range(1, 5)], ["gpu08", "gpu09", "gpu10"], ["login"], ["a-1-b7"]),
    *([f"r{r}n{n}" for r in (1, 2) for n in (1, 2)], [f"n{i}" for i in range(1, 31)], ["n1", "gpu08", "x9y"]),
)


@dataclass(frozen=True)
class Pair:
    """One generated configuration, and the node to look at."""

    files: dict[str, str]
    node: str

    def __str__(self) -> str:
        return "\n".join(f"--- {name}\n{text}" for name, text in self.files.items()) + f"--- node {self.node}"


@dataclass
class Draft:
    """A configuration before it is written: lines of key and value."""

    node: str
    types: list[str]
    head: list[Line]
    nodes: list[Line]
    gres: list[Line]
    cgroup: list[Line] | None = None
    wants: list[Line] = field(default_factory=list)


class Generator:
    """Makes pairs from one source of randomness; `damage` is how many mistakes a pair gets."""

    def __init__(self, rng: random.Random, damage: int) -> None:
        self.rng = rng
        self.damage = damage

    def pair(self, missing: bool = False) -> Pair:
        """One configuration; with `missing` a device file is named that is not there."""
        draft = self._draft()
        damage = Damage(self.rng)
        wrong_text = sum(self.rng.random() < 0.12 for _ in range(self.damage))
        for _ in range(self.damage - wrong_text):
            damage.draft(draft)
        if missing:
            damage.missing(draft)
        return Pair(Writer(self.rng).files(draft, wrong_text), draft.node)

    def node(self, name: str, kinds: list[str], port: int) -> tuple[str, list[str]]:
        """The lines of one node by itself: its NodeName line, which slurmctld takes for up, and its own records."""
        lines = self._node(kinds)
        line = [pair for pair in self._node_line(name, lines) if pair[0] not in ("State", "Reason")]
        slurm = [*line, ("Port", str(port))]
        gres = [[("NodeName", name), *(pair for pair in line if pair[0] != "_want")] for line in lines]
        damage = Damage(self.rng)
        for _ in range(self.damage):
            if self.rng.random() < 0.4:
                damage.node_gres(slurm)
            elif gres:
                damage.gres(gres)
        mine = [line for line in gres if line[0] == ("NodeName", name) and len(line) > 1]
        writer = Writer(self.rng)
        return writer.line(slurm), [writer.line(line) for line in mine]

    def _draft(self) -> Draft:
        rng = self.rng
        nodes = list(rng.choice(SITES))
        node = rng.choice(nodes)
        kinds = self._kinds()
        gres: list[tuple[str, list[Line]]] = []
        half = max(1, len(nodes) // 2)
        for group in [nodes] if rng.random() < 0.6 else [nodes[:half], nodes[half:]]:
            if group:
                gres.append((hostlist(rng, group), self._node(kinds)))
        lines = [self._node_line(hosts, mine) for hosts, mine in gres]
        head = self._head(nodes)
        return Draft(node, self._grestypes(kinds), head, self._defaults(lines), self._scope(gres), self._cgroup())

    def _kinds(self) -> list[str]:
        kinds = ["gpu"]
        kinds += [kind for kind in ("mps", "shard") if self.rng.random() < 0.35]
        kinds += [kind for kind in ("nic", "hybridgpu_k8s", "fpga") if self.rng.random() < 0.2]
        return kinds

    def _grestypes(self, kinds: list[str]) -> list[str]:
        types = list(kinds)
        if self.rng.random() < 0.3:
            self.rng.shuffle(types)
        return types

    def _head(self, nodes: list[str]) -> list[Line]:
        rng = self.rng
        head: list[Line] = [
            [("ClusterName", rng.choice(("c", "C1", "my-cluster", "x.y")))],
            [("SlurmctldHost", rng.choice(("ctl", "ctl(10.0.0.1)")))],
            [("SelectType", "select/cons_tres")],
        ]
        for key in rng.sample(sorted(SETTINGS), k=rng.choice((0, 0, 1, 3, 8))):
            if SETTINGS[key][0] and key not in NOT_EVERYWHERE:
                head.append([(key, rng.choice(SETTINGS[key][0]))])
        if rng.random() < 0.1:
            head.append([("NodeSet", "fast"), ("Nodes", nodes[0])])
        if rng.random() < 0.1:
            head.append([("DownNodes", nodes[0]), ("State", "DOWN"), ("Reason", "being mended")])
        part: Line = [("PartitionName", "p"), ("Nodes", rng.choice(("ALL", hostlist(rng, nodes))))]
        for key in rng.sample(sorted(PARTITION), k=rng.choice((0, 0, 1, 2))):
            if PARTITION[key][0]:
                part.append((key, rng.choice(PARTITION[key][0])))
        return [*head, part] if rng.random() < 0.9 else [part, *head]

    def _defaults(self, lines: list[Line]) -> list[Line]:
        """Some of what the node lines say, said by DEFAULT lines before them; others after all nodes change nothing."""
        rng = self.rng
        if rng.random() < 0.7:
            return lines
        shared = [pair for pair in lines[0][1:] if all(pair in line for line in lines) or len(lines) == 1]
        moved = [pair for pair in shared if rng.random() < 0.7]
        rest = [[pair for pair in line if pair not in moved] for line in lines]
        split = rng.randrange(len(moved) + 1)
        defaults: list[Line] = [[("NodeName", "DEFAULT"), *part] for part in (moved[:split], moved[split:]) if part]
        if rng.random() < 0.2:
            rest.append([("NodeName", "DEFAULT"), ("Gres", "gpu:7"), ("Weight", "3")])
        if rng.random() < 0.2:
            defaults.insert(0, [("NodeName", "DEFAULT"), *((key, "1") for key, _ in moved[:1] if key != "Gres")])
        return [*defaults, *rest]

    def _cgroup(self) -> list[Line] | None:
        rng = self.rng
        if rng.random() < 0.7:
            return None
        keys = rng.sample(sorted(key for key in CGROUP if CGROUP[key][0]), k=rng.choice((0, 1, 2, 4)))
        return [[(key, rng.choice(CGROUP[key][0]))] for key in keys if key != "EnableControllers"]

    # What a node has

    def _node(self, kinds: list[str]) -> list[Line]:
        """gres.conf lines of one node, right for it; a `_want` pair carries what slurm.conf has to say."""
        rng = self.rng
        lines: list[Line] = []
        count = rng.randint(0, 6)
        mig = rng.random() < 0.3
        typed = rng.random() < 0.7
        types = rng.sample(MIG_TYPES if mig else GPU_TYPES, k=rng.randint(1, 3))
        flags = rng.choice(("nvidia_gpu_env", "no_gpu_env", "nvidia_gpu_env,opencl_env")) if rng.random() < 0.1 else ""
        minor = 0
        gpu_files: list[str] = []
        while count > 0:
            kind = types[0] if rng.random() < 0.6 else rng.choice(types)
            size = 1 if mig else rng.randint(1, count)
            line: Line = [("Name", "gpu")]
            if typed:
                line.append(("Type", kind))
            if mig:
                gi = 66 + 9 * minor
                files = f"/dev/nvidia0,/dev/nvidia-caps/nvidia-cap{gi},/dev/nvidia-caps/nvidia-cap{gi + 1}"
                line.append(("MultipleFiles", files))
            else:
                line.append((rng.choice(("File", "File", "Files")), self._files_of(minor, size)))
                gpu_files += [f"/dev/nvidia{n}" for n in range(minor, minor + size)]
            if rng.random() < 0.2:
                line.append(("Count", str(size)))
            if rng.random() < 0.3:
                cores = rng.choice(("0-3", "4-7", "0-7", "0,1,2,3", "[0-3]", "0-1,2-3"))
                line.append((rng.choice(("Cores", "Cores", "CPUs")), cores))
            if rng.random() < 0.15:
                line.append(("Links", ",".join(["0"] * minor + ["-1"] + ["4"] * (count - 1))))
            if flags:
                line.append(("Flags", flags))
            line.append(("_want", f"gpu:{kind}:{size}" if typed else f"gpu:{size}"))
            lines.append(line)
            minor, count = minor + size, count - size
        for kind in kinds[1:]:
            lines += self._shares(kind, gpu_files) if kind in ("mps", "shard") else self._other(kind)
        return lines

    def _files_of(self, first: int, size: int) -> str:
        style = self.rng.random()
        if size == 1:
            return f"/dev/nvidia{first}"
        if style < 0.7:
            return f"/dev/nvidia[{first}-{first + size - 1}]"
        if style < 0.85:
            return ",".join(f"/dev/nvidia{n}" for n in range(first, first + size))
        return f"/dev/nvidia[{','.join(str(n) for n in range(first, first + size))}]"

    def _shares(self, kind: str, gpu_files: list[str]) -> list[Line]:
        rng = self.rng
        style = rng.random()
        if style < 0.3:
            return []
        if style < 0.6 or not gpu_files:
            count = rng.choice((8, 10, 400, 7))
            line: Line = [("Name", kind), ("Count", str(count))]
            return [[*line, ("_want", f"{kind}:{count}")]] if rng.random() < 0.8 else [[("_want", f"{kind}:{count}")]]
        if style < 0.85:
            each = rng.choice((4, 100))
            return [
                [("Name", kind), ("File", file), ("Count", str(each)), ("_want", f"{kind}:{each}")]
                for file in gpu_files
            ]
        total = rng.choice((16, 18, 200))
        files = ",".join(gpu_files)
        return [[("Name", kind), ("Count", str(total)), ("File", files), ("_want", f"{kind}:{total}")]]

    def _other(self, kind: str) -> list[Line]:
        rng = self.rng
        if rng.random() < 0.3:
            return []
        if rng.random() < 0.5:
            count = rng.randint(1, 4)
            return [[("Name", kind), ("Count", str(count)), ("_want", f"{kind}:{count}")]]
        first = {"nic": 8, "hybridgpu_k8s": 11, "fpga": 13}[kind]
        return [[("Name", kind), ("File", f"/dev/nvidia[{first}-{first + 1}]"), ("_want", f"{kind}:2")]]

    def _node_line(self, hosts: str, lines: list[Line]) -> Line:
        rng = self.rng
        wants: dict[str, int] = {}
        for line in lines:
            for key, value in line:
                if key == "_want":
                    label, _, count = value.rpartition(":")
                    wants[label] = wants.get(label, 0) + int(count)
        merged = [f"{label}:{count}" for label, count in wants.items()]
        hardware: Line = rng.choice(
            (
                [("CPUs", "8"), ("Sockets", "2"), ("CoresPerSocket", "4")],
                [("Sockets", "2"), ("CoresPerSocket", "4"), ("ThreadsPerCore", "2")],
                [("Boards", "1"), ("SocketsPerBoard", "2"), ("CoresPerSocket", "4")],
                [("CPUs", "8"), ("CoresPerSocket", "4")],
                [("CPUs", "8")],
                [("Procs", "8"), ("CoresPerSocket", "4")],
            )
        )
        node: Line = [("NodeName", hosts), *hardware]
        plain = ("Feature", "Features", "MemSpecLimit", "RealMemory", "Reason", "State", "TmpDisk", "Weight", "Port")
        for key in rng.sample(plain, k=rng.choice((0, 0, 1, 2, 3))):
            if key not in ("MemSpecLimit", "Port"):
                node.append((key, rng.choice(NODE[key][0])))
        return [*node, ("Gres", ",".join(merged))] if merged else node

    def _scope(self, gres: list[tuple[str, list[Line]]]) -> list[Line]:
        """The lines with or without NodeName; the wants taken out."""
        result: list[Line] = []
        for hosts, lines in gres:
            bare = len(gres) == 1 and self.rng.random() < 0.5
            for line in lines:
                kept = [pair for pair in line if pair[0] != "_want"]
                if kept:
                    result.append(kept if bare else [("NodeName", hosts), *kept])
        if self.rng.random() < 0.3:
            result.insert(0, [("AutoDetect", "off")])
        return result
