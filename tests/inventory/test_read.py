from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from hybridgpu.inventory.entries import Inventory
from hybridgpu.inventory.read import Reading, read_inventory
from hybridgpu.inventory.report import MOST_FINDINGS
from hybridgpu.inventory.schema import INVENTORY
from hybridgpu.inventory.shape import Block, Choice, Either, Flag, ListOf, MapOf, Shape, Text, Whole
from hybridgpu.model.sharing import ComputeMode, Mode, Scheduler

FULL = Path(__file__).parent.parent / "data" / "cases" / "inventory-clean-full" / "inventory.yaml"
HEAD = """\
apiVersion: hybridgpu/v1
kind: Inventory
metadata: {name: t}
slurm: {version: "24.11"}
kubernetes: {delivery: device-plugin}
nodeClasses:
  dgx: {model: A100-SXM4-80GB, gpus: 8}
nodes:
"""

Step = str | int
Data = Any
"""What YAML or JSON holds."""


def read(text: str) -> Reading:
    return read_inventory("f.yaml", text.encode())


def told(reading: Reading) -> list[str]:
    return [f"{f.place.line if f.place else 0}: {f.message} {f.hint}" for f in reading.findings]


def inventory() -> Inventory:
    reading = read_inventory(str(FULL))
    assert reading.inventory, told(reading)
    return reading.inventory


def test_every_value_arrives() -> None:
    full = inventory()
    assert (full.name, full.driver_root, full.device_clients) == ("leibniz", "/", ("nvidia-dcgm.service",))
    assert full.slurm
    assert (full.slurm.version, full.slurm.autodetect, full.slurm.controllers) == ("25.05", "off", ("ctl1", "ctl2"))
    cluster = full.slurm.cluster
    assert (cluster.version, cluster.accounting, cluster.hooks_enabled) == ("25.05", "slurmdbd", True)
    assert cluster.site.gres_types == ("nic", "gpu")
    assert cluster.site.cgroup == (("ConstrainCores", "yes"), ("AllowedRAMSpace", "95.5"))
    assert cluster.site.prolog_flags == ("X11", "contain")
    assert full.kubernetes
    assert [t.operator for t in full.kubernetes.cluster.tolerations] == ["Exists", "Exists"]
    assert full.kubernetes.cluster.tolerations[1].key is None


def test_entries_are_resolved() -> None:
    mig, mps, split, mixed, old = inventory().groups
    assert mig.hosts == ("gpu001", "gpu002", "gpu003", "gpu004")
    assert mig.addresses == {"NodeAddr": ("10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"), "Port": ("6820",) * 4}
    assert dict(mig.slurm) == {
        "CPUs": "256", "Sockets": "2", "RealMemory": "2000000", "Features": "a100,ib", "Weight": "10",
    }  # fmt: skip
    assert (mig.gres, mig.node_class.type, mig.node_class.slurm_version) == ("nic:2", "a100", "24.11")
    assert mig.sharing.mig_strategy == "single"
    assert mig.sharing.whole_gpu_jobs
    assert [len(instances or ()) for instances in mig.layout] == [7] * 8
    assert mps.hosts == ("gpu005", "gpu006", "gpu007", "gpu008", "gpu010")
    assert (mps.sharing.mode, mps.sharing.replicas, mps.sharing.compute_mode) == (
        Mode.MPS, 48, ComputeMode.EXCLUSIVE_PROCESS,
    )  # fmt: skip
    assert mps.sharing.rename_by_default
    assert not mps.sharing.fail_requests_greater_than_one
    assert split.owners == (Scheduler.SLURM,) * 4 + (Scheduler.KUBERNETES,) * 4
    assert [None if i is None else len(i) for i in split.layout] == [2, 2, 2, 2, 7, 7, 7, None]
    assert [model.name for model in mixed.node_class.gpus] == ["A100-PCIE-40GB"] * 2 + ["V100-SXM2-32GB"] * 2
    assert (mixed.schedulers, old.schedulers) == ((Scheduler.SLURM,), (Scheduler.KUBERNETES,))


def test_defaults() -> None:
    reading = read(HEAD + "- {hosts: n1, class: dgx, owner: slurm, sharing: {mode: exclusive}}\n")
    assert reading.findings == ()
    assert reading.inventory
    group = reading.inventory.groups[0]
    assert group.schedulers == (Scheduler.SLURM, Scheduler.KUBERNETES)
    assert (group.kubernetes_name, group.layout, group.sharing.replicas) == ("{host}", (None,) * 8, None)
    assert reading.inventory.kubernetes
    cluster = reading.inventory.kubernetes.cluster
    assert (cluster.namespace, cluster.mps_root) == (
        "nvidia-device-plugin", "/run/nvidia/mps",
    )  # fmt: skip


