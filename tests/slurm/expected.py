"""What each GPU model and layout must look like to Slurm: written down by hand, importing nothing of hybridgpu.

Profiles: NVIDIA MIG user guide and published listings. Placements: largest profile first (of one size the one with
more compute slices, then by name), each at the lowest start that still lets the rest fit. GI ids follow the place:
whole 0; halves 1, 2; quarters 3 to 6; eighths 7 to 13 (the guide's listings). Capability numbers, where no facts tell
them: 3 + 135*minor + 9*gi for the instance, one more for its compute instance.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tests.slurm.cards import CARDS


@dataclass(frozen=True)
class Cut:
    """A layout: what the inventory says, and (profile, GI id) in the order of creation."""

    layout: tuple[tuple[str, int], ...]
    instances: tuple[tuple[str, int], ...]


def _cut(*instances: tuple[str, tuple[int, ...]]) -> Cut:
    """From each profile's GI ids."""
    layout = tuple((profile, len(gis)) for profile, gis in instances)
    return Cut(layout, tuple((profile, gi) for profile, gis in instances for gi in gis))


_EIGHTHS = {
    40: "1g.5gb 1g.10gb 2g.10gb 3g.20gb 4g.20gb 7g.40gb",
    80: "1g.10gb 1g.20gb 2g.20gb 3g.40gb 4g.40gb 7g.80gb",
    94: "1g.12gb 1g.24gb 2g.24gb 3g.47gb 4g.47gb 7g.94gb",
    96: "1g.12gb 1g.24gb 2g.24gb 3g.48gb 4g.48gb 7g.96gb",
    141: "1g.18gb 1g.35gb 2g.35gb 3g.71gb 4g.71gb 7g.141gb",
    144: "1g.18gb 1g.36gb 2g.36gb 3g.72gb 4g.72gb 7g.144gb",
    180: "1g.23gb 1g.45gb 2g.45gb 3g.90gb 4g.90gb 7g.180gb",
    186: "1g.23gb 1g.47gb 2g.47gb 3g.93gb 4g.93gb 7g.186gb",
    189: "1g.24gb 1g.47gb 2g.47gb 3g.95gb 4g.95gb 7g.189gb",
    269: "1g.34gb 1g.67gb 2g.67gb 3g.135gb 4g.135gb 7g.269gb",
    278: "1g.35gb 1g.70gb 2g.70gb 3g.139gb 4g.139gb 7g.278gb",
}
"""The profiles of cards of 7 compute and 8 memory slices, by GiB; `1g` has a twin with +me."""


def _eighths(gib: int) -> tuple[Cut, ...]:
    """Of a `1g` seven go on a card, at the eighths 0 to 6; a `4g` begins at 0, a `3g` at 0 or 4, a `2g` at 0, 2, 4."""
    one, double, two, three, four, whole = _EIGHTHS[gib].split()
    me = f"{one}+me"
    return (
        _cut((whole, (0,))),
        _cut((four, (1,)), (three, (2,))),
        _cut((four, (1,)), (two, (5,)), (one, (13,))),
        _cut((four, (1,)), (two, (5,)), (double, (6,))),
        _cut((four, (1,)), (two, (5,)), (me, (13,))),
        _cut((four, (1,)), (double, (5, 6))),
        _cut((four, (1,)), (one, (11, 12, 13))),
        _cut((three, (1, 2))),
        _cut((three, (2,)), (two, (3, 4))),
        _cut((three, (2,)), (two, (3,)), (one, (9, 10))),
        _cut((three, (1,)), (two, (5,)), (one, (13,))),
        _cut((three, (1,)), (two, (5,)), (double, (6,))),
        _cut((three, (2,)), (one, (7, 8, 9, 10))),
        _cut((three, (1,)), (one, (11, 12)), (me, (13,))),
        _cut((two, (3, 4, 5)), (one, (13,))),
        _cut((two, (3, 4, 5)), (double, (6,))),
        _cut((two, (3, 4)), (one, (11, 12, 13))),
        _cut((two, (3,)), (one, (9, 10, 11, 12, 13))),
        _cut((two, (3,)), (double, (4,))),
        _cut((double, (3, 4, 5, 6))),
        _cut((double, (3, 4, 5)), (one, (13,))),
        _cut((one, (7, 8, 9, 10, 11, 12, 13))),
        _cut((one, (7, 8, 9, 10, 11, 12)), (me, (13,))),
        _cut((one, (7, 8))),
        _cut((me, (7,))),
    )


_QUARTERS = (
    _cut(("4g.24gb", (0,))),
    _cut(("2g.12gb", (1, 2))),
    _cut(("2g.12gb", (1,)), ("2g.12gb+me", (2,))),
    _cut(("2g.12gb", (1,)), ("1g.6gb", (5, 6))),
    _cut(("2g.12gb+me", (1,)), ("1g.6gb", (5, 6))),
    _cut(("1g.6gb", (3, 4, 5, 6))),
    _cut(("1g.6gb", (3, 4, 5)), ("1g.6gb+me", (6,))),
    _cut(("1g.6gb", (3,))),
)
"""A30: 4 compute and 4 memory slices."""

