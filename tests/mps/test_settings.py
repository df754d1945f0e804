"""The hooks' settings: every key has a default, every mistake of a file is named, and no value is believed to be sh."""

from __future__ import annotations

from pathlib import Path

import pytest

from hybridgpu.mps.settings import KEYS, read
from hybridgpu.mps.trouble import Trouble


def test_without_a_file_the_defaults_hold(tmp_path: Path) -> None:
    found = read(str(tmp_path / "hooks.conf"))
    assert (found.run, found.device_map, found.jobs, found.daemons) == (
        "/run/hybridgpu",
        "/run/hybridgpu/devices.json",
        "/run/hybridgpu/jobs",
        "/run/hybridgpu/mps",
    )
    assert found.control == "/usr/bin/nvidia-cuda-mps-control"


def test_every_key_can_be_set(tmp_path: Path) -> None:
    wanted = {name.upper(): "7.5" if name.endswith("_seconds") else f"/some/{name}" for name in KEYS}
    path = tmp_path / "hooks.conf"
    lines = [f"{key}={value}" for key, value in wanted.items()]
    path.write_text("# a comment\n\nPYTHON=/usr/bin/python3.11\n" + "\n".join(lines) + "\n")
    found = read(str(path))
    for key, value in wanted.items():
        assert str(getattr(found, key.lower())) == value


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("RUN=/run/x", "'RUN' is no key; allowed: "),
        ("log=/run/x", "'log' is no key"),
        ("LOG", "'LOG' is no key"),
        ("LOG=", "LOG is ''; allowed: an absolute path"),
        ("CONTROL=nvidia-cuda-mps-control", "allowed: an absolute path"),
        ("START_SECONDS=soon", "START_SECONDS is 'soon'; allowed: seconds"),
        ("QUIT_SECONDS=0", "QUIT_SECONDS is '0'"),
        ("WHOLE_SECONDS=0.99", "WHOLE_SECONDS is '0.99'; allowed: seconds from 1 to 3600"),
        ('LOG="/var/log/x"', 'LOG is "/var/log/x"; write it without quotes'),
        ("PYTHON='/usr/bin/python3'", "write it without quotes"),
        ('QUIT_SECONDS="3"', "write it without quotes"),
        ("QUIT_SECONDS=nan", "QUIT_SECONDS is 'nan'"),
        ("QUIT_SECONDS=3601", "QUIT_SECONDS is '3601'"),
        ("PYTHON = /usr/bin/python3.12", "write it as PYTHON=/PATH, without blanks"),
        (" PYTHON=/usr/bin/python3.12", "without blanks"),
        ("PYTHON=python3", "PYTHON=/PATH"),
    ],
)
def test_a_mistake_is_named_with_its_line(tmp_path: Path, line: str, why: str) -> None:
    path = tmp_path / "hooks.conf"
    path.write_text(f"# first\n{line}\n")
    with pytest.raises(Trouble) as caught:
        read(str(path))
    assert str(caught.value).startswith(f"{path}:2: ")
    assert why in str(caught.value)


def test_all_mistakes_are_named_at_once(tmp_path: Path) -> None:
    path = tmp_path / "hooks.conf"
    path.write_text("A=1\nLOG=x\n")
    with pytest.raises(Trouble, match=r"hooks\.conf:1: .*hooks\.conf:2: "):
        read(str(path))


def test_a_folder_in_its_place_is_said(tmp_path: Path) -> None:
    with pytest.raises(Trouble, match="directory"):
        read(str(tmp_path))


def test_a_value_is_taken_as_it_stands(tmp_path: Path) -> None:
    path = tmp_path / "hooks.conf"
    path.write_text("LOG=/var/log/$(id)=`id`;x\n")
    assert read(str(path)).log == "/var/log/$(id)=`id`;x"


def test_lines_may_end_as_they_do_elsewhere(tmp_path: Path) -> None:
    path = tmp_path / "hooks.conf"
    path.write_bytes(b"PYTHON=/usr/bin/python3\r\nLOG=/var/log/x\r\n\r\nQUIT_SECONDS=1\r\n")
    found = read(str(path))
    assert (found.log, found.quit_seconds) == ("/var/log/x", 1)
