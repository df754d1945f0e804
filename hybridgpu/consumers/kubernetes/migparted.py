"""nvidia-mig-parted over a node's cards: which entry meets which card, whether a config holds, what applying it does.

Sources: mig-parted v0.15.0 cmd/nvidia-mig-parted/{assert,apply}, api/spec/v1/helpers.go, pkg/mig/config/config.go (its
SetMigConfig run over a mock NVML), pkg/types/mig_config.go.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from hybridgpu.consumers.kubernetes.migprofile import ProfileName, parse_profile
from hybridgpu.consumers.kubernetes.migspec import MigEntry
from hybridgpu.consumers.kubernetes.node import Card, Instance, Node
from hybridgpu.files.goscalar import integer
from hybridgpu.model.geometry import Misfit, arrange

VENDOR = 0x10DE
_ORDERINGS = "error setting MIGConfig: error attempting multiple config orderings: all orderings failed"
_IN_USE = "error clearing existing MIG configurations: error walking gpu instances: In use by another client"

_MOST = 64
"""More MIG devices than any card holds: a file may ask for any number."""

Config = Sequence[MigEntry]


@dataclass(frozen=True, slots=True)
class Applied:
    """The node after `apply`; `words` why it failed half-way. `reset`: all cards of the node were reset for it."""

    node: Node
    words: str | None = None
    reset: bool = False


def filter_id(text: str) -> tuple[int, int]:
    """Device and vendor that a device-filter stands for, (0, 0) for text that is no number: it never matches a card.

    Numbers are read in Go's base 0: without `0x` a PCI id is none. What follows a `:` is the subsystem.
    """
    parts = text.split(":")
    numbers = [integer(part) if "_" not in part and part[:1] not in ("+", "-") else None for part in parts]
    if len(parts) > 2 or any(number is None or not 0 <= number < 2**32 for number in numbers):
        return 0, 0
    first = numbers[0] or 0
    return first >> 16, first & 0xFFFF


def passes(entry: MigEntry, card: Card) -> bool:
    """Whether the filter lets the card through. A card whose id nobody knows passes; subsystems are not known here."""
    if not entry.filters or card.pci_id is None:
        return not entry.filters or any(filter_id(text)[1] == VENDOR for text in entry.filters)
    ids = {card.pci_id} if card.model is None else {int(i, 16) for i in card.model.pci_ids} | {card.pci_id}
    return any(filter_id(text)[0] in ids and filter_id(text)[1] == VENDOR for text in entry.filters)


def walk(config: Config, node: Node) -> Iterator[tuple[MigEntry, Card]]:
    """Every meeting of an entry and a card, entries outermost. Indices are of all cards, not of those that pass."""
    for entry in config:
        for card in node.cards:
            if passes(entry, card) and (entry.devices is None or card.index in entry.devices):
                yield entry, card


def assert_mode(config: Config, node: Node) -> str | None:
    """What keeps the MIG modes of a config from holding, or None. Every entry must hold, overlapping ones too."""
    for entry, card in walk(config, node):
        if card.mig is None:
            if entry.enabled:
                return f"card {card.index}: unable to assert MIG mode enabled on non MIG-capable GPU"
        elif card.mig != entry.enabled:
            return f"card {card.index}: current mode different than mode being asserted"
    return None


def assert_config(config: Config, node: Node) -> str | None:
    """What keeps a config from holding, or None. Every card must be met by an entry; of several the last one counts."""
    wrong = assert_mode(config, node)
    if wrong:
        return wrong
    matched = dict.fromkeys((card.index for card in node.cards), "no entry is for it")
    for entry, card in walk(config, node):
        same = not entry.enabled or counts_of(card) == entry.counts
        matched[card.index] = "" if same else f"it has {dict(counts_of(card))}"
    missing = next(((index, why) for index, why in matched.items() if why), None)
    return f"not all GPUs match the specified config: card {missing[0]}: {missing[1]}" if missing else None


def counts_of(card: Card) -> dict[str, int]:
    """The MIG devices of a card by canonical name, as mig-parted counts them."""
    return dict(Counter(_canonical(instance.profile) for instance in card.instances))


def apply(config: Config, node: Node, *, mode_only: bool = False, busy: frozenset[int] = frozenset()) -> Applied:
    """The node after the config was applied. `busy` cards are held by somebody: nothing on them can be taken away."""
    cards = {card.index: card for card in node.cards}
    reset = False
    if assert_mode(config, node):
        for entry, card in walk(config, node):
            words = _set_mode(entry, cards, card.index, busy)
            if words:
                return Applied(replace(node, cards=tuple(cards.values())), words)
        reset = any(cards[card.index].mig != card.mig for card in node.cards)
    after = replace(node, cards=tuple(cards.values()))
    if mode_only or not assert_config(config, after):
        return Applied(after, None, reset)
    for entry, card in walk(config, after):
        words = _set_config(entry, cards, card.index, after, busy)
        if words:
            return Applied(replace(node, cards=tuple(cards.values())), words, reset)
    return Applied(replace(node, cards=tuple(cards.values())), None, reset)


def _set_mode(entry: MigEntry, cards: dict[int, Card], index: int, busy: frozenset[int]) -> str | None:
    """Set one card's mode. Instances of every card met are cleared, also of one whose mode is right already."""
    card = cards[index]
    if card.mig is None:
        refused = entry.enabled and entry.devices is not None
        return "cannot set MIG mode on non MIG-capable GPU" if refused else None
    if index in busy and (card.mig != entry.enabled or card.instances):
        return _IN_USE if card.mig else "error setting Mig mode: In use by another client"
    cards[index] = replace(card, mig=entry.enabled, instances=())
    return None


