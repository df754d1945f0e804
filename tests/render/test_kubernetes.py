"""Kubernetes' half: each config is taken in full by NVIDIA's programs, and says the same as Slurm's half of a node."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings

from hybridgpu.check.rendering import rendered
from hybridgpu.consumers import kubernetes, slurm
from hybridgpu.consumers.kubernetes import PluginRuns
from hybridgpu.consumers.kubernetes.migparted import apply, assert_config, walk
from hybridgpu.errors import Refused
from hybridgpu.files.stamp import stamp, without_stamp
from hybridgpu.files.tree import write
from hybridgpu.inventory.load import load_site
from hybridgpu.model.catalogue import models
from hybridgpu.model.offer import SlurmOffer
from hybridgpu.model.site import NodeBody, Site
from hybridgpu.render.kubernetes.proof import node_seen, prove_kubernetes
from hybridgpu.render.retained import retained_from
from hybridgpu.render.tree import SYNCED, render_tree, slurm_texts
from tests.conftest import soak
from tests.sites import inventory, site
from tests.slurm.inventories import Case, cases

CONF = "ClusterName=t\nSlurmctldHost=c\nSelectType=select/cons_tres\nInclude nodes.conf\nInclude gpu.conf\n"
OPERATOR = "delivery: gpu-operator, namespace: gpu-operator"
CHART = "delivery: device-plugin, namespace: gpu"


def text(*entries: str, delivery: str = CHART) -> str:
    return inventory(*entries).replace(CHART, delivery)


def documents(files: dict[str, Any], path: str) -> list[Any]:
    return list(yaml.safe_load_all(files[path]()))


def configs(rendered_site: Site) -> dict[str, Any]:
    """The plugin configs of the chart's values by their key."""
    files = render_tree(rendered_site)
    found = {}
    for path in files:
        if path.startswith("kubernetes/chart/values-"):
            found.update(documents(files, path)[0]["config"]["map"])
    return found


@pytest.mark.parametrize(
    ("entry", "config"),
    [
        ("exclusive", {"version": "v1", "flags": {"migStrategy": "none"}}),
        (
            "time-slicing, replicas: 10",
            {
                "version": "v1",
                "flags": {"migStrategy": "none"},
                "sharing": {
                    "timeSlicing": {
                        "renameByDefault": False,
                        "failRequestsGreaterThanOne": True,
                        "resources": [{"name": "nvidia.com/gpu", "replicas": 10}],
                    }
                },
            },
        ),
        (
            "mps, replicas: 4",
            {
                "version": "v1",
                "flags": {"migStrategy": "none", "mpsRoot": "/run/nvidia/mps"},
                "sharing": {
                    "mps": {
                        "renameByDefault": False,
                        "failRequestsGreaterThanOne": True,
                        "resources": [{"name": "nvidia.com/gpu", "replicas": 4}],
                    }
                },
            },
        ),
        ("mig, layout: {all: {1g.10gb: 7}}", {"version": "v1", "flags": {"migStrategy": "mixed"}}),
        (
            "mig, migStrategy: single, layout: {all: {1g.10gb: 7}}",
            {"version": "v1", "flags": {"migStrategy": "single"}},
        ),
    ],
)
def test_each_mode_has_its_config(tmp_path: Path, entry: str, config: dict[str, Any]) -> None:
    ((name, written),) = configs(site(tmp_path, text(f"gpu[1-2] dgx {entry}"))).items()
    assert yaml.safe_load(written) == config
    assert re.fullmatch("config-[0-9a-f]{10}", name)  # never a number, though the chart writes it without quotes


def test_equal_nodes_share_a_config_whoever_owns_them(tmp_path: Path) -> None:
    other = "{hosts: k1, class: dgx, owner: kubernetes, sharing: {mode: exclusive}}"
    assert len(configs(site(tmp_path, text("gpu1 dgx exclusive", other)))) == 1


