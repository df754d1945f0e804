"""Generated facts of a node: minors, cores, links, and MIG instances as wanted or not. Imports nothing of hybridgpu."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from tests.slurm.cards import CARDS
from tests.slurm.expected import CUTS, Cut, place

CORES = {"0-31": "0-31", "32-63": "32-63", "0-63": "0-63", "0-15,16-31": "0-31", "0-7": None, "0-31,40": None}
"""What facts may say of cores, and what Slurm is to be told: two sockets of 32 cores, and it takes whole ones only."""

_SLOTS = 240


@dataclass
class Seen:
    """What the facts of a node say, by GPU index, in the terms of the table."""

    minors: list[int]
    cores: list[str | None]
    links: list[list[int]] | None
    capabilities: list[dict[int, tuple[int, int]] | None] = field(default_factory=list)
    """By GI id, where the card is cut just as it is wanted."""


@st.composite
def facts(draw: st.DrawFn, node: str, models: list[str], wanted: list[Cut | None]) -> tuple[dict[str, Any], Seen]:
    """A facts file of the node, whose cards are to be cut as `wanted`, and what follows from it.

    Minors are in another order than the cards, with gaps. No capability number is one of the usual formula.
    """
    minors = draw(st.permutations(range(draw(st.sampled_from([len(models), 16])))))[: len(models)]
    said = [draw(st.sampled_from([None, *CORES])) for _ in models]
    seen = Seen(minors, [CORES[cores] if cores else None for cores in said], draw(_links(len(models))))
    slots = iter(draw(st.permutations(range(_SLOTS)))) if any(model in CUTS for model in models) else iter(())
    gpus = []
    for index, model in enumerate(models):
        now = draw(_now(model, wanted[index]))
        numbers = {gi: _numbers(next(slots)) for _, gi in now.instances} if now else {}
        seen.capabilities.append(numbers if now is not None and _same(now, wanted[index]) else None)
        gpus.append(
            {
                "index": index,
                "minor": minors[index],
                "uuid": f"GPU-00000000-0000-0000-0000-0000000000{index:02x}",
                "pci_bus_id": f"0000:{index + 1:02x}:00.0",
                "model": CARDS[model].driver_name,
                "memory_bytes": (CARDS[model].gib << 30) - (1 << 28),
                "mig_enabled": now is not None if model in CUTS else None,
                "compute_mode": "default",
                "cores": said[index],
                "links": seen.links[index] if seen.links else None,
                "instances": draw(st.permutations(_instances(index, model, now, numbers))) if now else [],
            }
        )
    driver = {"version": "580.95.05"}
    return {"apiVersion": "hybridgpu/v1", "kind": "Facts", "node": node, "driver": driver, "gpus": gpus}, seen


@st.composite
def _now(draw: st.DrawFn, model: str, wanted: Cut | None) -> Cut | None:
    """How the card is cut at present: mostly as wanted, else in another way, or not at all."""
    if model not in CUTS:
        return None
    return draw(st.sampled_from([wanted, wanted, wanted, None, draw(st.sampled_from(CUTS[model]))]))


def _same(now: Cut, wanted: Cut | None) -> bool:
    return wanted is not None and sorted(now.instances) == sorted(wanted.instances)


def _numbers(slot: int) -> tuple[int, int]:
    """The formula gives 3 + 9n and one more."""
    return 9 * slot + 6, 9 * slot + 8


def _instances(index: int, model: str, now: Cut, numbers: dict[int, tuple[int, int]]) -> list[dict[str, Any]]:
    found = []
    for profile, gi in now.instances:
        start, size = place(model, gi)
        found.append(
            {
                "uuid": f"MIG-00000000-0000-0000-0000-00000000{index:02x}{gi:02x}",
                "profile": profile,
                "placement": {"start": start, "size": size},
                "gi": gi,
                "ci": 0,
                "gi_minor": numbers[gi][0],
                "ci_minor": numbers[gi][1],
            }
        )
    return found


@st.composite
def _links(draw: st.DrawFn, gpus: int) -> list[list[int]] | None:
    """Per GPU the links to each GPU by index, no two alike and -1 at itself; or none that the driver told of."""
    if draw(st.booleans()):
        return None
    return [[-1 if to == index else 10 * index + to for to in range(gpus)] for index in range(gpus)]
