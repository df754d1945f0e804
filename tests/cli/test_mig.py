"""`hybridgpu mig`, as a user runs it."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from hybridgpu.model.catalogue import models


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "hybridgpu", "mig", *arguments], capture_output=True, text=True)


def test_layouts_as_json_are_the_contract() -> None:
    done = run("layouts", "A30", "-o", "json")
    assert (done.returncode, done.stderr) == (0, "")
    data = json.loads(done.stdout)
    assert data["model"] == "A30"
    assert [layout["profiles"] for layout in data["layouts"]] == [
        {"4g.24gb": 1},
        {"2g.12gb": 2},
        {"2g.12gb": 1, "1g.6gb": 2},
        {"1g.6gb": 4},
    ]
    assert data["layouts"][2]["placements"] == [
        {"profile": "2g.12gb", "start": 0, "size": 2},
        {"profile": "1g.6gb", "start": 2, "size": 1},
        {"profile": "1g.6gb", "start": 3, "size": 1},
    ]


def test_all_adds_profiles_with_an_attribute() -> None:
    plain = json.loads(run("layouts", "A100-40GB", "-o", "json").stdout)["layouts"]
    everything = json.loads(run("layouts", "A100-40GB", "-o", "json", "--all").stdout)["layouts"]
    assert not any("+me" in name for layout in plain for name in layout["profiles"])
    assert any("1g.5gb+me" in layout["profiles"] for layout in everything)


def test_layouts_as_text_say_what_is_left_over() -> None:
    lines = run("layouts", "A100-80GB").stdout.splitlines()
    assert any(line.split() == ["2", "x", "3g.40gb", "3g.40gb@0", "3g.40gb@4", "1", "compute"] for line in lines)
    assert any(line.startswith("7 x 1g.10gb ") and line.endswith("memory 7") for line in lines)
    assert all(line == line.rstrip() for line in lines)


def test_profiles_as_json() -> None:
    data = json.loads(run("profiles", "0x20B010DE", "-o", "json").stdout)
    assert data["model"] == "A100-SXM4-40GB"
    assert data["slurm_type"] == "a100-sxm4-40gb"
    rows = {row["profile"]: row for row in data["profiles"]}
    assert rows["4g.20gb"] == {
        "profile": "4g.20gb",
        "attribute": "",
        "compute_slices": 4,
        "memory_slices": 4,
        "starts": [0],
        "max_count": 1,
        "smi_id": 5,
        "min_driver": None,
        "confirmed": True,
        "slurm_type": "a100_4g.20gb",
        "kubernetes_resource": "nvidia.com/mig-4g.20gb",
    }
    assert rows["1g.10gb"]["min_driver"] == "525"


def test_profiles_as_text_have_a_row_each_under_aligned_heads() -> None:
    done = run("profiles", "A100-40GB")
    title, blank, head, *rows = done.stdout.splitlines()
    assert title.startswith("A100-SXM4-40GB: 40 GB")
    assert blank == ""
    assert [row.split()[0] for row in rows] == [
        "1g.5gb",
        "1g.5gb+me",
        "1g.10gb",
        "2g.10gb",
        "3g.20gb",
        "4g.20gb",
        "7g.40gb",
    ]
    column = head.index("SLURM TYPE")
    assert [row[column:].split()[0] for row in rows][-2:] == ["a100_4g.20gb", "a100_7g.40gb"]


def test_without_a_model_all_are_listed() -> None:
    with_mig = run("profiles").stdout
    every = run("profiles", "--all").stdout
    assert "A30" in with_mig
    assert "L40S" not in with_mig
    assert [line.split()[0] for line in every.splitlines()[1:]] == [model.name for model in models()]
    data = json.loads(run("profiles", "--all", "-o", "json").stdout)
    assert [record["model"] for record in data["models"]] == [model.name for model in models()]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("profiles", "B200"), "placements are those of the H100"),
        (("layouts", "GB300", "-o", "json"), "placements are those of the H100"),
        (("layouts", "RTX-PRO-6000", "--all"), "media engines"),
        (("profiles", "RTX-PRO-6000-Workstation-Edition"), "DisplayModeSelector"),
    ],
)
def test_what_is_not_confirmed_is_told_beside_the_result(arguments: tuple[str, ...], told: str) -> None:
    done = run(*arguments)
    assert done.returncode == 0
    assert told in done.stderr
    assert told not in done.stdout or "json" in arguments
    assert done.stdout


def test_confirmed_data_comes_without_a_word() -> None:
    assert run("profiles", "A100-80GB").stderr == ""
    assert run("layouts", "H100-80GB").stderr == ""


@pytest.mark.parametrize("command", ["profiles", "layouts"])
@pytest.mark.parametrize(
    ("word", "told"),
    [
        ("A100", ["'A100'", "A100-SXM4-40GB", "A100-SXM4-80GB"]),
        ("H100-80GB-HMB3", ["'H100-80GB-HMB3'", "H100-80GB-HBM3", "mig profiles"]),
        ("V100-32GB", ["V100-SXM2-32GB", "no MIG"]),
        ("A100-SXM-64GB", ["never published"]),
        ("", ["''", "mig profiles"]),
        ("%s\x1b[31m", ["mig profiles"]),
    ],
)
def test_a_word_that_is_no_model_is_refused(command: str, word: str, told: list[str]) -> None:
    done = run(command, word)
    assert (done.returncode, done.stdout) == (1, "")
    assert all(words in done.stderr for words in told)
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "arguments", [("layouts",), ("profiles", "A30", "-o", "yaml"), ("profiles", "A30", "x"), ("x",)]
)
def test_wrong_usage_is_64(arguments: tuple[str, ...]) -> None:
    done = run(*arguments)
    assert (done.returncode, done.stdout) == (64, "")
    assert "Usage" in done.stderr


@pytest.mark.parametrize("arguments", [("--help",), ("profiles", "--help"), ("layouts", "-h")])
def test_help(arguments: tuple[str, ...]) -> None:
    done = run(*arguments)
    assert done.returncode == 0
    assert "Usage" in done.stdout
