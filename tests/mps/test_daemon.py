"""A daemon's life over NVIDIA's own control program: held, shared, started anew, stopped, and never mistaken."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hybridgpu.mps import cgroup, daemon
from hybridgpu.mps.daemon import Wanted
from hybridgpu.mps.lock import Locked
from hybridgpu.mps.process import Identity, alive, identify
from hybridgpu.mps.settings import Settings
from hybridgpu.mps.state import State, holders, read_state, write_state
from hybridgpu.mps.trouble import ByUser, Trouble
from tests.mps.node import UID, device, node, running, unique

CHAIN = b"""\
#include <signal.h>
#include <unistd.h>
int main(void)
{
    int number;
    sigset_t begin;
    sigemptyset(&begin);
    sigaddset(&begin, SIGUSR1);
    sigprocmask(SIG_BLOCK, &begin, 0);
    sigwait(&begin, &number);
    signal(SIGTERM, SIG_IGN);
    signal(SIGCHLD, SIG_IGN);
    for (int chains = 0; chains < 4 && fork(); chains++)
        ;
    for (;;)
        if (fork() > 0)
            _exit(0);
}
"""
"""Ends and goes on in a child, for ever: whoever looks for its pid comes too late."""

pytestmark = pytest.mark.slurm
"""Its program comes from the roots."""


@pytest.fixture
def settings() -> Iterator[Settings]:
    with node() as found:
        yield found


def wanted(name: str, *numbers: int, uid: int = UID, exclusive: bool = False) -> Wanted:
    return Wanted(name, uid, uid, [device(number) for number in numbers or (0,)], exclusive)


def state_of(settings: Settings, name: str) -> State:
    state = read_state(daemon.folder_of(settings, name))
    assert state is not None
    return state


def identity_of(settings: Settings, name: str) -> Identity:
    identity = state_of(settings, name).identity
    assert identity is not None
    return identity


def nothing_left(settings: Settings, name: str) -> bool:
    folder = daemon.folder_of(settings, name)
    return not os.path.lexists(folder) and not running(f"{folder}/pipe") and name not in cgroup.names()


def test_it_runs_as_the_user_with_nothing_of_the_hook(settings: Settings) -> None:
    name = unique("u")
    os.environ["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] = "25"
    try:
        assert daemon.hold(settings, wanted(name, 0, 3), 7, 0) == "started"
    finally:
        del os.environ["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"]
    pid = identity_of(settings, name).pid
    status = Path(f"/proc/{pid}/status").read_text()
    assert [line.split()[1:] for line in status.splitlines() if line.startswith(("Uid", "Gid", "Groups"))] == [
        [str(UID)] * 4,
        [str(UID)] * 4,
        [str(UID)],
    ]
    folder = daemon.folder_of(settings, name)
    environment = Path(f"/proc/{pid}/environ").read_text().split("\0")
    assert sorted(filter(None, environment)) == [
        f"CUDA_MPS_LOG_DIRECTORY={folder}/log",
        f"CUDA_MPS_PIPE_DIRECTORY={folder}/pipe",
        f"CUDA_VISIBLE_DEVICES={device(0).uuid},{device(3).uuid}",
        "PATH=/usr/sbin:/usr/bin:/sbin:/bin",
    ]
    assert os.getsid(pid) == pid
    assert pid in cgroup.members(name)
    for leaf in ("pipe", "log"):
        seen = Path(folder, leaf).stat()
        assert (seen.st_uid, seen.st_mode & 0o777) == (UID, 0o700)
    assert daemon.release(settings, name, 7, 0) == "stopped"
    assert nothing_left(settings, name)


@pytest.mark.parametrize("first", [7, 8])
def test_two_jobs_share_it_and_the_last_stops_it(settings: Settings, first: int) -> None:
    name = unique("u")
    assert daemon.hold(settings, wanted(name), 7, 0) == "started"
    before = identity_of(settings, name)
    assert daemon.hold(settings, wanted(name), 8, 0) == "joined"
    assert daemon.held_by(settings, 7) == daemon.held_by(settings, 8) == [name]
    assert daemon.release(settings, name, first, 0) == "left"
    assert identity_of(settings, name) == before
    assert alive(before)
    assert daemon.release(settings, name, 15 - first, 0) == "stopped"
    assert nothing_left(settings, name)


def test_a_user_of_two_groups_shares_it_too(settings: Settings) -> None:
    """A job's group is what `newgrp` says, so it must not decide: the second job would drain the node."""
    name = unique("u")
    assert daemon.hold(settings, wanted(name), 7, 0) == "started"
    assert daemon.hold(settings, Wanted(name, UID, UID + 1, [device()], exclusive=False), 8, 0) == "joined"
    daemon.release(settings, name, 7, 0)
    assert daemon.release(settings, name, 8, 0) == "stopped"
    assert nothing_left(settings, name)


