"""Places on a live cluster where hooks meet what can go wrong: a pair of nodes each, and what must be true afterwards.

The first node of a place is in mode mps with daemons for whole GPUs too, the second has shards and no daemons. Each
has a /run/hybridgpu that is a small file system, beside it somebody else's MPS daemon, and a folder with the control
program that can be covered by another. The interpreter of the hooks is a script that kills the next one on demand.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, Queue

from testbed.driver.machine import Machine
from testbed.hooks.cluster import HookCluster
from testbed.hooks.inventory import inventory
from testbed.hooks.process import ZOMBIE, Process
from testbed.slurm.cluster import slurmd
from testbed.slurm.namespace import attempts
from testbed.slurm.root import SlurmRoot
from tests.slurm.faultprograms import CONTROL, COVERS, FAULTS, HOOKS_CONF, PROGRAMS, PYTHON, REAL
from tests.slurm.jobwatch import LIMIT, UNFINISHED, Hurt, Watch

RUN = "/run/hybridgpu"
HOOK = "/usr/lib/hybridgpu/hybridgpu-hook"
SHARE, WHOLE = "--gres=mps:25", "--gres=gpu:1"
BESIDE = ((0, "--gres=none"), (1, "--gres=gpu:1"), (1, "--gres=shard:1"))
"""Jobs that need no MPS, by the node of the place."""

STARTED = "/started"
STAYS = f": >{STARTED}/$SLURM_JOB_ID; exec sleep 600"
ASKS = f"echo get_default_active_thread_percentage | /usr/bin/nvidia-cuda-mps-control >{STARTED}/$SLURM_JOB_ID"
"""Scripts of jobs: one that says when it has started, and one that says what its daemon answers."""

MACHINE = {
    "name": "hurt",
    "gpus": [
        {"model": "A100-SXM4-80GB", "pci": f"0000:{bus:02x}:00.0", "minor": minor} for bus, minor in ((7, 1), (15, 0))
    ],
}
_SHARES = "{mode: mps, mps: {wholeGpuJobs: true, computeMode: exclusive_process}}"
_SHARDS = "{mode: time-slicing, replicas: 4}"
_LOCK = threading.Lock()
"""The cluster's supervisor answers one at a time, and the simulated driver is loaded into this process once."""


