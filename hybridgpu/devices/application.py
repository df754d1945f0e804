"""One run of `node apply` over this machine's cards: who is in the way, clients stopped, cards cut, clients started.

What a card needs is cut's business, doing it recut's, who the clients are theirs; here is only the order, and that it
is kept whatever happens.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from hybridgpu.devices import recut
from hybridgpu.devices.clients import Clients, Running
from hybridgpu.devices.cut import Plan, Target
from hybridgpu.devices.effect import Card
from hybridgpu.devices.interrupt import Interrupts
from hybridgpu.devices.openfiles import OpenFiles, Process, process
from hybridgpu.devices.outcome import Outcome, State, findings
from hybridgpu.devices.port import Cutter, Holder, Unread, Use
from hybridgpu.model.finding import Finding


@dataclass(frozen=True, slots=True)
class Application:
    """How it went: each card, the clients that were stopped (or, foreseen, would be), and what there is to say.

    `down` are those that do not run again; `resumed` those that a run before had stopped, and that were (would be)
    started.
    """

    outcomes: tuple[Outcome, ...]
    clients: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    down: tuple[str, ...] = ()
    resumed: tuple[str, ...] = ()

    @property
    def changed(self) -> bool:
        """Whether anything was done to a card."""
        return any(outcome.done for outcome in self.outcomes)

    @property
    def to_change(self) -> bool:
        """Whether anything is still to be done to a card."""
        return any(outcome.left for outcome in self.outcomes)

    @property
    def good(self) -> bool:
        """Whether every card is as wanted."""
        return all(outcome.state.good for outcome in self.outcomes)


@dataclass(frozen=True, slots=True)
class Machine:
    """This machine's hands: its cards, who has their files open, which jobs' daemons have them, and the clients: the
    site's own are `more`.
    """

    cutter: Cutter
    files: OpenFiles
    daemons: recut.Others
    clients: Clients
    more: tuple[str, ...] = ()

    def holders(self, card: Card) -> tuple[Holder, ...] | Unread:
        """Who holds a card besides those in NVML's lists."""
        daemons = self.daemons(card)
        if isinstance(daemons, Unread):
            return daemons
        files = self.files(card)
        return files if isinstance(files, Unread) else (*daemons, *files)

    def holders_besides(self, running: Running) -> recut.Others:
        """The same without the clients that are left running: nobody is in the way of them, nor they of us."""

        def others(card: Card) -> tuple[Holder, ...] | Unread:
            found = self.holders(card)
            if isinstance(found, Unread) or not running.left:
                return found
            return tuple(h for h in found if h.use is not Use.OPEN_FILE or not running.leaves(process(h.pid)))

        return others


def foresee(targets: Sequence[Target], machine: Machine) -> Application:
    """What a run would do and what stands in its way, by what is seen now. Changes nothing.

    Raises OSError where what an earlier run has stopped cannot be read.
    """
    behind = machine.clients.left_behind()
    plans = recut.survey(targets, machine.cutter)
    if not any(plan.effects or not plan.may_begin for plan in plans):
        return Application(tuple(Outcome(plan.target.card, State.AS_WANTED) for plan in plans), resumed=behind)
    plans = recut.survey(targets, machine.cutter, machine.holders)
    running = machine.clients.running(machine.more)
    outcomes = tuple(_foreseen(plans, running))
    if running.blocked:
        outcomes = tuple(map(_held, outcomes))
    names = tuple(unit.name for unit in running.units) if _any_planned(outcomes) else ()
    return Application(outcomes, names, (*running.findings, *machine.files.findings()), resumed=behind)


def apply(targets: Sequence[Target], machine: Machine, before: recut.Before, interrupts: Interrupts) -> Application:
    """Brings the cards to their targets. `before` is called before each change to any of them.

    Where a workload is in the way nothing is touched, clients neither. What was stopped, now or by a run that was
    killed, is started again in the end. Raises Refused where a signal came before the first change; whoever calls
    then starts the clients (Clients.start_stopped), as after any other exception.
    """
    seen = foresee(targets, machine)
    if seen.good:
        done = seen
    elif _any_planned(seen.outcomes):
        done = _apply(targets, machine, before, interrupts, seen)
    else:
        done = replace(seen, clients=())
    started = machine.clients.start_stopped()
    outcomes = tuple(_told(outcome) for outcome in done.outcomes)
    return replace(
        done,
        outcomes=outcomes,
        findings=(*done.findings, *findings(outcomes), *started.findings),
        down=started.down,
        resumed=tuple(name for name in started.units if name not in done.clients),
    )


def _any_planned(outcomes: Iterable[Outcome]) -> bool:
    return any(outcome.state is State.PLANNED for outcome in outcomes)


def _apply(
    targets: Sequence[Target],
    machine: Machine,
    before: recut.Before,
    interrupts: Interrupts,
    seen: Application,
) -> Application:
    interrupts.check()
    running = machine.clients.running(machine.more)
    held = running.findings if running.blocked else machine.clients.stop(running.units, interrupts.check)
    if held:
        return replace(seen, outcomes=tuple(map(_held, seen.outcomes)), findings=(*seen.findings, *held))
    interrupts.check()
    machine.files.forget()
    others = machine.holders_besides(running)
    return replace(seen, outcomes=recut.apply(targets, machine.cutter, others, before))


def _held(outcome: Outcome) -> Outcome:
    if outcome.state is not State.PLANNED:
        return outcome
    return replace(outcome, state=State.WAITING, why="a client of the cards is not stopped")


def _foreseen(plans: Sequence[Plan], running: Running) -> Iterable[Outcome]:
    """Each plan as if it were tried now; one that its clients alone are in the way of is no obstacle."""
    cleared = [replace(plan, holders=_workloads(plan.holders, running)) for plan in plans]
    obstacle = next((str(plan.target.card) for plan in cleared if not plan.may_begin), "")
    for plan in cleared:
        if not plan.may_begin:
            yield _told(recut.not_begun(plan))
        elif not plan.effects:
            yield Outcome(plan.target.card, State.AS_WANTED)
        else:
            state, why = (State.WAITING, f"it waits for {obstacle}") if obstacle else (State.PLANNED, "")
            yield Outcome(plan.target.card, state, left=plan.effects, why=why)


def _workloads(holders: Sequence[Holder], running: Running) -> tuple[Holder, ...]:
    return tuple(holder for holder in holders if not running.owns(process(holder.pid)))


def _told(outcome: Outcome) -> Outcome:
    """The same, where it is in use with who uses it, as a person asks for it."""
    if outcome.state is not State.BUSY or not outcome.holders:
        return outcome
    return replace(outcome, why=f"it is used by {in_words(outcome.holders)}")


def in_words(holders: Iterable[Holder]) -> str:
    """Each process once, with all by which it holds the card."""
    by: dict[Process, list[str]] = {}
    for holder in holders:
        where = f" in GPU instance {holder.gi}" if holder.gi is not None else ""
        by.setdefault(process(holder.pid), []).append(f"{holder.use}{where}")
    return "; ".join(f"{who}: {', '.join(dict.fromkeys(uses))}" for who, uses in by.items())
