"""Who asks for GPUs is read out of every kind of object that describes pods, with places, and out of nothing else."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from hybridgpu.consumers.kubernetes.asks import read_bounds, read_workload
from hybridgpu.consumers.kubernetes.given import Ask, Bound, Workload
from hybridgpu.consumers.kubernetes.gpunames import all_names, is_impossible, is_ours, is_taken, likely
from hybridgpu.consumers.kubernetes.quantity import NEGATIVE, NOT_A_QUANTITY, NOT_WHOLE, parse_quantity, read_quantity
from hybridgpu.files.goyaml import load
from hybridgpu.files.manifest import read_manifests
from hybridgpu.model.site import Toleration

SPEC = "{containers: [{name: c, image: a, resources: {limits: {nvidia.com/gpu: 2}}}]}"
HEAD = "apiVersion: %s\nkind: %s\nmetadata: {name: x, namespace: team}\n"

QUANTITIES = {
    # as the API server 1.36 takes them, run: text, number, why not
    "1": (1, ""),
    '"1"': (1, ""),
    "null": (0, ""),
    "0": (0, ""),
    "2k": (2000, ""),
    "1Ki": (1024, ""),
    "1e1": (10, ""),
    '"1e1"': (10, ""),
    "1.0": (1, ""),
    "+1": (1, ""),
    '" 1"': (1, ""),
    "1000m": (1, ""),
    "1000000u": (1, ""),
    "0x4": (4, ""),
    '"0.9999999999"': (1, ""),
    "0.5": (None, NOT_WHOLE),
    '"0.5"': (None, NOT_WHOLE),
    "500m": (None, NOT_WHOLE),
    "-1": (None, NEGATIVE),
    "one": (None, NOT_A_QUANTITY),
    '""': (None, NOT_A_QUANTITY),
    "true": (None, NOT_A_QUANTITY),
    "1 GPU": (None, NOT_A_QUANTITY),
    "[1]": (None, NOT_A_QUANTITY),
    "1e999999999": (None, NOT_A_QUANTITY),
    "10E": (2**63 - 1, ""),
}

KINDS = {
    # apiVersion, kind: what stands around the pod's spec
    ("v1", "Pod"): "spec: %s",
    ("v1", "PodTemplate"): "template: {spec: %s}",
    ("v1", "ReplicationController"): "spec: {template: {spec: %s}}",
    ("apps/v1", "Deployment"): "spec: {template: {spec: %s}}",
    ("apps/v1", "StatefulSet"): "spec: {template: {spec: %s}}",
    ("apps/v1", "DaemonSet"): "spec: {template: {spec: %s}}",
    ("apps/v1", "ReplicaSet"): "spec: {template: {spec: %s}}",
    ("batch/v1", "Job"): "spec: {template: {spec: %s}}",
    ("batch/v1", "CronJob"): "spec: {jobTemplate: {spec: {template: {spec: %s}}}}",
    ("kubeflow.org/v2beta1", "MPIJob"): "spec: {mpiReplicaSpecs: {Worker: {replicas: 2, template: {spec: %s}}}}",
    ("kubeflow.org/v1", "PyTorchJob"): "spec: {pytorchReplicaSpecs: {Master: {template: {spec: %s}}}}",
    ("kubeflow.org/v1", "Notebook"): "spec: {template: {spec: %s}}",
    ("ray.io/v1", "RayCluster"): "spec: {workerGroupSpecs: [{groupName: g, template: {spec: %s}}]}",
    ("serving.knative.dev/v1", "Service"): "spec: {template: {spec: %s}}",
    ("batch.volcano.sh/v1alpha1", "Job"): "spec: {tasks: [{template: {spec: %s}}]}",
}

NOT_WORKLOADS = {
    "a rule about pods": HEAD % ("kyverno.io/v1", "ClusterPolicy") + f"spec: {{rules: [{{validate: {SPEC}}}]}}",
    "a definition": HEAD % ("apiextensions.k8s.io/v1", "CustomResourceDefinition") + f"spec: {SPEC}",
    "measurements": HEAD % ("metrics.k8s.io/v1beta1", "PodMetrics") + "containers: [{name: c, usage: {cpu: 1}}]",
    "a pod without GPUs": HEAD % ("v1", "Pod") + "spec: {containers: [{name: c, image: a}]}",
    "a pod without containers": HEAD % ("v1", "Pod") + "spec: {containers: 3}",
    "a pod without a spec": HEAD % ("v1", "Pod"),
    "a pod of others' cards": HEAD % ("v1", "Pod") + "spec: {containers: [{resources: {limits: {amd.com/gpu: 1}}}]}",
    "a pod that failed": HEAD % ("v1", "Pod") + f"spec: {SPEC}\nstatus: {{phase: Failed}}",
    "a job that is complete": HEAD % ("batch/v1", "Job")
    + f'spec: {{template: {{spec: {SPEC}}}}}\nstatus: {{conditions: [{{type: Complete, status: "True"}}]}}',
    "an old revision": HEAD.replace("team", "team, ownerReferences: [{kind: Deployment}]") % ("apps/v1", "ReplicaSet")
    + f"spec: {{replicas: 0, template: {{spec: {SPEC}}}}}",
    "NVIDIA's own": HEAD % ("apps/v1", "DaemonSet")
    + f"spec: {{template: {{spec: {SPEC.replace('image: a', 'image: nvcr.io/nvidia/k8s-device-plugin:v0.20.0')}}}}}",
    "a ConfigMap": HEAD % ("v1", "ConfigMap") + f"data: {SPEC}",
}


def workload(text: str) -> Workload | None:
    (manifest,) = read_manifests("f", text).objects
    return read_workload(manifest)


def read(text: str) -> Workload:
    found = workload(text)
    assert found is not None
    return found


def bounds(text: str) -> tuple[Bound, ...]:
    (manifest,) = read_manifests("f", text).objects
    return read_bounds(manifest)


@pytest.mark.parametrize("text", QUANTITIES)
def test_a_number_is_read_as_the_api_server_reads_it(text: str) -> None:
    node = load(text).root
    assert node is not None
    read = read_quantity(node)
    assert (read.count, read.wrong) == QUANTITIES[text]


@given(st.integers(0, 10**9), st.sampled_from(["", "k", "M", "Ki", "Mi", "m", "u", "n", "e3", "E3", "e-3"]))
def test_a_quantity_is_its_number_times_its_suffix(number: int, suffix: str) -> None:
    large = {"": 1, "k": 1000, "M": 10**6, "Ki": 2**10, "Mi": 2**20, "e3": 1000, "E3": 1000}
    small = {"m": 1000, "u": 10**6, "n": 10**9, "e-3": 1000}
    assert parse_quantity(f"{number}{suffix}") == Fraction(number * large.get(suffix, 1), small.get(suffix, 1))


@pytest.mark.parametrize(
    ("text", "value"), [("1e" + "0" * 5000 + "1", 10), ("1e-" + "0" * 5000, 1), ("1e" + "9" * 5000, None)]
)
def test_an_exponent_has_as_many_digits_as_it_likes(text: str, value: int | None) -> None:
    assert parse_quantity(text) == value


@given(st.text(alphabet="0123456789.+-eEKMGTPimunk xyz", max_size=12))
def test_no_text_upsets_the_reader_of_quantities(text: str) -> None:
    value = parse_quantity(text)
    assert value is None or isinstance(value, Fraction)


@pytest.mark.parametrize(("version", "kind"), KINDS)
def test_every_kind_that_describes_pods_is_read(version: str, kind: str) -> None:
    found = read(HEAD % (version, kind) + KINDS[version, kind] % SPEC)
    assert [(ask.container, ask.resource, ask.count, ask.place.line) for ask in found.asks] == [
        ("c", "nvidia.com/gpu", 2, 4)
    ]
    assert (found.title, found.namespace, found.kind) == (f"{kind} team/x", "team", kind)
    own = version in ("v1", "apps/v1", "batch/v1")
    assert found.known is own


@pytest.mark.parametrize("what", NOT_WORKLOADS)
def test_what_is_no_workload_of_a_user_is_left_alone(what: str) -> None:
    assert workload(NOT_WORKLOADS[what]) is None


def test_a_pod_is_read_whole() -> None:
    found = read(
        HEAD % ("v1", "Pod")
        + """spec:
  nodeSelector: {pool: gpu, zone: 3}
  nodeName: gpu001
  tolerations: [{key: nvidia.com/gpu, operator: Exists}, {}]
  affinity:
    nodeAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        nodeSelectorTerms:
        - matchExpressions: [{key: gpu, operator: In, values: [a100]}]
  resources: {limits: {nvidia.com/gpu: 1, cpu: 1}}
  initContainers:
  - {name: i, image: a, resources: {requests: {nvidia.com/gpu: 1}}}
  containers:
  - name: first
    image: a
    volumeMounts: [{mountPath: /dev/shm, name: shm}]
  - name: second
    image: a
    env:
    - {name: NVIDIA_VISIBLE_DEVICES, value: void}
    - {name: NVIDIA_VISIBLE_DEVICES, value: "0"}
    volumeMounts:
    - {mountPath: /data, name: data}
    - {mountPath: /dev/shm/, name: shm}
    resources:
      limits: {nvidia.com/gpu: 2, nvidia.com/mig-1g.10gb: 1}
      requests: {nvidia.com/gpu: 1, cpu: 4}
