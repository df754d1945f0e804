"""Findings on a device-plugin config: alone, or for a node's cards and the variables of its DaemonSet.

What is not known is not judged: without a node no hardware, without variables nothing that a chart might set.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hybridgpu.consumers.kubernetes import pluginrules as rules
from hybridgpu.consumers.kubernetes.consume import consume
from hybridgpu.consumers.kubernetes.devicemap import WHOLE, units
from hybridgpu.consumers.kubernetes.deviceplugin import bad_flags
from hybridgpu.consumers.kubernetes.mpsdaemon import MOST, most_replicas
from hybridgpu.consumers.kubernetes.node import Node
from hybridgpu.consumers.kubernetes.outcome import Labelled, Refused, Stage
from hybridgpu.consumers.kubernetes.pluginconfig import PluginConfig, Reading, read_config
from hybridgpu.consumers.kubernetes.pluginkeys import judge_keys
from hybridgpu.consumers.kubernetes.replicated import SHARED, Entry, Replicated
from hybridgpu.consumers.kubernetes.settings import PLUGIN, settings
from hybridgpu.consumers.kubernetes.treepath import Paths
from hybridgpu.consumers.kubernetes.yamlrules import judge_case, judge_number, judge_yaml
from hybridgpu.files.gojson import Mismatch, Refusal
from hybridgpu.files.gotree import GoError, GoMap, GoNode, GoScalar
from hybridgpu.files.quoting import listed, shown
from hybridgpu.files.tabs import with_tab
from hybridgpu.files.where import Where
from hybridgpu.model.catalogue import models
from hybridgpu.model.finding import Finding, Rule
from hybridgpu.model.labels import MPS_ROOT
from hybridgpu.model.naming import kubernetes_resource
from hybridgpu.model.spelling import nearest


def judge_plugin_config(
    text: str | bytes, where: Where, node: Node | None = None, env: Mapping[str, str] | None = None
) -> tuple[Finding, ...]:
    """Everything that is wrong with the file, in the order in which the programs meet it. Never raises."""
    reading = read_config(text)
    findings = [*judge_yaml(reading.yaml, where), *_refusals(reading, text, where)]
    findings += [*judge_keys(reading, where), *judge_case(reading.decoded.folded, where)]
    if reading.config is not None:
        judge = _Judge(reading, reading.config, where, node, env)
        findings += judge.flags()
        findings += judge.sharing()
        findings += judge.cards(text)
    return tuple(dict.fromkeys(findings))


def _refusals(reading: Reading, text: str | bytes, where: Where) -> Iterator[Finding]:
    failure = reading.failure
    if failure is None:
        return
    if isinstance(failure, GoError):
        words = with_tab(failure.words, text, failure.line)
        yield Finding(rules.YAML, where(failure.line, failure.column), words, rules.YAML.fix)
        return
    paths = Paths(reading.yaml.root)
    for each in dict.fromkeys((failure, *reading.decoded.mismatches)):
        yield _refusal(each, paths, where)


def _refusal(failure: Mismatch | Refusal, paths: Paths, where: Where) -> Finding:
    rule = rules.TYPE if isinstance(failure, Mismatch) else rules.BY_KIND.get(failure.about, rules.VALUE)
    words = paths.located(failure.node, failure.words)
    return Finding(rule, where(failure.node.line, failure.node.column), words, rule.fix)


class _Judge:
    """One config that the programs take, with what is known around it."""

    def __init__(
        self, reading: Reading, config: PluginConfig, where: Where, node: Node | None, env: Mapping[str, str] | None
    ) -> None:
        self.reading, self.config, self.where, self.node, self.env = reading, config, where, node, env
        self.settings = settings(config, PLUGIN, env or {})

    def flags(self) -> Iterator[Finding]:
        """Flags that the plugin does not start with, or that a variable overrules."""
        values = self.settings
        if isinstance(values, str):
            yield self._at(rules.FLAG, None, values)
            return
        for bad in bad_flags(self.config, values, root_known=self.env is not None):
            rule = {"mps": rules.MPS_MIXED, "mpsRoot": rules.MPS_ROOT}.get(bad.key, rules.FLAG)
            hint = f"allowed: {listed(bad.allowed)}" if bad.allowed and rule is rules.FLAG else rule.fix
            about = {rules.MPS_MIXED: "MIG and MPS", rules.MPS_ROOT: ""}.get(rule, bad.key)
            yield self._at(rule, self._flag(bad.key), f"{about}: {bad.words}" if about else bad.words, hint)
        if self.config.sharing == "mps" and self.env is None and not values.text("mpsRoot"):
            message = "mpsRoot is not set here: taken as set by the chart or the operator"
            yield self._at(rules.MPS_ROOT_ASSUMED, self._block("mps"), message)
        if not values.words("deviceListStrategy"):
            yield self._at(rules.NO_STRATEGY, self._flag("deviceListStrategy"), "deviceListStrategy is empty")
        for key, variable in values.overruled.items():
            value = (self.env or {}).get(variable, "")
            message = f"{key} {self._said(key)} is overruled by the variable {variable}={value}"
            rule = rules.OVERRULED_ALIKE if key == "migStrategy" and self._strategies_alike() else rules.OVERRULED
            yield self._at(rule, self._flag(key), message)

    def _said(self, key: str) -> str:
        """What the file gives for a flag, as it was written."""
        node = self._flag(key)
        return node.text if isinstance(node, GoScalar) else "in the file"

    def _strategies_alike(self) -> bool:
        """Whether the file says none, as it does where nobody thinks of MIG, and no card is known to be in MIG mode."""
        said = self.config.flags["migStrategy"].value
        return said == "none" and not (self.node and any(card.mig for card in self.node.cards))

    def sharing(self) -> Iterator[Finding]:
        """What a sharing block asks for and does not get."""
        config = self.config
        if config.resources:
            yield self._at(rules.RESOURCES, self._top("resources"), "the block resources is not honoured")
        if config.mps and config.time_slicing:
            message = "both mps and timeSlicing are given: mps wins, timeSlicing is ignored"
            yield self._at(rules.MPS_AND_TIME_SLICING, self._block("timeSlicing"), message)
        for block in (config.time_slicing, config.mps):
            if block is not None:
                yield from self._block_findings(block)
        if config.replicated is not None:
            yield from self._names(config.replicated)
        for entry in config.mps.entries if config.mps else ():
            yield from self._mps_replicas(entry)

    def cards(self, text: str | bytes) -> Iterator[Finding]:
        """What the node's own cards make of it."""
        if self.node is None:
            return
        done = consume(text, self.node, {"MPS_ROOT": MPS_ROOT} if self.env is None else self.env)
        mig = any(card.mig for card in self.node.cards)
        if self.config.sharing == "mps" and mig:
            cards = listed(str(card.index) for card in self.node.cards if card.mig)
            yield self._at(rules.MPS_AND_MIG, self._block("mps"), f"mps on a node with cards in MIG mode: {cards}")
        elif isinstance(done.plugin, Refused) and done.plugin.stage is Stage.START:
            imex = "IMEX channel" in done.plugin.words
            rule, key = (rules.IMEX_REQUIRED, "required") if imex else (rules.CARDS, "migStrategy")
            yield self._at(rule, self._flag(key), str(done.plugin))
        elif missing := set(self.config.channels) - self.node.imex_channels:
            message = f"the node has no IMEX channel {listed(map(str, sorted(missing)))}"
            yield self._at(rules.IMEX_CHANNEL, self._flag("channelIDs"), message)
        if isinstance(done.discovery, Labelled):
            if done.discovery.labels.get(f"{WHOLE}.product", "").endswith("-MIG-INVALID"):
                message = f"the node is labelled {done.discovery.labels[f'{WHOLE}.product']}"
                yield self._at(rules.INVALID_LABELS, self._flag("migStrategy"), message)
            if done.discovery.either:
                message = f"these labels are random: {listed(sorted(done.discovery.either))}"
                yield self._at(rules.RANDOM_LABELS, None, message)

    def _block_findings(self, block: Replicated) -> Iterator[Finding]:
        seen: set[str] = set()
        for entry in block.entries:
            yield from judge_number(entry.node.get("replicas") if isinstance(entry.node, GoMap) else None, self.where)
            if entry.name in seen:
                yield self._at(rules.SAME_NAME, self._of(entry, "name"), f"{entry.name} has two entries")
            seen.add(entry.name)
        for entry in block.renamed:
            message = f"rename {shown(entry.rename or '')} is ignored: the name is {block.shared_as(entry)}"
            yield self._at(rules.RENAME, self._of(entry, "rename"), message)
        for entry in block.picked:
            message = f"devices is ignored: all devices of {entry.name} are shared"
            yield self._at(rules.PER_DEVICE, self._of(entry, "devices"), message)

    def _names(self, block: Replicated) -> Iterator[Finding]:
        """Entries whose resource the node does not have, as far as that can be told."""
        there = self._resources()
        if any(entry.name in there for entry in block.entries):
            there |= self._possible()
        for entry in block.entries:
            if entry.name in there:
                continue
            near = nearest(entry.name, there)
            hint = f"did you mean {near}?" if near else f"there is {listed(sorted(there))}"
            if entry.name.endswith(SHARED) and entry.name.removesuffix(SHARED) in there:
                hint = f"name {entry.name.removesuffix(SHARED)}; renameByDefault adds {SHARED}"
            rule = rules.MPS_NO_DAEMON if self.config.sharing == "mps" else rules.NO_SUCH_RESOURCE
            yield self._at(rule, self._of(entry, "name"), f"no GPU is offered as {entry.name}", hint)

    def _resources(self) -> set[str]:
        """The names that a node, this one or any of the catalogue, can offer before sharing."""
        strategy = "mixed" if isinstance(self.settings, str) else self.settings.text("migStrategy")
        told = self.env is not None or "migStrategy" in self.config.flags
        if self.node is not None and told:
            found = units(self.node, strategy)
            return {WHOLE} if isinstance(found, str) else set(found)
        if told and strategy in ("none", "single"):
            return {WHOLE}
        return {WHOLE, *(kubernetes_resource(profile.name) for model in models() for profile in model.profiles)}

    def _possible(self) -> set[str]:
        """The names that the node's cards have in some other cut: one config often serves nodes that are cut unlike."""
        mixed = not isinstance(self.settings, str) and self.settings.text("migStrategy") == "mixed"
        cards = self.node.cards if self.node and mixed else ()
        return (
            {WHOLE, *(kubernetes_resource(profile) for card in cards for profile in card.profiles)} if cards else set()
        )

    def _mps_replicas(self, entry: Entry) -> Iterator[Finding]:
        most = min((most_replicas(card) for card in self.node.cards), default=MOST) if self.node else MOST
        if entry.replicas > most:
            message = f"{entry.replicas} replicas, and an MPS server of these cards serves at most {most}"
            if self.node is None:
                message = f"{entry.replicas} replicas, and an MPS server serves at most {MOST} (16 before Turing)"
            yield self._at(rules.MPS_REPLICAS, self._of(entry, "replicas"), message)

    def _at(self, rule: Rule, node: GoNode | None, message: str, hint: str = "") -> Finding:
        place = self.where(node.line, node.column) if node else self.where(1, 1)
        return Finding(rule, place, message, hint or rule.fix)

    def _top(self, key: str) -> GoNode | None:
        root = self.reading.yaml.root
        found = (
            [value for name, value in root.entries if name.name.lower() == key.lower()]
            if isinstance(root, GoMap)
            else []
        )
        return found[-1] if found else None

    def _block(self, key: str) -> GoNode | None:
        block = self.config.mps if key == "mps" else self.config.time_slicing
        return block.node if block else None

    def _flag(self, key: str) -> GoNode | None:
        """Where a flag, or what stands for it, is given."""
        if key == "mps":
            return self._flag("migStrategy") or self._block("mps")
        if key in ("channelIDs", "required"):
            return self._top("imex")
        if key == "mpsRoot":
            return self._block("mps")
        block = self.config.flags.get("plugin", {})
        read = self.config.flags.get(key) or block.get(key)
        node: GoNode | None = read.node if read else None
        return node

    def _of(self, entry: Entry, key: str) -> GoNode:
        value = entry.node.get(key) if isinstance(entry.node, GoMap) else None
        return value or entry.node
