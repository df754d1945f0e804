"""The units that are shipped: systemd takes them, and they stand in the order that the cards need."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from hybridgpu.cli.node.apply import command
from hybridgpu.devices.clients import KNOWN
from tests.conftest import lacking

FOLDER = Path(__file__).parent.parent / "systemd"
APPLY = FOLDER / "hybridgpu-apply.service"


def settings(path: Path) -> dict[str, list[str]]:
    """Each key's words; lines of one key add up, as systemd has it for lists."""
    found: dict[str, list[str]] = {}
    for name, value in re.findall(r"^([A-Za-z]+)=(.*)$", path.read_text(), re.MULTILINE):
        found.setdefault(name, []).extend(value.split())
    return found


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.service")), ids=lambda path: path.name)
def test_systemd_takes_it(path: Path, tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        lacking("units are verified with systemd-analyze (systemd)")
    run = subprocess.run(["systemd-analyze", "verify", str(path)], capture_output=True, text=True)
    assert (run.returncode, run.stderr) == (0, "")
    spoilt = tmp_path / path.name
    spoilt.write_text(path.read_text().replace("Type=oneshot", "Type=onshot"))
    assert "onshot" in subprocess.run(["systemd-analyze", "verify", str(spoilt)], capture_output=True, text=True).stderr


def test_the_cards_are_cut_before_the_schedulers_and_after_what_they_need() -> None:
    unit = settings(APPLY)
    assert {"local-fs.target", "nvidia-persistenced.service", "nvidia-fabricmanager.service"} <= set(unit["After"])
    assert {"slurmd.service", "kubelet.service"} <= set(unit["Before"])
    assert not [name for name in unit["After"] if name.startswith(("network", "remote-fs"))]
    assert (unit["Type"], unit["RemainAfterExit"]) == (["oneshot"], ["yes"])
    assert (unit["WantedBy"], unit["RequiredBy"]) == (["multi-user.target"], ["slurmd.service"])
    assert not set(unit["Before"]) & set(unit["After"])


def test_clients_ordered_by_it_are_known_ones() -> None:
    before = set(settings(APPLY)["Before"]) - {"slurmd.service", "kubelet.service"}
    assert before < set(KNOWN)


def test_what_it_runs_is_a_command_of_ours() -> None:
    words = settings(APPLY)["ExecStart"]
    assert words[:4] == ["/usr/bin/env", "hybridgpu", "node", "apply"]
    assert set(words[4:]) <= {option for parameter in command.params for option in parameter.opts}