def test_another_hook_that_takes_too_long_costs_the_job_and_not_the_node(settings: Settings) -> None:
    """It is at a daemon of the same user's, who can keep it waiting; an epilog lets go of it all the same."""
    settings.lock_seconds = 0.1
    name = unique("u")
    daemon.hold(settings, wanted(name), 7, 0)
    with Locked(daemon.folder_of(settings, name), 0):
        with pytest.raises(ByUser, match=r"another hook has it locked for 0\.1 s"):
            daemon.hold(settings, wanted(name), 8, 0)
        assert daemon.release(settings, name, 8, 0) == "left"
        assert daemon.held_by(settings, 7) == [name]
        assert daemon.release(settings, name, 7, 0) == "left"
        assert daemon.held_by(settings, 7) == []
    assert daemon.release(settings, name, 7, 0) == "stopped"
    assert nothing_left(settings, name)


def test_each_step_may_be_done_twice(settings: Settings) -> None:
    name = unique("u")
    assert daemon.hold(settings, wanted(name), 7, 0) == "started"
    assert daemon.hold(settings, wanted(name), 7, 0) == "joined"
    daemon.ready(settings, name, 7)
    daemon.ready(settings, name, 7)
    assert [(h.job, h.ready) for h in holders(daemon.folder_of(settings, name))] == [(7, True)]
    assert daemon.release(settings, name, 7, 0) == "stopped"
    assert daemon.release(settings, name, 7, 0) == "nothing"


def test_an_earlier_restart_does_not_let_a_later_ones_daemon_go(settings: Settings) -> None:
    name = unique("u")
    daemon.hold(settings, wanted(name), 7, 1)
    assert daemon.release(settings, name, 7, 0) == "left"
    assert alive(identity_of(settings, name))
    assert daemon.release(settings, name, 7, 1) == "stopped"


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_one_that_died_is_started_anew_for_the_next_job(settings: Settings, number: int) -> None:
    name = unique("u")
    daemon.hold(settings, wanted(name), 7, 0)
    before = identity_of(settings, name)
    os.kill(before.pid, number)
    os.waitpid(before.pid, 0)
    assert not getattr(daemon.view(settings, name), "alive", True)
    assert daemon.hold(settings, wanted(name), 8, 0) == "restarted"
    assert identity_of(settings, name) != before
    assert [h.job for h in holders(daemon.folder_of(settings, name))] == [7, 8]
    daemon.release(settings, name, 7, 0)
    assert daemon.release(settings, name, 8, 0) == "stopped"


def test_one_that_does_not_answer_is_started_anew(settings: Settings) -> None:
    settings.start_seconds = 1.0
    name = unique("u")
    daemon.hold(settings, wanted(name), 7, 0)
    before = identity_of(settings, name)
    os.kill(before.pid, signal.SIGSTOP)
    assert daemon.hold(settings, wanted(name), 8, 0) == "restarted"
    assert not alive(before)
    daemon.release(settings, name, 7, 0)
    assert daemon.release(settings, name, 8, 0) == "stopped"


def test_one_of_other_cards_is_nobodys_but_its_holders(settings: Settings) -> None:
    name = unique("u")
    daemon.hold(settings, wanted(name, 0), 7, 0)
    before = identity_of(settings, name)
    with pytest.raises(Trouble, match=f"daemon {name} is of other cards or another boot, and job 7 holds it"):
        daemon.hold(settings, wanted(name, 1), 8, 0)
    assert [h.job for h in holders(daemon.folder_of(settings, name))] == [7]
    assert alive(before)
    assert daemon.hold(settings, wanted(name, 1), 7, 1) == "started"
    assert not alive(before)
    assert state_of(settings, name).uuids == [device(1).uuid]
    daemon.release(settings, name, 7, 1)


