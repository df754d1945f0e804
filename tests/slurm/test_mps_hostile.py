"""A user with an account, jobs and ill will, on live clusters: nothing escapes, nobody else notices.

Each attack runs as alice while bob's job shares her GPU, and goes on until that is over. Afterwards nothing outside her
own folders is changed, read or run by root, bob's daemon has served him, the node is not drained, and one sweep leaves
nothing (mpssite.py).
"""

from __future__ import annotations

import random
import re
import subprocess
import time
from collections.abc import Callable, Mapping
from functools import partial

import pytest

from testbed.slurm.root import SUITES, SlurmRoot
from tests.conftest import soak
from tests.slurm.mpssite import ASKS, FAULTS, RUN, SHARE, STAYS, WHOLE, Hurt, Place, each, places

pytestmark = pytest.mark.slurm

ATTACKS_DIR, CANARY, PWNED = "/attack", "/canary", "/pwned"
SECRET = "the word that only root may read"
PAYLOAD = f"$(touch {PWNED}/a)`touch {PWNED}/b`;touch {PWNED}/c\ntouch {PWNED}/d\nexport PWNED=1\n%s%n"
"""What a shell, a format, a record or Slurm's own language of a task prolog might take for its own."""

PLANT = f"""\
import os, random, socket, sys
chance = random.Random(int(sys.argv[1]))
pipe = os.environ["CUDA_MPS_PIPE_DIRECTORY"]
log = os.path.join(os.path.dirname(pipe), "log")
kinds = [
    lambda path: os.symlink("{CANARY}/secret", path),
    lambda path: os.symlink("{CANARY}", path),
    lambda path: os.symlink("/", path),
    lambda path: os.mkfifo(path),
    lambda path: os.link("{CANARY}/open", path),
    lambda path: socket.socket(socket.AF_UNIX).bind(path),
    lambda path: os.makedirs(path + "/a/b/c"),
    lambda path: os.close(os.open(path, os.O_CREAT, 0)),
]
for folder in (pipe, log):
    for name in ("control", "control_lock", "control_privileged", "log", "control.log", "server.log",
                 "nvidia-cuda-mps-control.pid", "-rf", "a\\nb", "{PAYLOAD[:20]}".replace("/", "_")):
        path = os.path.join(folder, name)
        if os.path.lexists(path):
            os.unlink(path)
        try:
            chance.choice(kinds)(path)
        except OSError:
            os.mkdir(path, 0)
"""
FILL = """\
import os
pipe = os.environ["CUDA_MPS_PIPE_DIRECTORY"]
for folder in (pipe, os.path.join(os.path.dirname(pipe), "log")):
    os.chdir(folder)
    depth = 0
    try:
        while depth < 10000:
            os.mkdir("d")
            os.chdir("d")
            depth += 1
    except OSError:
        pass
    assert depth < 10000, "no limit"
    os.chmod(".", 0)
    os.chdir(folder)
    try:
        os.rename("d", "e")
        with open("full", "wb") as file:
            while True:
                file.write(bytes(1 << 20))
    except OSError:
        pass
"""
STAY = """\
import os, sys, time
pipe = os.environ["CUDA_MPS_PIPE_DIRECTORY"]
for number in range(3):
    if os.fork() == 0:
        os.setsid()
        if os.fork():
            os._exit(0)
        null = os.open("/dev/null", os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(null, stream)
        os.chdir(pipe)
        held = [os.open("held%d" % number, os.O_CREAT | os.O_RDWR), os.open(".", os.O_RDONLY)]
        if number == 1:
            script = 'mount -t tmpfs none "$1" && mkdir "$1/mine" && cd "$1" && exec sleep 300'
            os.execvp("unshare", ["unshare", "-Urm", "sh", "-c", script, "sh", pipe])
        end = time.time() + 300
        turn = 0
        while time.time() < end:
            turn += 1
            for base in (".", pipe):
                for act in (
                    lambda: os.mkdir(base + "/r%d" % number),
                    lambda: os.symlink("/canary", base + "/r%d/l" % number),
                    lambda: os.rename(base + "/r%d" % number, base + "/s%d.%d" % (number, turn)),
                    lambda: os.symlink("/canary", base + "/r%d" % number),
                    lambda: os.unlink(base + "/r%d" % number),
                ):
                    try:
                        act()
                    except OSError:
                        pass
        os._exit(0)
"""
LOCK = """\
import fcntl, os, sys, time
if os.fork():
    sys.exit(0)
os.setsid()
null = os.open("/dev/null", os.O_RDWR)
for stream in (0, 1, 2):
    os.dup2(null, stream)
held = {}
end = time.time() + 300
while time.time() < end:
    for above, folders, files in os.walk("/run/hybridgpu"):
        for path in [above] + [os.path.join(above, name) for name in files]:
            try:
                seen = os.stat(path)
                if (seen.st_dev, seen.st_ino) not in held:
                    held[seen.st_dev, seen.st_ino] = file = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
                    fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except OSError:
                pass
    for job in os.listdir("/run/hybridgpu/mps") if os.path.isdir("/run/hybridgpu/mps") else ():
        try:
            path = "/run/hybridgpu/mps/" + job
            fcntl.flock(os.open(path, os.O_RDONLY), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            pass
    time.sleep(0.005)
"""
INJECT = """\
import ctypes, os, sys
pid, program = int(sys.argv[1]), sys.argv[2].encode() + b"\\0"
call = ctypes.CDLL(None, use_errno=True).ptrace
call.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
def trace(request, data=0):
    if call(request, pid, 0, data) == -1:
        raise OSError(ctypes.get_errno(), "ptrace %d" % request)
trace(16)
os.waitpid(pid, 0x40000000)
registers = (ctypes.c_ulong * 27)()
trace(12, ctypes.addressof(registers))
stack = (registers[19] - 4096) & ~15
program += bytes(-len(program) % 8)
memory = os.open("/proc/%d/mem" % pid, os.O_RDWR)
os.pwrite(memory, program + stack.to_bytes(8, "little") + bytes(8), stack)
os.pwrite(memory, b"\\x0f\\x05\\x0f\\x0b", registers[16])
registers[10], registers[15] = 59, 2**64 - 1
registers[14], registers[13], registers[12] = stack, stack + len(program), stack + len(program) + 8
trace(13, ctypes.addressof(registers))
trace(17)
"""
CHAIN = """\
#include <signal.h>
#include <unistd.h>
int main(void)
{
    for (int number = 1; number < 65; number++)
        signal(number, SIG_IGN);
    for (int chains = 0; chains < 4 && fork(); chains++)
        ;
    for (;;)
        if (fork() > 0)
            _exit(0);
}
"""
"""Ends and goes on in a child, for ever: whoever looks for its pid comes too late."""

