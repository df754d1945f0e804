"""Hosts found by a hostlist: the same as by expanding it, and fast however much it names."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybridgpu.inventory.hostindex import HostIndex
from hybridgpu.inventory.hosts import HostlistError, expand
from tests.conftest import soak

names = st.from_regex(r"[gz][0-9]{0,3}([x-][0-9]{0,2})?", fullmatch=True)
numbers = st.integers(0, 120)
spans = st.builds(
    lambda low, more, width, step: f"{low:0{width}}-{low + more:0{width}}/{step}",
    *(numbers, numbers, st.integers(1, 4), st.integers(1, 3)),
)
brackets = st.lists(spans, min_size=1, max_size=2).map(lambda many: f"[{','.join(many)}]")
heads, tails = st.sampled_from(["g", "z", "z1", "g-"]), st.sampled_from(["", "x", "7", "x[1-3]"])
terms = st.tuples(heads, brackets, tails).map("".join)


@settings(max_examples=soak(300, 20_000), derandomize=True, deadline=None)
@given(st.lists(names, max_size=40, unique=True), st.lists(st.one_of(terms, names), min_size=1, max_size=3))
def test_the_hosts_found_are_those_that_the_list_names(hosts: list[str], parts: list[str]) -> None:
    try:
        named = set(expand(",".join(parts)))
    except HostlistError:
        return
    assert set(HostIndex(hosts).named_by(",".join(parts), 10_000)) == named & set(hosts)


def test_no_more_are_found_than_asked_for() -> None:
    assert HostIndex(f"g{n}" for n in range(9)).named_by("g[1-8]", 2) == ["g1", "g2"]
    with pytest.raises(HostlistError):
        HostIndex(()).named_by("g[1-99999999]", 2)


@pytest.mark.parametrize(
    "hosts", ["z[1-65536]", "g[1-65536]", "z[1-30000],y[1-30000]", "z[1-65536]x", "z[1-99]n[1-99]"]
)
def test_hundreds_of_long_lists_are_no_matter(hosts: str) -> None:
    index = HostIndex(expand("g[1-60000]"))
    start = time.process_time()
    for _ in range(500):
        index.named_by(hosts, 6)
    assert time.process_time() - start < 1