def test_a_process_that_got_the_pid_since_is_left_alone(settings: Settings) -> None:
    name = unique("u")
    daemon.hold(settings, wanted(name), 7, 0)
    state, folder = state_of(settings, name), daemon.folder_of(settings, name)
    ours = identity_of(settings, name)
    os.kill(ours.pid, signal.SIGKILL)
    os.waitpid(ours.pid, 0)
    foreign = subprocess.Popen(["sleep", "60"])
    try:
        there = identify(foreign.pid)
        assert there is not None
        state.identity = Identity(foreign.pid, there.start - 1)
        write_state(folder, state)
        assert daemon.release(settings, name, 7, 0) == "stopped"
        assert foreign.poll() is None
        assert nothing_left(settings, name)
    finally:
        foreign.kill()
        foreign.wait()


def test_after_a_reboot_nothing_is_signalled(settings: Settings) -> None:
    name = unique("u")
    daemon.hold(settings, wanted(name), 7, 0)
    state, folder = state_of(settings, name), daemon.folder_of(settings, name)
    os.kill(identity_of(settings, name).pid, signal.SIGKILL)
    os.waitpid(identity_of(settings, name).pid, 0)
    foreign = subprocess.Popen(["sleep", "60"])
    try:
        state.identity, state.boot = identify(foreign.pid), "another"
        write_state(folder, state)
        assert daemon.release(settings, name, 7, 0) == "stopped"
        assert foreign.poll() is None
    finally:
        foreign.kill()
        foreign.wait()
    assert nothing_left(settings, name)


STUBBORN = """\
#!/bin/sh
[ "$1" = -f ] || { cat >/dev/null; echo 100.0; exit 0; }
trap '' TERM
: >"$CUDA_MPS_PIPE_DIRECTORY/control"
sleep 600 & while :; do wait; done
"""
HANGING = "#!/bin/sh\nexec sleep 600\n"
ENDING = "#!/bin/sh\necho 'Cannot find MPS control daemon process'\nexit 1\n"


def replace(settings: Settings, script: str) -> None:
    Path(settings.control).write_text(script)


def test_one_that_ignores_quit_and_sigterm_is_killed_with_its_children(settings: Settings) -> None:
    replace(settings, STUBBORN)
    settings.quit_seconds = settings.kill_seconds = 0.5
    name = unique("u")
    assert daemon.hold(settings, wanted(name), 7, 0) == "started"
    assert len(cgroup.members(name)) == 2
    assert daemon.release(settings, name, 7, 0) == "stopped"
    assert nothing_left(settings, name)


def test_what_forks_faster_than_it_is_looked_at_is_killed(settings: Settings) -> None:
    name, program = unique("u"), Path(settings.run).parent / "chain"
    subprocess.run(["gcc", "-x", "c", "-o", str(program), "-"], input=CHAIN, check=True)
    daemon.hold(settings, wanted(name), 7, 0)
    chain = subprocess.Popen([str(program)], user=UID, process_group=0)
    cgroup.enter(name, chain.pid)
    os.kill(chain.pid, signal.SIGUSR1)
    chain.wait()
    assert cgroup.members(name)
    assert daemon.release(settings, name, 7, 0) == "stopped"
    assert nothing_left(settings, name)


def test_it_is_stopped_where_its_program_is_gone(settings: Settings) -> None:
    name = unique("u")
    daemon.hold(settings, wanted(name), 7, 0)
    identity = identity_of(settings, name)
    Path(settings.control).unlink()
    assert daemon.release(settings, name, 7, 0) == "stopped"
    assert not alive(identity) and nothing_left(settings, name)


@pytest.mark.parametrize(
    ("script", "why"),
    [
        (HANGING, "does not answer after 0.5 s"),
        (ENDING, "ended at its start: Cannot find MPS control daemon process"),
        (None, "cannot be run: exec: No such file or directory"),
        ("", "cannot be run: exec: Exec format error"),
    ],
)
def test_one_that_does_not_start_leaves_nothing(settings: Settings, script: str | None, why: str) -> None:
    settings.start_seconds = 0.5
    if script is None:
        Path(settings.control).unlink()
    else:
        replace(settings, script)
    name = unique("u")
    with pytest.raises(Trouble, match=why):
        daemon.hold(settings, wanted(name), 7, 0)
    assert nothing_left(settings, name)