DISGUISE = """\
import os, sys, time
job = sys.argv[1]
for title, context in (("slurmstepd: [%s.extern]" % job, ""), ("sleep", "prolog_slurmd")):
    if os.fork() == 0:
        os.setsid()
        null = os.open("/dev/null", os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(null, stream)
        os.execve("/bin/sleep", [title, "300"], {"SLURM_JOB_ID": job, "SLURM_SCRIPT_CONTEXT": context})
"""
SABOTAGE = """\
import os, signal, sys, time
if os.fork() == 0:
    os.setsid()
    null = os.open("/dev/null", os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    end = time.time() + 300
    while time.time() < end:
        for pid in filter(str.isdecimal, os.listdir("/proc")):
            try:
                with open("/proc/%s/cmdline" % pid, "rb") as file:
                    if file.read().endswith(b"nvidia-cuda-mps-control\\0-f\\0"):
                        os.kill(int(pid), int(sys.argv[1]))
            except OSError:
                pass
    os._exit(0)
"""
SCRIPTS = {
    "sabotage": SABOTAGE,
    "plant": PLANT,
    "fill": FILL,
    "stay": STAY,
    "lock": LOCK,
    "inject": INJECT,
    "disguise": DISGUISE,
}

Attack = Callable[[Place, int, str], None]
"""`number` seeds what is left to chance, `bob` is his job. Raises Hurt where it gets what it should not."""


