"""Cards brought to their targets: look, plan, do the first effect, look again, until there is none left.

Where it stands is never remembered, only seen; so whoever was killed is started again and goes on. What fails half-way
is rolled back by the same walk, to what was there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from hybridgpu.devices.cut import Plan, Target, as_it_is, plan
from hybridgpu.devices.effect import Card, Effect, SetMig, perform
from hybridgpu.devices.outcome import Outcome, State
from hybridgpu.devices.port import Cut, Cutter, Holder, NotDone, Unread, Use
from hybridgpu.errors import Unavailable

Others = Callable[[Card], tuple[Holder, ...] | Unread]
"""Who holds a card besides those in NVML's lists; asked after the card itself was looked at."""

Before = Callable[[Effect], None]
"""Called before each effect is done, or tried again on the way back."""

_MOST_STEPS = 100
"""More than any card takes (8 instances away, 8 in their place, both modes): then somebody else is at work on it."""

_GONE = {
    "GPU_IS_LOST": State.NEEDS_REBOOT,
    "GPU_NOT_FOUND": State.NEEDS_REBOOT,
    "RESET_REQUIRED": State.NEEDS_RESET,
}
"""What an answer means for the card, whatever was asked (NVML API reference, nvmlReturn_t)."""


def nobody(card: Card) -> tuple[Holder, ...]:
    """Nobody else."""
    del card
    return ()


def in_silence(effect: Effect) -> None:
    """Nothing is done before an effect."""
    del effect


@dataclass(frozen=True, slots=True)
class _Stop:
    """Why a walk ended before the target, and the plan that was left then."""

    state: State
    why: str
    plan: Plan


def survey(targets: Sequence[Target], cutter: Cutter, others: Others = nobody) -> tuple[Plan, ...]:
    """What is to be done to each card; changes nothing. A card that does not answer is `unread`, and hides no other."""
    return tuple(_look(target, cutter, others)[0] for target in targets)


def not_begun(seen: Plan) -> Outcome:
    """How it stands with a card whose plan may not be begun."""
    return _outcome(_not_begun(seen), [])


def apply(
    targets: Sequence[Target], cutter: Cutter, others: Others = nobody, before: Before = in_silence
) -> tuple[Outcome, ...]:
    """Brings each card to its target, one after the other; nothing is begun where one of the plans may not be.

    Idempotent. A card that fails or is found in use on the way is rolled back, and those behind it are left as they
    are; one that needs a reset is not, and the others go on. Raises nothing on purpose: all is in the outcomes.
    """
    plans = survey(targets, cutter, others)
    stopped = next((str(p.target.card) for p in plans if not p.may_begin), "")
    outcomes: list[Outcome] = []
    for seen in plans:
        if not seen.may_begin:
            outcomes.append(not_begun(seen))
        elif not seen.effects:
            outcomes.append(Outcome(seen.target.card, State.AS_WANTED))
        elif stopped:
            outcomes.append(Outcome(seen.target.card, State.WAITING, left=seen.effects, why=f"it waits for {stopped}"))
        else:
            outcomes.append(_recut(seen.target, cutter, others, before))
            if outcomes[-1].state in (State.BUSY, State.FAILED, State.UNREAD):
                stopped = str(seen.target.card)
    return tuple(outcomes)


def _recut(target: Target, cutter: Cutter, others: Others, before: Before) -> Outcome:
    """One card to its target, or back."""
    first, was = _look(target, cutter, others)
    if was is None or not first.may_begin:
        return not_begun(first)
    done: list[Effect] = []
    stop = _walk(target, cutter, others, before, done)
    if stop is None:
        return Outcome(target.card, State.CHANGED if done else State.AS_WANTED, tuple(done))
    outcome = _outcome(stop, done)
    if stop.state in (State.NEEDS_RESET, State.NEEDS_REBOOT):
        return outcome
    undone: list[Effect] = []
    back = _walk(as_it_is(target.card, was), cutter, others, before, undone)
    if not undone and back is None:
        return outcome
    why = f"{outcome.why}; then, on the way back: {back.why}" if back and back.why != outcome.why else outcome.why
    return replace(outcome, done=(*done, *undone), why=why, rolled_back=back is None)