"""
    )
    assert [
        (ask.container, ask.resource, ask.text, ask.limited, ask.request, ask.init, str(ask.place))
        for ask in found.asks
    ] == [
        ("i", "nvidia.com/gpu", "1", False, None, True, "f:15:48"),
        ("second", "nvidia.com/gpu", "2", True, ("1", 1), False, "f:29:16"),
        ("second", "nvidia.com/mig-1g.10gb", "1", True, None, False, "f:29:35"),
    ]
    assert dict(found.node_selector) == {"pool": "gpu", "zone": "3", "gpu": "a100"}
    assert (found.node_name, found.choosy) == ("gpu001", False)
    assert found.tolerations == (
        Toleration("nvidia.com/gpu", "Exists", None, None),
        Toleration(None, None, None, None),
    )
    assert (str(found.shm), found.shm_of) == ("f:27:19", "second")
    assert (str(found.visible), found.visible_text) == ("f:24:45", "0")
    assert [(name, str(place)) for name, place in found.pod_level] == [("nvidia.com/gpu", "f:13:24")]


@pytest.mark.parametrize(
    "terms",
    [
        "[{matchExpressions: [{key: a, operator: In, values: [b, c]}]}]",
        "[{matchExpressions: [{key: a, operator: Exists}]}]",
        "[{matchExpressions: []}, {matchExpressions: []}]",
    ],
)
def test_an_affinity_that_is_more_than_one_label_is_known_to_be_there(terms: str) -> None:
    affinity = f"{{nodeAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: {{nodeSelectorTerms: {terms}}}}}}}"
    found = read(HEAD % ("v1", "Pod") + f"spec: {SPEC[:-1]}, affinity: {affinity}}}")
    assert (found.choosy, dict(found.node_selector)) == (True, {})


def test_of_several_templates_only_what_all_select_counts() -> None:
    def group(labels: str) -> str:
        return f"{{template: {{spec: {SPEC[:-1]}, nodeSelector: {{{labels}}}}}}}}}"

    groups = f"{group('a: b, c: d')}, {group('a: b, c: e')}"
    found = read(HEAD % ("ray.io/v1", "RayCluster") + f"spec: {{workerGroupSpecs: [{groups}]}}")
    assert (dict(found.node_selector), found.choosy) == ({"a": "b"}, True)
    assert [ask.template for ask in found.asks] == [0, 1]


def test_a_node_that_many_share_is_seen_once() -> None:
    """YAML's aliases make a tree that is short to write and endless to walk."""
    lines = [f"a0: &a0 {SPEC}"] + [f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, 7)]
    text = HEAD % ("example.com/v1", "Thing") + "spec:\n" + "".join(f"  {line}\n" for line in lines)
    assert len(read(text).asks) == 1


