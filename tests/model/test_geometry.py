"""Layouts against an enumeration of their own: every set of places, straight from tables written here by hand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import combinations_with_replacement, product
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybridgpu.model.catalogue import NotFound, find, models
from hybridgpu.model.geometry import Misfit, arrange, can_add, layouts, leftover
from hybridgpu.model.gpu import GpuModel, Instance, Placement
from hybridgpu.model.packing import fits, gpu_instance_id
from tests.conftest import soak


class Row(NamedTuple):
    compute: int
    starts: tuple[int, ...]
    size: int
    at_most: int
    decoders: int = 0
    ofa: int = 0


# NVIDIA's placement tables (nvidia-smi mig -lgip, -lgipp), in the order in which nvidia-smi lists the profiles
SEVEN_EIGHTHS = [
    Row(1, (0, 1, 2, 3, 4, 5, 6), 1, 7),
    Row(1, (0, 1, 2, 3, 4, 5, 6), 1, 1, ofa=1),
    Row(1, (0, 2, 4, 6), 2, 4),
    Row(2, (0, 2, 4), 2, 3),
    Row(3, (0, 4), 4, 2),
    Row(4, (0,), 4, 1),
    Row(7, (0,), 8, 1, ofa=1),
]
FOUR_QUARTERS = [
    Row(1, (0, 1, 2, 3), 1, 4),
    Row(1, (0, 1, 2, 3), 1, 1, ofa=1),
    Row(2, (0, 2), 2, 2),
    Row(2, (0, 2), 2, 1, ofa=1),
    Row(4, (0,), 4, 1, ofa=1),
]
TWELVE_UNITS = [
    Row(1, (0, 3, 6, 9), 3, 4, 1),
    Row(1, (0, 3, 6, 9), 3, 1, 1, 1),
    Row(1, (0, 3, 6, 9), 3, 4, 1),
    Row(1, (0, 3, 6, 9), 3, 1, 4, 1),
    Row(1, (0, 3, 6, 9), 3, 4, 0),
    Row(2, (0, 6), 6, 2, 2),
    Row(2, (0, 6), 6, 2, 2),
    Row(2, (0, 6), 6, 1, 4, 1),
    Row(2, (0, 6), 6, 2, 0),
    Row(4, (0,), 12, 1, 4, 1),
    Row(4, (0,), 12, 1, 4, 1),
]
FIVE_THOUSAND = [
    Row(1, (0, 1), 1, 2, 1),
    Row(1, (0, 1), 1, 1, 1, 1),
    Row(1, (0, 1), 1, 2, 1),
    Row(1, (0, 1), 1, 1, 3, 1),
    Row(1, (0, 1), 1, 2, 0),
    Row(2, (0,), 2, 1, 3, 1),
    Row(2, (0,), 2, 1, 3, 1),
]
TABLES = {8: SEVEN_EIGHTHS, 4: FOUR_QUARTERS, 12: TWELVE_UNITS}
WITH_MIG = [model for model in models() if model.has_mig]


def table(model: GpuModel) -> list[Row]:
    if model.slices == 2:
        return (
            FIVE_THOUSAND if len(model.profiles) == 7 else [r for r in FIVE_THOUSAND if r != Row(1, (0, 1), 1, 1, 1, 1)]
        )
    return TABLES[model.slices]


def enumerated(rows: list[Row]) -> set[tuple[int, ...]]:
    """Every legal multiset as counts per row: all sets of places that do not overlap, then counts and engines."""
    places = [(row, set(range(s, s + rows[row].size))) for row in range(len(rows)) for s in rows[row].starts]

    def choose(at: int, taken: set[int], chosen: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        if at == len(places):
            yield chosen
            return
        yield from choose(at + 1, taken, chosen)
        row, slices = places[at]
        if not slices & taken:
            yield from choose(at + 1, taken | slices, (*chosen[:row], chosen[row] + 1, *chosen[row + 1 :]))

    whole = max(rows, key=lambda row: row.size)
    return {
        counts
        for counts in set(choose(0, set(), (0,) * len(rows)))
        if all(n <= row.at_most for n, row in zip(counts, rows, strict=True))
        and sum(n * row.decoders for n, row in zip(counts, rows, strict=True)) <= whole.decoders
        and sum(n * row.ofa for n, row in zip(counts, rows, strict=True)) <= whole.ofa
    }


LEGAL = {len(rows) * 100 + rows[-1].size: enumerated(rows) for rows in (*TABLES.values(), FIVE_THOUSAND)}


def legal(model: GpuModel) -> set[tuple[int, ...]]:
    rows = table(model)
    return LEGAL.get(len(rows) * 100 + rows[-1].size) or enumerated(rows)


def counted(model: GpuModel, names: Counter[str]) -> tuple[int, ...]:
    return tuple(names[profile.name] for profile in model.profiles)


@pytest.mark.parametrize("model", WITH_MIG, ids=lambda m: m.name)
def test_exactly_the_legal_multisets_fit(model: GpuModel) -> None:
    expected = legal(model)
    most = max(sum(counts) for counts in expected)
    fitting = {
        counted(model, Counter(profile.name for profile in chosen))
        for size in range(most + 2)
        for chosen in combinations_with_replacement(model.profiles, size)
        if fits(model, chosen) is not None
    }
    assert fitting == expected


@pytest.mark.parametrize("attributes", [False, True])
@pytest.mark.parametrize("model", WITH_MIG, ids=lambda m: m.name)
def test_layouts_are_the_maximal_legal_multisets_each_once(model: GpuModel, attributes: bool) -> None:
    allowed = [i for i, profile in enumerate(model.profiles) if attributes or not profile.attribute]
    everything = {c for c in legal(model) if all(not n or i in allowed for i, n in enumerate(c))}

    def grown(counts: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        return ((*counts[:i], counts[i] + 1, *counts[i + 1 :]) for i in allowed)

    expected = {counts for counts in everything if not any(more in everything for more in grown(counts))}
    found = [counted(model, Counter(layout.profiles)) for layout in layouts(model, attributes)]
    assert len(found) == len(set(found))
    assert set(found) == expected


@pytest.mark.parametrize("model", WITH_MIG, ids=lambda m: m.name)
def test_layouts_are_placed_as_arrange_places_them(model: GpuModel) -> None:
    for layout in layouts(model, True):
        assert arrange(model, layout.profiles) == layout.instances


def first_places(model: GpuModel, instances: tuple[Instance, ...]) -> tuple[int, ...]:
    """The lowest starts for these profiles, in this order, that do not overlap: tried one after the other."""
    for starts in product(*(instance.profile.starts for instance in instances)):
        taken = [s for i, start in zip(instances, starts, strict=True) for s in range(start, start + i.profile.size)]
        if len(taken) == len(set(taken)):
            return starts
    raise AssertionError(model.name)


@pytest.mark.parametrize("name", ["A100-SXM4-80GB", "A30", "RTX-PRO-6000-Blackwell-Server-Edition"])
def test_places_are_the_lowest_that_let_the_rest_fit_and_the_largest_comes_first(name: str) -> None:
    model = find(name)
    assert not isinstance(model, NotFound)
    cases = sorted(legal(model))
    for counts in cases[:: max(1, len(cases) // soak(60, 100000))]:
        instances = arrange(model, {p.name: n for p, n in zip(model.profiles, counts, strict=True)})
        assert not isinstance(instances, Misfit)
        sizes = [(i.profile.size, i.profile.compute) for i in instances]
        assert sizes == sorted(sizes, reverse=True)
        assert tuple(i.placement.start for i in instances) == first_places(model, instances)


@pytest.mark.parametrize("model", WITH_MIG, ids=lambda m: m.name)
def test_compute_slices_always_suffice_and_leftovers_add_up(model: GpuModel) -> None:
    for layout in layouts(model, True):
        left = leftover(model, layout.instances)
        assert left.compute >= 0
        assert sum(i.placement.size for i in layout.instances) + len(left.memory) == model.slices
        assert len({i.gi for i in layout.instances}) == len(layout.instances)
        assert not can_add(model, layout.instances)


@pytest.mark.parametrize(
    ("name", "wanted", "places", "compute", "memory"),
    [
        ("A100-SXM4-80GB", {"3g.40gb": 2}, [("3g.40gb", 0), ("3g.40gb", 4)], 1, ()),
        ("A100-SXM4-80GB", {"3g.40gb": 1, "4g.40gb": 1}, [("4g.40gb", 0), ("3g.40gb", 4)], 0, ()),
        ("A100-SXM4-80GB", {"1g.10gb": 7}, [("1g.10gb", s) for s in range(7)], 0, (7,)),
        (
            "A100-SXM4-80GB",
            {"2g.20gb": 3, "1g.10gb": 1},
            [*[("2g.20gb", s) for s in (0, 2, 4)], ("1g.10gb", 6)],
            0,
            (7,),
        ),
        ("A100-SXM4-80GB", {"2g.20gb": 3, "1g.20gb": 1}, [*[("2g.20gb", s) for s in (0, 2, 4)], ("1g.20gb", 6)], 0, ()),
        ("H100-80GB-HBM3", {"1g.20gb": 4}, [("1g.20gb", s) for s in (0, 2, 4, 6)], 3, ()),
        (
            "A100-SXM4-80GB",  # the 3g moves to slice 4 because slice 7 is of no use to a 1g
            {"1g.10gb": 2, "2g.20gb": 1, "3g.40gb": 1},
            [("3g.40gb", 4), ("2g.20gb", 0), ("1g.10gb", 2), ("1g.10gb", 3)],
            0,
            (),
        ),
        ("A30", {"1g.6gb": 2, "2g.12gb": 1}, [("2g.12gb", 0), ("1g.6gb", 2), ("1g.6gb", 3)], 0, ()),
        ("RTX-PRO-6000", {"2g.48gb": 1, "1g.24gb": 2}, [("2g.48gb", 0), ("1g.24gb", 6), ("1g.24gb", 9)], 0, ()),
        ("A100-SXM4-40GB", {"7g.40gb": 1, "1g.5gb": 0}, [("7g.40gb", 0)], 0, ()),
    ],
)
def test_a_layout_and_what_it_leaves(
    name: str, wanted: dict[str, int], places: list[tuple[str, int]], compute: int, memory: tuple[int, ...]
) -> None:
    model = find(name)
    assert not isinstance(model, NotFound)
    instances = arrange(model, wanted)
    assert not isinstance(instances, Misfit), instances
    assert [(i.profile.name, i.placement.start) for i in instances] == places
    left = leftover(model, instances)
    assert (left.compute, left.memory) == (compute, memory)


# `nvidia-smi mig -lgi` as published: model, profile, start, size, GPU instance id (cards whose halves are not swapped)
PUBLISHED_IDS = [
    *(("A100-SXM4-40GB", 1, start, 7 + start) for start in range(7)),
    ("A100-SXM4-40GB", 2, 4, 5),
    ("A100-SXM4-40GB", 4, 0, 1),
    ("A100-SXM4-40GB", 4, 4, 2),
    ("A100-SXM4-40GB", 8, 0, 0),
    ("H100-80GB-HBM3", 1, 2, 9),
    ("H100-80GB-HBM3", 1, 3, 10),
    ("H100-80GB-HBM3", 2, 0, 3),
    ("H100-80GB-HBM3", 4, 4, 2),
    *(("A30", 1, start, 3 + start) for start in range(4)),
    ("RTX-PRO-6000", 6, 0, 1),
    *(("RTX-PRO-6000", 3, 3 * n, 3 + n) for n in range(4)),
]


@pytest.mark.parametrize(("name", "size", "start", "expected"), PUBLISHED_IDS)
def test_gpu_instance_ids_are_those_of_published_listings(name: str, size: int, start: int, expected: int) -> None:
    model = find(name)
    assert not isinstance(model, NotFound)
    assert gpu_instance_id(model, Placement(start, size)) == expected


def test_can_add_moves_nothing() -> None:
    model = find("A100-80GB")
    assert not isinstance(model, NotFound)
    instances = arrange(model, {"1g.10gb": 1})
    assert not isinstance(instances, Misfit)
    assert [p.name for p in can_add(model, instances)] == [
        "1g.10gb",
        "1g.10gb+me",
        "1g.20gb",
        "2g.20gb",
        "3g.40gb",
    ]


def test_a_card_without_mig_has_no_layouts() -> None:
    model = find("T4")
    assert not isinstance(model, NotFound)
    assert layouts(model) == ()


@settings(max_examples=soak(60, 2000), deadline=None)
@given(st.data())
def test_whatever_is_asked_is_placed_or_explained(data: st.DataObject) -> None:
    model = data.draw(st.sampled_from(WITH_MIG))
    names = st.sampled_from([p.name for p in model.profiles])
    wanted = data.draw(st.dictionaries(names, st.integers(0, 9), max_size=4))
    found = arrange(model, wanted)
    counts = tuple(wanted.get(profile.name, 0) for profile in model.profiles)
    if isinstance(found, Misfit):
        assert counts not in legal(model)
        assert all(name in found.reason for name in wanted)
        assert model.name in found.reason
    else:
        assert counts in legal(model)
        assert Counter(i.profile.name for i in found) == Counter({n: c for n, c in wanted.items() if c})
