"""`hybridgpu check` as an admin meets it: what it takes, in which forms it answers, and its exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.test_main import hybridgpu_
from tests.inventory.test_compile import facts
from tests.sites import inventory

SPLIT = "{hosts: n1, class: dgx, owner: {slurm: 0-3, kubernetes: 4-7}, sharing: {mode: exclusive}}"


def written(folder: Path, text: str) -> str:
    path = folder / "inventory.yaml"
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize("form", ["text", "json", "sarif", "github"])
def test_a_mistake_in_every_form(tmp_path: Path, form: str) -> None:
    path = written(tmp_path, inventory("gpu1 dgx exclusiv"))
    result = hybridgpu_("check", path, "-o", form)
    assert result.returncode == 1
    assert "exclusiv" in result.stdout
    assert "Traceback" not in result.stderr
    if form == "json":
        told = json.loads(result.stdout)
        assert told["checked"] == [path]
        assert (told["findings"][0]["file"], told["findings"][0]["line"]) == (path, 12)


def test_quiet_says_nothing_beside_the_result(tmp_path: Path) -> None:
    path = written(tmp_path, inventory("gpu1 dgx exclusive"))
    assert hybridgpu_("-q", "check", path).stderr == ""
    assert "1 info in 1 file" in hybridgpu_("check", path).stderr


def test_strict_minds_warnings(tmp_path: Path) -> None:
    path = written(
        tmp_path, inventory("n1 old mig, layout: {all: {1g.10gb: 4}}", "n2 dgx mig, layout: {all: {1g.10gb: 7}}")
    )
    result = hybridgpu_("check", path)
    assert (result.returncode, "warning" in result.stdout) == (0, True)
    assert hybridgpu_("check", "--strict", path).returncode == 1


def test_another_release_may_be_judged(tmp_path: Path) -> None:
    path = written(tmp_path, inventory(SPLIT))
    assert hybridgpu_("check", path).returncode == 0
    old = hybridgpu_("check", path, "--slurm-version", "22.05")
    assert (old.returncode, "22.05" in old.stdout) == (1, True)
    wrong = hybridgpu_("check", path, "--slurm-version", "24.10")
    assert (wrong.returncode, "24.11" in wrong.stderr) == (64, True)


def test_what_render_would_refuse_is_found(tmp_path: Path) -> None:
    path = written(
        tmp_path, inventory("n1 dgx mps, replicas: 4", slurm='version: "23.11", site: {prolog: [/opt/p.sh]}')
    )
    result = hybridgpu_("check", path)
    assert result.returncode == 1
    assert "Prolog is there twice" in result.stdout


def test_a_folder_is_searched_and_files_are_told_apart_by_content(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(inventory("gpu1 dgx exclusive"))
    (tmp_path / "notes.yaml").write_text("kind of a note: nothing\n")
    (tmp_path / ".hidden").mkdir()
    (tmp_path / ".hidden" / "inventory.yaml").write_text(inventory("gpu1 dgx exclusiv"))
    told = json.loads(hybridgpu_("check", str(tmp_path), "-o", "json").stdout)
    assert told["checked"] == [str(tmp_path / "a.txt")]


def test_facts_are_of_the_node_they_name_whatever_their_file_is_called(tmp_path: Path) -> None:
    path = written(tmp_path, inventory("gpu[1-2] dgx exclusive"))
    for name, node in (("first.txt", "gpu1"), ("gpu2.json", "gpu2")):
        (tmp_path / name).write_text(json.dumps(facts(node)))
    assert hybridgpu_("check", str(tmp_path)).stdout == ""
    again = tmp_path / "older" / "gpu2.json"
    again.parent.mkdir()
    again.write_text(json.dumps(facts("gpu2")))
    twice = hybridgpu_("check", path, str(tmp_path / "first.txt"), str(tmp_path / "gpu2.json"), str(again))
    assert twice.returncode == 1
    assert twice.stdout.startswith(f"{again}:1:1: error: facts of gpu2 again [check-facts-twice]\n")


def test_a_folder_with_nothing_known_is_an_error(tmp_path: Path) -> None:
    result = hybridgpu_("check", str(tmp_path))
    assert result.returncode == 1
    assert "holds nothing that hybridgpu knows" in result.stdout


def test_a_file_of_another_kind_is_not_called_a_bad_inventory(tmp_path: Path) -> None:
    for name, content in (("values.yaml", "controller: {kind: DaemonSet}\n"), ("setup.sh", "set -e\n"), ("x", "")):
        (tmp_path / name).write_text(content)
        result = hybridgpu_("check", str(tmp_path / name))
        assert (result.returncode, result.stdout.count("error:")) == (1, 1), name
        assert "holds nothing that hybridgpu knows" in result.stdout
    (tmp_path / "inventory.yml").write_text("- a\n")
    assert "inventory.yml:1:1: error" in hybridgpu_("check", str(tmp_path / "inventory.yml")).stdout


def test_a_rendered_tree_beside_its_inventory(tmp_path: Path) -> None:
    path = written(tmp_path, inventory("gpu1 dgx exclusive"))
    hybridgpu_("-q", "render", path, "--to", str(tmp_path / "out"))
    told = json.loads(hybridgpu_("check", str(tmp_path), "-o", "json").stdout)
    assert {f["severity"] for f in told["findings"]} <= {"info"}
    assert {path, str(tmp_path / "out/slurm/gres.conf"), str(tmp_path / "out/slurm/nodes.conf")} <= set(told["checked"])


def test_a_node_in_two_inventories(tmp_path: Path) -> None:
    written(tmp_path, inventory("gpu[1-2] dgx exclusive"))
    (tmp_path / "old.yaml").write_text(inventory("gpu[2-3] dgx exclusive"))
    result = hybridgpu_("check", str(tmp_path))
    assert result.returncode == 1
    assert "error: gpu2 stands in " in result.stdout


def test_a_slurm_file_is_not_called_a_bad_inventory(tmp_path: Path) -> None:
    (tmp_path / "gres.conf").write_text("Name=gpu File=/dev/nvidia0\n")
    result = hybridgpu_("check", str(tmp_path / "gres.conf"))
    assert (result.returncode, "error:" in result.stdout) == (0, False)


def test_a_file_of_newlines_takes_no_time(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("\n" * 65536)
    (tmp_path / "log2").write_text(" \n" * 32768)
    assert hybridgpu_("check", str(tmp_path)).returncode == 1


def test_autodetect_names_are_the_drivers_even_without_facts(tmp_path: Path) -> None:
    text = inventory("n1 dgx exclusive", slurm='version: "24.11", autoDetect: nvml')
    good = hybridgpu_("check", written(tmp_path, text))
    assert good.returncode == 0, good.stdout
    bad = hybridgpu_("check", written(tmp_path, text.replace("gpus: 8,", "gpus: 8, type: gpu80,")))
    assert bad.returncode == 1
    assert "inventory.yaml:12:3: error: " in bad.stdout