def script(name: str, *arguments: object) -> str:
    """A job that runs an attack, and then stays."""
    return f"python3 {ATTACKS_DIR}/{name}.py {' '.join(map(str, arguments))} && {STAYS}"


def plants_things(place: Place, number: int, bob: str) -> None:
    """Links, fifos, sockets, folders in place of all that the daemon has, and a second job over them."""
    del bob
    first = place.submit(SHARE, script=script("plant", number))
    place.serving(first)
    second = place.submit(SHARE)
    place.serving(second)
    place.cancel(first)
    place.cancel(second)


def fills_folders(place: Place, number: int, bob: str) -> None:
    del number, bob
    job = place.submit(SHARE, script=script("fill"))
    place.serving(job)
    other = place.submit(SHARE, user="bob")
    place.serving(other)
    place.cancel(job, other)


def stays_behind(place: Place, number: int, bob: str) -> None:
    """Processes that outlive the job: in the pipe directory, with mounts of their own over it, and busy in it."""
    del number, bob
    for gres in (SHARE, "--gres=gpu:1"):
        job = place.submit(gres, script=script("stay"))
        place.serving(job)
        time.sleep(0.2)
        place.cancel(job)


def locks_folders(place: Place, number: int, bob: str) -> None:
    """Locks held on whatever can be opened, while jobs of others begin and end."""
    del number, bob
    job = place.submit(SHARE, script=script("lock"))
    place.serving(job)
    other = place.submit(SHARE, user="bob")
    place.serving(other)
    place.cancel(other)
    place.cancel(job)


def stops_daemon(place: Place, number: int, bob: str) -> None:
    """It does not answer any more: the next job gets it anew, the end is as ever."""
    del bob
    job = place.submit(SHARE)
    place.serving(job)
    as_alice(place, f"kill -{('STOP', 'KILL')[number % 2]} {daemon_of(place, 1001)}")
    after = place.submit(SHARE, script=ASKS)
    place.over(after)
    if place.started(after).read_text() != "100.0\n":
        raise Hurt("the next job has no daemon")
    as_alice(place, f"kill -STOP {daemon_of(place, 1001)}")
    place.cancel(job)


def ends_daemons_at_once(place: Place, number: int, bob: str) -> None:
    """No daemon of hers ever answers: that costs her the jobs with a share, and nobody anything else."""
    del bob
    saboteur = place.submit("--gres=none", script=script("sabotage", (9, 19)[number % 2]))
    place.serving(saboteur)
    for gres in (SHARE, WHOLE):
        job = place.submit(gres)
        if place.settled(job) != (gres == WHOLE):
            raise Hurt(f"the job is {place.watch.seen[job]}")
        place.cancel(job)


def becomes_the_daemon(place: Place, number: int, bob: str) -> None:
    """The daemon is made to run what forks faster than anybody looks; it is in a cgroup of root's making."""
    del number, bob
    if place.cluster.inside.run(["uname", "-m"]).stdout.strip() != "x86_64":
        return
    job = place.submit(SHARE)
    place.serving(job)
    as_alice(place, f"python3 {ATTACKS_DIR}/inject.py {daemon_of(place, 1001)} {ATTACKS_DIR}/chain")
    time.sleep(0.1)
    place.cancel(job)


def disguises(place: Place, number: int, bob: str) -> None:
    """What looks like a step daemon, or a prolog, keeps nothing from the sweep."""
    del number, bob
    place.kill_next("epilog", 0.0)
    job = place.submit(SHARE, script=script("disguise", "$SLURM_JOB_ID"))
    place.serving(job)
    place.cancel(job)
    place.killed("epilog")
    if place.drained() is not None:
        place.resume()


