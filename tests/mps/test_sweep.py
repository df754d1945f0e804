"""What a sweep takes for nobody's, and what it must leave: a job that may run keeps its daemon."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hybridgpu.mps import cgroup, daemon, job
from hybridgpu.mps.daemon import Wanted
from hybridgpu.mps.job import Job
from hybridgpu.mps.lock import Locked
from hybridgpu.mps.process import alive
from hybridgpu.mps.running import look
from hybridgpu.mps.settings import Settings
from hybridgpu.mps.state import read_state, write_state
from hybridgpu.mps.sweep import survey, sweep
from hybridgpu.mps.trouble import Trouble
from tests.mps.node import UID, device, node, unique

pytestmark = pytest.mark.slurm
"""NVIDIA's program comes from the roots."""

PAUSE = 0.05
LATER = 4_000_000


@pytest.fixture
def settings() -> Iterator[Settings]:
    with node() as found:
        yield found


def slurm_conf(settings: Settings, flags: str) -> str:
    """A slurm.conf that was there before; its time of change can't be set, so some time must pass."""
    path = Path(settings.run).parent / "slurm.conf"
    path.write_text(f"ClusterName=c\nPrologFlags={flags}\n")
    time.sleep(0.02)
    return str(path)


def held(settings: Settings, number: int, conf: str, ready: bool = True) -> str:
    name = unique("u")
    daemon.hold(settings, Wanted(name, UID, UID, [device()], False), number, 0, conf)
    if ready:
        daemon.ready(settings, name, number)
    return name


def lives(settings: Settings, name: str) -> bool:
    state = read_state(daemon.folder_of(settings, name))
    return state is not None and state.identity is not None and alive(state.identity)


def told(settings: Settings) -> list[tuple[str, str]]:
    """What a sweep does to what is this test's; cgroups are the machine's, and others test beside us."""
    done = sweep(settings, PAUSE)
    assert not [action for action in done if action.failed]
    mine = [action for action in done if "/cgroup/" not in action.name or unique("") in action.name]
    return [(action.what, action.name) for action in mine]


@contextmanager
def process(title: str, environment: dict[str, str] | None = None, uid: int = 0) -> Iterator[int]:
    """A process with another name for itself, as slurmstepd has, or with the environment of a prolog."""
    started = subprocess.Popen([title, "60"], executable="/bin/sleep", env=environment or {}, user=uid, cwd="/")
    try:
        yield started.pid
    finally:
        started.kill()
        started.wait()


@pytest.mark.parametrize("flags", ["Contain", "Alloc,contain", "X11", "RunInJob"])
def test_a_job_without_a_step_daemon_has_ended_where_contain_keeps_one(settings: Settings, flags: str) -> None:
    name = held(settings, LATER, slurm_conf(settings, flags))
    assert told(settings) == [("holder", f"{name}/{LATER}"), ("daemon", name)]
    assert not os.path.lexists(daemon.folder_of(settings, name))
    assert told(settings) == []


@pytest.mark.parametrize("flags", ["Alloc", "Alloc,Serial", "DeferBatch", "NoHold"])
def test_without_contain_it_may_run(settings: Settings, flags: str) -> None:
    name = held(settings, LATER, slurm_conf(settings, flags))
    assert told(settings) == []
    assert lives(settings, name)


def test_where_slurm_conf_was_changed_since_nothing_is_known(settings: Settings) -> None:
    conf = slurm_conf(settings, "Alloc")
    name = held(settings, LATER, conf)
    time.sleep(0.02)
    Path(conf).write_text("PrologFlags=Contain\n")
    assert told(settings) == []
    assert lives(settings, name)


def test_where_slurm_conf_is_gone_nothing_is_known(settings: Settings) -> None:
    name = held(settings, LATER, "/nowhere/slurm.conf")
    assert told(settings) == []
    assert lives(settings, name)


