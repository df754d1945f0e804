"""Facts as JSON, one card and one instance a line so that a diff can be read, and as a table for a person."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from hybridgpu.model.facts import Facts, GpuFacts, InstanceFacts

_COLUMNS = ("GPU", "MINOR", "PCI", "MODEL", "MEMORY", "MIG", "COMPUTE MODE", "CORES", "UUID")


def as_json(facts: Facts) -> str:
    """The text of a facts file, as docs/facts.md has it."""
    head = {"apiVersion": "hybridgpu/v1", "kind": "Facts", "node": facts.node}
    driver = json.dumps({"version": facts.driver_version})
    gpus = ",\n".join(f"  {_gpu(gpu)}" for gpu in facts.gpus)
    return f'{json.dumps(head)[:-1]}, "driver": {driver},\n "gpus": [\n{gpus}\n ]}}\n'


def as_table(facts: Facts) -> str:
    """A line a card, and one an instance below it."""
    rows = [_COLUMNS, *(row for gpu in facts.gpus for row in _rows(gpu))]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_COLUMNS))]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows)
    return "".join(f"{line}\n" for line in lines)


def _gpu(gpu: GpuFacts) -> str:
    record = {
        "index": gpu.index,
        "minor": gpu.minor,
        "uuid": gpu.uuid,
        "pci_bus_id": gpu.pci_bus_id,
        "model": gpu.model,
        "memory_bytes": gpu.memory_bytes,
        "mig_enabled": gpu.mig_enabled,
        "mig_pending": gpu.mig_pending,
        "compute_mode": gpu.compute_mode,
        "cores": gpu.cores,
        "links": gpu.links,
    }
    instances = ",".join(f"\n    {json.dumps(_instance(instance))}" for instance in gpu.instances)
    return f'{json.dumps(record)[:-1]},\n   "instances": [{instances}]}}'


def _instance(instance: InstanceFacts) -> dict[str, Any]:
    placement = instance.placement
    return {
        "uuid": instance.uuid,
        "profile": instance.profile,
        "placement": {"start": placement.start, "size": placement.size} if placement else None,
        "gi": instance.gi,
        "ci": instance.ci,
        "gi_minor": instance.gi_minor,
        "ci_minor": instance.ci_minor,
    }


def _rows(gpu: GpuFacts) -> Iterator[tuple[str, ...]]:
    mig = {None: "-", True: "on", False: "off"}
    memory = f"{gpu.memory_bytes / 2**30:.1f} GiB"
    modes = mig[gpu.mig_enabled] + (f" -> {mig[gpu.mig_pending]}" if gpu.mig_pending != gpu.mig_enabled else "")
    own = (str(gpu.index), str(gpu.minor), gpu.pci_bus_id, gpu.model, memory, modes, gpu.compute_mode)
    yield (*own, gpu.cores or "-", gpu.uuid)
    for instance in gpu.instances:
        where = f"at {instance.placement.start}" if instance.placement else ""
        yield ("", "", "", f"  {instance.profile}", where, f"gi {instance.gi}", f"ci {instance.ci}", "", instance.uuid)