def test_a_list_of_pods_as_json_is_read() -> None:
    pods = [yaml.safe_load(HEAD % ("v1", "Pod") + f"spec: {SPEC}") for _ in range(2)]
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": pods}, indent=2)
    found = [read_workload(manifest) for manifest in read_manifests("f", text).objects]
    assert [each.asks[0].place.line for each in found if each] == [19, 40]


def test_a_quota_is_read() -> None:
    text = (
        "{requests.nvidia.com/gpu: 8, limits.nvidia.com/mig-1g.10gb: '4', nvidia.com/gpu.shared: 2.5, requests.cpu: 1}"
    )
    assert [
        (b.field, b.resource, b.text, b.count, b.wrong, str(b.place))
        for b in bounds(HEAD % ("v1", "ResourceQuota") + f"spec:\n  hard: {text}")
    ] == [
        ("limits.nvidia.com/mig-1g.10gb", "nvidia.com/mig-1g.10gb", "4", 4, "", "f:5:38"),
        ("nvidia.com/gpu.shared", "nvidia.com/gpu.shared", "2.5", None, NOT_WHOLE, "f:5:74"),
        ("requests.nvidia.com/gpu", "nvidia.com/gpu", "8", 8, "", "f:5:10"),
    ]


def test_a_limit_range_is_read() -> None:
    items = (
        "[{type: Container, max: {nvidia.com/gpu: 2, cpu: 1}, min: {cpu: 1}}, {type: Pod, max: {nvidia.com/gpu: 4}}]"
    )
    found = bounds(HEAD % ("v1", "LimitRange") + f"spec: {{limits: {items}}}")
    assert [(b.field, b.resource, b.count, b.scope, b.item) for b in found] == [
        ("max", "nvidia.com/gpu", 2, "Container", 0),
        ("max", "nvidia.com/gpu", 4, "Pod", 1),
    ]
    assert bounds(HEAD % ("v1", "Pod") + f"spec: {SPEC}") == ()


