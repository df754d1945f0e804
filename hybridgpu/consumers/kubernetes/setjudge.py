"""A set of device-plugin configs as a site uses it: each config for the nodes that run it, and who runs which.

What one config or one choice comes to is judged by pluginjudge and configrules; here is only which of them meets which
node, with which variables. A node's config is judged once for each distinct set of cards.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from hybridgpu.consumers.kubernetes import configrules as rules
from hybridgpu.consumers.kubernetes import pluginrules
from hybridgpu.consumers.kubernetes.configmanager import EMPTY, LABEL, NAMED, OPERATOR
from hybridgpu.consumers.kubernetes.given import Config, ConfigSet, KubeFiles, KubeNode
from hybridgpu.consumers.kubernetes.migmanager import LABEL as MIG_LABEL
from hybridgpu.consumers.kubernetes.nodeconfig import NodeConfigs
from hybridgpu.consumers.kubernetes.pluginjudge import judge_plugin_config
from hybridgpu.consumers.kubernetes.variables import sound
from hybridgpu.files.quoting import listed
from hybridgpu.files.where import in_file
from hybridgpu.model.finding import Finding, Place, Related

_TO_SAY_WHY = (pluginrules.OVERRULED, pluginrules.OVERRULED_ALIKE, pluginrules.MPS_ROOT, pluginrules.MPS_MIXED)
_STRATEGY = "MIG_STRATEGY"


class Users:
    """Which nodes choose from which sets, and what they run of them, asked once for all."""

    def __init__(self, files: KubeFiles) -> None:
        self._configs = NodeConfigs(files.sets)
        self._nodes: dict[int, list[KubeNode]] = {}
        self._keys: dict[int, list[tuple[str, KubeNode]]] = {}
        for node in files.nodes:
            for config_set in self._configs.used_on(node):
                self._nodes.setdefault(id(config_set), []).append(node)
            for one in self._configs.running(node):
                if not one.guess:
                    self._keys.setdefault(id(one.config_set), []).append((one.key, node))

    def nodes_of(self, config_set: ConfigSet) -> tuple[KubeNode, ...]:
        """The nodes on which a known user of the set runs."""
        return tuple(self._nodes.get(id(config_set), ()))

    def running(self, config_set: ConfigSet) -> tuple[tuple[str, KubeNode], ...]:
        """The nodes that run a key of the set, each with the key."""
        return tuple(self._keys.get(id(config_set), ()))

    def judge_labels(self, nodes: Iterable[KubeNode]) -> Iterator[Finding]:
        """Nodes whose label names a config that none of the ConfigMaps that they may use has."""
        known: dict[tuple[int, ...], dict[str, None]] = {}
        for node in nodes:
            label = node.labels.get(LABEL, "")
            sets = self._configs.choices(node) if label and not self._found(node, label) else ()
            if not sets:
                continue
            ids = tuple(map(id, sets))
            if ids not in known:
                known[ids] = dict.fromkeys(key for config_set in sets for key in config_set.keys)
            if label not in known[ids]:
                related = (Related(sets[0].place, sets[0].source),)
                place = node.label_places.get(LABEL, node.place)
                yield rules.label_without_key(node.name, label, tuple(known[ids]), place, related)

    def _found(self, node: KubeNode, label: str) -> bool:
        return any(one.key == label for one in self._configs.running(node))


def judge_set(config_set: ConfigSet, every: Users) -> Iterator[Finding]:
    """Findings on each config of the set, on the choice between them, and on what is applied first."""
    users = every.nodes_of(config_set)
    shapes: dict[str, dict[int, KubeNode]] = {}
    for key, node in every.running(config_set):
        if node.cards is not None:
            shapes.setdefault(key, {}).setdefault(id(node.cards), node)
    for config in config_set.configs:
        yield from _config(config, config_set, tuple(shapes.get(config.key, {}).values()))
    if config_set.managed:
        yield from judge_built_in(shapes.get(EMPTY, {}).values(), config_set.env or {})
    yield from _choice(config_set, users)
    if config_set.managed:
        yield from _first(config_set, users)


def judge_built_in(nodes: Iterable[KubeNode], env: Mapping[str, str]) -> Iterator[Finding]:
    """Nodes whose cards the plugin refuses without any config, by its variables alone; each set of cards once."""
    seen: set[int] = set()
    for node in nodes:
        if node.cards is None or id(node.cards) in seen:
            continue
        seen.add(id(node.cards))
        place = node.label_places.get(MIG_LABEL, node.place)
        for finding in judge_plugin_config("", in_file(""), node.cards, sound(env)):
            if finding.rule in _ABOUT_CARDS:
                yield replace(finding, place=place, message=f"{node.name}: {finding.message}")


def _config(config: Config, config_set: ConfigSet, shapes: Sequence[KubeNode]) -> Iterator[Finding]:
    """One config: for the cards of the nodes that run it; alone, where none are known."""
    env = None if config_set.env is None else sound(config_set.env)
    found: dict[Finding, None] = {}
    for node in shapes or (None,):
        for finding in judge_plugin_config(config.text, config.where, node.cards if node else None, env):
            found[_of_node(finding, node) if node else finding] = None
    said: set[tuple[str, Place | None]] = set()
    for finding in found:
        # The same mistake, counted for other cards, is told once.
        if (finding.rule.id, finding.place) not in said or finding.rule in _SEVERAL:
            said.add((finding.rule.id, finding.place))
            yield _with_reason(finding, config_set)


def _of_node(finding: Finding, node: KubeNode) -> Finding:
    """The finding with the node whose cards it is about."""
    if finding.rule not in _ABOUT_CARDS:
        return finding
    return replace(finding, related=(*finding.related, Related(node.place, f"{node.name} runs this config")))


_ABOUT_CARDS = (
    *(pluginrules.CARDS, pluginrules.INVALID_LABELS, pluginrules.MPS_AND_MIG, pluginrules.MPS_REPLICAS),
    *(pluginrules.NO_SUCH_RESOURCE, pluginrules.MPS_NO_DAEMON),
)
_SEVERAL = (pluginrules.MISPLACED, pluginrules.UNKNOWN_KEY, pluginrules.OVERRULED, pluginrules.FLAG)


def _with_reason(finding: Finding, config_set: ConfigSet) -> Finding:
    """The finding with the place that gives the plugin its variables, where it is about one of them."""
    if finding.rule not in _TO_SAY_WHY or config_set.user is None:
        return finding
    hint = finding.hint
    strategy = (config_set.env or {}).get(_STRATEGY, "")
    about = _STRATEGY in finding.message or finding.rule is pluginrules.MPS_MIXED
    if strategy and about and config_set.operator:
        hint = f'{hint} The operator sets it from mig.strategy: {strategy}; "" leaves it to each config.'
    return replace(finding, hint=hint, related=(*finding.related, Related(config_set.user, "what runs this config")))


def _choice(config_set: ConfigSet, users: Iterable[KubeNode]) -> Iterator[Finding]:
    keys, place = config_set.keys, config_set.place
    if not config_set.managed:
        if config_set.name and config_set.user is None and len(keys) > 1:
            if NAMED not in keys:
                message = f"{config_set.source} has the keys {listed(keys)} and none called default"
                yield Finding(rules.SEVERAL_NO_DEFAULT, place, message, rules.SEVERAL_NO_DEFAULT.fix)
            yield from (f for f in rules.judge_choice(keys, OPERATOR, {}, place))
        return
    related = (Related(config_set.user, "what chooses"),) if config_set.user else ()
    if keys or config_set.name:
        for finding in rules.judge_choice(keys, config_set.settings, {}, place):
            yield replace(finding, related=related)
    if config_set.operator and not config_set.settings.default and keys:
        bare = [node.name for node in users if node.has_gpus and not node.labels.get(LABEL)]
        if bare or not any(node.has_gpus for node in users):
            who = f"; without a label: {listed(bare)}" if bare else ""
            message = f"devicePlugin.config.default is not given, the keys are {listed(keys)}{who}"
            yield Finding(rules.OPERATOR_NO_DEFAULT, config_set.user or place, message, rules.OPERATOR_NO_DEFAULT.fix)


def _first(config_set: ConfigSet, users: Iterable[KubeNode]) -> Iterator[Finding]:
    """What the default offers before the node's own config is applied, once for each label and set of cards."""
    env = sound(config_set.env or {})
    seen: set[tuple[str, int]] = set()
    for node in users:
        label = node.labels.get(LABEL, "")
        if not label or label not in config_set.keys or node.cards is None or (label, id(node.cards)) in seen:
            continue
        seen.add((label, id(node.cards)))
        place = node.label_places.get(LABEL, node.place)
        for finding in rules.judge_default(config_set.keys, config_set.settings, label, node.cards, env, place):
            related = (Related(config_set.place, config_set.source),)
            yield replace(finding, message=f"{node.name}: {finding.message}", related=related)