def test_a_start_that_fails_leaves_the_other_holder(settings: Settings) -> None:
    name = unique("u")
    daemon.hold(settings, wanted(name), 7, 0)
    os.kill(identity_of(settings, name).pid, signal.SIGKILL)
    os.waitpid(identity_of(settings, name).pid, 0)
    replace(settings, ENDING)
    with pytest.raises(Trouble, match="ended at its start"):
        daemon.hold(settings, wanted(name), 8, 0)
    assert [h.job for h in holders(daemon.folder_of(settings, name))] == [7]


def test_what_the_user_does_in_his_folders_stays_there(settings: Settings, tmp_path: Path) -> None:
    """He owns pipe and log: links, fifos, deep folders and foreign names there must not lead root anywhere."""
    victim = tmp_path / "victim"
    victim.write_text("precious")
    name = unique("u")
    daemon.hold(settings, wanted(name), 7, 0)
    folder = Path(daemon.folder_of(settings, name))
    script = f"""
    cd {folder}/pipe && rm -f control control_lock control_privileged && ln -s {victim} control
    ln -s {victim} control_lock; ln -s {tmp_path} way; mkdir -p a/b/c; mkfifo a/b/fifo; ln -s / a/b/c/root
    cd {folder}/log && rm -f control.log && ln -s {victim} control.log; mkfifo server.log
    """
    user = ["setpriv", f"--reuid={UID}", f"--regid={UID}", "--clear-groups"]
    subprocess.run([*user, "sh", "-euc", script], check=True)
    before = time.monotonic()
    assert daemon.release(settings, name, 7, 0) == "stopped"
    assert time.monotonic() - before < 30
    assert victim.read_text() == "precious"
    assert nothing_left(settings, name)


@pytest.mark.parametrize("leaf", ["pipe", "log"])
def test_a_user_fills_his_own_folder_only(settings: Settings, leaf: str) -> None:
    name = unique("u")
    daemon.hold(settings, wanted(name), 7, 0)
    folder = daemon.folder_of(settings, name)
    script = f"cd {folder}/{leaf} && ! head -c 64M /dev/zero >big && i=0 && while : >many$i; do i=$((i + 1)); done"
    user = ["setpriv", f"--reuid={UID}", f"--regid={UID}", "--clear-groups"]
    subprocess.run([*user, "sh", "-c", script], stderr=subprocess.DEVNULL, timeout=60)
    assert os.statvfs(f"{folder}/{leaf}").f_bavail == 0
    assert Path(folder, leaf).stat().st_dev != Path(settings.run).stat().st_dev
    assert daemon.hold(settings, wanted(unique("v"), 1, uid=UID + 1), 8, 0) == "started"
    daemon.release(settings, unique("v"), 8, 0)
    assert daemon.release(settings, name, 7, 0) == "stopped"
    assert nothing_left(settings, name)


def test_a_start_that_its_user_may_have_stopped_is_not_the_nodes_trouble(settings: Settings) -> None:
    """Else whoever has an account drains nodes: a process of his is enough to kill each daemon at its start."""
    replace(settings, ENDING)
    uid = UID + 7
    with pytest.raises(Trouble) as caught:
        daemon.hold(settings, wanted(unique("u"), uid=uid), 7, 0)
    assert not isinstance(caught.value, ByUser)
    bystander = subprocess.Popen(["/bin/sleep", "60"], user=uid, group=uid, extra_groups=[], cwd="/")
    try:
        with pytest.raises(ByUser, match="ended at its start"):
            daemon.hold(settings, wanted(unique("u"), uid=uid), 7, 0)
    finally:
        bystander.kill()
        bystander.wait()
    assert nothing_left(settings, unique("u"))


def test_one_question_that_is_killed_is_asked_again(settings: Settings) -> None:
    """The question is put as the user, who may kill it: that must not restart the daemon under his other job."""
    name = unique("u")
    daemon.hold(settings, wanted(name), 7, 0)
    before = identity_of(settings, name)
    program = Path(settings.control)
    program.rename(f"{program}.real")
    program.write_text(
        f'#!/bin/sh\n[ -e {program}.once ] || {{ : >{program}.once; kill -9 $$; }}\nexec {program}.real "$@"\n'
    )
    program.chmod(0o755)
    program.parent.chmod(0o777)
    assert daemon.hold(settings, wanted(name), 8, 0) == "joined"
    assert Path(f"{program}.once").exists()
    assert identity_of(settings, name) == before
    daemon.release(settings, name, 7, 0)
    assert daemon.release(settings, name, 8, 0) == "stopped"
