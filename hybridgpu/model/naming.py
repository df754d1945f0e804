"""What a model and its instances are called by others: Slurm's types and ids, Kubernetes' resources, device files.

Pure text and numbers. Slurm compares types by a weak 32-bit hash, so the names chosen here are free of collisions over
the whole catalogue, whatever a cluster has today; whether a name is used anywhere is not known here.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache

from hybridgpu.model.catalogue import driver_words, models
from hybridgpu.model.facts import InstanceFacts
from hybridgpu.model.gpu import GpuModel, Profile
from hybridgpu.model.labels import MIG_RESOURCE

_CARD_FILE = re.compile(r"/dev/nvidia([0-9]{1,4})")
_CAPABILITY_FILE = re.compile(r"/dev/nvidia-caps/nvidia-cap([0-9]{1,6})")
_MINORS_PER_GPU, _MINORS_PER_GI, _FIRST_GI_MINOR = 135, 9, 3


def gres_id(name: str) -> int:
    """Slurm's 32-bit id of a GRES name or type: two names with one id are one and the same to the scheduler.

    Bytes are added at shift 0, 8, 16, 24, 0, ... modulo 2^32; case counts (S:src/interfaces/gres.c gres_build_id).
    Bytes above 127 are negative there on x86 only: such names are not portable and are given x86's id here.
    """
    total = 0
    for position, byte in enumerate(name.encode()):
        total += (byte - 256 if byte > 127 else byte) << position % 4 * 8
    return total % 2**32


def slurm_type(model: GpuModel, profile: str | None = None, class_type: str | None = None) -> str:
    """Slurm's Type of a whole GPU (`profile` None) or of a MIG instance.

    A whole GPU: the class's `type`, else the driver's name without vendor, lower case, spaces as `_`. An instance: its
    profile, with the model's prefix where its id is also another catalogue model's (`a100_4g.20gb`). Under
    AutoDetect=nvml either is part of what Slurm detects, as it must be (S:src/interfaces/gpu.c; facts of gpu_nvml.c:
    `nvidia_a100_4g.20gb`).
    """
    if profile is None:
        return class_type or whole_gpu_type(model)
    return _type(model, profile, colliding_profiles())


def whole_gpu_type(model: GpuModel) -> str:
    """`a100-sxm4-80gb`, `h100_80gb_hbm3`: the type of a whole GPU whose class gives none."""
    return driver_words(model.driver_name).lower().replace(" ", "_")


def type_prefix(model: GpuModel) -> str:
    """`a100`, `h100_80gb_hbm3`: what stands before a profile, cut at the first `-` as Slurm's gpu/nvml plugin does."""
    return whole_gpu_type(model).split("-", 1)[0]


@cache
def colliding_profiles() -> frozenset[str]:
    """The profiles that carry their model's prefix, because their Slurm id is also another name's of the catalogue.

    Closed: with these prefixes no two different types of the catalogue, whole GPUs included, have one id.
    """
    prefixed: frozenset[str] = frozenset()
    while True:
        plain = {
            profile
            for group in types_by_id(prefixed).values()
            if len({name for name, _ in group}) > 1
            for name, profile in group
            if name == profile
        }
        if not plain:
            return prefixed
        prefixed |= plain


def types_by_id(prefixed: frozenset[str]) -> dict[int, set[tuple[str, str]]]:
    """Every type of the catalogue by its id, as (type, profile; "" for a whole GPU), if `prefixed` are prefixed."""
    by_id: dict[int, set[tuple[str, str]]] = defaultdict(set)
    for model in models():
        names = [(whole_gpu_type(model), ""), *((_type(model, p.name, prefixed), p.name) for p in model.profiles)]
        for name, profile in names:
            by_id[gres_id(name)].add((name, profile))
    return by_id


def device_files(minor: int, gi: int | None = None, ci: int = 0) -> tuple[str, ...]:
    """The device files of a whole GPU, or of a MIG instance by its ids: GPU, GI and CI capability file, in this order.

    By the driver's numbering, which facts overrule: the GI file's minor is 3 + 135 * the GPU's minor + 9 * gi, the CI
    file's 1 + ci more (/proc/driver/nvidia-caps/mig-minors, as published for five GPUs).
    """
    card = f"/dev/nvidia{minor}"
    if gi is None:
        return (card,)
    gi_minor = _FIRST_GI_MINOR + _MINORS_PER_GPU * minor + _MINORS_PER_GI * gi
    return card, capability_file(gi_minor), capability_file(gi_minor + 1 + ci)


