"""Helm values as rendered, against the charts' own: helm takes a key that no chart knows without a word.

Needs no server: what the charts know is in their values files.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings

from tests.conftest import soak
from tests.kubernetes.inventories import CHART, OPERATOR, TOLERATION, cases
from tests.kubernetes.tree import CHART_VALUES, OPERATOR_VALUES, documents, of_others, rendered
from tests.slurm.inventories import Case

FREE = {"config.map", "nodeSelector"}
"""Maps whose keys are the user's own."""

CONDITIONS = {"nfd.enabled"}
"""No value of the chart's, but the condition of its dependency: `nfd.enabled,gfd.enabled` (Chart.yaml of 0.20.0)."""


def unknown(values: Mapping[str, Any], chart: Mapping[str, Any], above: str = "") -> Iterator[str]:
    """The keys, with those above them, that the chart has not, or has as something else: map, list or scalar."""
    for key, value in values.items():
        path = f"{above}{key}"
        if path in FREE | CONDITIONS:
            continue
        theirs = chart.get(key)
        if key not in chart or (theirs is not None and form(theirs) != form(value)):
            yield path
        elif isinstance(value, Mapping):
            yield from unknown(value, theirs or {}, f"{path}.")


def form(value: object) -> type:
    """Map, list or scalar."""
    return type(value) if isinstance(value, dict | list) else str


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ({"gfd": {"enabled": True}, "nodeSelector": {"a": "b"}, "config": {"map": {"c": "d"}}}, []),
        ({"gdf": {"enabled": True}}, ["gdf"]),
        ({"mps": {"root": "/x", "rot": "/x"}}, ["mps.rot"]),
        ({"tolerations": {"key": "a"}, "mps": "/x"}, ["tolerations", "mps"]),
        ({"namespace": "gpu"}, ["namespace"]),
    ],
)
def test_a_key_that_the_chart_has_not_is_seen(values: dict[str, Any], found: list[str]) -> None:
    assert list(unknown(values, of_others(CHART_VALUES))) == found


def test_each_config_is_a_release_and_feature_discovery_comes_once() -> None:
    chart = of_others(CHART_VALUES)

    @settings(max_examples=soak(10, 300))
    @given(cases(CHART))
    def check(case: Case) -> None:
        if "runtimeClassName" in case.inventory["kubernetes"]:
            case.inventory["kubernetes"]["namespace"] = "default"
        with tempfile.TemporaryDirectory() as work:
            every = list(documents(rendered(case, Path(work, "out"))))
        daemonsets = {name for name, document in every if document.get("kind") == "DaemonSet"}
        files = {name: document for name, document in every if "kind" not in document}
        base = files.pop("nfd.yaml")
        assert files
        assert [unknown_of for values in (base, *files.values()) for unknown_of in unknown(values, chart)] == []
        assert (base["nfd"]["enabled"], base["devicePlugin"]["enabled"], base["gfd"]["enabled"]) == (True, False, False)
        own = chart["nfd"]["worker"]["tolerations"]
        assert set(map(tolerated, own)) <= set(map(tolerated, base["nfd"]["worker"]["tolerations"]))
        for name, values in files.items():
            config = name.removeprefix("values-").removesuffix(".yaml")
            assert values["nfd"]["enabled"] is False
            assert values["nodeSelector"] == {"hybridgpu.io/config": config}
            ((key, text),) = values["config"]["map"].items()
            assert (config in key, type(text)) == (True, str)
            assert values["devicePlugin"]["enabled"] is (f"daemonset-{config}.yaml" not in daemonsets)
            assert_tolerations(values["tolerations"], chart["tolerations"], case)

    check()


def test_the_operators_values_say_what_the_patch_says() -> None:
    chart = of_others(OPERATOR_VALUES)

    @settings(max_examples=soak(6, 100))
    @given(cases(OPERATOR))
    def check(case: Case) -> None:
        with tempfile.TemporaryDirectory() as work:
            folder = rendered(case, Path(work, "out")) / "operator"
            values, patch = (
                yaml.safe_load((folder / name).read_text(encoding="utf-8"))
                for name in ("helm-values.yaml", "clusterpolicy-patch.yaml")
            )
        assert list(unknown(values, chart)) == []
        assert_tolerations(values["daemonsets"]["tolerations"], chart["daemonsets"]["tolerations"], case)
        assert not values["mig"]["strategy"]
        assert patch["spec"]["mig"] == {"strategy": None}
        for part in ("devicePlugin", "migManager"):
            assert values[part]["config"].pop("create") is False
        workers = values.pop("node-feature-discovery")["worker"]["tolerations"]
        assert_tolerations(workers, chart["node-feature-discovery"]["worker"]["tolerations"], case)
        assert {**values, "mig": None} == {**patch["spec"], "mig": None}

    check()


def tolerated(toleration: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """A toleration that can be in a set."""
    return tuple(sorted(toleration.items()))


def assert_tolerations(found: list[dict[str, str]], own: list[dict[str, str]], case: Case) -> None:
    """The list replaces the chart's: so it has the chart's, the site's and ours."""
    seen = set(map(tolerated, found))
    assert set(map(tolerated, own)) <= seen
    assert (tolerated(TOLERATION) in seen) == ("tolerations" in case.inventory["kubernetes"])
    assert tolerated({"key": "hybridgpu.io/closed", "operator": "Exists"}) in seen
