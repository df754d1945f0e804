"""What a program does in the end, as data: it refuses, it waits, or it runs. Judges nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from hybridgpu.model.offer import KubernetesOffer


class Stage(StrEnum):
    """How far a program came before it refused: reading the file, checking its flags, starting."""

    CONFIG = "config"
    FLAGS = "flags"
    START = "start"


@dataclass(frozen=True, slots=True)
class Refused:
    """The program exits 1, again at every restart. `words` are its own, after what says how far it came."""

    stage: Stage
    words: str

    def __str__(self) -> str:
        return self.words if self.stage is Stage.START else f"{self.stage}: {self.words}"


@dataclass(frozen=True, slots=True)
class Waits:
    """The program runs, offers nothing and tries again for ever (every 30 s); `words` are in its log."""

    words: str


@dataclass(frozen=True, slots=True)
class PluginRuns:
    """The device plugin offers this; `warnings` are in its log."""

    offer: KubernetesOffer
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Labelled:
    """GPU feature discovery's labels. `either`: labels whose value is one of several at random (Go's map order)."""

    labels: Mapping[str, str]
    warnings: tuple[str, ...] = ()
    either: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MpsDaemon:
    """One MPS control daemon: the resource it serves, the cards, and what it is told after its start.

    While it runs its cards are in compute mode EXCLUSIVE_PROCESS; it sets DEFAULT only when it is stopped in order.
    """

    resource: str
    cards: tuple[int, ...]
    commands: tuple[str, ...]
    pipe_directory: str


@dataclass(frozen=True, slots=True)
class MpsRuns:
    """The MPS control daemon's daemons; none where nothing is shared by MPS: then it waits for ever, harmless."""

    daemons: tuple[MpsDaemon, ...] = ()


PluginOutcome = PluginRuns | Waits | Refused
LabelOutcome = Labelled | Refused
MpsOutcome = MpsRuns | Waits | Refused
