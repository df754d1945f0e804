"""`hybridgpu render` as an admin meets it: what it writes, shows, keeps and refuses."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from hybridgpu.files.tree import locked
from tests.cli.test_main import hybridgpu_
from tests.sites import inventory

EXCLUSIVE = inventory("gpu[1-3] dgx exclusive")
SHARED = inventory("gpu[1-3] dgx time-slicing, replicas: 4")
SLURM_FILES = ["cgroup.conf", "gpu.conf", "gres.conf", "nodes.conf"]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "inventory.yaml"
    path.write_text(EXCLUSIVE)
    return path


def render(source: Path, *options: str) -> tuple[int, str, str]:
    result = hybridgpu_("render", str(source), "--to", str(source.parent / "out"), *options)
    return result.returncode, result.stdout, result.stderr


def tree(source: Path) -> dict[str, bytes]:
    root = source.parent / "out"
    return {str(p.relative_to(root)): p.read_bytes() for p in sorted(root.rglob("*")) if p.is_file()}


def test_it_writes_the_tree_and_then_changes_nothing(source: Path) -> None:
    code, out, err = render(source)
    assert code == 0
    assert "create nodes/gpu[1-3].json" in out.splitlines()
    assert "info: gpu[1-3]: device files are assumed" in err
    before = tree(source)
    slurm = [path for path in before if not path.startswith("kubernetes/")]
    assert slurm == [*(f"nodes/gpu{n}.json" for n in (1, 2, 3)), *(f"slurm/{name}" for name in SLURM_FILES)]
    assert render(source, "--detailed-exitcode")[:2] == (0, "nothing to change\n")
    assert tree(source) == before
    config = json.loads(before["nodes/gpu2.json"])
    assert (config["node"], config["kind"], config["mode"]) == ("gpu2", "NodeConfig", "exclusive")
    assert len(config["devices"]) == 8


def test_diff_shows_and_writes_nothing(source: Path) -> None:
    render(source)
    before = tree(source)
    source.write_text(SHARED)
    code, out, _ = render(source, "--diff", "--detailed-exitcode")
    assert code == 2
    assert "+NodeName=gpu[1-3] Name=shard Count=4 File=/dev/nvidia0" in out.splitlines()
    assert "--- a/nodes/gpu[1-3].json" in out
    assert "sha256" not in out
    assert tree(source) == before
    assert render(source, "--diff")[0] == 0


def test_a_mode_that_went_leaves_its_gres_type(source: Path) -> None:
    source.write_text(SHARED)
    render(source)
    source.write_text(EXCLUSIVE)
    assert render(source)[0] == 0
    assert b"GresTypes=gpu,shard\n" in tree(source)["slurm/gpu.conf"]
    render(source, "--forget")
    assert b"GresTypes=gpu\n" in tree(source)["slurm/gpu.conf"]


def test_a_node_that_went_loses_its_file(source: Path) -> None:
    render(source)
    source.write_text(inventory("gpu[1-2] dgx exclusive"))
    code, out, _ = render(source, "-o", "json")
    assert code == 0
    assert json.loads(out)["remove"] == ["nodes/gpu3.json"]
    assert "nodes/gpu3.json" not in tree(source)


def test_only_one_part(source: Path) -> None:
    assert render(source, "--only", "nodes")[0] == 0
    assert all(path.startswith("nodes/") for path in tree(source))
    source.write_text(inventory("gpu1 dgx exclusive"))
    assert render(source, "--only", "slurm")[0] == 0
    assert "nodes/gpu3.json" in tree(source)


@pytest.mark.parametrize("damage", ["edited", "foreign"])
def test_what_is_not_ours_is_refused_by_name_or_moved_aside(source: Path, damage: str) -> None:
    render(source)
    path = source.parent / "out/slurm/gres.conf"
    theirs = b"Name=gpu File=/dev/nvidia0\n" if damage == "foreign" else path.read_bytes() + b"# mine\n"
    path.write_bytes(theirs)
    source.write_text(SHARED)
    before = tree(source)
    code, out, err = render(source)
    assert (code, out) == (1, "")
    assert "slurm/gres.conf: " in err
    assert tree(source) == before
    assert render(source, "--overwrite")[0] == 0
    assert (source.parent / "out/slurm/gres.conf.orig").read_bytes() == theirs
    assert b"shard" in path.read_bytes()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (inventory("gpu[1-3] dgx exclusiv"), "inventory.yaml:12:"),
        (inventory("gpu[1-3] dgx exclusive", slurm="autoDetect: off"), "slurm.version"),
        ("", "the file holds nothing"),
        ("\x00\x01", "inventory.yaml:1:"),
    ],
)
def test_with_an_error_nothing_is_written(source: Path, text: str, said: str) -> None:
    render(source)
    before = tree(source)
    source.write_text(text)
    code, out, err = render(source)
    assert (code, out) == (1, "")
    assert said in err
    assert tree(source) == before


def test_the_inventory_may_come_from_the_environment(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HYBRIDGPU_INVENTORY", str(source))
    assert hybridgpu_("check").returncode == 0
    assert hybridgpu_("render", "--to", str(source.parent / "out")).returncode == 0


def test_facts_of_a_stranger_and_of_another_card(source: Path, tmp_path: Path) -> None:
    facts = tmp_path / "facts"
    facts.mkdir()
    card = {
        "index": 0,
        "minor": 0,
        "uuid": "GPU-00000000-0000-0000-0000-000000000000",
        "pci_bus_id": "0000:07:00.0",
        "model": "A100-SXM4-80GB",
        "memory_bytes": 85899345920,
        "mig_enabled": False,
        "compute_mode": "default",
        "cores": None,
        "links": None,
        "instances": [],
    }
    head = {"apiVersion": "hybridgpu/v1", "kind": "Facts", "driver": {"version": "580.95"}, "gpus": [card]}
    (facts / "login.json").write_text(json.dumps({**head, "node": "login"}))
    code, _, err = render(source, "--facts", str(facts))
    assert code == 0
    assert "login is not a node of the inventory" in err
    (facts / "gpu1.json").write_text(json.dumps({**head, "node": "gpu1"}))
    code, _, err = render(source, "--facts", str(facts))
    assert code == 1
    assert "gpu1.json:1:" in err
    assert render(source, "--facts", str(tmp_path / "nowhere"))[0] == 66


def test_a_stalled_writer_keeps_others_out(source: Path) -> None:
    render(source)
    with locked(source.parent / "out"):
        code, out, err = render(source)
    assert (code, out) == (1, "")
    assert "somebody else is writing this folder" in err


@pytest.mark.parametrize("options", [("--facts", ""), ("--to", "")])
def test_an_empty_path_is_wrong_usage(source: Path, options: tuple[str, str]) -> None:
    code, out, err = render(source, *options)
    assert (code, out) == (64, "")
    assert "the path is empty" in err
    assert not (source.parent / "out").exists()


def test_overwrite_moves_nothing_where_one_thing_cannot_be_moved(source: Path) -> None:
    folder = source.parent / "out/slurm"
    folder.mkdir(parents=True)
    for name in SLURM_FILES:
        (folder / name).write_text(f"mine {name}\n")
    (folder / "gres.conf.orig").write_text("older\n")
    before = tree(source)
    code, out, err = render(source, "--overwrite")
    assert (code, out) == (1, "")
    assert "gres.conf.orig is there already" in err
    assert tree(source) == before


def test_a_finding_about_rendered_text_points_into_the_inventory(source: Path) -> None:
    source.write_text(inventory("gpu1 dgx mps, replicas: 4", slurm='version: "23.11", site: {\n  epilog: [/opt/e.sh]}'))
    code, _, err = render(source)
    assert code == 1
    assert "inventory.yaml:5:3: error: Slurm 23.11 takes one line: Epilog is there twice" in err
    assert "rendered as `Epilog=/" in err


def test_the_head_of_nodes_conf_says_how_to_close_nodes_of_kubernetes(source: Path) -> None:
    source.write_text(inventory("{hosts: k1, class: dgx, owner: kubernetes, sharing: {mode: exclusive}}"))
    _, _, err = render(source)
    assert "k1: Kubernetes owns GPUs there" in err
    text = (source.parent / "out/slurm/nodes.conf").read_text()
    assert "# Kubernetes owns GPUs of k1.\n" in text
    assert "scontrol create reservation" in text


def test_closed_streams(source: Path) -> None:
    command = f"exec {sys.executable} -m hybridgpu check {source}"
    closed = subprocess.run(["sh", "-c", f"{command} >&-"], capture_output=True, text=True, check=False)
    assert (closed.returncode, closed.stderr) == (1, "hybridgpu: standard output is closed\n")
    assert subprocess.run(["sh", "-c", f"{command} 2>&-"], capture_output=True, check=False).returncode == 0
