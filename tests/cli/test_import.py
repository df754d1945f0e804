"""`hybridgpu import` as an admin meets it: what goes to stdout and stderr, its exit codes, and what it never does."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.test_main import hybridgpu_
from tests.consumers.slurm.sites import site

TYPED = "Name=gpu Type=l40s File=/dev/nvidia[0-1]"


@pytest.fixture
def slurm(tmp_path: Path) -> str:
    return written(tmp_path, site("gpu:l40s:2", TYPED))


def written(folder: Path, files: dict[str, str]) -> str:
    for name, text in files.items():
        (folder / name).write_text(text)
    return str(folder)


def test_the_inventory_goes_to_stdout_and_can_be_checked_and_rendered(slurm: str, tmp_path: Path) -> None:
    done = hybridgpu_("import", slurm)
    assert done.returncode == 0
    assert done.stdout.startswith("apiVersion: hybridgpu/v1\nkind: Inventory\n")
    assert 'line 5: version: "26.05" is a guess: ' in done.stderr
    assert done.stderr.endswith("1 guess, nothing found\n")
    inventory = tmp_path / "inventory.yaml"
    inventory.write_text(done.stdout)
    assert hybridgpu_("check", str(inventory)).returncode == 0
    assert hybridgpu_("render", str(inventory), "--to", str(tmp_path / "tree")).returncode == 0
    assert "gpu:l40s:2" in (tmp_path / "tree/slurm/nodes.conf").read_text()


def test_a_release_that_is_named_is_no_guess(slurm: str) -> None:
    done = hybridgpu_("import", "--slurm-version", "24.11.5", slurm)
    assert 'version: "24.11"\n' in done.stdout
    assert "guessed" not in done.stdout
    wrong = hybridgpu_("import", "--slurm-version", "19.05", slurm)
    assert wrong.returncode == 64
    assert "known are 22.05" in wrong.stderr


def test_what_is_lost_is_told_and_the_inventory_written_all_the_same(tmp_path: Path) -> None:
    path = written(tmp_path, site("gpu:l40s:2", "Name=gpu Type=l40s File=/dev/nvidia[2-3]"))
    done = hybridgpu_("-q", "import", path)
    assert done.returncode == 1
    assert done.stdout.startswith("apiVersion: hybridgpu/v1\n")
    assert f"{path}/slurm.conf:6:" in done.stderr
    assert "[import-devices-differ]" in done.stderr
    assert "guess" not in done.stderr


def test_what_cannot_be_read_is_refused_with_what_check_says(tmp_path: Path) -> None:
    path = written(tmp_path, site("gpu:l40s:2", f"{TYPED} Frobnicate=1"))
    done = hybridgpu_("import", path)
    assert (done.returncode, done.stdout) == (1, "")
    assert "[slurm-unknown-key]" in done.stderr
    assert "unknown key 'Frobnicate'" in hybridgpu_("check", path).stdout


def test_a_file_that_is_there_is_never_written_over(slurm: str, tmp_path: Path) -> None:
    target = tmp_path / "new.yaml"
    done = hybridgpu_("import", slurm, "--to", str(target))
    assert (done.returncode, done.stdout) == (0, "")
    text = target.read_text()
    again = hybridgpu_("import", slurm, "--to", str(target))
    assert again.returncode == 1
    assert "File exists" in again.stderr
    assert target.read_text() == text


def test_wrong_usage_and_missing_files() -> None:
    assert hybridgpu_("import").returncode == 64
    assert hybridgpu_("import", "/does/not/exist").returncode == 66
    assert "never" not in hybridgpu_("import", "--help").stderr
