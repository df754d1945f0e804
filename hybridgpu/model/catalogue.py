"""The GPU models hybridgpu knows, read from catalogue.toml, and how a person's word for one is understood.

Profile names are derived here by NVIDIA's formula, so that the data file cannot contradict itself. What a layout may
be is geometry's business, what a model is called in Slurm or Kubernetes naming's.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from hybridgpu.model.gpu import GpuModel, Profile
from hybridgpu.model.spelling import nearest_words

_DATA = Path(__file__).with_name("catalogue.toml")
_VENDOR_WORDS = frozenset({"nvidia", "tesla", "geforce"})
_PCI_ID = re.compile(r"(?:0x)?(?P<first>[0-9a-f]{4})(?::?10de)?|(?:0x)?10de:(?:0x)?(?P<second>[0-9a-f]{4})", re.I)

_MOST_PARTS = 12
"""More models than this are no answer to what a word may mean."""

_Index = dict[str, tuple[GpuModel, ...]]


@dataclass(frozen=True, slots=True)
class NotFound:
    """Why a word is no model: it is ambiguous between `candidates`, or unknown, and they are the nearest names.

    `partial`: it is unknown, and a part of the name of each candidate.
    """

    word: str
    candidates: tuple[str, ...]
    ambiguous: bool = False
    partial: bool = False

    def __str__(self) -> str:
        """One sentence that can be shown to the user as it is."""
        if self.ambiguous or self.partial:
            return f"GPU model {self.word!r} may mean any of {', '.join(self.candidates)}"
        return f"unknown GPU model {self.word!r}"

    @property
    def hint(self) -> str:
        """What to write instead, and where to look."""
        every = "`hybridgpu mig profiles --all` lists every model"
        if self.ambiguous or self.partial:
            return f"say which one; {every}"
        return f"the nearest: {', '.join(self.candidates)}; {every}" if self.candidates else every


@cache
def models() -> tuple[GpuModel, ...]:
    """Every model of the catalogue, in the order of the data file. Read once, on the first call."""
    data = tomllib.loads(_DATA.read_text(encoding="utf-8"))
    entries = [*data["models"], *data["without-mig"]["models"]]
    return tuple(_model(entry, data["families"]) for entry in entries)


def find(name: str) -> GpuModel | NotFound:
    """The model a person means by its name, the driver's full name, an alias or a PCI id.

    Case, separators and the vendor's words (NVIDIA, Tesla, GeForce) do not count. A PCI id is taken as `20b2`,
    `0x20b2`, `0x20B210DE` (as NVML and mig-parted write it), `20b2:10de` or `10de:20b2`.
    """
    names, others, pci_ids = _indexes()
    key = _key(name)
    for found in (names.get(key), others.get(key), pci_ids.get(_pci_id(name))):
        if found:
            return found[0] if len(found) == 1 else NotFound(name, tuple(m.name for m in found), ambiguous=True)
    parts = tuple(model.name for model in models() if _is_part(_key(name), _words(model.driver_name)))
    if 1 < len(parts) <= _MOST_PARTS and any(character.isdigit() for character in name):
        return NotFound(name, parts, partial=True)
    return NotFound(name, parts if len(parts) == 1 else nearest_words(name, (model.name for model in models()), 3))


def identify(driver_name: str, memory_bytes: int) -> GpuModel | NotFound:
    """The model of a card that is there, by the driver's name and, where MIG profiles hang on it, its memory.

    `memory_bytes` is NVML's total, which MIG profile names round up to whole GiB (go-nvlib mig_profile.go). A card of
    a known name and another memory is not found: its profiles have other names.
    """
    key = _key(driver_name)
    same = [model for model in _indexes()[1].get(key, ()) if _key(model.driver_name) == key]
    if not same:
        return find(driver_name)
    fitting = [model for model in same if not model.has_mig or model.memory_gib == -(-memory_bytes // 2**30)]
    if len(fitting) == 1:
        return fitting[0]
    return NotFound(driver_name, tuple(model.name for model in fitting or same), ambiguous=len(fitting) > 1)


def unconfirmed(model: GpuModel, profiles: Iterable[str] = ()) -> str | None:
    """One sentence on what is not confirmed about this model and these profiles on one card, or None."""
    parts = []
    if not model.confirmed:
        parts.append(f"{model.notes}; `nvidia-smi mig -lgipp` on the card tells")
    wanted = [profile for profile in map(model.profile, profiles) if profile]
    attributes = sorted({profile.attribute for profile in wanted})
    if len(attributes) > 1 and any(profile.decoders for profile in wanted):
        named = ", ".join(attribute or "plain" for attribute in attributes)
        parts.append(
            f"which profiles ({named}) go together on a card is judged by the media engines NVIDIA lists for each"
        )
    return f"not confirmed for {model.name}: {'; '.join(parts)}" if parts else None


def profile_name(compute: int, memory_gb: int, attribute: str = "") -> str:
    """A profile's name as nvidia-smi writes it."""
    return f"{compute}g.{memory_gb}gb{attribute}"


