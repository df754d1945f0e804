"""What a container gets and what a node offers, where the measured table has no column for it (derived from source)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hybridgpu.consumers.kubernetes import Instance, Node, PluginRuns, consume, node_of_facts
from hybridgpu.consumers.kubernetes.container import Container, Mount
from hybridgpu.model.facts import Facts, GpuFacts, InstanceFacts
from hybridgpu.model.gpu import Placement
from hybridgpu.model.offer import KubernetesDevice, KubernetesOffer, KubernetesResource, OfferRow
from tests.consumers.kubernetes.tables import A100, FOUR_A100, cut

LISTED = "/var/run/nvidia-container-devices"
MIXED = "flags: {migStrategy: mixed}\n"


def plugin(flags: str) -> str:
    return f"flags: {{plugin: {{{flags}}}}}\n"


def given(text: str, *replicas: tuple[str, int], node: Node = FOUR_A100, resource: str = "nvidia.com/gpu") -> Container:
    allocator = consume(text, node, {"MPS_ROOT": "/run/nvidia/mps/"}).allocator
    assert allocator is not None
    answer = allocator.allocate(resource, replicas or [("0", 0)])
    assert isinstance(answer, Container)
    return answer


CONTROL = ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia-modeset")
CDI = tuple(f"k8s.device-plugin.nvidia.com/gpu=GPU-{i}" for i in (0, 1))

GIVEN = {
    "volume-mounts": (
        plugin("deviceListStrategy: volume-mounts"),
        Container(
            {"NVIDIA_VISIBLE_DEVICES": LISTED},
            tuple(Mount("/dev/null", f"{LISTED}/GPU-{i}") for i in (0, 1)),
        ),
    ),
    "cdi-cri": (plugin("deviceListStrategy: cdi-cri"), Container(cdi=CDI)),
    "cdi-annotations and envvar": (
        plugin("deviceListStrategy: [cdi-annotations, envvar]"),
        Container({"NVIDIA_VISIBLE_DEVICES": "GPU-0,GPU-1"}, annotated=CDI),
    ),
    "no strategy": (plugin("deviceListStrategy: []"), Container()),
    "device files": (
        plugin("passDeviceSpecs: true"),
        Container(
            {"NVIDIA_VISIBLE_DEVICES": "GPU-0,GPU-1"}, devices=("/dev/nvidia0", "/dev/nvidia1"), optional=CONTROL
        ),
    ),
    "device files are left to CDI": (
        plugin("passDeviceSpecs: true, deviceListStrategy: cdi-cri"),
        Container(cdi=CDI),
    ),
    "switches": (
        "flags: {gdrcopyEnabled: true, gdsEnabled: true, mofedEnabled: true}\n",
        Container(
            {
                "NVIDIA_GDRCOPY": "enabled",
                "NVIDIA_GDS": "enabled",
                "NVIDIA_MOFED": "enabled",
                "NVIDIA_VISIBLE_DEVICES": "GPU-0,GPU-1",
            }
        ),
    ),
    "mps": (
        "sharing: {mps: {failRequestsGreaterThanOne: false, resources: [{name: gpu, replicas: 2}]}}\n",
        Container(
            {"CUDA_MPS_PIPE_DIRECTORY": "/mps/nvidia.com/gpu/pipe", "NVIDIA_VISIBLE_DEVICES": "GPU-0,GPU-1"},
            (
                Mount("/run/nvidia/mps/nvidia.com/gpu/pipe", "/mps/nvidia.com/gpu/pipe"),
                Mount("/run/nvidia/mps/shm", "/dev/shm"),
            ),
        ),
    ),
}


@pytest.mark.parametrize("case", GIVEN)
def test_what_two_devices_bring(case: str) -> None:
    text, expected = GIVEN[case]
    assert given(text, ("0", 0), ("1", 0)) == expected


def test_an_imex_channel_that_is_there() -> None:
    node = Node(FOUR_A100.cards, frozenset({0}))
    assert given("imex: {channelIDs: [0]}\n", node=node).env["NVIDIA_IMEX_CHANNELS"] == "0"
    mounts = given("imex: {channelIDs: [0]}\n" + plugin("deviceListStrategy: volume-mounts"), node=node).mounts
    assert mounts[-1] == Mount("/dev/null", f"{LISTED}/imex/0")


FACTS = Facts(
    "n1",
    "550.54",
    (
        GpuFacts(
            *(0, 3, "GPU-abc", "0000:07:00.0", "A100-SXM4-40GB", A100.memory_bytes, True, "default", None, None),
            (
                InstanceFacts("MIG-x", "3g.20gb", Placement(0, 4), 2, 0, 426, 427),
                InstanceFacts("MIG-y", "2g.10gb", Placement(4, 2), 5, 0, None, None),
            ),
        ),
        GpuFacts(
            *(1, 1, "GPU-def", "0000:0a:00.0", "Unheard-Of", 2**34, None, "default", None, None),
            (),
        ),
    ),
)


def test_a_node_of_facts() -> None:
    first, second = node_of_facts(FACTS).cards
    assert (first.id, first.file, first.mig, first.name) == ("GPU-abc", "/dev/nvidia3", True, "NVIDIA A100-SXM4-40GB")
    assert first.instances[0].files == (
        "/dev/nvidia3",
        "/dev/nvidia-caps/nvidia-cap426",
        "/dev/nvidia-caps/nvidia-cap427",
    )
    assert len(first.instances[1].files) == 3
    assert (second.mig, second.name, second.profiles, second.capability) == (None, "NVIDIA Unheard Of", (), (0, 0))


@pytest.mark.parametrize(("strategy", "expected"), [("uuid", "MIG-x,MIG-y"), ("index", "0:0,0:1")])
def test_mig_devices_are_given_by_their_own_ids(strategy: str, expected: str) -> None:
    node = Node(node_of_facts(FACTS).cards[:1])
    text = f"flags: {{migStrategy: single, plugin: {{deviceIDStrategy: {strategy}, passDeviceSpecs: true}}}}\n"
    both = Node((replace(node.cards[0], instances=same(node)),))
    answer = given(text, ("0:0", 0), ("0:1", 0), node=both)
    assert answer.env == {"NVIDIA_VISIBLE_DEVICES": expected}
    assert answer.devices[0] == "/dev/nvidia3"


def same(node: Node) -> tuple[Instance, ...]:
    """Two MIG devices of one profile, as strategy single demands."""
    return tuple(Instance("2g.10gb", i.uuid, i.files) for i in node.cards[0].instances)


@pytest.mark.parametrize(
    ("replicas", "words"),
    [
        ([("4", 0)], "unknown device: 4::0"),
        ([("0", 4)], "unknown device: GPU-0::4"),
        ([("0", 0), ("1", 0)], "maximum request size for shared resources is 1; found 2"),
    ],
)
def test_what_the_kubelet_is_refused(replicas: list[tuple[str, int]], words: str) -> None:
    text = "sharing: {timeSlicing: {failRequestsGreaterThanOne: true, resources: [{name: gpu, replicas: 4}]}}\n"
    allocator = consume(text, FOUR_A100, {}).allocator
    assert allocator is not None
    answer = allocator.allocate("nvidia.com/gpu", replicas)
    assert answer == f'invalid allocation request for "nvidia.com/gpu": invalid request: {words}'


def test_an_offer_projects_to_the_table_of_both_schedulers() -> None:
    text = MIXED + "sharing: {timeSlicing: {resources: [{name: mig-1g.5gb, replicas: 3}]}}\n"
    done = consume(text, cut(("3g.20gb", "1g.5gb"), ("1g.5gb",), None), {}).plugin
    assert isinstance(done, PluginRuns)
    assert done.offer == KubernetesOffer(
        (
            KubernetesResource("nvidia.com/gpu", (KubernetesDevice(2),)),
            KubernetesResource(
                "nvidia.com/mig-1g.5gb", (KubernetesDevice(0, 1, "1g.5gb"), KubernetesDevice(1, 0, "1g.5gb")), 3
            ),
            KubernetesResource("nvidia.com/mig-3g.20gb", (KubernetesDevice(0, 0, "3g.20gb"),)),
        ),
        "time-slicing",
        one_only=False,
    )
    assert done.offer.table() == (
        OfferRow((2,), None, 1, 1),
        OfferRow((0, 1), "1g.5gb", 2, 3),
        OfferRow((0,), "3g.20gb", 1, 1),
    )
    assert done.offer.allocatable == {
        "nvidia.com/gpu": 1,
        "nvidia.com/mig-1g.5gb": 6,
        "nvidia.com/mig-3g.20gb": 1,
    }


def test_single_offers_instances_as_gpus() -> None:
    done = consume("flags: {migStrategy: single}\n", cut(("1g.5gb",) * 7), {}).plugin
    assert isinstance(done, PluginRuns)
    assert done.offer.allocatable == {"nvidia.com/gpu": 7}
    assert done.offer.table() == (OfferRow((0,), "1g.5gb", 7, 1),)


UNREADABLE = {
    "FAIL_ON_INIT_ERROR": (
        "perhaps",
        'bool value from {} for flag fail-on-init-error: strconv.ParseBool: parsing "perhaps"',
    ),
    "IMEX_CHANNEL_IDS": ("0,x", 'int slice value from {} for flag imex-channel-ids: strconv.ParseInt: parsing "x"'),
}


@pytest.mark.parametrize("variable", UNREADABLE)
def test_a_variable_that_cannot_be_read(variable: str) -> None:
    """The words are those of NVIDIA's flags, run."""
    value, words = UNREADABLE[variable]
    done = consume("", FOUR_A100, {variable: value})
    said = words.format(f'environment variable "{variable}"')
    assert str(done.plugin) == f'could not parse "{value}" as {said}: invalid syntax' and done.allocator is None


def test_an_empty_variable_counts() -> None:
    done = consume("imex: {channelIDs: [0], required: true}\n", FOUR_A100, {"IMEX_CHANNEL_IDS": ""})
    assert isinstance(done.plugin, PluginRuns)
    assert str(consume("", FOUR_A100, {"MIG_STRATEGY": ""}).plugin) == "flags: unknown MIG strategy: "
    assert isinstance(
        consume("flags: {failOnInitError: true}\n", FOUR_A100, {"PASS_DEVICE_SPECS": ""}).plugin, PluginRuns
    )


def test_mps_on_a_node_with_mig_starts_no_daemon() -> None:
    text = "sharing: {mps: {resources: [{name: gpu, replicas: 4}]}}\n"
    done = consume(text, cut(("1g.5gb",), None), {"MPS_ROOT": "/x"})
    assert not done.mps_started and not isinstance(done.plugin, PluginRuns)
    assert consume(text, FOUR_A100, {"MPS_ROOT": "/x"}).mps_started
