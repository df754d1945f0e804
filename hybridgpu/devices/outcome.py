"""How it went with each card that was to be brought to its target: as data, and as findings. Decides nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from hybridgpu.devices.effect import Card, Effect
from hybridgpu.devices.port import Holder
from hybridgpu.model.finding import Finding, Rule, Severity

_SOURCE = "NVML API reference, nvmlDeviceSetMigMode; MIG user guide"

BUSY = Rule(
    "device-busy",
    Severity.ERROR,
    "A card that must change is in use, so it stays as it is: nothing of it that is in use is ever taken away.",
    "Let the processes that are named end, or end them; where none is, see `fuser -v /dev/nvidia*`. Run it again.",
    _SOURCE,
)
NEEDS_RESET = Rule(
    "device-needs-reset",
    Severity.ERROR,
    "The card cannot be as wanted before it is reset: until then no program gets what is promised.",
    "Stop what holds the card, reset it (nvidia-smi --gpu-reset -i ADDRESS), and run it again; or reboot.",
    _SOURCE,
)
NEEDS_REBOOT = Rule(
    "device-needs-reboot",
    Severity.ERROR,
    "The card cannot be as wanted before this machine is rebooted: it cannot be reset from here, or is gone.",
    "Reboot the machine; if the card is gone again, have it replaced.",
    _SOURCE,
)
CUT_FAILED = Rule(
    "device-cut-failed",
    Severity.ERROR,
    "A card is not as wanted, since the driver did not do what was asked of it.",
    "See what the driver answered, and the kernel's log; run it again.",
    _SOURCE,
)
CARD_UNREAD = Rule(
    "device-cut-unread",
    Severity.ERROR,
    "How a card is cut, and who uses it, is not known: what cannot be read is not changed.",
    "Run it as root in the host's pid namespace; if the driver does not answer, see the kernel's log, and reset the "
    "card or reboot.",
    _SOURCE,
)
WAITING = Rule(
    "device-waiting",
    Severity.INFO,
    "A card that must change was left as it is, because of another card of the node, or of a service.",
    "Mend what it waits for, and run it again.",
    "docs/apply.md",
)


class State(StrEnum):
    """Where a card is left: it is as wanted (without or after a change), or why it is not.

    `planned`: foreseen to be changed, and nothing is in the way. `waiting`: not begun, because of another card of the
    node, or of a client.
    """

    AS_WANTED = "as-wanted"
    CHANGED = "changed"
    PLANNED = "planned"
    WAITING = "waiting"
    BUSY = "busy"
    NEEDS_RESET = "needs-reset"
    NEEDS_REBOOT = "needs-reboot"
    FAILED = "failed"
    UNREAD = "unread"

    @property
    def good(self) -> bool:
        """Whether the card is as wanted."""
        return self in (State.AS_WANTED, State.CHANGED)


_RULES = {
    State.WAITING: WAITING,
    State.BUSY: BUSY,
    State.NEEDS_RESET: NEEDS_RESET,
    State.NEEDS_REBOOT: NEEDS_REBOOT,
    State.FAILED: CUT_FAILED,
    State.UNREAD: CARD_UNREAD,
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """One card: `done` what was done to it, in order; `left` what is still to be done; `holders` who is in the way.

    `why` is a phrase where it is not as wanted. `rolled_back`: whether the card is again as it was before, its
    instances under new UUIDs; None where nothing had been taken from it.
    """

    card: Card
    state: State
    done: tuple[Effect, ...] = ()
    left: tuple[Effect, ...] = ()
    holders: tuple[Holder, ...] = ()
    why: str = ""
    rolled_back: bool | None = None


def findings(outcomes: Iterable[Outcome]) -> Iterator[Finding]:
    """What there is to say of the cards that are not as wanted, nor will be, one finding a card."""
    back = {None: "", True: "; it is again cut as it was", False: "; it could not be cut again as it was"}
    for outcome in outcomes:
        if outcome.state in _RULES:
            message = f"{outcome.card}: {outcome.why}{back[outcome.rolled_back]}"
            hint = NEEDS_RESET.fix.replace("ADDRESS", outcome.card.pci_bus_id)
            yield Finding(_RULES[outcome.state], None, message, hint if outcome.state is State.NEEDS_RESET else "")