def asks_for_others(place: Place, number: int, bob: str) -> None:
    """Whatever alice puts into her tasks' environment, she gets her own daemon, or is refused."""
    del number
    bobs = f"{RUN}/mps/u1002-0/pipe"
    if not place.file(bobs).exists():
        raise Hurt("bob has another GPU, so this shows nothing")
    tried = (
        f"ls {bobs}",
        f"cat {bobs}/control",
        f"echo quit | CUDA_MPS_PIPE_DIRECTORY={bobs} nvidia-cuda-mps-control",
        f"kill {daemon_of(place, 1002)}",
        f"mkdir {RUN}/jobs/x",
        f"ln -s / {RUN}/mps/x",
        f"mv {RUN}/mps/u1002-0 {RUN}/mps/x",
        f"echo >{RUN}/mps/u1002-0/state.json",
    )
    for command in tried:
        if place.cluster.run_on(place.node, ["sh", "-c", command], user="alice").returncode == 0:
            raise Hurt(f"alice may: {command}")
    for environment in (
        {"CUDA_MPS_PIPE_DIRECTORY": bobs, "SLURM_JOB_ID": bob, "SLURM_JOBID": bob},
        {"CUDA_VISIBLE_DEVICES": PAYLOAD, "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": PAYLOAD, "SLURM_STEP_GPUS": PAYLOAD},
        {"SLURM_STEP_TASKS_PER_NODE": "9" * 5000 + "(x999999999)", "SLURM_NODEID": "-1", "SLURM_RESTART_COUNT": "7"},
        {"PYTHONPATH": ATTACKS_DIR, "PYTHONHOME": ATTACKS_DIR, "PYTHONSTARTUP": f"{ATTACKS_DIR}/env", "IFS": "/=j"},
        {"PATH": f"{ATTACKS_DIR}/bin:/usr/bin:/bin", "ENV": f"{ATTACKS_DIR}/env", "BASH_ENV": f"{ATTACKS_DIR}/env"},
        {"LD_PRELOAD": f"{ATTACKS_DIR}/none.so", "LD_LIBRARY_PATH": ATTACKS_DIR, "LD_AUDIT": f"{ATTACKS_DIR}/none.so"},
    ):
        told = tells(place, environment)
        if told is not None and (told[0] != f"{RUN}/mps/u1001-0/pipe" or PWNED in told[1]):
            raise Hurt(f"a task with {environment} got {told}")


def names_things(place: Place, number: int, bob: str) -> None:
    """Words of the user that reach a prolog's environment: names, comments, paths, and by libslurm SPANK_ variables."""
    del number, bob
    install_spank(place)
    words = [f"--job-name={PAYLOAD}", f"--comment={PAYLOAD}", f"--chdir={ATTACKS_DIR}/{PAYLOAD.replace('/', '_')}"]
    if place.cluster.root.release != "22.05":
        words.append(f"--extra={PAYLOAD}")
    told = place.cluster.inside.path(f"{FAULTS}/{place.node}.prolog.tell")
    for gres in (SHARE, WHOLE):
        told.write_text("")
        options = ["--parsable", "--output=/dev/null", f"--nodelist={place.node}", gres, *words, "--wrap", STAYS]
        done = place.cluster.inside.run(["env", f"HOSTILE={PAYLOAD}", "sbatch", *options], user="alice")
        if done.returncode != 0:
            raise Hurt(f"sbatch: {done.stderr}")
        place.jobs.append(done.stdout.strip())
        place.serving(place.jobs[-1])
        environment = dict(part.partition("=")[::2] for part in told.read_text().split("\0"))
        if environment.get("SPANK_HOSTILE") != PAYLOAD or environment.get("SLURM_JOB_COMMENT") != PAYLOAD:
            raise Hurt(f"not what the user wrote, so this shows nothing: {environment}")
        place.cancel(place.jobs[-1])
    told.unlink()


def requeues(place: Place, number: int, bob: str) -> None:
    """Again and again, in the prolog and after it; each time Slurm waits until its credentials have expired."""
    del bob
    job = place.submit(SHARE, "--requeue")
    chance = random.Random(number)
    for _ in range(soak(1, 3)):
        place.watch.wait(job, lambda seen: seen["JobState"] == "RUNNING")
        time.sleep(chance.random() * 0.3)
        as_alice(place, f"scontrol requeue {job}")
        place.watch.wait(job, lambda seen: seen["JobState"] == "PENDING")
    place.serving(job)
    place.cancel(job)


