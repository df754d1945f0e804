from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybridgpu.inventory.facts import judge_facts, read_facts
from hybridgpu.inventory.read import read_inventory
from hybridgpu.model.gpu import Placement
from tests.conftest import no_hang, soak

Record = dict[str, Any]
Change = Callable[[Record], object]


def gpu(index: int, instances: int = 0) -> Record:
    return {
        "index": index,
        "minor": 7 - index,
        "uuid": f"GPU-{index:08x}-0000-0000-0000-000000000000",
        "pci_bus_id": f"0000:{index + 7:02x}:00.0",
        "model": "A100-SXM4-80GB",
        "memory_bytes": 85899345920,
        "mig_enabled": bool(instances),
        "compute_mode": "default",
        "cores": "0-31",
        "links": [-1 if other == index else 4 for other in range(4)],
        "instances": [
            {
                "uuid": f"MIG-{index}-{at}",
                "profile": "1g.10gb",
                "placement": {"start": at, "size": 1},
                "gi": 7 + at,
                "ci": 0,
                "gi_minor": 9 * at + 66,
                "ci_minor": 9 * at + 67,
            }
            for at in range(instances)
        ],
    }


def record() -> Record:
    return {
        "apiVersion": "hybridgpu/v1",
        "kind": "Facts",
        "node": "gpu001",
        "driver": {"version": "550.163.01"},
        "gpus": [gpu(index, 7 if index == 3 else 0) for index in range(4)],
    }


def written(data: object) -> bytes:
    return json.dumps(data, indent=1).encode()


def test_facts_arrive_in_the_order_of_their_index_with_bus_ids_in_one_form() -> None:
    data = record()
    data["gpus"].reverse()
    data["gpus"][3]["pci_bus_id"] = "00000000:0B:00.0"
    facts, findings = read_facts("f.json", written(data))
    assert findings == ()
    assert facts
    assert (facts.node, facts.driver_version, facts.file) == ("gpu001", "550.163.01", "f.json")
    assert [(g.index, g.minor) for g in facts.gpus] == [(0, 7), (1, 6), (2, 5), (3, 4)]
    assert facts.gpus[0].pci_bus_id == "0000:0b:00.0"
    assert facts.gpus[1].links == (4, -1, 4, 4)
    assert (facts.gpus[3].instances[2].placement, facts.gpus[3].instances[2].gi) == (Placement(2, 1), 9)


def test_what_was_not_read_is_null_or_absent_and_fields_may_be_added() -> None:
    data = record()
    data["added"] = {"a": [1]}
    for name in ("mig_enabled", "cores", "links"):
        data["gpus"][0][name] = None
        del data["gpus"][1][name]
    del data["gpus"][3]["instances"][0]["placement"]
    data["gpus"][3]["instances"][1] |= {"gi_minor": None, "later": True}
    facts, findings = read_facts("f.json", written(data))
    assert findings == ()
    assert facts
    unread = facts.gpus[0].mig_enabled, facts.gpus[1].cores, facts.gpus[3].instances[0].placement
    assert unread == (None, None, None)


def put(path: str, value: object) -> Change:
    *steps, last = (int(step) if step.isdigit() else step for step in path.split("."))

    def change(data: Any) -> None:  # noqa: ANN401 - what JSON holds
        for step in steps:
            data = data[step]
        data[last] = value

    return change


