"""A private copy of a Slurm root: own file system, processes, network and host name, gone when it is closed.

This is the outer side of `supervisor.py`. It knows processes, files and users, nothing about Slurm. Nothing in here is
seen by the machine or by a neighbour: clusters run side by side, all on the same ports.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

ENVIRONMENT = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8"}
LOGS = "/var/log/testbed"
LOG_LINES = 30
KINDS = ("mount", "net", "pid", "ipc", "uts")


class Broken(Exception):
    """The test machine, not the product, failed: a namespace, a mount or a daemon did not come up."""


@dataclass(frozen=True, slots=True)
class User:
    """An account that exists inside only."""

    name: str
    uid: int


class Namespace:
    """One set of namespaces over one root. Use it as a context manager.

    `root` is the folder of a Slurm root; it is only read. Raises Broken where the kernel
    refuses namespaces or overlays.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._process: subprocess.Popen[bytes] | None = None
        self.pid = 0

    def __enter__(self) -> Self:
        supervisor = Path(__file__).with_name("supervisor.py")
        self._process = subprocess.Popen(
            [
                *("unshare", *(f"--{kind}" for kind in KINDS), "--fork", "--kill-child=KILL"),
                *(sys.executable, "-I", "-S", "-B", str(supervisor), str(self.root)),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.pid = self._answer()["pid"]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End pid 1, and with it, by the kernel, every process and mount inside."""
        process, self._process = self._process, None
        if process is None:
            return
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def path(self, inside: str) -> Path:
        """The file that is called `inside` in there, as the tests can open it; absolute links mislead."""
        return Path(f"/proc/{self.pid}/root") / inside.lstrip("/")

    def logs(self) -> str:
        """The end of what each daemon has printed, for people."""
        parts = []
        for log in sorted(self.path(LOGS).glob("*")):
            lines = log.read_text(encoding="utf-8", errors="replace").splitlines()[-LOG_LINES:]
            parts.append("\n".join([f"--- {log.name}", *lines]))
        return "\n".join(parts)

    def write(self, inside: str, content: str, *, mode: int = 0o644, owner: int = 0) -> None:
        """Write a file, with the folders above it."""
        target = self.path(inside)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(content, encoding="utf-8")
        target.chmod(mode)
        os.chown(target, owner, owner)

    def folder(self, inside: str, *, mode: int = 0o755, owner: int = 0) -> None:
        """Make a folder, or take one that is there, with this mode and owner."""
        target = self.path(inside)
        target.mkdir(parents=True, exist_ok=True)
        target.chmod(mode)
        os.chown(target, owner, owner)

    def device(self, inside: str, major: int, minor: int) -> None:
        """Make a character device that everybody may open, unless it is there."""
        target = self.path(inside)
        target.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            os.mknod(target, stat.S_IFCHR | 0o666, os.makedev(major, minor))
            target.chmod(0o666)

    def user_id(self, name: str) -> int:
        """The uid of an account that the root or `add_user` brought."""
        for line in self.path("/etc/passwd").read_text(encoding="utf-8").splitlines():
            account, _, uid, *_ = line.split(":")
            if account == name:
                return int(uid)
        raise Broken(f"{self.root} has no user {name}")

    def add_user(self, user: User) -> None:
        """Add an ordinary account, with a group and a home folder of its own."""
        home = f"/home/{user.name}"
        with self.path("/etc/passwd").open("a", encoding="utf-8") as accounts:
            accounts.write(f"{user.name}:x:{user.uid}:{user.uid}::{home}:/bin/sh\n")
        with self.path("/etc/group").open("a", encoding="utf-8") as groups:
            groups.write(f"{user.name}:x:{user.uid}:\n")
        self.folder(home, owner=user.uid)

    def run(
        self, argv: Sequence[str], *, user: str | None = None, timeout: float = 60
    ) -> subprocess.CompletedProcess[str]:
        """Run a program inside to its end, as root or as `user`. Its status is the caller's to judge."""
        become = [] if user is None else ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups"]
        enter = ["nsenter", f"--target={self.pid}", *(f"--{kind}" for kind in KINDS), "--root", "--wd"]
        return subprocess.run(
            [*enter, "--", *become, *argv],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            env=ENVIRONMENT,
            timeout=timeout,
            check=False,
        )

    def start(self, name: str, argv: Sequence[str], *, user: str | None = None) -> None:
        """Start a daemon in the foreground under `name`; what it prints is appended to LOGS/NAME."""
        become = [] if user is None else ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups"]
        self.folder(LOGS)
        self._ask(do="start", name=name, argv=[*become, *argv], environment=ENVIRONMENT, log=f"{LOGS}/{name}")

    def status(self, name: str) -> int | None:
        """The exit status of a daemon (negative: the signal that ended it), None while it runs."""
        status: int | None = self._ask(do="state", name=name)["status"]
        return status

    def stop(self, name: str, *, number: signal.Signals = signal.SIGTERM, timeout: float = 20) -> int:
        """Send a signal to a daemon and wait for its end; gives its exit status."""
        self._ask(do="signal", name=name, number=int(number))
        for _ in attempts(timeout):
            status = self.status(name)
            if status is not None:
                return status
        raise Broken(f"{name} does not end on {number.name} within {timeout} s")

    def _ask(self, **request: object) -> dict[str, Any]:
        """One request to the supervisor, and its answer."""
        assert self._process is not None and self._process.stdin is not None, "used outside its with block"
        self._process.stdin.write(json.dumps(request).encode() + b"\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self._process is not None and self._process.stdout is not None and self._process.stderr is not None
        line = self._process.stdout.readline()
        if not line:
            why = self._process.stderr.read().decode(errors="replace").strip()
            self.close()
            raise Broken(f"no namespace over {self.root}: {why}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise Broken(answer["error"])
        return answer


def attempts(timeout: float, pause: float = 0.1) -> Iterator[float]:
    """Yield, with a pause between, until `timeout` seconds are over; at least once."""
    end = time.monotonic() + timeout
    while True:
        yield end - time.monotonic()
        if time.monotonic() >= end:
            return
        time.sleep(pause)
