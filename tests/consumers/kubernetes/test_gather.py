"""Files to records: what is read of configs, policies, charts, DaemonSets and Nodes, and what is left alone."""

from __future__ import annotations

from pathlib import Path
from textwrap import indent

import pytest

from hybridgpu.consumers.kubernetes import KubeFiles, Node, gather, node_of
from hybridgpu.consumers.kubernetes.configmanager import CHART, Settings
from hybridgpu.consumers.kubernetes.nodes import cards_of
from hybridgpu.files.kinds import Input, Kind, inputs
from hybridgpu.files.source import NOT_UTF8
from hybridgpu.model.finding import Place
from hybridgpu.model.site import Toleration
from tests.consumers.kubernetes.tables import A100, model

SHARED = "version: v1\nsharing:\n  timeSlicing:\n    resources: [{name: gpu, replicas: 4}]\n"
A80, H100, V100 = model("A100-SXM4-80GB"), model("H100-80GB-HBM3"), model("V100-SXM2-32GB")


def read(folder: Path, **files: str) -> KubeFiles:
    for name, text in files.items():
        (folder / f"{name}.yaml").write_text(text)
    found, findings = gather(list(inputs(str(folder))))
    assert findings == ()
    return found


def test_a_node_as_kubectl_shows_it(tmp_path: Path) -> None:
    text = (
        "apiVersion: v1\nkind: Node\nmetadata:\n  name: n1\n  labels:\n    a: b\n    nvidia.com/gpu.count: '2'\n"
        "    nvidia.com/gpu.product: NVIDIA-A100-SXM4-40GB\n"
        "spec:\n  unschedulable: true\n  taints:\n  - {key: k, value: v, effect: NoSchedule}\n"
        "status:\n  allocatable: {cpu: '8', nvidia.com/gpu: '2', nvidia.com/gpu.shared: '0'}\n"
    )
    (node,) = read(tmp_path, n=text).nodes
    assert node.name == "n1" and node.unschedulable and node.offers and node.has_gpus
    assert node.allocatable == {"nvidia.com/gpu": 2, "nvidia.com/gpu.shared": 0}
    assert node.labels["a"] == "b" and set(node.label_places) == {"nvidia.com/gpu.count", "nvidia.com/gpu.product"}
    assert node.label_places["nvidia.com/gpu.count"] == Place(f"{tmp_path}/n.yaml", 7, 5)
    assert [(taint.key, taint.value, taint.effect, taint.place.line) for taint in node.taints] == [
        ("k", "v", "NoSchedule", 12)
    ]
    assert node.cards == node_of(A100, 2)


def test_capacity_where_there_is_nothing_allocatable_and_none_without_status(tmp_path: Path) -> None:
    head = "apiVersion: v1\nkind: Node\nmetadata: {name: n}\n"
    found = read(tmp_path, a=head + "status: {capacity: {nvidia.com/gpu: 4}}\n", b=head, c=head + "status: {}\n")
    assert [node.allocatable for node in found.nodes] == [{"nvidia.com/gpu": 4}, None, None]
    assert [node.cards for node in found.nodes] == [None, None, None]


def labels(**words: str) -> dict[str, str]:
    return {f"nvidia.com/{key.replace('__', '-').replace('_', '.')}": value for key, value in words.items()}


def mixed(count: int, replicas: str = "0", **profiles: str) -> dict[str, str]:
    told = labels(
        gpu_product="NVIDIA-A100-SXM4-80GB", gpu_count=str(count), mig_strategy="mixed", gpu_replicas=replicas
    )
    return told | {f"nvidia.com/mig-{p.replace('_', '.')[1:]}.count": n for p, n in profiles.items()}


