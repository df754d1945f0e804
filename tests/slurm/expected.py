"""What each GPU model and layout must look like to Slurm: written down by hand, importing nothing of hybridgpu.

Types: the driver's names in lower case. Placements: NVIDIA MIG user guide; largest profile first, each at the lowest
free start that still lets the rest fit. GI ids follow the place: whole 0; halves 1, 2; quarters 3 to 6; eighths 7 to
13 (the guide's listings). Capability numbers: 3 + 135*minor + 9*gi for the instance, one more for its compute instance.
"""

from __future__ import annotations

from dataclasses import dataclass

TYPES = {
    "A100-SXM4-40GB": "a100-sxm4-40gb",
    "A100-SXM4-80GB": "a100-sxm4-80gb",
    "A30": "a30",
    "H100-80GB-HBM3": "h100_80gb_hbm3",
    "H100-NVL": "h100_nvl",
    "H200": "h200",
    "B200": "b200",
    "V100-SXM2-32GB": "v100-sxm2-32gb",
    "T4": "t4",
    "L40S": "l40s",
    "A40": "a40",
}


@dataclass(frozen=True)
class Cut:
    """A layout: what the inventory says, and (profile, GI id) in the order of creation."""

    layout: tuple[tuple[str, int], ...]
    instances: tuple[tuple[str, int], ...]


def _cut(layout: dict[str, int], *instances: tuple[str, int]) -> Cut:
    return Cut(tuple(layout.items()), instances)


def _seven(one: str, two: str, three: str, four: str, whole: str) -> tuple[Cut, ...]:
    """The layouts people use on a card of 7 compute and 8 memory slices."""
    return (
        _cut({one: 7}, *((one, gi) for gi in range(7, 14))),
        _cut({two: 3, one: 1}, (two, 3), (two, 4), (two, 5), (one, 13)),
        _cut({three: 2}, (three, 1), (three, 2)),
        _cut({four: 1, three: 1}, (four, 1), (three, 2)),
        _cut({one: 1, two: 1, four: 1}, (four, 1), (two, 5), (one, 13)),
        _cut({three: 1, two: 1, one: 2}, (three, 2), (two, 3), (one, 9), (one, 10)),
        _cut({whole: 1}, (whole, 0)),
        _cut({one: 2}, (one, 7), (one, 8)),
    )


CUTS: dict[str, tuple[Cut, ...]] = {
    "A100-SXM4-40GB": _seven("1g.5gb", "2g.10gb", "3g.20gb", "4g.20gb", "7g.40gb"),
    "A100-SXM4-80GB": _seven("1g.10gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb"),
    "H100-80GB-HBM3": _seven("1g.10gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb"),
    "H100-NVL": _seven("1g.12gb", "2g.24gb", "3g.47gb", "4g.47gb", "7g.94gb"),
    "H200": _seven("1g.18gb", "2g.35gb", "3g.71gb", "4g.71gb", "7g.141gb"),
    "B200": _seven("1g.23gb", "2g.45gb", "3g.90gb", "4g.90gb", "7g.180gb"),
    "A30": (
        _cut({"1g.6gb": 4}, *(("1g.6gb", gi) for gi in range(3, 7))),
        _cut({"2g.12gb": 2}, ("2g.12gb", 1), ("2g.12gb", 2)),
        _cut({"2g.12gb": 1, "1g.6gb": 2}, ("2g.12gb", 1), ("1g.6gb", 5), ("1g.6gb", 6)),
        _cut({"4g.24gb": 1}, ("4g.24gb", 0)),
    ),
}

PREFIXED = {
    "4g.20gb": "a100_4g.20gb",
    "7g.40gb": "a100_7g.40gb",
    "1g.23gb": "b200_1g.23gb",
    "2g.45gb": "b200_2g.45gb",
    "3g.47gb": "h100_nvl_3g.47gb",
    "4g.47gb": "h100_nvl_4g.47gb",
    "2g.35gb": "h200_2g.35gb",
    "4g.71gb": "h200_4g.71gb",
}
"""Profiles whose 32-bit id is another profile's too (computed, and seen live): they carry their model."""


@dataclass(frozen=True)
class Row:
    """One device as slurmd must list it."""

    type: str
    files: tuple[str, ...]
    cores: str | None = None
    links: str | None = None


def whole(model: str, minor: int, cores: str | None = None, name: str | None = None) -> Row:
    return Row(name or TYPES[model], (f"/dev/nvidia{minor}",), cores)


def cut(cut_: Cut, minor: int, cores: str | None = None) -> list[Row]:
    """The rows of one card, in Slurm's file order within each type."""
    rows = []
    for profile, gi in cut_.instances:
        cap = 3 + 135 * minor + 9 * gi
        files = (f"/dev/nvidia{minor}", f"/dev/nvidia-caps/nvidia-cap{cap}", f"/dev/nvidia-caps/nvidia-cap{cap + 1}")
        rows.append(Row(PREFIXED.get(profile, profile), files, cores))
    return rows


def ordered(cards: list[list[Row]]) -> list[Row]:
    """A node's rows in Slurm's order: types in the order of their lowest device, files ascending within a type."""
    flat = sorted((row for card in cards for row in card), key=_numbers)
    first: dict[str, int] = {}
    for position, row in enumerate(flat):
        first.setdefault(row.type, position)
    return sorted(flat, key=lambda row: (first[row.type], _numbers(row)))


def _numbers(row: Row) -> tuple[int, ...]:
    return tuple(int("".join(c for c in file.rsplit("/", 1)[1] if c.isdigit())) for file in row.files)