NAMES = {
    # name: ours, impossible, right word
    "nvidia.com/gpu": (True, False, None),
    "nvidia.com/gpu.shared": (True, False, None),
    "nvidia.com/mig-1g.10gb": (True, False, None),
    "nvidia.com/mig-1g.24gb-me": (True, False, None),
    "nvidia.com/mig-1g.24gb.me.all": (True, False, None),
    "nvidia.com/mig-1g.5gb.shared": (True, False, None),
    "nvidia.com/gpu-a100": (True, False, None),
    "nvidia.com/gpuu": (True, True, "nvidia.com/gpu"),
    "nvidia.com/gpus": (True, True, "nvidia.com/gpu"),
    "nvidia.com/GPU": (True, True, "nvidia.com/gpu"),
    "nvidia/gpu": (True, True, "nvidia.com/gpu"),
    "nvdia.com/gpu": (True, True, "nvidia.com/gpu"),
    "NVIDIA.com/gpu": (True, True, "nvidia.com/gpu"),
    "nvidia.com.gpu": (True, True, "nvidia.com/gpu"),
    "gpu": (True, True, "nvidia.com/gpu"),
    "gpus": (True, True, "nvidia.com/gpu"),
    "limits.nvidia.com/gpu": (True, True, "nvidia.com/gpu"),
    "alpha.kubernetes.io/nvidia-gpu": (True, True, "nvidia.com/gpu"),
    "nvidia.com/gpu-shared": (True, True, "nvidia.com/gpu.shared"),
    "nvidia.com/gpu.shard": (True, True, "nvidia.com/gpu.shared"),
    "nvidia.com/mig-1g.11gb": (True, True, "nvidia.com/mig-1g.10gb"),
    "nvidia.com/mig-1g.10gb+me": (True, True, "nvidia.com/mig-1g.10gb.me"),
    "nvidia.com/mig_1g.10gb": (True, True, "nvidia.com/mig-1g.10gb"),
    "nvidia.com/pgpu": (False, False, None),
    "nvidia.com/vgpu": (False, False, None),
    "nvidia.com/gpumem": (False, False, None),
    "nvidia.com/GA102GL_A10": (False, False, None),
    "nvidia.com/GRID_T4-1Q": (False, False, None),
    "nvidia.com/hostdev": (False, False, None),
    "gpu.nvidia.com/x": (False, False, None),
    "amd.com/gpu": (False, False, None),
    "gpu.intel.com/i915": (False, False, None),
    "intel.com/gpu": (False, False, None),
    "huawei.com/Ascend910": (False, False, None),
    "cpu": (False, False, None),
    "memory": (False, False, None),
    "ephemeral-storage": (False, False, None),
}


@pytest.mark.parametrize("name", NAMES)
def test_names_of_gpus_are_told_from_others(name: str) -> None:
    ours, impossible, right = NAMES[name]
    assert is_ours(name) is ours
    if ours:
        assert is_impossible(name) is impossible
    if impossible:
        assert likely(name) == right


def test_every_name_of_the_catalogue_is_taken_and_possible() -> None:
    assert len(all_names()) > 50
    for name in all_names():
        assert is_ours(name)
        assert is_taken(name)
        assert not is_impossible(name)


KEYS = (
    *("spec", "template", "containers", "initContainers", "resources", "limits", "requests", "nvidia.com/gpu", "env"),
    *("name", "value", "volumeMounts", "mountPath", "nodeSelector", "affinity", "nodeAffinity", "tolerations"),
    *("hard", "status", "phase", "metadata", "max", "type", "image"),
)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=8),
        lambda below: (
            st.lists(below, max_size=3)
            | st.dictionaries(
                st.sampled_from(KEYS),
                below,
                max_size=4,
            )
        ),
        max_leaves=30,
    ),
    st.sampled_from(["Pod", "Deployment", "CronJob", "Job", "Thing", "ResourceQuota", "LimitRange"]),
)
def test_no_object_upsets_the_readers(spec: object, kind: str) -> None:
    text = json.dumps({"apiVersion": "v1", "kind": kind, "metadata": {"name": "x"}, "spec": spec, "status": spec})
    for manifest in read_manifests("f", text).objects:
        found = read_workload(manifest)
        assert found is None or all(isinstance(ask, Ask) for ask in found.asks)
        assert all(isinstance(bound, Bound) for bound in read_bounds(manifest))
