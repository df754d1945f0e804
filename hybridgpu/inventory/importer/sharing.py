"""How a node's GPUs are shared, from what each scheduler says of them: one mode, its number, or a layout per card."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hybridgpu.inventory.importer.document import Block, Entry, Value
from hybridgpu.inventory.importer.models import Counts, holds
from hybridgpu.inventory.importer.slurmview import SlurmView, usual
from hybridgpu.inventory.indices import shown_indices
from hybridgpu.model.catalogue import models
from hybridgpu.model.geometry import Misfit, arrange
from hybridgpu.model.gpu import GpuModel
from hybridgpu.model.sharing import Mode

MOST_CARDS = 16
"""More cards than this no node has whose MIG instances are counted and its cards are not."""


@dataclass(frozen=True, slots=True)
class Shares:
    """What goes into a `sharing` block. `layout` has per card index how it is cut, None for a whole one."""

    mode: Mode
    replicas: int | None = None
    layout: tuple[Counts | None, ...] = ()
    strategy: str = "mixed"
    rename: bool = False
    one_only: bool = True


def of_slurm(seen: SlurmView, layout: Sequence[Counts | None]) -> Shares:
    """The mode that Slurm's offer shows. `layout`: how each card of the node is cut; of those that Slurm does not have
    it counts only where Slurm's are not shared."""
    cut = seen.loose or any(card.instances for card in seen.cards)
    if any(layout) and (cut or not seen.shared):
        return Shares(Mode.MIG, layout=tuple(layout))
    if seen.shared == "mps":
        return Shares(Mode.MPS)
    each = usual(Counter(share for share in seen.shares if share > 1))
    return Shares(Mode.TIME_SLICING, each) if seen.shared and each else Shares(Mode.EXCLUSIVE)


def counts(profiles: Iterable[str]) -> Counts:
    """How many of each, in an order of their own, so that equal cards are equal."""
    return tuple(sorted(Counter(profiles).items(), key=lambda pair: (-float(pair[0].partition("g.")[0]), pair[0])))


def spread(total: Counts, cards: int | None) -> tuple[Counts, ...]:
    """Instances over the fewest cards that can hold them all alike, or over so many cards; () where none can.

    Where nobody says which instance is on which card: AutoDetect, and labels.
    """
    for number in (cards,) if cards else range(1, MOST_CARDS + 1):
        if any(count % number for _, count in total):
            continue
        each = tuple((profile, count // number) for profile, count in total)
        if any(holds(model, (each,)) for model in models()):
            return (each,) * number
    return ()


def deal(total: Counts, cards: int, model: GpuModel | None) -> tuple[Counts | None, ...]:
    """Instances dealt out over so many cards, large ones first, each on the first card that holds it beside the others.

    None for cards that are left over; () where they do not all fit on cards of the model, or of any where it is None.
    """
    for one in (model,) if model else models():
        dealt = _dealt(total, cards, one)
        if dealt:
            return (*(counts(cut.elements()) for cut in dealt), *(None,) * (cards - len(dealt)))
    return ()


def _dealt(total: Counts, cards: int, model: GpuModel) -> list[Counter[str]]:
    sizes = {profile.name: profile.size for profile in model.profiles}
    if any(profile not in sizes for profile, _ in total) or sum(n for _, n in total) > cards * model.slices:
        return []
    filled: list[Counter[str]] = []
    for profile in sorted(Counter(dict(total)).elements(), key=lambda name: -sizes[name]):
        card = next((c for c in filled if not isinstance(arrange(model, c + Counter([profile])), Misfit)), None)
        if card is None:
            card = Counter()
            filled.append(card)
        card[profile] += 1
    return filled if len(filled) <= cards else []


def block(shares: Shares, gpus: Sequence[GpuModel]) -> Block:
    """The `sharing` block of an entry with these cards."""
    entries = [Entry("mode", shares.mode.value)]
    if shares.mode is Mode.MIG:
        entries.append(Entry("layout", _layout(shares.layout[: len(gpus)])))
        entries += [Entry("migStrategy", shares.strategy)] if shares.strategy != "mixed" else []
    elif shares.replicas:
        entries.append(Entry("replicas", shares.replicas))
    if shares.mode in (Mode.TIME_SLICING, Mode.MPS):
        entries += [Entry("renameByDefault", True)] if shares.rename else []
        entries += [] if shares.one_only else [Entry("failRequestsGreaterThanOne", False)]
    return Block(tuple(entries))


def _layout(layout: Sequence[Counts | None]) -> dict[str, Value]:
    """`all` where all cards are cut alike, else sets of indices, in the order of their first card."""
    alike: dict[Counts | None, list[int]] = {}
    for index, cut in enumerate(layout):
        alike.setdefault(cut, []).append(index)
    said: dict[str, Value] = {}
    for cut, indices in alike.items():
        key = "all" if len(alike) == 1 else shown_indices(indices)
        said[key] = "off" if cut is None else dict(cut)
    return said
