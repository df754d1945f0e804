"""Under which names a site offers GPUs, by whom, and how: what its configs in force and its Nodes say together.

A config's own mistakes are judged elsewhere: here one that the plugin refuses only means that not all is known.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from hybridgpu.consumers.kubernetes.configmanager import EMPTY, LABEL, choose
from hybridgpu.consumers.kubernetes.devicemap import WHOLE
from hybridgpu.consumers.kubernetes.given import ConfigSet, KubeFiles, KubeNode
from hybridgpu.consumers.kubernetes.gpunames import MIG, base, mig_names
from hybridgpu.consumers.kubernetes.migcut import Cut, cut_of
from hybridgpu.consumers.kubernetes.nodeconfig import NodeConfigs, is_used, key_of
from hybridgpu.consumers.kubernetes.pluginconfig import PluginConfig, read_config
from hybridgpu.consumers.kubernetes.policy import plugin_env
from hybridgpu.consumers.kubernetes.replicated import PREFIX, SHARED
from hybridgpu.consumers.kubernetes.settings import PLUGIN, settings
from hybridgpu.files.quoting import listed, shown
from hybridgpu.model.finding import Place
from hybridgpu.model.naming import kubernetes_resource

SHARING_LABEL = f"{WHOLE}.sharing-strategy"
BUILT_IN = "the plugin's built-in defaults"
_MANY = 6


@dataclass(frozen=True, slots=True)
class Share:
    """How a name is offered: `kind` none, time-slicing or mps; `one_only`: more than one is refused, None: unknown."""

    kind: str = "none"
    one_only: bool | None = False


@dataclass(frozen=True, slots=True)
class Source:
    """One config in force, or a Node's allocatable, and the names it offers.

    `key` is the label that chooses it, None where no label does; `nodes` those known to run it, None: not known.
    `dropped` are names that its file gives and the plugin passes over (`rename`); `selector`: the labels of the nodes
    on which its plugin runs.
    """

    title: str
    place: Place | None
    names: Mapping[str, Share]
    key: str | None = None
    nodes: frozenset[str] | None = None
    dropped: frozenset[str] = frozenset()
    selector: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Names:
    """Everything that is offered. `complete`: nothing is offered beside that, as far as the files go together.

    `all` are the names that anybody offers, `dropped` those that a config gives in vain.
    """

    sources: tuple[Source, ...]
    complete: bool
    all: frozenset[str]
    dropped: frozenset[str]

    @property
    def known(self) -> bool:
        """Whether a name that is not here is offered by nobody."""
        return self.complete and bool(self.all)

    @property
    def profiles(self) -> frozenset[str]:
        """The names of MIG devices that are known to be there; none where any may be."""
        mig = frozenset(name for name in self.all if name.startswith(MIG))
        return frozenset() if mig >= mig_names() else mig


def names_of(sources: Iterable[Source], complete: bool = True) -> Names:
    """What these sources offer together; those that offer nothing are left out."""
    kept = tuple(source for source in sources if source.names)
    every = frozenset(name for source in kept for name in source.names)
    return Names(kept, complete, every, frozenset(name for source in kept for name in source.dropped))


def offering(sources: Iterable[Source], name: str) -> tuple[Source, ...]:
    """Those of the sources that offer a name."""
    return tuple(source for source in sources if name in source.names)


def told(names: Iterable[str]) -> str:
    """Names for a message, whole cards first; of many profiles none, since then cards are only perhaps cut."""
    every = sorted(names)
    cards = [name for name in every if not name.startswith(MIG)]
    mig = [name for name in every if name.startswith(MIG)]
    return listed([*cards, *mig] if len(mig) <= _MANY else cards or [f"{MIG}PROFILE"])


def offered(files: KubeFiles) -> Names:
    """What configs, policies, charts, DaemonSets and Nodes among the files offer together."""
    cut, seen = cut_of(files), _seen(files.nodes)
    with_gpus = [node for node in files.nodes if node.has_gpus]
    sources: list[Source] = []
    complete = True
    in_force = _in_force(files)
    for each in files.sets:
        for key, nodes in in_force[id(each)].items():
            text = "" if key == EMPTY else each.keys[key]
            config = PluginConfig() if key == EMPTY else read_config(text).config
            names = None if config is None else _names(config, each.env, cut, seen)
            if config is None or names is None:
                complete = False
                continue
            place = next((one.place for one in each.configs if one.key == key), each.place)
            title = f"{shown(key)} of {each.source}" if key else each.source
            title = f"{BUILT_IN} where no config is chosen" if key == EMPTY else title
            label = None if key == EMPTY or (is_used(each) and not each.managed) else key or None
            sources.append(Source(title, place, names, label, nodes, _dropped(config), each.selector))
    for title, place, env, named, selector in _without_config(files):
        names = None if named else _names(PluginConfig(), env, cut, seen)
        if names is None:
            complete = False
        else:
            nodes = frozenset(n.name for n in with_gpus if selector.items() <= n.labels.items()) if selector else None
            sources.append(Source(f"{BUILT_IN} under {title}", place, names, nodes=nodes or None, selector=selector))
    return names_of([*sources, *_allocatable(files.nodes)], complete)


def _in_force(files: KubeFiles) -> dict[int, dict[str, frozenset[str] | None]]:
    """By the id of a set the keys that are chosen, with the nodes known to run them; all keys where none is known to.

    Where nobody is known to use the sets, a Node without a label may run any key of any.
    """
    configs = NodeConfigs(files.sets)
    found: dict[int, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    any_key = False
    for node in (node for node in files.nodes if node.has_gpus):
        running = configs.running(node)
        any_key = any_key or (not configs.used and not node.labels.get(LABEL) and all(one.guess for one in running))
        for one in running:
            found[id(one.config_set)][one.key].add(node.name)
    in_force: dict[int, dict[str, frozenset[str] | None]] = {}
    for each in files.sets:
        known = {} if any_key else {key: frozenset(nodes) for key, nodes in found[id(each)].items()}
        in_force[id(each)] = dict(known) or dict.fromkeys(_keys(each))
    return in_force


def _keys(config_set: ConfigSet) -> tuple[str, ...]:
    """The keys that some node may run."""
    if is_used(config_set) and not config_set.managed and (only := key_of("", config_set)) is not None:
        return (only,)
    built_in = config_set.managed and choose("", config_set.keys, config_set.settings) == EMPTY
    return (*config_set.keys, *((EMPTY,) if built_in else ()))


def _without_config(files: KubeFiles) -> Iterator[tuple[str, Place, Mapping[str, str], bool, Mapping[str, str]]]:
    """Who starts the plugin without a config: title, place, variables, whether it names one that was not given, and
    the labels of the nodes where it runs."""
    given = {each.name for each in files.sets}
    for policy in files.policies:
        if policy.plugin and (policy.config_name not in given or not policy.config_name):
            yield policy.title, policy.place, plugin_env(policy), bool(policy.config_name), {}
    users = {each.user for each in files.sets}
    for chart in files.charts:
        if chart.plugin and chart.place not in users and (not chart.config_name or chart.config_name not in given):
            yield chart.title, chart.place, chart.env, bool(chart.config_name), chart.selector
    for operand in files.operands:
        if operand.program == "device-plugin" and (not operand.config_map or operand.config_map not in given):
            unknown = bool(operand.config_map) or "CONFIG_FILE" in operand.env
            yield operand.title, operand.place, operand.env, unknown, operand.selector


def _names(
    config: PluginConfig, env: Mapping[str, str] | None, cut: Cut, seen: frozenset[str] | None
) -> dict[str, Share] | None:
    """The names of a config, for cards cut so; None where the plugin does not start with it."""
    values = settings(config, PLUGIN, env or {})
    if isinstance(values, str):
        return None
    stated = env is not None or "migStrategy" in config.flags
    strategy = values.text("migStrategy") if stated else "mixed"
    if config.sharing == "mps" and not stated:
        strategy = "none"
    found = {WHOLE} if strategy in ("none", "single") or cut.whole or not stated else set()
    if strategy == "mixed":
        found |= {kubernetes_resource(profile) for profile in cut.profiles}
    if seen is not None and found & seen:
        found &= seen
    replicated = config.replicated
    shares = {name: Share() for name in found}
    for entry in replicated.entries if replicated else ():
        if replicated is not None and entry.name in found:
            shares.pop(entry.name, None)
            shares[replicated.shared_as(entry)] = Share(config.sharing, config.fail_above_one)
    return shares


def _dropped(config: PluginConfig) -> frozenset[str]:
    """The names that `rename` gives, which the plugin does not honour."""
    blocks = (config.time_slicing, config.mps)
    return frozenset(entry.rename for block in blocks if block for entry in block.renamed if entry.rename)


def _seen(nodes: Iterable[KubeNode]) -> frozenset[str] | None:
    """The resources, before sharing, that Nodes have, where all Nodes with GPUs tell; None where they do not."""
    with_gpus = [node for node in nodes if node.has_gpus]
    if not with_gpus or any(not any((node.allocatable or {}).values()) for node in with_gpus):
        return None
    return frozenset(base(name) for node in with_gpus for name, count in (node.allocatable or {}).items() if count)


def _allocatable(nodes: Iterable[KubeNode]) -> Iterator[Source]:
    """Nodes' own names, those of equal Nodes as one: more than one of a shared name may or may not be refused."""
    alike: dict[tuple[str, frozenset[str]], list[KubeNode]] = defaultdict(list)
    for node in nodes:
        there = frozenset(n for n, count in (node.allocatable or {}).items() if count > 0 and n.startswith(PREFIX))
        alike[node.labels.get(SHARING_LABEL, ""), there].append(node)
    for (kind, there), same in alike.items():
        names = {}
        for name in there:
            shared = name.endswith(SHARED) or (name == WHOLE and kind in ("time-slicing", "mps"))
            names[name] = Share(kind or "time-slicing", None) if shared else Share(one_only=None)
        more = f" and {len(same) - 1} more" if len(same) > 1 else ""
        title = f"Node {same[0].name}{more}"
        yield Source(title, same[0].place, names, nodes=frozenset(node.name for node in same))
