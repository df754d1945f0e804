"""Every row of the measured tables predicted: what the device plugin, feature discovery and MPS daemon did."""

from __future__ import annotations

import re
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest

from hybridgpu.consumers.kubernetes import Labelled, MpsRuns, Node, PluginRuns, Refused, Waits, consume, node_of
from hybridgpu.consumers.kubernetes.container import Container
from hybridgpu.consumers.kubernetes.devicemap import pools, units
from hybridgpu.consumers.kubernetes.labels import run_discovery
from hybridgpu.consumers.kubernetes.pluginconfig import read_config
from hybridgpu.consumers.kubernetes.replicated import Replicated
from hybridgpu.consumers.kubernetes.settings import PLUGIN, Settings, settings
from tests.consumers.kubernetes.tables import A100, FOUR_A100, named, rows

SHARING_LABELS = re.compile(
    r"nvidia\.com/(.*\.(product|count|replicas|sharing-strategy)|mps\.capable|mig\.strategy)", re.A
)


def variables(row: dict[str, Any]) -> dict[str, str]:
    found: dict[str, str] = row.get("flags", {}).get("env", {})
    return found


def container(answer: Container | str) -> dict[str, str] | str:
    """The answer as the table has it: UUIDs made equal, a refusal after `error: `."""
    if isinstance(answer, str):
        return f"error: {answer}"
    return {name: re.sub(r"GPU-\d+", "GPU-uuid", value) for name, value in answer.env.items()}


@pytest.mark.parametrize("row", rows("device-plugin"), ids=named)
def test_the_device_plugin(row: dict[str, Any]) -> None:
    done = consume(row["config"], FOUR_A100, variables(row)).plugin
    nothing: dict[str, Any] = {"warnings": [], "advertised": {}}
    match done:
        case Refused():
            got = {"exit": 1, "error": str(done), **nothing}
        case Waits():
            got = {"exit": None, "error": done.words, **nothing}
        case PluginRuns():
            offered = {"warnings": list(done.warnings), "advertised": done.offer.allocatable}
            got = {"exit": None, "error": None, **offered}
    assert got == {key: row["plugin"][key] for key in got}


@pytest.mark.parametrize("row", rows("device-plugin"), ids=named)
def test_what_a_container_gets(row: dict[str, Any]) -> None:
    """Two devices of a shared resource may be of one card or of two: the kubelet chose, the table does not say."""
    done = consume(row["config"], FOUR_A100, variables(row))
    if done.allocator is None:
        assert row["plugin"]["allocate_one"] is row["plugin"]["allocate_two"] is None
        return
    assert isinstance(done.plugin, PluginRuns)
    (resource,) = done.plugin.offer.resources
    assert container(done.allocator.allocate(resource.name, [("0", 0)])) == row["plugin"]["allocate_one"]
    of_two_cards = container(done.allocator.allocate(resource.name, [("0", 0), ("1", 0)]))
    of_one_card = [("0", 0), ("0", resource.replicas - 1)] if resource.replicas > 1 else [("0", 0), ("1", 0)]
    assert row["plugin"]["allocate_two"] in (
        of_two_cards,
        container(done.allocator.allocate(resource.name, of_one_card)),
    )


@pytest.mark.parametrize("row", rows("device-plugin"), ids=named)
def test_feature_discovery(row: dict[str, Any]) -> None:
    done = consume(row["config"], FOUR_A100, variables(row)).discovery
    if isinstance(done, Refused):
        got: dict[str, Any] = {"exit": 1, "error": str(done), "labels": {}}
    else:
        labels = {key: value for key, value in done.labels.items() if SHARING_LABELS.fullmatch(key)}
        got = {"exit": 0, "error": None, "labels": labels}
        assert not done.either
    assert got == row["gfd"]


@pytest.mark.parametrize("row", [row for row in rows("device-plugin") if "mps_daemon" in row], ids=named)
def test_the_mps_daemon(row: dict[str, Any]) -> None:
    done = consume(row["config"], FOUR_A100, variables(row)).mps
    if isinstance(done, MpsRuns):
        commands = sorted(command for daemon in done.daemons for command in daemon.commands)
        got: dict[str, Any] = {"exit": None, "error": None, "commands": commands}
    else:
        got = {"exit": 1, "error": str(done), "commands": []}
    assert got == row["mps_daemon"]


def block(replicated: Replicated | None) -> dict[str, Any] | None:
    if replicated is None:
        return None
    entries = [
        {
            "name": entry.name,
            "rename": replicated.shared_as(entry) if replicated.rename_by_default else None,
            "replicas": entry.replicas,
        }
        for entry in replicated.entries
    ]
    return {"resources": entries}


@pytest.mark.parametrize("row", rows("plugin-config"), ids=named)
def test_the_config_alone(row: dict[str, Any]) -> None:
    """Further files that NVIDIA's own parser was run on: its words, or what it made of them."""
    reading = read_config(row["config"])
    assert (reading.refused.words if reading.refused else None) == row["error"]
    if reading.config is None:
        return
    values = settings(reading.config, PLUGIN, {})
    assert isinstance(values, Settings)
    wanted = deepcopy(row["parsed"])
    fail = {name: b.pop("fail") for name in ("time_slicing", "mps") if (b := wanted[name]) is not None and "fail" in b}
    assert wanted == {
        "mig_strategy": values.text("migStrategy"),
        "fail_on_init_error": values.on("failOnInitError"),
        "mps_root": values.text("mpsRoot"),
        "pass_device_specs": values.on("passDeviceSpecs"),
        "device_list_strategy": list(values.words("deviceListStrategy")),
        "time_slicing": block(reading.config.time_slicing),
        "mps": block(reading.config.mps),
        "channels": list(values.numbers("channelIDs")),
    }
    if reading.config.replicated:
        assert bool(fail["mps" if reading.config.mps else "time_slicing"]) == reading.config.fail_above_one


def mig_node(row: dict[str, Any]) -> Node:
    cards = node_of(A100, len(row["cards"]), {i: card["instances"] for i, card in enumerate(row["cards"])}).cards
    return Node(tuple(replace(card, mig=seen["mig"]) for card, seen in zip(cards, row["cards"], strict=True)))


@pytest.mark.parametrize("row", rows("mig-nodes"), ids=named)
def test_cards_that_are_cut(row: dict[str, Any]) -> None:
    """Device map and labels of nodes with MIG, as NVIDIA's own packages gave them over a mock of NVML."""
    config = read_config(row["config"]).config
    assert config is not None
    node = mig_node(row)
    found = units(node, config.flags["migStrategy"].value)
    if isinstance(found, str):
        assert (found, None) == (row["error"], row["resources"])
    else:
        counts = {pool.name: len(pool.units) * pool.replicas for pool in pools(found, config.replicated)}
        assert (None, counts) == (row["error"], row["resources"])
    done = run_discovery(config, node, {})
    if isinstance(done, Labelled):
        labels = {key.removeprefix("nvidia.com/"): value for key, value in done.labels.items()}
        assert (None, labels) == (row["label_error"], row["labels"])
    else:
        assert (done.words, {}) == (row["label_error"], row["labels"])
