"""A Cutter in a child: what it answers, what it raises, and what becomes of a child that hangs, dies or is wrong."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from typing import Self

import pytest

from hybridgpu.devices.limited import LimitedCutter
from hybridgpu.devices.outcome import State
from hybridgpu.devices.port import Cut, Unread
from hybridgpu.devices.recut import apply
from hybridgpu.errors import Bug, HybridgpuError, Unavailable
from hybridgpu.lab.card import LabCard
from hybridgpu.lab.cards import LabCards
from hybridgpu.model.geometry import layouts
from tests.lab.layouts import MODELS, UUID, cut, model, target

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")  # the test runner's threads

KNOWN = model(MODELS[0])


class Odd(LabCards):
    """A driver that is opened, and that does something odd when it is asked for a card that is not there."""

    def __init__(self, act: Callable[[], object], card: LabCard) -> None:
        super().__init__([card])
        self._act = act

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def look(self, card: str) -> Cut | Unread:
        if card not in self.cards:
            self._act()
        return super().look(card)


def limited(act: Callable[[], object], seconds: float = 20) -> LimitedCutter:
    card = cut(KNOWN, layouts(KNOWN)[0])
    return LimitedCutter(lambda: Odd(act, card), seconds)


def refuse() -> None:
    raise Unavailable("device", (), "no driver")


def stumble() -> None:
    raise KeyError("x")


def kill_itself() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def no_child() -> bool:
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return True
    return False


@pytest.mark.parametrize(
    ("act", "error", "said"),
    [
        (refuse, Unavailable, "no driver"),
        (stumble, Bug, "KeyError: 'x' (stumble, line"),
        (kill_itself, Unavailable, "ended with signal 9"),
        (lambda: os._exit(3), Unavailable, "ended with no word"),
    ],
)
def test_what_goes_wrong_is_told_and_the_next_call_is_served(
    act: Callable[[], object], error: type[HybridgpuError], said: str
) -> None:
    with limited(act) as cutter:
        for _ in range(2):
            with pytest.raises(error) as raised:
                cutter.look("GPU-other")
            assert said in str(raised.value)
            assert isinstance(cutter.look(UUID), Cut)
    assert no_child()


def test_one_that_hangs_is_given_up_in_time() -> None:
    before = time.monotonic()
    with limited(lambda: time.sleep(60), 0.3) as cutter:
        with pytest.raises(Unavailable, match=r"did not answer within 0\.3 s"):
            cutter.look("GPU-other")
        assert isinstance(cutter.look(UUID), Cut)
    assert time.monotonic() - before < 10
    assert no_child()


def test_one_child_makes_all_the_calls() -> None:
    """Opened once: what one call did is there for the next, though nothing of it is in this process."""
    wanted = target(layouts(KNOWN)[4])
    with limited(stumble) as cutter:
        assert apply([wanted], cutter)[0].state is State.CHANGED
        assert apply([wanted], cutter)[0].state is State.AS_WANTED
    with limited(stumble) as cutter:
        assert apply([wanted], cutter)[0].state is State.CHANGED


def test_a_signal_to_all_of_us_ends_the_parent_alone() -> None:
    """As Ctrl-C or systemd's stop send it: what is under way is brought to its end, and the parent says what then."""

    def signalled() -> None:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            os.kill(os.getpid(), number)

    with limited(signalled) as cutter:
        assert cutter.look("GPU-other") == Unread("nvmlDeviceGetHandleByUUID", "NOT_FOUND")
