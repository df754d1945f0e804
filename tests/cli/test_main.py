"""The command line itself: exit codes, help without imports, and what is raised on purpose or not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import click
import pytest

import hybridgpu.cli
from hybridgpu.errors import Bug, Overruled, Unavailable


def hybridgpu_(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "hybridgpu", *arguments], capture_output=True, text=True, check=False)


def outcome(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> int:
    """The exit code of a command that raises."""

    @click.command()
    def command() -> None:
        raise error

    monkeypatch.setattr(hybridgpu.cli, "import_module", lambda _: type("module", (), {"command": command}))
    with pytest.raises(SystemExit) as stop:
        hybridgpu.cli.main(["mig"])
    assert isinstance(stop.value.code, int)
    return stop.value.code


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (FileNotFoundError(2, "No such file", "x.yaml"), 66, "x.yaml: there is no such file or folder"),
        (PermissionError(13, "Permission denied", "x.yaml"), 1, "x.yaml: Permission denied"),
        (Unavailable("slurm", ["n1"], "no answer"), 1, "slurm is unavailable: no answer"),
        (Overruled("n1", "root"), 1, "n1: overruled by root"),
        (Bug("two truths"), 70, "a bug of hybridgpu"),
        (ZeroDivisionError("division by zero"), 70, "ZeroDivisionError: division by zero"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (click.UsageError("no"), 64, "no"),
    ],
)
def test_exit_codes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: BaseException, code: int, said: str
) -> None:
    assert outcome(monkeypatch, error) == code
    captured = capsys.readouterr()
    assert said in captured.err
    assert "Traceback" not in captured.err
    assert captured.out == ""


def test_help_lists_every_command_and_loads_none() -> None:
    listed = "import sys; from hybridgpu.cli import _run; _run(['--help']); print([m for m in sys.modules if m in %r])"
    heavy = ["pydantic", "jinja2", "kubernetes", "yaml", *(f"hybridgpu.cli.{name}" for name in hybridgpu.cli.COMMANDS)]
    shown = subprocess.run([sys.executable, "-c", listed % heavy], capture_output=True, text=True, check=True).stdout
    assert shown.splitlines()[-1] == "[]"
    for name in hybridgpu.cli.COMMANDS:
        assert f"  {name} " in shown


@pytest.mark.parametrize("name", sorted(hybridgpu.cli.COMMANDS))
def test_every_command_has_help(name: str) -> None:
    result = hybridgpu_(name, "--help")
    assert result.returncode == 0
    assert result.stdout.startswith(f"Usage: hybridgpu {name}")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("rendr",), "Did you mean 'render'"),
        (("render",), "Missing option '--to'"),
        (("check", "-o", "xml"), "'xml' is not one of"),
        (("--frobnicate",), "No such option"),
    ],
)
def test_wrong_usage_is_64(arguments: tuple[str, ...], said: str) -> None:
    result = hybridgpu_(*arguments)
    assert (result.returncode, result.stdout) == (64, "")
    assert said in result.stderr


def test_version_and_completion() -> None:
    assert hybridgpu_("--version").stdout == f"hybridgpu, version {hybridgpu.__version__}\n"
    assert "_HYBRIDGPU_COMPLETE" in hybridgpu_("completion", "bash").stdout


def test_a_missing_input_is_66(tmp_path: Path) -> None:
    for arguments in (("check", "nowhere.yaml"), ("render", "nowhere.yaml", "--to", str(tmp_path / "out"))):
        result = hybridgpu_(*arguments)
        assert result.returncode == 66
        assert "nowhere.yaml" in result.stderr
    assert not (tmp_path / "out").exists()
