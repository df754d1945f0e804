"""What the API server itself takes, refuses, fills in and enforces of GPUs, and that the judges say the same."""

from __future__ import annotations

import json
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from hybridgpu.consumers.kubernetes import askrules
from testbed.kubernetes.client import Api, Refused
from testbed.kubernetes.server import ApiServer
from tests.consumers.kubernetes.given_files import judged

pytestmark = pytest.mark.kubernetes

GPU = "nvidia.com/gpu"
REFUSALS = {askrules.REFUSED.id, askrules.BOUND_REFUSED.id}

RESOURCES: dict[str, dict[str, Any]] = {
    "a limit": {"limits": {GPU: 1}},
    "as text": {"limits": {GPU: "1"}},
    "an equal request": {"limits": {GPU: 1}, "requests": {GPU: 1}},
    "an equal request in other words": {"limits": {GPU: "2000m"}, "requests": {GPU: 2}},
    "none": {"limits": {GPU: 0}},
    "null": {"limits": {GPU: None}},
    "thousands": {"limits": {GPU: "2k"}},
    "an exponent": {"limits": {GPU: "1e1"}},
    "a sign": {"limits": {GPU: "+1"}},
    "a blank": {"limits": {GPU: " 1"}},
    "a whole float": {"limits": {GPU: 1.0}},
    "rounded up": {"limits": {GPU: "0.9999999999"}},
    "less requested": {"limits": {GPU: 2}, "requests": {GPU: 1}},
    "more requested": {"limits": {GPU: 1}, "requests": {GPU: 2}},
    "a request alone": {"requests": {GPU: 1}},
    "half": {"limits": {GPU: "0.5"}},
    "half as float": {"limits": {GPU: 0.5}},
    "milli": {"limits": {GPU: "500m"}},
    "negative": {"limits": {GPU: -1}},
    "a word": {"limits": {GPU: "one"}},
    "empty": {"limits": {GPU: ""}},
    "a bool": {"limits": {GPU: True}},
    "bare gpu": {"limits": {"gpu": 1}},
    "upper case": {"limits": {"nvidia.com/GPU": 1}},
    "upper case domain": {"limits": {"NVIDIA.com/gpu": 1}},
    "another domain": {"limits": {"nvidia/gpu": 1}},
    "no slash": {"limits": {"nvidia.com.gpu": 1}},
    "requests. before it": {"limits": {"requests.nvidia.com/gpu": 1}},
    "a plus": {"limits": {"nvidia.com/mig-1g.10gb+me": 1}},
    "an underscore": {"limits": {"nvidia.com/mig_1g.10gb": 1}},
}

KINDS = {
    "Deployment": "apps/v1",
    "StatefulSet": "apps/v1",
    "DaemonSet": "apps/v1",
    "ReplicaSet": "apps/v1",
    "ReplicationController": "v1",
    "Job": "batch/v1",
    "CronJob": "batch/v1",
    "PodTemplate": "v1",
}

QUOTAS = {
    # key, number: taken, and whether a second pod is refused
    ("requests.nvidia.com/gpu", "1"): (True, True),
    ("requests.nvidia.com/gpu", "1.5"): (True, True),
    ("nvidia.com/gpu", "1"): (True, False),
    ("limits.nvidia.com/gpu", "1"): (True, False),
    ("requests.nvidia.com/gpuu", "1"): (True, False),
    ("nvidia.com/gpu", "1.5"): (False, False),
    ("requests.nvidia.com/gpu", "-1"): (False, False),
    ("requests.nvidia.com/gpu", "many"): (False, False),
    ("requests.gpu", "1"): (False, False),
    ("gpu", "1"): (False, False),
    ("requests.NVIDIA.com/gpu", "1"): (False, False),
    ("requests.nvidia.com/mig-1g.10gb+me", "1"): (False, False),
}

LIMITS: dict[str, tuple[dict[str, Any], str | None]] = {
    # a LimitRange's item: what a container without GPUs is given, or None: it is refused
    "max": ({"max": {GPU: 2}}, "2"),
    "max and min": ({"max": {GPU: 2}, "min": {GPU: 1}}, "2"),
    "max of none": ({"max": {GPU: 0}}, "0"),
    "max and a default": ({"max": {GPU: 2}, "default": {GPU: 0}}, "0"),
    "min": ({"min": {GPU: 1}}, None),
    "a default request": ({"defaultRequest": {GPU: 1}}, None),
    "a ratio": ({"maxLimitRequestRatio": {GPU: 1}}, None),
}


NAMESPACES = (f"asks-{number}" for number in count())


class Space:
    """A namespace of its own for each test: admission remembers the quotas and limit ranges of one for a while."""

    def __init__(self, api: Api) -> None:
        self.api, self.name = api, next(NAMESPACES)
        api.namespace(self.name)

    def here(self, wanted: dict[str, Any]) -> dict[str, Any]:
        """The object in this namespace."""
        return {**wanted, "metadata": {**wanted["metadata"], "namespace": self.name}}

    def takes(self, wanted: dict[str, Any]) -> bool:
        """Whether the server creates it; refused is only what is refused for what it says."""
        try:
            self.api.create(self.here(wanted))
        except Refused as refused:
            assert refused.code in (400, 403, 422), refused
            return False
        return True

    def get(self, wanted: dict[str, Any]) -> dict[str, Any]:
        """The object as the server has it."""
        return self.api.get(self.here(wanted))


@pytest.fixture
def space(api_server: ApiServer) -> Space:
    return Space(api_server.api)


