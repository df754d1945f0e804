"""`hybridgpu node show` and `node sweep`, as an admin runs them, over real daemons."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hybridgpu.mps import daemon, job
from hybridgpu.mps.daemon import Wanted
from hybridgpu.mps.job import Job
from hybridgpu.mps.lock import Locked
from hybridgpu.mps.settings import Settings
from hybridgpu.mps.state import read_state
from tests.mps.node import UID, device, node, unique

pytestmark = pytest.mark.slurm
"""NVIDIA's program comes from the roots."""


ELSEWHERE = """
import functools, sys
from hybridgpu.mps import settings
settings.Settings = functools.partial(settings.Settings, run=sys.argv.pop(1))
from hybridgpu.cli import main
main(sys.argv[1:])
"""
"""The command line over another folder than /run/hybridgpu, which is the machine's, and which no key names."""


@pytest.fixture
def settings() -> Iterator[Settings]:
    with node() as found:
        conf = Path(found.run).parent / "hooks.conf"
        conf.write_text(f"CONTROL={found.control}\nLOG={found.log}\nQUIT_SECONDS=2\n")
        yield found


def run(settings: Settings, *arguments: str) -> subprocess.CompletedProcess[str]:
    conf = ("--hooks-conf", str(Path(settings.run).parent / "hooks.conf"), "--pause", "0.05")
    command = [sys.executable, "-c", ELSEWHERE, settings.run, "node", arguments[0], *conf, *arguments[1:]]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def shown(settings: Settings) -> dict[str, Any]:
    done = run(settings, "show", "-o", "json")
    assert (done.returncode, done.stderr) == (0, "")
    data: dict[str, Any] = json.loads(done.stdout)
    return data


def held(settings: Settings, word: str, number: int, ready: bool = True, restart: int = 0) -> str:
    name = unique(word)
    daemon.hold(settings, Wanted(name, UID, UID, [device(3)], False), number, restart)
    if ready:
        daemon.ready(settings, name, number)
    return name


def pid(settings: Settings, name: str) -> int:
    state = read_state(daemon.folder_of(settings, name))
    assert state is not None and state.identity is not None
    return state.identity.pid


def test_a_node_without_anything(settings: Settings) -> None:
    assert shown(settings) == {"daemons": [], "jobs": [], "strays": []}
    assert run(settings, "show").stdout == "no MPS daemons, no jobs, nothing left over\n"
    done = run(settings, "sweep")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "nothing to remove\n")
    assert json.loads(run(settings, "sweep", "-o", "json").stdout) == {"actions": []}


def test_a_daemon_that_serves_two_jobs(settings: Settings) -> None:
    name = held(settings, "u", 42)
    held(settings, "u", 44, restart=2)
    job.write(settings, Job(42, 0, UID, UID, (3,), percentage=25, daemons=(name,)))
    data = shown(settings)
    (seen,) = data["daemons"]
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", held.pop("since")) for held in seen["holders"])
    assert seen == {
        "name": name,
        "state": "serving",
        "why": None,
        "pid": pid(settings, name),
        "uid": UID,
        "gid": UID,
        "boot_id": Path("/proc/sys/kernel/random/boot_id").read_text().strip(),
        "devices": [{"slurm_index": 3, "minor": 3, "uuid": device(3).uuid}],
        "holders": [
            {"job": 42, "restart": 0, "ready": True, "ended": None},
            {"job": 44, "restart": 2, "ready": True, "ended": None},
        ],
    }
    assert data["jobs"] == [{"name": "42", "job": 42, "restart": 0, "uid": UID, "gpus": [3], "ended": None}]
    text = run(settings, "show").stdout.splitlines()
    assert text[0].split() == ["DAEMON", "STATE", "PID", "UID", "DEVICES", "HELD", "BY", "JOB.RESTART@SINCE"]
    assert text[1].split()[:5] == [name, "serving", str(pid(settings, name)), str(UID), f"3={device(3).uuid}"]
    assert re.findall(r"(\d+\.\d+)@", text[1]) == ["42.0", "44.2"]
    assert text[-1].split() == ["42", "0", str(UID), "3", "-"]
    assert run(settings, "sweep").stdout == ""
    os.kill(pid(settings, name), 0)  # raises where it is gone


def test_a_daemon_that_died_under_its_job(settings: Settings) -> None:
    name = held(settings, "u", 42)
    was = pid(settings, name)
    os.kill(was, signal.SIGKILL)
    os.waitpid(was, 0)
    (seen,) = shown(settings)["daemons"]
    assert (seen["state"], seen["pid"]) == ("dead", was)
    assert f"{name}: {seen['why']}\n" in run(settings, "show").stdout


