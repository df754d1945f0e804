"""The release records: every major is there, and each says what it should where it was measured."""

from __future__ import annotations

from itertools import pairwise

import pytest

from hybridgpu.consumers.slurm import NEWEST, RELEASES, release

MEASURED = {
    "22.05": ("restart", False, False, False, False),
    "24.11": ("reconfigure", True, True, True, True),
    "26.05": ("reconfigure", True, True, True, False),
}


def test_every_major_is_known_in_order_and_the_newest_is_the_last() -> None:
    assert (
        list(RELEASES) == sorted(RELEASES) == ["22.05", "23.02", "23.11", "24.05", "24.11", "25.05", "25.11", "26.05"]
    )
    assert all(record.major == str(record) == major for major, record in RELEASES.items())
    assert list(RELEASES.values())[-1] is NEWEST


@pytest.mark.parametrize("text", ["24.11", "24.11.5", "24.11.5-4+deb13u1", " 24.11 "])
def test_a_version_is_found_by_its_major(text: str) -> None:
    assert release(text) is RELEASES["24.11"]


@pytest.mark.parametrize("text", ["", "24", "24.1", "24.110", "20.02", "99.05", "x24.11"])
def test_an_unknown_version_is_none(text: str) -> None:
    assert release(text) is None


@pytest.mark.parametrize("major", MEASURED)
def test_what_was_measured_on_the_release(major: str) -> None:
    """A changed Gres= by reload; a second Prolog; split nodes; Cores; the Reason after a resume."""
    r = RELEASES[major]
    assert (
        r.reload,
        r.prolog_lines_add_up,
        r.other_gres_confines,
        r.cores_must_match_sockets,
        r.reason_survives_resume,
    ) == MEASURED[major]


def test_autodetect_by_release() -> None:
    new = [[v for v in r.autodetect if v not in before.autodetect] for before, r in pairwise(RELEASES.values())]
    assert new == [[], ["nrt"], [], ["nvidia"], [], [], ["full"]]
    assert all(r.autodetect_sees_mig[-1] == "nvml" and "off" in r.autodetect for r in RELEASES.values())
