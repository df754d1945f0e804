"""Which jobs show here, by real processes under real names; and what slurm.conf says of those that do not."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from hybridgpu.mps import process, running
from hybridgpu.mps.running import contained, look
from tests.conftest import lacking, no_hang

USER = 1001
HOOK = {"SLURM_JOB_ID": "4000011", "SLURM_SCRIPT_CONTEXT": "prolog_slurmd"}


@pytest.fixture(autouse=True)
def alone() -> Iterator[None]:
    """As root, and no other worker with jobs of these numbers: the processes are the machine's."""
    if os.geteuid() != 0:
        lacking("needs root: only its processes are asked")
    with Path("/run/lock/hybridgpu-test-running").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


class Running(AbstractContextManager["Running"]):
    """A process with this title and environment."""

    def __init__(self, title: str, environment: Mapping[str, str], uid: int = 0) -> None:
        self._process = subprocess.Popen([title, "60"], executable="/bin/sleep", env=environment, user=uid)

    def __enter__(self) -> Running:
        with no_hang():
            while not process.argv(self._process.pid):  # an exec lets Popen go before it has its words
                time.sleep(0.001)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()


@pytest.mark.parametrize(
    ("title", "environment", "uid", "job"),
    [
        ("slurmstepd: [4000001.extern]", {}, 0, 4000001),
        ("slurmstepd: [4000002.batch]", {}, 0, 4000002),
        ("slurmstepd: [4000003.0]", {}, 0, 4000003),
        ("/opt/slurm/sbin/slurmstepd: [4000004.interactive]", {}, 0, 4000004),
        ("slurmstepd: [4000005.extern]", {}, USER, None),
        ("slurmstepd infinity", {}, 0, None),
        ("slurmstepd: [x.extern]", {}, 0, None),
        ("x slurmstepd: [4000006.extern]", {}, 0, None),
        ("/bin/sh", HOOK, 0, 4000011),
        ("/bin/sh", {**HOOK, "SLURM_SCRIPT_CONTEXT": "epilog_slurmd"}, 0, 4000011),
        ("/bin/sh", {**HOOK, "SLURM_SCRIPT_CONTEXT": "task_prolog"}, 0, None),
        ("/bin/sh", {"SLURM_JOB_ID": "4000011"}, 0, None),
        ("/bin/sh", HOOK, USER, None),
        ("/bin/sh", {**HOOK, "SLURM_JOB_ID": "4x"}, 0, None),
        ("/bin/sh", {**HOOK, "SLURM_JOB_ID": "²"}, 0, None),
        ("/bin/sh", {**HOOK, "SLURM_JOB_ID": ""}, 0, None),
        ("/bin/sh", {"SPANK_X": "\nSLURM_JOB_ID=4000011\nSLURM_SCRIPT_CONTEXT=prolog_slurmd"}, 0, None),
    ],
)
def test_a_job_shows_by_roots_processes(title: str, environment: dict[str, str], uid: int, job: int | None) -> None:
    ours = set(range(4000000, 4000012))
    assert not look().jobs & ours
    with Running(title, environment, uid):
        assert look().jobs & ours == ({job} if job else set())
    assert not look().jobs & ours


def test_a_program_that_runs_as_root_for_a_user_says_nothing(tmp_path: Path) -> None:
    """A set-user-id program has the words and variables that its caller gave it."""
    program = tmp_path / "suid"
    program.write_bytes(Path("/bin/sleep").read_bytes())
    program.chmod(0o4755)
    base = next(folder for folder in tmp_path.parents if folder.name.startswith("pytest-of-"))
    for folder in (tmp_path, *tmp_path.parents[: tmp_path.parents.index(base) + 1]):
        folder.chmod(0o755)
    with subprocess.Popen(["slurmstepd: [4000012.0]", "60"], executable=program, env=HOOK, user=USER) as started:
        with no_hang():
            while not process.argv(started.pid):
                time.sleep(0.001)
        effective = Path(f"/proc/{started.pid}/status").read_text().partition("Uid:")[2].split()[1]
        seen = look().jobs
        started.kill()
    if effective != "0":
        lacking("this file system knows no set-user-id programs")
    assert not seen & {4000011, 4000012}


def test_our_own_environment_is_not_a_hook() -> None:
    tell = "from hybridgpu.mps.running import look; print(look().jobs & {4000011})"
    done = subprocess.run([sys.executable, "-c", tell], env=HOOK, capture_output=True, text=True)
    assert done.stdout == "set()\n", done.stderr


def test_processes_that_end_meanwhile_are_no_trouble(monkeypatch: pytest.MonkeyPatch) -> None:
    here = list(process.pids())
    monkeypatch.setattr(running, "pids", lambda: iter([*here, 2**22 + 5, 2**22 + 6]))
    look()


