"""A machine for hooks to die in: `crashworld.py SCENARIO KINDS STRIDE LIBRARY PROGRAM UUIDS`, as pid 1 of its own.

It has its own processes, /run, cgroups and cards, so that what is left is seen, and nothing else is touched. Each try
is: lay out the scenario, run its hook in a child that dies (or is failed) at one effect, sweep once, and look. Prints
what is wrong, one line each, and last `done TRIES EFFECTS`. Run by test_crash.py, never by pytest itself.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from hybridgpu.hooks import epilog, prolog
from hybridgpu.hooks import sweep as hook_sweep
from hybridgpu.mps import cgroup, daemon, sweep
from hybridgpu.mps.computemode import ComputeModes
from hybridgpu.mps.process import boot_id
from hybridgpu.mps.settings import Settings
from tests.hooks.effects import Effects

UID = 1001
RUN = "/run/hybridgpu"
BEFORE = (0, 2)
"""The compute modes of the two cards before any job: default and prohibited, as an admin may have set it."""

CHILD_EFFECTS = 10
"""A forked child's own: session, groups, user, descriptors, log, exec; what is beyond its last one dies of nothing."""

Environment = Mapping[str, str]


CONTAINED, ALLOC = "/run/contain.conf", "/run/alloc.conf"
"""Two slurm.conf: one by which a job without step daemon has ended, and one by which nothing is known of it."""


def job(number: int, gpus: str, share: bool, restart: int = 0, conf: str = ALLOC) -> dict[str, str]:
    """What slurmd gives to its prolog and epilog."""
    percentage = {"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": "25"} if share else {}
    return {
        "SLURM_CONF": conf,
        "SLURM_JOB_ID": str(number),
        "SLURM_JOB_UID": str(UID),
        "SLURM_JOB_GID": str(UID),
        "SLURM_JOB_GPUS": gpus,
        "SLURM_JOB_RESTART_COUNT": str(restart),
        "CUDA_VISIBLE_DEVICES": gpus,
        **percentage,
    }


FIRST, SECOND = job(12, "0", share=True), job(13, "0", share=True)
AGAIN = job(12, "0", share=True, restart=1)
WHOLE, CUT = job(14, "0,1", share=False), job(15, "2,3", share=False)
OVER = job(12, "0", share=True, conf=CONTAINED)
WHOLE_OVER = job(14, "0,1", share=False, conf=CONTAINED)
CUT_OVER = job(15, "2,3", share=False, conf=CONTAINED)


@dataclass(frozen=True, slots=True)
class Scenario:
    """`before`: prologs that ran well; then the hook under test. `stays`: jobs that hold their daemon afterwards.

    An epilog that dies before its first effect has not come: only PrologFlags=Contain tells then that its job is over.
    """

    hook: str
    environment: Environment
    before: tuple[Environment, ...] = ()
    stays: tuple[Environment, ...] = ()
    mode: str = "mps"


SCENARIOS = {
    "share-prolog": Scenario("prolog", FIRST),
    "second-share-prolog": Scenario("prolog", SECOND, (FIRST,), (FIRST,)),
    "requeued-share-prolog": Scenario("prolog", AGAIN, (FIRST,)),
    "whole-prolog": Scenario("prolog", WHOLE),
    "mig-prolog": Scenario("prolog", CUT, mode="mig"),
    "share-epilog": Scenario("epilog", OVER, (OVER,)),
    "first-of-two-epilog": Scenario("epilog", OVER, (OVER, SECOND), (SECOND,)),
    "whole-epilog": Scenario("epilog", WHOLE_OVER, (WHOLE_OVER,)),
    "mig-epilog": Scenario("epilog", CUT_OVER, (CUT_OVER,), mode="mig"),
    "whole-sweep": Scenario("sweep", WHOLE_OVER, (WHOLE_OVER,)),
    "mig-sweep": Scenario("sweep", CUT_OVER, (CUT_OVER,), mode="mig"),
}


