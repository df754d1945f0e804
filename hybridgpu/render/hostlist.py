"""Names and numbers folded as every Slurm release reads them back. ClusterShell folds; what differs for Slurm is here.

Text behind the last bracket (`n[1-2]-ib`) is refused by older releases (S@22.05:src/common/hostlist.c): there such
names are written one by one. `suffix` says whether every release that reads the file takes it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from ClusterShell.NodeSet import NodeSet
from ClusterShell.RangeSet import RangeSet

_PART = re.compile(r"(?:[^,\[]|\[[^\]]*\])+")
_LARGE = re.compile(r"[0-9]{20}")
"""A number that may not fit into the 64 bits in which Slurm reads the ends of a range: such names stand alone."""


def fold_hosts(hosts: Iterable[str], *, suffix: bool = False) -> str:
    """A hostlist of these hosts as one word: `gpu[001-032]`, `r[01-04]n[1-2]`."""
    return ",".join(_parts(hosts, suffix))


def sorted_hosts(hosts: Iterable[str], *, suffix: bool = False) -> list[str]:
    """The hosts in the order in which the folded list expands again."""
    return [host for part in _parts(hosts, suffix) for host in NodeSet(part)]


def fold_paired(values: Sequence[str]) -> str:
    """Values that Slurm pairs with NodeName one by one, so their order must survive the folding; one for all is one."""
    if len(set(values)) == 1:
        return values[0]
    return fold_hosts(values) if sorted_hosts(values) == list(values) else ",".join(values)


def fold_ports(ports: Sequence[str]) -> str:
    """Ports paired with NodeName: `[17001-17004]`, or a plain list where they are not consecutive."""
    if len(set(ports)) == 1:
        return ports[0]
    numbers = [int(port) for port in ports]
    if numbers == list(range(numbers[0], numbers[0] + len(numbers))):
        return f"[{numbers[0]}-{numbers[-1]}]"
    return f"[{','.join(ports)}]"


def fold_device(minors: Sequence[int]) -> str:
    """/dev/nvidia files, ascending: `/dev/nvidia[0-3,6]`."""
    if len(minors) == 1:
        return f"/dev/nvidia{minors[0]}"
    return f"/dev/nvidia[{RangeSet.fromlist([str(m) for m in minors])}]"


def _parts(hosts: Iterable[str], suffix: bool) -> Iterator[str]:
    names = list(hosts)
    foldable = [name for name in names if not _LARGE.search(name)]
    for part in _PART.findall(str(NodeSet.fromlist(foldable))):
        if "[" in part and not part.endswith("]") and not suffix:
            yield from NodeSet(part)
        else:
            yield part
    yield from sorted({name for name in names if _LARGE.search(name)})
