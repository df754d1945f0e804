"""Generated inventories, each with the table of what Slurm must see on its nodes. Imports nothing of hybridgpu."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any

from hypothesis import strategies as st

from tests.slurm.cards import CARDS
from tests.slurm.drawnfacts import Seen, facts
from tests.slurm.expected import CUTS, Cut, Row, cut, ordered, whole


@dataclass
class Node:
    """One host, and what slurmd must list there. `release`: its class's, where that is not the cluster's."""

    name: str
    gpus: list[Row]
    shared: str | None = None
    shares: int = 0
    kubernetes_cards: tuple[str, ...] = ()
    nics: int = 0
    release: str | None = None


@dataclass
class Case:
    """An inventory as data, facts by node, and the expected table: the first host of each entry, then further ones."""

    inventory: dict[str, Any]
    facts: dict[str, dict[str, Any]] = field(default_factory=dict)
    nodes: list[Node] = field(default_factory=list)
    further: list[Node] = field(default_factory=list)


SPLITS_MIG = ("22.05",)
"""Releases that take the files of a MIG instance for GPUs once GresTypes holds mps or shard: there one is named."""

OLDER = {"22.05": (), "24.11": ("23.11", "24.05"), "26.05": ("24.11", "25.05", "25.11")}
"""Which slurmds a class may have besides those of the cluster's release."""

SPLIT_SINCE = "24.11"

MODES = ("exclusive", "mig", "time-slicing", "mig", "mps")

TYPES = (None, None, "fast", "big-mem", "rtx_2.0+x")
"""What a class may call its cards."""

SOCKETS: tuple[dict[str, str], ...] = (
    {"CPUs": "64", "Sockets": "2", "CoresPerSocket": "32"},
    {"CPUs": "64", "Sockets": "2"},
    {"CPUs": "128", "Sockets": "2", "CoresPerSocket": "32", "ThreadsPerCore": "2"},
    {"CPUs": "64", "Boards": "1", "SocketsPerBoard": "2", "CoresPerSocket": "32", "Weight": "7"},
)
"""Two sockets of 32 cores, in the ways in which people say so."""

HOSTS = (
    ("{0}n1", 1),
    ("{0}n1", 1),
    ("{0}n1-ib", 1),
    ("{0}n[1-2]", 2),
    ("{0}n[1-40]", 40),
    ("{0}n[001-012]", 12),
    ("{0}n[1-3]-ib", 3),
    ("{0}r[1-2]n[1-3]", 6),
    ("{0}n[1-3,7],{0}login", 5),
)
"""Hostlists and how many hosts they name."""

FIRST_AND_LAST = re.compile(r"\[(\w+)(?:.*?(\w+))?\]")


@st.composite
def cases(draw: st.DrawFn, version: str, *, splits: bool) -> Case:
    """Inventories for one Slurm release: several models and modes at once, splits where the release allows them."""
    site = draw(_sites())
    case = Case(
        {
            "apiVersion": "hybridgpu/v1",
            "kind": "Inventory",
            "metadata": {"name": "t"},
            "slurm": {"version": version, **({"site": site} if site else {})},
            "kubernetes": {"delivery": "device-plugin", "namespace": "gpu"},
            "nodeClasses": {},
            "nodes": [],
        }
    )
    for number in range(draw(st.integers(1, 4))):
        _add(draw, case, number, splits=splits)
    every = [*case.nodes, *case.further]
    if site:
        site["gres"] = draw(_nic_lines([node.name for node in every]))
        for node in every:
            node.nics = 2
    if version in SPLITS_MIG and (any(node.shared for node in every) or "shard" in site.get("gresTypes", ())):
        for node in every:
            node.gpus = [replace(row, files=row.files[-1:]) for row in node.gpus]
    return case


@st.composite
def _sites(draw: st.DrawFn) -> dict[str, Any]:
    """What the site has already: nothing, or another GRES, scripts and flags."""
    if not draw(st.booleans()):
        return {}
    return {
        "gresTypes": draw(st.sampled_from([["nic"], ["gpu", "nic"], ["nic", "shard"]])),
        "prolog": ["/etc/slurm/prolog.d/*"],
        "epilog": ["/etc/slurm/epilog.d/*"],
        "prologFlags": draw(st.sampled_from([["Alloc"], ["Serial"], ["contain", "Serial"]])),
        "cgroup": {"ConstrainCores": "yes"},
    }


