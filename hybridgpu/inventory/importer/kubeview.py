"""A node as Kubernetes' files show it: its cards, how they are shared there, and whether it offers them.

The wanted state comes first: the config and the MIG layout that its labels choose. What feature discovery has put into
labels counts where there is no config to be had. What a program makes of a file is asked from consumers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from hybridgpu.consumers.kubernetes import miginforce
from hybridgpu.consumers.kubernetes.given import KubeFiles, KubeNode
from hybridgpu.consumers.kubernetes.labelnumber import label_number
from hybridgpu.consumers.kubernetes.migparted import apply
from hybridgpu.consumers.kubernetes.node import node_of
from hybridgpu.consumers.kubernetes.nodeconfig import NodeConfigs
from hybridgpu.consumers.kubernetes.pluginconfig import PluginConfig, read_config
from hybridgpu.consumers.kubernetes.replicated import FEWEST
from hybridgpu.inventory.importer.models import Counts, of_label
from hybridgpu.inventory.importer.sharing import MOST_CARDS, Shares, counts, deal, spread
from hybridgpu.model.gpu import GpuModel
from hybridgpu.model.labels import MIG_CONFIG, SHARED_SUFFIX
from hybridgpu.model.sharing import Mode

_PREFIX = "nvidia.com/"
_INSTANCES = re.compile(rf"{_PREFIX}mig-([0-9]+g\.[0-9]+gb[a-z.-]*)")
_OF_SINGLE = re.compile(r"-MIG-([0-9]+g\.[0-9]+gb[a-z.+-]*?)(-SHARED)?$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class KubeView:
    """A node with GPUs in Kubernetes. `model` and `count` are None where nothing says them.

    `shares` is None where nothing says how GPUs are shared; `guess` is why it is a guess. `layout` is how each card is
    cut, () where none is or where it is not known; `lost`: instances that are there and fit on no such cards.
    """

    node: KubeNode
    model: GpuModel | None
    count: int | None
    shares: Shares | None
    layout: tuple[Counts | None, ...] = ()
    guess: str = ""
    lost: str = ""


class KubeSide:
    """The Kubernetes files, with what is asked of them for every node."""

    def __init__(self, files: KubeFiles) -> None:
        self.files, self.configs = files, NodeConfigs(files.sets)
        self.mig_files = miginforce.in_force(files)


def kube_view(node: KubeNode, side: KubeSide, model: GpuModel | None, cards: int | None) -> KubeView:
    """What the files show of the node. `model` and `cards` are what others know of its GPUs, None where they do not."""
    files = side.files
    model = of_label(node.labels.get(f"{_PREFIX}gpu.product", "")) or model
    config = _config(node, side.configs)
    count = cards or _count(node, config)
    layout, guess = _layout(node, side, model, count)
    shares = _shares(node, files, config, layout)
    lost = " + ".join(f"{number} x {profile}" for profile, number in counts(_instances(node)))
    lost = lost if guess and not layout else ""
    return KubeView(node, model, count or (len(layout) or None), shares, layout, guess, lost)


def _count(node: KubeNode, config: PluginConfig | None) -> int | None:
    """How many cards: feature discovery counts them, but under strategy single it counts instances."""
    labels = node.labels
    counted = label_number(labels.get(f"{_PREFIX}gpu.count"))
    if counted is not None and labels.get(f"{_PREFIX}mig.strategy") != "single":
        return counted or None
    if node.cards and node.cards.cards:
        return len(node.cards.cards)
    held = (node.allocatable or {}).get(f"{_PREFIX}gpu") or (node.allocatable or {}).get(f"{_PREFIX}gpu{SHARED_SUFFIX}")
    replicas = _replicas(config) or 1
    return held // replicas or None if held else None


def _config(node: KubeNode, configs: NodeConfigs) -> PluginConfig | None:
    """The config that the plugin of the node runs, as far as the files say; of several that may be meant the first."""
    chosen = next((one.config for one in configs.running(node)), None)
    return _read(chosen.text) if chosen else None


@lru_cache(maxsize=1024)
def _read(text: str) -> PluginConfig | None:
    return read_config(text).config


def _replicas(config: PluginConfig | None) -> int | None:
    """The number of the entry that shares whole GPUs; the largest where two do."""
    entries = config.replicated.entries if config and config.replicated else ()
    return max((e.replicas for e in entries if e.name == f"{_PREFIX}gpu"), default=None)


def _shares(
    node: KubeNode, files: KubeFiles, config: PluginConfig | None, layout: tuple[Counts | None, ...]
) -> Shares | None:
    strategy = _strategy(node, files, config)
    if any(layout):
        return Shares(Mode.MIG, layout=layout, strategy=strategy)
    if config is None:
        return _labelled(node)
    replicas, block = _replicas(config), config.replicated
    if block is None or replicas is None:
        return Shares(Mode.EXCLUSIVE)
    mode = Mode.MPS if config.mps else Mode.TIME_SLICING
    return Shares(mode, replicas, rename=block.rename_by_default, one_only=config.fail_above_one)


def _labelled(node: KubeNode) -> Shares | None:
    """What feature discovery says is in force (k8s-device-plugin internal/lm)."""
    word = node.labels.get(f"{_PREFIX}gpu.sharing-strategy")
    replicas = label_number(node.labels.get(f"{_PREFIX}gpu.replicas"))
    if word == "none":
        return Shares(Mode.EXCLUSIVE)
    if word not in (Mode.TIME_SLICING.value, Mode.MPS.value) or replicas is None or replicas < FEWEST:
        return None
    renamed = not node.labels.get(f"{_PREFIX}gpu.product", "").endswith("-SHARED")
    return Shares(Mode(word), replicas, rename=renamed, one_only=word == Mode.MPS.value)


def _strategy(node: KubeNode, files: KubeFiles, config: PluginConfig | None) -> str:
    read = config.flags.get("migStrategy") if config else None
    said = getattr(read, "value", read) or next((p.mig_strategy for p in files.policies if p.mig_strategy), None)
    return "single" if (said or node.labels.get(f"{_PREFIX}mig.strategy")) == "single" else "mixed"


def _layout(
    node: KubeNode, side: KubeSide, model: GpuModel | None, count: int | None
) -> tuple[tuple[Counts | None, ...], str]:
    """How each card is cut, and why that is a guess."""
    name = node.labels.get(MIG_CONFIG, "")
    for _, entries in miginforce.named(name, side.mig_files) if name else ():
        if model and count:
            after = apply(entries, node_of(model, count)).node
            return tuple(counts(i.profile for i in c.instances) or None for c in after.cards), ""
    made = miginforce.generated(name, [model] if model else ()) if name else ()
    if made and not any(made):
        return (), ""
    alike = max((cut for cut in made if cut), key=len, default=())
    if alike and count and all(set(cut or ()) == set(alike) for cut in made):
        return (counts(alike),) * count, "" if model else f"mig.config is {name}, and the model is not known"
    total = counts(_instances(node))
    cards = count if node.labels.get(f"{_PREFIX}mig.strategy") != "single" else None
    if not total:
        return (), ""
    whole = _whole(node)
    cut = cards - whole if cards and whole < cards else cards
    dealt = spread(total, cut) or deal(total, cut or MOST_CARDS, model)
    while not cut and dealt and dealt[-1] is None:
        dealt = dealt[:-1]
    dealt = (*dealt, *(None,) * ((cards or 0) - (cut or 0))) if dealt else ()
    return dealt, "instances are counted, not told apart by card"


def _whole(node: KubeNode) -> int:
    """How many whole cards the node offers beside its instances."""
    held = node.allocatable or {}
    return -(-held.get(f"{_PREFIX}gpu", 0) // (label_number(node.labels.get(f"{_PREFIX}gpu.replicas")) or 1))


def _instances(node: KubeNode) -> Iterator[str]:
    """The profile of each MIG instance, from allocatable or from feature discovery's labels."""
    offered = {
        resource: -(-number // (label_number(node.labels.get(f"{resource}.replicas")) or 1))
        for resource, number in (node.allocatable or {}).items()
    }
    held = {**offered, **_counted(node.labels)}
    for resource, number in held.items():
        if found := _INSTANCES.fullmatch(resource):
            yield from [found[1].replace(".me", "+me").replace(".gfx", "+gfx")] * min(number, 512)
    single = _OF_SINGLE.search(node.labels.get(f"{_PREFIX}gpu.product", ""))
    if single:
        yield from [single[1].lower()] * min(label_number(node.labels.get(f"{_PREFIX}gpu.count")) or 0, 512)


def _counted(labels: Mapping[str, str]) -> dict[str, int]:
    """Instances by resource, from labels of the form nvidia.com/mig-1g.10gb.count."""
    return {
        key.removesuffix(".count"): label_number(value) or 0
        for key, value in labels.items()
        if key.endswith(".count") and _INSTANCES.fullmatch(key.removesuffix(".count"))
    }