def test_every_mistake_of_a_file_in_one_run() -> None:
    text = """\
apiVersion: hybridgpu/v2
kind: Inventory
metadata: {name: Big Site}
slurm: {version: 24.10, autoDetect: nvlm, site: {prologFlags: [Alocc]}}
kubernetes: {delivery: device-plugin, mpsroot: /x}
nodeClasses:
  a: {model: A100-SXM4-80GB, gpus: eight}
  b: {model: B9000, gpus: 8, slurm: {RealMem: 1, State: UP}}
  c: {model: A30, gpus: 4}
nodes:
- hosts: n[1-2
  class: d
  owner: {slurm: 0-1, kubernetes: 2-4}
  sharing: {mode: mig, layout: {all: {1g.6gb: 8}}}
- hosts: n[3-4]
  class: c
  owner: {slurm: 0-1, kubernetes: 2-4}
  sharing: {mode: mig, layout: {0-1: {1g.6gb: 5}, 1-3: off}, replicas: 3}
- hosts: n[4-5]
  class: a
  owner: kubernets
  sharing: {mode: tims-slicing}
  shcedulers: [slurm]
"""
    lines = [finding.place.line for finding in read(text).findings if finding.place]
    assert lines == [1, 3, 4, 4, 4, 5, 7, 8, 8, 8, 11, 12, 13, 17, 17, 18, 18, 18, 19, 21, 21, 22, 22, 23]
    assert read(text).inventory is None


def test_a_class_that_is_wrong_is_not_called_unknown_and_hides_nothing_else() -> None:
    text = HEAD.replace("gpus: 8", "gpus: 0") + "- {hosts: 'n1,n1', class: dgx, owner: slurm, sharing: {mode: mgi}}\n"
    reading = read(text)
    assert {finding.rule.id for finding in reading.findings} == {
        "inventory-not-a-number", "inventory-node-twice", "inventory-missing-key", "inventory-unknown-word",
    }  # fmt: skip


def test_a_collision_of_types_points_at_the_second_and_the_first() -> None:
    text = HEAD.replace("gpus: 8}", "gpus: 8, type: 4g.20gb}\n  x: {model: A30, gpus: 4, type: 1g.23gb}")
    entry = "- {{hosts: n{0}, class: {1}, owner: slurm, sharing: {{mode: exclusive}}}}\n"
    finding = read(text + entry.format(1, "dgx") + entry.format(2, "x")).findings[0]
    assert finding.place
    assert (finding.rule.id, finding.place.line) == ("inventory-type-collision", 8)
    assert [related.place.line for related in finding.related] == [7]


def test_unconfirmed_data_in_use_is_told_once() -> None:
    entry = "- {{hosts: n{0}, class: dgx, owner: slurm, sharing: {{mode: mig, layout: {{all: {{1g.23gb: {0}}}}}}}}}\n"
    text = HEAD.replace("A100-SXM4-80GB", "B200")
    reading = read(text + entry.format(1) + entry.format(2))
    assert [(f.severity, f.rule.id) for f in reading.findings] == [("info", "inventory-unconfirmed-catalogue")]
    assert "B200" in reading.findings[0].message
    assert reading.inventory
    whole = read(text + "- {hosts: n1, class: dgx, owner: slurm, sharing: {mode: exclusive}}\n")
    assert whole.findings == ()


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n", "5", "[]", "a: b", "\n\n", "kind: Inventory"])
def test_what_is_no_inventory_is_refused_in_words(text: str) -> None:
    reading = read(text)
    assert reading.inventory is None
    assert all(finding.place and finding.message and finding.hint for finding in reading.findings)
    assert reading.findings


def test_thousands_of_mistakes_end_the_reading() -> None:
    reading = read(HEAD + "- {hosts: n1, class: dgxx, ownr: slurm, sharing: {mode: mgi}}\n" * 20_000)
    assert len(reading.findings) == MOST_FINDINGS + 1
    assert reading.inventory is None


def test_ten_thousand_entries_take_seconds() -> None:
    entry = """\
- hosts: gpu{0:05}
  class: dgx
  owner: {{slurm: 0-3, kubernetes: 4-7}}
  sharing: {{mode: mig, layout: {{0-3: {{3g.40gb: 2}}, 4-7: {{1g.10gb: 7}}}}}}
"""
    text = HEAD + "".join(entry.format(number) for number in range(10_000))
    begun = time.monotonic()
    reading = read(text)
    assert time.monotonic() - begun < 10
    assert reading.inventory
    assert len(reading.inventory.groups) == 10_000


