"""config-manager's states, as they were run (facts on v0.20.0): what a node really offers at start and after events."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from hybridgpu.consumers.kubernetes.configmanager import (
    CHART,
    EMPTY,
    OPERATOR,
    Died,
    Pod,
    Run,
    Settings,
    choose,
    create,
    recreate,
    restart_program,
    restart_sidecar,
    set_keys,
    set_label,
)

KEYS = {"default": "whole", "a": "A", "b": "B"}
FAILED = "no config was set, no default was provided, and all fallbacks failed"
NAMED_A = Settings(default="a")

CHOICES: dict[str, tuple[str, Mapping[str, str], Settings, str | Died]] = {
    "label": ("b", KEYS, CHART, "b"),
    "label without key": ("zz", KEYS, CHART, Died("specified config zz does not exist")),
    "no label, key default": ("", KEYS, CHART, "default"),
    "no label, one key": ("", {"x": ""}, CHART, "x"),
    "no label, two keys": ("", {"a": "", "b": ""}, CHART, Died(FAILED)),
    "no label, default named": ("", KEYS, NAMED_A, "a"),
    "no label, default named and missing": ("", {"x": ""}, NAMED_A, Died("specified config  does not exist")),
    "operator": ("", KEYS, OPERATOR, EMPTY),
    "operator with a default": ("", KEYS, Settings("b", ("empty",)), "b"),
    "no fallbacks": ("", {"x": ""}, Settings(fallbacks=()), Died(FAILED)),
    "unknown fallback": (
        "",
        {"a": "", "b": ""},
        Settings(fallbacks=("some",)),
        Died("unknown fallback strategy: some"),
    ),
    "unknown fallback behind one that fits": ("", {"x": ""}, Settings(fallbacks=("single", "some")), "x"),
    "no keys": ("a", {}, CHART, Died("no configuration files available")),
}


@pytest.mark.parametrize("case", CHOICES)
def test_which_key_is_chosen(case: str) -> None:
    value, keys, settings, expected = CHOICES[case]
    assert choose(value, keys, settings) == expected


def said(run: Run) -> list[str]:
    """Each step in words: the key applied, `!` where the program was signalled, or why it died."""
    return [step.died or f"{step.applied}{'!' if step.signalled else ''}" for step in run.steps]


def label(value: str) -> Callable[[Pod], Run]:
    return lambda pod: set_label(pod, value)


def keys(**content: str) -> Callable[[Pod], Run]:
    return lambda pod: set_keys(pod, content)


GONE = "error creating symlink: symlink /available-configs/{} /config/config.yaml: file exists"
START = (["default", "default", "a!"], "A")

STORIES: dict[
    str, tuple[dict[str, str], str, Settings, list[tuple[Callable[[Pod], Run] | None, list[str], str | None]]]
] = {
    "the default first, whatever the label": (KEYS, "a", CHART, [(None, *START)]),
    "no label": (KEYS, "", CHART, [(None, ["default", "default"], "whole")]),
    "no default: crash loop although labelled": (
        {"a": "A", "b": "B"},
        "a",
        CHART,
        [
            (None, [FAILED], None),
            (label("b"), [FAILED], None),
            (restart_sidecar, [FAILED], None),
            (keys(a="A", b="B", default="D"), ["default", "default", "b!"], "B"),
        ],
    ),
    "the operator begins with built-in defaults": (KEYS, "a", OPERATOR, [(None, [EMPTY, EMPTY, "a!"], "A")]),
    "a restart applies the default again": (
        KEYS,
        "a",
        CHART,
        [(None, *START), (restart_sidecar, ["default!", "a!"], "A")],
    ),
    "another label, and back to the default": (
        KEYS,
        "a",
        CHART,
        [(None, *START), (label("b"), ["b!"], "B"), (label("b"), [], "B"), (label(""), ["default!"], "whole")],
    ),
    "a label without a key: link kept, mended by the label": (
        KEYS,
        "a",
        CHART,
        [
            (None, *START),
            (label("zz"), ["specified config zz does not exist"], "A"),
            (restart_sidecar, ["default!", "specified config zz does not exist"], "whole"),
            (label("b"), ["default", "b!"], "B"),
        ],
    ),
    "content changed: nothing, until the label goes there and back": (
        KEYS,
        "a",
        CHART,
        [
            (None, *START),
            (keys(default="whole", a="new", b="B"), [], "A"),
            (label("b"), ["b!"], "B"),
            (label("a"), ["a!"], "new"),
        ],
    ),
    "content changed: the program restarted": (
        KEYS,
        "a",
        CHART,
        [(None, *START), (keys(default="whole", a="new"), [], "A"), (restart_program, [], "new")],
    ),
    "the key in use removed, then another label: only a new pod helps": (
        KEYS,
        "b",
        CHART,
        [
            (None, ["default", "default", "b!"], "B"),
            (keys(default="whole", a="A"), [], "B"),
            (label("a"), [GONE.format("a")], "B"),
            (restart_sidecar, [GONE.format("default")], "B"),
            (recreate, *START),
        ],
    ),
    "the key in use removed, and put back": (
        KEYS,
        "b",
        CHART,
        [
            (None, ["default", "default", "b!"], "B"),
            (keys(default="whole", a="A"), [], "B"),
            (label("a"), [GONE.format("a")], "B"),
            (keys(**KEYS), ["default!", "a!"], "A"),
        ],
    ),
    "one key, as the chart renders it for one release a config": (
        {"only": "O"},
        "",
        CHART,
        [(None, ["only", "only"], "O"), (restart_sidecar, ["only"], "O")],
    ),
    "no key at all": ({}, "", CHART, [(None, ["no configuration files available"], None)]),
}


@pytest.mark.parametrize("story", STORIES)
def test_what_a_node_runs(story: str) -> None:
    content, value, settings, events = STORIES[story]
    run = create(content, value, settings)
    for event, steps, running in events:
        if event is not None:
            run = event(run.pod)
        assert said(run) == steps
        assert (run.pod.running.content if run.pod.running else None) == running
        assert (run.pod.died is not None) == any(step.died for step in run.steps)


def test_a_pod_knows_when_only_a_new_one_helps() -> None:
    pod = set_keys(create(KEYS, "b").pod, {"default": "whole"}).pod
    assert pod.dangling and pod.died is None
    assert not recreate(pod).pod.dangling
