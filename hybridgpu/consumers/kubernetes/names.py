"""Under which names a site offers GPUs, by whom, and how: what its configs in force and its Nodes say together.

A config's own mistakes are judged elsewhere: here one that the plugin refuses only means that not all is known.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from hybridgpu.consumers.kubernetes.configmanager import EMPTY, LABEL, Died, choose
from hybridgpu.consumers.kubernetes.devicemap import WHOLE
from hybridgpu.consumers.kubernetes.given import ConfigSet, KubeFiles, KubeNode
from hybridgpu.consumers.kubernetes.gpunames import MIG, base, mig_names
from hybridgpu.consumers.kubernetes.migcut import Cut, cut_of
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
    `dropped` are names that its file gives and the plugin passes over (`rename`).
    """

    title: str
    place: Place | None
    names: Mapping[str, Share]
    key: str | None = None
    nodes: frozenset[str] | None = None
    dropped: frozenset[str] = frozenset()


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
    sources: list[Source] = []
    complete = True
    for each in files.sets:
        for key, nodes in _in_force(each, files.nodes).items():
            text = "" if key == EMPTY else each.keys[key]
            config = PluginConfig() if key == EMPTY else read_config(text).config
            names = None if config is None else _names(config, each.env, cut, seen)
            if config is None or names is None:
                complete = False
                continue
            place = next((one.place for one in each.configs if one.key == key), each.place)
            title = f"{shown(key)} of {each.source}" if key else each.source
            title = f"{BUILT_IN} where no config is chosen" if key == EMPTY else title
            label = None if key == EMPTY else key or None
            sources.append(Source(title, place, names, label, nodes, _dropped(config)))
    for title, place, env, named in _without_config(files):
        names = None if named else _names(PluginConfig(), env, cut, seen)
        if names is None:
            complete = False
        else:
            sources.append(Source(f"{BUILT_IN} under {title}", place, names))
    return names_of([*sources, *_allocatable(files.nodes)], complete)


def _in_force(chosen_from: ConfigSet, nodes: Iterable[KubeNode]) -> dict[str, frozenset[str] | None]:
    """The keys that are chosen, with the nodes known to choose them: by labels where there are Nodes, else all."""
    keys, settings_ = chosen_from.keys, chosen_from.settings
    every: dict[str, frozenset[str] | None] = dict.fromkeys(keys)
    if chosen_from.managed and choose("", keys, settings_) == EMPTY:
        every[EMPTY] = None
    found: dict[str, set[str]] = defaultdict(set)
    for node in nodes:
        value = node.labels.get(LABEL, "")
        if not node.has_gpus:
            continue
        if not value and not chosen_from.managed:
            return every
        key = choose(value, keys, settings_)
        if not isinstance(key, Died):
            found[key].add(node.name)
    return {key: frozenset(chosen) for key, chosen in found.items()} or every


def _without_config(files: KubeFiles) -> Iterator[tuple[str, Place, Mapping[str, str], bool]]:
    """Who starts the plugin without a config: title, place, variables, and whether it names one that was not given."""
    given = {each.name for each in files.sets}
    for policy in files.policies:
        if policy.config_name not in given or not policy.config_name:
            yield policy.title, policy.place, plugin_env(policy), bool(policy.config_name)
    users = {each.user for each in files.sets}
    for chart in files.charts:
        if chart.plugin and chart.place not in users and (not chart.config_name or chart.config_name not in given):
            yield chart.title, chart.place, chart.env, bool(chart.config_name)
    for operand in files.operands:
        if operand.program == "device-plugin" and (not operand.config_map or operand.config_map not in given):
            unknown = bool(operand.config_map) or "CONFIG_FILE" in operand.env
            yield operand.title, operand.place, operand.env, unknown


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