# slurm.conf


def later(seconds: float = 60) -> float:
    return time.time() + seconds


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("PrologFlags=Contain", True),
        ("PrologFlags=contain", True),
        ("prologflags = Alloc,CONTAIN", True),
        ("PROLOGFLAGS=X11", True),
        ("PrologFlags=RunInJob", True),
        ('PrologFlags="Alloc, Contain"', True),
        ("ClusterName=a PrologFlags=Contain # x", True),
        ("PrologFlags=\\\nContain", True),
        ("PrologFlags=Alloc,\\\nContain", True),
        ("ClusterName=a \\ \nPrologFlags=Contain", True),
        ("PrologFlags=Alloc\nPrologFlags=Contain", True),
        ("PrologFlags=Contain\nPrologFlags=Alloc", False),
        ("PrologFlags=Alloc", False),
        ("PrologFlags=Contained", False),
        ("PrologFlags=", False),
        ("", False),
        ("#PrologFlags=Contain", False),
        ("ClusterName=a # PrologFlags=Contain", False),
        ("# \\\nPrologFlags=Contain", True),
        ("NotPrologFlags=Contain", False),
        ("Prolog=/etc/PrologFlags=Contain", False),
        ("Include absent.conf\nPrologFlags=Contain", False),
        ("PrologFlags=Contain\r\n", True),
    ],
)
def test_flags_are_read_as_slurm_reads_them(text: str, expected: bool, tmp_path: Path) -> None:
    conf = tmp_path / "slurm.conf"
    conf.write_text(text)
    assert contained(str(conf), later()) is expected


def tree(folder: Path) -> str:
    """A slurm.conf whose flags stand two Includes below."""
    (folder / "sub").mkdir()
    (folder / "slurm.conf").write_text("ClusterName=Mine\nPrologFlags=Alloc\ninclude sub/%c.conf\n")
    (folder / "sub" / "mine.conf").write_text(f"Include {folder}/sub/flags.conf # all\n")
    (folder / "sub" / "flags.conf").write_text("PrologFlags=Contain\n")
    return str(folder / "slurm.conf")


def test_included_files_count(tmp_path: Path) -> None:
    assert contained(tree(tmp_path), later())


@pytest.mark.parametrize("name", ["slurm.conf", "sub/mine.conf", "sub/flags.conf"])
def test_no_file_may_have_changed_since(name: str, tmp_path: Path) -> None:
    conf = tree(tmp_path)
    before = time.time() + 0.02
    time.sleep(0.04)
    assert contained(conf, before)
    assert not contained(conf, before - 60)
    os.utime(tmp_path / name)
    assert not contained(conf, before)
    assert contained(conf, later())


def test_an_older_file_put_in_place_has_changed_it(tmp_path: Path) -> None:
    conf = tree(tmp_path)
    (tmp_path / "new").write_text("PrologFlags=Contain\n")
    os.utime(tmp_path / "new", (1, 1))
    before = time.time() + 0.02
    time.sleep(0.04)
    (tmp_path / "new").rename(tmp_path / "slurm.conf")
    assert not contained(conf, before)


def test_a_link_set_anew_has_changed_it(tmp_path: Path) -> None:
    tree(tmp_path)
    before = time.time() + 0.02
    time.sleep(0.04)
    (tmp_path / "conf").symlink_to("slurm.conf")
    assert not contained(str(tmp_path / "conf"), before)
    assert contained(str(tmp_path / "conf"), later())


def loop(conf: Path) -> None:
    conf.write_text("PrologFlags=Contain\nInclude slurm.conf\n")


def doubling(conf: Path) -> None:
    for number in range(30):
        name = conf if number == 0 else conf.parent / f"{number}.conf"
        name.write_text(f"PrologFlags=Contain\nInclude {number + 1}.conf\nInclude {number + 1}.conf\n")
    (conf.parent / "30.conf").touch()


def huge(conf: Path) -> None:
    conf.write_text("PrologFlags=Contain\n")
    os.truncate(conf, 1 << 40)


@pytest.mark.parametrize("make", [loop, doubling, huge, os.mkfifo, Path.mkdir, lambda conf: conf.symlink_to(conf.name)])
def test_what_cannot_be_read_keeps_nothing(make: Callable[[Path], object], tmp_path: Path) -> None:
    make(tmp_path / "slurm.conf")
    with no_hang():
        assert not contained(str(tmp_path / "slurm.conf"), later())


@pytest.mark.parametrize("conf", ["", "slurm.conf", "/no/such/slurm.conf", "/etc/\0"])
def test_without_a_slurm_conf_nothing_is_contained(conf: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "slurm.conf").write_text("PrologFlags=Contain\n")
    monkeypatch.chdir(tmp_path)
    assert not contained(conf, later())
