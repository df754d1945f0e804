"""Generated inventories, each with the table of what Slurm must see on its nodes. Imports nothing of hybridgpu."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import strategies as st

from tests.slurm.expected import CUTS, TYPES, Row, cut, ordered, whole


@dataclass
class Node:
    """One node entry's first host and what slurmd must list there."""

    name: str
    gpus: list[Row]
    shared: str | None = None
    shares: int = 0
    kubernetes_cards: int = 0
    nics: int = 0


@dataclass
class Case:
    """An inventory as data, facts by node, and the expected table."""

    inventory: dict[str, Any]
    facts: dict[str, dict[str, Any]] = field(default_factory=dict)
    nodes: list[Node] = field(default_factory=list)


SPLITS_MIG = ("22.05",)
"""Releases that take the files of a MIG instance for GPUs once GresTypes holds mps or shard: there one is named."""

MODES = ("exclusive", "time-slicing", "mps", "mig")


@st.composite
def cases(draw: st.DrawFn, version: str, *, splits: bool) -> Case:
    """Inventories for one Slurm release: several models and modes at once, splits where the release allows them."""
    site = draw(_sites())
    nics = bool(site)
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
        _add(draw, case, number, splits=splits, nics=nics)
    if version in SPLITS_MIG and any(node.shared for node in case.nodes):
        for node in case.nodes:
            node.gpus = [replace(row, files=row.files[-1:]) for row in node.gpus]
    return case


@st.composite
def _sites(draw: st.DrawFn) -> dict[str, Any]:
    """What the site has already: nothing, or another GRES, scripts and flags."""
    if not draw(st.booleans()):
        return {}
    return {
        "gresTypes": ["nic"],
        "prolog": ["/etc/slurm/prolog.d/*"],
        "epilog": ["/etc/slurm/epilog.d/*"],
        "prologFlags": draw(st.sampled_from([["Alloc"], ["Serial"], ["contain", "Serial"]])),
        "cgroup": {"ConstrainCores": "yes"},
    }


def _add(draw: st.DrawFn, case: Case, number: int, *, splits: bool, nics: bool) -> None:
    mode = draw(st.sampled_from(MODES))
    models = draw(_models(mode))
    split = splits and mode != "mps" and len(models) > 1 and draw(st.booleans())
    slurm: dict[str, str] = {"CPUs": "64", "Sockets": "2", "CoresPerSocket": "32", "RealMemory": "1000"}
    if nics:
        slurm["Gres"] = "nic:2"
    name = f"c{number}"
    case.inventory["nodeClasses"][name] = {"gpus": _counted(models), "slurm": slurm}
    count = draw(st.sampled_from([1, 1, 2, 40]))
    first = f"{name}n1"
    entry: dict[str, Any] = {
        "hosts": first if count == 1 else f"{name}n[1-{count}]",
        "class": name,
        "owner": draw(st.sampled_from(["slurm", "kubernetes"])),
        "sharing": {"mode": mode},
    }
    minors = list(range(len(models)))
    cores: list[str | None] = [None] * len(models)
    facts = mode != "mig" and draw(st.booleans())
    links: list[list[int]] | None = None
    if facts:
        minors = draw(st.permutations(minors))
        cores = [draw(st.sampled_from(["0-31", "32-63", "0-63"])) for _ in models]
        links = draw(_links(len(models)))
        case.facts[first] = _facts(first, models, minors, cores, links)
    cards = _cards(draw, entry, models, minors, cores)
    mine = list(range(len(models)))
    if split:
        border = draw(st.integers(1, len(models) - 1))
        mine = mine[:border]
        entry["owner"] = {"slurm": _indices(0, border), "kubernetes": _indices(border, len(models))}
    node = Node(first, ordered([cards[index] for index in mine]), nics=2 if nics else 0)
    if links:
        node.gpus = _linked(node.gpus, minors, links)
    node.kubernetes_cards = len(models) - len(mine)
    if mode == "time-slicing":
        node.shared, node.shares = "shard", draw(st.integers(2, 12))
        entry["sharing"]["replicas"] = str(node.shares)
    if mode == "mps":
        node.shared, node.shares = "mps", 100
        entry["sharing"]["replicas"] = "4"
    case.inventory["nodes"].append(entry)
    case.nodes.append(node)


