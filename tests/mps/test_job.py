"""Records of jobs: what is written is read again, and what was not written by root is no record."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybridgpu.mps import job
from hybridgpu.mps.job import Job
from hybridgpu.mps.settings import Settings
from tests.conftest import lacking

NUMBERS = st.integers(0, 2**32 - 1)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    if os.geteuid() != 0:
        lacking("needs root: records are root's")
    (tmp_path / "run" / "jobs").mkdir(parents=True)
    return Settings(run=str(tmp_path / "run"))


@given(
    st.builds(
        Job,
        NUMBERS,
        NUMBERS,
        NUMBERS,
        NUMBERS,
        st.lists(st.integers(0, 63), unique=True, max_size=16).map(tuple),
        st.none() | NUMBERS,
        st.sampled_from(["", "mps", "mig"]),
        st.sampled_from(["", "/etc/slurm/slurm.conf", "/a b/slurm=x.conf"]),
        st.none() | st.integers(0, 100),
        st.lists(st.sampled_from(["u1-0", "j7-1", "j7-0+1"]), unique=True).map(tuple),
    )
)
def test_the_text_of_a_record_is_the_record(record: Job) -> None:
    again = job.parsed(record.text(), record.leader, record.job, since=0.0)
    assert [getattr(again, name) for name in Job.__slots__] == [getattr(record, name) for name in Job.__slots__]


def test_a_het_jobs_components_are_found_by_their_leader(settings: Settings) -> None:
    for number, leader in ((12, 12), (13, 12), (1, None), (120, None), (112, None), (14, 13)):
        job.write(settings, Job(number, 0, 1001, 1001, (0,), leader=leader))
    assert [record.job for record in job.candidates(settings, 12)] == [12, 13]
    assert [record.job for record in job.candidates(settings, 1)] == [1]
    assert [record.job for record in job.candidates(settings, 2)] == []


@pytest.mark.parametrize("name", ["", "x", "12+", "+12", "12+x", ".12.5.6", "1 2", "١٢", "-1", "12+13+14"])
def test_other_names_are_no_records(settings: Settings, name: str) -> None:
    assert job.number_of(name) is None
    assert job.read(settings, name) is None


@pytest.mark.parametrize("text", ["", "job=12", "job=13\nuid=1\n", "job=12\nuid=x\n", "job=12\nuid=1\ngpus=a\n", "\0"])
def test_what_is_cut_off_is_no_record(settings: Settings, text: str) -> None:
    Path(settings.jobs, "12").write_text(text)
    assert job.read(settings, "12") is None


def test_what_others_may_write_is_no_record(settings: Settings, tmp_path: Path) -> None:
    text = Job(12, 0, 1001, 1001, (0,)).text()
    path = Path(settings.jobs, "12")
    path.write_text(text)
    assert job.read(settings, "12") is not None
    path.chmod(0o666)
    assert job.read(settings, "12") is None
    path.chmod(0o644)
    os.chown(path, 1001, 1001)
    assert job.read(settings, "12") is None
    path.unlink()
    (tmp_path / "12").write_text(text)
    path.symlink_to(tmp_path / "12")
    assert job.read(settings, "12") is None


def test_a_record_is_read_by_everybody_and_removed_once(settings: Settings) -> None:
    record = Job(12, 0, 1001, 1001, (0,))
    before = os.umask(0o077)
    try:
        job.write(settings, record)
    finally:
        os.umask(before)
    assert Path(settings.jobs, "12").stat().st_mode & 0o777 == 0o644
    for _ in range(2):
        job.remove(settings, record)
    assert job.names(settings) == []


def test_a_reason_is_one_line_and_short(settings: Settings) -> None:
    job.write(settings, Job(12, 0, 1001, 1001, (0,), why="a\ndaemon=j1\x85b=c" + "x" * 1000))
    found = job.read(settings, "12")
    assert found is not None
    assert found.why.startswith("a?daemon=j1?b=cxx")
    assert (len(found.why), found.daemons) == (500, ())
