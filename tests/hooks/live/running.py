"""Runs the jobs of a table on a live cluster, all at once, and lets them go one by one."""

from __future__ import annotations

import fcntl
import os
import subprocess
import uuid
from collections.abc import Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Any, Self

from testbed.hooks.cluster import HookCluster
from testbed.slurm.grant import record
from testbed.slurm.namespace import Broken, attempts
from tests.hooks.live.jobs import Job

_HOLD = """\
#!/bin/sh
{tell} && exec flock --shared {lock} true
"""


class Running:
    """Jobs that run until they are let go. Use it as a context manager: its end lets go whatever still waits."""

    def __init__(self, cluster: HookCluster, jobs: Iterable[Job]) -> None:
        self.cluster = cluster
        self.jobs = {job.name: job for job in jobs if {*job.nodes} <= {*cluster.nodes}}
        self._tells: dict[str, str] = {}
        self._locks: dict[str, int] = {}
        self._done: dict[str, Future[subprocess.CompletedProcess[str]]] = {}
        self._pool = ThreadPoolExecutor(max(1, len(self.jobs)))

    def __enter__(self) -> Self:
        self.cluster.inside.folder("/holds", mode=0o755)
        for job in self.jobs.values():
            self._start(job)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        for name in list(self._locks):
            self.let_go(name)
        if kind is not None:
            self.cluster.inside.run(["scancel", "--full", "--user=alice"])
            self.cluster.inside.run(["scancel", "--full", "--user=bob"])
        self._pool.shutdown(cancel_futures=True)

    def _start(self, job: Job) -> None:
        tell, self._tells[job.name] = self.cluster.teller()
        lock, hold = (f"/holds/{job.name}.{uuid.uuid4().hex}.{what}" for what in ("lock", "hold"))
        self.cluster.inside.write(lock, "", mode=0o666)
        self._locks[job.name] = os.open(self.cluster.inside.path(lock), os.O_RDWR | os.O_CLOEXEC)
        fcntl.flock(self._locks[job.name], fcntl.LOCK_EX)
        self.cluster.inside.write(hold, _HOLD.format(tell=tell, lock=lock), mode=0o755)
        command = job.command.replace("HOLD", hold).replace("TELL", tell)
        self._done[job.name] = self._pool.submit(
            self.cluster.inside.run, ["sh", "-euc", command], user=job.user, timeout=120
        )

    def told(self, name: str, count: int | None = None) -> tuple[dict[str, Any], ...]:
        """What the tasks of a job have told, once all have; `count`: once so many have."""
        return self.cluster.told(self._tells[name], self.jobs[name].tells if count is None else count, timeout=60)

    def everything(self) -> Mapping[str, tuple[dict[str, Any], ...]]:
        """What every task of every job has told."""
        return {name: self.told(name) for name in self.jobs}

    def let_go(self, name: str) -> None:
        """Let a job end."""
        os.close(self._locks.pop(name))

    def waiting(self) -> tuple[str, ...]:
        """The jobs that were not let go."""
        return tuple(self._locks)

    def failed(self) -> list[str]:
        """Jobs that did not end well, of all of the cluster that Slurm remembers."""
        seen = map(record, self.cluster.scontrol("-o", "show", "job").splitlines())
        return [f"{one['JobId']} {one['Command']} {one['JobState']}" for one in seen if one["JobState"] != "COMPLETED"]

    def output(self, name: str) -> str:
        """What a job's command has printed, once it has ended; AssertionError where it failed."""
        done = self._done[name].result()
        assert done.returncode == 0, f"{name}: {done.stdout}{done.stderr}"
        return done.stdout + done.stderr


def wait_idle(cluster: HookCluster, timeout: float = 60) -> None:
    """Until no job is left, its epilogs over. Raises Broken."""
    for _ in attempts(timeout):
        if not cluster.inside.run(["squeue", "--noheader"]).stdout.strip():
            return
    raise Broken("jobs do not end\n" + cluster.logs())
