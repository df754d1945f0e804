"""MIG instances in a node's records: whether the cards that they name can hold them.

Slurm looks at none of this. Source: MIG user guide (profiles and their places); the numbers of capability files are the
driver's habit, not a promise (naming.device_files), so that of them only warnings come.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

from hybridgpu.consumers.slurm.gresconf import Record
from hybridgpu.consumers.slurm.nodegres import Wanted
from hybridgpu.consumers.slurm.nvml import nvml_type
from hybridgpu.consumers.slurm.release import RELEASES
from hybridgpu.consumers.slurm.verdict import Verdict
from hybridgpu.files.slurmlines import Pair
from hybridgpu.model.catalogue import models
from hybridgpu.model.finding import Place, Related, Rule, Severity
from hybridgpu.model.naming import capability_number, card_minor, card_of_capability, device_files
from hybridgpu.model.packing import fits
from hybridgpu.model.spelling import nearest

CARD_AND_INSTANCES = Rule(
    "slurm-card-beside-its-instances",
    Severity.ERROR,
    "One record has the card as a whole and another one an instance of it: Slurm gives both away, to two jobs.",
    "Name the card either whole, with File, or cut, with a MultipleFiles record for each instance.",
    "S:src/interfaces/gres.c gres_node_config_load: MultipleFiles are not compared; MIG user guide",
)
CARD_TOO_SMALL = Rule(
    "slurm-card-holds-fewer",
    Severity.WARNING,
    "No card can be cut into the instances that the records give this one: some of them are not there.",
    "Let the records of a card be one of its layouts.",
    "MIG user guide, supported profiles",
)
CAPABILITY_ELSEWHERE = Rule(
    "slurm-capability-of-another-card",
    Severity.WARNING,
    "By the driver's numbering the capability files are another card's: a job gets an instance that it may not open.",
    "Take card and numbers from /proc/driver/nvidia-caps/mig-minors of the node.",
    "observed: the files of /dev/nvidiaN begin at nvidia-cap3 + 135 * N",
)
PROFILE_UNKNOWN = Rule(
    "slurm-autodetect-profile-unknown",
    Severity.WARNING,
    "AutoDetect finds no instance whose type holds this word: it is no profile of a card that we know.",
    "Write a profile as nvidia-smi mig -lgip has it.",
    "S:src/plugins/gres/gpu/gres_gpu.c _merge_system_gres_conf; MIG user guide",
)

RULES = (CARD_AND_INSTANCES, CARD_TOO_SMALL, CAPABILITY_ELSEWHERE, PROFILE_UNKNOWN)

_PROFILE = re.compile(r"(?:^|[_.-])([0-9]+g\.[0-9]+gb(?:\+[a-z.]+)?)", re.IGNORECASE)
_LIKE_A_PROFILE = re.compile(r"[0-9]g?\.[0-9]+[a-z]*|[0-9]g[._-]?[0-9]+", re.IGNORECASE)
_FIRST_OF_INSTANCES = 3
_MOST_ON_A_CARD = 64


def judge(records: Sequence[Record], verdict: Verdict) -> None:
    """The node's records of gpu, as far as they name files."""
    mine = [record for record in records if record.name == "gpu" and record.files]
    whole = {file: record for record in mine if not record.multiple for file in record.files}
    cards: dict[str, list[Record]] = {}
    for record in mine:
        if record.multiple and (card := next((file for file in record.files if card_minor(file) is not None), None)):
            cards.setdefault(card, []).append(record)
    for card, cut in cards.items():
        if card in whole:
            related = [Related(place, "the whole card stands here") for place in [whole[card].place] if place]
            message = f"gpu: {card} is a card of its own, and has the instance {cut[0].type or ','.join(cut[0].files)}"
            verdict.note(CARD_AND_INSTANCES, cut[0].place, message, related=related)
        _judge_room(card, cut, verdict)
        for record in cut:
            _judge_numbers(card, record, verdict)


def _judge_room(card: str, cut: Sequence[Record], verdict: Verdict) -> None:
    """Whether some card has places for these instances; those of one GPU instance count once."""
    instances = {frozenset(_numbers(record)[:1]) or frozenset((-at,)): record for at, record in enumerate(cut, 1)}
    found = [_PROFILE.search(record.type or "") for record in instances.values()]
    names = [match[1].lower() for match in found if match]
    if len(names) != len(instances) or _holds(tuple(sorted(names))):
        return
    counts = " and ".join(f"{count} of {name}" for name, count in Counter(names).items())
    message = f"gpu: {card} has {counts} here, more than any card with this profile holds"
    verdict.note(CARD_TOO_SMALL, cut[-1].place, message)


@lru_cache(maxsize=1024)
def _holds(names: tuple[str, ...]) -> bool:
    """Whether a model holds these profiles together, or none we know has all of them."""
    having = [model for model in models() if all(model.profile(name) for name in names)]
    if len(names) > _MOST_ON_A_CARD:
        return not having
    return not having or any(fits(m, [p for name in names if (p := m.profile(name))]) is not None for m in having)


def _judge_numbers(card: str, record: Record, verdict: Verdict) -> None:
    minor = int(card.removeprefix("/dev/nvidia"))
    for number in _numbers(record):
        if number >= _FIRST_OF_INSTANCES and card_of_capability(number) != minor:
            first = device_files(minor, 0)[1]
            message = (
                f"gpu: nvidia-cap{number} is /dev/nvidia{card_of_capability(number)}'s by the driver's numbering, not "
                f"{card}'s, whose files begin at {first}"
            )
            verdict.note(CAPABILITY_ELSEWHERE, record.place, message)
            return


def _numbers(record: Record) -> list[int]:
    return sorted(number for file in record.files if (number := capability_number(file)) is not None)


def judge_detected(auto: Pair, want: Wanted | None, place: Place | None, verdict: Verdict) -> None:
    """Types that look like profiles, on a node where NVML is asked, which nothing that it reports can hold."""
    if want is None or "nvml" not in auto.value.lower():
        return
    for kind, count in want.types:
        if _LIKE_A_PROFILE.search(kind) and not any(kind.lower() in known for known in _reported()):
            near = nearest(kind, _profiles()) or nearest(kind.rpartition("_")[2], _profiles())
            message = f"Gres= has {count} of gpu:{kind}, and AutoDetect={auto.value} finds no type that holds '{kind}'"
            verdict.note(PROFILE_UNKNOWN, place, message, f"did you mean {near}?" if near else "")


@lru_cache(maxsize=1)
def _reported() -> frozenset[str]:
    """Every type that NVML gives a card or an instance of a model we know, in any release."""
    return frozenset(
        nvml_type(model.driver_name, name, model.memory_bytes, release).lower()
        for model in models()
        for name in (None, *(profile.name for profile in model.profiles))
        for release in RELEASES.values()
    )


@lru_cache(maxsize=1)
def _profiles() -> tuple[str, ...]:
    return tuple(dict.fromkeys(profile.name for model in models() for profile in model.profiles))