def test_a_split_node_sees_its_own_cards_alone(tmp_path: Path) -> None:
    entry = "{hosts: n1, class: dgx, owner: {slurm: 0-3, kubernetes: 4-7}, sharing: {mode: exclusive}}"
    files = render_tree(site(tmp_path, text(entry)))
    (path,) = (path for path in files if "daemonset-" in path)
    config, daemons = documents(files, path)
    (container,) = daemons["spec"]["template"]["spec"]["containers"]
    assert {"name": "NVIDIA_VISIBLE_DEVICES", "value": "4,5,6,7"} in container["env"]
    assert "privileged" not in container["securityContext"]
    values = documents(files, path.replace("daemonset", "values"))[0]
    assert values["devicePlugin"]["enabled"] is False
    assert config["data"]["config.yaml"] in values["config"]["map"].values()
    node = json.loads(files["nodes/n1.json"]())
    assert node["kubernetes"]["allocatable"] == {"nvidia.com/gpu": 4}
    assert node["kubernetes"]["visible_devices"] == [4, 5, 6, 7]


def test_a_node_says_what_opens_and_closes_it(tmp_path: Path) -> None:
    mine = "{hosts: k1, class: dgx, owner: kubernetes, sharing: {mode: exclusive}}"
    files = render_tree(site(tmp_path, text("s1 dgx exclusive", mine)))
    closed, opened = (json.loads(files[f"nodes/{name}.json"]())["kubernetes"] for name in ("s1", "k1"))
    assert closed["config"] == opened["config"]
    assert closed["taints"] == [{"key": "hybridgpu.io/closed", "value": "owner", "effect": "NoSchedule"}]
    other = {"nvidia.com/device-plugin.config": None}
    assert (closed["labels"], closed["allocatable"]) == ({"hybridgpu.io/config": None, **other}, {})
    assert opened["labels"] == {"hybridgpu.io/config": opened["config"], **other}
    assert (opened["taints"], opened["allocatable"]) == ([], {"nvidia.com/gpu": 8})


def test_the_operators_files(tmp_path: Path) -> None:
    entries = (
        "a1 dgx time-slicing, replicas: 4",
        "a2 dgx mig, layout: {0-6: {1g.10gb: 7}, 7: off}",
        "b1 b200 exclusive",
    )
    files = render_tree(site(tmp_path, text(*entries, delivery=OPERATOR)))
    (plugin,) = documents(files, "kubernetes/operator/configmap-device-plugin.yaml")
    assert yaml.safe_load(plugin["data"]["default"]) == {"version": "v1", "flags": {"migStrategy": "mixed"}}
    assert len(plugin["data"]) == 4
    (mig,) = documents(files, "kubernetes/operator/configmap-mig-parted.yaml")
    file = yaml.safe_load(mig["data"]["config.yaml"])["mig-configs"]
    node = json.loads(files["nodes/a2.json"]())["kubernetes"]
    assert node["labels"]["nvidia.com/device-plugin.config"] in plugin["data"]
    assert file[node["labels"]["nvidia.com/mig.config"]] == [
        {"devices": [0, 1, 2, 3, 4, 5, 6], "mig-enabled": True, "mig-devices": {"1g.10gb": 7}},
        {"devices": [7], "mig-enabled": False, "mig-devices": {}},
    ]
    assert file["all-disabled"] == [{"devices": "all", "mig-enabled": False, "mig-devices": {}}]
    balanced = {frozenset(block["mig-devices"].items()) for block in file["all-balanced"]}
    assert frozenset({"1g.10gb": 2, "2g.20gb": 1, "3g.40gb": 1}.items()) in balanced
    assert frozenset({"1g.23gb": 2, "2g.45gb": 1, "3g.90gb": 1}.items()) in balanced
    for name, entry in file.items():  # a block without a filter, or with an empty one, is for every card there is
        if name.startswith("all-") and name not in ("all-disabled", "all-enabled"):
            cards = [card for block in entry for card in block["device-filter"]]
            assert cards
            assert len(cards) == len(set(cards)), name
    assert json.loads(files["nodes/a1.json"]())["kubernetes"]["labels"]["nvidia.com/mig.config"] == "all-disabled"
    (patch,) = documents(files, "kubernetes/operator/clusterpolicy-patch.yaml")
    assert patch["spec"]["mig"] == {"strategy": None}
    assert patch["spec"]["devicePlugin"]["config"] == {"name": plugin["metadata"]["name"], "default": "default"}
    assert plugin["metadata"]["namespace"] == "gpu-operator"