def another_card_with_the_numbers_of_the_first(data: Record) -> None:
    """Only of its GPU instance: a mistake a finding."""
    data["gpus"].reverse()
    data["gpus"][2] |= {"mig_enabled": True, "instances": gpu(1, 1)["instances"]}
    data["gpus"][2]["instances"][0]["ci_minor"] = 999


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (put("apiVersion", "hybridgpu/v2"), ["apiVersion", "hybridgpu/v2", "hybridgpu/v1"]),
        (put("kind", "Fact"), ["kind", "Fact", "Facts"]),
        (put("node", "../x"), ["node", "../x"]),
        (put("driver", "550"), ["driver", "550"]),
        (put("driver.version", None), ["driver.version", "None"]),
        (put("gpus", {}), ["gpus", "list"]),
        (put("gpus.1", 5), ["gpus[1]", "object"]),
        (put("gpus.1.index", True), ["gpus[1].index", "True", "whole number"]),
        (put("gpus.1.index", 7), ["[0, 2, 3, 7]", "0 to 3"]),
        (put("gpus.1.minor", -1), ["gpus[1].minor", "-1"]),
        (put("gpus.1.minor", 5), ["gpus[2].minor", "5", "gpus[1]"]),
        (put("gpus.1.uuid", "GPU-00000000-0000-0000-0000-000000000000"), ["gpus[1].uuid", "gpus[0]"]),
        (put("gpus.1.pci_bus_id", "7:00.0"), ["gpus[1].pci_bus_id", "0000:07:00.0"]),
        (put("gpus.1.pci_bus_id", "00000000:07:00.0"), ["gpus[1].pci_bus_id", "gpus[0]"]),
        (put("gpus.1.memory_bytes", 8.5), ["gpus[1].memory_bytes", "8.5"]),
        (put("gpus.1.mig_enabled", "true"), ["gpus[1].mig_enabled", "'true'", "null"]),
        (put("gpus.1.compute_mode", "DEFAULT"), ["gpus[1].compute_mode", "exclusive_process"]),
        (put("gpus.1.cores", "0-"), ["gpus[1].cores", "0-31"]),
        (put("gpus.1.links", [-1, 4]), ["gpus[1].links", "2", "4 GPUs"]),
        (put("gpus.1.links", ["4"]), ["gpus[1].links", "list"]),
        (put("gpus.3.mig_enabled", False), ["gpus[3].instances", "mig_enabled"]),
        (put("gpus.3.instances.1.uuid", 5), ["gpus[3].instances[1].uuid"]),
        (put("gpus.3.instances.1.placement", 5), ["gpus[3].instances[1].placement"]),
        (put("gpus.3.instances.1.placement.start", 10**9), ["gpus[3].instances[1].placement.start"]),
        (put("gpus.3.instances.1.placement.start", 2), ["gpus[3].instances[2].placement", "overlaps", "8"]),
        (put("gpus.1.index", 64), ["gpus[1].index", "64", "63"]),
        (put("gpus.1.minor", 2**20), ["gpus[1].minor", str(2**20), str(2**20 - 1)]),
        (put("gpus.1.pci_bus_id", "0000:07:20.0"), ["gpus[1].pci_bus_id", "0000:07:20.0"]),
        (put("gpus.1.cores", "0-9999999999"), ["gpus[1].cores", "0-9999999999"]),
        (put("gpus.1.cores", "0-65536"), ["gpus[1].cores", "65536"]),
        (put("gpus.1.cores", "5-3"), ["gpus[1].cores", "5-3"]),
        (put("gpus.1.cores", "\N{ARABIC-INDIC DIGIT ONE}"), ["gpus[1].cores"]),
        (put("gpus.1.links", [0, 0, 0, 0]), ["gpus[1].links", "list of 4", "-1"]),
        (put("gpus.1.links", [-1, -1, 0, 0]), ["gpus[1].links", "-1"]),
        (put("gpus.1.links", [-3, -1, 0, 0]), ["gpus[1].links", "-2"]),
        (put("gpus.1.links", [4, 4, -1, 4]), ["gpus[1].links", "-1 for GPU 2", "for GPU 1"]),
        (put("gpus.3.instances", [{}] * 30_000), ["gpus[3].instances", "a list of 30000", "at most 64"]),
        (put("gpus.3.instances.1.gi_minor", 66), ["gpus[3].instances[1].gi_minor", "66", "GPU instance 7"]),
        (put("gpus.3.instances.1.ci_minor", 67), ["gpus[3].instances[1].ci_minor", "67", "compute instance 0"]),
        (put("gpus.3.instances.1.ci_minor", 75), ["gpus[3].instances[1].ci_minor", "75", "GPU instance 8"]),
        (put("gpus.3.instances.1.ci_minor", 2**20), ["gpus[3].instances[1].ci_minor", str(2**20)]),
        (put("gpus.3.instances.1.gi", 2**20), ["gpus[3].instances[1].gi", str(2**20)]),
        (put("gpus.3.instances.6.placement.start", 7), ["gpus[3].instances[6].placement", "start 0, 1,", "size 1"]),
        (put("gpus.3.instances.6.placement.size", 2), ["gpus[3].instances[6].placement", "impossible", "1g.10gb"]),
        (put("gpus.3.instances.6.placement.size", 3), ["gpus[3].instances[6].placement", "ends at memory slice 8"]),
        (put("gpus.3.model", "V100-SXM2-32GB"), ["gpus[3].instances", "V100-SXM2-32GB has no MIG"]),
        (another_card_with_the_numbers_of_the_first, ["gpus[2].instances[0].gi_minor", "66", "GPU 3"]),
        (put("gpus.3.instances.1.gi", 7), ["gpus[3].instances[1].gi", "7", "instance 0"]),
        (lambda data: data["gpus"][2].pop("uuid"), ["gpus[2].uuid is missing"]),
        (lambda data: data.pop("driver"), ["driver is missing"]),
    ],
)
def test_a_wrong_field_is_refused_with_its_path_and_line(change: Change, words: list[str]) -> None:
    data = record()
    change(data)
    facts, findings = read_facts("f.json", written(data))
    assert facts is None
    assert len(findings) == 1, [finding.message for finding in findings]
    assert all(word in findings[0].message for word in words), findings[0].message
    assert findings[0].place
    top = words[0].startswith(("driver is", "apiVersion")) or findings[0].place.line > 1
    assert top, findings[0].place


