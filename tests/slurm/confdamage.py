"""What goes wrong in a generated configuration: one mistake at a time, in a draft of lines of key and value."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TYPE_CHECKING

from tests.slurm.confwords import CGROUP, FLAGS, GPU_TYPES, MIG_TYPES, NODE, PARTITION, SETTINGS

if TYPE_CHECKING:
    from tests.slurm.confgen import Draft, Line

COUNTS = (
    *("0", "1", "2", "3", "4", "1K", "1kb", "2x", "", "abc", "-1", "-3", "+2", "0x4", "99999999999999999999", "1Ki"),
    *("1M", "2T", "1P", "1E", "010", "1.5", "2 ", "9223372036854775806", "-0", "kb"),
)
FILES = (
    *("/dev/nvidia0", "/dev/nvidia[0-1]", "/dev/nvidia[1-3]", "/dev/nvidia[3,1]", "/dev/nvidia0,/dev/nvidia0"),
    *("/dev/nvidia[5-4]", "/dev/nvidia5,/dev/nvidia-caps/nvidia-cap[3-4]"),
    *("/dev/null", "", "/dev/nvidia[a-b]", "/dev/nvidia0,,/dev/nvidia1", ",/dev/nvidia0"),
    *("/dev/nvidia[0]", "/dev/nvidia[0-1,3]", "/dev/nvidia[]", "/etc/passwd", "/dev", "/dev/../dev/nvidia1"),
)
CORES = (
    *("0-3", "0-1", "2-5", "0-99", "8", "7", "0,4", "abc", "", "3-0", "0-", "-3", "0--3", "1-2-3", "0,,1", ",0", "0,"),
    *("[0-3]", "0-8:2", "0-7:2", "0x1", "0 3", "+1", "16", "99999999999"),
)
LINKS = (
    *("-1,0", "0,-1", "-1", "0,0", "-1,-1", "a,-1", "-3,-1", "2000,-1", "0,-1,4,4,4,4,4,4", "-1,,3", "", ",", "-1,x"),
    *("1023,-1", "1024,-1", "-2,-1", " -1", "-1,0x1", "-1;0"),
)
HOSTLISTS = (
    *("n[1-4]", "n[1-2],n2", "n[2-1]", "n1x", "n[1-4]x", "ALL", "gpu[08-10]", "n[01-02]", "n[1-2]n[3-4]", "n[1", "n1]"),
    *("n[]", "n[a]", "n[1-]", "n[-1]", "n[1,]", "n[1-2]-ib", "n1,n1", "", ",n1", "n1,", "n[1-2][3-4]", "n [1-2]"),
    *(
        "all",
        "n[1-65537]",
        "n[1-2,4-3]",
        "r[1-2]n[1-2]",
        "n[1-2]n",
        "[1-2]",
        "n1;n2",
        "n[001-2]",
        "n[1-2]]",
        "n[[1-2]]",
    ),
)
WORDS = ("garbage", "Name", "=", "Foo=1", "=x", '"', "\\", "a=", "é", "Gres==1", "x y=z", "Name=gpu", ";")
AUTODETECT = ("off", "off", "amdgpu", "OFF", "offf", "", "none", "off,off", "o", "cuda")


class Damage:
    """Makes one mistake after another, from one source of randomness."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def draft(self, draft: Draft) -> None:
        """One mistake somewhere."""
        choice = self.rng.random()
        if choice < 0.08:
            draft.types = self._types(draft.types)
        elif choice < 0.28:
            self.node_gres(self.rng.choice(draft.nodes))
        elif choice < 0.42:
            self._node(draft.nodes)
        elif choice < 0.54:
            self._head(draft.head)
        elif choice < 0.59:
            draft.cgroup = self._cgroup(draft.cgroup)
        elif draft.gres:
            self.gres(draft.gres)

    def gres(self, gres: list[Line]) -> None:
        """One mistake in gres.conf."""
        self.rng.choice(self._actions())(gres)

    def missing(self, draft: Draft) -> None:
        """A device that no root has, in a record that the node reads."""
        draft.gres.append([("NodeName", draft.node), ("Name", "gpu"), ("File", "/dev/nvidia99")])
        draft.types = draft.types or ["gpu"]

    def _actions(self) -> tuple[Callable[[list[Line]], None], ...]:
        return (
            *(self._double_line, self._drop_line, self._move_line, self._drop_pair, self._drop_pair, self._new_count),
            *(self._new_count, self._new_type, self._new_file, self._flags, self._flags, self._cores, self._links),
            *(self._autodetect, self._rename, self._double_key, self._spelling, self._foreign, self._nonsense),
            *(self._order, self._both),
        )

    def _types(self, types: list[str]) -> list[str]:
        rng = self.rng
        changed = list(types)
        action = rng.randrange(6)
        if action == 0 and changed:
            changed.remove(rng.choice(changed))
        elif action == 1:
            changed.append(rng.choice(("mps", "shard", "nic", "gpu", "foo", "gpu:a100", "gres/gpu", "")))
        elif action == 2:
            changed = [name.upper() if rng.random() < 0.3 else name for name in changed]
        elif action == 3:
            changed = ["", *changed] if rng.random() < 0.5 else [f" {name}" for name in changed]
        elif action == 4 and rng.random() < 0.3:
            changed = []
        else:
            rng.shuffle(changed)
        return changed

    # slurm.conf

    def _head(self, head: list[Line]) -> None:
        rng = self.rng
        action = rng.random()
        if action < 0.55:
            key = rng.choice(sorted(SETTINGS))
            right, wrong = SETTINGS[key]
            head.append([(key, rng.choice(wrong if rng.random() < 0.8 or not right else right))])
        elif action < 0.7:
            key = rng.choice(sorted(PARTITION))
            right, wrong = PARTITION[key]
            lines = [line for line in head if line[0][0] == "PartitionName"]
            line = rng.choice(lines) if lines and rng.random() < 0.7 else [("PartitionName", "DEFAULT")]
            line.append((key, rng.choice(wrong or right)))
            if line not in head:
                head.insert(rng.randrange(len(head)), line)
        elif action < 0.78:
            head.append(list(rng.choice(head)))
        elif action < 0.84:
            head.remove(rng.choice(head))
        elif action < 0.94:
            head.append(list(rng.choice(RECORDS)))
        else:
            line = rng.choice(head)
            key, value = line[0]
            line[0] = rng.choice(((key[:-1], value), (key + "s", value), (key, value[:-1]), (key.swapcase(), value)))

    def _node(self, slurm: list[Line]) -> None:
        """What is wrong with a NodeName line beside its Gres."""
        rng = self.rng
        line = rng.choice(slurm)
        key = rng.choice(sorted(NODE))
        right, wrong = NODE[key]
        pair = (key, rng.choice(wrong if rng.random() < 0.8 or not right else right))
        action = rng.random()
        if action < 0.6:
            at = next((i for i, (have, _) in enumerate(line) if have == key), None)
            if at is None:
                line.append(pair)
            else:
                line[at] = pair
        elif action < 0.7:
            slurm.append(list(line))
        elif action < 0.82:
            line[0] = ("NodeName", rng.choice(HOSTLISTS))
        elif action < 0.88:
            slurm.insert(0, [("NodeName", rng.choice(("DEFAULT", "default"))), pair, ("Gres", "gpu:1")])
        elif action < 0.93 and len(line) > 1:
            del line[rng.randrange(1, len(line))]
        elif action < 0.96:
            line.append(("", rng.choice(WORDS)))
        else:
            slurm.remove(line)
            slurm.append([("NodeName", "other[1-2]"), *line[1:]])

    def node_gres(self, line: Line) -> None:
        """One mistake in a node's Gres=."""
        rng = self.rng
        at = next((i for i, (key, _) in enumerate(line) if key == "Gres"), None)
        if at is None:
            line.append(("Gres", rng.choice(("gpu:1", "shard:4", "mps:100", "gpu:a100:1", "nic:1", "", ",", "gpu"))))
            return
        words = line[at][1].split(",")
        which = rng.randrange(len(words))
        name, _, count = words[which].rpartition(":")
        kind = f"{name.split(':')[0]}:{rng.choice(GPU_TYPES + MIG_TYPES)}:{count}"
        less = f"{name}:{max(0, int(count) + rng.choice((-2, -1, 1, 2)))}" if count.isdigit() else name
        changed = rng.choice(
            (
                *((less,), (name,), (f"{words[which]}{rng.choice(('K', 'k', 'KB', 'M', 'x', 'g', 'KiB', 'P'))}",)),
                *((), (words[which], words[which]), (f"{words[which].split(':')[0]}:{count}",), (kind,)),
                *((words[which].swapcase(),), (f"{name}:no_consume:{count}",), (f"{words[which]}(S:0-1)",)),
                *((f"{words[which]}:",), (f":{words[which]}",), (f"{name}:-{count}",), (f"gres/{words[which]}",)),
                *((f"{name}:0x{count}",), (f"{name}::{count}",), (f"{name}:{count}:{count}",), (f"{name}={count}",)),
                *((f"{words[which]}(S:0",), (f"{name}: {count}",), ("", words[which]), (f"{name}:0",)),
                (
                    words[which],
                    rng.choice(("gpu:2", "gpu", "gpu:a100:1", "shard:3", "mps:50", "foo:1", "gpu:1g.23gb:1")),
                ),
            )
        )
        words[which : which + 1] = changed
        if rng.random() < 0.1:
            rng.shuffle(words)
        line[at] = ("Gres", ",".join(words))

    def _cgroup(self, cgroup: list[Line] | None) -> list[Line]:
        lines = list(cgroup or ())
        key = self.rng.choice(sorted(CGROUP))
        right, wrong = CGROUP[key]
        lines.append([(key, self.rng.choice(wrong if self.rng.random() < 0.7 or not right else right))])
        if self.rng.random() < 0.1:
            lines.append([*lines[0], ("ConstrainCores", "yes")])
        return lines

    # gres.conf

    def _double_line(self, gres: list[Line]) -> None:
        gres.insert(self.rng.randrange(len(gres) + 1), list(self.rng.choice(gres)))

    def _drop_line(self, gres: list[Line]) -> None:
        if len(gres) > 1:
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
        self._set(gres, "Count", self.rng.choice(COUNTS))

    def _new_type(self, gres: list[Line]) -> None:
        self._set(gres, "Type", self.rng.choice((*GPU_TYPES, *MIG_TYPES, "", "a,b", "2", "no_consume", "a:b")))

    def _new_file(self, gres: list[Line]) -> None:
        self._set(gres, self.rng.choice(("File", "File", "Files", "MultipleFiles")), self.rng.choice(FILES))

    def _flags(self, gres: list[Line]) -> None:
        self._set(gres, "Flags", self.rng.choice(FLAGS))

    def _cores(self, gres: list[Line]) -> None:
        self._set(gres, self.rng.choice(("Cores", "Cores", "CPUs")), self.rng.choice(CORES))

    def _links(self, gres: list[Line]) -> None:
        self._set(gres, self.rng.choice(("Link", "Links")), self.rng.choice(LINKS))

    def _both(self, gres: list[Line]) -> None:
        """Both spellings of one key on a line."""
        line = self.rng.choice(gres)
        others = {"File": "Files", "Cores": "CPUs", "Links": "Link", "CPUs": "Cores", "Files": "File"}
        for key, _ in list(line):
            if key in others:
                value = {"F": "/dev/nvidia[0-1]", "C": "0-7", "L": "-1"}[key[0]]
                line.insert(self.rng.randrange(1, len(line) + 1), (others[key], value))

    def _autodetect(self, gres: list[Line]) -> None:
        rng = self.rng
        value = rng.choice(AUTODETECT)
        if rng.random() < 0.4:
            rng.choice(gres).append(("AutoDetect", value))
        elif rng.random() < 0.5:
            gres.insert(rng.randrange(len(gres) + 1), [("AutoDetect", value)])
        else:
            gres.insert(rng.randrange(len(gres) + 1), [("NodeName", "n[1-2],gpu08"), ("AutoDetect", value)])

    def _rename(self, gres: list[Line]) -> None:
        names = ("gpu", "mps", "shard", "nic", "GPU", "Shard", "foo", "fpga", "", "gpu,mps", "gres/gpu", "bandwidth")
        self._set(gres, "Name", self.rng.choice(names))

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
        gres.append([("NodeName", self.rng.choice((*HOSTLISTS, "other[1-9]", "n2", "gpu[08-09]"))), *line])

    def _order(self, gres: list[Line]) -> None:
        """The pairs of a line in another order: Slurm tells the lines apart by the first."""
        self.rng.shuffle(self.rng.choice(gres))

    def _nonsense(self, gres: list[Line]) -> None:
        self.rng.choice(gres).append(("", self.rng.choice(WORDS)))


