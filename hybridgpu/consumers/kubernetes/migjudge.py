"""Findings on a mig-parted file: alone, where device-filters tell the models, or for the cards of a node.

Source: mig-parted v0.15.0 api/spec/v1, cmd/nvidia-mig-parted/assert, pkg/mig/config; run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator

from hybridgpu.consumers.kubernetes import migrules as rules
from hybridgpu.consumers.kubernetes.migmend import mend
from hybridgpu.consumers.kubernetes.migparted import VENDOR, filter_id, gpu_instances, passes, walk
from hybridgpu.consumers.kubernetes.migprofile import ProfileName, parse_profile
from hybridgpu.consumers.kubernetes.migspec import MigEntry, MigFile, Wrong, read_mig
from hybridgpu.consumers.kubernetes.node import Card, Node
from hybridgpu.consumers.kubernetes.treepath import Paths
from hybridgpu.consumers.kubernetes.yamlrules import judge_number, judge_yaml
from hybridgpu.files.gotree import GoMap
from hybridgpu.files.quoting import listed, shown
from hybridgpu.files.tabs import with_tab
from hybridgpu.files.where import Where
from hybridgpu.model.catalogue import models
from hybridgpu.model.finding import Finding, Rule
from hybridgpu.model.geometry import holds
from hybridgpu.model.gpu import GpuModel
from hybridgpu.model.misfit import explain

_FULL = (8, 16)
"""How many cards a node has that is full."""


def judge_mig_file(
    text: str | bytes, where: Where, node: Node | None = None, only: Container[str] | None = None
) -> tuple[Finding, ...]:
    """Everything that is wrong with the file, config by config. Never raises.

    `only`: the configs that are judged, where not all of them are for this node; the form of all of them is.
    """
    reading = read_mig(text)
    findings = list(judge_yaml(reading.yaml, where))
    if reading.error:
        place = where(reading.error.line, reading.error.column)
        words = with_tab(reading.error.words, text, reading.error.line)
        findings.append(Finding(rules.YAML, place, words, rules.YAML.fix))
    if reading.wrong:
        paths = Paths(reading.yaml.root)
        findings += [_wrong(wrong, paths, where) for wrong in reading.wrong]
    findings += _file(reading.sound, where)
    for name, entries in reading.sound.configs.items():
        # What a node asks for of a file that is refused it does not get: then its configs are judged by themselves.
        if reading.file is None or only is None or name in only:
            findings += _Config(name, entries, where, node if reading.file else None).findings()
    return tuple(dict.fromkeys(findings))


def _wrong(wrong: Wrong, paths: Paths, where: Where) -> Finding:
    """A mistake of form; mig-parted refuses the whole file for it, whichever config is asked for."""
    failure = wrong.failure
    about = getattr(failure, "about", "")
    rule = rules.PROFILE if about == "profile" else rules.FORM
    said = paths.located(failure.node, failure.words)
    words = f"config {shown(wrong.config)}: {said}" if wrong.config else said
    words = f"{words}: mig-parted refuses the whole file"
    return Finding(rule, where(failure.node.line, failure.node.column), words, mend(wrong) or rule.fix)


def _file(file: MigFile, where: Where) -> Iterator[Finding]:
    if file.names and "all-disabled" not in file.names:
        first = next(iter(file.names.values()))
        message = f"no config is called all-disabled; there is {listed(file.names)}"
        yield Finding(rules.NO_ALL_DISABLED, where(first.line, first.column), message, rules.NO_ALL_DISABLED.fix)


class _Config:
    """One config of the file, judged for a node's cards or for the models that its filters name."""

    def __init__(self, name: str, entries: tuple[MigEntry, ...], where: Where, node: Node | None) -> None:
        self.name, self.entries, self.where, self.node = name, entries, where, node

    def findings(self) -> Iterator[Finding]:
        """What applying and asserting the config come to."""
        for entry in self.entries:
            yield from self._filters(entry)
            yield from self._devices(entry)
            yield from self._counts(entry)
            if entry.enabled and any(entry.counts.values()):
                yield from self._fits(entry)
        yield from self._overlap()
        yield from self._covered()

    def _filters(self, entry: MigEntry) -> Iterator[Finding]:
        for text in entry.filters:
            if filter_id(text)[1] != VENDOR or not filter_id(text)[0]:
                message = f"the device-filter {shown(text)} matches no card"
                yield self._at(rules.FILTER_NEVER, entry, "device-filter", message)

    def _devices(self, entry: MigEntry) -> Iterator[Finding]:
        if entry.devices is None:
            return
        count = len(self.node.cards) if self.node else None
        absent = [index for index in entry.devices if index < 0 or (count is not None and index >= count)]
        if not entry.devices or absent:
            message = f"no card has the index {listed(map(str, absent))}" if absent else "devices is an empty list"
            yield self._at(rules.NO_DEVICES, entry, "devices", message)

    def _counts(self, entry: MigEntry) -> Iterator[Finding]:
        listed_counts = entry.node.get("mig-devices") if isinstance(entry.node, GoMap) else None
        for _, value in listed_counts.entries if isinstance(listed_counts, GoMap) else ():
            yield from judge_number(value, self.where)
        for text, count in entry.counts.items():
            name = parse_profile(text)
            canonical = name.canonical if isinstance(name, ProfileName) else text
            if count == 0 or canonical != text:
                why = "its count is 0" if count == 0 else f"the driver calls it {canonical}"
                yield self._at(rules.NEVER_EQUAL, entry, text, f"{text} never compares equal: {why}")

    def _fits(self, entry: MigEntry) -> Iterator[Finding]:
        known, all_of_them = self._models(entry)
        names = {text: parse_profile(text) for text in entry.counts}
        wanted = Counter({name: entry.counts[t] for t, name in names.items() if isinstance(name, ProfileName)})
        whole = gpu_instances(+wanted)
        misfits = [model for model in known if not holds(model, whole)]
        if not misfits or (not all_of_them and len(misfits) < len(known)):
            return
        profiles = {profile.name for model in known for profile in model.profiles}
        unknown = [text for text in whole if text not in profiles]
        if unknown:
            message = f"no card here has the profile {listed(unknown)}"
            if not all_of_them:
                message = f"no model of the catalogue has the profile {listed(unknown)}"
            yield self._at(rules.UNKNOWN_PROFILE, entry, unknown[0], message)
        elif all_of_them:
            for model in misfits:
                yield self._at(rules.DOES_NOT_FIT, entry, "mig-devices", explain(model, whole).reason)
        else:
            asked = " + ".join(f"{count} x {text}" for text, count in whole.items())
            yield self._at(rules.DOES_NOT_FIT, entry, "mig-devices", f"{asked} fits on no model of the catalogue")

    def _models(self, entry: MigEntry) -> tuple[tuple[GpuModel, ...], bool]:
        """The models the entry is for, and whether it must fit on each: not where the cards are unknown."""
        if self.node is not None:
            met = (card for card in self.node.cards if passes(entry, card))
            wanted = (c for c in met if entry.devices is None or c.index in entry.devices)
            return tuple(dict.fromkeys(card.model for card in wanted if card.model and card.model.has_mig)), True
        cut = tuple(model for model in models() if model.has_mig)
        if not entry.filters:
            return cut, False
        ids = {f"{filter_id(text)[0]:04x}" for text in entry.filters}
        return tuple(model for model in cut if ids & {i.lower() for i in model.pci_ids}), True

    def _overlap(self) -> Iterator[Finding]:
        """Cards that two entries want in different modes: assert asks both."""
        if self.node is not None:
            modes: dict[int, bool] = {}
            for entry, card in walk(self.entries, self.node):
                if modes.setdefault(card.index, entry.enabled) != entry.enabled:
                    message = f"card {card.index} is to have MIG enabled and disabled"
                    yield self._at(rules.TWO_MODES, entry, "devices", message)
            return
        # By mode, the cards that the entries above are for; None: all of them.
        above: dict[bool, set[int | None]] = {True: set(), False: set()}
        for entry in (entry for entry in self.entries if not entry.filters):
            others = above[not entry.enabled]
            if others if entry.devices is None else None in others or not others.isdisjoint(entry.devices):
                yield self._at(rules.TWO_MODES, entry, "devices", "an entry above has another mode for these cards")
            above[entry.enabled].update((None,) if entry.devices is None else entry.devices)

    def _covered(self) -> Iterator[Finding]:
        """Cards that no entry is for, or that cannot be what the config says: then it never asserts."""
        if self.node is not None:
            met = {card.index for _, card in walk(self.entries, self.node)}
            missing = [str(card.index) for card in self.node.cards if card.index not in met]
            if missing:
                yield self._at(rules.PARTIAL, self.entries[0], "devices", f"no entry is for card {listed(missing)}")
            for entry, without in self._incapable().values():
                names = listed(dict.fromkeys(card.name for card in without))
                several = f"cards {listed(str(card.index) for card in without)} ({names}) have no MIG"
                message = several if len(without) > 1 else f"card {without[0].index} ({names}) has no MIG"
                yield self._at(rules.NOT_CAPABLE, entry, "devices", message)
        elif all(entry.devices is not None for entry in self.entries):
            cards = sorted({index for entry in self.entries for index in entry.devices or () if index >= 0})
            if self._whole(cards):
                message = f"cards 0 to {cards[-1]} are taken as all cards of the node"
                yield self._at(rules.COVER_ASSUMED, self.entries[0], "devices", message)
                return
            message = f"only cards {listed(map(str, cards))} are in an entry: it holds on no node that has more"
            yield self._at(rules.PARTIAL, self.entries[0], "devices", message)

    def _incapable(self) -> dict[int, tuple[MigEntry, list[Card]]]:
        """By entry, the cards that are to have MIG enabled and have none."""
        found: dict[int, tuple[MigEntry, list[Card]]] = {}
        for entry, card in walk(self.entries, self.node) if self.node else ():
            if entry.enabled and card.mig is None:
                found.setdefault(id(entry), (entry, []))[1].append(card)
        return found

    def _whole(self, cards: list[int]) -> bool:
        """Whether indices look like all of a node's: dealt out over several entries, or as many as a full node has."""
        return (len(self.entries) > 1 or len(cards) in _FULL) and cards == list(range(len(cards))) != []

    def _at(self, rule: Rule, entry: MigEntry, key: str, message: str) -> Finding:
        place = entry.place(key)
        return Finding(rule, self.where(place.line, place.column), f"config {shown(self.name)}: {message}", rule.fix)