@st.composite
def _models(draw: st.DrawFn, mode: str) -> list[str]:
    """The cards of a class in PCI order: mostly one model, sometimes two, side by side or mixed."""
    names = st.sampled_from(sorted(CUTS) if mode == "mig" else sorted(TYPES))
    one, two = draw(names), draw(names)
    size = draw(st.sampled_from([1, 2, 4, 8]))
    if draw(st.integers(0, 3)):
        return [one] * size
    return [draw(st.sampled_from([one, two])) for _ in range(size)]


def _counted(models: list[str]) -> list[dict[str, str]]:
    runs: list[list[Any]] = []
    for model in models:
        if runs and runs[-1][0] == model:
            runs[-1][1] += 1
        else:
            runs.append([model, 1])
    return [{"model": model, "count": str(count)} for model, count in runs]


def _cards(
    draw: st.DrawFn, entry: dict[str, Any], models: list[str], minors: list[int], cores: list[str | None]
) -> list[list[Row]]:
    """What each card becomes, and for MIG the layout in the inventory's words."""
    if entry["sharing"]["mode"] != "mig":
        return [[whole(*card)] for card in zip(models, minors, cores, strict=True)]
    layout: dict[str, Any] = {}
    cards = []
    off = draw(st.integers(-1, len(models) - 1)) if len(models) > 1 else -1
    for index, model in enumerate(models):
        if index == off:
            layout[str(index)] = "off"
            cards.append([whole(model, minors[index])])
            continue
        chosen = draw(st.sampled_from(CUTS[model]))
        layout[str(index)] = {profile: str(count) for profile, count in chosen.layout}
        cards.append(cut(chosen, minors[index]))
    if all(value == "off" for value in layout.values()):
        raise AssertionError("one card at most is left whole")
    entry["sharing"]["layout"] = layout
    return cards


@st.composite
def _links(draw: st.DrawFn, gpus: int) -> list[list[int]] | None:
    """Per GPU the links to each GPU by index, no two alike and -1 at itself; or none that the driver told of."""
    if draw(st.booleans()):
        return None
    return [[-1 if to == index else 10 * index + to for to in range(gpus)] for index in range(gpus)]


def _linked(rows: list[Row], minors: list[int], links: list[list[int]]) -> list[Row]:
    """The rows with their links among themselves, each list in the order of the rows."""
    order = [minors.index(int(row.files[0].removeprefix("/dev/nvidia"))) for row in rows]
    return [
        replace(row, links=",".join(str(links[index][to]) for to in order))
        for row, index in zip(rows, order, strict=True)
    ]


def _indices(first: int, end: int) -> str:
    return str(first) if end - first == 1 else f"{first}-{end - 1}"


def _facts(
    node: str, models: list[str], minors: list[int], cores: list[str | None], links: list[list[int]] | None
) -> dict[str, Any]:
    gpus: list[dict[str, Any]] = [
        {
            "index": index,
            "minor": minors[index],
            "uuid": f"GPU-00000000-0000-0000-0000-0000000000{index:02x}",
            "pci_bus_id": f"0000:{index + 1:02x}:00.0",
            "model": model,
            "memory_bytes": 85899345920,
            "mig_enabled": False,
            "compute_mode": "default",
            "cores": cores[index],
            "links": links[index] if links else None,
            "instances": [],
        }
        for index, model in enumerate(models)
    ]
    driver = {"version": "580.95.05"}
    return {"apiVersion": "hybridgpu/v1", "kind": "Facts", "node": node, "driver": driver, "gpus": gpus}
