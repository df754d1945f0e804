from __future__ import annotations

import tracemalloc

import pytest
from ClusterShell.NodeSet import NodeSet
from hypothesis import given, settings
from hypothesis import strategies as st

from hybridgpu.inventory.hosts import MOST_NODES, HostlistError, count, expand, fold
from tests.conftest import soak


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("gpu1", ["gpu1"]),
        ("gpu-1.example.org", ["gpu-1.example.org"]),
        ("gpu[001-003]", ["gpu001", "gpu002", "gpu003"]),
        ("gpu[98-101]", ["gpu98", "gpu99", "gpu100", "gpu101"]),
        ("b2,a[3,1-2]", ["b2", "a3", "a1", "a2"]),
        ("r[1-2]n[08-09]x", ["r1n08x", "r1n09x", "r2n08x", "r2n09x"]),
        ("n[0-8/4]", ["n0", "n4", "n8"]),
        ("[7000-7001]", ["7000", "7001"]),
        ("a,a", ["a", "a"]),
    ],
)
def test_hosts_come_in_the_order_written(text: str, hosts: list[str]) -> None:
    assert list(expand(text)) == hosts


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "nothing"),
        ("a,", "comma"),
        (",a", "comma"),
        ("gpu[1-", "partner"),
        ("gpu1]", "partner"),
        ("gpu[]", "no number"),
        ("gpu[a-b]", "no number"),
        ("gpu[1-2-3]", "no number"),
        ("gpu[5-3]", "backwards"),
        ("gpu[1-010]", "digits"),
        ("@all", "groups"),
        ("gpu*", "wildcards"),
        ("a!b", "operations"),
        ("a b", "' '"),
        ("gpu[1-99999999]", "99999999 hosts"),
        ("a[1-9999]b[1-9999]c[1-9999]", "hosts"),
        (f"gpu[0-{MOST_NODES}]", str(MOST_NODES)),
    ],
)
def test_what_is_no_hostlist_says_why(text: str, words: str) -> None:
    with pytest.raises(HostlistError, match=words.replace("[", r"\[")):
        expand(text)


def test_a_flood_of_hosts_is_counted_and_not_made() -> None:
    tracemalloc.start()
    with pytest.raises(HostlistError):
        expand("gpu[1-999999999]")
    assert tracemalloc.get_traced_memory()[1] < 100_000
    tracemalloc.stop()
    assert len(expand(f"gpu[1-{MOST_NODES}]")) == MOST_NODES


ranges = st.integers(0, 99).flatmap(lambda low: st.integers(low, low + 12).map(lambda high: f"{low:03}-{high:03}"))
terms = st.tuples(st.sampled_from(["gpu", "n-", "rack1x"]), st.lists(ranges, min_size=1, max_size=3)).map(
    lambda term: f"{term[0]}[{','.join(term[1])}]"
)


@settings(max_examples=soak(100, 5000), derandomize=True, deadline=None)
@given(st.lists(terms, min_size=1, max_size=3))
def test_it_names_the_hosts_that_clustershell_names(parts: list[str]) -> None:
    text = ",".join(parts)
    assert set(expand(text)) == set(NodeSet(text))


@settings(max_examples=soak(300, 20_000), derandomize=True, deadline=None)
@given(st.text("ab01[],-/@*. \n\N{ARABIC-INDIC DIGIT ONE}", max_size=20))
def test_any_other_text_is_refused_in_words(text: str) -> None:
    try:
        hosts = expand(text)
    except HostlistError as error:
        assert str(error)
    else:
        assert all(host.isascii() and "[" not in host for host in hosts)


def test_fold_names_a_few() -> None:
    assert fold([f"n{i}" for i in range(7)]) == "n0, n1, n2, n3, n4 and 2 more"
    assert fold(("a", "a")) == "a"


def test_brackets_without_end_are_counted_without_a_number_of_their_length() -> None:
    with pytest.raises(HostlistError, match="more than"):
        expand("g[1-9]" + "[1-65536]" * 4000)
    assert count("g[1-9]" + "[1-65536]" * 4000) > MOST_NODES
    assert [count(text) for text in ("g1", "g[1-3]x[1-2],h", "g[1", "g[3-1]")] == [1, 7, 0, 0]
