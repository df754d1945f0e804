"""Whether facts whose fields are all legal can be true together: no card, number or place twice."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hybridgpu.inventory.factsfields import Path, Problem, dotted


def contradictions(record: dict[str, Any]) -> Iterator[Problem]:
    """What contradicts itself in a facts record whose fields are all legal."""
    gpus = record["gpus"]
    indices = sorted(gpu["index"] for gpu in gpus)
    if indices != list(range(len(gpus))):
        yield Problem(("gpus",), f"has the indices {indices}; {len(gpus)} GPUs have 0 to {len(gpus) - 1}")
    for name in ("minor", "pci_bus_id"):
        yield from _twice(((("gpus", at, name), _bus(gpu[name])) for at, gpu in enumerate(gpus)), name)
    yield from _twice(_uuids(gpus), "uuid")
    for at, gpu in enumerate(gpus):
        path = ("gpus", at)
        if gpu.get("links") is not None and len(gpu["links"]) != len(gpus):
            yield Problem((*path, "links"), f"has {len(gpu['links'])} numbers; the node has {len(gpus)} GPUs")
        if gpu["instances"]:
            yield from _instances(gpu, path)


def _instances(gpu: dict[str, Any], path: Path) -> Iterator[Problem]:
    if gpu.get("mig_enabled") is False:
        yield Problem((*path, "instances"), "has instances, and mig_enabled is false")
    ids: dict[tuple[int, int], int] = {}
    places: dict[int, int] = {}  # GPU instance -> its memory slices, one bit each
    for at, instance in enumerate(gpu["instances"]):
        gi, ci, placement = instance["gi"], instance["ci"], instance.get("placement")
        if (gi, ci) in ids:
            yield Problem(
                (*path, "instances", at, "gi"), f"{gi} with ci {ci} is that of instance {ids[gi, ci]} already"
            )
        ids.setdefault((gi, ci), at)
        if placement and gi not in places:
            slices = ((1 << placement["size"]) - 1) << placement["start"]
            for other, taken in places.items():
                if slices & taken:
                    yield Problem((*path, "instances", at, "placement"), f"overlaps that of GPU instance {other}")
            places[gi] = slices


def _bus(value: object) -> object:
    return value[-12:].lower() if isinstance(value, str) else value


def _uuids(gpus: list[dict[str, Any]]) -> Iterator[tuple[Path, object]]:
    for at, gpu in enumerate(gpus):
        yield ("gpus", at, "uuid"), gpu["uuid"]
        for number, instance in enumerate(gpu["instances"]):
            yield ("gpus", at, "instances", number, "uuid"), instance["uuid"]


def _twice(values: Iterator[tuple[Path, object]], name: str) -> Iterator[Problem]:
    seen: dict[object, Path] = {}
    for path, value in values:
        if value in seen:
            yield Problem(path, f"{value} is also the {name} of {dotted(seen[value][:-1])}")
        seen.setdefault(value, path)
