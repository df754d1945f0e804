"""What no running job owns: found (`survey`) and removed (`sweep`), at boot and now and then.

A job has ended for certain when the prolog that took a hold for it died before the job was let go, or when the machine
has booted since. Else "no step daemon" is the only sign, and a good one only where PrologFlags=Contain keeps one on
each node of a running job; it must be missing twice, some seconds apart. Whatever is not certain stays.
"""

from __future__ import annotations

import os
import time

from hybridgpu.mps import cgroup, daemon, job, journal
from hybridgpu.mps.folder import abandoned
from hybridgpu.mps.lock import Locked
from hybridgpu.mps.process import alive, boot_id
from hybridgpu.mps.running import contained, look
from hybridgpu.mps.state import HOLDERS, Holder, State, holders, read_holder, read_state, remove_holder
from hybridgpu.mps.trouble import Busy, Trouble, reason

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from hybridgpu.mps.devicemap import Device
    from hybridgpu.mps.running import Look
    from hybridgpu.mps.settings import Settings

PAUSE = 2.0
"""Seconds between the two looks."""

_UNHELD = "no job holds it"
_PROLOG_DIED = "its prolog died"
_REBOOTED = "the node has booted since"
_STRAY = "it belongs to no daemon and no job"
_LOCK_SECONDS = 1.0
_TOLD = "it is over, as whoever called the sweep says"
_NO_STEP_DAEMON = "no step daemon of it runs, and PrologFlags=Contain keeps one"


class Action:
    """One thing the sweep did, or failed to do. `what`: daemon, holder, job, stray. `of`: its job, uid, gpus."""

    __slots__ = ("failed", "name", "of", "what", "why")

    def __init__(
        self, what: str, name: str, why: str, of: dict[str, object] | None = None, failed: bool = False
    ) -> None:
        self.what, self.name, self.why, self.of, self.failed = what, name, why, of or {}, failed


class HolderSeen:
    """A job's hold; `ended`: why the job has ended, None while it runs or nothing is known."""

    __slots__ = ("ended", "job", "ready", "restart", "since")

    def __init__(self, holder: Holder, ended: str | None) -> None:
        self.job, self.restart, self.since, self.ready = holder.job, holder.restart, holder.since, holder.ready
        self.ended = ended


class DaemonSeen:
    """A daemon's folder. `leftover`: why nobody needs it, None where somebody may. `busy`: a hook is at it now."""

    __slots__ = ("alive", "boot", "busy", "devices", "gid", "holders", "leftover", "name", "pid", "uid")

    def __init__(
        self, name: str, state: State | None, holders: list[HolderSeen], leftover: str | None, busy: bool = False
    ) -> None:
        self.name, self.holders, self.leftover, self.busy = name, holders, leftover, busy
        self.uid = state.uid if state else None
        self.gid = state.gid if state else None
        self.devices: list[Device] = state.devices if state else []
        self.boot = state.boot if state else None
        identity = state.identity if state else None
        self.pid = identity.pid if identity else None
        self.alive = state is not None and state.running is not None

    def of(self, holders: list[HolderSeen]) -> dict[str, object]:
        """Whose it was, for the journal: of these jobs."""
        jobs = ",".join(str(holder.job) for holder in holders) or None
        gpus = ",".join(str(device.slurm_index) for device in self.devices) or None
        return {"job": jobs, "uid": self.uid, "gpus": gpus}


class JobSeen:
    """A job's record; `ended` as for a holder."""

    __slots__ = ("daemons", "ended", "gpus", "job", "name", "restart", "since", "uid")

    def __init__(self, record: job.Job, ended: str | None) -> None:
        self.name, self.job, self.restart, self.uid = record.name, record.job, record.restart, record.uid
        self.gpus, self.daemons, self.since, self.ended = record.gpus, record.daemons, record.since, ended


class Survey:
    """All that lies here of ours. `strays`: files, cgroups and processes that belong to no daemon and no job."""

    __slots__ = ("daemons", "jobs", "strays")

    def __init__(self, daemons: list[DaemonSeen], jobs: list[JobSeen], strays: list[str]) -> None:
        self.daemons, self.jobs, self.strays = daemons, jobs, strays


