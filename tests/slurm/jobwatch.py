"""All jobs of a live cluster, as they are now: one look for everybody who waits, for each costs a process."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Mapping
from typing import Self

from testbed.slurm.cluster import Cluster

LIMIT = 60
"""Seconds until something counts as hanging: far above what any hook may take with HOOKS_CONF."""

UNFINISHED = ("PENDING", "RUNNING", "COMPLETING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "SPECIAL_EXIT")
_FIELD = re.compile(r"\b(JobId|JobState|Reason|Restarts|ExitCode)=(\S*)")


class Hurt(AssertionError):
    """Something is not as it must be; carries what."""


class Watch:
    """All jobs of a cluster, as they are now: one look for everybody who waits."""

    def __init__(self, cluster: Cluster) -> None:
        self.seen: dict[str, dict[str, str]] = {}
        self._cluster = cluster
        self._changed = threading.Condition()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._over.wait(0.1):
            told = self._cluster.inside.run(["scontrol", "-o", "show", "jobs"]).stdout
            found = [dict(_FIELD.findall(one)) for one in re.split("^(?=JobId=)", told, flags=re.MULTILINE)]
            with self._changed:
                self.seen = {one["JobId"]: one for one in found if "JobId" in one}
                self._changed.notify_all()

    def wait(self, job: str, wanted: Callable[[Mapping[str, str]], bool], limit: float = LIMIT) -> dict[str, str]:
        """The job's record once it is as wanted. Raises Hurt after `limit` seconds."""
        end = time.monotonic() + limit
        with self._changed:
            while time.monotonic() < end:
                if job in self.seen and wanted(self.seen[job]):
                    return self.seen[job]
                self._changed.wait(0.5)
        raise Hurt(f"job {job} stays {self.seen.get(job)}")
