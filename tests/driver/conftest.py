"""What every test of the simulated driver needs: a compiler, and machines in folders of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from testbed.driver.machine import Machine
from tests.driver.world import Untyped, World, world
from tests.simulated import load_driver, nvml


@pytest.fixture(scope="session", autouse=True)
def driver() -> None:
    load_driver()


@pytest.fixture(scope="session")
def shared_world(tmp_path_factory: pytest.TempPathFactory) -> World:
    with world(tmp_path_factory.mktemp("world")) as made:
        return made


@pytest.fixture(name="world")
def one_world(shared_world: World) -> Iterator[World]:
    """One for all tests that only look; what changes something makes its own. Handles outlive initialisation."""
    with nvml(shared_world.machine):
        yield shared_world


@pytest.fixture(name="make")
def make_machine(tmp_path: Path) -> Callable[..., Machine]:
    """Makes a machine of the models named, or of a whole description."""
    made = 0

    def make(*models: str, **more: Untyped) -> Machine:
        nonlocal made
        made += 1
        return Machine.make(tmp_path / str(made), {"gpus": [{"model": model} for model in models], **more})

    return make