RECORDS: tuple[Line, ...] = (
    [("NodeSet", "n1"), ("Nodes", "n1")],
    [("NodeSet", "x"), ("Feature", "a")],
    [("NodeSet", "x"), ("Foo", "a")],
    [("NodeSet", "gpu08"), ("Nodes", "n[1-2]")],
    [("DownNodes", "n1"), ("Foo", "x")],
    [("DownNodes", "n1"), ("State", "bogus")],
    [("SlurmctldHost", "ctl")],
    [("SlurmctldHost", "other(10.0.0.2)")],
    [("SlurmctldHost", "other(10.0.0.2")],
    [("SlurmctldHost", "other)")],
    [("SlurmctldHost", "other(a)(b)")],
    [("SlurmctldHost", "other"), ("Port", "1")],
    [("ControlMachine", "ctl")],
    [("FrontendName", "f1")],
    [("PowerAction", "x"), ("Program", "/bin/true"), ("Location", "slurmd")],
    [("PowerAction", "x"), ("Program", "/bin/true")],
    [("PartitionName", "q"), ("Nodes", "ALL")],
    [("PartitionName", "q"), ("Nodes", "nosuch")],
    [("PartitionName", "q"), ("Nodes", "n[1")],
    [("PartitionName", "p")],
    [("PartitionName", "q"), ("", "garbage")],
    [("Foo", "1")],
    [("GresTypes", "gpu")],
    [("GresTypes", "gpu,mps,shard")],
    [("ClusterName", "")],
    [("ClusterName", "other")],
    [("KillWait", "30"), ("MinJobAge", "300")],
    [("", "garbage")],
    [("Name", "gpu")],
)
"""Other lines of slurm.conf; some are right."""
