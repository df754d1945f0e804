"""What a model and its instances are called by others: Slurm's types and ids, Kubernetes' resources, device files.

Pure text and numbers; whether a name is used anywhere is not known here.
"""

from __future__ import annotations

from collections import defaultdict
from functools import cache

from hybridgpu.model.catalogue import driver_words, models
from hybridgpu.model.gpu import GpuModel

_MINORS_PER_GPU, _MINORS_PER_GI, _FIRST_GI_MINOR = 135, 9, 3


def gres_id(name: str) -> int:
    """Slurm's 32-bit id of a GRES name or type: two names with one id are the same to the scheduler.

    Bytes are added at shift 0, 8, 16, 24, 0, ... modulo 2^32, each as a signed char (S:src/interfaces/gres.c
    gres_build_id, x86). Case counts.
    """
    total = 0
    for position, byte in enumerate(name.encode()):
        total += (byte - 256 if byte > 127 else byte) << position % 4 * 8
    return total % 2**32


def slurm_type(model: GpuModel, profile: str | None = None, class_type: str | None = None) -> str:
    """Slurm's Type of a whole GPU (`profile` None) or of a MIG instance.

    A whole GPU: the class's `type`, else the driver's name without vendor, lower case, spaces as `_`. An instance: its
    profile, with the model's prefix where its id is also another catalogue model's (`a100_4g.20gb`).
    """
    if profile is None:
        return class_type or whole_type(model)
    return f"{type_prefix(model)}_{profile}" if profile in colliding_profiles() else profile


def whole_type(model: GpuModel) -> str:
    """`h100_80gb_hbm3`: part of what AutoDetect=nvml calls the card, so that Slurm matches the two."""
    return driver_words(model.driver_name).lower().replace(" ", "_")


def type_prefix(model: GpuModel) -> str:
    """`a100`, `h100_80gb_hbm3`: what Slurm puts before a profile under AutoDetect=nvml, without vendor (S:gpu_nvml.c)."""
    return whole_type(model).split("-", 1)[0]


@cache
def colliding_profiles() -> frozenset[str]:
    """Profile names whose Slurm id is also that of another name of the catalogue."""
    named: dict[int, set[str]] = defaultdict(set)
    for model in models():
        for profile in model.profiles:
            named[gres_id(profile.name)].add(profile.name)
    return frozenset(name for names in named.values() if len(names) > 1 for name in names)


def device_files(minor: int, gi: int | None = None, ci: int = 0) -> tuple[str, ...]:
    """The device files of a whole GPU, or of a MIG instance by its ids: GPU, GI and CI capability file.

    By the driver's numbering, which facts overrule: GI minor = 3 + 135 * GPU minor + 9 * gi, CI minor = GI minor + 1 + ci.
    """
    card = f"/dev/nvidia{minor}"
    if gi is None:
        return (card,)
    gi_minor = _FIRST_GI_MINOR + _MINORS_PER_GPU * minor + _MINORS_PER_GI * gi
    return card, capability_file(gi_minor), capability_file(gi_minor + 1 + ci)


def capability_file(minor: int) -> str:
    """The path of the MIG capability file with this minor number."""
    return f"/dev/nvidia-caps/nvidia-cap{minor}"


def kubernetes_resource(profile: str, strategy: str = "mixed") -> str:
    """The resource of a MIG instance: `nvidia.com/gpu` under `single`, `nvidia.com/mig-1g.10gb.me` under `mixed`.

    `+` becomes `.`, `-` stays (k8s-device-plugin internal/rm).
    """
    return "nvidia.com/gpu" if strategy == "single" else "nvidia.com/mig-" + profile.replace("+", ".")