def _walk(target: Target, cutter: Cutter, others: Others, before: Before, done: list[Effect]) -> _Stop | None:
    """Does one effect after the other, and notes each that is seen to have been done; None where the target is met.

    An effect that is still the first to do after it was tried is not tried again.
    """
    tried: tuple[Effect, str | NotDone] | None = None
    for _ in range(_MOST_STEPS):
        left, _ = _look(target, cutter, others)
        if left.unread:
            return _not_begun(left)
        if tried and tried[0] not in left.effects:
            done.append(tried[0])
        elif tried:
            return _refused(left, *tried)
        if not left.may_begin:
            return _not_begun(left)
        if not left.effects:
            return None
        before(left.effects[0])
        tried = left.effects[0], _tried(left.effects[0], cutter)
    return _Stop(State.FAILED, "it is being cut by somebody else at the same time", left)


def _tried(effect: Effect, cutter: Cutter) -> str | NotDone:
    try:
        return perform(effect, cutter)
    except Unavailable as unavailable:
        return unavailable.why


def _look(target: Target, cutter: Cutter, others: Others) -> tuple[Plan, Cut | None]:
    """The plan by what is seen now, and that."""
    try:
        seen = cutter.look(target.card.uuid)
        if isinstance(seen, Unread):
            return Plan(target, unread=seen), None
        found = others(target.card)
        if isinstance(found, Unread):
            return Plan(target, unread=f"who holds it: {found}"), None
    except Unavailable as unavailable:
        return Plan(target, unread=unavailable.why), None
    seen = replace(seen, holders=(*seen.holders, *_besides(seen.holders, found)))
    return plan(target, seen), seen


def _besides(listed: Sequence[Holder], found: Sequence[Holder]) -> Iterator[Holder]:
    """Who holds a card besides NVML's lists. A process in them is not named once more for its open file; one that
    comes from such a process has inherited the file, and is where that one is: NVML takes an instance away beside it.
    """
    where: dict[int, list[Holder]] = {}
    for holder in listed:
        where.setdefault(holder.pid, []).append(holder)
    for holder in found:
        if holder.use is not Use.OPEN_FILE:
            yield holder
        elif holder.pid not in where:
            nearest = next((pid for pid in holder.ancestors if pid in where), None)
            yield from [replace(holder, gi=h.gi, ci=h.ci) for h in where[nearest]] if nearest else [holder]


def _not_begun(left: Plan) -> _Stop:
    if left.unread:
        answer = left.unread.answer if isinstance(left.unread, Unread) else ""
        state = State.NEEDS_REBOOT if answer == "NOT_FOUND" else _GONE.get(answer, State.UNREAD)  # no card of this UUID
        return _Stop(state, str(left.unread), left)
    if left.impossible:
        return _Stop(State.FAILED, left.impossible, left)
    names = ", ".join(map(str, left.holders))
    return _Stop(State.BUSY, f"it is used by {names}", left)


def _refused(left: Plan, effect: Effect, answer: str | NotDone) -> _Stop:
    """What it means that an effect was tried and is still to be done."""
    what = str(effect).partition(": ")[2]
    if isinstance(answer, NotDone):
        state = State.BUSY if answer.answer == "IN_USE" else _GONE.get(answer.answer, State.FAILED)
        unseen = ", of a client that no list shows" if state is State.BUSY and not left.holders else ""
        return _Stop(state, f"it did not {what}: {answer}{unseen}", left)
    if isinstance(effect, SetMig):
        return _pending(left, effect, answer)
    return _Stop(State.FAILED, f"it did not {what}: {answer}", left)


def _pending(left: Plan, effect: SetMig, answer: str) -> _Stop:
    """A mode that was taken and not activated: the card is in use, or cannot be reset from here, as where it is passed
    through to a virtual machine (NVML API reference, nvmlDeviceSetMigMode).
    """
    mode = "on" if effect.on else "off"
    if left.holders:
        return _not_begun(left)
    if answer == "RESET_REQUIRED":
        return _Stop(State.NEEDS_REBOOT, f"MIG is {mode} after a reboot: the card cannot be reset from here", left)
    why = "a client that no list shows holds the card" if answer == "IN_USE" else f"its reset answered {answer}"
    return _Stop(State.NEEDS_RESET, f"MIG is {mode} after the card's reset: {why}", left)


def _outcome(stop: _Stop, done: list[Effect]) -> Outcome:
    left = stop.plan
    return Outcome(left.target.card, stop.state, tuple(done), left.effects, left.holders, stop.why)
