"""Hooks, daemons and slurmd that die at any moment, disks, programs and maps that fail, on live clusters.

Every fault strikes a job with a share or with a whole GPU, while jobs that need no MPS run beside it. Whatever became
of the job: after one sweep nothing of ours is left, nobody else's daemon is gone, and a new share works (mpssite.py).
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from testbed.slurm.namespace import attempts
from testbed.slurm.root import SlurmRoot
from tests.conftest import soak
from tests.slurm.jobwatch import LIMIT, Hurt
from tests.slurm.mpssite import RUN, SHARE, WHOLE, Place, each, places

pytestmark = pytest.mark.slurm

PROLOG, EPILOG = "Prolog error", "Epilog error"
SAMPLES = {"22.05": (2, 10), "24.11": (1, 3), "26.05": (1, 3)}
"""How often each fault strikes, by release: in `make test`, and in soak."""

PLACES = 5

Strike = Callable[[Place, str, float], None]
"""Does it to a job that asks for `gres`, at a moment in [0, 1). Raises Hurt."""


@dataclass(frozen=True)
class Fault:
    """`drains`: why the node may be drained afterwards, for a share and for a whole GPU (docs/mps.md)."""

    strike: Strike
    share: tuple[str | None, ...] = (None,)
    whole: tuple[str | None, ...] = (None,)

    @property
    def name(self) -> str:
        return self.strike.__name__


def prolog_killed(place: Place, gres: str, moment: float) -> None:
    place.kill_next("prolog", 0.1 * moment)
    job = place.submit(gres)
    place.killed("prolog")
    place.ordinary()
    if not place.settled(job) and gres == WHOLE:
        raise Hurt("a job with a whole GPU does not run because its prolog was killed")


def epilog_killed(place: Place, gres: str, moment: float) -> None:
    job = place.submit(gres)
    place.serving(job)
    place.kill_next("epilog", 0.08 * moment)
    place.signal(job)
    place.killed("epilog")
    place.ordinary()
    place.over(job)


def task_prolog_killed(place: Place, gres: str, moment: float) -> None:
    place.kill_next("taskprolog", 0.06 * moment)
    job = place.submit(gres)
    place.killed("taskprolog")
    place.ordinary()
    place.settled(job)


def slurmd_killed(place: Place, gres: str, moment: float) -> None:
    """In the prolog, while the job runs, or in the epilog."""
    stage, later = int(moment * 3), moment * 3 % 1
    with place.covered("slow"):
        job = place.submit(gres)
        if stage == 0:
            time.sleep(0.6 * later)
        else:
            place.serving(job)
        if stage == 2:
            place.signal(job)
            time.sleep(0.2 * later)
        place.kill_slurmd()
        time.sleep(0.3 * later)
        place.start_slurmd()
    place.ordinary()
    place.signal(job)
    try:
        place.over(job, limit=8)
    except Hurt:  # its epilog died with slurmd, and the controller waits: for minutes, or for an admin (run on all)
        place.cluster.scontrol("update", f"NodeName={place.node}", "State=DOWN", "Reason=completing")
        place.resume()


def daemon_killed(place: Place, gres: str, moment: float) -> None:
    """A new step of a share is refused, one of a whole GPU runs without MPS; the next job has its daemon."""
    job = place.submit(gres)
    place.serving(job)
    (pid, _), *_ = recorded(place)
    kill(place, pid, "KILL" if moment < 0.5 else "SEGV")
    place.ordinary()
    step = place.cluster.inside.run(["srun", f"--jobid={job}", "--overlap", gres, "true"], user="alice")
    if (step.returncode != 0) != (gres == SHARE) or "does not run any more" not in step.stdout:
        raise Hurt(f"a step without daemon: {step.returncode} {step.stdout}{step.stderr}")
    after = place.submit(SHARE)
    place.serving(after)
    place.cancel(job, after)


def cancelled_in_prolog(place: Place, gres: str, moment: float) -> None:
    with place.covered("slow"):
        job = place.submit(gres)
        time.sleep(0.7 * moment)
        place.signal(job)
        place.ordinary()
        place.over(job)


def two_at_once(place: Place, gres: str, moment: float) -> None:
    """Two prologs at once, then two epilogs and a prolog: of one user on one GPU, of two on two, and of another's."""
    users = ("alice", "alice", "bob") if gres == SHARE else ("alice", "bob")
    with place.covered("slow"):
        jobs = [place.submit(gres, user=user) for user in users]
        place.serving(*jobs)
        if gres == SHARE and len({tuple(folder.name.split("-")[1:]) for folder in folders(place)}) != 1:
            raise Hurt("the shares are not on one GPU")
        place.signal(*jobs)
        time.sleep(0.1 * moment)
        after = place.submit(gres)
        place.serving(after)
        place.ordinary()
        place.cancel(*jobs, after)