@dataclass
class Place:
    """A pair of nodes. `foreign`: the process on each that is not ours, with its start time; `modes`: of each card."""

    cluster: HookCluster
    watch: Watch
    nodes: tuple[str, str]
    foreign: Mapping[str, tuple[int, int]]
    modes: Mapping[str, Sequence[str]]
    jobs: list[str] = field(default_factory=list)
    beside: list[str] = field(default_factory=list)

    @property
    def node(self) -> str:
        """The one with MPS."""
        return self.nodes[0]

    # Jobs

    def submit(self, *options: str, script: str = STAYS, user: str = "alice") -> str:
        """A job on the node with MPS; it counts as one that the fault may hurt."""
        job = self.cluster.sbatch(f"--nodelist={self.node}", *options, script=script, user=user)
        self.jobs.append(job)
        return job

    def ordinary(self, *, wait: bool = False) -> None:
        """Submit the jobs without MPS, to which nothing may happen; `wait` for their end, where they must not wait."""
        mine = [
            self.cluster.sbatch(f"--nodelist={self.nodes[node]}", gres, "--no-requeue", script="true")
            for node, gres in BESIDE
        ]
        self.beside += mine
        for job in mine if wait else ():
            self.over(job)

    def over(self, job: str, limit: float = LIMIT) -> dict[str, str]:
        """The job's record once it has ended, and its epilog too."""
        return self.watch.wait(job, lambda seen: seen["JobState"] not in UNFINISHED, limit)

    def serving(self, *jobs: str) -> None:
        """Wait until the prologs of these jobs are done, their scripts started."""
        for job in jobs:
            if not self.settled(job):
                raise Hurt(f"job {job} does not run: {self.watch.seen[job]}; {self.told(job)}")

    def told(self, job: str) -> list[str]:
        """What our hooks have said of a job."""
        journal = self.cluster.inside.path("/var/log/hybridgpu/hooks.log").read_text(encoding="utf-8")
        return [line for line in journal.splitlines() if f" job={job} " in line]

    def settled(self, job: str) -> bool:
        """Whether the job's script has started; False once it is over or held instead."""
        script = self.started(job)
        self.watch.wait(
            job,
            lambda seen: seen["JobState"] not in UNFINISHED or "held" in seen["Reason"].lower() or script.exists(),
        )
        return script.exists()

    def started(self, job: str) -> Path:
        """What STAYS and ASKS leave."""
        return self.cluster.inside.path(f"{STARTED}/{job}")

    def signal(self, *jobs: str) -> None:
        """Cancel jobs, without waiting for anything."""
        self.cluster.inside.run(["scancel", *jobs])

    def cancel(self, *jobs: str) -> None:
        """End jobs and wait until their epilogs are over."""
        self.signal(*jobs)
        for job in jobs:
            self.over(job)

    # Nodes

    def on(self, *argv: str, node: int = 0, user: str | None = None) -> str:
        """Run something on the place; it must succeed."""
        done = self.cluster.run_on(self.nodes[node], argv, user=user)
        if done.returncode != 0:
            raise Hurt(f"{' '.join(argv)}: {done.stdout}{done.stderr}")
        return done.stdout

    def everywhere(self, *argv: str) -> None:
        """Run something on both nodes."""
        for node in (0, 1):
            self.on(*argv, node=node)

    def processes(self, node: int = 0) -> list[Process]:
        """What runs there now, but for zombies."""
        return [one for one in self.cluster.processes(self.nodes[node]) if one.state != ZOMBIE]

    def file(self, inside: str, node: int = 0) -> Path:
        """A file of the node, to be opened here."""
        return self.cluster.node_path(self.nodes[node], inside)

    def kill_next(self, hook: str, delay: float) -> None:
        """Let the next Python of this hook be killed, so many seconds after its start."""
        self.cluster.inside.path(f"{FAULTS}/{self.node}.{hook}.taken").unlink(missing_ok=True)
        self.cluster.inside.write(f"{FAULTS}/{self.node}.{hook}", f"{delay:.3f}\n")

    def killed(self, hook: str) -> None:
        """Wait until that one was started."""
        for _ in attempts(LIMIT):
            if self.cluster.inside.path(f"{FAULTS}/{self.node}.{hook}.taken").exists():
                return
        raise Hurt(f"no {hook} of {self.node} is started")

    @contextmanager
    def covered(self, kind: str) -> Iterator[None]:
        """Another program in place of the control program, on both nodes."""
        self.everywhere("mount", "--bind", f"/covers/{kind}", PROGRAMS)
        try:
            yield
        finally:
            self.everywhere("umount", "--lazy", PROGRAMS)

    def kill_slurmd(self) -> None:
        """As a crash would."""
        with _LOCK:
            self.cluster.kill_slurmd(self.node)

    def start_slurmd(self) -> None:
        """Start it again, and wait until it has registered since; Slurm tells the second of its start."""
        before = self.cluster.show_node(self.node)["SlurmdStartTime"]
        for _ in attempts(5):
            if self.cluster.inside.run(["date", "+%Y-%m-%dT%H:%M:%S"]).stdout.strip() > before:
                break
        with _LOCK:
            self.cluster.start_slurmd(self.node)
        for _ in attempts(LIMIT):
            seen = self.cluster.show_node(self.node)
            if seen["SlurmdStartTime"] != before and "*" not in seen["State"]:
                return
        raise Hurt(f"{slurmd(self.node)} does not register: {seen['State']}")

    # Afterwards

    def drained(self) -> str | None:
        """Why the node is drained, None where it is not. One is enough: the other has no daemons."""
        seen = self.cluster.show_node(self.node)
        return seen["Reason"].partition(" [")[0] if "DRAIN" in seen["State"] else None

    def resume(self) -> None:
        """As an admin does it."""
        self.cluster.scontrol("update", f"NodeName={self.node}", "State=RESUME")

    def works(self) -> None:
        """A new job with a share has its daemon."""
        job = self.submit(SHARE, script=ASKS)
        self.over(job)
        if not self.started(job).exists() or self.started(job).read_text() != "100.0\n":
            raise Hurt(f"a new share does not reach its daemon: {self.watch.seen[job]}")
        self.jobs.remove(job)

    def hurt(self, survivors: int | None = None) -> list[str]:
        """What is wrong once all jobs are over: after one sweep nothing of ours may be left, and nothing else gone.

        What `survivors`, a user, has left running by himself is ended only after the sweep.
        """
        wrong = []
        for job in self.beside:
            seen = self.over(job)
            if (seen["JobState"], seen["ExitCode"], seen["Restarts"]) != ("COMPLETED", "0:0", "0"):
                wrong.append(f"job {job}, which needs no MPS: {seen}")
        self.beside.clear()
        for number, node in enumerate(self.nodes):
            self._wait_steps(number)
            for _ in attempts(
                LIMIT
            ):  # more than one, for nodes show each other's processes, and so jobs that start there
                done = self.cluster.run_on(node, [HOOK, "sweep"])
                if done.returncode != 0:
                    wrong.append(f"{node}: sweep: {done.stdout}{done.stderr}")
                if not self._files(number):
                    break
        for number, node in enumerate(self.nodes):
            self.end(survivors, number)
            wrong += [f"{node}: {what}" for what in (*self._left(number), *self._gone(number))]
        return wrong

    def _wait_steps(self, number: int) -> None:
        """Until no step daemon runs there: it may go after its job's record says COMPLETED."""
        for _ in attempts(LIMIT):
            if not any(one.uid == 0 and "slurmstepd" in one.command for one in self.processes(number)):
                return
        raise Hurt("step daemons stay")

    def end(self, uid: int | None, number: int) -> None:
        """Kill all that a user runs on a node of the place, until nothing of it is left."""
        for _ in attempts(LIMIT, 0.01):
            left = [str(one.pid) for one in self.processes(number) if one.uid == uid]
            if not left:
                return
            self.cluster.run_on(self.nodes[number], ["sh", "-c", f"kill -KILL {' '.join(left)}"])
        raise Hurt(f"processes of {uid} do not end")

    def _files(self, number: int) -> list[str]:
        """What lies in /run/hybridgpu that is of some job."""
        run = self.file(RUN, number)
        return [
            str(path) for path in run.rglob("*") if str(path.relative_to(run)) not in ("devices.json", "jobs", "mps")
        ]

    def _left(self, number: int) -> list[str]:
        node = self.nodes[number]
        left = self._files(number)
        ours = [one for one in self.processes(number) if one.pid != self.foreign[node][0]]
        strange = [one for one in ours if not one.command.startswith("slurmd -D")]
        left += [f"process {one.pid} of {one.uid}: {one.command}" for one in strange]
        left += self.on("find", "/sys/fs/cgroup", "-name", "hybridgpu", node=number).split()
        mounts = (
            self.file("/proc", number).joinpath(str(self.cluster.node_pid(node)), "mountinfo").read_text().splitlines()
        )
        return left + [line for line in mounts if f"{RUN}/mps" in line]

    def _gone(self, number: int) -> list[str]:
        node = self.nodes[number]
        pid, start = self.foreign[node]
        found = [one for one in self.processes(number) if (one.pid, one.start) == (pid, start)]
        gone = [] if found else ["the daemon that is not ours has ended"]
        answer = self.cluster.run_on(
            node,
            ["sh", "-c", f"echo get_default_active_thread_percentage | {REAL}"],
            user="bob",
            environment={"CUDA_MPS_PIPE_DIRECTORY": f"/tmp/{node}"},
        )
        if answer.stdout.strip() != "100.0":
            gone.append(f"the daemon that is not ours does not answer: {answer.stdout}{answer.stderr}")
        modes = card_modes(self.cluster, node)
        return gone if modes == self.modes[node] else [*gone, f"compute modes {modes}"]


