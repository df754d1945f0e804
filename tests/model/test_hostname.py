"""Which names mean one host, and which nearly do."""

from __future__ import annotations

import pytest

from hybridgpu.model.hostname import Directory, NearNames, nearly


@pytest.mark.parametrize(
    ("known", "asked", "found"),
    [
        (["gpu01"], "gpu01", "gpu01"),
        (["gpu01"], "GPU01", "gpu01"),
        (["gpu01.example.org"], "gpu01", "gpu01.example.org"),
        (["gpu01"], "gpu01.example.org", "gpu01"),
        (["gpu01.a.org"], "gpu01.b.org", None),
        (["gpu01.a.org", "gpu01.b.org"], "gpu01", None),
        (["gpu01.a.org", "gpu01"], "gpu01", "gpu01"),
        (["gpu01", "gpu02"], "gpu1", None),
        (["10.0.0.1"], "10.0.0.2", None),
        (["10.0.0.1"], "10", None),
    ],
)
def test_names_of_one_host(known: list[str], asked: str, found: str | None) -> None:
    directory: Directory[str] = Directory()
    for name in known:
        directory.add((name,), name)
    assert directory.find((asked,)) == found


@pytest.mark.parametrize(
    ("one", "other", "near"),
    [
        ("gpu1", "gpu01", True),
        ("gpu-01", "gpu01", True),
        ("gup01", "gpu01", True),
        ("gpus01", "gpu01", True),
        ("gpu01.a.org", "gpu01.b.org", True),
        ("gpu01", "gpu02", False),
        ("gpu01", "dgx01", False),
        ("gpua01", "gpub01", False),
        ("gpu01", "gpu10", False),
        ("10.0.0.1", "10.0.0.2", False),
    ],
)
def test_names_that_nearly_are(one: str, other: str, near: bool) -> None:
    assert nearly(one, other) is near
    assert nearly(other, one) is near
    names = NearNames()
    names.add(one)
    assert names.near(other) == (one if near else None)
