"""Whether facts whose fields are all legal can be true together: no card, number or place twice, none impossible."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hybridgpu.inventory.factsfields import Problem, dotted
from hybridgpu.inventory.factsplaces import Path
from hybridgpu.model.catalogue import NotFound, identify
from hybridgpu.model.geometry import misplaced
from hybridgpu.model.gpu import Placement


def contradictions(record: dict[str, Any]) -> Iterator[Problem]:
    """What contradicts itself in a facts record whose fields are all legal.

    What is counted by the numbers of cards or instances is judged only where these numbers are right.
    """
    gpus = record["gpus"]
    indices = sorted(gpu["index"] for gpu in gpus)
    if indices != list(range(len(gpus))):
        yield Problem(("gpus",), f"has the indices {indices}; {len(gpus)} GPUs have 0 to {len(gpus) - 1}")
        return
    for name in ("minor", "pci_bus_id"):
        yield from _twice(((("gpus", at, name), _bus(gpu[name])) for at, gpu in enumerate(gpus)), name)
    yield from _twice(_uuids(gpus), "uuid")
    ids_twice = [problem for at, gpu in enumerate(gpus) for problem in _ids_twice(gpu, ("gpus", at))]
    yield from ids_twice
    for at, gpu in enumerate(gpus):
        path = ("gpus", at)
        if gpu.get("links") is not None:
            yield from _links(gpu, len(gpus), (*path, "links"))
        if gpu["instances"] and not ids_twice:
            yield from _instances(gpu, path)
    if not ids_twice:
        yield from _capabilities(gpus)


def _ids_twice(gpu: dict[str, Any], path: Path) -> Iterator[Problem]:
    ids: dict[tuple[int, int], int] = {}
    for at, instance in enumerate(gpu["instances"]):
        gi, ci = instance["gi"], instance["ci"]
        first = ids.setdefault((gi, ci), at)
        if first != at:
            yield Problem((*path, "instances", at, "gi"), f"{gi} with ci {ci} is that of instance {first} already")


def _links(gpu: dict[str, Any], gpus: int, path: Path) -> Iterator[Problem]:
    links, index = gpu["links"], gpu["index"]
    if len(links) != gpus:
        yield Problem(path, f"has {len(links)} numbers; the node has {gpus} GPUs")
    elif links[index] != -1:
        yield Problem(path, f"has -1 for GPU {links.index(-1)}; allowed: for GPU {index}, the card itself")


def _instances(gpu: dict[str, Any], path: Path) -> Iterator[Problem]:
    if gpu.get("mig_enabled") is False:
        yield Problem((*path, "instances"), "has instances, and mig_enabled is false")
    model = identify(gpu["model"], gpu["memory_bytes"])
    known = None if isinstance(model, NotFound) else model
    if known and known.confirmed and not known.has_mig:
        yield Problem((*path, "instances"), f"has instances, and {known.name} has no MIG")
        return
    places: dict[int, tuple[int, int]] = {}  # GPU instance -> start and size
    for at, instance in enumerate(gpu["instances"]):
        gi, placement = instance["gi"], instance.get("placement")
        here = (*path, "instances", at, "placement")
        if not placement:
            continue
        place = (placement["start"], placement["size"])
        if places.setdefault(gi, place) != place:
            yield Problem(here, f"is not the one that GPU instance {gi} has above")
        for other, (start, size) in places.items():
            if other != gi and place[0] < start + size and start < sum(place):
                yield Problem(here, f"overlaps that of GPU instance {other}")
                break
        if known and (why := misplaced(known, instance["profile"], Placement(*place))):
            yield Problem(here, why)


def _capabilities(gpus: list[dict[str, Any]]) -> Iterator[Problem]:
    """Each GPU instance and each compute instance has one capability number, and no other of the node has it."""
    owners: dict[int, Path] = {}  # number -> (GPU, GPU instance) or (GPU, GPU instance, compute instance)
    numbers: dict[Path, int] = {}
    for at, gpu in enumerate(gpus):
        for number, instance in enumerate(gpu["instances"]):
            gi = (gpu["index"], instance["gi"])
            for name, owner in (("gi_minor", gi), ("ci_minor", (*gi, instance["ci"]))):
                minor, path = instance.get(name), ("gpus", at, "instances", number, name)
                if minor is None:
                    continue
                if owners.setdefault(minor, owner) != owner:
                    yield Problem(path, f"{minor} is the number of {_owner(owners[minor])} already")
                if numbers.setdefault(owner, minor) != minor:
                    yield Problem(path, f"{minor} is not the number that {_owner(owner)} has above: {numbers[owner]}")


def _owner(owner: Path) -> str:
    names = ("GPU", "GPU instance", "compute instance")
    return ", ".join(f"{name} {number}" for name, number in zip(names, owner, strict=False))


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
