"""A daemon's cgroups, in the real hierarchies of this machine: v1's, v2's, both; and where none lets us."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hybridgpu.mps import cgroup
from hybridgpu.mps.trouble import Trouble
from tests.conftest import lacking, no_hang, soak
from tests.mps.node import unique

TABLES = ["v1", "v2", "both"]
OURS = unique("ours")
"""In place of `hybridgpu`, which daemons of other tests use meanwhile."""


@pytest.fixture(params=TABLES)
def bases(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The hierarchies of a machine of this kind: those of this one, as far as it has them."""
    wanted = {"v1": (" - cgroup ",), "v2": (" - cgroup2 ",), "both": (" - cgroup ", " - cgroup2 ")}[request.param]
    lines = Path("/proc/self/mountinfo").read_text().splitlines(keepends=True)
    (tmp_path / "mountinfo").write_text("".join(line for line in lines if any(kind in line for kind in wanted)))
    monkeypatch.setattr(cgroup, "_MOUNTS", str(tmp_path / "mountinfo"))
    monkeypatch.setattr(cgroup, "_OURS", OURS)
    found = cgroup.hierarchies()
    if os.geteuid() != 0:
        lacking("needs root, to make cgroups")
    if not found:  # a machine is of one kind, and no program makes it another
        pytest.skip(f"this machine has no cgroup {request.param}")
    return found


@pytest.fixture
def name() -> Iterator[str]:
    made = unique("test")
    yield made
    with no_hang():
        while pids := cgroup.members(made):
            for pid in pids:
                os.kill(pid, signal.SIGKILL)
            time.sleep(0.01)
        cgroup.remove(made)


@contextmanager
def sleeper() -> Iterator[int]:
    with subprocess.Popen(["sleep", "60"]) as running:
        try:
            yield running.pid
        finally:
            running.kill()


def places(pid: int) -> set[str]:
    """The cgroups of a process, one for each hierarchy."""
    return {line.partition(":")[2].partition(":")[2] for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines()}


@contextmanager
def within(bases: list[str], pid: int) -> Iterator[None]:
    """The process in another's cgroups meanwhile, as a hook is in those of slurmd or a job."""
    folders = [Path(base, unique("elsewhere")) for base in bases]
    try:
        for folder in folders:
            folder.mkdir()
            for file in ("cpuset.cpus", "cpuset.mems"):
                if (folder.parent / file).exists():
                    (folder / file).write_text((folder.parent / file).read_text())
            (folder / "cgroup.procs").write_text(str(pid))
        yield
    finally:
        for folder in folders:
            for left in (folder / "cgroup.procs").read_text().split():
                (folder.parent / "cgroup.procs").write_text(left)
            folder.rmdir()


def test_a_process_enters_in_every_hierarchy_and_all_is_removed(bases: list[str], name: str) -> None:
    with sleeper() as pid, within(bases, pid):
        assert cgroup.enter(name, pid) == [f"{base}/{OURS}/{name}" for base in bases]
        assert cgroup.members(name) == {pid}
        assert f"/{OURS}/{name}" in {place[-len(f"/{OURS}/{name}") :] for place in places(pid)}
        assert name in cgroup.names()
        assert cgroup.empty(name) == []
        assert cgroup.enter(name, pid) == [f"{base}/{OURS}/{name}" for base in bases]
    assert cgroup.empty(name) == [f"{base}/{OURS}/{name}" for base in bases]
    cgroup.remove(name)
    assert name not in cgroup.names()
    assert not [base for base in bases if Path(base, OURS).exists()]
    assert cgroup.members(name) == set()
    assert cgroup.empty(name) == []
    cgroup.remove(name)


def test_children_are_members_and_a_busy_one_is_told(
    bases: list[str], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cgroup, "_BUSY_SECONDS", 0.05)
    with subprocess.Popen(["sh", "-c", "read x; sleep 60 & sleep 60 & wait"], stdin=subprocess.PIPE) as shell:
        assert shell.stdin is not None
        assert len(cgroup.enter(name, shell.pid)) == len(bases)
        shell.stdin.write(b"\n")
        shell.stdin.flush()
        with no_hang():
            while len(cgroup.members(name)) < 3:
                time.sleep(0.005)
        pids = sorted(cgroup.members(name))
        inside = ", ".join(str(pid) for pid in pids)
        with pytest.raises(Trouble, match=f"/{OURS}/{name} cannot be removed: processes in it: {inside}"):
            cgroup.remove(name)
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
    monkeypatch.setattr(cgroup, "_BUSY_SECONDS", 5.0)
    cgroup.remove(name)


