"""Inventory and facts to NodeConfigs: device files, their order, what is shared, and what is only assumed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hybridgpu.model.finding import Severity
from hybridgpu.model.site import NodeBody
from hybridgpu.render.proof import prove
from hybridgpu.render.tree import render_tree
from tests.sites import inventory, loaded, site


def facts(node: str, **changes: str) -> dict[str, Any]:
    """Facts of one node whose minors run against the PCI order."""
    gpus = []
    for index in range(8):
        minor = 7 - index
        gpu = {
            "index": index,
            "minor": minor,
            "uuid": f"GPU-00000000-0000-0000-0000-{index:012x}",
            "pci_bus_id": f"0000:{index + 7:02x}:00.0",
            "model": "A100-SXM4-80GB",
            "memory_bytes": 85899345920,
            "mig_enabled": False,
            "compute_mode": "default",
            "cores": "0-127" if index < 4 else "128-255",
            "links": None,
            "instances": [],
        }
        gpus.append({**gpu, **changes})
    head = {"apiVersion": "hybridgpu/v1", "kind": "Facts", "node": node, "driver": {"version": "580.95"}}
    return {**head, "gpus": gpus}


def cut(record: dict[str, Any], offset: int = 1000) -> dict[str, Any]:
    """The facts with 1g.10gb seven times on each card, capability numbers unlike the usual ones."""
    for gpu in record["gpus"]:
        gpu["mig_enabled"] = True
        gpu["instances"] = [
            {
                "uuid": f"MIG-00000000-0000-0000-{gpu['index']:04x}-{start:012x}",
                "profile": "1g.10gb",
                "placement": {"start": start, "size": 1},
                "gi": 7 + start,
                "ci": 0,
                "gi_minor": offset + 20 * gpu["minor"] + 2 * start,
                "ci_minor": offset + 20 * gpu["minor"] + 2 * start + 1,
            }
            for start in range(7)
        ]
    return record


def body(folder: Path, text: str, node: str, records: dict[str, Any] | None = None) -> NodeBody:
    files = {name: json.dumps(record) for name, record in (records or {}).items()}
    return site(folder, text, files).nodes[node].body


def test_without_facts_files_are_assumed_and_said_so_once(tmp_path: Path) -> None:
    result = loaded(tmp_path, inventory("gpu[1-3] dgx exclusive", "gpu[4-5] dgx mig, layout: {all: {1g.10gb: 7}}"))
    assert result.site is not None
    assert [(f.rule.id, f.severity) for f in result.findings] == [("inventory-assumed-device-files", Severity.INFO)]
    assert "gpu[1-5]" in result.findings[0].message
    assert [d.files for d in result.site.nodes["gpu1"].body.devices] == [(f"/dev/nvidia{n}",) for n in range(8)]
    first = result.site.nodes["gpu4"].body.devices[0]
    assert first.files == ("/dev/nvidia0", "/dev/nvidia-caps/nvidia-cap66", "/dev/nvidia-caps/nvidia-cap67")
    assert first.assumed


def test_equal_nodes_share_a_body(tmp_path: Path) -> None:
    records = {f"gpu{n}": json.dumps(facts(f"gpu{n}")) for n in (1, 2)}
    nodes = site(tmp_path, inventory("gpu[1-4] dgx exclusive"), records).nodes
    assert nodes["gpu1"].body is nodes["gpu2"].body
    assert nodes["gpu3"].body is nodes["gpu4"].body
    assert nodes["gpu1"].body is not nodes["gpu3"].body


def test_facts_give_minors_files_and_cores_in_slurms_order(tmp_path: Path) -> None:
    seen = body(tmp_path, inventory("gpu1 dgx exclusive"), "gpu1", {"gpu1": facts("gpu1")})
    assert [d.minor for d in seen.devices] == list(range(8))
    assert [d.index for d in seen.devices] == list(range(7, -1, -1))
    assert [d.cores for d in seen.devices] == ["128-255"] * 4 + ["0-127"] * 4
    assert seen.devices[0].pci_bus_id == "0000:0e:00.0"
    assert not seen.assumed


def test_facts_of_the_wanted_instances_give_capability_files(tmp_path: Path) -> None:
    text = inventory("gpu1 dgx mig, layout: {all: {1g.10gb: 7}}")
    seen = body(tmp_path, text, "gpu1", {"gpu1": cut(facts("gpu1"))})
    assert not seen.assumed
    assert seen.devices[0].files == (
        "/dev/nvidia0",
        "/dev/nvidia-caps/nvidia-cap1000",
        "/dev/nvidia-caps/nvidia-cap1001",
    )
    assert seen.devices[8].files[1] == "/dev/nvidia-caps/nvidia-cap1022"


@pytest.mark.parametrize("change", ["whole", "another layout", "one less", "elsewhere", "unread numbers"])
def test_facts_of_other_instances_do_not_count(tmp_path: Path, change: str) -> None:
    record = facts("gpu1") if change == "whole" else cut(facts("gpu1"))
    for gpu in record["gpus"]:
        if change == "one less":
            gpu["instances"].pop()
        elif change == "unread numbers":
            gpu["instances"][0]["gi_minor"] = None
    wanted = {"another layout": "{all: {3g.40gb: 2}}", "elsewhere": "{all: {2g.20gb: 3}}"}
    text = inventory(f"gpu1 dgx mig, layout: {wanted.get(change, '{all: {1g.10gb: 7}}')}")
    seen = body(tmp_path, text, "gpu1", {"gpu1": record})
    assert all(device.assumed for device in seen.devices)
    assert [d.minor for d in seen.devices] == sorted(d.minor for d in seen.devices)


def test_a_card_still_cut_that_is_wanted_whole_is_assumed(tmp_path: Path) -> None:
    seen = body(tmp_path, inventory("gpu1 dgx exclusive"), "gpu1", {"gpu1": cut(facts("gpu1"))})
    assert seen.assumed
    assert seen.devices[0].files == ("/dev/nvidia0",)


def test_cores_that_are_no_whole_socket_are_left_out_and_said_so(tmp_path: Path) -> None:
    result = loaded(tmp_path, inventory("gpu1 dgx exclusive"), {"gpu1": json.dumps(facts("gpu1", cores="0-63"))})
    assert result.site is not None
    assert [f.rule.id for f in result.findings] == ["inventory-cores-not-whole-sockets"]
    assert {d.cores for d in result.site.nodes["gpu1"].body.devices} == {None}


def test_types_come_in_the_order_of_their_lowest_device(tmp_path: Path) -> None:
    seen = body(tmp_path, inventory("n1 mixed exclusive"), "n1")
    assert [(d.type, d.index) for d in seen.devices] == [("t4", 0), ("t4", 3), ("a30", 1), ("a30", 2)]


def test_under_autodetect_the_order_is_that_of_the_files(tmp_path: Path) -> None:
    text = inventory("n1 mixed exclusive", slurm='version: "24.11", autoDetect: nvml')
    assert [d.index for d in body(tmp_path, text, "n1").devices] == [0, 1, 2, 3]


def test_a_split_node_lists_slurms_devices_first(tmp_path: Path) -> None:
    entry = "{hosts: n1, class: dgx, owner: {slurm: 4-7, kubernetes: 0-3}, sharing: {mode: exclusive}}"
    seen = body(tmp_path, inventory(entry), "n1")
    assert [d.index for d in seen.devices] == [4, 5, 6, 7, 0, 1, 2, 3]
    assert [d.index for d in seen.slurm_devices] == [4, 5, 6, 7]


def test_colliding_profiles_carry_their_model_whatever_else_is_there(tmp_path: Path) -> None:
    seen = body(tmp_path, inventory("n1 old mig, layout: {all: {4g.20gb: 1, 3g.20gb: 1}}"), "n1")
    assert {d.type for d in seen.devices} == {"a100_4g.20gb", "3g.20gb"}


def test_memory_is_the_instances_share(tmp_path: Path) -> None:
    seen = body(tmp_path, inventory("n1 dgx mig, layout: {all: {3g.40gb: 1, 1g.10gb: 1}}"), "n1")
    assert {(d.profile, d.memory_bytes >> 30) for d in seen.devices} == {("3g.40gb", 40), ("1g.10gb", 10)}


def linked(node: str) -> dict[str, Any]:
    """Facts whose minors run against the PCI order; GPU i has 10*i + j links to GPU j."""
    record = facts(node)
    for gpu in record["gpus"]:
        gpu["links"] = [-1 if index == gpu["index"] else 10 * gpu["index"] + index for index in range(8)]
    return record


def test_links_are_in_the_order_of_slurms_devices(tmp_path: Path) -> None:
    seen = body(tmp_path, inventory("gpu1 dgx exclusive"), "gpu1", {"gpu1": linked("gpu1")})
    assert [d.index for d in seen.devices][:2] == [7, 6]
    assert seen.devices[0].links == (-1, 76, 75, 74, 73, 72, 71, 70)
    assert seen.devices[1].links == (67, -1, 65, 64, 63, 62, 61, 60)


def test_links_of_a_split_node_are_among_slurms_devices(tmp_path: Path) -> None:
    entry = "{hosts: gpu1, class: dgx, owner: {slurm: 4-5, kubernetes: '0-3,6-7'}, sharing: {mode: exclusive}}"
    text = inventory(entry)
    seen = body(tmp_path, text, "gpu1", {"gpu1": linked("gpu1")})
    assert [d.links for d in seen.slurm_devices] == [(-1, 54), (45, -1)]
    assert {d.links for d in seen.devices[2:]} == {None}
    whole = site(tmp_path, text, {"gpu1": json.dumps(linked("gpu1"))})
    assert list(prove(whole, render_tree(whole))) == []


def test_links_are_left_out_where_a_card_is_cut(tmp_path: Path) -> None:
    text = inventory("gpu1 dgx mig, layout: {0-6: {1g.10gb: 7}, 7: off}")
    seen = body(tmp_path, text, "gpu1", {"gpu1": linked("gpu1")})
    assert {d.links for d in seen.devices} == {None}
