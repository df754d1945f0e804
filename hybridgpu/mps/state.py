"""What is written down of one daemon: what it is for and who it is (state.json), and who holds it, one file a job.

All below the daemon's own folder, written by temp and rename under its lock. Removing a holder needs no space, so that
a full file system does not keep a daemon. Starts and stops nothing.
"""

from __future__ import annotations

import json
import os

from hybridgpu.mps.devicemap import Device
from hybridgpu.mps.folder import read_small, root_folder, write_whole
from hybridgpu.mps.process import Identity, alive, boot_id
from hybridgpu.mps.trouble import Trouble

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

STATE = "state.json"
HOLDERS = "holders"
PIPE = "pipe"
LOG = "log"


class State:
    """One daemon: `identity` None is an intent. `compute_mode`: by UUID, what it was before. `shm`: its /dev/shm."""

    __slots__ = ("boot", "compute_mode", "devices", "gid", "identity", "shm", "uid")

    def __init__(
        self,
        boot: str,
        uid: int,
        gid: int,
        devices: list[Device],
        identity: Identity | None = None,
        compute_mode: dict[str, int] | None = None,
        shm: int | None = None,
    ) -> None:
        self.boot, self.uid, self.gid, self.devices, self.identity = boot, uid, gid, devices, identity
        self.compute_mode, self.shm = compute_mode or {}, shm

    @property
    def uuids(self) -> list[str]:
        """Its devices, in their order."""
        return [device.uuid for device in self.devices]

    @property
    def running(self) -> Identity | None:
        """Its process, where it is of this boot and still runs."""
        identity = self.identity
        return identity if identity is not None and self.boot == boot_id() and alive(identity) else None


class Holder:
    """A job that holds a daemon. `hook`: the prolog that wrote it; until it is `ready` the job lives in that alone.

    `conf` is the slurm.conf that slurmd ran on, `since` when it was written, in seconds since the epoch.
    """

    __slots__ = ("conf", "hook", "job", "ready", "restart", "since")

    def __init__(
        self, job: int, restart: int, hook: Identity | None, ready: bool, conf: str = "", since: float = 0.0
    ) -> None:
        self.job, self.restart, self.hook, self.ready, self.conf, self.since = job, restart, hook, ready, conf, since


def write_state(folder: str, state: State) -> None:
    """Write, or replace, a daemon's state. Raises OSError."""
    identity = state.identity
    value = {
        "boot_id": state.boot,
        "uid": state.uid,
        "gid": state.gid,
        "devices": [
            {"uuid": d.uuid, "slurm_index": d.slurm_index, "minor": d.minor, "memory_bytes": d.memory_bytes}
            for d in state.devices
        ],
        "pid": identity.pid if identity else None,
        "start": identity.start if identity else None,
        "compute_mode": state.compute_mode,
        "shm": state.shm,
    }
    write_whole(folder, STATE, json.dumps(value) + "\n")


def read_state(folder: str) -> State | None:
    """A daemon's state; None where none is written, Trouble where it cannot be read."""
    path = f"{folder}/{STATE}"
    try:
        value = json.loads(read_small(path))
        pid, start = value["pid"], value["start"]
        return State(
            boot=str(value["boot_id"]),
            uid=int(value["uid"]),
            gid=int(value["gid"]),
            devices=[Device(d["slurm_index"], d["minor"], d["uuid"], (), d["memory_bytes"]) for d in value["devices"]],
            identity=None if pid is None else Identity(int(pid), int(start)),
            compute_mode={str(uuid): int(mode) for uuid, mode in value["compute_mode"].items()},
            shm=value["shm"],
        )
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Trouble(f"{path}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise Trouble(f"{path} cannot be read ({type(error).__name__}: {error})") from None


def write_holder(folder: str, holder: Holder) -> None:
    """Write, or replace, a job's hold on a daemon. Raises OSError."""
    hook = holder.hook
    value: dict[str, Any] = {
        "job": holder.job,
        "restart": holder.restart,
        "hook": {"pid": hook.pid, "start": hook.start} if hook else None,
        "ready": holder.ready,
        "conf": holder.conf,
    }
    root_folder(f"{folder}/{HOLDERS}")
    write_whole(f"{folder}/{HOLDERS}", str(holder.job), json.dumps(value) + "\n")


def remove_holder(folder: str, job: int) -> None:
    """Take a job's hold away, if it is there. Raises OSError."""
    try:
        os.unlink(f"{folder}/{HOLDERS}/{job}")
    except FileNotFoundError:
        pass


def read_holder(folder: str, job: int) -> Holder | None:
    """A job's hold; None where it has none. One that cannot be read still holds: nothing is known of its end."""
    path = f"{folder}/{HOLDERS}/{job}"
    try:
        since = os.stat(path, follow_symlinks=False).st_mtime
        value = json.loads(read_small(path))
        hook = value["hook"]
        return Holder(
            job=job,
            restart=int(value["restart"]),
            hook=None if hook is None else Identity(int(hook["pid"]), int(hook["start"])),
            ready=value["ready"] is True,
            conf=str(value["conf"]),
            since=since,
        )
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, Trouble):
        return Holder(job, 0, None, ready=True)


def holders(folder: str) -> list[Holder]:
    """Every job that holds a daemon, by its number."""
    try:
        names = os.listdir(f"{folder}/{HOLDERS}")
    except FileNotFoundError:
        return []
    jobs = sorted(int(name) for name in names if name.isascii() and name.isdecimal())
    return [holder for job in jobs if (holder := read_holder(folder, job)) is not None]
