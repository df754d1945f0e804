"""What tests of devices need: the simulated driver, built, and machines below it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from testbed.driver.machine import Machine
from tests.devices.machines import MACHINES
from tests.simulated import load_driver

Make = Callable[[str], Machine]


@pytest.fixture(scope="session")
def driver() -> None:
    """The simulated driver, in this process and built for others."""
    load_driver()


@pytest.fixture(scope="session")
def shared_machine(driver: None, tmp_path_factory: pytest.TempPathFactory) -> Make:
    """Machines of the table by name, each made once, for tests that only look."""
    made: dict[str, Machine] = {}

    def machine(name: str) -> Machine:
        if name not in made:
            made[name] = MACHINES[name].make(tmp_path_factory.mktemp(name))
        return made[name]

    del driver
    return machine


@pytest.fixture
def make_machine(driver: None, tmp_path: Path) -> Make:
    """A machine of the table for one test, which may break it."""
    del driver
    return lambda name: MACHINES[name].make(tmp_path / name)