@st.composite
def _nic_lines(draw: st.DrawFn, hosts: list[str]) -> list[str]:
    """Raw lines of gres.conf: none, one for all nodes, or one for some of them; and GPUs of a node outside."""
    outside = draw(st.sampled_from([[], ["NodeName=other[1-2] Name=gpu Type=k40 File=/dev/nvidia0"]]))
    what = draw(st.sampled_from([None, "Count=2", "File=/dev/null,/dev/zero", "Count=2 Flags=CountOnly"]))
    if what is None:
        return outside
    if draw(st.booleans()):
        return [f"Name=nic {what}", *outside]
    some = draw(st.lists(st.sampled_from(hosts), min_size=1, unique=True))
    return [f"NodeName={','.join(some)} Name=nic {what}", *outside]


def _add(draw: st.DrawFn, case: Case, number: int, *, splits: bool) -> None:
    """One more class and an entry with nodes of it."""
    mode = draw(st.sampled_from(MODES))
    models = draw(_models(mode))
    name = f"c{number}"
    older = draw(st.sampled_from((None, None, None, *OLDER[case.inventory["slurm"]["version"]])))
    kind = draw(st.sampled_from(TYPES)) if len(set(models)) == 1 else None
    case.inventory["nodeClasses"][name] = {
        "gpus": _counted(models),
        **({"type": kind} if kind else {}),
        **({"slurmVersion": older} if older else {}),
        "slurm": draw(st.sampled_from(SOCKETS)) | {"RealMemory": "1000"} | _nics(case),
    }
    text, count = draw(st.sampled_from(HOSTS))
    hosts = text.format(name)
    entry: dict[str, Any] = {
        "hosts": hosts,
        "class": name,
        "owner": draw(st.sampled_from(["slurm", "kubernetes"])),
        "sharing": {"mode": mode},
    }
    if addresses := draw(_addresses(name, count)):
        entry["slurm"] = addresses
    cuts: list[Cut | None] = [None] * len(models)
    if mode == "mig":
        cuts = draw(_cuts(models))
        entry["sharing"]["layout"] = draw(_layout(cuts))
    mine = len(models)
    if splits and mode != "mps" and len(models) > 1 and not (older and older < SPLIT_SINCE) and draw(st.booleans()):
        mine = draw(st.integers(1, len(models) - 1))
        entry["owner"] = {"slurm": _indices(range(mine)), "kubernetes": _indices(range(mine, len(models)))}
    node = Node(FIRST_AND_LAST.sub(r"\1", hosts).split(",")[0], [], release=older)
    if mode == "time-slicing":
        node.shared, node.shares = "shard", draw(st.integers(2, 12))
        entry["sharing"]["replicas"] = str(node.shares)
    elif mode == "mps":
        node.shared, node.shares = "mps", 100
        entry["sharing"]["replicas"] = "4"
    elif draw(st.booleans()):
        entry["sharing"]["mps"] = {"wholeGpuJobs": "true"}
    node.kubernetes_cards = _files(range(mine, len(models)))
    if count > 1:
        last = FIRST_AND_LAST.sub(lambda found: found[2] or found[1], hosts).split(",")[-1]
        case.further.append(replace(node, name=last, gpus=_rows(models, cuts, mine, kind, None)))
    seen = None
    if draw(st.booleans()):
        case.facts[node.name], seen = draw(facts(node.name, models, cuts))
        node.kubernetes_cards = _files(sorted(seen.minors[mine:]))
    node.gpus = _rows(models, cuts, mine, kind, seen)
    case.inventory["nodes"].append(entry)
    case.nodes.append(node)


def _files(minors: Iterable[int]) -> tuple[str, ...]:
    return tuple(f"/dev/nvidia{minor}" for minor in minors)


def _nics(case: Case) -> dict[str, str]:
    return {"Gres": "nic:2"} if "site" in case.inventory["slurm"] else {}


