"""Writes the C tables of the simulated driver: its cards' geometry from hybridgpu's catalogue, and the unserved names.

`python generate.py geometry|unserved` prints C. It decides nothing: what a profile is stands in catalogue.toml and
engines.toml, and a profile that one of the two does not know is an error here rather than a wrong answer there.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

from hybridgpu.model.catalogue import memory_in_name, models
from hybridgpu.model.gpu import GpuModel, Profile

HERE = Path(__file__).parent
ENUMERATED = {
    (1, ""): 0, (2, ""): 1, (3, ""): 2, (4, ""): 3, (7, ""): 4, (1, "+me"): 7, (2, "+me"): 8,
    (1, "+gfx"): 10, (2, "+gfx"): 11, (4, "+gfx"): 12, (1, "-me"): 13, (2, "-me"): 14,
    (1, "+me.all"): 15, (2, "+me.all"): 16,
}  # fmt: skip
"""NVML_GPU_INSTANCE_PROFILE_* by compute slices and attribute (nvml.h); a 1g of double memory is 9."""

DOUBLE_MEMORY, UNPUBLISHED_ID = 9, 0x100
RESERVED_MIB = {1: 256, 2: 256, 4: 384, 8: 512}
"""What the driver keeps of an instance's memory, by its eighths: the MIG user guide's 4.75, 9.75, 19.62, 39.5 GiB."""

BRANDS = (
    ("Tesla", 2), ("Quadro RTX", 12), ("Quadro", 1), ("NVIDIA GeForce", 5), ("NVIDIA TITAN", 6), ("NVIDIA RTX", 13),
)  # fmt: skip
BRAND_NVIDIA = 14


def geometry() -> Iterator[str]:
    """The lines of geometry.c: every model of the catalogue with its profiles."""
    engines = tomllib.loads((HERE / "engines.toml").read_text(encoding="utf-8"))
    table = [_model(model, engines) for model in models()]
    yield '#include "geometry.h"'
    yield "const struct model models[] = {"
    yield from table
    yield "};"
    yield f"const unsigned long long models_hash = 0x{sha256(chr(10).join(table).encode()).hexdigest()[:16]}ull;"
    yield "const unsigned int models_count = sizeof models / sizeof models[0];"


def unserved() -> Iterator[str]:
    """The lines of unserved.c: every name of the API that this library does not serve."""
    yield '#include "call.h"'
    for name in (HERE / "unserved.txt").read_text(encoding="utf-8").split():
        yield f"EXPORT nvmlReturn_t {name}(void);"
        yield f"EXPORT nvmlReturn_t {name}(void) {{ return call_unserved(__func__); }}"


def _model(model: GpuModel, engines: dict[str, Any]) -> str:
    memory_mib = engines["memory_mib"].get(model.driver_name, model.memory_gib * 1024)
    chip = _chip(model, engines) if model.has_mig else {"sm": 0}
    brand = next((brand for prefix, brand in BRANDS if model.driver_name.startswith(prefix)), BRAND_NVIDIA)
    device = int(model.pci_ids[0], 16) if model.pci_ids else 0
    numbers = (device, memory_mib, *model.compute_capability, brand, model.slices, model.compute_slices, chip["sm"])
    profiles = ",\n  ".join(_profile(model, profile, chip, memory_mib) for profile in model.profiles)
    listed = ", ".join(map(str, (*numbers, len(model.profiles))))
    return f'{{ "{model.name}", "{model.driver_name}", {listed}, {{\n  {profiles or "{ .name = {0} }"} }} }},'


def _chip(model: GpuModel, engines: dict[str, Any]) -> dict[str, Any]:
    words = model.driver_name.removeprefix("NVIDIA ")
    for start, chip in engines["models"].items():
        if words.startswith(start):
            row: dict[str, Any] = engines["chips"][chip]
            return row
    raise SystemExit(f"engines.toml has no chip for {model.driver_name}")


def _profile(model: GpuModel, profile: Profile, chip: dict[str, Any], memory_mib: int) -> str:
    eighths = profile.size * 8 // model.slices
    kind = f"{profile.compute}/{eighths}{profile.attribute}"
    if kind not in chip:
        raise SystemExit(f"engines.toml has no row {kind} for {model.driver_name}")
    doubled = not profile.attribute and any(
        p.compute == profile.compute and p.size < profile.size for p in model.profiles
    )
    enumerated = DOUBLE_MEMORY if doubled else ENUMERATED[profile.compute, profile.attribute]
    identity = UNPUBLISHED_ID + enumerated if profile.smi_id is None else profile.smi_id
    size_mib = memory_mib * eighths // 8 - RESERVED_MIB[eighths]
    total_gib = -(-memory_mib // 1024)
    if memory_in_name(-(-size_mib * 8 // memory_mib), total_gib) != profile.memory_gb:
        raise SystemExit(f"{model.name}: {size_mib} of {memory_mib} MiB is not {profile.name} by NVIDIA's formula")
    branch = int(profile.min_driver or 0)
    starts = ", ".join(map(str, profile.starts))
    return (
        f'{{ "{profile.name}", {enumerated}, {identity}, {profile.compute}, {profile.size}, {profile.max_count}, '
        f"{size_mib}, {branch}, {{ {profile.decoders}, {profile.ofa} }}, "
        f"{{ {', '.join(map(str, chip[kind]))} }}, {len(profile.starts)}, {{ {starts} }} }}"
    )


if __name__ == "__main__":
    print("\n".join({"geometry": geometry, "unserved": unserved}[sys.argv[1]]()))