def mixes_components(place: Place, number: int, bob: str) -> None:
    """Steps of a het job that claim what its other component has; two components never share a node (run on all)."""
    del number, bob
    claim = ("env", "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=100", "CUDA_VISIBLE_DEVICES=0,1", "SLURM_SHARDS_ON_NODE=1")
    tells = ("sh", "-c", 'echo "$SLURM_PROCID:$CUDA_MPS_PIPE_DIRECTORY"')
    share, other = f"--nodelist={place.node}", f"--nodelist={place.nodes[1]}"
    argv = [*claim, "srun", "--quiet", share, SHARE, *tells, ":", other, *tells]
    done = place.cluster.inside.run(argv, user="alice")
    if sorted(done.stdout.split()) != [f"0:{RUN}/mps/u1001-0/pipe", "1:"]:
        raise Hurt(f"components got {done.stdout}{done.stderr}")


ATTACKS: tuple[Attack, ...] = (
    plants_things,
    fills_folders,
    stays_behind,
    locks_folders,
    stops_daemon,
    ends_daemons_at_once,
    becomes_the_daemon,
    disguises,
    asks_for_others,
    names_things,
    requeues,
    mixes_components,
)


SPANK = """\
#include <stdlib.h>
extern int spank_job_control_setenv(void *, const char *, const char *, int);
const char plugin_name[] = "hostile", plugin_type[] = "spank";
const unsigned int plugin_version = %d, spank_plugin_version = 1;
int slurm_spank_init_post_opt(void *spank, int argc, char **argv)
{
    const char *value = getenv("HOSTILE");
    return value ? spank_job_control_setenv(spank, "HOSTILE", value, 1) : 0;
}
"""
"""What any user could do with libslurm: give his job a variable of his choice, named SPANK_ and more."""


def compiled(place: Place, name: str, text: str, *options: str) -> None:
    """A program of the attacker's, compiled here."""
    target = place.cluster.inside.path(f"{ATTACKS_DIR}/{name}")
    subprocess.run(["gcc", "-x", "c", "-O1", *options, "-o", str(target), "-"], input=text.encode(), check=True)
    target.chmod(0o755)


def install_spank(place: Place) -> None:
    major, minor, micro = (int(part) for part in re.findall(r"\d+", place.cluster.root.version)[:3])
    compiled(place, "spank.so", SPANK % (major << 16 | minor << 8 | micro), "-shared", "-fPIC")
    place.cluster.write("plugstack.conf", f"optional {ATTACKS_DIR}/spank.so\n")


def as_alice(place: Place, command: str) -> None:
    """Something she does on the node, outside her jobs."""
    done = place.cluster.run_on(place.node, ["sh", "-c", command], user="alice")
    if done.returncode != 0:
        raise Hurt(f"{command}: {done.stderr}")


def daemon_of(place: Place, uid: int) -> int:
    """The pid of a user's daemon that is ours."""
    found = [one.pid for one in place.processes() if one.uid == uid and one.argv[-1:] == ("-f",)]
    if len(found) != 1:
        raise Hurt(f"{len(found)} daemons of {uid}")
    return found[0]


def tells(place: Place, environment: Mapping[str, str]) -> tuple[str, str] | None:
    """The pipe directory and the whole environment of a task of alice's; None where it is refused."""
    words = [f"{name}={value}" for name, value in environment.items()]
    task = ["/bin/sh", "-c", 'echo "$CUDA_MPS_PIPE_DIRECTORY"; /usr/bin/env']
    argv = ["env", *words, "/usr/bin/srun", "--quiet", "--immediate=30", f"--nodelist={place.node}", SHARE, *task]
    done = place.cluster.inside.run(argv, user="alice")
    if done.returncode != 0:
        return None
    pipe, _, rest = done.stdout.partition("\n")
    return pipe, rest