def test_what_a_killed_prolog_left_is_a_leftover_until_it_is_swept(settings: Settings) -> None:
    child = os.fork()
    if child == 0:  # a prolog that dies before its job begins
        held(settings, "j", 43, ready=False)
        os._exit(0)
    os.waitpid(child, 0)
    name = unique("j").replace(str(os.getpid()), str(child))
    stray = Path(settings.jobs, "4000045")  # no job of a live cluster that is tested meanwhile
    stray.parent.mkdir()
    stray.write_text("job=4")
    data = shown(settings)
    (seen,) = data["daemons"]
    assert (seen["name"], seen["state"]) == (name, "leftover")
    assert "prolog died" in seen["why"] and "prolog died" in seen["holders"][0]["ended"]
    assert data["strays"] == [str(stray)]
    done = run(settings, "sweep")
    assert done.returncode == 0
    assert [line.split(":")[0] for line in done.stdout.splitlines()] == [
        f"holder {name}/43 removed",
        f"daemon {name} removed",
        f"stray {stray} removed",
    ]
    assert shown(settings) == {"daemons": [], "jobs": [], "strays": []}
    assert not Path(f"/proc/{seen['pid']}").exists() or Path(f"/proc/{seen['pid']}/stat").read_text().split()[2] == "Z"


def test_a_job_that_is_said_to_be_over(settings: Settings) -> None:
    name = held(settings, "u", 4_000_042)
    assert run(settings, "sweep").stdout == ""
    done = run(settings, "sweep", "--ended", "4000042", "--ended", "4000043")
    assert (done.returncode, done.stderr) == (0, "")
    why = "it is over, as whoever called the sweep says"
    assert done.stdout.splitlines()[0] == f"holder {name}/4000042 removed: {why}"
    assert done.stdout.splitlines()[1].startswith(f"daemon {name} removed: ")
    assert shown(settings)["daemons"] == []
    for wrong in ("0", "4[1-2]", "x"):
        assert run(settings, "sweep", "--ended", wrong).returncode == 64


def test_a_daemon_that_an_epilog_is_stopping_is_no_leftover(settings: Settings) -> None:
    name = held(settings, "u", 42)
    Path(daemon.folder_of(settings, name), "holders", "42").unlink()
    with Locked(daemon.folder_of(settings, name), 1.0):
        assert [seen["state"] for seen in shown(settings)["daemons"]] == ["stopping"]
    assert [seen["state"] for seen in shown(settings)["daemons"]] == ["leftover"]


def test_what_cannot_be_removed_is_told_and_is_exit_code_1(settings: Settings) -> None:
    """A folder that others could have changed is nobody's to clean blindly."""
    folder = Path(settings.daemons, unique("u"))
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    (seen,) = shown(settings)["daemons"]
    assert (seen["state"], seen["pid"], seen["uid"]) == ("leftover", None, None)
    done = run(settings, "sweep", "-o", "json")
    (action,) = json.loads(done.stdout)["actions"]
    assert (done.returncode, action["what"], action["name"], action["failed"]) == (1, "daemon", folder.name, True)
    assert str(folder) in action["why"]
    assert f"daemon {folder.name} could not be removed: {action['why']}\n" == run(settings, "sweep").stdout


@pytest.mark.parametrize("command", ["show", "sweep"])
def test_a_log_that_gets_no_line_is_told(command: str, settings: Settings) -> None:
    with Path(settings.run).parent.joinpath("hooks.conf").open("a") as conf:
        conf.write("LOG=/nowhere/at/all/hooks.log\n")
    done = run(settings, command)
    assert done.returncode == 0
    assert "/nowhere/at/all/hooks.log (LOG) gets no line: there is no folder /nowhere/at\n" in done.stderr


@pytest.mark.parametrize("command", ["show", "sweep"])
def test_settings_that_are_wrong(command: str, settings: Settings) -> None:
    Path(settings.run).parent.joinpath("hooks.conf").write_text("RUM=/x\nQUIT_SECONDS=soon\n")
    done = run(settings, command)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("hybridgpu: ") and "'RUM' is no key" in done.stderr and "soon" in done.stderr


@pytest.mark.parametrize("command", ["show", "sweep"])
def test_an_ordinary_user_is_told_that_it_needs_root(command: str, settings: Settings) -> None:
    del settings  # for root, which may become somebody else
    loaded = f"import os, sys, hybridgpu.check.formats, hybridgpu.mps.sweep, hybridgpu.cli.node.{command} as c"
    code = f"{loaded}; os.setuid({UID}); from hybridgpu.cli import main; main(sys.argv[1:])"
    done = subprocess.run([sys.executable, "-c", code, "node", command], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (1, "")
    assert "needs root" in done.stderr


def test_the_pause_is_a_length_of_time(settings: Settings) -> None:
    begin = time.monotonic()
    done = run(settings, "sweep", "--pause", "nan")
    assert (done.returncode, "no length of time" in done.stderr) == (64, True)
    assert time.monotonic() - begin < 20
