"""What is said of each card of a node on which one is dead. Pure: no driver."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hybridgpu.devices.nodeconfig import NodeWanted, read_node_config
from hybridgpu.devices.outcome import State
from hybridgpu.devices.port import CardReading, MigMode, Unread
from hybridgpu.devices.withdead import outcomes
from tests.devices.test_factsof import card, kernel_cards, observed
from tests.devices.test_nodeconfig import rendered

LOST, RESET = Unread("nvmlDeviceGetName", "GPU_IS_LOST"), Unread("nvmlDeviceGetName", "RESET_REQUIRED")
ADDRESSES = [f"0000:0{bus}:00.0" for bus in range(1, 5)]


def wanted(folder: Path) -> NodeWanted:
    found, _ = read_node_config("node.json", rendered("exclusive", folder))
    assert found is not None
    return found


def without_instances(number: int) -> CardReading:
    return card(number, mig=MigMode(True, True))


@pytest.mark.parametrize(
    ("second", "state", "why"),
    [
        ({"name": LOST}, State.NEEDS_REBOOT, "nvmlDeviceGetName answered GPU_IS_LOST"),
        ({"name": RESET}, State.NEEDS_RESET, "nvmlDeviceGetName answered RESET_REQUIRED"),
        ({"name": replace(LOST, answer="TIMEOUT")}, State.UNREAD, "nvmlDeviceGetName answered TIMEOUT"),
    ],
)
def test_the_others_wait_where_they_must_change(second: dict[str, Any], state: State, why: str, tmp_path: Path) -> None:
    told = [card(0), card(1, **second), without_instances(2), card(3, compute_mode="prohibited")]
    found = outcomes(wanted(tmp_path), observed(told))
    assert [outcome.state for outcome in found] == [State.AS_WANTED, state, State.WAITING, State.WAITING]
    bad = "it waits for GPU 1 at 0000:02:00.0 (GPU-1): "
    assert [outcome.why for outcome in found] == [
        "",
        why,
        f"{bad}MIG is on; the NodeConfig says off",
        f"{bad}its compute mode is prohibited",
    ]
    assert [(o.card.index, o.card.minor, o.card.pci_bus_id) for o in found] == [
        (at, at, address) for at, address in enumerate(ADDRESSES)
    ]


def test_a_card_that_only_the_kernel_has_keeps_its_index(tmp_path: Path) -> None:
    told = [card(1), card(2), card(3)]
    found = outcomes(wanted(tmp_path), observed(told, cards=kernel_cards(*ADDRESSES)))
    assert [outcome.state for outcome in found] == [State.NEEDS_REBOOT, *[State.AS_WANTED] * 3]
    assert str(found[0].card) == "GPU 0 at 0000:01:00.0 (GPU-x)"
    assert found[0].why == "the kernel's driver has it, and NVML does not show it"
