"""A generator of slurm.conf and gres.conf pairs: right, slightly wrong, and very wrong. It knows nothing of hybridgpu.

A pair begins as a description that is right; lines are written from it in a random style; then lines and words are
damaged. Paths are only those that the Slurm roots have, since a missing device file costs slurmd 20 seconds.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

GPU_TYPES = ("a100", "h100", "a100-sxm4-80gb", "h100_80gb_hbm3", "v100s", "4090", "A100")
MIG_TYPES = ("1g.10gb", "2g.20gb", "3g.40gb", "1g.10gb+me", "4g.20gb", "1g.23gb", "7g.80gb")
FLAGS = (
    *("nvidia_gpu_env", "no_gpu_env", "amd_gpu_env", "CountOnly", "one_sharing", "all_sharing", "opencl_env"),
    *("nvidia_gpu_env,opencl_env", "explicit", "bogus", "Nvidia_GPU_env", "intel_gpu_env"),
)
Line = list[tuple[str, str]]


@dataclass(frozen=True)
class Pair:
    """One generated configuration, and the node to look at."""

    files: dict[str, str]
    node: str

    def __str__(self) -> str:
        return "\n".join(f"--- {name}\n{text}" for name, text in self.files.items()) + f"--- node {self.node}"


class Generator:
    """Makes pairs from one source of randomness; `damage` is how many mistakes a pair gets."""

    def __init__(self, rng: random.Random, damage: int) -> None:
        self.rng = rng
        self.damage = damage

    def pair(self) -> Pair:
        nodes = self.rng.choice((["n1"], ["n1", "n2"], [f"n{i}" for i in range(1, 5)], ["gpu08", "gpu09", "gpu10"]))
        node = self.rng.choice(nodes)
        kinds = self._kinds()
        gres: list[tuple[str, list[Line]]] = []
        half = max(1, len(nodes) // 2)
        for group in [nodes] if self.rng.random() < 0.6 else [nodes[:half], nodes[half:]]:
            if group:
                gres.append((self._hostlist(group), self._node(kinds)))
        slurm_lines = [self._node_line(hosts, lines) for hosts, lines in gres]
        gres_lines = self._scope(gres)
        types = self._grestypes(kinds)
        for _ in range(self.damage):
            types = self._damage(types, slurm_lines, gres_lines)
        return Pair(self._files(types, slurm_lines, gres_lines), node)

    def node(self, name: str, kinds: list[str], port: int) -> tuple[str, list[str]]:
        """The lines of one node by itself: its NodeName line, and its own records of gres.conf."""
        lines = self._node(kinds)
        slurm = [*self._node_line(name, lines), ("Port", str(port))]
        gres = [[("NodeName", name), *(pair for pair in line if pair[0] != "_want")] for line in lines]
        for _ in range(self.damage):
            if self.rng.random() < 0.4:
                self._damage_gres(slurm)
            elif gres:
                self.rng.choice(self._actions())(gres)
        mine = [line for line in gres if line[0] == ("NodeName", name) and len(line) > 1]
        return self._write(slurm), [self._write(line) for line in mine]

    # What is right

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

    def _node(self, kinds: list[str]) -> list[Line]:
        """gres.conf lines of one node, right for it; a `_want` pair carries what slurm.conf has to say."""
        rng = self.rng
        lines: list[Line] = []
        count = rng.randint(0, 6)
        mig = rng.random() < 0.3
        typed = rng.random() < 0.7
        types = rng.sample(MIG_TYPES if mig else GPU_TYPES, k=rng.randint(1, 3))
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
                line.append((rng.choice(("Cores", "Cores", "CPUs")), rng.choice(("0-3", "4-7", "0-7", "0,1,2,3"))))
            if rng.random() < 0.15:
                line.append(("Links", ",".join(["0"] * minor + ["-1"] + ["4"] * (count - 1))))
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
        wants: dict[str, int] = {}
        for line in lines:
            for key, value in line:
                if key == "_want":
                    label, _, count = value.rpartition(":")
                    wants[label] = wants.get(label, 0) + int(count)
        merged = [f"{label}:{count}" for label, count in wants.items()]
        node: Line = [("NodeName", hosts), ("CPUs", "8"), ("Sockets", "2"), ("CoresPerSocket", "4")]
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

    def _hostlist(self, nodes: list[str]) -> str:
        prefix = nodes[0].rstrip("0123456789")
        numbers = [node[len(prefix) :] for node in nodes]
        if len(nodes) == 1:
            return nodes[0]
        if self.rng.random() < 0.5:
            return f"{prefix}[{numbers[0]}-{numbers[-1]}]"
        return ",".join(nodes) if self.rng.random() < 0.5 else f"{prefix}[{','.join(numbers)}]"

    # What is wrong

    def _damage(self, types: list[str], slurm: list[Line], gres: list[Line]) -> list[str]:
        rng = self.rng
        choice = rng.random()
        if choice < 0.1:
            return self._damage_types(types)
        if choice < 0.4:
            self._damage_gres(rng.choice(slurm))
            return types
        if choice < 0.45:
            self._damage_node(slurm)
            return types
        if not gres:
            return types
        rng.choice(self._actions())(gres)
        return types

    def _actions(self) -> tuple[Callable[[list[Line]], None], ...]:
        return (
            *(self._double_line, self._drop_line, self._move_line, self._drop_pair, self._drop_pair, self._new_count),
            *(self._new_count, self._new_type, self._new_file, self._flags, self._flags, self._cores, self._links),
            *(self._autodetect, self._rename, self._double_key, self._spelling, self._foreign, self._nonsense),
        )

    def _damage_types(self, types: list[str]) -> list[str]:
        rng = self.rng
        changed = list(types)
        action = rng.randrange(4)
        if action == 0 and changed:
            changed.remove(rng.choice(changed))
        elif action == 1:
            changed.append(rng.choice(("mps", "shard", "nic", "gpu", "foo")))
        elif action == 2:
            changed = [name.upper() if rng.random() < 0.3 else name for name in changed]
        else:
            rng.shuffle(changed)
        return changed

    def _damage_node(self, slurm: list[Line]) -> None:
        """What is wrong with a NodeName line beside its Gres."""
        rng = self.rng
        line = rng.choice(slurm)
        pairs = (
            *(
                ("Foo", "1"),
                ("CPUs", "abc"),
                ("CPUs", "7"),
                ("CPUs", "0x8"),
                ("Sockets", "1"),
                ("Boards", "2"),
                ("", "x"),
            ),
            *(
                ("State", "UNKNOWN"),
                ("State", "bogus"),
                ("NodeAddr", "a1"),
                ("NodeAddr", "a[1-2]"),
                ("Port", "17001-17002"),
            ),
            *(("RealMemory", "10k"), ("Weight", "-1"), ("Features", "a,b"), ("TRESWeights", "CPU=1.0,GRES/gpu=2.0")),
            *(("Topology", "x"), ("RestrictedCoresPerGPU", "1"), ("Parameters", "x"), ("NodeHostname", "h[1-4]")),
        )
        action = rng.random()
        if action < 0.6:
            line.append(rng.choice(pairs))
        elif action < 0.75:
            slurm.append(list(line))
        elif action < 0.9:
            line[0] = ("NodeName", rng.choice(("n[1-4]", "n[1-2],n2", "n[2-1]", "n1x", "n[1-4]x", "ALL", "gpu[08-10]")))
        else:
            slurm.insert(0, [("NodeName", "DEFAULT"), rng.choice(pairs), ("Gres", "gpu:1")])

    def _damage_gres(self, line: Line) -> None:
        rng = self.rng
        at = next((i for i, (key, _) in enumerate(line) if key == "Gres"), None)
        if at is None:
            line.append(("Gres", rng.choice(("gpu:1", "shard:4", "mps:100", "gpu:a100:1", "nic:1", ""))))
            return
        words = line[at][1].split(",")
        which = rng.randrange(len(words))
        name, _, count = words[which].rpartition(":")
        action = rng.randrange(12)
        if action == 0:
            words[which] = f"{name}:{max(0, int(count or 0) + rng.choice((-2, -1, 1, 2)))}" if count.isdigit() else name
        elif action == 1:
            words[which] = name
        elif action == 2:
            words[which] = f"{words[which]}{rng.choice(('K', 'k', 'KB', 'M', 'x', 'g'))}"
        elif action == 3:
            del words[which]
        elif action == 4:
            words.append(words[which])
        elif action == 5:
            rng.shuffle(words)
        elif action == 6:
            words.append(rng.choice(("gpu:2", "gpu", "gpu:a100:1", "shard:3", "mps:50", "foo:1", "gpu:1g.23gb:1")))
        elif action == 7:
            words[which] = f"{words[which].split(':')[0]}:{count}"
        elif action == 8:
            words[which] = words[which].swapcase()
        elif action == 9:
            words[which] = f"{name}:no_consume:{count}"
        elif action == 10:
            words[which] += "(S:0-1)"
        else:
            words[which] = f"{name.split(':')[0]}:{rng.choice(GPU_TYPES + MIG_TYPES)}:{count}"
        line[at] = ("Gres", ",".join(words))

    def _double_line(self, gres: list[Line]) -> None:
        gres.insert(self.rng.randrange(len(gres) + 1), list(self.rng.choice(gres)))

    def _drop_line(self, gres: list[Line]) -> None:
        gres.remove(self.rng.choice(gres))

    def _move_line(self, gres: list[Line]) -> None:
        self.rng.shuffle(gres)

    def _drop_pair(self, gres: list[Line]) -> None:
        line = self.rng.choice(gres)
        if len(line) > 1:
            del line[self.rng.randrange(1, len(line))]

    def _set(self, gres: list[Line], key: str, value: str) -> None:
        line = self.rng.choice(gres)
        for at, (have, _) in enumerate(line):
            if have.lower() == key.lower():
                line[at] = (have, value)
                return
        if line[0][0] != "AutoDetect":
            line.append((key, value))

    def _new_count(self, gres: list[Line]) -> None:
        counts = (
            "0",
            "1",
            "2",
            "3",
            "4",
            "1K",
            "1kb",
            "2x",
            "",
            "abc",
            "-1",
            "-3",
            "+2",
            "0x4",
            "99999999999999999999",
        )
        self._set(gres, "Count", self.rng.choice(counts) or '""')

    def _new_type(self, gres: list[Line]) -> None:
        self._set(gres, "Type", self.rng.choice(GPU_TYPES + MIG_TYPES))

    def _new_file(self, gres: list[Line]) -> None:
        files = (
            *("/dev/nvidia0", "/dev/nvidia[0-1]", "/dev/nvidia[1-3]", "/dev/nvidia[3,1]", "/dev/nvidia0,/dev/nvidia0"),
            *("/dev/nvidia[5-4]", "/dev/nvidia5,/dev/nvidia-caps/nvidia-cap[3-4]"),
        )
        self._set(gres, self.rng.choice(("File", "File", "MultipleFiles")), self.rng.choice(files))

    def _flags(self, gres: list[Line]) -> None:
        self._set(gres, "Flags", self.rng.choice(FLAGS))

    def _cores(self, gres: list[Line]) -> None:
        self._set(gres, "Cores", self.rng.choice(("0-3", "0-1", "2-5", "0-99", "8", "7", "0,4", "abc")))

    def _links(self, gres: list[Line]) -> None:
        links = ("-1,0", "0,-1", "-1", "0,0", "-1,-1", "a,-1", "-3,-1", "2000,-1", "0,-1,4,4,4,4,4,4", "-1,,3")
        self._set(gres, self.rng.choice(("Link", "Links")), self.rng.choice(links))

    def _autodetect(self, gres: list[Line]) -> None:
        rng = self.rng
        value = rng.choice(("off", "off", "amdgpu", "OFF", "offf", ""))
        if rng.random() < 0.4:
            rng.choice(gres).append(("AutoDetect", value or '""'))
        elif rng.random() < 0.5:
            gres.insert(rng.randrange(len(gres) + 1), [("AutoDetect", value or '""')])
        else:
            gres.insert(rng.randrange(len(gres) + 1), [("NodeName", "n[1-2],gpu08"), ("AutoDetect", value or '""')])

    def _rename(self, gres: list[Line]) -> None:
        self._set(gres, "Name", self.rng.choice(("gpu", "mps", "shard", "nic", "GPU", "Shard", "foo", "fpga")))

    def _double_key(self, gres: list[Line]) -> None:
        line = self.rng.choice(gres)
        if len(line) > 1:
            line.append(self.rng.choice(line[1:]))

    def _spelling(self, gres: list[Line]) -> None:
        line = self.rng.choice(gres)
        at = self.rng.randrange(len(line))
        key, value = line[at]
        if value.startswith("/dev"):
            line[at] = (key.swapcase(), value)
        else:
            line[at] = self.rng.choice(((key.swapcase(), value), (key, value.swapcase()), (key[:-1], value)))

    def _foreign(self, gres: list[Line]) -> None:
        """A record for another node, or for a node that is not there."""
        line = [pair for pair in self.rng.choice(gres) if pair[0] != "NodeName"]
        gres.append([("NodeName", self.rng.choice(("other[1-9]", "n2", "gpu[08-09]", "n[1-3", "n[2-1]"))), *line])

    def _nonsense(self, gres: list[Line]) -> None:
        self.rng.choice(gres).append(("", self.rng.choice(("garbage", "Name", "=", "Foo=1"))))

    # How it is written

    def _files(self, types: list[str], slurm: list[Line], gres: list[Line]) -> dict[str, str]:
        head = ["ClusterName=c", "SlurmctldHost=ctl", "SelectType=select/cons_tres", "PartitionName=p Nodes=ALL"]
        if types:
            head.append(f"GresTypes={','.join(types)}")
        files = {"slurm.conf": "\n".join([*head, *(self._write(line) for line in slurm), ""])}
        if self.rng.random() < 0.15 and len(slurm[0]) > 4:
            default = [("NodeName", "DEFAULT"), *slurm[0][1:]]
            rest = [[("NodeName", slurm[0][0][1])], *slurm[1:]]
            files["slurm.conf"] = "\n".join([*head, self._write(default), *(self._write(line) for line in rest), ""])
        text = [self._write(line) for line in gres]
        if self.rng.random() < 0.15:
            files["more.conf"] = "\n".join([*text, ""])
            text = [self.rng.choice(("Include more.conf", "include  more.conf", "INCLUDE more.conf # here"))]
        if text or self.rng.random() < 0.8:
            files["gres.conf"] = "# generated\n" + "\n".join([*text, ""])
        return files

    def _write(self, line: Line) -> str:
        rng = self.rng
        words: list[str] = []
        for key, value in line:
            if not key:
                words.append(value)
                continue
            spelled = rng.choice((key.lower(), key.upper())) if rng.random() < 0.08 else key
            quote = '"' if not value.startswith('"') and rng.random() < 0.08 else ""
            equals = rng.choice(("=", " = ", "= ")) if rng.random() < 0.3 else "="
            words.append(f"{spelled}{equals}{quote}{value}{quote}")
        gap = rng.choice((" ", " ", " ", "  ", "\t", " \\\n  ", " \\\n"))
        text = words[0] + "".join((gap if rng.random() < 0.5 else " ") + word for word in words[1:])
        return text + rng.choice(("", "", "", "", " # a comment", "# x", " ", "  # with \\"))
