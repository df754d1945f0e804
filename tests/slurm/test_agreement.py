"""slurmd is the judge: on generated configurations it must die where we say so, and else register what we say."""

from __future__ import annotations

import random

import pytest

from hybridgpu.consumers.slurm import RELEASES, consume, load
from testbed.slurm.root import SUITES, SlurmdReport, SlurmRoot
from tests.conftest import soak
from tests.slurm.confgen import Generator, Pair

Row = tuple[str, str | None, int, tuple[str, ...], str | None, str | None]
BATCHES = 10


def said(report: SlurmdReport) -> list[Row]:
    return [(r.name, r.type, r.count, r.files, r.cores, r.links) for r in report.records]


def expected(pair: Pair, release: str) -> list[Row] | None:
    """Our rows in slurmd's order (it prints no cores for a record without files); None where slurmd dies."""
    result = consume(load(pair.files), RELEASES[release]).nodes.get(pair.node)
    if result is None or result.fatal:
        return None
    return [(r.name, r.type, r.count, r.files, r.cores if r.files else None, r.links) for r in result.registered]


def died(report: SlurmdReport) -> bool:
    """Whether slurmd would not start.

    -G does not look at what the loading of gres.conf returns, and slurmd does (slurmd.c _slurmd_init): from 23.02 a
    GRES without a plugin may not name a file twice. Run on 24.11 and 26.05: "slurmd initialization failed".
    """
    return report.died or any("duplicate device file name" in message for message in report.messages)


@pytest.mark.slurm
@pytest.mark.parametrize("release", SUITES)
@pytest.mark.parametrize("batch", range(BATCHES))
def test_slurmd_agrees(release: str, batch: int) -> None:
    missing = SlurmRoot.missing(release)
    if missing:
        pytest.skip(missing)
    root = SlurmRoot.for_version(release)
    for number in range(soak(150, 2000) // BATCHES):
        rng = random.Random(f"{release} {batch} {number}")
        pair = Generator(rng, damage=rng.choice((0, 0, 1, 1, 2, 3, 5))).pair()
        report = root.slurmd_g(pair.files, pair.node)
        want = expected(pair, release)
        got = None if died(report) else said(report)
        assert got == want, f"{pair}\n--- slurmd {root.version} says {report.messages}"
