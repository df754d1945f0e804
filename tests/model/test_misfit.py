"""What people ask of MIG and cannot have, and that the refusal says precisely why."""

from __future__ import annotations

import pytest

from hybridgpu.model.catalogue import NotFound, find
from hybridgpu.model.geometry import Misfit, arrange


@pytest.mark.parametrize(
    ("name", "wanted", "says"),
    [
        (
            "A100-80GB",
            {"3g.40gb": 2, "1g.10gb": 1},
            ["9 of 8 memory slices", "fit of it: 2 x 3g.40gb or 1 x 3g.40gb + 1 x 1g.10gb"],
        ),
        ("A100-40GB", {"1g.10gb": 7}, ["at most 4 of 1g.10gb", "2 memory slices", "4 x 1g.10gb"]),
        ("A100-80GB", {"4g.40gb": 2}, ["at most 1 of 4g.40gb", "from slice 0"]),
        ("A100-80GB", {"7g.80gb": 1, "1g.10gb": 1}, ["9 of 8 memory slices", "7g.80gb 8"]),
        ("H100-80GB", {"2g.20gb": 4}, ["at most 3 of 2g.20gb", "from slice 0 or 2 or 4"]),
        ("A100-80GB", {"2g.20gb": 3, "1g.10gb": 2}, ["places overlap", "1g.10gb 1 memory slice from slice 0 to 6"]),
        ("A100-80GB", {"1g.10gb": 7, "1g.20gb": 1}, ["9 of 8"]),
        ("A100-80GB", {"1g.10gb": 8}, ["at most 7 of 1g.10gb"]),
        ("A100-80GB", {"1g.10gb+me": 2}, ["at most 1 of 1g.10gb+me"]),
        ("A30", {"3g.24gb": 1}, ["A30 has no profile 3g.24gb", "4g.24gb"]),
        ("A30", {"1g.6gb+me": 1, "2g.12gb+me": 1}, ["only one instance", "optical flow"]),
        ("A100-80GB", {"1g.5gb": 7}, ["A100-SXM4-80GB has no profile 1g.5gb", "1g.10gb"]),
        ("A100-80GB", {"1g.5gb": 1, "3g.20gb": 1}, ["no profile 1g.5gb or 3g.20gb"]),
        ("A100-80GB", {"1g.10gb.me": 1}, ["no profile 1g.10gb.me"]),
        ("V100-SXM2-32GB", {"1g.10gb": 7}, ["cannot be cut from V100-SXM2-32GB", "no MIG"]),
        ("A100-SXM-64GB", {"1g.8gb": 7}, ["never published"]),
        ("RTX-PRO-6000", {"1g.24gb+me.all": 1, "1g.24gb": 1}, ["4 video decoders", "1g.24gb+me.all 4"]),
        ("RTX-PRO-6000", {"1g.24gb+me": 1, "2g.48gb+me.all": 1}, ["optical flow"]),
        ("RTX-PRO-6000", {"2g.48gb": 2, "1g.24gb": 1}, ["15 of 12 memory slices"]),
        ("A100-80GB", {"1g.10gb": -1}, ["cannot be negative"]),
        ("A100-80GB", {"1g.10gb": 10**12}, ["at most 7", "7 x 1g.10gb"]),
    ],
)
def test_a_refusal_says_why(name: str, wanted: dict[str, int], says: list[str]) -> None:
    model = find(name)
    assert not isinstance(model, NotFound)
    found = arrange(model, wanted)
    assert isinstance(found, Misfit)
    for words in (*says, *wanted):
        assert words in found.reason
    assert "\n" not in found.reason


@pytest.mark.parametrize(
    ("name", "asked", "nearest"),
    [
        ("A100-80GB", "1g.5gb", "1g.10gb"),
        ("A100-40GB", "3g.40gb", "3g.20gb"),
        ("A100-80GB", "1g.5gb+me", "1g.10gb+me"),
        ("A100-80GB", "1g.10gb.me", "1g.10gb+me"),
        ("H100-NVL", "7g.80gb", "7g.94gb"),
        ("A30", "3g.24gb", "4g.24gb"),
        ("H200", "1g.18g", "1g.18gb"),
    ],
)
def test_an_unknown_profile_leads_to_the_one_meant(name: str, asked: str, nearest: str) -> None:
    model = find(name)
    assert not isinstance(model, NotFound)
    found = arrange(model, {asked: 1})
    assert isinstance(found, Misfit)
    assert found.nearest[0] == nearest


def test_a_profile_like_nothing_has_no_nearest() -> None:
    model = find("A30")
    assert not isinstance(model, NotFound)
    found = arrange(model, {"everything": 1})
    assert isinstance(found, Misfit)
    assert found.nearest == ()


def test_nothing_asked_is_nothing_made() -> None:
    model = find("A30")
    assert not isinstance(model, NotFound)
    assert arrange(model, {}) == ()
    assert arrange(model, {"1g.6gb": 0}) == ()
