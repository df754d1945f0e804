"""The simulated driver for tests: built, or the test is skipped for what is lacking; and pynvml over a machine."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pynvml

from testbed.driver import library
from testbed.driver.machine import Machine
from tests.conftest import lacking


def load_driver() -> None:
    """The simulated driver, in this process and built for others."""
    missing = [program for program in ("make", "cc") if shutil.which(program) is None]
    if missing:
        lacking(f"the simulated driver is built with {' and '.join(missing)}")
    library.load().gpusim_faults(None)


@contextmanager
def faults(plan: str | None) -> Iterator[None]:
    """The simulated driver with a plan of faults, in this process."""
    assert library.load().gpusim_faults(plan.encode() if plan else None) == 0
    try:
        yield
    finally:
        library.load().gpusim_faults(None)


@contextmanager
def nvml(machine: Machine) -> Iterator[None]:
    """pynvml over a machine, in this process."""
    with library.over(machine.root):
        pynvml.nvmlInit()
        try:
            yield
        finally:
            pynvml.nvmlShutdown()
