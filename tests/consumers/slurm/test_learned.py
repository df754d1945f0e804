"""What stops slurmd and what does not, as it was run: the same table is held against slurmd itself in tests/slurm."""

from __future__ import annotations

import pytest

from hybridgpu.consumers.slurm import RELEASES, consume, load
from tests.consumers.slurm.learned import ALL, LEARNED


@pytest.mark.parametrize("name", LEARNED)
def test_a_daemon_dies_of_it_where_slurmd_did(name: str) -> None:
    files, dies = LEARNED[name]
    for release in ALL.split():
        read = load(files, from_includer=release == "22.05")
        consumed = consume(read, RELEASES[release])
        result = consumed.nodes.get("n1")
        assert (result is None or result.fatal) == (release in dies.split()), (release, consumed.findings)


@pytest.mark.parametrize("name", [name for name, (_, dies) in LEARNED.items() if dies])
def test_what_stops_a_daemon_is_said_with_its_place(name: str) -> None:
    files, dies = LEARNED[name]
    found = consume(load(files), RELEASES[dies.split()[-1]]).findings
    assert any(finding.place is not None and finding.message for finding in found)