def full_at_start(place: Place, gres: str, moment: float) -> None:
    with full(place, moment):
        refused_or_without(place, gres)


def full_at_end(place: Place, gres: str, moment: float) -> None:
    at_end(place, gres, lambda: full(place, moment))


def read_only_at_start(place: Place, gres: str, moment: float) -> None:
    del moment
    with read_only(place):
        refused_or_without(place, gres)


def read_only_at_end(place: Place, gres: str, moment: float) -> None:
    del moment
    at_end(place, gres, lambda: read_only(place))
    if place.drained() != EPILOG:
        raise Hurt("an epilog that cannot remove anything says nothing")


def program_ignores_quit(place: Place, gres: str, moment: float) -> None:
    del moment
    with place.covered("stubborn"):
        at_end(place, gres)


def program_missing_at_start(place: Place, gres: str, moment: float) -> None:
    del moment
    with place.covered("missing"):
        refused_or_without(place, gres)


def program_missing_at_end(place: Place, gres: str, moment: float) -> None:
    del moment
    at_end(place, gres, lambda: place.covered("missing"))


def program_hanging_at_start(place: Place, gres: str, moment: float) -> None:
    del moment
    with place.covered("hanging"):
        refused_or_without(place, gres)


def program_hanging_at_end(place: Place, gres: str, moment: float) -> None:
    del moment
    at_end(place, gres, lambda: place.covered("hanging"))


def program_failing(place: Place, gres: str, moment: float) -> None:
    del moment
    with place.covered("failing"):
        refused_or_without(place, gres)


def map_missing(place: Place, gres: str, moment: float) -> None:
    del moment
    with mapped(place, None):
        refused_or_without(place, gres)


def map_stale(place: Place, gres: str, moment: float) -> None:
    del moment
    with mapped(place, lambda text: text.replace(json.loads(text)["boot_id"], "11111111-1111-1111-1111-111111111111")):
        refused_or_without(place, gres)


def map_broken(place: Place, gres: str, moment: float) -> None:
    with mapped(place, lambda text: text[: int(moment * len(text))]):
        refused_or_without(place, gres)


def map_gone_at_end(place: Place, gres: str, moment: float) -> None:
    del moment
    at_end(place, gres, lambda: mapped(place, None))


def pid_of_another(place: Place, gres: str, moment: float) -> None:
    """The daemon has ended, and bob's process has its pid: the kernel gives it the very number."""
    del moment
    job = place.submit(gres)
    place.serving(job)
    (pid, _), *_ = recorded(place)
    kill(place, pid)
    sleeper = "setpriv --reuid=bob --regid=bob --init-groups sleep 500 >/dev/null 2>&1"
    start = f"echo {pid - 1} >/proc/sys/kernel/ns_last_pid; {sleeper} & echo $!"
    for _ in attempts(LIMIT):
        taken = int(place.on("sh", "-euc", start).split()[-1])
        if taken == pid:
            break
        kill(place, taken)
    else:
        raise Hurt(f"nobody gets the pid {pid}")
    place.ordinary()
    place.cancel(job)
    if not [one for one in place.processes() if one.pid == pid and one.uid == 1002]:
        raise Hurt("bob's process is gone")
    kill(place, pid)


HELD = (PROLOG,)
MAYBE_HELD, MAYBE_LEFT = (None, PROLOG), (None, EPILOG)
"""Where processes of the user are seen, a program that runs and does not serve may be his doing, and the node stays."""

FAULTS = (
    Fault(prolog_killed, share=MAYBE_HELD),
    Fault(epilog_killed, share=MAYBE_LEFT, whole=MAYBE_LEFT),
    Fault(task_prolog_killed),
    Fault(slurmd_killed, share=(None, PROLOG, EPILOG), whole=(None, PROLOG, EPILOG)),
    Fault(daemon_killed),
    Fault(cancelled_in_prolog),
    Fault(two_at_once),
    Fault(full_at_start, share=HELD),
    Fault(full_at_end),
    Fault(read_only_at_start, share=HELD),
    Fault(read_only_at_end, share=(EPILOG,), whole=(EPILOG,)),
    Fault(program_ignores_quit),
    Fault(program_missing_at_start, share=HELD),
    Fault(program_missing_at_end),
    Fault(program_hanging_at_start, share=MAYBE_HELD),
    Fault(program_hanging_at_end),
    Fault(program_failing, share=MAYBE_HELD),
    Fault(map_missing, share=HELD),
    Fault(map_stale, share=HELD),
    Fault(map_broken, share=HELD),
    Fault(map_gone_at_end),
    Fault(pid_of_another),
)


