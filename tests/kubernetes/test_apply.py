"""Every object that is rendered for Kubernetes, judged by a real API server: taken, taken twice, and never too little.

Everything goes through the command line and strict server-side apply, as `kubectl apply --server-side` or GitOps would.
"""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings

from testbed.kubernetes.client import Api, Refused
from testbed.kubernetes.server import ApiServer
from tests.conftest import soak
from tests.kubernetes.inventories import CHART, OPERATOR, TOLERATION, cases, site
from tests.kubernetes.tree import CLUSTER_POLICY_CRD, OPERATOR_VALUES, documents, keys, objects, of_others, rendered
from tests.slurm.inventories import Case

pytestmark = pytest.mark.kubernetes

DELIVERIES = pytest.mark.parametrize("delivery", [CHART, OPERATOR])
KINDS = {CHART: {"ConfigMap", "DaemonSet"}, OPERATOR: {"ConfigMap"}}
TRIGGERS = {"nvidia.com/mig.config", "nvidia.com/device-plugin.config", "taints", "unschedulable"}
"""What acts on a node at once, wherever it is written."""

FOR_THEIR_OWNER = {"clusterpolicy-patch.yaml", "helm-values.yaml"}
"""What is handed over once, and pruned by nobody."""

POLICY = {"apiVersion": "nvidia.com/v1", "kind": "ClusterPolicy", "metadata": {"name": "cluster-policy"}}

_numbers = itertools.count()


def namespace(api: Api, *wanted: Case) -> None:
    """Give the inventories a namespace in which nothing was applied before."""
    name = f"gpu-{next(_numbers)}"
    api.namespace(name)
    for case in wanted:
        case.inventory["kubernetes"]["namespace"] = name


def applied(api: Api, folder: Path) -> dict[str, dict[str, Any]]:
    """What the server made of every object of a tree, by path; it must take them without a word."""
    before = len(api.warnings)
    found = {api.path(wanted): api.apply(wanted) for wanted in objects(folder)}
    assert api.warnings[before:] == []
    return found


