"""slurmd is the judge: on generated configurations it must die where we say so, and else register what we say."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from hybridgpu.consumers.slurm import RELEASES, consume, load
from testbed.slurm.root import SlurmdReport, SlurmRoot
from tests.conftest import soak
from tests.consumers.slurm.test_consume import FOUND, OFFERS
from tests.consumers.slurm.test_rules import CLEAN, OLDER
from tests.slurm.confgen import Generator, Pair

Row = tuple[str, str | None, int, tuple[str, ...], str | None, str | None]
BATCHES = 2


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


def compare(root: SlurmRoot, pair: Pair) -> bool:
    """Fail where the two differ; gives whether both say that slurmd starts."""
    report = root.slurmd_g(pair.files, pair.node)
    got = None if died(report) else said(report)
    assert got == expected(pair, root.release), f"{pair}\n--- slurmd {root.version} says {report.messages}"
    return got is not None


@pytest.mark.parametrize("batch", range(BATCHES))
def test_slurmd_agrees_on_generated_pairs(
    slurm_root: SlurmRoot, batch: int, record_property: Callable[[str, object], None]
) -> None:
    count, starts = soak(150, 2000) // BATCHES, 0
    for number in range(count):
        rng = random.Random(f"{slurm_root.release} {batch} {number}")
        starts += compare(slurm_root, Generator(rng, damage=rng.choice((0, 0, 1, 1, 2, 3, 5))).pair())
    assert 0 < starts < count
    said_so = f"{count:,} pairs, in {count - starts:,} of them slurmd dies: all as expected"
    record_property("measured", f"Slurm {slurm_root.version}: {said_so}")


@pytest.mark.parametrize("name", FOUND)
def test_slurmd_agrees_on_what_it_taught_us(slurm_root: SlurmRoot, name: str) -> None:
    files, releases, _ = FOUND[name]
    if slurm_root.release in releases.split():
        compare(slurm_root, Pair(files, "n1"))


@pytest.mark.parametrize("name", OFFERS)
def test_slurmd_agrees_on_the_offers_that_are_written_out(slurm_root: SlurmRoot, name: str) -> None:
    compare(slurm_root, Pair(OFFERS[name][0], "n1"))


@pytest.mark.parametrize("name", CLEAN)
def test_slurmd_has_no_word_on_what_we_call_clean(slurm_root: SlurmRoot, name: str) -> None:
    if slurm_root.release > OLDER.get(name, ""):
        report = slurm_root.slurmd_g(CLEAN[name], "n1")
        assert (report.status, report.messages) == (0, ())