def test_a_job_that_an_admin_says_is_over(settings: Settings) -> None:
    """Where slurm.conf has changed since nothing else ends a lost job's hold before a reboot."""
    name, other = held(settings, LATER, "/nowhere/slurm.conf"), unique("w")
    daemon.hold(settings, Wanted(other, UID, UID, [device()], False), LATER + 1, 0, "/nowhere/slurm.conf")
    daemon.ready(settings, other, LATER + 1)
    job.write(settings, Job(LATER, 0, UID, UID, (0,), conf="/nowhere/slurm.conf", daemons=(name,)))
    job.write(settings, Job(LATER + 2, 0, UID, UID, (0,), conf="/nowhere/slurm.conf"))
    over = frozenset({LATER, LATER + 2})
    with (
        process(f"slurmstepd: [{LATER}.batch]"),
        pytest.raises(Trouble, match=f"job {LATER}: not over, something of it runs"),
    ):
        sweep(settings, PAUSE, over)
    starting = subprocess.Popen(["/usr/sbin/slurmstepd"], executable="/bin/cat", stdin=subprocess.PIPE, cwd="/")
    with starting, pytest.raises(Trouble, match="try again"):
        sweep(settings, PAUSE, over)
    assert lives(settings, name)
    done = sweep(settings, PAUSE, over)
    mine = {(action.what, action.name, action.failed) for action in done if "/cgroup/" not in action.name}
    assert mine == {
        ("holder", f"{name}/{LATER}", False),
        ("daemon", name, False),
        ("job", str(LATER), False),
        ("job", str(LATER + 2), False),
    }
    assert not os.path.lexists(daemon.folder_of(settings, name))
    assert lives(settings, other)


def test_a_daemon_that_a_hook_is_at_is_seen_so(settings: Settings) -> None:
    name = held(settings, LATER, "/nowhere/slurm.conf")
    folder = daemon.folder_of(settings, name)
    Path(folder, "holders", str(LATER)).unlink()
    with Locked(folder, 1.0):
        (seen,) = survey(settings, PAUSE).daemons
        assert (seen.busy, seen.leftover) == (True, "no job holds it")
    (seen,) = survey(settings, PAUSE).daemons
    assert (seen.busy, seen.leftover) == (False, "no job holds it")


@pytest.mark.parametrize("step", ["batch", "extern", "0", "4294967290"])
def test_a_step_daemon_keeps_it(settings: Settings, step: str) -> None:
    name = held(settings, LATER, slurm_conf(settings, "Contain"))
    with process(f"slurmstepd: [{LATER}.{step}]"):
        assert told(settings) == []
        assert lives(settings, name)
    assert ("daemon", name) in told(settings)


@pytest.mark.parametrize("context", ["prolog_slurmd", "epilog_slurmd"])
def test_a_script_at_work_keeps_it(settings: Settings, context: str) -> None:
    """Between our prolog and the extern step the site's own prologs may take their time."""
    name = held(settings, LATER, slurm_conf(settings, "Contain"))
    with process("/bin/sh", {"SLURM_JOB_ID": str(LATER), "SLURM_SCRIPT_CONTEXT": context}):
        assert told(settings) == []
        assert lives(settings, name)


def test_a_users_process_keeps_nothing(settings: Settings) -> None:
    name = held(settings, LATER, slurm_conf(settings, "Contain"))
    with process(f"slurmstepd: [{LATER}.extern]", {"SLURM_JOB_ID": str(LATER)}, uid=UID):
        assert ("daemon", name) in told(settings)


def test_a_hold_of_a_prolog_at_work_stays_and_of_a_dead_one_goes(settings: Settings) -> None:
    """Whatever PrologFlags says: a job whose prolog died never started."""
    conf = slurm_conf(settings, "Alloc")
    told_ready, tell_ready = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            name = daemon_name
            daemon.hold(settings, Wanted(name, UID, UID, [device()], False), LATER, 0, conf)
            os.write(tell_ready, b"x")
            time.sleep(60)
        finally:
            os._exit(1)
    assert os.read(told_ready, 1) == b"x"
    assert told(settings) == []
    assert lives(settings, daemon_name)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert told(settings) == [("holder", f"{daemon_name}/{LATER}"), ("daemon", daemon_name)]


daemon_name = unique("u")