class World:
    """The machine. `nothing`: what there is of files and processes before any job."""

    def __init__(self, library: str, program: str, uuids: tuple[str, ...]) -> None:
        self.settings = Settings(
            run=RUN,
            control=program,
            nvml=library,
            log="/run/log/hooks.log",
            start_seconds=5,
            quit_seconds=3,
            kill_seconds=3,
            lock_seconds=3,
        )
        self.uuids = uuids
        self.foreign = self._foreign(program)
        for path, flags in ((CONTAINED, "Contain"), (ALLOC, "Alloc")):
            Path(path).write_text(f"ClusterName=c\nPrologFlags={flags}\n")
        time.sleep(0.02)  # what is newer than a hold does not count, and clocks of files are coarse

    def lay_out(self, mode: str) -> None:
        """No daemon, no record; the DeviceMap of this mode; compute modes as they were."""
        shutil.rmtree(RUN, ignore_errors=True)
        Path(RUN).mkdir(mode=0o755)
        devices = [
            {
                "slurm_index": index,
                "index": index,
                "minor": index,
                "uuid": self.uuids[index] if index < 2 else f"MIG-0-{index}",
                "pci_bus_id": "0000:00:00.0",
                "files": ["/dev/null"],
                "memory_bytes": 1 << 30,
                "profile": None if index < 2 else "1g.10gb",
                "parent_uuid": None,
            }
            for index in range(4)
        ]
        head = {"apiVersion": "hybridgpu/v1", "kind": "DeviceMap", "boot_id": boot_id(), "node": "n", "mode": mode}
        mps = {"whole_gpu_jobs": True, "compute_mode": "exclusive_process"}
        Path(self.settings.device_map).write_text(json.dumps({**head, "mps": mps, "devices": devices}))
        with ComputeModes(self.settings.nvml) as modes:
            for uuid, mode_before in zip(self.uuids, BEFORE, strict=True):
                modes.set(uuid, mode_before)

    def left(self) -> list[str]:
        """What is there beyond an idle machine."""
        self._wait_for_dying()
        found = [f"file {path}" for path in _files(RUN) if path not in ("devices.json", "jobs", "mps")]
        found += [f"cgroup {name}" for name in cgroup.names()]
        found += [f"process {pid} {_command(pid)}" for pid in _pids() - {1, *self.foreign}]
        with ComputeModes(self.settings.nvml) as modes:
            seen = tuple(modes.get(uuid) for uuid in self.uuids)
        return [*found, *([] if seen == BEFORE else [f"compute modes {seen}"])]

    def holds(self, environment: Environment) -> bool:
        return bool(daemon.held_by(self.settings, int(environment["SLURM_JOB_ID"])))

    def lost(self, environment: Environment) -> str | None:
        """Why a job that should have its daemon has none; None where it has."""
        held = daemon.held_by(self.settings, int(environment["SLURM_JOB_ID"]))
        views = [daemon.view(self.settings, name) for name in held]
        if not views or not all(view is not None and view.alive for view in views):
            return f"job {environment['SLURM_JOB_ID']} has lost its daemon"
        record = Path(self.settings.jobs, environment["SLURM_JOB_ID"])
        return None if record.exists() else f"job {environment['SLURM_JOB_ID']} has lost its record"

    def clean(self) -> None:
        """Whatever a failed try has left, so that the next one starts from nothing."""
        for pid in _pids() - {1, *self.foreign}:
            os.kill(pid, signal.SIGKILL)
        self._wait_for_dying()
        for name in cgroup.names():
            cgroup.remove(name)

    def _wait_for_dying(self) -> None:
        """A child that waits for its hook's word ends when the hook has, by itself and a moment later."""
        for _ in range(200):
            _reap()
            if not _pids() - {1, *self.foreign}:
                return
            time.sleep(0.005)

    def foreign_gone(self) -> list[str]:
        return [f"foreign process {pid} is gone" for pid in self.foreign if pid not in _pids()]

    @staticmethod
    def _foreign(program: str) -> tuple[int, ...]:
        """A user's own daemon, started by hand, and a process with the look of ours."""
        Path("/run/user/pipe").mkdir(parents=True)
        os.chown("/run/user/pipe", UID, UID)
        pipe = {"CUDA_MPS_PIPE_DIRECTORY": "/run/user/pipe", "CUDA_MPS_LOG_DIRECTORY": "/run/user/pipe"}
        mine = {"CUDA_MPS_PIPE_DIRECTORY": f"{RUN}/mps/u{UID}-0/pipe"}
        started = [
            subprocess.Popen([program, "-f"], env=pipe, user=UID, group=UID, start_new_session=True, **_SILENT),
            subprocess.Popen(["sleep", "100000"], env=mine, user=UID, group=UID, start_new_session=True, **_SILENT),
        ]
        return tuple(process.pid for process in started)


_SILENT: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)


@dataclass(frozen=True, slots=True)
class Ended:
    """A hook that ran: its exit status (negative: the signal), and what it counted, where it lived to tell."""

    status: int
    effects: list[str]
    uncounted: list[str]
    said: str


def run_hook(
    world: World, hook: str, environment: Environment, at: int | None = None, how: str = "", who: str = "hook"
) -> Ended:
    """Run a hook in a child, that dies or fails at an effect. `who`: `hook`, or `child` for what the hook forks."""
    reading, writing = os.pipe()
    note = os.memfd_create("said")
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        os.dup2(note, 2)
        mine = os.getpid()
        effects = Effects(at, how, lambda: (os.getpid() == mine) == (who == "hook"))
        effects.begin()
        code = 70
        try:
            code = _hook(world, hook, environment)
        except BaseException as bug:  # what a hook must not do is told, not raised
            os.write(2, f"raised {type(bug).__name__}: {bug}".encode())
        effects.ours = lambda: False
        with os.fdopen(writing, "w") as told:
            json.dump([effects.names, effects.uncounted], told)
        os._exit(code)
    os.close(writing)
    with os.fdopen(reading) as told:
        text = told.read()
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    said = os.pread(note, 4096, 0).decode(errors="replace")
    os.close(note)
    names, uncounted = json.loads(text) if text else ([], [])
    return Ended(status, names, uncounted, said)