def test_the_line_is_that_of_the_value() -> None:
    text = written(record()).replace(b'"minor": 5', b'"minor": "5"')
    finding = read_facts("f.json", text)[1][0]
    line = text[: text.index(b'"minor": "5"')].count(b"\n") + 1
    assert finding.place
    assert (finding.place.line, finding.place.column) == (line, 13)


def test_every_mistake_in_one_run() -> None:
    data = record()
    data["kind"] = 1
    data["gpus"][0]["uuid"] = data["gpus"][2]["model"] = data["gpus"][3]["instances"][6]["gi"] = None
    assert [finding.message.split(" ")[0] for finding in read_facts("f", written(data))[1]] == [
        "kind", "gpus[0].uuid", "gpus[2].model", "gpus[3].instances[6].gi",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b'{"a": 1,}', "not JSON"),
        (b"kind: Facts", "not JSON"),
        (b"null", "object"),
        (b"[]", "object"),
        (b'{"gpus": [NaN]}', "NaN"),
        (b'{"gpus": ' + b"1" * 5000 + b"}", "digits"),
        (b"[" * 100_000, "nested"),
        (b'{"kind": "Facts",\n "kind": "Facts"}', "twice"),
        (b"\xff\xfe{\x00", "UTF-16"),
        (b'{"a": "\x00"}', "NUL"),
        (b" " * (5 * 2**20), "bytes"),
    ],
)
def test_what_is_no_facts_file_is_refused_in_words(text: bytes, words: str) -> None:
    facts, findings = read_facts("f.json", text)
    assert facts is None
    assert words in findings[0].message
    assert findings[0].place


def compute_instances(data: Record) -> None:
    """One GPU instance in three compute instances: one number of the first, three of the others."""
    data["gpus"][3]["instances"] = [
        {
            "uuid": f"MIG-{ci}",
            "profile": "1c.3g.40gb",
            "placement": {"start": 4, "size": 4},
            "gi": 1,
            "ci": ci,
            "gi_minor": 12,
            "ci_minor": 13 + ci,
        }
        for ci in range(3)
    ]


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("gi_minor", 12, []),
        ("gi_minor", 50, ["instances[2].gi_minor", "50", "GPU instance 1 has above: 12"]),
        ("placement", {"start": 0, "size": 4}, ["instances[2].placement", "is not the one that GPU instance 1 has"]),
        ("ci_minor", 14, ["instances[2].ci_minor", "14", "compute instance 1"]),
    ],
)
def test_compute_instances_share_their_gpu_instance(path: str, value: object, words: list[str]) -> None:
    data = record()
    compute_instances(data)
    data["gpus"][3]["instances"][2][path] = value
    facts, findings = read_facts("f.json", written(data))
    assert (facts is None, len(findings)) == (bool(words), bool(words))
    assert all(word in finding.message for word in words for finding in findings)


