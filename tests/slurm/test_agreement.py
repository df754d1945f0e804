"""slurmd is the judge: on generated configurations it must die where we say so, and else register what we say.

A third of the pairs is right, a third has one mistake, a third three to eight. HYBRIDGPU_FUZZ=1 (`make fuzz`) takes
20,000 of each release, or the number given; HYBRIDGPU_SEED another seed than 0.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from hybridgpu.consumers.slurm import RELEASES, Consumption, consume, load
from testbed.slurm.root import FIRST, SlurmdReport, SlurmRoot
from tests.consumers.slurm.learned import LEARNED
from tests.consumers.slurm.test_consume import FOUND, OFFERS
from tests.consumers.slurm.test_rules import CLEAN, OLDER
from tests.slurm.confgen import Generator, Pair

Row = tuple[str, str | None, int, tuple[str, ...], str | None, str | None]

_FUZZ = int(os.environ.get("HYBRIDGPU_FUZZ", "0"))
SEED = os.environ.get("HYBRIDGPU_SEED", "0")
COUNT = 2000 if not _FUZZ else 20_000 if _FUZZ == 1 else _FUZZ
BATCH = 250
MISSING = 3
DAMAGE = (0, 0, 1, 1, 3, 8)


def rows(report: SlurmdReport) -> list[Row]:
    """What slurmd says; it prints the cores of some records without files, and of others not."""
    return [(r.name, r.type, r.count, r.files, r.cores if r.files else None, r.links) for r in report.records]


def judged(root: SlurmRoot, pair: Pair) -> Consumption:
    """The very files that slurmd reads; up to 22.05 it looks for an Include beside the file that includes."""
    files = load(root.with_settings(pair.files), FIRST, from_includer=root.release == "22.05")
    return consume(files, RELEASES[root.release])


def expected(root: SlurmRoot, pair: Pair) -> list[Row] | None:
    """Our rows in slurmd's order; None where slurmd dies."""
    result = judged(root, pair).nodes.get(pair.node)
    if result is None or result.fatal:
        return None
    return [(r.name, r.type, r.count, r.files, r.cores if r.files else None, r.links) for r in result.registered]


def died(report: SlurmdReport) -> bool:
    """Whether slurmd would not start.

    -G does not look at what the loading of gres.conf returns, and slurmd does (slurmd.c _slurmd_init): from 23.02 a
    GRES without a plugin may not name a file twice. Run on 24.11 and 26.05: "slurmd initialization failed".
    """
    return report.died or any("duplicate device file name" in message for message in report.messages)


def compare(root: SlurmRoot, pair: Pair, name: object = "") -> bool:
    """Fail where the two differ; gives whether both say that slurmd starts."""
    report = root.slurmd_g(pair.files, pair.node)
    got = None if died(report) else rows(report)
    assert got == expected(root, pair), f"{name}\n{pair}\n--- slurmd {root.version} says {report.messages}"
    return got is not None


def drawn(release: str, number: int, missing: bool = False) -> Pair:
    """One pair, the same at every run."""
    rng = random.Random(f"{SEED} {release} {number} {missing}")
    least, most = rng.choice(((0, 0), (1, 1), (3, 8)))
    return Generator(rng, rng.randint(least, most)).pair(missing)


@pytest.mark.parametrize("batch", range(-(-COUNT // BATCH)))
def test_slurmd_agrees_on_generated_pairs(
    slurm_root: SlurmRoot, batch: int, record_property: Callable[[str, object], None]
) -> None:
    numbers = range(batch * BATCH, min(COUNT, (batch + 1) * BATCH))
    starts = sum(compare(slurm_root, drawn(slurm_root.release, n), f"seed {SEED} {n}") for n in numbers)
    assert 0 < starts < len(numbers)
    said_so = f"{len(numbers):,} pairs, in {len(numbers) - starts:,} of them slurmd dies: all as expected"
    record_property("measured", f"Slurm {slurm_root.version}: {said_so}")


def test_slurmd_dies_of_a_device_that_is_not_there_and_waits_before(slurm_root: SlurmRoot) -> None:
    """We do not look at the disk: a record whose file is missing is taken as it stands. Each costs slurmd 20 s."""
    pairs = [drawn(slurm_root.release, number, missing=True) for number in range(MISSING)]
    with ThreadPoolExecutor(MISSING) as threads:
        reports = list(threads.map(lambda pair: slurm_root.slurmd_g(pair.files, pair.node), pairs))
    for pair, report in zip(pairs, reports, strict=True):
        waited = any("/dev/nvidia99" in message for message in report.messages)
        assert report.died and waited == (not judged(slurm_root, pair).fatal), f"{pair}\n{report.messages}"


@pytest.mark.parametrize("name", FOUND)
def test_slurmd_agrees_on_what_it_taught_us(slurm_root: SlurmRoot, name: str) -> None:
    files, releases, _ = FOUND[name]
    if slurm_root.release in releases.split():
        compare(slurm_root, Pair(files, "n1"))


@pytest.mark.parametrize("name", LEARNED)
def test_slurmd_agrees_on_what_stops_it_and_what_does_not(slurm_root: SlurmRoot, name: str) -> None:
    files, dies = LEARNED[name]
    starts = compare(slurm_root, Pair(files, "n1"), name)
    assert starts == (slurm_root.release not in dies.split())


@pytest.mark.parametrize("name", OFFERS)
def test_slurmd_agrees_on_the_offers_that_are_written_out(slurm_root: SlurmRoot, name: str) -> None:
    compare(slurm_root, Pair(OFFERS[name][0], "n1"))


@pytest.mark.parametrize("name", CLEAN)
def test_slurmd_has_no_word_on_what_we_call_clean(slurm_root: SlurmRoot, name: str) -> None:
    if slurm_root.release > OLDER.get(name, ""):
        report = slurm_root.slurmd_g(CLEAN[name], "n1")
        assert (report.status, report.messages) == (0, ())
