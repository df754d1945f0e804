"""Rows derived from reading NVIDIA's sources: cards that nobody measured, several models, failing half-way."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import pytest
import yaml

from hybridgpu.consumers.kubernetes import Labelled, Node, Refused, consume
from hybridgpu.consumers.kubernetes.devicemap import pools, units
from hybridgpu.consumers.kubernetes.labels import run_discovery
from hybridgpu.consumers.kubernetes.migparted import apply, assert_config, assert_mode, counts_of
from hybridgpu.consumers.kubernetes.migspec import MigEntry, MigFile, read_mig, selected
from hybridgpu.consumers.kubernetes.node import card_of
from hybridgpu.consumers.kubernetes.pluginconfig import read_config
from tests.consumers.kubernetes.tables import DATA, model, named


@cache
def derived(table: str) -> list[dict[str, Any]]:
    """The rows of `derived-TABLE.yaml`, each of which says that it is one."""
    found: list[dict[str, Any]] = yaml.safe_load((DATA / f"derived-{table}.yaml").read_text(encoding="utf-8"))
    assert len(found) > 30 and all(row["derived"] and row["source"] for row in found)
    return found


def node(row: dict[str, Any]) -> Node:
    cards = [
        replace(card_of(model(seen["model"]), index, seen["instances"] if seen["mig"] else None), mig=seen["mig"])
        for index, seen in enumerate(row["cards"])
    ]
    return Node(tuple(cards))


@pytest.mark.parametrize("row", derived("plugin"), ids=named)
def test_the_device_map(row: dict[str, Any]) -> None:
    config = read_config(row["config"]).config
    assert config is not None
    found = units(node(row), config.flags["migStrategy"].value)
    if isinstance(found, str):
        assert (found, None) == (row["error"], row["resources"])
    else:
        counts = {pool.name: len(pool.units) * pool.replicas for pool in pools(found, config.replicated)}
        assert (None, counts) == (row["error"], row["resources"])


@pytest.mark.parametrize("row", [row for row in derived("plugin") if row["error"] or "refused" in row], ids=named)
def test_the_plugin_exits(row: dict[str, Any]) -> None:
    done = consume(row["config"], node(row), {}).plugin
    assert isinstance(done, Refused) and done.words.endswith(row.get("refused") or row["error"])


@pytest.mark.parametrize("row", derived("plugin"), ids=named)
def test_the_labels(row: dict[str, Any]) -> None:
    config = read_config(row["config"]).config
    assert config is not None
    done = run_discovery(config, node(row), {})
    if not isinstance(done, Labelled):
        assert (done.words, {}) == (row["label_error"], row["labels"])
        return
    either = {key.removeprefix("nvidia.com/"): sorted(values) for key, values in done.either.items()}
    labels = {key.removeprefix("nvidia.com/"): value for key, value in done.labels.items()}
    wanted, open_ = row["labels"], row.get("either", {})
    unread = {key for key in labels if key.endswith(".memory") and key not in wanted}
    assert row["label_error"] is None
    assert {key: value for key, value in labels.items() if key not in unread | either.keys()} == wanted
    assert {key: values for key, values in either.items() if key not in unread} == open_


def config_of(row: dict[str, Any]) -> tuple[MigEntry, ...]:
    file = read_mig(row["config"]).file
    assert isinstance(file, MigFile)
    found = selected(file, row["selected"])
    assert not isinstance(found, str)
    return found


def holds(config: tuple[MigEntry, ...], cards: Node) -> bool:
    """What `assert` says: modes first, then instances."""
    return assert_mode(config, cards) is None and assert_config(config, cards) is None


@pytest.mark.parametrize("row", derived("mig"), ids=named)
def test_what_apply_leaves(row: dict[str, Any]) -> None:
    config, before = config_of(row), node(row)
    assert holds(config, before) == row["asserts_before"]
    done = apply(config, before, busy=frozenset(row.get("busy", ())))
    assert [counts_of(card) if card.mig else None for card in done.node.cards] == row["after"]
    assert done.words is None if row["failure"] is None else row["failure"] in (done.words or "")
    assert holds(config, done.node) == row["asserts_after"]
