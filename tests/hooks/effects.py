"""Every effect a hook has on the machine, counted, and one of them the last: killed before or after it, or failing.

An effect is a call that changes something which outlives the process: files, processes, compute modes, locks. Used in
a forked child only, whose `os` is bent for good. An audit hook sees to it that no effect goes by uncounted.
"""

from __future__ import annotations

import builtins
import errno
import fcntl
import os
import signal
import stat
import sys
from collections.abc import Callable
from typing import Any

from hybridgpu.mps.computemode import ComputeModes
from hybridgpu.mps.trouble import Trouble

_CALLS = (
    *((os, name) for name in ("mkdir", "rmdir", "unlink", "rename", "link", "symlink", "mknod", "mkfifo", "truncate")),
    *((os, name) for name in ("chmod", "fchmod", "chown", "fchown", "lchown", "utime", "setxattr", "write", "fork")),
    *((os, name) for name in ("kill", "killpg", "setsid", "setgroups", "setresgid", "setresuid", "execve")),
    (signal, "pidfd_send_signal"),
    (fcntl, "flock"),
    (ComputeModes, "set"),
)
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
_AUDITED = {
    *("os.mkdir", "os.rmdir", "os.remove", "os.rename", "os.link", "os.symlink", "os.truncate", "os.chmod", "os.chown"),
    *("os.fork", "os.forkpty", "os.kill", "os.killpg", "os.exec", "os.posix_spawn", "os.system", "subprocess.Popen"),
    *("os.utime", "os.setxattr", "shutil.rmtree", "shutil.move", "tempfile.mkstemp", "signal.pthread_kill"),
}


_FILES = (
    *("mkdir", "rmdir", "unlink", "rename", "link", "symlink", "mknod", "mkfifo", "truncate", "open", "utime"),
    *("chmod", "fchmod", "chown", "fchown", "lchown", "setxattr"),
)
_FILLING = ("mkdir", "open", "write", "link", "symlink", "mknod", "mkfifo")


class Effects:
    """Counts from 0. `at` is the number of the chosen one, None to count only; `how` is what becomes of it:

    `before`, `after`: this process kills itself there. `EIO`: that call fails, in its own way. `ENOSPC`, `EROFS`: from
    there on, no file system has space, or none can be written. `ours` tells whether a process is the one that counts.
    """

    def __init__(self, at: int | None, how: str, ours: Callable[[], bool]) -> None:
        self.at, self.how, self.ours = at, how, ours
        self.names: list[str] = []
        self.uncounted: list[str] = []
        self._inside = False

    def begin(self) -> None:
        """Bend this process."""
        bent = {(owner, name): self._counted(name, getattr(owner, name)) for owner, name in _CALLS}
        bent[os, "open"] = self._opening(os.open, lambda flags: bool(flags & _WRITING))
        bent[builtins, "open"] = self._opening(builtins.open, lambda mode: bool(set("wax+") & set(str(mode))))
        for (owner, name), call in bent.items():
            setattr(owner, name, call)
        sys.addaudithook(self._audit)

    def _opening(self, call: Callable[..., Any], writes: Callable[[Any], bool]) -> Callable[..., Any]:
        counted = self._counted("open", call)

        def opened(path: object, how: Any = "r", *arguments: Any, **more: Any) -> Any:  # noqa: ANN401 - as os.open
            if call is builtins_open and how == "r" and "mode" in more:
                how = more.pop("mode")
            harmless = not writes(how) or path == os.devnull
            return (call if harmless else counted)(path, how, *arguments, **more)

        return opened

    def _counted(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **more: Any) -> Any:  # noqa: ANN401 - whatever it bends
            if self._inside or not self.ours():
                return call(*arguments, **more)
            number, chosen = len(self.names), len(self.names) == self.at
            self.names.append(f"{name} {_told(arguments)}")
            self._fail(name, number, arguments)
            if chosen and self.how == "before":
                self._die()
            self._inside = True
            try:
                return call(*arguments, **more)
            finally:
                self._inside = False
                if chosen and self.how == "after" and self.ours():
                    self._die()

        return counted

    def _fail(self, name: str, number: int, arguments: tuple[Any, ...]) -> None:
        """Raise what the call would, where it is to fail."""
        if self.at is None or number < self.at or self.how in ("before", "after"):
            return
        if self.how == "EIO":
            if number == self.at:
                raise _own_failure(name)
            return
        filling = name in _FILLING and (name != "write" or stat.S_ISREG(os.fstat(arguments[0]).st_mode))
        if filling if self.how == "ENOSPC" else name in _FILES:
            code = getattr(errno, self.how)
            raise OSError(code, os.strerror(code), *(part for part in arguments[:1] if isinstance(part, str)))

    def _die(self) -> None:
        real_kill(os.getpid(), signal.SIGKILL)

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event in _AUDITED and not self._inside and self.ours():
            self.uncounted.append(f"{event} {_told(arguments)}")


def _own_failure(name: str) -> Exception:
    """How a call of this name fails that does not because of a file system."""
    if name == "set":
        return Trouble("compute mode: unknown error")
    code = {"fork": errno.EAGAIN, "kill": errno.EPERM, "pidfd_send_signal": errno.EPERM, "flock": errno.ENOLCK}
    number = code.get(name, errno.EIO)
    return OSError(number, os.strerror(number))


def _told(arguments: tuple[Any, ...]) -> str:
    return " ".join(str(argument)[:80] for argument in arguments if isinstance(argument, str | int))[:160]


real_kill = os.kill
builtins_open = builtins.open