def survey(settings: Settings, pause: float = PAUSE) -> Survey:
    """What there is, and what of it nobody needs; changes nothing. Waits `pause` seconds where it must look twice."""
    return _surveyed(settings, _Ended(pause))


def sweep(settings: Settings, pause: float = PAUSE, over: frozenset[int] = frozenset()) -> list[Action]:
    """Remove what nobody needs; gives what was done, and what could not be. What a hook is at is left to it.

    `over`: jobs that an admin knows to have ended, where nothing else tells. Trouble, and nothing done, where one of
    them shows on this node. Each thing is in the journal as soon as it is done, for a sweep may be ended before it is
    through.
    """
    ended, done = _Ended(pause, over), []
    ended.refuse()
    found, began = _surveyed(settings, ended), time.monotonic()
    for action in _swept(settings, found, ended):
        journal.note(
            settings,
            "sweep",
            **{**action.of, action.what: action.name},
            outcome="failed" if action.failed else "removed",
            seconds=time.monotonic() - began,
            why=action.why,
        )
        done.append(action)
        began = time.monotonic()
    return done


class _Ended:
    """Why jobs have ended, or None. Looks at the processes here once, and a second time only where it matters."""

    def __init__(self, pause: float, over: frozenset[int] = frozenset()) -> None:
        self._pause, self._over = pause, over
        self._boot = boot_id()
        self.began = time.time()
        self._first = look()
        self._second: Look | None = None

    @property
    def running(self) -> set[int]:
        """Jobs of which something runs here, by the first look."""
        return self._first.jobs

    def refuse(self) -> None:
        """Raise Trouble where a job that is said to be over may run here."""
        seen = ", ".join(str(number) for number in sorted(self._over & self.running))
        if seen:
            raise Trouble(f"job {seen}: not over, something of it runs on this node (a step daemon, prolog or epilog)")
        if self._over and self._first.starting:
            raise Trouble("slurmd is starting a job, and nothing shows which yet: try again")

    def holder(self, holder: Holder, boot: str | None) -> str | None:
        """Of a job that holds a daemon, which was started in this boot."""
        if boot not in (None, self._boot):
            return _REBOOTED
        if not holder.ready:
            return None if holder.hook is not None and alive(holder.hook) else _PROLOG_DIED
        return self._without_step(holder.job, holder.conf, holder.since)

    def record(self, settings: Settings, record: job.Job) -> str | None:
        """Of a job with a record. One of a job with daemons is no older than its hold, and no younger."""
        return _let_go(settings, record) or self._without_step(record.job, record.conf, record.since)

    def _without_step(self, number: int, conf: str, since: float) -> str | None:
        if since >= self.began or number in self._first.jobs:
            return None  # a job that began since has not been looked for
        if number in self._over:
            return _TOLD
        if not contained(conf, since):
            return None
        if self._second is None:
            time.sleep(self._pause)
            self._second = look()
        if self._first.starting or self._second.starting:
            return None
        return None if number in self._second.jobs else _NO_STEP_DAEMON


def _let_go(settings: Settings, record: job.Job | JobSeen) -> str | None:
    """Why a record of a job with daemons is needed no more, once the holds are gone; None where that is not so."""
    return "it holds no daemon any more" if record.daemons and not daemon.held_by(settings, record.job) else None


def _surveyed(settings: Settings, ended: _Ended) -> Survey:
    daemons = [_seen(settings, name, ended) for name in daemon.names(settings)]
    jobs = [JobSeen(record, ended.record(settings, record)) for record in job.every(settings)]
    return Survey(daemons, jobs, _strays(settings, ended))


def _swept(settings: Settings, found: Survey, ended: _Ended) -> Iterator[Action]:
    for seen in found.daemons:
        yield from _sweep_daemon(settings, seen)
    for record in found.jobs:
        yield from _sweep_record(settings, record)
    for path in _strays(settings, ended):  # looked for again: stopping daemons takes its time
        yield _removed("stray", path, _STRAY, path)