SEVEN = ("1g.10gb",) * 7
CARDS: dict[str, tuple[dict[str, str], dict[str, int] | None, Node | None]] = {
    "whole": (labels(gpu_product="Tesla-V100-SXM2-32GB", gpu_count="4"), None, node_of(V100, 4)),
    "shared": (labels(gpu_product="NVIDIA-A100-SXM4-80GB-SHARED", gpu_count="2"), None, node_of(A80, 2)),
    "told by memory": (
        labels(gpu_product="NVIDIA-H100-80GB-HBM3", gpu_count="1", gpu_memory="81559"),
        *(None, node_of(H100, 1)),
    ),
    "no product": (labels(gpu_count="4"), None, None),
    "an unknown product": (labels(gpu_product="NVIDIA-Z999", gpu_count="4", gpu_memory="1"), None, None),
    "no count": (labels(gpu_product="NVIDIA-A100-SXM4-80GB"), None, None),
    "a count beyond all nodes": (labels(gpu_product="NVIDIA-A100-SXM4-80GB", gpu_count="1000000"), None, None),
    "a count that is none": (labels(gpu_product="NVIDIA-A100-SXM4-80GB", gpu_count="-4"), None, None),
    "single": (
        labels(gpu_product="NVIDIA-A100-SXM4-80GB-MIG-1g.10gb", gpu_count="14", mig_strategy="single"),
        *(None, node_of(A80, 2, {0: SEVEN, 1: SEVEN})),
    ),
    "single, half full": (labels(gpu_product="NVIDIA-A100-SXM4-80GB-MIG-1g.10gb", gpu_count="5"), None, None),
    "single, media extensions": (
        labels(gpu_product="NVIDIA-A100-SXM4-80GB-MIG-1g.10gb.me-SHARED", gpu_count="2"),
        *(None, node_of(A80, 2, {0: ("1g.10gb+me",), 1: ("1g.10gb+me",)})),
    ),
    "single, invalid": (labels(gpu_product="NVIDIA-A100-SXM4-80GB-MIG-INVALID", gpu_count="0"), None, None),
    "mixed, cut alike": (
        mixed(2, _1g_10gb="4", _3g_40gb="2"),
        *(None, node_of(A80, 2, dict.fromkeys((0, 1), ("1g.10gb", "1g.10gb", "3g.40gb")))),
    ),
    "mixed, nothing cut": (mixed(2, "1"), None, node_of(A80, 2)),
    "mixed, MIG on and empty": (mixed(2), None, node_of(A80, 2, {0: (), 1: ()})),
    "mixed, whole cards beside": (
        mixed(3, "1", _7g_80gb="2"),
        *({"nvidia.com/gpu": 1}, node_of(A80, 3, {0: ("7g.80gb",), 1: ("7g.80gb",)})),
    ),
    "mixed, shared whole cards beside": (
        mixed(2, "4", _7g_80gb="1"),
        *({"nvidia.com/gpu.shared": 4}, node_of(A80, 2, {0: ("7g.80gb",)})),
    ),
    "mixed, as tight as it goes": (
        mixed(2, _3g_40gb="3"),
        *(None, node_of(A80, 2, {0: ("3g.40gb", "3g.40gb"), 1: ("3g.40gb",)})),
    ),
    "mixed, more than fits": (mixed(1, _7g_80gb="2"), None, None),
    "MIG on, strategy none": (
        labels(gpu_product="NVIDIA-A100-SXM4-80GB", gpu_count="2", gpu_replicas="0"),
        *(None, None),
    ),
}


@pytest.mark.parametrize("case", CARDS)
def test_the_cards_that_labels_show(case: str) -> None:
    told, allocatable, cards = CARDS[case]
    assert cards_of(told, allocatable) == cards


def test_a_policy(tmp_path: Path) -> None:
    text = (
        "apiVersion: nvidia.com/v1\nkind: ClusterPolicy\nmetadata: {name: cp}\nspec:\n"
        "  devicePlugin:\n    config: {name: c, default: d}\n    mps: {root: /mps}\n    env: [{name: A, value: '1'}]\n"
        "  mig: {strategy: mixed}\n  migManager:\n    config: {name: m, default: ''}\n"
        "  driver: {enabled: true, upgradePolicy: {autoUpgrade: false}}\n"
        "  daemonsets: {tolerations: [{key: k, operator: Exists}]}\n"
    )
    (policy,) = read(tmp_path, p=text).policies
    assert (policy.title, policy.chart, policy.namespace) == ("ClusterPolicy cp", False, "")
    assert (policy.config_name, policy.config_default, policy.mps_root) == ("c", "d", "/mps")
    assert (policy.mig_strategy, policy.mig_config_name, policy.mig_config_default) == ("mixed", "m", "")
    assert (policy.driver_enabled, policy.auto_upgrade, policy.plugin_env) == (True, False, {"A": "1"})
    assert policy.tolerations == (Toleration("k", "Exists", None, None),)
    assert policy.places["devicePlugin.config.default"].line == 6
    assert policy.places["driver.upgradePolicy.autoUpgrade"].line == 12


