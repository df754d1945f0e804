"""A live Slurm cluster of one release: munge, one controller, one slurmd a node, on files that a test hands over.

The files under test are taken as they are. This module adds only a slurm.conf around them (unless the test brings its
own) with what a machine without cgroups, systemd and GPUs needs, and judges nothing: it says what Slurm says.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Self

from testbed.slurm.grant import Grant, record
from testbed.slurm.namespace import Broken, Namespace, User, attempts
from testbed.slurm.root import SlurmRoot
from testbed.slurm.supervisor import ADDRESS, HOSTNAME

CONF_DIR = "/etc/slurm"
FIRST_PORT = 17001
NULL = (1, 3)
ALICE = User("alice", 1001)

SLURM_CONF = """\
ClusterName=testbed
SlurmctldHost=testbed
SlurmUser=slurm
StateSaveLocation=/var/spool/slurmctld
SlurmdSpoolDir=/var/spool/slurmd/%n
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd-%n.pid
SlurmctldDebug=verbose
SlurmdDebug=verbose
LogTimeFormat=iso8601_ms,format_stderr
MailProg=/bin/true
AuthType=auth/munge
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=1
SchedulerParameters=bf_interval=1,sched_interval=1
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
Include nodes.conf
Include gpu.conf
"""
"""Around the files under test: a partition, and what a machine without cgroups and with few CPUs needs."""

TELL = ("sh", "-c", "env -0; exec scontrol -d -o show job $SLURM_JOB_ID")
"""A task that tells its environment and its job's record; Slurm forgets a node's devices when the job has ended."""


class NotGranted(Exception):
    """Slurm refused a job, or did not start it in time; carries what the command said."""


class Cluster:
    """A running cluster; use it as a context manager.

    `files` maps names to contents: relative names lie beside slurm.conf, absolute ones where they say; what begins with
    `#!` is made executable. `nodes` are those that get a slurmd; all are on one machine, so the files must give each a
    Port of its own (`ports` helps). `devices` are device files beyond the root's NVIDIA ones, such as a site's
    /dev/nic0. Raises Broken, with the logs, where a daemon does not come up.
    """

    def __init__(
        self, root: SlurmRoot, files: Mapping[str, str], nodes: Sequence[str], devices: Iterable[str] = ()
    ) -> None:
        self.root = root
        self.nodes = tuple(nodes)
        self._devices = tuple(devices)
        self._files = {"slurm.conf": SLURM_CONF, "cgroup.conf": "", **files}
        self.inside = Namespace(root.path)

    def __enter__(self) -> Self:
        self.inside.__enter__()
        try:
            self._furnish()
            self._start_munge()
            self.start_controller()
            for node in self.nodes:
                self.start_slurmd(node)
        except BaseException:
            self.inside.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        if problem is not None:
            problem.add_note(self.logs())
        self.inside.close()

    def _furnish(self) -> None:
        """Accounts, folders and files, before the first daemon."""
        slurm = self.inside.user_id("slurm")
        self.inside.add_user(ALICE)
        names = " ".join((HOSTNAME, *self.nodes))
        self.inside.write("/etc/hosts", f"127.0.0.1 localhost\n{ADDRESS} {names}\n")
        self.inside.folder("/var/spool/slurmctld", owner=slurm)
        for node in self.nodes:
            self.inside.folder(f"/var/spool/slurmd/{node}")
        for device in self._devices:
            self.inside.device(device, *NULL)
        for name, content in self._files.items():
            self.write(name, content)

    def write(self, name: str, content: str) -> None:
        """Write one configuration file or script; who reads it hears of it by a reload or a restart."""
        inside = name if name.startswith("/") else f"{CONF_DIR}/{name}"
        self.inside.write(inside, content, mode=0o755 if content.startswith("#!") else 0o644)

    def _start_munge(self) -> None:
        munge = self.inside.user_id("munge")
        self.inside.folder("/run/munge", owner=munge)
        self.inside.start("munged", ["munged", "--foreground", "--num-threads=2"], user="munge")
        for _ in attempts(20):
            self._alive("munged")
            if self.inside.path("/run/munge/munge.socket.2").exists():
                return
        raise Broken("munged does not listen\n" + self.logs())

    def start_controller(self) -> None:
        """Start slurmctld and wait until it answers."""
        self.inside.start("slurmctld", ["slurmctld", "-D"])
        for _ in attempts(30):
            self._alive("slurmctld")
            if self.inside.run(["scontrol", "ping"]).returncode == 0:
                return
        raise Broken("slurmctld does not answer\n" + self.logs())

    def start_slurmd(self, node: str) -> None:
        """Start one node's slurmd. It registers by itself: see `wait_registered`."""
        self.inside.start(slurmd(node), ["slurmd", "-D", "-N", node])

    def stop(self, daemon: str) -> int:
        """End `slurmctld`, or `slurmd-NODE`; gives its exit status."""
        return self.inside.stop(daemon)

    def _alive(self, daemon: str) -> None:
        status = self.inside.status(daemon)
        if status is not None:
            raise Broken(f"{daemon} ended with status {status}\n" + self.logs())

    def wait_registered(self, timeout: float = 60) -> None:
        """Return when every node has registered, well or badly; Broken names those that have not."""
        silent: set[str] = set()
        for _ in attempts(timeout):
            seen = self.show_nodes()
            silent = {node for node in self.nodes if not registered(seen.get(node, {}))}
            if not silent:
                return
            for node in silent:
                self._alive(slurmd(node))
        raise Broken(f"not registered after {timeout} s: {', '.join(sorted(silent))}\n" + self.logs())

    def scontrol(self, *arguments: str) -> str:
        """What scontrol prints; Broken where it fails."""
        done = self.inside.run(["scontrol", *arguments])
        if done.returncode != 0:
            raise Broken(f"scontrol {shlex.join(arguments)}: {done.stdout}{done.stderr}")
        return done.stdout

    def show_nodes(self) -> dict[str, dict[str, str]]:
        """Every node's record as scontrol shows it, by name."""
        lines = self.scontrol("-a", "-o", "show", "nodes").splitlines()
        return {fields["NodeName"]: fields for fields in map(record, lines) if "NodeName" in fields}

    def show_node(self, name: str) -> dict[str, str]:
        """One node's record: `State`, `Gres`, `Reason` and so on."""
        return record(self.scontrol("-a", "-o", "show", "node", name))

    def show_job(self, job: str) -> dict[str, str]:
        """One job's record, with what each node gave it."""
        return record(self.scontrol("-d", "-o", "show", "job", job))

    def srun(self, *options: str, user: str = ALICE.name, timeout: float = 30) -> Grant:
        """Run a job that tells what it was granted, and what its task sees.

        Raises NotGranted where Slurm refuses, or does not start it within `timeout` seconds.
        """
        wait = f"--immediate={max(1, round(timeout))}"
        done = self.inside.run(["srun", "--quiet", wait, *options, *TELL], user=user, timeout=timeout + 30)
        if done.returncode != 0:
            raise NotGranted(done.stderr.strip())
        return Grant.told(done.stdout)

    def sbatch(self, *options: str, script: str = "sleep 600", user: str = ALICE.name) -> str:
        """Submit a job that runs `script` through sh, and give its id; NotGranted where Slurm refuses it."""
        done = self.inside.run(
            ["sbatch", "--parsable", "--output=/dev/null", *options, "--wrap", script], user=user, timeout=30
        )
        if done.returncode != 0:
            raise NotGranted(done.stderr.strip())
        return done.stdout.strip().split(";")[0]

    def wait_job(self, job: str, *states: str, timeout: float = 30) -> dict[str, str]:
        """The job's record once its state is one of `states`; NotGranted with its reason where it stays another."""
        seen: dict[str, str] = {}
        for _ in attempts(timeout):
            seen = self.show_job(job)
            if seen["JobState"] in states:
                return seen
        raise NotGranted(f"job {job} is {seen['JobState']} ({seen['Reason']}), not {' or '.join(states)}")

    def logs(self) -> str:
        """The end of what each daemon has logged and printed, for people."""
        return self.inside.logs()


def slurmd(node: str) -> str:
    """The name of a node's daemon."""
    return f"slurmd-{node}"


def ports(nodes: Iterable[str]) -> dict[str, int]:
    """A port for each node's slurmd; the same in every cluster, since each has a network of its own."""
    return {node: FIRST_PORT + number for number, node in enumerate(nodes)}


def registered(node: Mapping[str, str]) -> bool:
    """Whether slurmd has told the controller of itself since the controller started, and is answering."""
    return node.get("SlurmdStartTime", "None") != "None" and "*" not in node.get("State", "*")