def test_only_the_ended_ones_hold_is_taken_of_a_shared_daemon(settings: Settings) -> None:
    conf = slurm_conf(settings, "Contain")
    name = held(settings, LATER, conf)
    held(settings, LATER + 1, conf)
    with process(f"slurmstepd: [{LATER + 1}.extern]"):
        assert told(settings) == [("holder", f"{name}/{LATER}")]
        assert lives(settings, name)
        assert daemon.held_by(settings, LATER + 1) == [name]
    assert ("daemon", name) in told(settings)


def test_a_job_that_begins_during_a_sweep_keeps_its_hold(settings: Settings) -> None:
    """Of the two looks neither could have shown it: another, ended job made the sweep wait."""
    conf = slurm_conf(settings, "Contain")
    ended, shared = unique("a"), unique("b")
    for name, number in ((ended, LATER), (shared, LATER + 1)):
        daemon.hold(settings, Wanted(name, UID, UID, [device()], False), number, 0, conf)
        daemon.ready(settings, name, number)

    def begin() -> None:
        daemon.hold(settings, Wanted(shared, UID, UID, [device()], False), LATER + 2, 0, conf)
        daemon.ready(settings, shared, LATER + 2)
        job.write(settings, Job(LATER + 2, 0, UID, UID, (0,), conf=conf))

    with process(f"slurmstepd: [{LATER + 1}.extern]"):
        prolog = threading.Timer(0.3, begin)
        prolog.start()
        done = sweep(settings, 1.0)
        prolog.join()
    mine = [(action.what, action.name) for action in done if "/cgroup/" not in action.name]
    assert mine == [("holder", f"{ended}/{LATER}"), ("daemon", ended)]
    assert daemon.held_by(settings, LATER + 2) == [shared]
    daemon.release(settings, shared, LATER + 2, 0)
    daemon.release(settings, shared, LATER + 1, 0)


WITHOUT_TITLE = (["/usr/sbin/slurmstepd"], "/bin/cat")
"""What slurmd starts: it reads whose it is, and names itself then."""

WITH_A_DEAD_SCRIPT = (["slurmd", "-Sc", "import os, sys; os.fork() or os._exit(0); sys.stdin.read()"], sys.executable)
"""slurmd collects a prolog once all who have its output are gone."""


@pytest.mark.parametrize(("words", "program"), [WITHOUT_TITLE, WITH_A_DEAD_SCRIPT])
def test_while_slurmd_is_between_a_prolog_and_its_step_daemon_nothing_is_known(
    settings: Settings, words: list[str], program: str
) -> None:
    name = held(settings, LATER, slurm_conf(settings, "Contain"))
    environment = {"PYTHONHOME": sys.base_prefix}
    with subprocess.Popen(words, executable=program, stdin=subprocess.PIPE, env=environment, cwd="/"):
        end = time.monotonic() + 10
        while not look().starting and time.monotonic() < end:
            time.sleep(0.01)
        assert told(settings) == []
    assert told(settings) == [("holder", f"{name}/{LATER}"), ("daemon", name)]


def test_a_record_of_a_run_that_begins_during_a_sweep_stays(settings: Settings) -> None:
    """Without it the tasks of a share would have the whole card."""
    conf = slurm_conf(settings, "Contain")
    for number in (LATER, LATER + 1):
        job.write(settings, Job(number, 0, UID, UID, (0,), conf=conf))
    cut_off = Path(settings.jobs, str(LATER + 2))

    def begin() -> None:
        job.write(settings, Job(LATER, 1, UID, UID, (0,), conf=conf, percentage=25))
        cut_off.write_text("")  # as a prolog has it open

    prolog = threading.Timer(0.3, begin)
    prolog.start()
    done = sweep(settings, 1.0)
    prolog.join()
    assert [(action.what, action.name) for action in done if "/cgroup/" not in action.name] == [("job", str(LATER + 1))]
    assert [(record.job, record.restart) for record in job.every(settings)] == [(LATER, 1)]
    assert cut_off.exists()