def card_modes(cluster: HookCluster, node: str) -> list[str]:
    """The compute mode of each card of a node."""
    with _LOCK:
        return [str(card["compute_mode"]) for card in cluster.machine(node).show()["gpus"]]


@contextmanager
def places(root: SlurmRoot, count: int, *, confined: bool = True, settings: str = "") -> Iterator[tuple[Place, ...]]:
    """So many places, on one cluster."""
    pairs = [(f"m{number}", f"s{number}") for number in range(count)]
    nodes = {node: sharing for pair in pairs for node, sharing in zip(pair, (_SHARES, _SHARDS), strict=True)}
    files = {
        "/etc/hybridgpu/hooks.conf": HOOKS_CONF,
        "/usr/lib/hybridgpu-testbed/python": PYTHON,
        CONTROL: f'#!/bin/sh\nexec {REAL} "$@"\n',
        **{f"/covers/{kind}/{Path(CONTROL).name}": text for kind, text in COVERS.items() if text is not None},
    }
    with tempfile.TemporaryDirectory() as folder:
        machines = {node: Machine.make(Path(folder, node), MACHINE) for node in nodes}
        text = inventory(root.release, nodes, gpus=len(MACHINE["gpus"]))
        with HookCluster(root, text, machines, files=files, confined=confined, settings=settings) as cluster:
            for inside in ("/covers/missing", FAULTS, STARTED):
                cluster.inside.folder(inside, mode=0o777)
            cluster.wait_registered()
            with Watch(cluster) as watch:
                yield tuple(_place(cluster, watch, pair) for pair in pairs)