@pytest.mark.parametrize("bases", ["v2", "both"], indirect=True)
def test_what_cannot_be_joined_is_left_for_the_root(bases: list[str], name: str) -> None:
    """No cgroup can be made where `hybridgpu` may have none below it; a process must not stay where it was."""
    (last,) = [Path(base) for base in bases if Path(base, "cgroup.controllers").exists()]
    ours = last / OURS
    ours.mkdir(exist_ok=True)
    with sleeper() as pid, within(bases, pid):
        before = (ours / "cgroup.max.depth").read_text()
        (ours / "cgroup.max.depth").write_text("0")
        try:
            joined = cgroup.enter(name, pid)
        finally:
            (ours / "cgroup.max.depth").write_text(before)
        assert joined == [f"{base}/{OURS}/{name}" for base in bases if base != str(last)]
        assert not any(unique("elsewhere") in place for place in places(pid))


def test_a_process_that_is_gone_enters_nothing(bases: list[str], name: str) -> None:
    with sleeper() as pid:
        pass
    assert cgroup.enter(name, pid) == []
    assert cgroup.empty(name) == [f"{base}/{OURS}/{name}" for base in bases]


def test_it_is_made_again_below_a_folder_that_is_taken_away(
    bases: list[str], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make, taken = os.mkdir, []

    def race(path: str, mode: int) -> None:
        if path.endswith(name) and path not in taken:
            taken.append(path)
            Path(path).parent.rmdir()
        make(path, mode)

    monkeypatch.setattr(os, "mkdir", race)
    with sleeper() as pid:
        assert cgroup.enter(name, pid) == taken
    assert len(taken) == len(bases)


def test_it_is_joined_also_where_a_sweep_takes_it_away_as_empty(
    bases: list[str], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, taken = os.open, []

    def race(path: str, flags: int) -> int:
        folder = path.removesuffix("/cgroup.procs")
        if folder.endswith(name) and folder not in taken:
            taken.append(folder)
            Path(folder).rmdir()
        return opened(path, flags)

    with sleeper() as pid:
        monkeypatch.setattr(os, "open", race)
        joined = cgroup.enter(name, pid)
        monkeypatch.undo()
    assert joined == taken == [f"{base}/{OURS}/{name}" for base in bases]


def test_daemons_come_and_go_beside_each_other(bases: list[str]) -> None:
    """The last one takes `hybridgpu` away while the next one is made in it."""
    assert bases
    mine = []
    for number in range(2):
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                one = unique(f"beside{number}")
                inside = [cgroup.enter(one, os.getpid()) and _leave(bases, one) for _ in range(soak(30, 1000))]
                status = 0 if all(inside) else 2
            finally:
                os._exit(status)
        mine.append(pid)
    assert [os.waitpid(pid, 0)[1] for pid in mine] == [0, 0]


def _leave(bases: list[str], name: str) -> bool:
    inside = cgroup.members(name) == {os.getpid()}
    for base in bases:
        Path(base, "cgroup.procs").write_text(str(os.getpid()))
    cgroup.remove(name)
    return inside


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "/etc"])
@pytest.mark.parametrize("action", [cgroup.members, cgroup.empty, cgroup.remove, lambda name: cgroup.enter(name, 1)])
def test_a_name_is_no_path(name: str, action: Callable[[str], object]) -> None:
    if not cgroup.hierarchies():
        lacking("no cgroup file system to write to")
    with pytest.raises(Trouble, match="is no name of a daemon"):
        action(name)


def in_a_mount_namespace(before: str, code: str) -> str:
    """What Python prints when it runs this code after these commands, in a mount namespace of its own."""
    if os.geteuid() != 0:
        lacking("needs root, to mount")
    line = f'set -e; {before}; exec "$0" -c "$1"'
    program = f"import os; from hybridgpu.mps import cgroup; {code}"
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", line, sys.executable, program], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


EACH = "for m in $(findmnt -rno TARGET -t cgroup,cgroup2)"


@pytest.mark.parametrize(
    "before",
    [
        f"{EACH}; do mount -o remount,bind,ro $m; done",
        "umount -R /sys/fs/cgroup",
        "mount -t tmpfs none /sys/fs/cgroup",
    ],
    ids=["read-only", "none", "covered"],
)
def test_where_there_is_none_to_write_to_a_daemon_runs_without(before: str) -> None:
    code = "print(cgroup.hierarchies(), cgroup.enter('x', os.getpid()), cgroup.members('x'), cgroup.names())"
    assert in_a_mount_namespace(before, code + "; cgroup.remove('x')") == "[] [] set() set()"


def test_paths_are_taken_as_they_are(tmp_path: Path) -> None:
    odd = tmp_path / "a b\tc\\d\ne - cgroup2 x ro"
    odd.mkdir()
    before = f"umount -R /sys/fs/cgroup; mount -t cgroup2 'no ne' '{odd}'; mount -t cgroup2 none '{tmp_path}/'"
    assert in_a_mount_namespace(before.rpartition(";")[0], "print(cgroup.hierarchies())") == repr([str(odd)])
    assert in_a_mount_namespace(before, "print(cgroup.hierarchies())") == repr([str(tmp_path)])


def test_without_proc_it_is_trouble(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(cgroup, "_MOUNTS", str(tmp_path / "no"))
    with pytest.raises(Trouble, match="No such file"):
        cgroup.hierarchies()