def spots(shape: Shape, data: Data, path: tuple[Step, ...] = ()) -> Iterator[tuple[tuple[Step, ...], Shape]]:
    """Every place of a whole inventory that has a shape, with the shape."""
    if isinstance(shape, Either):
        shape = shape.scalar if isinstance(data, str) else shape.other
    yield path, shape
    if isinstance(shape, Block):
        for name, value in data.items():
            key = shape.key(name)
            assert key, f"{path} has {name}"
            yield from spots(key.shape, value, (*path, name))
    elif isinstance(shape, ListOf):
        for at, value in enumerate(data):
            yield from spots(shape.item, value, (*path, at))
    elif isinstance(shape, MapOf):
        for name, value in data.items():
            yield from spots(shape.value, value, (*path, name))


def full() -> Data:
    return yaml.load(FULL.read_text(), Loader=yaml.BaseLoader)


def at(data: Data, path: tuple[Step, ...]) -> Data:
    for step in path:
        data = data[step]
    return data


SPOTS = list(spots(INVENTORY, full()))
KEYS = [(*path, name) for path, shape in SPOTS if isinstance(shape, Block) for name in at(full(), path)]
WORDS = [(path, shape) for path, shape in SPOTS if isinstance(shape, Choice | Flag | Whole | Text)]


def shown_path(path: object) -> str:
    return ".".join(map(str, path)) if isinstance(path, tuple) else ""


def test_the_full_inventory_has_every_key_of_the_schema() -> None:
    names = {
        key.name for _, shape in SPOTS if isinstance(shape, Block) for key in shape.keys if key.name not in ("value",)
    }
    assert names == {path[-1] for path, _ in SPOTS if path and isinstance(path[-1], str)} & names


@pytest.mark.parametrize("path", KEYS, ids=shown_path)
def test_a_misspelt_key_anywhere_is_named_with_the_right_one_and_reported_once(path: tuple[Step, ...]) -> None:
    data = full()
    block, name = at(data, path[:-1]), str(path[-1])
    wrong = name + name[-1]
    data_of = {wrong if key == name else key: value for key, value in block.items()}
    block.clear()
    block.update(data_of)
    reading = read(json.dumps(data, indent=1))
    sentences = told(reading)
    assert len(sentences) == 1, sentences
    assert f"'{wrong}'" in sentences[0] or wrong in sentences[0]
    assert name in sentences[0]


@pytest.mark.parametrize(("path", "shape"), WORDS, ids=shown_path)
@pytest.mark.parametrize("wrong", ["", "no such/wörd", "a\nb", [], {}], ids=repr)
def test_a_wrong_value_anywhere_is_refused_at_its_line(path: tuple[Step, ...], shape: Shape, wrong: object) -> None:
    data = full()
    at(data, path[:-1])[path[-1]] = "@@@" if wrong == [] else wrong
    text = json.dumps(data, indent=1)
    line = text[: text.index('"@@@"')].count("\n") + 1 if wrong == [] else 0
    reading = read(text.replace('"@@@"', "[]") if wrong == [] else text)
    errors = [finding for finding in reading.findings if finding.is_error]
    assert errors, (path, shape)
    assert all("\n" not in finding.message for finding in errors)
    assert not line or line in [finding.place.line for finding in errors if finding.place]


ENTRY = "- {{hosts: '{}', class: dgx, owner: slurm, sharing: {{mode: exclusive}}}}\n"
HOSTILE = {
    "hundreds of entries of all hosts": ["g[1-65536]"] * 300,
    "names that are all wrong": ["g[1-60000]-"],
    "brackets without end": ["g[1-9]" + "[1-65536]" * 4000],
    "many entries, each too long": ["g[1-70000]"] * 300,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_hosts_are_answered_within_a_second(name: str) -> None:
    head = "apiVersion: hybridgpu/v1\nkind: Inventory\nmetadata: {name: t}\nslurm: {version: '24.11'}\n"
    head += "nodeClasses:\n  dgx: {model: A30, gpus: 4}\nnodes:\n"
    start = time.process_time()
    reading = read(head + "".join(ENTRY.format(hosts) for hosts in HOSTILE[name]))
    assert time.process_time() - start < 1
    assert reading.inventory is None
    assert len(reading.findings) == (300 if "each" in name else 1)
