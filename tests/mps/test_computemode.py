"""Compute modes, against the simulated driver: what is set is what the card has, and every error says which."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hybridgpu.mps.computemode import DEFAULT, EXCLUSIVE_PROCESS, ComputeModes
from hybridgpu.mps.trouble import Trouble
from testbed.driver import library
from testbed.driver.machine import Machine
from tests.devices.machines import MACHINES
from tests.simulated import load_driver

CUT, WHOLE = 0, 1
"""The cards of the machine used: one in MIG mode, one not."""


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    load_driver()
    made = MACHINES["a30-mig"].make(tmp_path)
    monkeypatch.setenv(library.ROOT, str(made.root))
    return made


def cards(machine: Machine) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = machine.show()["gpus"]
    return found


def uuid(machine: Machine, number: int) -> str:
    return str(cards(machine)[number]["uuid"])


def test_a_mode_is_set_and_put_back_on_its_card_alone(machine: Machine) -> None:
    whole = uuid(machine, WHOLE)
    with ComputeModes(str(library.LIBRARY)) as modes:
        assert modes.get(whole) == DEFAULT
        modes.set(whole, EXCLUSIVE_PROCESS)
        assert modes.get(whole) == EXCLUSIVE_PROCESS
    assert [card["compute_mode"] for card in cards(machine)] == ["default", "exclusive_process"]
    with ComputeModes(str(library.LIBRARY)) as modes:
        assert modes.get(whole) == EXCLUSIVE_PROCESS
        modes.set(whole, DEFAULT)
    assert [card["compute_mode"] for card in cards(machine)] == ["default", "default"]


@pytest.mark.parametrize(
    ("number", "act", "why"),
    [
        (CUT, lambda modes, card: modes.set(card, EXCLUSIVE_PROCESS), "compute mode 3 for GPU-.*: Not Supported .*3"),
        (WHOLE, lambda modes, card: modes.set(card, 7), "compute mode 7 for GPU-.*: Invalid Argument"),
        (WHOLE, lambda modes, card: modes.get(card[:-1]), "card GPU-.*: Not Found"),
        (WHOLE, lambda modes, _: modes.get(""), "card : "),
        (WHOLE, lambda modes, _: modes.set("GPU-ä", DEFAULT), "card GPU-ä: "),
    ],
)
def test_what_the_driver_refuses_is_told_with_the_card(
    number: int, act: Callable[[ComputeModes, str], object], why: str, machine: Machine
) -> None:
    with ComputeModes(str(library.LIBRARY)) as modes, pytest.raises(Trouble, match=f"^{why}"):
        act(modes, uuid(machine, number))
    assert [card["compute_mode"] for card in cards(machine)] == ["default", "default"]


@pytest.mark.parametrize(
    ("plan", "why"),
    [
        ("nvmlDeviceGetHandleByUUID@1=GPU_IS_LOST", "card {uuid}: GPU is lost (NVML error 15)"),
        ("nvmlDeviceGetComputeMode@1=UNKNOWN", "compute mode of {uuid}: Unknown Error (NVML error 999)"),
        (
            "nvmlDeviceSetComputeMode@1=NO_PERMISSION",
            "compute mode 3 for {uuid}: Insufficient Permissions (NVML error 4)",
        ),
    ],
)
def test_each_call_may_fail(plan: str, why: str, machine: Machine) -> None:
    card = uuid(machine, WHOLE)
    assert library.load().gpusim_faults(plan.encode()) == 0
    try:
        with pytest.raises(Trouble) as raised, ComputeModes(str(library.LIBRARY)) as modes:
            modes.get(card)
            modes.set(card, EXCLUSIVE_PROCESS)
    finally:
        library.load().gpusim_faults(None)
    assert str(raised.value) == why.format(uuid=card)


def test_a_driver_that_is_not_loaded_is_trouble(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load_driver()
    monkeypatch.setenv(library.ROOT, str(tmp_path))
    with pytest.raises(Trouble, match=r"^NVML does not start: Driver Not Loaded \(NVML error 9\)$"):
        ComputeModes(str(library.LIBRARY))


@pytest.mark.parametrize(("name", "why"), [("libno-such.so.1", "cannot be used"), ("libc.so.6", "cannot be used")])
def test_without_the_driver_it_is_trouble(name: str, why: str) -> None:
    with pytest.raises(Trouble, match=f"^{name} {why}: .*is NVIDIA's driver installed"):
        ComputeModes(name)