def _set_config(entry: MigEntry, cards: dict[int, Card], index: int, node: Node, busy: frozenset[int]) -> str | None:
    card = cards[index]
    if card.mig is None:
        refused = entry.enabled and entry.devices is not None
        return "cannot set MIG config on non MIG-capable GPU" if refused else None
    if entry.enabled != card.mig:
        if entry.enabled:
            return "unable to apply MIG config with MIG mode disabled"
        return "MIG mode is currently enabled, but the configuration specifies it should be disabled"
    if not entry.enabled or counts_of(card) == entry.counts:
        return None
    if index in busy and card.instances:
        return f"{_ORDERINGS}: In use by another client"
    made = instances(entry, card, node)
    cards[index] = replace(card, instances=() if made is None else made)
    return _ORDERINGS if made is None else None


def instances(entry: MigEntry, card: Card, node: Node) -> tuple[Instance, ...] | None:
    """The MIG devices that applying an entry leaves on a card, largest first; None where no ordering fits.

    **A profile that no card of the node knows empties the list**: all instances are cleared and success is reported
    (MigConfig.Flatten returns nil where a name cannot be resolved).
    """
    names = {text: name for text in entry.counts if isinstance(name := parse_profile(text), ProfileName)}
    if any(not _known(name, node.cards) for name in names.values()):
        return ()
    if any(not _known(name, (card,)) for text, name in names.items() if entry.counts[text]):
        return None
    wanted = Counter({names[text]: count for text, count in entry.counts.items() if count and text in names})
    whole = gpu_instances(wanted)
    if card.model is not None and isinstance(arrange(card.model, whole), Misfit):
        return None
    if wanted.total() > _MOST:
        return None
    ordered = sorted(wanted.elements(), key=lambda name: (-name.g, -name.c, name.sign, name.attributes))
    return tuple(Instance(name.canonical) for name in ordered)


def gpu_instances(wanted: Counter[ProfileName]) -> dict[str, int]:
    """The GPU instances that compute instances of part of one need: as few as hold them, largest first."""
    rooms: dict[str, list[int]] = {}
    found: Counter[str] = Counter()
    for name in sorted(wanted, key=lambda name: -name.c):
        whole = replace(name, c=name.g).canonical
        if name.c == name.g:
            found[whole] += wanted[name]
            continue
        free = rooms.setdefault(whole, [])
        for _ in range(min(wanted[name], _MOST)):
            at = next((i for i, room in enumerate(free) if room >= name.c), None)
            if at is None:
                free.append(name.g - name.c)
                found[whole] += 1
            else:
                free[at] -= name.c
    return dict(found)


def _known(name: ProfileName, cards: Sequence[Card]) -> bool:
    """Whether one of these cards has the profile; parts of a GPU instance by go-nvlib's rule of thumb."""
    whole = replace(name, c=name.g).canonical
    part = name.c == name.g or (0 < name.c < name.g and name.c * 2 <= name.g + 1)
    return part and any(whole in card.profiles for card in cards)


def _canonical(profile: str) -> str:
    name = parse_profile(profile)
    return name.canonical if isinstance(name, ProfileName) else profile