def _seen(settings: Settings, name: str, ended: _Ended) -> DaemonSeen:
    folder = daemon.folder_of(settings, name)
    try:
        state = read_state(folder)
    except Trouble:
        state = None
    held = [HolderSeen(holder, ended.holder(holder, state.boot if state else None)) for holder in holders(folder)]
    leftover = None
    if not held:
        leftover = _UNHELD
    elif all(holder.ended for holder in held):
        leftover = f"job {held[0].job}: {held[0].ended}"
    return DaemonSeen(name, state, held, leftover, leftover is not None and _busy(folder))


def _busy(folder: str) -> bool:
    """Whether a hook has it locked."""
    try:
        with Locked(folder, 0.0, create=False):
            return False
    except Busy:
        return True
    except Trouble:
        return False


def _sweep_daemon(settings: Settings, seen: DaemonSeen) -> Iterator[Action]:
    """Take away the holds of ended jobs, and the daemon where none is left. A hold written since it was seen stays."""
    gone = [holder for holder in seen.holders if holder.ended is not None]
    if not gone and seen.leftover is None:
        return
    folder = daemon.folder_of(settings, seen.name)
    try:
        with Locked(folder, _LOCK_SECONDS, create=False) as lock:
            if lock.gone:
                return
            for holder in gone:
                there = read_holder(folder, holder.job)
                if there is not None and (there.restart, there.since) == (holder.restart, holder.since):
                    remove_holder(folder, holder.job)
                    yield Action("holder", f"{seen.name}/{holder.job}", holder.ended or "", seen.of([holder]))
            if not holders(folder):
                daemon.clean(settings, seen.name)
                yield Action("daemon", seen.name, seen.leftover or _UNHELD, seen.of(gone))
    except Busy:
        return
    except (Trouble, OSError) as error:
        yield Action("daemon", seen.name, reason(error), seen.of(gone), failed=True)


def _sweep_record(settings: Settings, seen: JobSeen) -> Iterator[Action]:
    """Remove the record of a job that has ended. One written since it was seen is of another run of it, and stays."""
    why = seen.ended or _let_go(settings, seen)
    there = job.read(settings, seen.name)
    if why is not None and there is not None and (there.restart, there.since) == (seen.restart, seen.since):
        gpus = ",".join(str(gpu) for gpu in seen.gpus) or None
        of = {"job": seen.name, "uid": seen.uid, "gpus": gpus}
        yield _removed("job", seen.name, why, f"{settings.jobs}/{seen.name}", of)


def _strays(settings: Settings, ended: _Ended) -> list[str]:
    """What killed hooks have left beside records and daemons: temporary files, cut-off records, empty cgroups."""
    cgroups = [path for name in cgroup.names() for path in cgroup.empty(name)]
    known = set(daemon.names(settings))
    folders = [daemon.folder_of(settings, name) for name in sorted(known)]
    written = [settings.daemons, *folders, *(f"{folder}/{HOLDERS}" for folder in folders)]
    return [
        *(path for path in cgroups if os.path.basename(path) not in known),
        *(f"{folder}/{name}" for folder in written for name in _files(folder) if abandoned(name)),
        *(
            f"{settings.jobs}/{name}"
            for name in _files(settings.jobs)
            if abandoned(name) or _cut_off(settings, name, ended)
        ),
    ]


def _cut_off(settings: Settings, name: str, ended: _Ended) -> bool:
    """Whether a file is a record that nobody can read, and nobody is writing: of no use to its job, if there is one."""
    number = job.number_of(name)
    if number is None or number in ended.running:
        return False
    try:
        written = os.stat(f"{settings.jobs}/{name}", follow_symlinks=False).st_mtime
    except FileNotFoundError:
        return False
    return written < ended.began and job.read(settings, name) is None


def _files(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.name for entry in entries if not entry.is_dir(follow_symlinks=False))
    except (FileNotFoundError, NotADirectoryError):
        return []


def _removed(what: str, name: str, why: str, path: str, of: dict[str, object] | None = None) -> Action:
    try:
        if os.path.isdir(path) and not os.path.islink(path):
            os.rmdir(path)
        else:
            os.unlink(path)
    except FileNotFoundError:
        pass
    except OSError as error:
        return Action(what, name, f"{path}: {error.strerror}", of, failed=True)
    return Action(what, name, why, of)
