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
from tests.slurm.attacks import ATTACKS_DIR, CANARY, CHAIN, PAYLOAD, PWNED, SCRIPTS, SECRET, SPANK
from tests.slurm.faultprograms import FAULTS
from tests.slurm.jobwatch import Hurt
from tests.slurm.mpssite import ASKS, RUN, SHARE, STAYS, WHOLE, Place, each, places

pytestmark = pytest.mark.slurm

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