_TWELFTHS = (
    _cut(("4g.96gb", (0,))),
    _cut(("4g.96gb+gfx", (0,))),
    _cut(("2g.48gb", (1, 2))),
    _cut(("2g.48gb+gfx", (1, 2))),
    _cut(("2g.48gb", (1,)), ("2g.48gb+gfx", (2,))),
    _cut(("2g.48gb+me.all", (1,)), ("2g.48gb-me", (2,))),
    _cut(("2g.48gb", (1,)), ("1g.24gb", (5, 6))),
    _cut(("2g.48gb-me", (1,)), ("1g.24gb+me.all", (5,)), ("1g.24gb-me", (6,))),
    _cut(("2g.48gb", (1,)), ("1g.24gb", (5,)), ("1g.24gb+me", (6,))),
    _cut(("1g.24gb", (3, 4, 5, 6))),
    _cut(("1g.24gb", (3, 4)), ("1g.24gb+gfx", (5, 6))),
    _cut(("1g.24gb", (3, 4, 5)), ("1g.24gb+me", (6,))),
    _cut(("1g.24gb+gfx", (3, 4, 5, 6))),
    _cut(("1g.24gb-me", (3, 4, 5, 6))),
    _cut(("1g.24gb+me.all", (3,)), ("1g.24gb-me", (4, 5, 6))),
)
"""RTX PRO 6000: 4 compute slices and 12 units of memory, 3 for a `1g`: a quarter of the card."""


def _halves(half: str, whole: str, *more: Cut) -> tuple[Cut, ...]:
    """Cards that at most two share (MIG user guide r610)."""
    return (
        _cut((whole, (0,))),
        _cut((f"{whole}+gfx", (0,))),
        _cut((half, (1, 2))),
        _cut((half, (1,)), (f"{half}+gfx", (2,))),
        _cut((f"{half}-me", (1, 2))),
        _cut((f"{half}+me.all", (1,)), (f"{half}-me", (2,))),
        *more,
    )


def _cuts(family: str, gib: int) -> tuple[Cut, ...]:
    match family:
        case "eighths":
            return _eighths(gib)
        case "quarters":
            return _QUARTERS
        case "twelfths":
            return _TWELFTHS
        case _ if gib == 48:
            return _halves("1g.24gb", "2g.48gb", _cut(("1g.24gb", (1,)), ("1g.24gb+me", (2,))))
        case _:
            return _halves("1g.16gb", "2g.32gb")


CUTS = {name: _cuts(card.family, card.gib) for name, card in CARDS.items() if card.family}

STARTS = {
    "eighths": (8, (0, 0, 4, 0, 2, 4, 6, 0, 1, 2, 3, 4, 5, 6)),
    "quarters": (4, (0, 0, 2, 0, 1, 2, 3)),
    "twelfths": (12, (0, 0, 6, 0, 3, 6, 9)),
    "halves": (2, (0, 0, 1)),
}
"""Each family's memory units, and at which of them a GI id begins."""

PREFIXED = frozenset(
    {
        *("4g.20gb", "1g.23gb"),
        *("7g.40gb", "2g.45gb"),
        *("2g.48gb", "3g.47gb"),
        *("3g.48gb", "4g.47gb"),
        *("2g.35gb", "1g.36gb"),
        *("4g.71gb", "3g.72gb"),
    }
)
"""Profiles whose 32-bit id is the other's too, in pairs (computed, and seen live): they carry their model."""


@dataclass(frozen=True)
class Row:
    """One device as slurmd must list it."""

    type: str
    files: tuple[str, ...]
    cores: str | None = None
    links: str | None = None


def place(model: str, gi: int) -> tuple[int, int]:
    """Where the instance with this id lies: its first memory unit, and how many it has."""
    units, starts = STARTS[CARDS[model].family]
    parts = next(parts for parts in (1, 2, 4, 8) if gi < 2 * parts - 1)
    return starts[gi], units // parts


def whole(model: str, minor: int, cores: str | None = None, name: str | None = None) -> Row:
    """The row of a card that is not cut; `name` is its class's `type`."""
    return Row(name or CARDS[model].type, (f"/dev/nvidia{minor}",), cores)


def cut(
    model: str, cut_: Cut, minor: int, cores: str | None = None, seen: Mapping[int, tuple[int, int]] | None = None
) -> list[Row]:
    """The rows of one card. `seen`: the capability numbers of facts by GI id, for the instance and its compute."""
    rows = []
    for profile, gi in cut_.instances:
        first = 3 + 135 * minor + 9 * gi
        numbers = seen[gi] if seen else (first, first + 1)
        caps = (f"/dev/nvidia-caps/nvidia-cap{number}" for number in numbers)
        name = f"{CARDS[model].profile_prefix}_{profile}" if profile in PREFIXED else profile
        rows.append(Row(name, (f"/dev/nvidia{minor}", *caps), cores))
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