HOSTILE: dict[str, bytes] = {
    "a key twice among very many": b'{"a": {"b": 1},\n'
    + b",\n".join(b'"%d":1' % n for n in range(75_000))
    + b',\n"7":2}',
    "no list of objects": b'{"gpus": [' + b",".join([b"[]"] * 340_000) + b"]}",
    "very many instances": written(record() | {"gpus": [gpu(0, 3000)]}),
    "very many cards": written({**record(), "gpus": [gpu(n) for n in range(1500)]}),
    "very many core ranges": written(record()).replace(b'"0-31"', b'"' + b"0-65535," * 31 + b'0"'),
    "added fields beside a mistake": written({**record(), "kind": 1, "added": [{"a": [n]} for n in range(20_000)]}),
    "strings that look like brackets": b'{"a}]": "[{\\"", "b": 1,\n "b": 2}',
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_answered(name: str) -> None:
    assert len(HOSTILE[name]) < 2**20
    with no_hang():
        facts, findings = read_facts("f.json", HOSTILE[name])
    assert facts is None or name == "very many core ranges"
    assert all(finding.place for finding in findings)


def test_the_second_of_two_keys_is_shown() -> None:
    finding = read_facts("f.json", b'{"a}]": "[{\\"", "b": {"b": 3},\n "c": 1, "b": 2}')[1][0]
    assert finding.place
    assert (finding.place.line, finding.place.column) == (2, 10)


@settings(max_examples=soak(200, 20_000), derandomize=True, deadline=None)
@given(st.integers(0, 10**6), st.binary(max_size=4), st.integers(0, 3))
def test_no_damage_brings_it_down(where: int, put_in: bytes, taken: int) -> None:
    text = written(record())
    at = where % len(text)
    facts, findings = read_facts("f.json", text[:at] + put_in + text[at + taken :])
    assert (facts is None) == bool(findings)
    assert all(finding.place and finding.place.line >= 1 for finding in findings)


INVENTORY = """\
apiVersion: hybridgpu/v1
kind: Inventory
metadata: {name: t}
slurm: {version: "24.11"}
nodeClasses:
  dgx: {model: A100-SXM4-80GB, gpus: 4}
nodes:
- {hosts: gpu001, class: dgx, owner: slurm, sharing: {mode: exclusive}}
"""


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (put("added", 1), []),
        (put("gpus.2.model", "NVIDIA A100-SXM4-80GB"), []),
        (put("node", "gpu002"), ["gpu002", "gpu001"]),
        (lambda data: data.update(gpus=[{**gpu(i), "links": None} for i in range(3)]), ["3 GPUs", "has 4"]),
        (put("gpus.2.model", "A100-SXM4-40GB"), ["GPU 2", "A100-SXM4-40GB", "A100-SXM4-80GB"]),
        (put("gpus.2.model", "Voodoo 2"), ["GPU 2", "Voodoo 2", "A100-SXM4-80GB"]),
    ],
)  # fmt: skip
def test_facts_must_agree_with_the_class(change: Change, words: list[str], tmp_path: Path) -> None:
    (tmp_path / "inventory.yaml").write_text(INVENTORY)
    inventory = read_inventory(str(tmp_path / "inventory.yaml")).inventory
    data = copy.deepcopy(record())
    change(data)
    facts, _ = read_facts("f.json", written(data))
    assert inventory
    assert facts
    findings = judge_facts(facts, inventory.groups[0], "gpu001")
    assert len(findings) == bool(words)
    assert all(word in findings[0].message for word in words)
    assert all(related.place.line == 6 for finding in findings for related in finding.related)


def test_cards_that_are_wrong_in_one_way_are_told_at_once_where_the_first_of_them_stands(tmp_path: Path) -> None:
    (tmp_path / "inventory.yaml").write_text(INVENTORY)
    inventory = read_inventory(str(tmp_path / "inventory.yaml")).inventory
    data = copy.deepcopy(record())
    for number in (0, 1, 3):
        data["gpus"][number]["model"] = "NVIDIA A30"
    data["gpus"][2]["model"] = "Voodoo 2"
    data["gpus"].reverse()
    path = tmp_path / "gpu001.json"
    path.write_text(json.dumps(data, indent=1))
    facts, _ = read_facts(str(path))
    assert inventory and facts
    findings = judge_facts(facts, inventory.groups[0], "gpu001")
    assert [finding.message.partition(" of ")[0] for finding in findings] == ["GPU 0-1,3", "GPU 2"]
    lines = path.read_text().splitlines()
    for finding, words in zip(findings, ("NVIDIA A30", "Voodoo 2"), strict=True):
        assert finding.place and words in lines[finding.place.line - 1]
    first = findings[0].place
    assert first and first.line > max(at for at, line in enumerate(lines) if "Voodoo" in line)
