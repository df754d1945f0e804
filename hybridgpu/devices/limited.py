"""A Cutter behind a time limit: the real one works in a child, one call at a time, and is left behind where it hangs.

One child serves many calls, since opening NVML takes seconds on a machine whose cards nothing else keeps awake.
"""

from __future__ import annotations

import os
import pickle
import select
import signal
import socket
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Never, Self

from hybridgpu.devices.forwarded import Forwarded
from hybridgpu.devices.port import Cutter
from hybridgpu.devices.timelimit import (
    bug_in_words,
    die_with_parent,
    end_child,
    end_in_words,
    let_go_of_files,
    too_late,
)
from hybridgpu.errors import Bug, Unavailable

_LENGTH = 8


class LimitedCutter(Forwarded):
    """A `Cutter` each call of which takes at most so many seconds, the first and each after one that hung with what it
    takes to open it. To be entered.

    A call that takes longer, or whose child dies, raises Unavailable("device", ...); the next one has another child.
    """

    def __init__(self, opened: Callable[[], AbstractContextManager[Cutter]], seconds: float) -> None:
        self._opened, self._seconds = opened, seconds
        self._child: tuple[int, socket.socket] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._drop()

    def _call(self, method: str, *arguments: object) -> Any:  # noqa: ANN401 - each method's own
        if self._child is None:
            self._child = _start(self._opened)
        line = self._child[1]
        deadline = time.monotonic() + self._seconds
        try:
            _send(line, (method, arguments))
            answer = _receive(line, deadline)
        except TimeoutError:
            self._drop()
            raise too_late(self._seconds, f"the card {arguments[0]}") from None
        except (EOFError, OSError):
            how = end_in_words(self._drop())
            raise Unavailable("device", (), f"asking the driver ended with {how}") from None
        kind, value = pickle.loads(answer)  # noqa: S301 - from our own child
        if kind == "done":
            return value
        self._drop()  # what it had open may be void
        raise Unavailable("device", (), value) if kind == "unavailable" else Bug(value)

    def _drop(self) -> int | None:
        """Ends the child, if there is one, and gives its status."""
        if self._child is None:
            return None
        child, line = self._child
        self._child = None
        line.close()
        return end_child(child)


def _start(opened: Callable[[], AbstractContextManager[Cutter]]) -> tuple[int, socket.socket]:
    ours, theirs = socket.socketpair()
    child = os.fork()
    if not child:
        _serve(theirs, opened)
    theirs.close()
    return child, ours


def _serve(line: socket.socket, opened: Callable[[], AbstractContextManager[Cutter]]) -> Never:
    """The child: answers until nobody asks. When to stop is its parent's to say, not a signal's to both."""
    try:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        let_go_of_files(line.fileno())
        die_with_parent()
        request = pickle.loads(_receive(line, None))  # noqa: S301 - from our own parent
        try:
            with opened() as cutter:
                while True:
                    method, arguments = request
                    _send(line, ("done", getattr(cutter, method)(*arguments)))
                    request = pickle.loads(_receive(line, None))  # noqa: S301
        except Unavailable as error:
            _send(line, ("unavailable", error.why))
        except (EOFError, OSError):
            pass
        except Exception as error:
            _send(line, ("bug", bug_in_words(error)))
    finally:
        os._exit(0)


def _send(line: socket.socket, value: object) -> None:
    content = pickle.dumps(value)
    line.sendall(len(content).to_bytes(_LENGTH, "big") + content)


def _receive(line: socket.socket, deadline: float | None) -> bytes:
    """One message. Raises EOFError where there is none any more, TimeoutError where the deadline is over."""
    length = int.from_bytes(_exactly(line, _LENGTH, deadline), "big")
    return _exactly(line, length, deadline)


def _exactly(line: socket.socket, length: int, deadline: float | None) -> bytes:
    content = b""
    while len(content) < length:
        left = None if deadline is None else deadline - time.monotonic()
        if left is not None and (left <= 0 or not select.select([line], [], [], left)[0]):
            raise TimeoutError
        part = line.recv(length - len(content))
        if not part:
            raise EOFError
        content += part
    return content