def test_what_a_policy_does_not_say(tmp_path: Path) -> None:
    (policy,) = read(tmp_path, p="apiVersion: nvidia.com/v1\nkind: ClusterPolicy\nmetadata: {name: p}\n").policies
    assert (policy.config_name, policy.mig_strategy, policy.auto_upgrade, policy.tolerations) == (None,) * 4


POLICY = (
    "apiVersion: nvidia.com/v1\nkind: ClusterPolicy\nmetadata: {name: p, namespace: op}\n"
    "spec: {devicePlugin: {config: {name: c, default: b}}, mig: {strategy: mixed}}\n"
)
MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c%s}\ndata:\n  b: |\n" + indent(SHARED, "    ")


@pytest.mark.parametrize(("space", "used"), [("", True), (", namespace: op", True), (", namespace: x", False)])
def test_a_policy_says_how_its_configmap_is_used(space: str, used: bool, tmp_path: Path) -> None:
    (found,) = read(tmp_path, c=MAP % space, p=POLICY).sets
    assert (found.managed, found.operator, found.user is not None) == (used, used, used)
    assert found.settings == (Settings("b", ("empty",)) if used else CHART)
    assert found.env == ({"MPS_ROOT": "/run/nvidia/mps", "MIG_STRATEGY": "mixed"} if used else None)
    assert found.keys == {"b": SHARED}
    assert found.configs[0].where(3, 5) == Place(f"{tmp_path}/c.yaml", 8, 9)


def test_a_configmap_that_is_named_holds_configs_whatever_it_says(tmp_path: Path) -> None:
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {b: 'nonsense: 1', d: 'more'}\n"
    assert read(tmp_path, c=text).sets == ()
    (found,) = read(tmp_path, p=POLICY).sets
    assert found.keys == {"b": "nonsense: 1", "d": "more"}


def test_the_values_of_the_plugin_s_chart(tmp_path: Path) -> None:
    text = (
        "config:\n  map:\n    a: |\n" + indent(SHARED, "      ") + "  default: a\n  fallbackStrategies: [empty]\n"
        "migStrategy: mixed\nfailOnInitError: false\nmps: {root: /m}\ngfd: {enabled: true}\n"
        "nodeSelector: {pool: x}\ntolerations: []\n"
    )
    found = read(tmp_path, v=text)
    (chart,), (configs,) = found.charts, found.sets
    assert chart.env == {"MPS_ROOT": "/m", "MIG_STRATEGY": "mixed", "FAIL_ON_INIT_ERROR": "false"}
    assert (chart.gfd, chart.plugin, chart.tolerations, chart.selector) == (True, True, (), {"pool": "x"})
    assert configs.settings == chart.settings == Settings("a", ("empty",))
    assert (configs.managed, configs.env, configs.selector) == (True, chart.env, chart.selector)
    assert configs.configs[0].where(4, 1).line == 7


def test_values_in_a_release_of_flux(tmp_path: Path) -> None:
    text = (
        "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: %s}\n"
        "spec:\n  chart: {spec: {chart: %s}}\n  values: {%s}\n"
    )
    operator = text % ("op", "gpu-operator", "devicePlugin: {config: {name: c}}")
    plugin = text % ("dp", "nvidia-device-plugin", "migStrategy: single")
    found = read(tmp_path, a=operator, b=plugin, c=text % ("x", "grafana", "config: {map: {a: 'version: v2'}}"))
    assert [policy.config_name for policy in found.policies] == ["c"] and found.policies[0].chart
    assert [chart.env["MIG_STRATEGY"] for chart in found.charts] == ["single"]


