"""`hybridgpu check --live` on a node: its cards against what is installed, over the simulated driver."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from testbed.driver.machine import Machine
from tests.cli.test_discover import INVENTORY, discover, hybridgpu
from tests.devices.machines import MACHINES
from tests.sites import CONFINING

HOST = os.uname().nodename.partition(".")[0]


@pytest.fixture
def dgx(tmp_path: Path) -> Machine:
    return MACHINES["dgx-a100-mig"].make(tmp_path / "machine")


@pytest.fixture
def node(dgx: Machine, tmp_path: Path) -> Path:
    """A folder with what is installed on the node: node.json and slurm/, rendered from the facts that were seen."""
    facts = tmp_path / "facts"
    assert discover(dgx, "--node", HOST, "--to", str(facts)).returncode == 0
    inventory = tmp_path / "inventory.yaml"
    inventory.write_text(INVENTORY.replace("hosts: n1", f"hosts: {HOST}").replace('version: "24.11"', HOOKS))
    done = hybridgpu(None, "render", str(inventory), "--facts", str(facts), "--to", str(tmp_path / "out"))
    assert done.returncode == 0, done.stderr
    (tmp_path / "out/slurm/slurm.conf").write_text(CONFINING)
    return tmp_path / "out"


HOOKS = 'version: "24.11", hooks: {enabled: false}'


def live(machine: Machine, node: Path, *paths: str) -> subprocess.CompletedProcess[str]:
    config, root = str(node / f"nodes/{HOST}.json"), str(machine.root)
    return hybridgpu(machine, "check", "--live", "--config", config, "--driver-root", root, *paths)


def test_a_node_that_is_what_it_must_be(dgx: Machine, node: Path) -> None:
    run = live(dgx, node, str(node / "slurm"))
    assert run.returncode == 0, run.stdout + run.stderr
    assert "error" not in run.stdout + run.stderr


def test_the_cards_are_held_against_the_node_config_alone(dgx: Machine, node: Path) -> None:
    (node / "slurm").rename(node / "elsewhere")
    (node / "none").mkdir()
    (node / "none" / "cgroup.conf").write_text("ConstrainDevices=yes\n")
    assert live(dgx, node, str(node / "none")).returncode == 0


def test_slurms_files_are_held_against_the_cards(dgx: Machine, node: Path) -> None:
    gres = node / "slurm/gres.conf"
    gres.write_text(gres.read_text().replace("/dev/nvidia3,", "/dev/nvidia2,"))
    run = live(dgx, node, str(node / "slurm"))
    assert run.returncode == 1
    assert "live-slurm-differs" in run.stdout


def test_another_layout_is_told(dgx: Machine, node: Path) -> None:
    dgx.reboot()
    run = live(dgx, node, str(node / "slurm"))
    assert run.returncode == 1
    assert "3g.40gb" in run.stdout + run.stderr


def test_without_a_node_config(dgx: Machine, tmp_path: Path) -> None:
    run = hybridgpu(dgx, "check", "--live", "--config", str(tmp_path / "none.json"), "--driver-root", str(dgx.root))
    assert (run.returncode, "none.json" in run.stderr) == (66, True)


def test_a_dead_card_is_told_by_name(dgx: Machine, node: Path) -> None:
    dgx.break_card(2, "lost")
    run = live(dgx, node, str(node / "slurm"))
    assert run.returncode == 1
    assert "GPU 2" in run.stderr or "lost" in run.stderr.lower()