def memory_in_name(eighths: int, memory_gib: int) -> int:
    """The M of `Gg.Mgb`: so many eighths of the card's GiB, rounded half up as Go does (go-nvlib mig_profile.go)."""
    return (eighths * memory_gib + 4) // 8


def driver_words(driver_name: str) -> str:
    """The driver's name without the vendor (`NVIDIA`, `Tesla`), as it stands: `H100 80GB HBM3`."""
    return re.sub(r"^(NVIDIA )?(Tesla )?", "", driver_name)


def full_name(word: str) -> str:
    """The driver's full name of a model that facts name (`A100-SXM4-80GB`), the vendor's prefix where it is unknown."""
    found = find(word)
    return f"NVIDIA {word.replace('-', ' ')}" if isinstance(found, NotFound) else found.driver_name


def _model(entry: Mapping[str, Any], families: Mapping[str, Any]) -> GpuModel:
    family = families[entry["family"]] if "family" in entry else {}
    major, minor = entry["compute_capability"].split(".")
    return GpuModel(
        name=entry.get("name", driver_words(entry["driver_name"]).replace(" ", "-")),
        driver_name=entry["driver_name"],
        memory_gib=entry["memory_gib"],
        compute_capability=(int(major), int(minor)),
        slices=family.get("slices", 0),
        compute_slices=family.get("compute_slices", 0),
        profiles=tuple(_profile(row, family["slices"], entry) for row in family.get("profiles", ())),
        aliases=tuple(entry.get("aliases", ())),
        pci_ids=tuple(entry.get("pci_ids", ())),
        confirmed=entry.get("confirmed", True),
        min_driver=entry.get("min_driver"),
        notes=entry.get("notes", ""),
        sources=tuple(entry["sources"]),
    )


def _profile(row: Mapping[str, Any], slices: int, entry: Mapping[str, Any]) -> Profile:
    attribute, memory_gb = row.get("attribute", ""), memory_in_name(row["eighths"], entry["memory_gib"])
    card_branch = int(entry.get("min_driver", "0").split(".")[0])
    return Profile(
        name=profile_name(row["compute"], memory_gb, attribute),
        attribute=attribute,
        compute=row["compute"],
        size=row["eighths"] * slices // 8,
        starts=tuple(row["starts"]),
        max_count=row["max"],
        memory_gb=memory_gb,
        smi_id=row.get("smi_id"),
        confirmed=entry.get("confirmed", True),
        decoders=row.get("decoders", 0),
        ofa=row.get("ofa", 0),
        min_driver=str(row["branch"]) if row.get("branch", 0) > card_branch > 0 else None,
    )


def _key(name: str) -> str:
    return "".join(_words(name))


def _words(name: str) -> list[str]:
    words = re.split(r"[\s_-]+", name.strip().lower())
    while len(words) > 1 and words[0] in _VENDOR_WORDS:
        words = words[1:]
    return words


def _is_part(key: str, words: list[str]) -> bool:
    """Whether the key is some of the words, in their order: `rtx6000` of RTX PRO 6000 Blackwell."""
    if not key:
        return True
    return any(
        key.startswith(word) and _is_part(key[len(word) :], words[at + 1 :]) for at, word in enumerate(words) if word
    )


def _pci_id(name: str) -> str:
    match = _PCI_ID.fullmatch(name.strip())
    return (match["first"] or match["second"]).lower() if match else ""


@cache
def _indexes() -> tuple[_Index, _Index, _Index]:
    """Models by name; by driver's name and alias; by PCI id."""
    return (
        _table((_key(model.name), model) for model in models()),
        _table((word, model) for model in models() for word in {_key(w) for w in (model.driver_name, *model.aliases)}),
        _table((pci_id, model) for model in models() for pci_id in model.pci_ids),
    )


def _table(pairs: Iterable[tuple[str, GpuModel]]) -> _Index:
    table: _Index = {}
    for word, model in pairs:
        table[word] = (*table.get(word, ()), model)
    return table