def prepare(place: Place) -> None:
    """What the attacks need, and what they are after."""
    inside = place.cluster.inside
    inside.folder(ATTACKS_DIR, owner=1001)
    inside.folder(PWNED, mode=0o777)
    for name, text in SCRIPTS.items():
        inside.write(f"{ATTACKS_DIR}/{name}.py", text)
    compiled(place, "chain", CHAIN, "-static")
    marks = f"#!/bin/sh\n: >{PWNED}/$(/usr/bin/id -u).$$\n"
    for program in ("python3", "sh", "env", "rm", "mkdir", "cat", "sleep", "id"):
        inside.write(f"{ATTACKS_DIR}/bin/{program}", marks, mode=0o755)
    inside.write(f"{ATTACKS_DIR}/env", marks)
    inside.folder(f"{ATTACKS_DIR}/{PAYLOAD.replace('/', '_')}", owner=1001)
    inside.folder(CANARY)
    inside.write(f"{CANARY}/secret", SECRET + "\n", mode=0o600)
    inside.write(f"{CANARY}/open", "for all\n")


def outside(place: Place) -> dict[str, object]:
    """What root has, and must stay as it is."""
    found: dict[str, object] = {}
    for path in (CANARY, f"{CANARY}/secret", f"{CANARY}/open", "/etc/passwd", "/etc/shadow", "/", "/etc", "/tmp"):
        seen = place.cluster.inside.path(path).stat()
        found[path] = (seen.st_mode, seen.st_uid, seen.st_gid, seen.st_nlink, path.count("/") > 1 and seen.st_mtime_ns)
    found["names"] = sorted(place.cluster.inside.path(CANARY).iterdir())
    found["map"] = place.file(f"{RUN}/devices.json").read_text()
    found["run by root"] = [str(path) for path in place.cluster.inside.path(PWNED).iterdir() if path.stat().st_uid == 0]
    return found


def withstood(place: Place, *, attack: Attack, number: int) -> list[str]:
    """What is wrong after an attack."""
    wrong = []
    bob = place.submit(SHARE, user="bob")
    place.serving(bob)
    before, daemon = outside(place), daemon_of(place, 1002)
    try:
        attack(place, number, bob)
    except Hurt as problem:
        wrong.append(str(problem))
    place.ordinary()
    if place.watch.seen[bob]["JobState"] != "RUNNING" or daemon_of(place, 1002) != daemon:
        wrong.append(f"bob's job: {place.watch.seen[bob]}")
    other = place.submit(SHARE, user="bob", script=ASKS)
    place.over(other)
    if not place.started(other).exists() or place.started(other).read_text() != "100.0\n":
        wrong.append(f"bob's next job: {place.watch.seen[other]}")
    left, place.jobs[:] = [*place.jobs], []
    place.cancel(*left)
    if place.drained() is not None:
        wrong.append(f"the node is drained: {place.drained()}")
        place.resume()
    wrong += place.hurt(survivors=1001)
    after = outside(place)
    return wrong + [f"{what}: {before[what]} -> {after[what]}" for what in before if before[what] != after[what]]


def test_a_hostile_user_reaches_and_hurts_nobody(
    slurm_root: SlurmRoot, record_property: Callable[[str, object], None]
) -> None:
    """In `make test` each attack is run on one release, in soak on all."""
    releases = list(SUITES)
    turn, step = releases.index(slurm_root.release), soak(len(releases), 1)
    trials = [
        (f"{attack.__name__} {number}", partial(withstood, attack=attack, number=number))
        for number in range(soak(1, 4))
        for attack in ATTACKS[turn % step :: step]
    ]
    with places(slurm_root, 1, confined=False, settings="AuthInfo=cred_expire=5\n") as there:
        prepare(there[0])
        wrong = each(there, trials)
        if SECRET in there[0].cluster.inside.run(["sh", "-c", "cat /var/log/testbed/* /var/log/hybridgpu/*"]).stdout:
            wrong.append("root has read for alice, and told")
    assert not wrong, "\n".join(wrong)
    record_property("measured", f"Slurm {slurm_root.version}: {len(trials)} attacks, none reached or hurt anybody")