def test_the_journal_says_whose_it_was_and_how_long_it_took(settings: Settings) -> None:
    name = held(settings, LATER, slurm_conf(settings, "Contain"))
    job.write(settings, Job(LATER, 0, UID, UID, (0,), conf="/nowhere", daemons=(name,)))
    told(settings)
    lines = [line.partition("]: ")[2] for line in Path(settings.log).read_text().splitlines()]
    whose = f"sweep job={LATER} uid={UID} gpus=0"
    why = "no step daemon of it runs, and PrologFlags=Contain keeps one"
    assert [re.sub(r"seconds=\d+\.\d{3} ", "", line) for line in lines if "/cgroup/" not in line] == [
        f'{whose} holder={name}/{LATER} outcome=removed why="{why}"',
        f'{whose} daemon={name} outcome=removed why="job {LATER}: {why}"',
        f'{whose} outcome=removed why="it holds no daemon any more"',
    ]


def test_after_a_reboot_all_goes(settings: Settings) -> None:
    name = held(settings, LATER, slurm_conf(settings, "Alloc"))
    folder = daemon.folder_of(settings, name)
    state = read_state(folder)
    assert state is not None and state.identity is not None
    os.kill(state.identity.pid, signal.SIGKILL)
    os.waitpid(state.identity.pid, 0)
    state.boot = "another"
    write_state(folder, state)
    assert told(settings) == [("holder", f"{name}/{LATER}"), ("daemon", name)]


def test_records_go_with_their_jobs(settings: Settings) -> None:
    contained, alloc = slurm_conf(settings, "Contain"), "/nowhere/slurm.conf"
    for number, conf, daemons in ((LATER, contained, ()), (LATER + 1, alloc, ()), (LATER + 2, alloc, ("u1-0",))):
        job.write(settings, Job(number, 0, UID, UID, (0,), conf=conf, daemons=daemons))
    with process(f"slurmstepd: [{LATER}.extern]"):
        assert told(settings) == [("job", str(LATER + 2))]
    assert told(settings) == [("job", str(LATER))]
    assert [record.job for record in job.every(settings)] == [LATER + 1]


def test_what_killed_writers_left_goes_and_what_others_put_there_stays(settings: Settings) -> None:
    job.write(settings, Job(LATER, 0, UID, UID, (0,), conf="/nowhere"))
    jobs = Path(settings.jobs)
    me = Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]
    for name in (".12.99999999.5", "README", f".{LATER}.{os.getpid()}.{me}", f"{LATER + 1}"):
        (jobs / name).write_text("job=")
    assert sorted(told(settings)) == [("stray", f"{jobs}/.12.99999999.5"), ("stray", f"{jobs}/{LATER + 1}")]
    assert sorted(entry.name for entry in jobs.iterdir()) == sorted(
        [f".{LATER}.{os.getpid()}.{me}", str(LATER), "README"]
    )


def test_a_folder_that_was_never_used_goes(settings: Settings) -> None:
    """A prolog that died right after it made it."""
    name = unique("u")
    Path(daemon.folder_of(settings, name)).mkdir(parents=True)
    assert told(settings) == [("daemon", name)]


def test_an_empty_cgroup_without_a_daemon_goes_and_one_with_a_process_stays(settings: Settings) -> None:
    name = unique("u")
    with process("somebody") as pid:
        folders = cgroup.enter(name, pid)
        assert folders
        assert not [action for action in told(settings) if name in action[1]]
        assert pid in cgroup.members(name)
    assert {folder for what, folder in told(settings) if what == "stray"} >= set(folders)
    assert name not in cgroup.names()


def test_a_survey_changes_nothing_and_says_the_same(settings: Settings) -> None:
    name = held(settings, LATER, slurm_conf(settings, "Contain"))
    found = survey(settings, PAUSE)
    (seen,) = [seen for seen in found.daemons if seen.name == name]
    assert seen.alive
    assert seen.leftover == f"job {LATER}: no step daemon of it runs, and PrologFlags=Contain keeps one"
    assert [(holder.job, holder.ready) for holder in seen.holders] == [(LATER, True)]
    assert lives(settings, name)
    assert ("daemon", name) in told(settings)


def test_with_broken_state_the_cgroup_still_knows_its_processes(settings: Settings) -> None:
    name = held(settings, LATER, slurm_conf(settings, "Contain"))
    folder = Path(daemon.folder_of(settings, name))
    (folder / "state.json").write_text("{")
    (pid,) = cgroup.members(name)
    assert ("daemon", name) in told(settings)
    assert not folder.exists()
    os.waitpid(pid, 0)
