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

DATA = Path(__file__).with_name("catalogue.toml")
NVIDIA = "10de"
_VENDOR_WORDS = frozenset({"nvidia", "tesla", "geforce"})
_PCI_ID = re.compile(
    r"(?:0x)?(?P<device>[0-9a-f]{4})(?::?(?P<vendor>10de))?|10de:(?P<second>[0-9a-f]{4})", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class NotFound:
    """Why a word is no model: `ambiguous`, then it may mean any of `candidates`; else `candidates` are the nearest names."""

    word: str
    candidates: tuple[str, ...]
    ambiguous: bool = False

    def __str__(self) -> str:
        """One sentence that can be shown to the user as it is."""
        names = ", ".join(self.candidates)
        if self.ambiguous:
            return f"GPU model {self.word!r} may mean any of {names}: say which"
        hint = f"; the nearest are {names}" if names else ""
        return f"unknown GPU model {self.word!r}{hint}"


@cache
def models() -> tuple[GpuModel, ...]:
    """Every model of the catalogue, in the order of the data file. Read once, on the first call."""
    data = tomllib.loads(DATA.read_text(encoding="utf-8"))
    return tuple(_model(entry, data["families"]) for entry in data["models"])


def find(name: str) -> GpuModel | NotFound:
    """The model a person means by its name, the driver's full name, an alias or a PCI id; case and separators do not count.

    A PCI id is taken as `20b2`, `0x20b2`, `0x20B210DE` (mig-parted's form), `20b2:10de` or `10de:20b2`.
    """
    names, aliases, pci_ids = _index()
    key = _key(name)
    for table, word in ((names, key), (aliases, key), (pci_ids, _pci_id(name))):
        found = table.get(word, ()) if word else ()
        if len(found) == 1:
            return found[0]
        if found:
            return NotFound(name, tuple(model.name for model in found), ambiguous=True)
    return NotFound(name, nearest_words(name, (model.name for model in models()), 3))


def profile_name(compute: int, eighths: int, memory_gib: int, attribute: str = "") -> str:
    """A profile's name as nvidia-smi writes it: eighths of the card's GiB, rounded half up (go-nvlib mig_profile.go)."""
    return f"{compute}g.{memory_in_name(eighths, memory_gib)}gb{attribute}"


def memory_in_name(eighths: int, memory_gib: int) -> int:
    """The M of `Gg.Mgb`: `eighths` / 8 of `memory_gib`, rounded half up as Go's math.Round does."""
    return (eighths * memory_gib + 4) // 8


def driver_words(driver_name: str) -> str:
    """The driver's name without the vendor (`NVIDIA`, `Tesla`), as it stands: `H100 80GB HBM3`."""
    return re.sub(r"^(NVIDIA )?(Tesla )?", "", driver_name)


def _model(entry: Mapping[str, Any], families: Mapping[str, Any]) -> GpuModel:
    words = driver_words(entry["driver_name"])
    family = families.get(entry.get("family", ""), {})
    return GpuModel(
        name=entry.get("name", words.replace(" ", "-")),
        driver_name=entry["driver_name"],
        memory_gib=entry["memory_gib"],
        compute_capability=(entry["compute_capability"][0], entry["compute_capability"][1]),
        slices=family.get("slices", 0),
        compute_slices=family.get("compute_slices", 0),
        profiles=tuple(_profile(row, family["slices"], entry) for row in family.get("profiles", ())),
        aliases=tuple(entry.get("aliases", ())),
        pci_ids=tuple(entry.get("pci_ids", ())),
        confirmed=entry.get("confirmed", True),
        min_driver=entry.get("min_driver"),
        notes=entry.get("notes", ""),
        sources=tuple(entry.get("sources", ())),
    )


def _profile(row: Mapping[str, Any], slices: int, entry: Mapping[str, Any]) -> Profile:
    memory_gib, attribute = entry["memory_gib"], row.get("attribute", "")
    return Profile(
        name=profile_name(row["compute"], row["eighths"], memory_gib, attribute),
        attribute=attribute,
        compute=row["compute"],
        size=row["eighths"] * slices // 8,
        starts=tuple(row["starts"]),
        max_count=row["max"],
        memory_gb=memory_in_name(row["eighths"], memory_gib),
        smi_id=row.get("smi_id"),
        confirmed=entry.get("confirmed", True),
    )


def _key(name: str) -> str:
    words = re.split(r"[\s_-]+", name.strip().lower())
    while words and words[0] in _VENDOR_WORDS:
        words = words[1:]
    return "".join(words)


def _pci_id(name: str) -> str:
    match = _PCI_ID.fullmatch(name.strip())
    return (match["device"] or match["second"]).lower() if match else ""


_Index = dict[str, tuple[GpuModel, ...]]


@cache
def _index() -> tuple[_Index, _Index, _Index]:
    return (
        _table((word, model) for model in models() for word in {_key(model.name), _key(model.driver_name)}),
        _table((_key(alias), model) for model in models() for alias in model.aliases),
        _table((pci_id, model) for model in models() for pci_id in model.pci_ids),
    )


def _table(pairs: Iterable[tuple[str, GpuModel]]) -> _Index:
    table: _Index = {}
    for word, model in pairs:
        table[word] = (*table.get(word, ()), model)
    return table
