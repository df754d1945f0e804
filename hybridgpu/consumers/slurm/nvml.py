"""What Slurm's gpu/nvml plugin finds on cards of which the facts are known: the input of AutoDetect, type by type.

Run against the plugin itself on 22.05, 24.11 and 26.05 (tests/slurm/test_autodetect.py); what slurmd then makes of it
is detect.py's. Source: S:src/plugins/gpu/nvml/gpu_nvml.c _get_system_gpu_list_nvml, _handle_mig.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from hybridgpu.consumers.slurm.release import Release
from hybridgpu.model.catalogue import full_name
from hybridgpu.model.facts import Facts, GpuFacts
from hybridgpu.model.naming import device_files, instance_files

_KEPT_MIB = {1: 256, 2: 256, 4: 384, 8: 512}
"""What the driver keeps of an instance's share, by the eighths of the card (MIG user guide, A100: 4.75, 9.75, ...)."""


@dataclass(frozen=True, slots=True)
class DetectedGpu:
    """A GPU or MIG instance as AutoDetect reports it: type in full (`nvidia_a100-sxm4-80gb`), files, cores, links."""

    type: str
    files: tuple[str, ...]
    cores: str | None = None
    links: str | None = None


def nvml_type(driver_name: str, profile: str | None, memory_bytes: int, release: Release) -> str:
    """The type that gpu/nvml gives a card of this memory: the driver's name in lower case with underscores.

    For an instance it is cut at the first hyphen, and the profile follows; or, where the release makes that of the
    instance's attributes, slices and memory: without `+me` or `1c.`, and `3g.70gb` for the `3g.71gb` of an H200.
    """
    name = driver_name.lower().replace(" ", "_")
    if profile is None:
        return name
    if release.nvml_profile_from == "attributes":
        profile = _by_attributes(profile, memory_bytes)
    return f"{name.partition('-')[0]}_{profile}"


def _by_attributes(profile: str, memory_bytes: int) -> str:
    """Slices, and the memory rounded to GiB (S@22.05:src/plugins/gpu/nvml/gpu_nvml.c _handle_mig)."""
    found = re.search(r"(\d+)g\.(\d+)gb", profile)
    if found is None:
        return profile
    mib = memory_bytes >> 20
    whole = -(-mib // 1024)
    eighths = min(_KEPT_MIB, key=lambda share: abs(8 * int(found[2]) - share * whole))
    return f"{found[1]}g.{(mib * eighths // 8 - _KEPT_MIB[eighths] + 512) // 1024}gb"


def links_of_instance(position: int, count: int, release: Release) -> tuple[int, ...] | None:
    """An instance has no links; where the release sorts by them it has its place among the `count` of its card."""
    if not release.nvml_links_instances:
        return None
    return tuple(-1 if at == position else 0 for at in range(count))


def links_of_card(index: int, count: int, links: tuple[int, ...] | None) -> tuple[int, ...]:
    """A whole card has a list even without NVLinks: Slurm sorts cards by the place of the -1, their index."""
    return links or tuple(-1 if at == index else 0 for at in range(count))


def detected_from(facts: Mapping[str, Facts], release: Release) -> dict[str, tuple[DetectedGpu, ...]]:
    """What AutoDetect=nvml finds on the nodes of these facts: every MIG instance, and every card that is not cut.

    A card that is cut into nothing is a whole one, or slurmd dies of it, and finds none here.
    """
    return {
        node: tuple(gpu for card in told.gpus for gpu in _detected(card, len(told.gpus), release))
        for node, told in facts.items()
    }


def _detected(card: GpuFacts, cards: int, release: Release) -> Iterator[DetectedGpu]:
    name, memory = full_name(card.model), card.memory_bytes
    if not card.mig_enabled or (not card.instances and release.nvml_takes_empty_mig):
        links = _text(links_of_card(card.index, cards, card.links))
        yield DetectedGpu(nvml_type(name, None, memory, release), device_files(card.minor), card.cores, links)
    for position, instance in enumerate(card.instances if card.mig_enabled else ()):
        links = _text(links_of_instance(position, len(card.instances), release))
        kind = nvml_type(name, instance.profile, memory, release)
        yield DetectedGpu(kind, instance_files(card.minor, instance), card.cores, links)


def _text(links: tuple[int, ...] | None) -> str | None:
    return None if links is None else ",".join(map(str, links))