def refused_or_without(place: Place, gres: str) -> None:
    """Where no daemon can be had: a share is held, a whole GPU's job runs; and so do all others."""
    place.ordinary(wait=True)
    runs = place.settled(place.submit(gres))
    if runs != (gres == WHOLE):
        raise Hurt(f"the job {'runs' if runs else 'does not run'}")


def at_end(place: Place, gres: str, fault: Callable[[], AbstractContextManager[None]] | None = None) -> None:
    """A job that is well, until its end is met by the fault; and so are others."""
    job = place.submit(gres)
    place.serving(job)
    with fault() if fault else nullcontext():
        place.ordinary(wait=True)
        place.cancel(job)


@contextmanager
def full(place: Place, moment: float) -> Iterator[None]:
    """No byte, or no inode, left in /run/hybridgpu of both nodes."""
    made = []
    for node in (0, 1):
        for number in range(100_000):
            path = place.file(f"{RUN}/filler{number}", node)
            made.append(path)
            try:
                path.write_bytes(bytes(1 << 20) if moment * 10 % 2 < 1 else b"")
            except OSError:
                break
    try:
        yield
    finally:
        for path in made:
            path.unlink(missing_ok=True)


@contextmanager
def read_only(place: Place) -> Iterator[None]:
    """/run/hybridgpu of both nodes; as long as a file is open for writing, the kernel refuses."""
    for node in (0, 1):
        for _ in attempts(10, 0.02):
            if place.cluster.run_on(place.nodes[node], ["mount", "-o", "remount,ro", RUN]).returncode == 0:
                break
        else:
            raise Hurt("it does not become read-only")
    try:
        yield
    finally:
        place.everywhere("mount", "-o", "remount,rw", RUN)


@contextmanager
def mapped(place: Place, change: Callable[[str], str] | None) -> Iterator[None]:
    """Another DeviceMap, or none, on both nodes."""
    files = [place.file(f"{RUN}/devices.json", node) for node in (0, 1)]
    before = [file.read_text() for file in files]
    for file, text in zip(files, before, strict=True):
        if change is None:
            file.unlink()
        else:
            file.write_text(change(text))
    try:
        yield
    finally:
        for file, text in zip(files, before, strict=True):
            file.write_text(text)


def recorded(place: Place) -> list[tuple[int, int]]:
    """Pid and start time of each daemon that state.json has."""
    states = [json.loads((folder / "state.json").read_text()) for folder in folders(place)]
    return [(state["pid"], state["start"]) for state in states]


def folders(place: Place) -> list[Path]:
    return sorted(place.file(f"{RUN}/mps").iterdir())


def kill(place: Place, pid: int, name: str = "KILL") -> None:
    """End a process of the node, and wait until even its zombie is gone."""
    place.on("sh", "-c", f"kill -{name} {pid}")
    for _ in attempts(10, 0.02):
        if not [one for one in place.cluster.processes(place.node) if one.pid == pid]:
            return
    raise Hurt(f"{pid} stays")


def suffer(place: Place, *, fault: Fault, gres: str, moment: float) -> list[str]:
    """What is wrong after the fault has struck once."""
    wrong = []
    try:
        fault.strike(place, gres, moment)
    except Hurt as problem:
        wrong.append(str(problem))
    left, place.jobs[:] = [*place.jobs], []
    place.cancel(*left)
    reason, allowed = place.drained(), fault.share if gres == SHARE else fault.whole
    if reason not in allowed:
        wrong.append(f"drained: {reason}")
    if reason is not None:
        place.resume()
    wrong += place.hurt()
    place.works()
    return wrong


def test_nothing_is_left_nobody_else_is_hurt(
    slurm_root: SlurmRoot, record_property: Callable[[str, object], None]
) -> None:
    count = soak(*SAMPLES[slurm_root.release])
    chance = random.Random(7)
    strikes = []
    for sample in range(count):
        for number, fault in enumerate(FAULTS):
            gres = (SHARE, WHOLE)[(sample + number) % 2]
            moment = (sample + chance.random()) / count
            name = f"{fault.name} {gres} at {moment:.3f}"
            strikes.append((name, partial(suffer, fault=fault, gres=gres, moment=moment)))
    with places(slurm_root, PLACES) as there:
        wrong = each(there, strikes)
    assert not wrong, "\n".join(wrong)
    what = f"{len(FAULTS)} faults struck {len(strikes)} times, nothing left or hurt"
    record_property("measured", f"Slurm {slurm_root.version}: {what}")
