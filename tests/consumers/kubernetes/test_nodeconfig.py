"""Which config a node runs, whoever asks: by label, by the nodes that a plugin's pods select, by a file's name."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from hybridgpu.consumers.kubernetes import judge_configuration
from hybridgpu.consumers.kubernetes.askjudge import judge_asks
from hybridgpu.consumers.kubernetes.configmanager import EMPTY
from hybridgpu.consumers.kubernetes.given import Config, ConfigSet, KubeFiles, KubeNode
from hybridgpu.consumers.kubernetes.nodeconfig import NodeConfigs
from hybridgpu.files.where import in_file
from hybridgpu.model.finding import Place
from tests.consumers.kubernetes.given_files import PLAIN, RENAMED, STRICT, config_map, gathered, judged, node, pod

GPU, LABEL = "nvidia.com/gpu", "nvidia.com/device-plugin.config"
PRESENT = "nvidia.com/gpu.present: 'true'"
NONE = "version: v1\nflags: {migStrategy: none}"
RENAMES = f"{NONE}\nsharing: {{timeSlicing: {{renameByDefault: true, resources: [{{name: {GPU}, replicas: 4}}]}}}}"


def plugin(pool: str, config_map: str = "", file: str = "", manager: str = "") -> str:
    """A DaemonSet of the plugin for one pool; with the ConfigMap mounted, and perhaps a config-manager beside it."""
    mount = "volumeMounts: [{name: c, mountPath: /%s}]"
    containers = [f"{{name: nvidia-device-plugin-ctr, env: [{{name: CONFIG_FILE, value: /config/{file}}}], "]
    containers[0] += mount % "config" + "}" if config_map and not manager else "}"
    if not config_map:
        containers = ["{name: nvidia-device-plugin-ctr, env: [{name: MIG_STRATEGY, value: none}]}"]
    if manager:
        env = f"env: [{{name: DEFAULT_CONFIG, value: '{manager}'}}]"
        containers.append(f"{{name: m, command: [config-manager], {env}, {mount % 'available-configs'}}}")
    volumes = f", volumes: [{{name: c, configMap: {{name: {config_map}}}}}]" if config_map else ""
    spec = f"{{nodeSelector: {{pool: {pool}}}, containers: [{', '.join(containers)}]{volumes}}}"
    return (
        f"---\napiVersion: apps/v1\nkind: DaemonSet\nmetadata: {{name: plugin-{pool}, namespace: nvidia}}\n"
        f"spec: {{template: {{spec: {spec}}}}}\n"
    )


def named(text: str, name: str) -> str:
    return "---\n" + text.replace("name: configs", f"name: {name}")


TWO_MAPS = named(config_map(config=NONE), "of-a") + named(config_map(config=RENAMES), "of-b")
ONE_MAP = config_map(plain=NONE, renamed=RENAMES)
POOLS = {
    "a ConfigMap each": TWO_MAPS + plugin("a", "of-a", "config") + plugin("b", "of-b", "config"),
    "a file each of one ConfigMap": ONE_MAP + plugin("a", "configs", "plain") + plugin("b", "configs", "renamed"),
    "a default each": ONE_MAP + plugin("a", "configs", manager="plain") + plugin("b", "configs", manager="renamed"),
    "one without a config": plugin("a") + named(config_map(config=RENAMES), "of-b") + plugin("b", "of-b", "config"),
}
NODES = node("n1", f"{PRESENT}, pool: a") + node("n2", f"{PRESENT}, pool: b")


@pytest.mark.parametrize(
    ("pools", "nodes"),
    [(pools, nodes) for pools in POOLS for nodes in ("", NODES) if nodes or pools != "a default each"],
    ids=lambda text: text if text in POOLS else "with Nodes" if text else "without Nodes",
)
def test_a_pool_offers_what_its_own_plugin_does(tmp_path: Path, pools: str, nodes: str) -> None:
    shared = f"{GPU}.shared"
    for number, (pool, name, wrong) in enumerate(
        (("a", GPU, False), ("a", shared, True), ("b", shared, False), ("b", GPU, True))
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        asks = pod(f"{name}: 1", spec=f"nodeSelector: {{pool: {pool}}}")
        found = [finding.rule.id for finding in judged(folder, POOLS[pools] + nodes, asks)]
        assert found == ["k8s-ask-not-offered"] * wrong, (pool, name)


PICKS: dict[str, tuple[str, str, list[str]]] = {
    # what: the files, the labels of a node, the keys that it may run
    "the label": (config_map(a=PLAIN, b=RENAMED), f"{LABEL}: b", ["b"]),
    "a label that is no key": (config_map(a=PLAIN, b=RENAMED), f"{LABEL}: zz", []),
    "no label": (config_map(a=PLAIN, b=RENAMED), PRESENT, []),
    "the one config there is": (config_map(a=PLAIN), PRESENT, ["a"]),
    "the one called default": (config_map(a=PLAIN, default=STRICT), PRESENT, ["default"]),
    "in two ConfigMaps": (TWO_MAPS, f"{LABEL}: config", ["config", "config"]),
    "by hash": (
        config_map(**{"gpu-0123456789": PLAIN, "b": PLAIN}),
        "hybridgpu.io/config: '0123456789'",
        ["gpu-0123456789"],
    ),
    "where the plugin runs": (POOLS["a default each"], "pool: b", ["renamed"]),
    "where the plugin runs, and a label": (POOLS["a default each"], f"pool: b, {LABEL}: plain", ["plain"]),
    "a file, whatever the label": (POOLS["a file each of one ConfigMap"], f"pool: b, {LABEL}: plain", ["renamed"]),
    "where no plugin runs": (POOLS["a default each"], "pool: c", []),
    "the operator without a default": (
        "apiVersion: nvidia.com/v1\nkind: ClusterPolicy\nmetadata: {name: p}\n"
        "spec: {devicePlugin: {config: {name: configs}}}\n---\n" + config_map(a=PLAIN),
        PRESENT,
        [EMPTY],
    ),
}


@pytest.mark.parametrize("what", PICKS)
def test_what_a_node_runs(tmp_path: Path, what: str) -> None:
    texts, labels, keys = PICKS[what]
    files = gathered(tmp_path, texts + node("n", labels))
    assert [one.key for one in NodeConfigs(files.sets).running(files.nodes[0])] == keys


@pytest.mark.parametrize("used", [False, True], ids=["loose", "used"])
def test_many_sets_and_many_nodes_cost_no_more_than_their_sum(used: bool) -> None:
    """2,000 sets and 2,000 nodes, each for one other: one look at each would be four million."""
    count, place = 2000, Place("f", 1)
    sets = tuple(
        ConfigSet(
            *(f"ConfigMap {n}", f"c{n}", "", (Config(f"k{n}", PLAIN, in_file("f"), place),), place),
            managed=used,
            user=place if used else None,
            selector={"pool": str(n)} if used else {},
        )
        for n in range(count)
    )
    nodes = tuple(
        KubeNode(
            f"n{n}",
            place,
            {"pool": str(n), LABEL: f"k{n}", "nvidia.com/gpu.present": "true"},
            {},
            (),
            None,
            False,
            None,
        )
        for n in range(count)
    )
    start = time.process_time()
    configs = NodeConfigs(sets)
    assert [one.key for node in nodes for one in configs.running(node)] == [f"k{n}" for n in range(count)]
    assert time.process_time() - start < 0.5
    files = KubeFiles(sets=sets, nodes=nodes)
    start = time.process_time()
    assert not list(judge_asks(files))
    list(judge_configuration(files))
    assert time.process_time() - start < 10
