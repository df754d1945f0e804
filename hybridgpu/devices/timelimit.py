"""A time limit for what may hang in the kernel, where no signal reaches it: it runs in a child that can be left behind.

The child holds none of our files open, so that whoever reads our output sees its end, hanging driver or not.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import pickle
import select
import signal
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Never, TypeVar

from hybridgpu.errors import Bug, Unavailable

T = TypeVar("T")

_PR_SET_PDEATHSIG = 1
_LENGTH = 8
_MOST_WORDS = 512
_GRACE = 0.2
"""Seconds to wait for a child that was killed: one that hangs in the kernel never goes."""


class Progress:
    """What a child is at, for its parent to read when the child hangs. Made before the child is, and shared with it."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, _MOST_WORDS)

    def at(self, words: str) -> None:
        """Notes what is done next."""
        self._memory[:] = words.encode(errors="replace")[:_MOST_WORDS].ljust(_MOST_WORDS, b"\0")

    def __str__(self) -> str:
        """What was noted last; empty where nothing was."""
        return self._memory[:].rstrip(b"\0").decode(errors="replace")


class TooLate(Unavailable):
    """The time was over before there was an answer."""


def within(seconds: float, work: Callable[[], T]) -> T:
    """What `work` gives, in a child. Raises TooLate where that takes longer; Unavailable("device", ...) where the child
    dies; Unavailable as `work` raises it; Bug for what else it raises.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        _work(reader, writer, work)
    os.close(writer)
    try:
        answer = _answer(reader, time.monotonic() + seconds)
    finally:
        os.close(reader)
        status = end_child(child)
    if answer is None:
        raise too_late(seconds)
    length, body = answer[:_LENGTH], answer[_LENGTH:]
    if len(length) < _LENGTH or len(body) < int.from_bytes(length, "big"):  # it ended on the way
        raise Unavailable("device", (), f"reading the driver ended with {end_in_words(status)}")
    kind, value = pickle.loads(body)  # noqa: S301 - from our own child
    if kind == "unavailable":
        raise Unavailable(*value)
    if kind == "bug":
        raise Bug(value)
    result: T = value
    return result


def _answer(reader: int, deadline: float) -> bytes | None:
    """All that comes through the pipe until it is closed; None where that is not before the deadline."""
    parts: list[bytes] = []
    while (left := deadline - time.monotonic()) > 0:
        if not select.select([reader], [], [], left)[0]:
            break
        part = os.read(reader, 1 << 16)
        if not part:
            return b"".join(parts)
        parts.append(part)
    return None


def end_child(child: int) -> int | None:
    """Kills the child, if it is still there, and gives its status; None where it does not go."""
    deadline = time.monotonic() + _GRACE
    while time.monotonic() < deadline:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return status
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        time.sleep(0.002)
    return None


def _work(reader: int, writer: int, work: Callable[[], Any]) -> Never:
    """The child: works, answers, and ends without a word; it dies with its parent."""
    try:
        os.close(reader)
        let_go_of_files(writer)
        die_with_parent()
        answer: tuple[str, Any]
        try:
            answer = ("done", work())
        except Unavailable as error:
            answer = ("unavailable", (error.plane, error.nodes, error.why))
        except Exception as error:
            answer = ("bug", bug_in_words(error))
        content = pickle.dumps(answer)
        view = memoryview(len(content).to_bytes(_LENGTH, "big") + content)
        while view:
            view = view[os.write(writer, view) :]
    finally:
        os._exit(0)


def too_late(seconds: float, card: str = "a card") -> TooLate:
    """What to raise where a driver took longer than that; `card` where it is known which one it was asked for."""
    why = f"the driver did not answer within {seconds:g} s: {card} hangs; see the kernel's log (dmesg)"
    return TooLate("device", (), why)


def end_in_words(status: int | None) -> str:
    """How a child ended that did not answer, by what `end_child` gave."""
    return f"signal {os.WTERMSIG(status)}" if status is not None and os.WIFSIGNALED(status) else "no word"


def bug_in_words(error: Exception) -> str:
    """An exception that nobody meant, with the place where it was raised, which its child alone knows."""
    where = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} ({where.name}, line {where.lineno})"


def die_with_parent() -> None:
    """Has the kernel kill this process when the one that forked it ends, however that ends."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def let_go_of_files(keep: int) -> None:
    """Closes every file of this process but one; in the place of the standard ones there is /dev/null."""
    null = os.open(os.devnull, os.O_RDWR)
    for standard in range(3):
        os.dup2(null, standard)
    os.closerange(3, keep)
    os.closerange(keep + 1, os.sysconf("SC_OPEN_MAX"))
