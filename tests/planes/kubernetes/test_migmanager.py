"""What a Node says of mig-manager, and the patches that ask it: by table, merged as an API server merges."""

from __future__ import annotations

import json
from collections.abc import Mapping
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from hybridgpu.model.labels import MIG_ASKED, MIG_CONFIG, MIG_CONFIG_STATE, PAUSED, PAUSED_OPERANDS
from hybridgpu.planes.kubernetes.migmanager import (
    ASK_AGAIN,
    NOT_CUT,
    PATIENCE,
    Progress,
    ask,
    findings,
    reading,
    versioned,
)

NOW = datetime(2026, 9, 1, 12, tzinfo=UTC)
BOOT, EARLIER = "boot-2", "boot-1"
PLUGIN, GFD = PAUSED_OPERANDS[:2]
LATE = PATIENCE + timedelta(minutes=1)
WANTED = {MIG_CONFIG: "hybridgpu-a", PLUGIN: "true"}


def mark(layout: str = "hybridgpu-a", boot: str = BOOT, age: timedelta = timedelta(minutes=1)) -> dict[str, str]:
    return {MIG_ASKED: json.dumps({"layout": layout, "boot_id": boot, "at": (NOW - age).isoformat()})}


def node(
    state: str | None, marked: Mapping[str, str], config: str | None = "hybridgpu-a", *paused: str
) -> dict[str, Any]:
    labels = {MIG_CONFIG: config, MIG_CONFIG_STATE: state, GFD: "true", **dict.fromkeys(paused, PAUSED)}
    kept = {name: value for name, value in labels.items() if value is not None}
    return {"metadata": {"name": "n1", "resourceVersion": "7", "labels": kept, "annotations": dict(marked)}}


TABLE: dict[str, tuple[dict[str, Any], Progress, int]] = {
    "never asked": (node(None, {}, None), Progress.NOT_ASKED, 1),
    "another layout": (node("success", mark("old"), "old"), Progress.NOT_ASKED, 1),
    "left between two patches": (node(None, {}, ASK_AGAIN), Progress.NOT_ASKED, 1),
    "no mark": (node("success", {}), Progress.UNKNOWN, 2),
    "a mark of another layout": (node("success", mark("old")), Progress.UNKNOWN, 2),
    "of an earlier boot": (node("success", mark(boot=EARLIER)), Progress.UNKNOWN, 2),
    "pending of an earlier boot": (node("pending", mark(boot=EARLIER), "hybridgpu-a", PLUGIN), Progress.UNKNOWN, 2),
    "a mark that is none": (node("success", {MIG_ASKED: "[]"}), Progress.UNKNOWN, 2),
    "a mark without a zone": (
        node("success", {MIG_ASKED: '{"layout": "hybridgpu-a", "boot_id": "boot-2", "at": "2026-09-01T11:59:00"}'}),
        Progress.UNKNOWN,
        2,
    ),
    "a mark of the future": (node("success", mark(age=-LATE)), Progress.UNKNOWN, 2),
    "just asked": (node(None, mark()), Progress.PENDING, 0),
    "at work": (node("pending", mark(), "hybridgpu-a", PLUGIN, GFD), Progress.PENDING, 0),
    "rebooting": (node("rebooting", mark()), Progress.REBOOTING, 0),
    "done": (node("success", mark()), Progress.SUCCESS, 0),
    "done long ago": (node("success", mark(age=LATE)), Progress.SUCCESS, 0),
    "done, and operands left aside": (node("success", mark(), "hybridgpu-a", PLUGIN), Progress.WEDGED, 1),
    "failed": (node("failed", mark()), Progress.FAILED, 2),
    "wedged": (node("pending", mark(age=LATE), "hybridgpu-a", PLUGIN, GFD), Progress.WEDGED, 2),
    "wedged before it paused": (node("pending", mark(age=LATE)), Progress.WEDGED, 2),
    "done long ago, and operands left aside": (
        node("success", mark(age=LATE), "hybridgpu-a", GFD),
        Progress.WEDGED,
        1,
    ),
    "wedged with another layout": (node("pending", mark("old", age=LATE), "old", PLUGIN), Progress.NOT_ASKED, 1),
    "at work on another layout": (node("pending", mark("old"), "old", PLUGIN), Progress.NOT_ASKED, 1),
    "a mark of depth": (node("success", {MIG_ASKED: "[" * 100_000}), Progress.UNKNOWN, 2),
    "no answer": (node(None, mark(age=LATE)), Progress.SILENT, 2),
}


@pytest.mark.parametrize("name", TABLE)
def test_what_a_node_says(name: str) -> None:
    seen, progress, patches = TABLE[name]
    found = reading(seen, "hybridgpu-a", BOOT, NOW)
    assert found.progress is progress
    assert len(ask(seen, WANTED, BOOT, NOW)) == patches
    said = findings("n1", found)
    assert [f.rule for f in said] == ([] if progress is Progress.SUCCESS else [NOT_CUT])


@pytest.mark.parametrize("name", TABLE)
def test_the_label_is_never_absent_and_ends_right(name: str) -> None:
    """Without a label the operator sets all-disabled, and mig-manager takes all instances apart."""
    seen = TABLE[name][0]
    for patch in ask(seen, WANTED, BOOT, NOW):
        assert versioned(patch, seen)["metadata"]["resourceVersion"] == "7"
        seen = merged(seen, patch)
        assert seen["metadata"]["labels"][MIG_CONFIG]
    assert seen["metadata"]["labels"][MIG_CONFIG] == "hybridgpu-a"
    assert ask(seen, WANTED, BOOT, NOW) == ()


def test_what_was_put_aside_is_brought_back_as_it_must_be() -> None:
    wedged = TABLE["wedged"][0]
    first, _ = ask(wedged, {**WANTED, PLUGIN: "false"}, BOOT, NOW)
    labels = first["metadata"]["labels"]
    assert (labels[PLUGIN], labels[GFD]) == ("false", "true")
    at_work, _ = ask(TABLE["pending of an earlier boot"][0], WANTED, BOOT, NOW)
    assert PLUGIN not in at_work["metadata"]["labels"], "it may be at work, and brings it back itself"


@pytest.mark.parametrize(
    ("name", "brought_back"),
    [
        ("done, and operands left aside", True),
        ("wedged with another layout", True),
        ("at work on another layout", False),
    ],
)
def test_operands_that_nobody_else_brings_back_are_brought_back_at_once(name: str, brought_back: bool) -> None:
    seen = TABLE[name][0]
    for patch in ask(seen, WANTED, BOOT, NOW):
        seen = merged(seen, patch)
    assert (seen["metadata"]["labels"][PLUGIN] == "true") is brought_back
    if name.startswith("done"):
        assert reading(seen, "hybridgpu-a", BOOT, NOW).progress is Progress.SUCCESS


def test_rebooting_is_not_taken_away() -> None:
    """It keeps mig-manager from rebooting the node for ever."""
    seen = node("rebooting", mark(boot=EARLIER))
    for patch in ask(seen, WANTED, BOOT, NOW):
        seen = merged(seen, patch)
    assert seen["metadata"]["labels"][MIG_CONFIG_STATE] == "rebooting"


def merged(target: dict[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """RFC 7386."""
    result = deepcopy(target)
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        elif isinstance(value, Mapping):
            there = result.get(name)
            result[name] = merged(there if isinstance(there, dict) else {}, value)
        else:
            result[name] = value
    return result
