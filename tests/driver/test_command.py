"""gpusim from a shell: what it does to a machine, and how it says that it could not."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable

import pytest

from testbed.driver import command, library
from testbed.driver.machine import Machine


@pytest.fixture
def gpusim(make: Callable[..., Machine]) -> Callable[..., int]:
    machine = make("A100-SXM4-80GB", "T4")
    return lambda *arguments: command.main(["--root", str(machine.root), *map(str, arguments)])


def test_a_machine_is_mistreated(gpusim: Callable[..., int], capfd: pytest.CaptureFixture[str]) -> None:
    def gpu(card: int) -> dict[str, object]:
        assert gpusim("show") == 0
        shown: dict[str, object] = json.loads(capfd.readouterr().out)["gpus"][card]
        return shown

    assert gpusim("run", 0, 77, "--kind", "mps", "--memory", 5) == 0
    assert gpu(0)["processes"] == [{"pid": 77, "kind": "mps", "gi": -1, "ci": -1, "memory": 5 * 2**20}]
    assert gpusim("reset", 0) == command.FAILED
    assert "In use by another client" in capfd.readouterr().err
    assert gpusim("break", 1, "lost") == 0
    assert gpu(1)["fault"] == "lost"
    assert gpusim("reset", 1) == command.FAILED
    assert "GPU is lost" in capfd.readouterr().err
    assert gpusim("mend", 1) == gpusim("end", 77) == gpusim("reset", 0) == gpusim("event", 0, 48) == 0
    assert gpusim("break", 1, "unknown") == gpusim("reboot") == 0
    assert gpu(1)["fault"] == "none"
    for missing in (("end", 77), ("mend", 2), ("reset", 2), ("event", 2, 48), ("run", 2, 1)):
        assert gpusim(*missing) == command.FAILED


@pytest.mark.parametrize(
    "arguments", [(), ("brake", 1), ("break", 0, "lots"), ("run", 0), ("run", 0, 1, "--kind", "gaming"), ("reset", "x")]
)
def test_wrong_usage(gpusim: Callable[..., int], arguments: tuple[object, ...]) -> None:
    with pytest.raises(SystemExit) as ended:
        gpusim(*arguments)
    assert ended.value.code == command.USAGE


def test_the_file_runs_and_finds_no_machine(make: Callable[..., Machine]) -> None:
    machine = make("T4")
    program = [sys.executable, str(library.HERE / "gpusim"), "--root"]
    shown = subprocess.run([*program, str(machine.root), "show"], capture_output=True, text=True)
    assert (shown.returncode, json.loads(shown.stdout)["boots"]) == (0, 1)
    absent = subprocess.run([*program, str(machine.root / "none"), "show"], capture_output=True, text=True)
    assert absent.returncode == command.MISSING
    assert "there is no machine" in absent.stderr


def test_a_plan_that_cannot_be_read_is_none(capfd: pytest.CaptureFixture[str]) -> None:
    for plan in ("nvmlInit", "nvmlInit@0=UNKNOWN", "nvmlInit@1=OOPS", "change@1=IN_USE", "@1", "a@1=UNKNOWN,b"):
        assert library.load().gpusim_faults(plan.encode()) == -1
        assert "a fault plan is" in capfd.readouterr().err
    assert library.load().gpusim_faults(b"nvmlInit@2=UNKNOWN,*@*=3") == -1
    assert library.load().gpusim_faults(None) == 0
