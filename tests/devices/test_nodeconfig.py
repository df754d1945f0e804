"""A NodeConfig read back: whole as render writes it, or with every mistake named."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hybridgpu.devices.nodeconfig import (
    EDITED,
    ILLEGAL,
    NOT_CUT,
    OF_ANOTHER,
    NodeWanted,
    of_another,
    read_node_config,
)
from hybridgpu.inventory.load import load_site
from hybridgpu.model.gpu import Placement
from hybridgpu.model.sharing import Mode, Scheduler
from hybridgpu.render.tree import render_tree

INVENTORY = """\
apiVersion: hybridgpu/v1
kind: Inventory
metadata: {{name: t}}
slurm: {{version: "24.11"}}
kubernetes: {{delivery: device-plugin, namespace: gpu}}
nodeClasses:
  dgx: {{model: A100-SXM4-80GB, gpus: 4, slurm: {{CPUs: 64, Sockets: 2, CoresPerSocket: 32}}}}
nodes:
- {entry}
"""
ENTRIES = {
    "exclusive": "{hosts: n1, class: dgx, owner: slurm, sharing: {mode: exclusive}}",
    "shared": "{hosts: n1, class: dgx, owner: kubernetes, sharing: {mode: time-slicing, replicas: 4}}",
    "mps": "{hosts: n1, class: dgx, owner: slurm, sharing: {mode: mps, replicas: 4, mps: {wholeGpuJobs: true}}}",
    "mig": "{hosts: n1, class: dgx, owner: slurm, sharing: {mode: mig, layout: {0-2: {3g.40gb: 2}, 3: off}}}",
    "split": "{hosts: n1, class: dgx, owner: {slurm: 2-3, kubernetes: 0-1}, sharing: {mode: exclusive}}",
    "kubernetes": "{hosts: n1, class: dgx, schedulers: [kubernetes], owner: kubernetes, sharing: {mode: exclusive}}",
    "slurm": "{hosts: n1, class: dgx, schedulers: [slurm], owner: slurm, sharing: {mode: exclusive}}",
}


def rendered(name: str, folder: Path, inventory: str | None = None, facts: dict[str, str] | None = None) -> bytes:
    """nodes/n1.json, as `hybridgpu render` writes it."""
    path = folder / "inventory.yaml"
    path.write_text(inventory or INVENTORY.format(entry=ENTRIES[name]))
    loaded = load_site(str(path), facts, for_render=True)
    assert loaded.site, [finding.message for finding in loaded.findings]
    return render_tree(loaded.site)["nodes/n1.json"]()


@pytest.mark.parametrize("name", ENTRIES)
def test_what_render_writes_is_read(name: str, tmp_path: Path) -> None:
    content = rendered(name, tmp_path)
    wanted, findings = read_node_config("node.json", content)
    assert findings == ()
    assert wanted is not None
    record = json.loads(content)
    assert (wanted.node, wanted.sharing.mode) == ("n1", Mode(record["mode"]))
    assert [d.files for d in wanted.devices] == [tuple(d["files"]) for d in record["devices"]]
    assert [card.owner for card in wanted.cards] == [Scheduler(gpu["owner"]) for gpu in record["gpus"]]
    assert (wanted.gres is None, wanted.kubernetes is None) == (name == "kubernetes", name == "slurm")


def test_what_there_is_of_a_cut_card(tmp_path: Path) -> None:
    wanted, _ = read_node_config("node.json", rendered("mig", tmp_path))
    assert wanted is not None
    assert [(d.index, d.profile, d.placement) for d in wanted.devices[:2]] == [
        (0, "3g.40gb", Placement(0, 4)),
        (0, "3g.40gb", Placement(4, 4)),
    ]
    assert [card.mig for card in wanted.cards] == [True, True, True, False]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("exclusive", [0, 1, 2, 3]),
        ("shared", [0, 1, 2, 3]),
        ("mig", [0, 1, 2, 3, 4, 5, 6]),
        ("split", [0, 1, None, None]),
        ("kubernetes", [None] * 4),
    ],
)
def test_slurms_numbers(name: str, expected: list[int | None], tmp_path: Path) -> None:
    wanted, _ = read_node_config("node.json", rendered(name, tmp_path))
    assert isinstance(wanted, NodeWanted)
    assert [wanted.slurm_index(device) for device in wanted.devices] == expected


def _set(path: str, value: object) -> Callable[[Any], None]:
    def change(record: Any) -> None:  # noqa: ANN401 - what JSON gives
        *steps, last = path.split(".")
        for step in steps:
            record = record[int(step)] if step.isdigit() else record[step]
        if value is KeyError:
            del record[last]
        else:
            record[int(last) if last.isdigit() else last] = value

    return change


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (_set("apiVersion", "hybridgpu/v2"), "apiVersion is 'hybridgpu/v2'; allowed: hybridgpu/v1"),
        (_set("kind", "Facts"), "kind is 'Facts'; allowed: NodeConfig"),
        (_set("node", ""), "node is ''; allowed: a text"),
        (_set("mode", "migg"), "mode is 'migg' (did you mean mig?); allowed: exclusive, time-slicing, mps, mig"),
        (_set("sharing", KeyError), "sharing is missing"),
        (_set("sharing", []), "sharing must be an object"),
        (_set("sharing.whole_gpu_jobs", 1), "sharing.whole_gpu_jobs is 1; allowed: true or false"),
        (_set("slurm", KeyError), "slurm is missing"),
        (_set("slurm.gres", None), "slurm.gres is None; allowed: a text"),
        (_set("kubernetes.allocatable", {"a": "1"}), "kubernetes.allocatable.a is '1'; allowed: a whole number from 0"),
        (_set("kubernetes.visible_devices", [True]), "kubernetes.visible_devices must hold whole numbers alone"),
        (_set("gpus", {}), "gpus is an object; allowed: a list"),
        (_set("gpus", []), "gpus is empty, and there are devices"),
        (_set("gpus.1", 7), "gpus[1] must be an object"),
        (_set("gpus.1.index", 3), "gpus has the indices [0, 3, 2, 3]; allowed: 0, 1, 2 ..."),
        (_set("gpus.1.owner", "me"), "gpus[1].owner is 'me'; allowed: slurm, kubernetes"),
        (_set("devices.0.index", 9), "devices[0].index is 9; the node has 4 cards"),
        (_set("devices.0.minor", -1), "devices[0].minor is -1; allowed: a whole number from 0"),
        (_set("devices.0.minor", True), "devices[0].minor is True; allowed: a whole number from 0"),
        (_set("devices.0.files", ["a", 1]), "devices[0].files must hold texts alone"),
        (_set("devices.0.placement", None), "devices[0].placement must be there where profile is, and only there"),
        (_set("devices.0.placement.start", KeyError), "devices[0].placement.start is missing"),
        (
            _set("devices.0.profile", "1g.5gb"),
            "devices[0].profile is '1g.5gb' (did you mean 1g.10gb?); allowed on A100-SXM4-80GB: ",
        ),
        (_set("devices.0.profile", "foo"), "devices[0].profile is 'foo'; allowed on A100-SXM4-80GB: "),
        (
            _set("devices.0.placement.start", 1),
            "devices[0].placement is impossible for 3g.40gb on A100-SXM4-80GB; allowed: start 0, 4, size 4",
        ),
        (_set("devices.0.placement.size", 3), "is impossible for 3g.40gb on A100-SXM4-80GB; allowed: start 0, 4, size"),
        (_set("devices.1.placement.start", 0), "devices[1] is the same instance as devices[0]"),
        (_set("devices.1.profile", "7g.80gb"), "devices[1].placement is impossible for 7g.80gb"),
        (_set("gpus.3.mig", True), "devices[6] is a whole card, and gpus[3].mig is true; allowed: instances of it"),
        (_set("gpus.0.model", "A100-SXM4-81GB"), "gpus[0].model is 'A100-SXM4-81GB', of which it is not known what"),
    ],
)
def test_a_mistake_is_named(change: Callable[[Any], None], said: str, tmp_path: Path) -> None:
    record = json.loads(rendered("mig", tmp_path))
    change(record)
    wanted, findings = read_node_config("node.json", json.dumps(record).encode())
    assert wanted is None
    assert [finding.rule for finding in findings] == [ILLEGAL]
    assert said in findings[0].message


def _placed(*placed: tuple[str, int, int]) -> Callable[[Any], None]:
    """Instances of the first card in the place of its two."""

    def change(record: Any) -> None:  # noqa: ANN401 - what JSON gives
        first = record["devices"][0]
        new = [
            {**first, "profile": p, "placement": {"start": start, "size": size}, "files": [f"/dev/{at}"]}
            for at, (p, start, size) in enumerate(placed)
        ]
        record["devices"] = [*new, *(device for device in record["devices"] if device["index"])]

    return change


def _whole_card_twice(record: Any) -> None:  # noqa: ANN401
    record["devices"].append({**record["devices"][-1], "files": ["/dev/nvidia9"]})


def _no_mig(record: Any) -> None:  # noqa: ANN401
    record["gpus"][0]["mig"] = False


def _addresses(*told: tuple[int, str]) -> Callable[[Any], None]:
    def change(record: Any) -> None:  # noqa: ANN401
        for at, address in told:
            record["devices"][at]["pci_bus_id"] = address

    return change


A100 = "A100-SXM4-80GB"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (_placed(("4g.40gb", 0, 4), ("2g.20gb", 2, 2)), ["devices[1].placement overlaps that of devices[0]"]),
        (
            _placed(("3g.40gb", 0, 4), ("3g.40gb", 0, 4), ("1g.10gb", 6, 1), ("1g.10gb", 7, 1)),
            [
                "devices[1] is the same instance as devices[0]",
                f"devices[3].placement is impossible for 1g.10gb on {A100}; allowed: start 0, 1, 2, 3, 4, 5, 6, size 1",
            ],
        ),
        (_placed(("7g.80gb", 0, 9)), [f"devices[0].placement ends at memory slice 8; {A100} has 0 to 7"]),
        (
            _placed(("1g.10gb+me", 0, 1), ("1g.10gb+me", 1, 1)),
            ["the instances of gpus[0]: 2 x 1g.10gb+me does not fit on A100-SXM4-80GB: a card holds at most 1"],
        ),
        (_placed(), ["gpus[0].mig is true, and no device is an instance of the card"]),
        (
            _no_mig,
            [
                "devices[0].profile is '3g.40gb', and gpus[0].mig is false; allowed: null",
                "devices[1].profile is '3g.40gb', and gpus[0].mig is false; allowed: null",
            ],
        ),
        (_whole_card_twice, ["devices[7] is the same card as devices[6]"]),
        (
            _addresses((0, "0000:01:00.0"), (1, "0000:02:00.0")),
            ["devices[1].pci_bus_id is another address of GPU 0 than devices[0].pci_bus_id"],
        ),
        (
            _addresses((0, "0000:01:00.0"), (2, "0000:01:00.0")),
            ["devices[2].pci_bus_id is that of another card, devices[0].pci_bus_id: 0000:01:00.0"],
        ),
        (
            lambda record: record["devices"][1].update(files=record["devices"][0]["files"]),
            ["devices[1].files are those of devices[0]: /dev/nvidia0, "],
        ),
        (_set("gpus.0.model", "T4"), ["allowed on T4: null, since it has no MIG"] * 2),
    ],
)
def test_devices_that_no_card_has_are_refused_up_front(
    change: Callable[[Any], None], said: list[str], tmp_path: Path
) -> None:
    record = json.loads(rendered("mig", tmp_path))
    change(record)
    wanted, findings = read_node_config("node.json", json.dumps(record).encode())
    assert wanted is None
    assert [finding.rule for finding in findings] == [ILLEGAL] * len(said)
    for finding, words in zip(findings, said, strict=True):
        assert words in finding.message


def test_a_layout_is_judged_beside_other_mistakes(tmp_path: Path) -> None:
    record = json.loads(rendered("mig", tmp_path))
    record["mode"], record["devices"][0]["profile"] = "migg", "foo"
    _, findings = read_node_config("node.json", json.dumps(record).encode())
    assert sorted(finding.message.partition(" is ")[0] for finding in findings) == ["devices[0].profile", "mode"]


def test_all_mistakes_are_named_at_once(tmp_path: Path) -> None:
    record = json.loads(rendered("mig", tmp_path))
    record["mode"], record["node"], record["devices"][2]["files"] = None, 3, None
    _, findings = read_node_config("node.json", json.dumps(record).encode())
    assert len(findings) == 3


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "this is not JSON"),
        (b'{"a": ', "this is not JSON"),
        (b"[" * 100_000, "this is not JSON"),
        (b"[]", "the file must be an object"),
        (b"\xff", "not UTF-8"),
    ],
)
def test_what_is_no_object_is_refused(content: bytes, said: str) -> None:
    wanted, findings = read_node_config("node.json", content)
    assert wanted is None
    assert len(findings) == 1
    assert said in findings[0].message


def test_an_edited_file_is_taken_and_said(tmp_path: Path) -> None:
    content = rendered("exclusive", tmp_path).replace(b'"class": "dgx"', b'"class": "dgx2"')
    wanted, findings = read_node_config("node.json", content)
    assert wanted is not None
    assert [finding.rule for finding in findings] == [EDITED]


HOSTED = ENTRIES["exclusive"].replace(
    "owner:", 'kubernetesName: "{host}-k8s.example.org", slurm: {NodeHostname: big.x}, owner:'
)


@pytest.mark.parametrize(
    ("hostname", "fires"),
    [
        ("n1", False),
        ("n1.example.org", False),
        ("n1-k8s", False),
        ("big", False),
        ("n2", True),
        ("n10", True),
        ("", True),
    ],
)
def test_a_config_of_another_host_is_said(hostname: str, fires: bool, tmp_path: Path) -> None:
    wanted, findings = read_node_config("node.json", rendered("", tmp_path, INVENTORY.format(entry=HOSTED)))
    assert wanted is not None, findings
    assert [finding.rule for finding in of_another(wanted, hostname)] == [OF_ANOTHER] * fires
    refused = of_another(wanted, hostname, NOT_CUT)
    assert [(finding.rule, finding.is_error) for finding in refused] == [(NOT_CUT, True)] * fires