def test_the_whole_mig_file_is_taken_and_each_card_holds_the_generated_names(tmp_path: Path) -> None:
    files = render_tree(site(tmp_path, text("a1 dgx mig, layout: {all: {1g.10gb: 7}}", delivery=OPERATOR)))
    written = documents(files, "kubernetes/operator/configmap-mig-parted.yaml")[0]["data"]["config.yaml"]
    assert [finding.message for finding in kubernetes.judge_mig_file(written, kubernetes.in_file("f"))] == []
    file = kubernetes.read_mig(written).file
    assert file is not None
    held = set()
    for model in (model for model in models() if model.has_mig and model.pci_ids):
        for name, entries in file.configs.items():
            node = kubernetes.node_of(model, 2)
            met = {card.index for _, card in walk(entries, node)}
            if met and not name.startswith("hybridgpu-"):
                assert met == {0, 1}
                done = apply(entries, node)
                assert (done.words, assert_config(entries, done.node)) == (None, None), (model.name, name)
                held.add((model.name, name))
    assert {("A100-SXM4-80GB", "all-1g.10gb.me"), ("A100-SXM4-80GB", "all-balanced"), ("A30", "all-2g.12gb")} <= held


def test_a_site_renders_alike_whatever_was_rendered_before_it(tmp_path: Path) -> None:
    path = "kubernetes/operator/configmap-mig-parted.yaml"
    shared = site(tmp_path, text("a1 dgx time-slicing, replicas: 4", delivery=OPERATOR))
    before = render_tree(shared)[path]()
    render_tree(site(tmp_path, text("a1 dgx mig, layout: {0-3: {2g.20gb: 3}, 4-7: off}", delivery=OPERATOR)))
    assert render_tree(shared)[path]() == before
    assert b"hybridgpu-" not in before.partition(b"\ndata:")[2]


def test_tolerations_are_merged_into_what_is_there(tmp_path: Path) -> None:
    delivery = f"{OPERATOR}, tolerations: [{{key: site/gpu, operator: Exists}}]"
    files = render_tree(site(tmp_path, text("a1 dgx exclusive", delivery=delivery)))
    for name in ("clusterpolicy-patch", "helm-values"):
        (file,) = documents(files, f"kubernetes/operator/{name}.yaml")
        keys = [t["key"] for t in file.get("spec", file)["daemonsets"]["tolerations"]]
        assert keys == ["nvidia.com/gpu", "site/gpu", "hybridgpu.io/closed"]


@pytest.mark.parametrize("delivery", [CHART, OPERATOR])
def test_what_a_node_may_still_run_is_kept_until_forgotten(tmp_path: Path, delivery: str) -> None:
    out, path = tmp_path / "out", tmp_path / "inventory.yaml"

    def render(entry: str, *, forget: bool = False) -> dict[str, Any]:
        path.write_text(text(entry, delivery=delivery))
        result = rendered(load_site(str(path)), out, only=None, forget=forget)
        write(out, result.plan, result.wanted, SYNCED)
        return {str(p.relative_to(out)): without_stamp(p.read_bytes()) for p in out.rglob("*.yaml")}

    def kept(before: dict[str, bytes], after: dict[str, bytes]) -> bool:
        if delivery == CHART:
            return set(before) <= set(after)
        (old, new) = (
            yaml.safe_load(t["kubernetes/operator/configmap-device-plugin.yaml"])["data"] for t in (before, after)
        )
        (cut, recut) = (
            yaml.safe_load(yaml.safe_load(t["kubernetes/operator/configmap-mig-parted.yaml"])["data"]["config.yaml"])
            for t in (before, after)
        )
        layouts = {n: e for n, e in cut["mig-configs"].items() if n.startswith("hybridgpu-")}
        return bool(old.items() <= new.items() and layouts.items() <= recut["mig-configs"].items())

    first = render("a1 dgx mig, layout: {all: {1g.10gb: 7}}")
    second = render("a1 dgx time-slicing, replicas: 4")
    third = render("a1 dgx time-slicing, replicas: 5")
    assert kept(first, second)
    assert kept(first, third)
    assert kept(second, third)
    assert render("a1 dgx time-slicing, replicas: 5") == third
    assert not kept(second, render("a1 dgx time-slicing, replicas: 5", forget=True))


def test_nothing_rendered_is_a_trigger(tmp_path: Path) -> None:
    for delivery in (CHART, OPERATOR):
        files = render_tree(site(tmp_path, text("a1 dgx mig, layout: {all: {1g.10gb: 7}}", delivery=delivery)))
        for path in (path for path in files if path.startswith("kubernetes/")):
            assert all(d.get("kind", "values") in ("values", "ConfigMap", "DaemonSet") for d in documents(files, path))


