"""What `hybridgpu node apply` refuses by the NodeConfig alone, before it looks at a card."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.cli.test_apply import INVENTORY, Node, node
from tests.devices.test_nodeconfig import rendered

__all__ = ["node"]


def of_n2(record: dict[str, Any]) -> None:
    record["node"] = record["kubernetes_name"] = "n2"
    record["addresses"] = {}


def twice(record: dict[str, Any]) -> None:
    record["devices"][1]["placement"] = record["devices"][0]["placement"]


def unknown(record: dict[str, Any]) -> None:
    record["devices"][0]["profile"] = "foo"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (of_n2, "it is for n2; this host is "),
        (twice, "devices[1] is the same instance as devices[0]"),
        (unknown, "devices[0].profile is 'foo'; allowed on A30: 1g.6gb, "),
    ],
)
@pytest.mark.parametrize("arguments", [[], ["--dry-run"], ["--boot"]])
def test_a_config_that_is_not_for_these_cards_changes_nothing(
    node: Node, change: Callable[[dict[str, Any]], None], said: str, arguments: list[str]
) -> None:
    assert node.report()[0] == 0
    cut, devices = node.cut(), node.map.read_bytes()
    inventory = INVENTORY.format(sharing="{mode: mig, layout: {all: {2g.12gb: 2}}}")
    record = json.loads(rendered("", node.folder, inventory))
    change(record)
    (node.folder / "node.json").write_text(json.dumps(record))
    run = node.apply(*arguments)
    assert (run.returncode, run.stdout) == (1, "")
    assert f"{node.folder}/node.json:1:1: error: {said}" in run.stderr
    assert (node.cut(), node.map.read_bytes()) == (cut, devices)