def pod(resources: object, name: str = "p") -> dict[str, Any]:
    containers = [{"name": "c", "image": "a", "resources": resources}]
    meta = {"name": name}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": containers}}


def around(kind: str, resources: object) -> dict[str, Any]:
    """An object of this kind whose pods have these resources."""
    labels = {"app": "a"}
    spec = {**pod(resources)["spec"], "restartPolicy": "Never" if kind in ("Job", "CronJob") else "Always"}
    template: dict[str, Any] = {"metadata": {"labels": labels}, "spec": spec}
    selector = labels if kind == "ReplicationController" else {"matchLabels": labels}
    inner: dict[str, Any] = {"selector": selector, "template": template}
    if kind == "StatefulSet":
        inner["serviceName"] = "s"
    elif kind == "Job":
        inner = {"template": template}
    elif kind == "CronJob":
        inner = {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": template}}}
    body = {"template": template} if kind == "PodTemplate" else {"spec": inner}
    meta = {"name": kind.lower()}
    return {"apiVersion": KINDS[kind], "kind": kind, "metadata": meta, **body}


def quota(key: str, number: str) -> dict[str, Any]:
    meta = {"name": "q"}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": meta, "spec": {"hard": {key: number}}}


def limit_range(item: dict[str, Any]) -> dict[str, Any]:
    meta = {"name": "l"}
    spec = {"limits": [{"type": "Container", **item}]}
    return {"apiVersion": "v1", "kind": "LimitRange", "metadata": meta, "spec": spec}


def rules(folder: Path, *objects: dict[str, Any]) -> set[str]:
    return {finding.rule.id for finding in judged(folder, *(json.dumps(each, indent=1) for each in objects))}


def said_refused(folder: Path, wanted: dict[str, Any]) -> bool:
    """Whether the judges say that the API server refuses it: by the rule, or in the words on a name."""
    found = judged(folder, json.dumps(wanted, indent=1))
    return any(f.rule.id in REFUSALS or "API server refuses" in f.message for f in found)


@pytest.mark.parametrize("what", RESOURCES)
def test_a_pod_is_refused_as_the_judge_says(what: str, space: Space, tmp_path: Path) -> None:
    wanted = pod(RESOURCES[what])
    assert space.takes(wanted) is not said_refused(tmp_path, wanted)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("what", ["a limit", "less requested", "a request alone", "half", "bare gpu"])
def test_what_describes_pods_is_refused_like_a_pod(what: str, kind: str, space: Space, tmp_path: Path) -> None:
    wanted = around(kind, RESOURCES[what])
    accepted = space.takes(wanted)
    assert accepted is (what == "a limit")
    assert said_refused(tmp_path, wanted) is not accepted


def test_gpus_are_refused_in_the_resources_of_a_pod(space: Space, tmp_path: Path) -> None:
    wanted = pod({})
    wanted["spec"]["resources"] = {"limits": {GPU: 1}}
    assert not space.takes(wanted)
    assert said_refused(tmp_path, wanted)


@pytest.mark.parametrize(("key", "number"), QUOTAS)
def test_a_quota_counts_as_the_judge_says(key: str, number: str, space: Space, tmp_path: Path) -> None:
    wanted = quota(key, number)
    accepted, counts = QUOTAS[key, number]
    assert space.takes(wanted) is accepted
    assert said_refused(tmp_path, wanted) is not accepted
    if not accepted:
        return
    made = space.get(wanted)
    made["status"] = {"hard": {key: number}, "used": {key: "0"}}  # a controller's work, which runs elsewhere
    space.api.request("PUT", f"{space.api.path(made)}/status", made)
    assert space.takes(pod({"limits": {GPU: 1}}, "first"))
    assert space.takes(pod({"limits": {GPU: 1}}, "second")) is not counts
    idle = {askrules.QUOTA_UNENFORCED.id, askrules.BOUND_NAME.id}
    assert bool(rules(tmp_path, wanted) & idle) is not counts


@pytest.mark.parametrize("what", LIMITS)
def test_a_limit_range_fills_in_as_the_judge_says(what: str, space: Space, tmp_path: Path) -> None:
    item, given = LIMITS[what]
    wanted = limit_range(item)
    assert space.takes(wanted)
    accepted = space.takes(pod({}))
    assert accepted is (given is not None)
    if accepted:
        assert space.get(pod({}))["spec"]["containers"][0]["resources"]["limits"] == {GPU: given}
    expected = {askrules.LIMIT_REFUSES.id} if given is None else {askrules.LIMIT_FILLS.id} if given != "0" else set()
    defaults = {askrules.LIMIT_REFUSES.id, askrules.LIMIT_FILLS.id}
    if "default" not in item:
        assert rules(tmp_path, wanted) & defaults == expected
    else:
        assert rules(tmp_path, wanted) == set()


@pytest.mark.parametrize("name", ["requests.nvidia.com/gpu", "gpu", "NVIDIA.com/gpu"])
def test_a_limit_range_takes_only_names_of_resources(name: str, space: Space, tmp_path: Path) -> None:
    wanted = limit_range({"max": {name: 1}})
    assert not space.takes(wanted)
    assert askrules.BOUND_REFUSED.id in rules(tmp_path, wanted)


def test_a_limit_range_completes_a_request(space: Space, tmp_path: Path) -> None:
    default, asking = limit_range({"default": {GPU: 1}}), pod({"requests": {GPU: 1}})
    assert space.takes(default)
    assert space.takes(asking)
    assert rules(tmp_path, default, asking) == set()