def _hook(world: World, hook: str, environment: Environment) -> int:
    if hook == "sweep":
        return hook_sweep.run(world.settings, lambda _: None, 0)
    return prolog.run(world.settings, environment) if hook == "prolog" else epilog.run(world.settings, environment)


def attempt(world: World, scenario: Scenario, at: int | None, how: str, who: str = "hook") -> tuple[Ended, list[str]]:
    """One try; gives how the hook ended, and what is wrong afterwards."""
    world.lay_out(scenario.mode)
    for environment in scenario.before:
        ready = run_hook(world, "prolog", environment)
        if ready.status != 0:
            return ready, [f"the scenario cannot be laid out: {ready.said}"]
    tree = _files(RUN)
    ended = run_hook(world, scenario.hook, scenario.environment, at, how, who)
    wrong = [f"uncounted: {call}" for call in ended.uncounted]
    if ended.said.startswith("raised "):
        wrong.append(ended.said)
    died = ended.status == -signal.SIGKILL
    if died or how in ("ENOSPC", "EROFS") or (ended.status and scenario.hook != "prolog"):
        # A hook that failed by one call alone has cleaned behind itself; else the sweep does, once.
        wrong += [f"sweep: {a.what} {a.name}: {a.why}" for a in sweep.sweep(world.settings, 0) if a.failed]
    if scenario.hook == "prolog" and (ended.status == 0 or world.holds(scenario.environment)):
        # slurmd runs the epilog of every job whose prolog was done; it was, where the job may go on holding.
        ending = run_hook(world, "epilog", scenario.environment)
        wrong += [f"epilog: {ending.said}"] if ending.status else []
    wrong += _others(world, scenario, tree)
    wrong += world.left() + world.foreign_gone()
    if wrong:
        world.clean()
    return ended, wrong


def _others(world: World, scenario: Scenario, tree: list[str]) -> list[str]:
    """What is wrong for the jobs that stay; then their epilogs."""
    if not scenario.stays:
        return []
    wrong = [why for environment in scenario.stays if (why := world.lost(environment))]
    wrong += [f"file {path}" for path in sorted(set(_files(RUN)) - set(tree))]
    for environment in scenario.stays:
        ending = run_hook(world, "epilog", environment)
        wrong += [f"epilog of job {environment['SLURM_JOB_ID']}: {ending.said}"] if ending.status else []
    return wrong


def all_of(world: World, scenario: Scenario, kinds: tuple[str, ...], stride: int) -> tuple[int, int]:
    """Every try of a scenario, or each `stride`-th; prints what is wrong. Gives the numbers of tries and effects."""
    counted, wrong = attempt(world, scenario, None, "")
    _print(scenario, "no crash", "", wrong)
    done = 0
    for place, kind in enumerate(kinds):
        who, how = ("child", kind.removeprefix("child-")) if kind.startswith("child-") else ("hook", kind)
        if who == "child" and scenario.stays:
            continue  # who asks the living daemon dies as well: it is started anew, as one that does not answer
        for number in range(CHILD_EFFECTS if who == "child" else len(counted.effects)):
            if (number + place) % stride:
                continue
            ended, wrong = attempt(world, scenario, number, how, who)
            done += 1
            if how in ("before", "after") and who == "hook" and ended.status != -signal.SIGKILL:
                wrong.append(f"not killed: status {ended.status}: {ended.said}")
            name = counted.effects[number] if who == "hook" else f"child's effect {number}"
            _print(scenario, f"{kind} {number}: {name}", ended.said, wrong)
    return done, len(counted.effects)


def _print(scenario: Scenario, where: str, said: str, wrong: list[str]) -> None:
    for line in wrong:
        print(f"{scenario.hook} {where}: {line} [{said.strip()}]", flush=True)


def _files(folder: str) -> list[str]:
    """All below a folder, by relative path, but the content of users' folders, which comes and goes."""
    found = []
    for above, folders, files in os.walk(folder):
        found += [os.path.relpath(f"{above}/{name}", folder) for name in (*folders, *files)]
        folders[:] = [name for name in folders if name not in ("pipe", "log")]
    return sorted(found)


def _pids() -> set[int]:
    return {int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal()}


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    except OSError:
        return ""


def _reap() -> None:
    """Take away zombies: pid 1 gets those of dead hooks."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def main(name: str, kinds: str, stride: str, library: str, program: str, uuids: str) -> None:
    """Go through a scenario."""
    world = World(library, program, tuple(uuids.split(",")))
    done, effects = all_of(world, SCENARIOS[name], tuple(kinds.split(",")), int(stride))
    print(f"done {done} {effects}")


if __name__ == "__main__":
    main(*sys.argv[1:])
