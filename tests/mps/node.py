"""A place on this machine where daemons of tests live: a folder of root's that users can pass, with NVIDIA's program.

Nothing of it is left: what a failed test started is ended by what its folder says.
"""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hybridgpu.mps import cgroup
from hybridgpu.mps.devicemap import Device
from hybridgpu.mps.folder import remove_tree
from hybridgpu.mps.settings import Settings
from tests.conftest import lacking, root_of

CONTROL = "nvidia-cuda-mps-control"
RELEASE = "24.11"
"""The root whose control daemon is used: Debian 13's, 550."""

UID = 1001


@contextmanager
def node(**settings: object) -> Iterator[Settings]:
    """Settings over a fresh run folder, with short limits; all that was started is gone afterwards."""
    if os.geteuid() != 0:
        lacking("needs root: a daemon runs as its job's user")
    folder = Path(tempfile.mkdtemp(prefix="hgpu-", dir="/run"))
    folder.chmod(0o755)
    try:
        yield Settings(
            **{
                "run": f"{folder}/run",
                "control": str(program(folder)),
                "log": f"{folder}/log/hooks.log",
                "start_seconds": 5.0,
                "quit_seconds": 2.0,
                "kill_seconds": 2.0,
                "lock_seconds": 5.0,
                **settings,
            }  # type: ignore[arg-type]
        )
    finally:
        for name in cgroup.names():
            if Path(folder, "run/mps", name).exists():
                for pid in cgroup.members(name):
                    os.kill(pid, signal.SIGKILL)
                cgroup.remove(name)
        remove_tree(str(folder), time.monotonic() + 30)
        _reap()


def _reap() -> None:
    """Take away the zombies: a hook's process ends before its daemons, and a test's does not."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def program(folder: Path) -> Path:
    """NVIDIA's control program where every user can run it."""
    target = folder / "bin" / CONTROL
    target.parent.mkdir()
    shutil.copy(root_of(RELEASE).path / "usr/bin" / CONTROL, target)
    target.chmod(0o755)
    return target


def device(number: int = 0) -> Device:
    """A card as the DeviceMap has it."""
    return Device(number, number, f"GPU-00000000-0000-0000-0000-{number:012d}", (f"/dev/nvidia{number}",), 40 << 30)


def unique(word: str) -> str:
    """A daemon's name that no test beside this one uses: cgroups are the machine's."""
    return f"{word}-{os.getpid()}"


def running(word: str) -> list[int]:
    """The processes whose environment has this word, such as a pipe directory."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                if word.encode() in (entry / "environ").read_bytes():
                    found.append(int(entry.name))
            except OSError:
                continue
    return found
