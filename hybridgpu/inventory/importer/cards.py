"""A node's cards in the order of their index, from everything that shows them: facts, Slurm's offer, Kubernetes.

Facts have the cards as they are, Slurm and Kubernetes as they are wanted: for how a card is cut these come first.
Without facts the index is the place in the order of minor numbers, as it is on most machines.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from hybridgpu.inventory.importer.kubeview import KubeView
from hybridgpu.inventory.importer.models import Clue, Counts, possible
from hybridgpu.inventory.importer.sharing import counts, spread
from hybridgpu.inventory.importer.slurmview import SeenCard, SeenInstance, SlurmView
from hybridgpu.model.catalogue import NotFound, identify
from hybridgpu.model.facts import Facts, GpuFacts
from hybridgpu.model.sharing import Scheduler


@dataclass(frozen=True, slots=True)
class Card:
    """One card as it is known. `type`: what Slurm calls it whole; `owner`: None where one scheduler has them all."""

    clue: Clue
    type: str | None = None
    layout: Counts | None = None
    owner: Scheduler | None = None


def cards_of(
    seen: SlurmView | None, facts: Facts | None, kube: KubeView | None, hints: tuple[str, ...]
) -> tuple[Card, ...]:
    """The cards of one node; () where nothing shows them."""
    if facts:
        found = tuple(_of_facts(facts, seen, kube))
    elif seen and (seen.cards or seen.loose or seen.kept):
        found = tuple(_of_slurm(seen, kube))
    else:
        found = tuple(_of_kubernetes(kube)) if kube else ()
    return _with_clues(found, kube, hints)


def _of_facts(facts: Facts, seen: SlurmView | None, kube: KubeView | None) -> Iterator[Card]:
    in_slurm = {card.minor: card for card in seen.cards} if seen else {}
    untold = any(card.minor is None for card in seen.cards) if seen else True
    layout = kube.layout if kube else ()
    for index, gpu in enumerate(facts.gpus):
        model = identify(gpu.model, gpu.memory_bytes)
        known = None if isinstance(model, NotFound) else model
        clue = Clue(known, hints=(gpu.model,))
        card = in_slurm.get(gpu.minor)
        if card:
            owner = Scheduler.SLURM if seen and seen.kept else None
            yield Card(replace(clue, word=card.type), card.type, _cut(card), owner)
            continue
        cut = layout[index] if index < len(layout) else _cut_in_facts(gpu)
        owner = Scheduler.KUBERNETES if in_slurm and not untold else None
        yield Card(clue, None, cut, owner)


def _of_slurm(seen: SlurmView, kube: KubeView | None) -> Iterator[Card]:
    layout = kube.layout if kube else ()
    mine = {card.minor: card for card in seen.cards if card.minor is not None}
    for index, minor in enumerate(sorted({*mine, *seen.kept})):
        if minor in mine:
            card = mine[minor]
            clue = Clue(word=card.type or _prefix(card.instances), parts=_parts(card.instances))
            yield Card(clue, card.type, _cut(card), Scheduler.SLURM if seen.kept else None)
        else:
            yield Card(Clue(), None, layout[index] if index < len(layout) else None, Scheduler.KUBERNETES)
    for card in seen.cards:
        if card.minor is None:
            yield Card(Clue(word=card.type), card.type)
    for cut in spread(counts(i.profile for i in seen.loose), None) if seen.loose else ():
        yield Card(Clue(word=_prefix(seen.loose)), None, cut)


def _prefix(instances: Sequence[SeenInstance]) -> str | None:
    return next((instance.prefix for instance in instances if instance.prefix), None)


def _parts(instances: Sequence[SeenInstance]) -> tuple[tuple[str, int], ...]:
    return tuple(dict.fromkeys((i.profile, i.parts) for i in instances if i.parts))


def _of_kubernetes(kube: KubeView) -> Iterator[Card]:
    for index in range(kube.count or 0):
        yield Card(Clue(kube.model), None, kube.layout[index] if index < len(kube.layout) else None)


def _cut(card: SeenCard) -> Counts | None:
    return counts(instance.profile for instance in card.instances) or None


def _cut_in_facts(gpu: GpuFacts) -> Counts | None:
    return counts(instance.profile for instance in gpu.instances) or None if gpu.mig_enabled else None


def _with_clues(cards: tuple[Card, ...], kube: KubeView | None, hints: tuple[str, ...]) -> tuple[Card, ...]:
    """The cards with what the node as a whole tells of each."""
    words = list(dict.fromkeys(card.type for card in cards if card.type))
    label = kube.model if kube and len(words) < 2 else None
    common = _common(cards, words)
    done = []
    for card in cards:
        clue = card.clue
        if not clue.known:
            own = (card.layout,) if card.layout else ()
            clue = common or replace(clue, word=clue.word or card.type, layouts=own)
        done.append(replace(card, clue=replace(clue, known=clue.known or label, hints=(*clue.hints, *hints))))
    return tuple(done)


def _common(cards: tuple[Card, ...], words: list[str]) -> Clue | None:
    """One clue for all cards of a node that may be of one model: they have one type, and one model can be cut as all
    of them are. None where they must be told apart."""
    cuts = tuple(dict.fromkeys(card.layout for card in cards if card.layout))
    prefixes = tuple(dict.fromkeys(card.clue.word for card in cards if card.layout and card.clue.word))
    parts = tuple(dict.fromkeys(part for card in cards for part in card.clue.parts))
    if len(words) > 1 or not (cuts or words):
        return None
    clue = Clue(word=(*words, *prefixes, None)[0], layouts=cuts, parts=parts, hints=prefixes)
    return clue if not cuts or possible(clue, strictly=True) else None