def workload(pod: str, kind: str = "DaemonSet") -> str:
    body = f"template: {{spec: {pod}}}" if kind != "Pod" else pod[1:-1]
    return f"apiVersion: apps/v1\nkind: {kind}\nmetadata: {{name: x, namespace: op}}\nspec: {{{body}}}\n"


STATIC = "{name: c, image: 'nvcr.io/nvidia/k8s-device-plugin:v0.20.0@sha256:00'}"
PROGRAMS = {
    STATIC: ["device-plugin"],
    "{name: c, image: a, command: [/usr/bin/nvidia-device-plugin]}": ["device-plugin"],
    "{name: c, image: nvcr.io/nvidia/k8s-device-plugin, command: [gpu-feature-discovery]}": ["gpu-feature-discovery"],
    "{name: mps-control-daemon-ctr, image: a, command: [mps-control-daemon]}": ["mps-control-daemon"],
    "{name: nvidia-device-plugin, image: a, command: [/bin/sh, -c], args: [/bin/entrypoint.sh]}": ["device-plugin"],
    "{name: nvidia-mig-manager, image: a, command: [/bin/sh, -c]}": ["mig-manager"],
    "{name: x, image: 'registry.local:5000/nvidia/dcgm-exporter:4'}": ["dcgm-exporter"],
    "{name: x, image: nvcr.io/nvidia/k8s-device-plugin, command: [config-manager]}": [],
    "{name: x, image: nvcr.io/nvidia/k8s-device-plugin, command: [sleep, infinity]}": [],
    "{name: x, image: pytorch/pytorch}": [],
}


@pytest.mark.parametrize("container", PROGRAMS)
@pytest.mark.parametrize("kind", ["DaemonSet", "Deployment", "Pod"])
def test_nvidia_s_programs_are_told_by_command_name_and_image(container: str, kind: str, tmp_path: Path) -> None:
    found = read(tmp_path, w=workload(f"{{containers: [{container}]}}", kind))
    assert [operand.program for operand in found.operands] == PROGRAMS[container]


def test_a_daemonset_with_a_config_manager(tmp_path: Path) -> None:
    manager = (
        "{name: m, command: [config-manager], env: [{name: DEFAULT_CONFIG, value: b}, "
        "{name: FALLBACK_STRATEGIES, value: 'named,single'}], "
        "volumeMounts: [{name: v, mountPath: /available-configs}]}"
    )
    plugin = (
        "{name: p, command: [nvidia-device-plugin, --mig-strategy, mixed, --pass-device-specs], "
        "env: [{name: MPS_ROOT, value: /m}]}"
    )
    pod = (
        f"{{nodeSelector: {{a: b}}, containers: [{manager}, {plugin}], volumes: [{{name: v, configMap: {{name: c}}}}]}}"
    )
    found = read(tmp_path, w=workload(pod), c=MAP % ", namespace: op")
    (operand,), (configs,) = found.operands, found.sets
    assert operand.env == {"MPS_ROOT": "/m", "MIG_STRATEGY": "mixed", "PASS_DEVICE_SPECS": "true"}
    assert (operand.config_map, operand.settings, operand.selector) == (
        "c",
        Settings("b", ("named", "single")),
        {"a": "b"},
    )
    assert (configs.managed, configs.operator, configs.settings) == (True, False, operand.settings)


def test_files_of_one_kind_alone(tmp_path: Path) -> None:
    found = read(tmp_path, p=SHARED, m="version: v1\nmig-configs: {a: [{devices: all, mig-enabled: false}]}\n")
    assert [(config.source, config.managed, config.env) for config in found.sets] == [
        (f"{tmp_path}/p.yaml", False, None)
    ]
    assert [(file.source, file.key) for file in found.mig_files] == [(f"{tmp_path}/m.yaml", "")]


def test_what_cannot_be_read_is_said_and_what_is_gone_is_not(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_bytes(b"kind: Node\xff")
    given = [Input(str(path), Kind.MANIFEST), Input(str(tmp_path / "gone"), Kind.MANIFEST), Input("a", Kind.SLURM_CONF)]
    files, findings = gather(given)
    assert files == KubeFiles() and [finding.rule for finding in findings] == [NOT_UTF8]