_FURNISH = f"""\
cp -p {RUN}/devices.json /tmp/devices.json
mount -t tmpfs -o size=512k,nr_inodes=256,mode=755 run {RUN}
mv /tmp/devices.json {RUN}/devices.json
mkdir --mode=700 /tmp/$1
chown bob: /tmp/$1
setpriv --reuid=bob --regid=bob --init-groups env -i CUDA_MPS_PIPE_DIRECTORY=/tmp/$1 CUDA_MPS_LOG_DIRECTORY=/tmp/$1 \
    {REAL} -d >/dev/null 2>&1
"""


def _place(cluster: HookCluster, watch: Watch, pair: tuple[str, str]) -> Place:
    foreign = {}
    for node in pair:
        done = cluster.run_on(node, ["sh", "-euc", _FURNISH, "sh", node])
        for _ in attempts(10):
            found = [one for one in cluster.processes(node) if one.uid == 1002 and "mps-control" in one.command]
            if len(found) == 1 and found[0].ppid == 1:
                break
        else:
            raise Hurt(f"no other daemon on {node}: {found} {done.stderr}")
        foreign[node] = (found[0].pid, found[0].start)
    return Place(cluster, watch, pair, foreign, {node: card_modes(cluster, node) for node in pair})


Trial = tuple[str, Callable[[Place], list[str]]]
"""Its name, and what it does to a place; gives what is wrong."""


def each(there: Sequence[Place], trials: Iterable[Trial]) -> list[str]:
    """Do all of them, side by side, each to one place; one that is not well again takes no more."""
    waiting: Queue[Trial] = Queue()
    for trial in trials:
        waiting.put(trial)
    wrong: list[str] = []

    def work(place: Place) -> None:
        while True:
            try:
                name, does = waiting.get_nowait()
            except Empty:
                return
            try:
                wrong.extend(f"{name} on {place.node}: {what}" for what in does(place))
            except Exception as problem:
                wrong.append(f"{name} on {place.node}: {type(problem).__name__}: {problem}")
                return

    threads = [threading.Thread(target=work, args=(place,)) for place in there]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return wrong
