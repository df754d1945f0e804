"""What every test may use: how many examples to run, what to do where a machine lacks something, the real programs."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import hypothesis
import pytest

from testbed.kubernetes.programs import Programs
from testbed.kubernetes.server import ApiServer
from testbed.slurm.root import SUITES, SlurmRoot

hypothesis.settings.register_profile("house", derandomize=True, database=None, deadline=None)
hypothesis.settings.load_profile("house")


def soak(sample: int, full: int) -> int:
    """The number of examples to run: `sample` in `make test`, `full` where HYBRIDGPU_SOAK is set."""
    return full if os.environ.get("HYBRIDGPU_SOAK") else sample


@contextmanager
def no_hang(seconds: int = 30) -> Iterator[None]:
    """Ends what runs away with a failure: a guard against hangs, far from any time that is promised."""

    def over(*_: object) -> None:
        raise TimeoutError(f"not done after {seconds} s")

    before = signal.signal(signal.SIGALRM, over)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def lacking(what: str) -> NoReturn:
    """Skip the test for what this machine lacks; where CI is set, which lacks nothing, fail it."""
    if os.environ.get("CI"):
        pytest.fail(f"CI lacks nothing, but: {what}", pytrace=False)
    pytest.skip(what)


def root_of(release: str) -> SlurmRoot:
    """The root with this release of Slurm, built where it is missing; see `lacking` for where it can't be had."""
    missing = SlurmRoot.missing(release)
    if missing:
        lacking(missing)
    return SlurmRoot.for_version(release)


@pytest.fixture(scope="session", params=[pytest.param(release, marks=pytest.mark.slurm) for release in SUITES])
def slurm_root(request: pytest.FixtureRequest) -> SlurmRoot:
    """A root with Slurm, once for each release that there is a root for."""
    return root_of(request.param)


@pytest.fixture(scope="session")
def api_server() -> Iterator[ApiServer]:
    """A live API server, one for all tests of a worker: a test that uses it has the marker `kubernetes`."""
    missing = Programs.missing()
    if missing:
        lacking(missing)
    with ApiServer(Programs.found()) as server:
        yield server
