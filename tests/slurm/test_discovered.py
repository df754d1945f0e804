"""From the card to slurmd: what `discover` reads of ten machines is rendered, and the real slurmd lists that."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from hybridgpu.devices.factsfile import as_json
from hybridgpu.devices.factsof import facts_of
from hybridgpu.devices.nvml import Nvml
from hybridgpu.devices.observe import look
from testbed.driver import library
from testbed.slurm.root import SlurmRoot
from tests.devices.machines import MACHINES, Built
from tests.slurm.cards import CARDS
from tests.slurm.expected import CUTS, STARTS, Cut, Row, cut, ordered, whole
from tests.slurm.inventories import Case, Node
from tests.slurm.test_render import agree, render

pytestmark = pytest.mark.slurm


@pytest.mark.parametrize("name", MACHINES)
def test_slurmd_lists_what_was_discovered(name: str, slurm_root: SlurmRoot, tmp_path: Path) -> None:
    built = MACHINES[name]
    machine = built.make(tmp_path / "machine")
    with library.over(machine.root):
        found = facts_of(look(Nvml(), machine.root), "n1")
    assert found.facts is not None
    case = Case(inventory(built, slurm_root.release), {"n1": json.loads(as_json(found.facts))})
    files = render(case, tmp_path)
    agree(slurm_root.slurmd_g(files, "n1"), Node("n1", rows(built)), files)


def inventory(built: Built, release: str) -> dict[str, Any]:
    sockets, cores = len(built.cpus.sockets), len(built.cpus.sockets[0])
    threads = len(built.cpus.sockets[0][0])
    hardware = {"Sockets": sockets, "CoresPerSocket": cores, "ThreadsPerCore": threads}
    layout = {index: {p: str(n) for p, n in Counter(p for p, _ in c).items()} for index, c in built.cuts.items()}
    every = {str(index): layout.get(index, "off") for index in range(len(built.models))}
    sharing = {"mode": "mig", "layout": every} if layout else {"mode": "exclusive"}
    return {
        "apiVersion": "hybridgpu/v1",
        "kind": "Inventory",
        "metadata": {"name": "t"},
        "slurm": {"version": release},
        "nodeClasses": {
            "c": {
                "gpus": [{"model": model, "count": str(len(list(run)))} for model, run in groupby(built.models)],
                "slurm": {key: str(value) for key, value in {"CPUs": sockets * cores * threads, **hardware}.items()},
            }
        },
        "nodes": [{"hosts": "n1", "class": "c", "owner": "slurm", "schedulers": ["slurm"], "sharing": sharing}],
    }


def rows(built: Built) -> list[Row]:
    """The machine's devices as Slurm must list them: cores where they are whole sockets, links where no card is cut."""
    cards = []
    for index, model in enumerate(built.models):
        minor, cores = built.minors[index], near(built, built.cores[index])
        wanted = built.cuts.get(index)
        cards.append(cut(model, the_cut(model, wanted), minor, cores) if wanted else [whole(model, minor, cores)])
    found = ordered(cards)
    if built.cuts or built.links[0] is None:
        return found
    order = [built.minors.index(int(row.files[0].removeprefix("/dev/nvidia"))) for row in found]
    told = [built.links[index] or () for index in order]
    return [
        replace(row, links=",".join(str(links[to]) for to in order)) for row, links in zip(found, told, strict=True)
    ]


def near(built: Built, cores: str) -> str | None:
    size = len(built.cpus.sockets[0])
    first, _, last = cores.partition("-")
    span = (int(first), int(last))
    if span == (0, size * len(built.cpus.sockets) - 1):
        return cores
    return cores if span[0] % size == 0 and span[1] - span[0] + 1 == size else None


def the_cut(model: str, wanted: tuple[tuple[str, int], ...]) -> Cut:
    """The table's entry of instances that lie where these do."""
    _, starts = STARTS[CARDS[model].family]
    return next(c for c in CUTS[model] if sorted((p, starts[gi]) for p, gi in c.instances) == sorted(wanted))
