"""The first process of a test cluster's own namespaces: it lays out the file system, then starts and reaps daemons.

Run by `cluster.py` as `unshare --mount --net --pid --ipc --uts --fork supervisor.py ROOT`, as root. It is pid 1 in
there, so that the kernel ends every daemon, job and mount with it, however the tests end: it leaves when its standard
input closes. It speaks JSON, one object a line: a request on standard input, its answer on standard output.

Standard library only, and nothing about Slurm: what to start is told from outside.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

HOSTNAME = "testbed"
MNT_DETACH = 2
_libc = ctypes.CDLL(None, use_errno=True)
SIOCGIFFLAGS, SIOCSIFFLAGS, SIOCSIFADDR, IFF_UP = 0x8913, 0x8914, 0x8916, 0x1
ADDRESS = "127.0.1.1"
"""Of the machine itself. With 127.0.0.1 alone the C library counts IPv4 as not configured, and no name resolves."""


def raise_loopback() -> None:
    """Set `lo` up: a new network namespace has nothing else, and has it down."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        request = struct.pack("16sh", b"lo", 0)
        _, flags = struct.unpack("16sh", fcntl.ioctl(probe, SIOCGIFFLAGS, request))
        fcntl.ioctl(probe, SIOCSIFFLAGS, struct.pack("16sh", b"lo", flags | IFF_UP))
        address = struct.pack("HH4s8x", socket.AF_INET, 0, socket.inet_aton(ADDRESS))
        fcntl.ioctl(probe, SIOCSIFADDR, struct.pack("16s16s", b"lo:1", address))


def mount(*arguments: str) -> None:
    """Call mount(8); in a mount namespace of our own, nobody else sees what it does."""
    subprocess.run(["mount", *arguments], check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)


def lay_out(root: Path) -> Path:
    """A writable view of ROOT, which stays as it is: an overlay in memory, with /proc and /sys. Gives its path.

    The overlay's upper side is a tmpfs mounted on ROOT's own /mnt, in this namespace only: no folder is left behind.
    """
    memory = root / "mnt"
    mount("-t", "tmpfs", "-o", "mode=755", "tmpfs", str(memory))
    upper, work, merged = (memory / name for name in ("upper", "work", "merged"))
    for folder in (upper, work, merged):
        folder.mkdir()
    mount("-t", "overlay", "-o", f"lowerdir={root},upperdir={upper},workdir={work}", "overlay", str(merged))
    mount("-t", "proc", "proc", str(merged / "proc"))
    mount("--rbind", "/sys", str(merged / "sys"))
    return merged


def become_root(merged: Path) -> None:
    """Make MERGED the root of this mount namespace, not of this process alone: who joins it later must find it too."""
    subprocess.run(["pivot_root", str(merged), str(merged / "mnt")], check=True, stdin=subprocess.DEVNULL)
    os.chdir("/")
    if _libc.umount2(b"/mnt", MNT_DETACH) != 0:  # a call, for a root may have no program for it
        raise OSError(ctypes.get_errno(), "the machine's own root is still there")


class Children:
    """The daemons by name, and the exit status of those that have ended; strangers are reaped and forgotten."""

    def __init__(self) -> None:
        self.pids: dict[str, int] = {}
        self.ended: dict[int, int] = {}

    def start(self, name: str, argv: list[str], environment: dict[str, str], log: str) -> dict[str, Any]:
        """Start ARGV in a session of its own, with its output appended to LOG."""
        redirect = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        pid = os.posix_spawnp(
            argv[0],
            argv,
            environment,
            setsid=True,
            setsigdef=[signal.SIGPIPE, signal.SIGCHLD],
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, log, redirect, 0o644),
                (os.POSIX_SPAWN_DUP2, 1, 2),
            ],
        )
        self.pids[name] = pid
        return {"pid": pid}

    def state(self, name: str) -> dict[str, Any]:
        """The exit status of a daemon as the shell counts it, null while it runs."""
        return {"status": self.ended.get(self.pids[name])}

    def signal(self, name: str, number: int) -> dict[str, Any]:
        """Send a signal to a daemon that runs; nothing happens to one that has ended."""
        if self.pids[name] not in self.ended:
            os.kill(self.pids[name], number)
        return self.state(name)

    def reap(self) -> None:
        """Collect every child that has ended, also the orphans that daemons leave to pid 1."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            self.ended[pid] = os.waitstatus_to_exitcode(status)


def answer(children: Children, request: dict[str, Any]) -> dict[str, Any]:
    """Do what one request asks; an operating system's refusal is an answer too."""
    arguments = {key: value for key, value in request.items() if key != "do"}
    try:
        match request["do"]:
            case "start":
                return children.start(**arguments)
            case "state":
                return children.state(**arguments)
            case "signal":
                return children.signal(**arguments)
            case unknown:
                return {"error": f"unknown request {unknown}"}
    except OSError as problem:
        return {"error": str(problem)}


def serve(children: Children) -> None:
    """Answer requests and reap, until standard input closes."""
    wakeup, alarm = os.pipe()
    os.set_blocking(alarm, False)
    os.set_blocking(wakeup, False)
    signal.set_wakeup_fd(alarm)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    pending = b""
    while True:
        ready, _, _ = select.select([0, wakeup], [], [])
        if wakeup in ready:
            os.read(wakeup, 4096)
        children.reap()
        if 0 not in ready:
            continue
        received = os.read(0, 65536)
        if not received:
            return
        *lines, pending = (pending + received).split(b"\n")
        for line in lines:
            reply = answer(children, json.loads(line))
            os.write(1, json.dumps(reply).encode() + b"\n")


def main() -> None:
    """Lay out, say so (with our pid as the caller sees it), serve."""
    root = Path(sys.argv[1])
    pid_outside = int(Path("/proc/self").readlink().name)
    socket.sethostname(HOSTNAME)
    raise_loopback()
    merged = lay_out(root)
    become_root(merged)
    os.umask(0o022)
    os.write(1, json.dumps({"pid": pid_outside}).encode() + b"\n")
    serve(Children())


if __name__ == "__main__":
    main()
