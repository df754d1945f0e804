"""A driver that hangs, dies or is wrong does not take us with it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable

import pytest

from hybridgpu.devices.timelimit import Progress, TooLate, within
from hybridgpu.errors import Bug, HybridgpuError, Unavailable

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")  # the test runner's threads


def refuse() -> None:
    raise Unavailable("device", ("n1",), "no driver")


def stumble() -> None:
    raise KeyError("x")


@pytest.mark.parametrize("value", [None, 0, "x" * 10_000_000, {"a": (1, 2)}])
def test_what_is_done_in_time_is_given(value: object) -> None:
    assert within(30, lambda: value) == value


@pytest.mark.parametrize(
    ("work", "error", "said"),
    [
        (lambda: time.sleep(60), Unavailable, "did not answer within 0.3 s"),
        (refuse, Unavailable, "no driver"),
        (lambda: os.kill(os.getpid(), signal.SIGSEGV), Unavailable, "ended with signal 11"),
        (lambda: os._exit(3), Unavailable, "ended with no word"),
        (stumble, Bug, "KeyError: 'x' (stumble, line"),
    ],
)
def test_what_is_not_is_told(work: Callable[[], object], error: type[HybridgpuError], said: str) -> None:
    before = time.monotonic()
    with pytest.raises(error) as raised:
        within(0.3, work)
    assert said in str(raised.value)
    assert time.monotonic() - before < 10


def test_what_a_child_was_at_is_read_by_its_parent() -> None:
    progress = Progress()

    def hang() -> None:
        progress.at("card 7, " * 200)
        progress.at("card 8, \u00fc")
        time.sleep(60)

    assert str(progress) == ""
    with pytest.raises(TooLate):
        within(1, hang)
    assert str(progress) == "card 8, \u00fc"


def test_a_child_that_ignores_everything_is_gone_afterwards() -> None:
    def deaf() -> None:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        time.sleep(60)

    with pytest.raises(Unavailable):
        within(0.2, deaf)
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


def test_our_output_ends_even_while_the_child_hangs() -> None:
    """The child is left behind, as one that hangs in the kernel would be; whoever reads our stdout sees its end."""
    code = """
import os, time
from hybridgpu.devices import timelimit
timelimit.end_child = lambda child: print(child, flush=True)
try:
    timelimit.within(0.2, lambda: time.sleep(60))
except timelimit.Unavailable:
    os._exit(7)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=20)
    assert run.returncode == 7
    with pytest.raises(ProcessLookupError):  # it died with its parent
        for _ in range(100):
            os.kill(int(run.stdout), 0)
            time.sleep(0.02)