def configs(stored: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The configs by which nodes are told what to be: a key of the ConfigMap, or a name in mig-parted's one file."""
    for key, text in stored.get("data", {}).items():
        layouts = yaml.safe_load(text).get("mig-configs")
        yield from layouts.items() if layouts else [(key, text)]


def serves(now: Any, before: Any) -> bool:  # noqa: ANN401 - a key's text, or a list of mig-parted's blocks
    """Whether a config does for its nodes what it did: the same text, or at least the same cuts on the same cards.

    A block without device-filter is for every card, and so no block with one can take its place.
    """
    if isinstance(before, str) or not now:
        return bool(now == before)
    return all(any(_covers(block, old) for block in now) for old in before)


def _covers(block: dict[str, Any], old: dict[str, Any]) -> bool:
    cards, wanted = (set(each.get("device-filter", [])) for each in (block, old))
    mine, theirs = ({**each, "device-filter": None} for each in (block, old))
    return mine == theirs and (not cards or (bool(wanted) and wanted <= cards))


@DELIVERIES
def test_every_object_is_taken_and_twice_changes_nothing(
    delivery: str, api_server: ApiServer, record_property: Callable[[str, object], None]
) -> None:
    taken: list[int] = []

    @settings(max_examples=soak(10, 300))
    @given(cases(delivery))
    def check(case: Case) -> None:
        api = api_server.api
        namespace(api, case)
        with tempfile.TemporaryDirectory() as work:
            folder = rendered(case, Path(work, "out"))
            wanted = objects(folder)
            assert {each["kind"] for each in wanted} <= KINDS[delivery]
            assert not TRIGGERS & {key for _, document in documents(folder) for key in keys(document)}
            first = applied(api, folder)
            again = applied(api, folder)
        assert {p: each["metadata"]["resourceVersion"] for p, each in first.items()} == {
            p: each["metadata"]["resourceVersion"] for p, each in again.items()
        }
        for each in wanted:
            stored = first[api.path(each)]
            assert stored.get("data") == each.get("data")
            assert stored["metadata"]["namespace"] == case.inventory["kubernetes"]["namespace"]
        assert api.objects("v1", "Node") == []
        taken.append(len(wanted))

    check()
    record_property("measured", f"{len(taken)} inventories, {sum(taken)} objects taken, twice the same")


def assert_kept(api: Api, old: Case, new: Case) -> None:
    """What the old tree told nodes to be is still there, in files that may be pruned and on the server, as it was."""
    namespace(api, old, new)
    with tempfile.TemporaryDirectory() as work:
        folder = rendered(old, Path(work, "out"))
        before = applied(api, folder)
        files = {name for name, _ in documents(folder)} - FOR_THEIR_OWNER
        applied(api, rendered(new, Path(work, "out")))
        assert files <= {name for name, _ in documents(folder)}
    for path, stored in before.items():
        now = dict(configs(api.answer("GET", path)))
        for name, content in configs(stored):
            assert serves(now.get(name), content), (path, name)


Entries = list[dict[str, Any]]
SHARED = {"class": "a100", "sharing": {"mode": "time-slicing", "replicas": "4"}}
CUT = {"class": "a100", "sharing": {"mode": "mig", "layout": {"all": {"3g.40gb": "2"}}}}
OTHER = {"class": "h200"}
GONE = {"class": "a100", "owner": "slurm", "schedulers": ["slurm"]}
CHANGES: dict[str, tuple[Entries, Entries]] = {
    "another mode": ([SHARED, CUT], [CUT, SHARED]),
    "fewer nodes": ([SHARED, CUT], [CUT]),
    "a model comes": ([CUT], [CUT, OTHER]),
    "a model goes": ([CUT, OTHER], [OTHER]),
    "nodes leave Kubernetes": ([SHARED, CUT], [GONE, CUT]),
    "the last nodes leave Kubernetes": ([SHARED, CUT], [GONE]),
}


@DELIVERIES
@pytest.mark.parametrize("change", CHANGES)
def test_nothing_in_use_disappears_with(change: str, delivery: str, api_server: ApiServer) -> None:
    old, new = CHANGES[change]
    assert_kept(api_server.api, site(delivery, *old), site(delivery, *new))


@pytest.mark.parametrize(("old", "new"), [(CHART, OPERATOR), (OPERATOR, CHART)])
def test_nothing_in_use_disappears_with_another_delivery(old: str, new: str, api_server: ApiServer) -> None:
    assert_kept(api_server.api, site(old, SHARED, CUT), site(new, SHARED, CUT))


@DELIVERIES
def test_nothing_in_use_disappears_with_a_new_inventory(
    delivery: str, api_server: ApiServer, record_property: Callable[[str, object], None]
) -> None:
    """Nodes are still told to be what the old tree said, whatever changed."""
    pairs = itertools.count()

    @settings(max_examples=soak(8, 200))
    @given(cases(delivery), cases(delivery, leaving=True))
    def check(old: Case, new: Case) -> None:
        assert_kept(api_server.api, old, new)
        next(pairs)

    check()
    record_property("measured", f"{next(pairs)} inventories rendered over another, nothing lost")


@pytest.fixture(scope="module")
def full_policy(api_server: ApiServer) -> dict[str, Any]:
    """A ClusterPolicy as the operator's chart makes it from its own values."""
    crd = of_others(CLUSTER_POLICY_CRD)
    api_server.api.define(crd)
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    values = of_others(OPERATOR_VALUES)
    values["operator"]["runtimeClass"] = "nvidia"
    return {**POLICY, "spec": known(values, schema)}


def known(value: object, schema: Mapping[str, Any]) -> object:
    """What of a value the schema of a CRD has a place for; null is nothing."""
    properties = schema.get("properties")
    if isinstance(value, dict) and properties:
        return {key: known(value[key], each) for key, each in properties.items() if value.get(key) is not None}
    return value


@pytest.fixture
def policy(api_server: ApiServer, full_policy: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The ClusterPolicy as the server stores it."""
    yield api_server.api.create(full_policy)
    api_server.api.delete(full_policy)


def test_a_policy_patch_is_judged_by_the_schema(api_server: ApiServer, policy: dict[str, Any]) -> None:
    """The judge refuses what a typing error in our patch would be."""
    wrongs: list[dict[str, Any]] = [{"mig": {"stategy": "mixed"}}, {"daemonsets": {"tolerations": {}}}]
    for wrong in wrongs:
        with pytest.raises(Refused):
            api_server.api.merge(policy, {"spec": wrong})
    assert api_server.api.get(policy) == policy


def test_the_policy_patch_changes_what_it_says_and_twice_nothing(
    api_server: ApiServer, policy: dict[str, Any], tmp_path: Path
) -> None:
    @settings(max_examples=soak(6, 60))
    @given(cases(OPERATOR))
    def check(case: Case) -> None:
        api = api_server.api
        if api.get(policy) != policy:
            api.delete(policy)
            api.create({**POLICY, "spec": policy["spec"]})
        with tempfile.TemporaryDirectory(dir=tmp_path) as work:
            folder = rendered(case, Path(work, "out"))
            patch = yaml.safe_load((folder / "operator" / "clusterpolicy-patch.yaml").read_text(encoding="utf-8"))
            made = {each["metadata"]["name"]: each for each in objects(folder)}
        now = api.merge(policy, patch)
        assert api.merge(policy, patch)["metadata"]["resourceVersion"] == now["metadata"]["resourceVersion"]
        assert "strategy" not in now["spec"]["mig"]
        spec = now["spec"]
        for part, kept in (("devicePlugin", {"config", "mps"}), ("migManager", {"config"}), ("daemonsets", set())):
            config = spec[part].get("config")
            if config:
                assert config["default"] in dict(configs(made[config["name"]]))
            assert {k: v for k, v in spec[part].items() if k not in {*kept, "tolerations"}} == {
                k: v for k, v in policy["spec"][part].items() if k not in {*kept, "tolerations"}
            }
        others = spec.keys() - {"devicePlugin", "migManager", "daemonsets", "mig"}
        assert {part: spec[part] for part in others} == {part: policy["spec"][part] for part in others}
        tolerated = spec["daemonsets"]["tolerations"]
        assert [each for each in policy["spec"]["daemonsets"]["tolerations"] if each not in tolerated] == []
        assert (TOLERATION in tolerated) == ("tolerations" in case.inventory["kubernetes"])
        assert "hybridgpu.io/closed" in {each["key"] for each in tolerated}

    check()
