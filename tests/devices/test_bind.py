"""Which card each device is, and each way in which a node is not what it must be. Pure: no driver."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from hybridgpu.devices.bind import CARD_DIFFERS, CUT_DIFFERS, FILES_DIFFER, NOT_MADE, Bound, bind
from hybridgpu.devices.devicemap import as_json
from hybridgpu.devices.factsfile import as_json as facts_json
from hybridgpu.devices.nodeconfig import read_node_config
from hybridgpu.devices.port import Unread
from hybridgpu.model.facts import Facts, GpuFacts, InstanceFacts
from hybridgpu.model.finding import Rule
from hybridgpu.model.gpu import Placement
from hybridgpu.model.naming import device_files, instance_files
from tests.devices.test_nodeconfig import ENTRIES, INVENTORY, rendered

GIB = 2**30
MINORS = (3, 2, 1, 0)


def card(index: int, *, cut: bool = False) -> GpuFacts:
    minor = MINORS[index]
    return GpuFacts(
        index=index,
        minor=minor,
        uuid=f"GPU-{index}",
        pci_bus_id=f"0000:0{index}:00.0",
        model="A100-SXM4-80GB",
        memory_bytes=80 * GIB,
        mig_enabled=cut,
        compute_mode="default",
        cores=None,
        links=None,
        instances=tuple(instance(index, gi, start) for gi, start in ((1, 0), (2, 4))) if cut else (),
    )


def instance(index: int, gi: int, start: int) -> InstanceFacts:
    number = 3 + 135 * MINORS[index] + 9 * gi
    return InstanceFacts(f"MIG-{index}-{gi}", "3g.40gb", Placement(start, 4), gi, 0, number, number + 1)


def facts(*, cut: int = 0) -> Facts:
    return Facts("n1", "580.95.05", tuple(card(index, cut=index < cut) for index in range(4)))


def every_file(told: Facts) -> frozenset[str]:
    own = (file for gpu in told.gpus for file in device_files(gpu.minor))
    inner = (file for gpu in told.gpus for i in gpu.instances for file in instance_files(gpu.minor, i))
    return frozenset((*own, *inner))


def bound(
    name: str, folder: Path, right: Facts, now: Facts | None = None, files: frozenset[str] | None = None
) -> Bound:
    """Binds what is rendered for facts `right` over the facts of `now`."""
    path = folder / "n1.json"
    path.write_text(facts_json(right))
    content = rendered(name, folder, facts={"n1": str(path)})
    wanted, _ = read_node_config("node.json", content)
    assert wanted is not None
    now = right if now is None else now
    return bind(wanted, now, every_file(now) if files is None else files, "boot")


@pytest.mark.parametrize(
    ("name", "cut", "slurm", "gres", "mps"),
    [
        ("exclusive", 0, [0, 1, 2, 3], ["gpu"], None),
        ("shared", 0, [0, 1, 2, 3], ["gpu", "shard"], None),
        ("mps", 0, [0, 1, 2, 3], ["gpu", "mps"], {"whole_gpu_jobs": True, "compute_mode": "default"}),
        ("split", 0, [0, 1, None, None], ["gpu", "hybridgpu_k8s"], None),
        ("kubernetes", 0, [None] * 4, [], None),
        ("mig", 3, [0, 1, 2, 3, 4, 5, 6], ["gpu"], None),
    ],
)
def test_a_map(
    name: str, cut: int, slurm: list[int | None], gres: list[str], mps: dict[str, object] | None, tmp_path: Path
) -> None:
    found = bound(name, tmp_path, facts(cut=cut))
    assert found.findings == ()
    assert found.devices is not None
    record = json.loads(as_json(found.devices))
    assert {key: value for key, value in record.items() if key != "devices"} == {
        "apiVersion": "hybridgpu/v1",
        "kind": "DeviceMap",
        "boot_id": "boot",
        "node": "n1",
        "mode": {"shared": "time-slicing", "split": "exclusive", "kubernetes": "exclusive"}.get(name, name),
        "mps": mps,
        "gres_types": gres,
    }
    assert [device["slurm_index"] for device in record["devices"]] == slurm
    for device in record["devices"]:
        assert device["minor"] == MINORS[device["index"]]
        assert device["files"][0] == f"/dev/nvidia{device['minor']}"
        assert device["pci_bus_id"] == f"0000:0{device['index']}:00.0"
        if device["profile"] is None:
            assert (device["uuid"], device["parent_uuid"]) == (f"GPU-{device['index']}", None)
            assert device["memory_bytes"] == 80 * GIB
        else:
            assert device["parent_uuid"] == f"GPU-{device['index']}"
            assert device["memory_bytes"] < 80 * GIB
    if name == "mig":
        assert [(device["uuid"], device["files"][1:]) for device in record["devices"] if device["index"] == 0] == [
            ("MIG-0-1", ["/dev/nvidia-caps/nvidia-cap417", "/dev/nvidia-caps/nvidia-cap418"]),
            ("MIG-0-2", ["/dev/nvidia-caps/nvidia-cap426", "/dev/nvidia-caps/nvidia-cap427"]),
        ]


Change = Callable[[GpuFacts], GpuFacts]


def other(**values: object) -> Change:
    return lambda gpu: replace(gpu, **values)  # type: ignore[arg-type]


def without_second(gpu: GpuFacts) -> GpuFacts:
    return replace(gpu, instances=gpu.instances[:1])


def moved(gpu: GpuFacts) -> GpuFacts:
    first, second = gpu.instances
    return replace(gpu, instances=(first, replace(second, placement=Placement(3, 4))))


def another_profile(gpu: GpuFacts) -> GpuFacts:
    first, second = gpu.instances
    return replace(gpu, instances=(first, replace(second, profile="3g.40gb+gfx")))


def with_third(gpu: GpuFacts) -> GpuFacts:
    return replace(gpu, instances=(*gpu.instances, replace(gpu.instances[0], profile="1g.10gb", uuid="MIG-x")))


def unread(gpu: GpuFacts) -> GpuFacts:
    return replace(gpu, instances=tuple(replace(i, placement=None) for i in gpu.instances))


def other_capability(gpu: GpuFacts) -> GpuFacts:
    first, second = gpu.instances
    return replace(gpu, instances=(replace(first, gi_minor=9), second))


@pytest.mark.parametrize(
    ("name", "change", "rule", "said"),
    [
        ("exclusive", other(model="A100-SXM4-40GB", memory_bytes=40 * GIB), CARD_DIFFERS, "it is A100-SXM4-40GB"),
        ("exclusive", other(pci_bus_id="0000:09:00.0"), CARD_DIFFERS, "the NodeConfig has it at 0000:01:00.0"),
        ("exclusive", other(minor=7), FILES_DIFFER, "the card is /dev/nvidia7; the NodeConfig says /dev/nvidia2"),
        ("exclusive", other(mig_enabled=True), CUT_DIFFERS, "MIG is on; the NodeConfig says off"),
        ("mig", other(mig_enabled=False, instances=()), CUT_DIFFERS, "MIG is off; the NodeConfig says on"),
        ("mig", without_second, CUT_DIFFERS, "there is no 3g.40gb at memory slice 4"),
        ("mig", moved, CUT_DIFFERS, "there is a 3g.40gb at memory slice 3, which the NodeConfig does not have"),
        ("mig", another_profile, CUT_DIFFERS, "there is no 3g.40gb at memory slice 4"),
        ("mig", with_third, CUT_DIFFERS, "there is a 1g.10gb at memory slice 0, which the NodeConfig does not have"),
        ("mig", unread, CUT_DIFFERS, "run it as root"),
        ("mig", other_capability, FILES_DIFFER, "nvidia-cap9,"),
    ],
)
def test_a_card_that_is_another_is_named_and_nothing_bound(
    name: str, change: Change, rule: Rule, said: str, tmp_path: Path
) -> None:
    right = facts(cut=3 if name == "mig" else 0)
    gpus = list(right.gpus)
    gpus[1] = change(gpus[1])
    found = bound(name, tmp_path, right, replace(right, gpus=tuple(gpus)))
    assert found.devices is None
    assert {finding.rule for finding in found.findings} == {rule}
    assert any(said in finding.message for finding in found.findings)
    assert all(finding.message.startswith("GPU 1 at 0000:0") for finding in found.findings)


def without(told: Facts, *gone: int) -> Facts:
    left = [gpu for gpu in told.gpus if gpu.index not in gone]
    return replace(told, gpus=tuple(replace(gpu, index=index) for index, gpu in enumerate(left)))


OUT_OF_PLACE = "GPU 3 at 0000:09:00.0: the NodeConfig has no card there"


@pytest.mark.parametrize(
    ("now", "said"),
    [
        (lambda told: without(told, 0), ["the node has 3 GPUs; its NodeConfig has 4", "0"]),
        (lambda told: without(told, 3), ["the node has 3 GPUs; its NodeConfig has 4", "3"]),
        (lambda told: without(told, 1, 2), ["the node has 2 GPUs; its NodeConfig has 4", "1", "2"]),
        (
            lambda told: replace(told, gpus=(*without(told, 0).gpus, replace(told.gpus[3], pci_bus_id="0000:09:00.0"))),
            ["0", OUT_OF_PLACE],
        ),
    ],
)
def test_a_card_that_is_missing_is_named_and_not_taken_for_all_behind_it(
    now: Callable[[Facts], Facts], said: list[str], tmp_path: Path
) -> None:
    right = facts()
    found = bound("exclusive", tmp_path, right, now(right))
    assert found.devices is None
    assert {finding.rule for finding in found.findings} == {CARD_DIFFERS}
    gone = "GPU {0} of the NodeConfig, at 0000:0{0}:00.0: there is no such card"
    expected = [gone.format(text) if text.isdigit() else text for text in said]
    assert [finding.message for finding in found.findings] == expected


def test_where_no_address_is_known_only_the_number_is_said(tmp_path: Path) -> None:
    content = rendered("exclusive", tmp_path, INVENTORY.format(entry=ENTRIES["exclusive"]))
    wanted, _ = read_node_config("node.json", content)
    assert wanted is not None
    found = bind(wanted, without(facts(), 0), Unread("/dev", "not asked"), "boot")
    assert [finding.message for finding in found.findings] == ["the node has 3 GPUs; its NodeConfig has 4"]


def test_a_device_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    right = facts(cut=3)
    files = every_file(right) - {"/dev/nvidia-caps/nvidia-cap427", "/dev/nvidia0"}
    found = bound("mig", tmp_path, right, files=files)
    assert found.devices is None
    assert [(finding.rule, finding.message) for finding in found.findings] == [
        (NOT_MADE, "GPU 3 at 0000:03:00.0: there is no /dev/nvidia0"),
        (NOT_MADE, "GPU 0 at 0000:00:00.0: there is no /dev/nvidia-caps/nvidia-cap427"),
    ]


def test_device_files_that_cannot_be_listed_are_not_judged(tmp_path: Path) -> None:
    wanted, _ = read_node_config("node.json", rendered("kubernetes", tmp_path))
    assert wanted is not None
    told = replace(facts(), gpus=tuple(replace(gpu, minor=gpu.index) for gpu in facts().gpus))
    assert bind(wanted, told, Unread("/dev", "Permission denied"), "boot").devices is not None


def test_assumed_files_hold_only_where_they_are_right(tmp_path: Path) -> None:
    """Rendered without facts: the minors are taken to be the indices, and on this machine they are not."""
    content = rendered("exclusive", tmp_path, INVENTORY.format(entry=ENTRIES["exclusive"]))
    wanted, _ = read_node_config("node.json", content)
    assert wanted is not None
    found = bind(wanted, facts(), every_file(facts()), "boot")
    assert [finding.rule for finding in found.findings] == [FILES_DIFFER] * 4