def card_minor(path: str) -> int | None:
    """The N of /dev/nvidiaN; None for another file."""
    found = _CARD_FILE.fullmatch(path)
    return int(found[1]) if found else None


def capability_number(path: str) -> int | None:
    """The N of a MIG capability file, /dev/nvidia-caps/nvidia-capN; None for another file."""
    found = _CAPABILITY_FILE.fullmatch(path)
    return int(found[1]) if found else None


def card_of_capability(number: int) -> int:
    """The minor of the card that a MIG capability file's number belongs to, by the same numbering."""
    return max(number - _FIRST_GI_MINOR, 0) // _MINORS_PER_GPU


def parts_of_card(minor: int, number: int) -> int:
    """How many instances of its size fill the card, by the number of an instance's capability file: ids 1 and 2 are
    the halves of a card, 3 to 6 its quarters, 7 to 14 its eighths (geometry.gpu_instance_id). 0 for another's number.
    """
    gi, rest = divmod(number - _FIRST_GI_MINOR - _MINORS_PER_GPU * minor, _MINORS_PER_GI)
    return 2 ** ((gi + 1).bit_length() - 1) if 0 <= gi < _MINORS_PER_GPU // _MINORS_PER_GI and rest >= 0 else 0


def instance_files(minor: int, instance: InstanceFacts) -> tuple[str, ...]:
    """The files of a MIG instance that facts show; by the driver's numbering where its capability files were unread."""
    if instance.gi_minor is None or instance.ci_minor is None:
        return device_files(minor, instance.gi, instance.ci)
    return (*device_files(minor), capability_file(instance.gi_minor), capability_file(instance.ci_minor))


def capability_file(minor: int) -> str:
    """The path of the MIG capability file with this minor number."""
    return f"/dev/nvidia-caps/nvidia-cap{minor}"


def kubernetes_resource(profile: str | None, strategy: str = "mixed") -> str:
    """The resource of a GPU or, by its profile, a MIG instance, before any `.shared`.

    `nvidia.com/gpu` for a whole GPU and for strategy `single`; under `mixed` `nvidia.com/mig-` and the profile with
    `+` as `.`, `-` as it is: `nvidia.com/mig-1g.10gb.me`, `nvidia.com/mig-1g.24gb-me` (k8s-device-plugin internal/rm).
    """
    if profile is None or strategy == "single":
        return "nvidia.com/gpu"
    return MIG_RESOURCE + profile.replace("+", ".")


@dataclass(frozen=True, slots=True)
class TwoMeanings:
    """A profile name that is one thing on one model and another on another; `difference` is a phrase for the user."""

    profile: str
    one: GpuModel
    other: GpuModel
    difference: str


def same_name_other_meaning(models: Iterable[GpuModel]) -> Iterator[TwoMeanings]:
    """The profile names that mean different things on two of these models, each pair of models once.

    A share of compute or memory, or the number a card holds, differs: 1g.10gb is a seventh of the compute on an A100
    of 40 GB and of 80 GB alike, but takes a quarter of the memory of one and an eighth of the other's.
    """
    distinct = list(dict.fromkeys(models))
    for at, one in enumerate(distinct):
        for other in distinct[at + 1 :]:
            for profile in one.profiles:
                twin = other.profile(profile.name)
                if twin and _meaning(one, profile) != _meaning(other, twin):
                    phrases = f"{_phrase(one, profile)}; {_phrase(other, twin)}"
                    yield TwoMeanings(profile.name, one, other, phrases)


def _type(model: GpuModel, profile: str, prefixed: frozenset[str]) -> str:
    return f"{type_prefix(model)}_{profile}" if profile in prefixed else profile


def _meaning(model: GpuModel, profile: Profile) -> tuple[int, int, int, int, int]:
    return (
        profile.compute,
        model.compute_slices,
        profile.size * 24 // model.slices,
        profile.max_count,
        profile.memory_gb,
    )


def _phrase(model: GpuModel, profile: Profile) -> str:
    compute = f"{profile.compute} of {model.compute_slices} compute slices"
    memory = f"{profile.size} of {model.slices} memory slices"
    return f"on {model.name} {compute} and {memory}, at most {profile.max_count} a card"
