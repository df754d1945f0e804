"""The lab's card and the simulated driver's are one card: the same operations, the same answers, the same to see."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from hybridgpu.devices.limited import LimitedCutter
from hybridgpu.devices.nvmlcut import NvmlCutter
from hybridgpu.devices.port import ComputeInstance, Cut, Cutter, GpuInstance, Holder, NotDone, Unread, Use
from hybridgpu.errors import Unavailable
from hybridgpu.lab.card import Broken, LabCard
from hybridgpu.lab.cards import LabCards
from hybridgpu.model.catalogue import NotFound, find
from hybridgpu.model.gpu import GpuModel, Placement
from hybridgpu.model.sharing import ComputeMode
from testbed.driver import library
from testbed.driver.library import NvmlError
from testbed.driver.machine import WHOLE_CARD, Machine
from tests.conftest import soak
from tests.simulated import load_driver

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")  # the test runner's threads

UUID = "GPU-11111111-2222-3333-4444-555555555555"
AMPERE, HOPPER, A30 = "A100-SXM4-80GB", "H100-80GB-HBM3", "A30"
MODELS = (AMPERE, HOPPER, A30, "H200", "RTX-PRO-6000-Blackwell-Server-Edition")


def model(name: str) -> GpuModel:
    found = find(name)
    assert not isinstance(found, NotFound)
    return found


@dataclass(frozen=True)
class Both:
    """One card twice: each operation is done on both, and what comes of it must be the same."""

    lab: LabCard
    machine: Machine
    cutters: tuple[Cutter, Cutter]

    def answer(self, method: str, *arguments: object) -> object:
        """The answers' common part: calls are named by who makes them, an answer is the card's."""
        answers = [_plain(getattr(cutter, method)(UUID, *arguments)) for cutter in self.cutters]
        assert answers[0] == answers[1], (method, arguments)
        assert self.seen() is not None
        return answers[0]

    def seen(self) -> Cut | Unread:
        seen = [cutter.look(UUID) for cutter in self.cutters]
        assert _without_uuids(seen[0]) == _without_uuids(seen[1])
        return seen[0]

    def destroy(self, at: int, ci: int | None) -> object:
        """Destroys what each of them has there under a UUID of its own."""
        answers = []
        for cutter in self.cutters:
            seen = cutter.look(UUID)
            assert isinstance(seen, Cut)
            instance = seen.instances[at]
            if ci is None:
                answers.append(_plain(cutter.destroy_gpu_instance(UUID, instance)))
            else:
                compute = instance.computes[ci]
                answers.append(_plain(cutter.destroy_compute_instance(UUID, instance.placement, compute)))
        assert answers[0] == answers[1]
        return answers[0]

    def run(self, holder: Holder) -> None:
        self.lab.run(holder)
        gi, ci = (WHOLE_CARD if i is None else i for i in (holder.gi, holder.ci))
        self.machine.run(0, holder.pid, holder.use.value, gi, ci)

    def end(self, pid: int) -> None:
        self.lab.end(pid)
        self.machine.end(pid)

    def outside(self, act: str) -> str:
        """A reset or a reboot, and what it says."""
        said = getattr(self.lab, act)()
        try:
            getattr(self.machine, act)(*([0] if act == "reset" else []))
        except NvmlError:
            assert said not in (None, "SUCCESS")
        else:
            assert said in (None, "SUCCESS")
        return said or "SUCCESS"

    def break_card(self, how: Broken | None) -> None:
        self.lab.broken = how
        self.machine.break_card(0, how.value if how else "none")


def _plain(answer: object) -> object:
    return answer.answer if isinstance(answer, NotDone) else answer


def _without_uuids(seen: Cut | Unread) -> Cut | str:
    if isinstance(seen, Unread):
        return seen.answer
    return replace(
        seen,
        instances=tuple(
            replace(i, computes=tuple(replace(c, uuid=c.uuid[:4]) for c in i.computes)) for i in seen.instances
        ),
    )


@contextmanager
def both(root: Path, name: str, passthrough: bool = False) -> Iterator[Both]:
    machine = Machine.make(root, {"gpus": [{"model": name, "uuid": UUID, "passthrough": passthrough}]})
    lab = LabCard(model(name), UUID, passthrough=passthrough)
    with library.over(machine.root), NvmlCutter() as real:
        yield Both(lab, machine, (LabCards([lab]), real))


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., Any]:
    load_driver()
    return lambda name, **more: both(tmp_path, name, **more)


def random_step(pair: Both, chance: random.Random) -> None:
    """One operation that a card may be asked for, right or wrong, or that befalls it."""
    seen, known = pair.seen(), pair.lab.model
    assert isinstance(seen, Cut)
    places = [i.placement for i in seen.instances] or [Placement(0, 1)]
    match chance.randrange(12):
        case 0 | 1 | 2 | 3:
            profile = chance.choice(known.profiles)
            start = chance.choice(profile.starts) if chance.random() < 0.9 else chance.randrange(8)
            pair.answer("create_gpu_instance", profile.name, Placement(start, profile.size))
        case 4 | 5 | 6:
            spanning = [int(i.profile.partition("g")[0]) for i in seen.instances if i.placement == places[0]] or [1]
            slices = chance.choice([spanning[0], chance.randrange(1, 9)])
            pair.answer(
                "create_compute_instance", places[0] if chance.random() < 0.5 else chance.choice(places), slices
            )
        case 7 if seen.instances:
            at = chance.randrange(len(seen.instances))
            computes = seen.instances[at].computes
            pair.destroy(at, chance.randrange(len(computes)) if computes else None)
        case 8:
            pair.answer("set_mig", chance.random() < 0.7)
        case 9:
            pair.answer("set_compute_mode", chance.choice(list(ComputeMode)))
        case 10:
            slots = [(i.gi, c.ci) for i in seen.instances for c in i.computes]
            gi, ci = chance.choice(slots or [(None, None)])
            exclusive = seen.compute_mode is not ComputeMode.DEFAULT
            if bool(slots) == pair.lab.mig and not exclusive and len(seen.holders) < 4:
                pair.run(Holder(chance.randrange(100, 10_000), chance.choice(list(Use)[:3]), gi, ci))
        case _ if seen.holders:
            pair.end(chance.choice(seen.holders).pid)
        case _:
            pair.outside(chance.choice(["reset", "reboot"]) if chance.random() < 0.1 else "reset")


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("passthrough", [False, True])
def test_any_operations_give_the_same(name: str, passthrough: bool, make: Callable[..., Any]) -> None:
    chance = random.Random(11)
    with make(name, passthrough=passthrough) as pair:
        for _ in range(soak(150, 5_000)):
            random_step(pair, chance)
        seen = pair.seen()
        assert isinstance(seen, Cut)


@pytest.mark.parametrize("name", [AMPERE, HOPPER])
@pytest.mark.parametrize("how", [how for how in Broken if how is not Broken.HANG])
def test_a_broken_card_answers_the_same(name: str, how: Broken, make: Callable[..., Any]) -> None:
    with make(name) as pair:
        pair.answer("set_mig", True)
        pair.answer("create_gpu_instance", pair.lab.model.profiles[0].name, Placement(0, 1))
        pair.break_card(how)
        pair.seen()
        pair.answer("set_mig", False)
        pair.answer("set_compute_mode", ComputeMode.DEFAULT)
        pair.answer("create_gpu_instance", pair.lab.model.profiles[0].name, Placement(1, 1))
        pair.answer("create_compute_instance", Placement(0, 1), 1)
        pair.break_card(None)
        assert pair.outside("reset") == "SUCCESS"
        assert pair.seen() == Cut(pair.lab.seen().mig, ComputeMode.DEFAULT, (), ())


def test_a_card_without_mig_answers_the_same(make: Callable[..., Any]) -> None:
    with make("T4") as pair:
        assert pair.answer("set_mig", True) == "NOT_SUPPORTED"
        seen = pair.seen()
        assert isinstance(seen, Cut)
        assert seen.mig is None
        assert pair.answer("set_compute_mode", ComputeMode.PROHIBITED) is None


def test_what_is_not_there_any_more_is_not_found(make: Callable[..., Any]) -> None:
    old = ComputeInstance(0, 1, "MIG-of-another")
    with make(AMPERE) as pair:
        pair.answer("set_mig", True)
        pair.answer("create_gpu_instance", "1g.10gb", Placement(3, 1))
        pair.answer("create_compute_instance", Placement(3, 1), 1)
        assert pair.answer("destroy_compute_instance", Placement(3, 1), old) == "NOT_FOUND"
        assert pair.answer("destroy_compute_instance", Placement(4, 1), old) == "NOT_FOUND"
        for instance in (
            GpuInstance(10, "1g.10gb+me", Placement(3, 1), ()),
            GpuInstance(11, "1g.10gb", Placement(3, 1), ()),
            GpuInstance(11, "1g.10gb", Placement(4, 1), ()),
        ):
            assert pair.answer("destroy_gpu_instance", instance) == "NOT_FOUND"
        for cutter in pair.cutters:
            assert cutter.look("GPU-none") == Unread("nvmlDeviceGetHandleByUUID", "NOT_FOUND")


def test_a_card_that_hangs_raises_and_the_next_call_is_served(make: Callable[..., Any]) -> None:
    with make(AMPERE) as pair, LimitedCutter(NvmlCutter, 0.5) as limited:
        for cutter in (LabCards([pair.lab]), limited):
            assert isinstance(cutter.look(UUID), Cut)
            pair.break_card(Broken.HANG)
            with pytest.raises(Unavailable):
                cutter.look(UUID)
            with pytest.raises(Unavailable):
                cutter.set_mig(UUID, True)
            pair.break_card(None)
            assert isinstance(cutter.look(UUID), Cut)