@st.composite
def _models(draw: st.DrawFn, mode: str) -> list[str]:
    """The cards of a class in PCI order: mostly one model, sometimes two, side by side or mixed."""
    one = draw(st.sampled_from(sorted(CUTS) if mode == "mig" else sorted(CARDS)))
    size = draw(st.sampled_from([1, 2, 4, 8]))
    if draw(st.integers(0, 3)):
        return [one] * size
    other = draw(st.sampled_from(sorted(CARDS)))
    models = [draw(st.sampled_from([one, other])) for _ in range(size)]
    return [one, *models[1:]]


def _counted(models: list[str]) -> list[dict[str, str]]:
    return [{"model": model, "count": str(len(list(run)))} for model, run in groupby(models)]


@st.composite
def _addresses(draw: st.DrawFn, name: str, count: int) -> dict[str, str]:
    """NodeAddr, NodeHostname and Port of an entry's hosts, in an order that folding must keep; or none."""
    ports = range(7001, 7001 + count)
    return draw(
        st.sampled_from(
            [
                {},
                {},
                {"Port": "7001"},
                {"Port": f"[{ports[0]}-{ports[-1]}]", "NodeHostname": "big"},
                {"NodeAddr": f"{name}-ipmi[1-{count}]", "Port": f"[{','.join(map(str, reversed(ports)))}]"},
                {"NodeAddr": ",".join(f"10.0.0.{host}" for host in range(count, 0, -1))},
                {"NodeHostname": f"{name}-[1-{count}].example.org", "Port": f"{ports[0]}-{ports[-1]}"},
            ]
        )
    )


@st.composite
def _cuts(draw: st.DrawFn, models: list[str]) -> list[Cut | None]:
    """What each card becomes: one at least is cut, and one at most of those that could be is left whole."""
    off = draw(st.integers(0, len(models)))
    return [
        draw(st.sampled_from(CUTS[model])) if model in CUTS and (index != off or index == 0) else None
        for index, model in enumerate(models)
    ]


@st.composite
def _layout(draw: st.DrawFn, cuts: list[Cut | None]) -> dict[str, Any]:
    """The layout in the inventory's words: each card by itself, or those that are alike together."""
    alike: dict[Cut | None, list[int]] = {}
    for index, cut_ in enumerate(cuts):
        alike.setdefault(cut_, []).append(index)
    if len(alike) == 1 and draw(st.booleans()):
        said = {"all": cuts[0]}
    elif draw(st.booleans()):
        said = {_indices(indices): cut_ for cut_, indices in alike.items()}
    else:
        said = {str(index): cut_ for index, cut_ in enumerate(cuts)}
    return {key: {p: str(n) for p, n in draw(st.permutations(c.layout))} if c else "off" for key, c in said.items()}


def _rows(models: list[str], cuts: list[Cut | None], mine: int, kind: str | None, seen: Seen | None) -> list[Row]:
    """What Slurm must see of the first `mine` cards, by the facts where there are any."""
    cards = []
    for index, (model, cut_) in enumerate(zip(models[:mine], cuts, strict=False)):
        minor, cores = (seen.minors[index], seen.cores[index]) if seen else (index, None)
        if cut_ is None:
            cards.append([whole(model, minor, cores, kind)])
        else:
            cards.append(cut(model, cut_, minor, cores, seen.capabilities[index] if seen else None))
    rows = ordered(cards)
    return _linked(rows, seen.minors, seen.links) if seen and seen.links and not any(cuts[:mine]) else rows


def _linked(rows: list[Row], minors: list[int], links: list[list[int]]) -> list[Row]:
    """The rows with their links among themselves, each list in the order of the rows."""
    order = [minors.index(int(row.files[0].removeprefix("/dev/nvidia"))) for row in rows]
    return [
        replace(row, links=",".join(str(links[index][to]) for to in order))
        for row, index in zip(rows, order, strict=True)
    ]


def _indices(indices: Sequence[int]) -> str:
    """`0-3,6`; a single one as it is."""
    runs: list[list[int]] = []
    for index in indices:
        if runs and runs[-1][-1] == index - 1:
            runs[-1].append(index)
        else:
            runs.append([index])
    return ",".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)
