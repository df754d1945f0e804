"""Which GPU model a card is, from what is known of it: facts, a product label, Slurm's type, how it is cut.

What leaves several models possible is decided for one of them, with the reason: all cards that have a clue in common
get the same answer. Knows neither nodes nor files.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from hybridgpu.model.catalogue import NotFound, find, models
from hybridgpu.model.geometry import Misfit, arrange, leftover
from hybridgpu.model.gpu import GpuModel, Instance
from hybridgpu.model.naming import type_prefix

_BLIND = "A100-SXM4-80GB"
"""What stands for a card of which nothing is known: for whole GPUs the model changes nothing but names."""

_SHOWN = 6
_LABEL_ENDINGS = re.compile(r"(-MIG-[0-9a-z.+-]+?|-MIG-INVALID)?(-SHARED)?$", re.IGNORECASE)


Counts = tuple[tuple[str, int], ...]
"""How many of each profile a card is cut into."""


@dataclass(frozen=True, slots=True)
class Clue:
    """What is known of cards that are alike. `known`: their model, beyond doubt. `word`: what Slurm calls them.
    `layouts`: how they are cut, as counts of each profile. `parts`: into how many of a profile's size a card goes.
    `hints`: words of the node that may name them (Features)."""

    known: GpuModel | None = None
    word: str | None = None
    layouts: tuple[Counts, ...] = ()
    parts: tuple[tuple[str, int], ...] = ()
    hints: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Choice:
    """A model, why it is a guess (empty where it is none), and whether nothing at all spoke for it."""

    model: GpuModel
    why: str = ""
    blind: bool = False


class Models:
    """What a site's clues stand for, each seen in the light of all others."""

    def __init__(self, clues: Iterable[Clue]) -> None:
        every = list(dict.fromkeys(clues))
        self._learned: dict[str, set[str]] = {}
        self._narrowed: dict[str, set[str]] = {}
        self._used: Counter[str] = Counter()
        for clue in every:
            names = {model.name for model in possible(clue)}
            if clue.known:
                self._used[clue.known.name] += 1
            if clue.word and clue.known:
                self._learned.setdefault(clue.word, set()).add(clue.known.name)
            elif clue.word and names:
                self._narrowed[clue.word] = self._narrowed.get(clue.word, names) & names or names
        self._chosen: dict[Clue, Choice] = {}

    def of(self, clue: Clue) -> Choice:
        """The model of a card with this clue."""
        if clue not in self._chosen:
            self._chosen[clue] = self._choose(clue)
        return self._chosen[clue]

    def _choose(self, clue: Clue) -> Choice:
        if clue.known:
            return Choice(clue.known)
        left = possible(clue)
        if clue.word and clue.word in self._learned:
            seen = [model for model in left or models() if model.name in self._learned[clue.word]]
            if seen:
                return Choice(seen[0], f"what other nodes call {clue.word} is one")
        if clue.word and clue.word in self._narrowed:
            left = [m for m in left if m.name in self._narrowed[clue.word]] or left
        if not left:
            blind = find(_BLIND)
            assert isinstance(blind, GpuModel)  # noqa: S101 - a test keeps the name in the catalogue
            return Choice(blind, f"nothing says which GPU {clue.word or 'it'} is", blind=True)
        ranked = sorted(left, key=lambda model: self._rank(model, clue))
        if len(ranked) == 1 and clue.word and not isinstance(find(clue.word), NotFound):
            return Choice(ranked[0])
        return Choice(ranked[0], _why(clue, [model.name for model in left]))

    def _rank(self, model: GpuModel, clue: Clue) -> tuple[bool, int, float]:
        """The less the likelier: called so by Slurm's own plugin, seen elsewhere at the site, cut to the full."""
        named = type_prefix(model) in (clue.word, *clue.hints)
        return not named, -self._used[model.name], _unused(model, clue.layouts)


def of_label(product: str) -> GpuModel | None:
    """The model that feature discovery's nvidia.com/gpu.product names, without what it puts behind."""
    found = find(_LABEL_ENDINGS.sub("", product))
    return None if isinstance(found, NotFound) else found


def possible(clue: Clue, strictly: bool = False) -> list[GpuModel]:
    """The models that a clue leaves, in the catalogue's order; none where it says nothing.

    Where its words contradict how the cards are cut, the words are not believed; `strictly`: none are left then.
    """
    if clue.known:
        return [clue.known]
    named = next((found for word in (clue.word, *clue.hints) if word and (found := _named(word))), ())
    if not clue.layouts:
        return list(named)
    # What stands before a profile is cut short, so that models share it (`h20` of H20 and H20-3e).
    called = [model for model in models() if model in named or type_prefix(model) in (clue.word, *clue.hints)]
    fitting = [model for model in called if holds(model, clue.layouts)]
    if not fitting and not (strictly and called):
        fitting = [model for model in models() if holds(model, clue.layouts)]
    return [model for model in fitting if _divides(model, clue.parts)] or fitting


def _divides(model: GpuModel, parts: Iterable[tuple[str, int]]) -> bool:
    found = ((model.profile(name), number) for name, number in parts)
    return all(profile is not None and profile.size * number == model.slices for profile, number in found)


@lru_cache(maxsize=1024)
def _named(word: str) -> tuple[GpuModel, ...]:
    """The models that a word may name: itself, or a part of it between separators (`gpu-a100`)."""
    parts = re.split(r"[\s_.:-]+", word)
    spans = [
        parts[i:j] for length in range(len(parts), 0, -1) for i in range(len(parts) - length + 1) if (j := i + length)
    ]
    for text in ("-".join(span) for span in spans):
        found = find(text)
        numbered = any(character.isdigit() for character in text)
        if isinstance(found, GpuModel) and (numbered or text == "-".join(parts)):
            return (found,)
        if isinstance(found, NotFound) and numbered and (found.ambiguous or found.partial):
            return tuple(model for model in models() if model.name in found.candidates)
    return ()


def holds(model: GpuModel, layouts: tuple[Counts, ...]) -> bool:
    """Whether a card of the model can be cut in each of these ways."""
    return model.has_mig and all(_arranged(model, layout) is not None for layout in layouts)


@lru_cache(maxsize=4096)
def _arranged(model: GpuModel, layout: Counts) -> tuple[Instance, ...] | None:
    instances = arrange(model, dict(layout))
    return None if isinstance(instances, Misfit) else instances


def _unused(model: GpuModel, layouts: tuple[Counts, ...]) -> float:
    """The part of the cards that the layouts leave: who cuts a card mostly uses all of it."""
    return sum(len(leftover(model, _arranged(model, one) or ()).memory) / model.slices for one in layouts)


def _why(clue: Clue, names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    listed = ", ".join(names[:_SHOWN]) + more
    parts = " and ".join(" + ".join(f"{n} x {profile}" for profile, n in layout) for layout in clue.layouts[:_SHOWN])
    if clue.word and parts:
        return f"{clue.word} cut into {parts} may be {listed}"
    if clue.word or parts:
        return f"{clue.word} may be {listed}" if clue.word else f"{parts} fits {listed}"
    return f"Features or names of the nodes speak for {listed}"
