"""The fields of a facts file: what each may hold. Fields that are not listed are ignored, since fields may be added."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from hybridgpu.inventory.factsplaces import Path
from hybridgpu.inventory.schema import API_VERSION, MOST_GPUS
from hybridgpu.model.sharing import ComputeMode

MOST_SLICES = 64
"""More memory slices than any card has."""

MOST_INSTANCES = 64
"""More MIG instances than any card has."""

MOST_MINORS = 2**20
"""Minor numbers of a Linux device (linux/kdev_t.h MINORBITS)."""

MOST_CORES = 2**16
"""Cores of a node, which Slurm counts in 16 bits (S:slurm/slurm.h)."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A value that is not allowed, or (`missing`) is not there."""

    path: Path
    message: str
    missing: bool = False

    def __str__(self) -> str:
        return f"{dotted(self.path)} {self.message}"


@dataclass(frozen=True, slots=True)
class Field:
    """A field: `legal` judges its value. `null`: it may be null or absent, for what could not be read."""

    name: str
    legal: Callable[[Any], bool]
    allowed: str
    null: bool = False


def dotted(path: Path) -> str:
    """`gpus[3].uuid`."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).lstrip(".") or "the file"


def problems(record: object, fields: tuple[Field, ...], path: Path = ()) -> Iterator[Problem]:
    """What is wrong with a record's own fields."""
    if type(record) is not dict:
        yield Problem(path, "must be an object { }")
        return
    for field in fields:
        value = record.get(field.name)
        if not ((value is None and field.null) or field.legal(value)):
            missing = field.name not in record
            what = "is missing" if missing else f"{_shown(value)} is not allowed"
            yield Problem((*path, field.name), f"{what}; allowed: {field.allowed}", missing)


def children(record: object, name: str, most: int) -> list[Any]:
    """The list below a record's field; empty where that is none, or longer than `most`."""
    value = record.get(name) if isinstance(record, Mapping) else None
    return value if isinstance(value, list) and len(value) <= most else []


def _shown(value: object) -> str:
    if isinstance(value, (list, dict)):
        return f"a list of {len(value)}" if isinstance(value, list) else "an object"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _whole(value: object) -> bool:
    return type(value) is int and 0 <= value < 2**63


def _below(most: int) -> Callable[[Any], bool]:
    return lambda value: type(value) is int and 0 <= value < most


def _text(pattern: str) -> Callable[[Any], bool]:
    fullmatch = re.compile(pattern).fullmatch
    return lambda value: type(value) is str and len(value) <= 256 and fullmatch(value) is not None


def _links(value: object) -> bool:
    """Numbers that Slurm takes, one of them -1 (S:src/interfaces/gres.c gres_links_validate)."""
    if type(value) is not list or len(value) > MOST_GPUS or value.count(-1) != 1:
        return False
    return all(type(link) is int and -2 <= link <= 1023 for link in value)


def _cores(value: object) -> bool:
    return _CORES(value) and all(
        int(first) <= int(last or first) < MOST_CORES
        for first, _, last in (part.partition("-") for part in str(value).split(","))
    )


_CORES = _text(r"[0-9]{1,6}(?:-[0-9]{1,6})?(?:,[0-9]{1,6}(?:-[0-9]{1,6})?)*")
_MINOR = f"a minor number from 0 to {MOST_MINORS - 1}"
_ID = f"a whole number from 0 to {MOST_MINORS - 1}"
_BUS_ID = r"(?:0000)?[0-9A-Fa-f]{4}:[0-9A-Fa-f]{2}:[01][0-9A-Fa-f]\.[0-7]"
_UUID = _text(r"[A-Za-z0-9/-]+")

TOP = (
    Field("apiVersion", lambda value: value == API_VERSION, API_VERSION),
    Field("kind", lambda value: value == "Facts", "Facts"),
    Field("node", _text(r"[A-Za-z0-9][A-Za-z0-9._-]*"), "a host name"),
    Field("driver", lambda value: type(value) is dict, "an object with the version"),
    Field("gpus", lambda value: type(value) is list and len(value) <= MOST_GPUS, f"a list of at most {MOST_GPUS} GPUs"),
)
DRIVER = (Field("version", _text(r"[!-~]+"), "the driver's version, as 550.163.01"),)
GPU = (
    Field("index", _below(MOST_GPUS), f"a whole number from 0 to {MOST_GPUS - 1}"),
    Field("minor", _below(MOST_MINORS), _MINOR),
    Field("uuid", _UUID, "a UUID, as GPU-5a3c..."),
    Field("pci_bus_id", _text(_BUS_ID), "a bus id, as 0000:07:00.0"),
    Field("model", _text(r"[ -~]+"), "the model's name"),
    Field("memory_bytes", lambda value: _whole(value) and value > 0, "a number of bytes"),
    Field("mig_enabled", lambda value: type(value) is bool, "true, false, null", null=True),
    Field("mig_pending", lambda value: type(value) is bool, "true, false, null", null=True),
    Field("compute_mode", lambda value: value in tuple(ComputeMode), ", ".join(ComputeMode)),
    Field("cores", _cores, f"a core range, as 0-31, below {MOST_CORES}, or null", null=True),
    Field("links", _links, "a list of link counts from -2 to 1023, -1 for the GPU itself alone, or null", null=True),
    Field(
        "instances",
        lambda value: type(value) is list and len(value) <= MOST_INSTANCES,
        f"a list of at most {MOST_INSTANCES}",
    ),
)
INSTANCE = (
    Field("uuid", _UUID, "a UUID, as MIG-5a3c..."),
    Field("profile", _text(r"[!-~]+"), "a profile, as 1g.10gb"),
    Field("placement", lambda value: type(value) is dict, "an object with start and size, or null", null=True),
    Field("gi", _below(MOST_MINORS), _ID),
    Field("ci", _below(MOST_MINORS), _ID),
    Field("gi_minor", _below(MOST_MINORS), f"{_MINOR}, or null", null=True),
    Field("ci_minor", _below(MOST_MINORS), f"{_MINOR}, or null", null=True),
)
PLACEMENT = (
    Field("start", lambda value: _whole(value) and value < MOST_SLICES, "a memory slice from 0"),
    Field("size", lambda value: _whole(value) and 0 < value <= MOST_SLICES, "a number of memory slices from 1"),
)