def slurm_rows(body: NodeBody, offer: SlurmOffer) -> set[tuple[tuple[int, ...], str | None, int, int]]:
    """Slurm's offer without its names: card indices, profile, count, replicas; a device is known by its first file."""
    by_files = {device.files[-1]: device for device in body.devices}
    groups: dict[tuple[str | None, int], list[int]] = {}
    for gpu in offer.gpus:
        device = by_files[gpu.files[-1]]
        replicas = gpu.shares if offer.sharing == "shard" else 1
        groups.setdefault((device.profile, replicas), []).append(device.index)
    return {(tuple(sorted(set(i))), profile, len(i), replicas) for (profile, replicas), i in groups.items()}


@pytest.mark.parametrize("delivery", ["device-plugin", "gpu-operator"])
def test_generated_inventories_are_honoured_in_full_and_both_halves_agree(
    tmp_path_factory: pytest.TempPathFactory, delivery: str
) -> None:
    @settings(max_examples=soak(30, 400), deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(cases("24.11", splits=delivery == "device-plugin"))
    def judge(case: Case) -> None:
        case.inventory["kubernetes"]["delivery"] = delivery
        path = tmp_path_factory.mktemp("case") / "inventory.yaml"
        path.write_text(yaml.safe_dump(case.inventory, sort_keys=False))
        loaded = load_site(str(path))
        assert loaded.site, [f.message for f in loaded.findings]
        assert [f for f in prove_kubernetes(loaded.site, render_tree(loaded.site)) if f.severity != "info"] == []
        files = {**slurm_texts(render_tree(loaded.site)), "slurm.conf": CONF}
        consumed = slurm.consume(slurm.load(files), slurm.RELEASES["24.11"])
        for node in case.nodes:
            agree(loaded.site, node.name, consumed)

    judge()


def agree(whole: Site, name: str, consumed: slurm.Consumption) -> None:
    body = whole.nodes[name].body
    assert whole.kubernetes is not None
    from hybridgpu.render.kubernetes.config import plugin_config
    from hybridgpu.render.kubernetes.yamltext import dump

    config = dump(plugin_config(body, whole.kubernetes).data)
    plugin = kubernetes.consume(config, node_seen(body), {"MPS_ROOT": whole.kubernetes.mps_root}).plugin
    assert isinstance(plugin, PluginRuns), plugin
    assert plugin.warnings == ()
    offer = consumed.offer_of(name)
    assert offer is not None
    if body.split:  # each scheduler has its own cards there, and all of them
        theirs = {index for row in plugin.offer.table() for index in row.indices}
        ours = {index for row in slurm_rows(body, offer) for index in row[0]}
        assert theirs == {index for index, owner in enumerate(body.owners) if owner == "kubernetes"}
        assert ours == {index for index, owner in enumerate(body.owners) if owner == "slurm"}
        return
    mps = offer.sharing == "mps"  # Slurm counts percents there, not replicas
    rows = {(r.indices, r.profile, r.count, 1 if mps else r.replicas) for r in plugin.offer.table()}
    assert rows == slurm_rows(body, offer)


def test_a_switch_of_delivery_keeps_what_nodes_still_run(tmp_path: Path) -> None:
    out, path = tmp_path / "out", tmp_path / "inventory.yaml"

    def render(written: str, *, forget: bool = False) -> set[str]:
        path.write_text(written)
        result = rendered(load_site(str(path)), out, only=None, forget=forget)
        write(out, result.plan, result.wanted, SYNCED)
        return {str(p.relative_to(out)) for p in (out / "kubernetes").rglob("*.yaml")}

    entry = "a1 dgx time-slicing, replicas: 4"
    chart = render(text(entry))
    operator = render(text(entry, delivery=OPERATOR))
    assert chart < operator
    gone = render(text("{hosts: a1, class: dgx, owner: slurm, schedulers: [slurm], sharing: {mode: exclusive}}"))
    assert chart | {path for path in operator if "configmap" in path} == gone
    assert render(text(entry), forget=True) == chart


@pytest.mark.parametrize(
    "body", ["foo: bar\n", "data: null\n", "a: [\n", "\xff\xfe", "data: {config.yaml: 'mig-configs: null'}\n"]
)
def test_a_file_of_ours_that_cannot_be_read_is_refused_until_forgotten(tmp_path: Path, body: str) -> None:
    out, path = tmp_path / "out", tmp_path / "inventory.yaml"
    path.write_text(text("a1 dgx exclusive", delivery=OPERATOR))
    for name in ("configmap-device-plugin.yaml", "configmap-mig-parted.yaml"):
        (out / "kubernetes/operator").mkdir(parents=True, exist_ok=True)
        (out / "kubernetes/operator" / name).write_bytes(stamp(name, body.encode("latin-1")))
    with pytest.raises(Refused) as refusal:
        rendered(load_site(str(path)), out, only=None, forget=False)
    assert "render-retained-unreadable" in {finding.rule.id for finding in refusal.value.findings}
    assert rendered(load_site(str(path)), out, only=None, forget=True).plan.replace


def test_an_edited_map_still_gives_the_configs_whose_names_are_their_hashes(tmp_path: Path) -> None:
    out, path = tmp_path / "out", tmp_path / "inventory.yaml"
    path.write_text(text("a1 dgx time-slicing, replicas: 4", delivery=OPERATOR))
    first = rendered(load_site(str(path)), out, only=None, forget=False)
    write(out, first.plan, first.wanted, SYNCED)
    file = out / "kubernetes/operator/configmap-device-plugin.yaml"
    (key,) = (key for key in yaml.safe_load(file.read_bytes())["data"] if key != "default")
    file.write_text(file.read_text() + "# mine\n")
    path.write_text(text("a1 dgx time-slicing, replicas: 8", delivery=OPERATOR))
    second = rendered(load_site(str(path)), out, only=None, forget=False)
    assert key in yaml.safe_load(second.wanted["kubernetes/operator/configmap-device-plugin.yaml"]())["data"]


@pytest.mark.parametrize("edited", [False, True])
def test_a_map_of_another_hybridgpu_gives_all_its_configs_unless_it_was_edited(edited: bool) -> None:
    """Nodes run what it named, however it hashed; nobody vouches for what was changed under a name since."""
    plugin = b'data:\n  "0123456789": |\n    version: v1\n  default: |\n    version: v1\n'
    mig = b"data:\n  config.yaml: |\n    mig-configs: {hybridgpu-0123456789: [], all-disabled: []}\n"
    there = {
        f"kubernetes/operator/configmap-{name}.yaml": stamp("m.yaml", content) + b"# mine\n" * edited
        for name, content in (("device-plugin", plugin), ("mig-parted", mig))
    }
    retained, findings = retained_from(there)
    assert findings == ()
    kept = {(config.kind, config.name) for config in retained.plugin_configs if config.kind != "file"}
    assert kept == (set() if edited else {("plugin", "0123456789"), ("mig", "hybridgpu-0123456789")})


def test_a_map_that_no_api_server_takes_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = site(tmp_path, text("n1 dgx time-slicing, replicas: 4", delivery=OPERATOR))
    files = render_tree(small)
    sizes = [len(files[path]()) for path in files if "configmap-" in path]
    monkeypatch.setattr("hybridgpu.render.kubernetes.proof._MOST", max(sizes))
    assert list(prove_kubernetes(small, files)) == []
    monkeypatch.setattr("hybridgpu.render.kubernetes.proof._MOST", max(sizes) - 1)
    assert [finding.rule.id for finding in prove_kubernetes(small, files)] == ["render-configmap-too-large"]


@pytest.mark.parametrize(
    ("delivery", "file", "old", "new"),
    [
        (CHART, "chart/values-", b"replicas: 4", b"replicas: 5"),
        (CHART, "chart/values-", b"timeSlicing:", b"timeslice:"),
        (OPERATOR, "operator/configmap-device-plugin", b"replicas: 4", b"replicas: 1"),
        (OPERATOR, "operator/configmap-mig-parted", b"hybridgpu-", b"hybridgpx-"),
    ],
)
def test_text_that_says_something_else_is_refused(
    tmp_path: Path, delivery: str, file: str, old: bytes, new: bytes
) -> None:
    entries = ("a1 dgx time-slicing, replicas: 4", "b1 dgx mig, layout: {all: {1g.10gb: 7}}")
    good = site(tmp_path, text(*entries, delivery=delivery))
    files = dict(render_tree(good))
    assert list(prove_kubernetes(good, files)) == []
    (path,) = (path for path in files if path.startswith(f"kubernetes/{file}") and old in files[path]())
    damaged = files[path]().replace(old, new)
    assert any(finding.is_error for finding in prove_kubernetes(good, {**files, path: lambda: damaged}))
