"""What Kubernetes' files believe of a node's sharing: each statement with the modes it leaves possible, and its place.

A statement is explicit where somebody chose it for this node (a label); what labels and allocatable show is not.
Sources: k8s-device-plugin v0.20.0 (config-manager, internal/lm), gpu-operator controllers/object_controls.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from hybridgpu.check.cross.kubecards import devices
from hybridgpu.check.cross.miglayout import enabled
from hybridgpu.consumers.kubernetes.given import Config, ConfigSet, KubeFiles, KubeNode, MigFile
from hybridgpu.consumers.kubernetes.miginforce import in_force
from hybridgpu.consumers.kubernetes.nodeconfig import NodeConfigs, Running
from hybridgpu.consumers.kubernetes.pluginconfig import PluginConfig, read_config
from hybridgpu.model.finding import Place
from hybridgpu.model.labels import DEPLOY_MIG_MANAGER, MIG_CONFIG, MIG_RESOURCE, PLUGIN_CONFIG
from hybridgpu.model.sharing import Mode

_GPU = "nvidia.com/gpu"
_COUNT = re.compile(r"nvidia\.com/mig-.+\.count")
_WHOLE = frozenset((Mode.EXCLUSIVE, Mode.TIME_SLICING, Mode.MPS))
_CUT = frozenset((Mode.MIG,))
_UNSHARED = frozenset((Mode.EXCLUSIVE, Mode.MIG))


@dataclass(frozen=True, slots=True)
class Belief:
    """One statement: the node's mode is one of `modes`. `words` say what was read."""

    modes: frozenset[Mode]
    words: str
    place: Place
    explicit: bool


class Believing:
    """All that the files say of every node's mode."""

    def __init__(self, kube: KubeFiles) -> None:
        self.mig_files = in_force(kube)
        self._configs = NodeConfigs(kube.sets)

    def of(self, node: KubeNode) -> tuple[Belief, ...]:
        """All that is said of one node, what somebody chose first."""
        seen, running = tuple(_seen(node)), self._configs.running(node)
        cut = any(belief.modes == _CUT for belief in seen)
        chosen = tuple(b for b in _chosen(node, running) if not (cut and Mode.TIME_SLICING in b.modes))
        default = () if seen or chosen or PLUGIN_CONFIG in node.labels else tuple(_default(running))
        return (*chosen, *_layout(node, self.mig_files), *seen, *default)


def _chosen(node: KubeNode, running: Sequence[Running]) -> Iterator[Belief]:
    """The config that the node's label names; where several sets have such a key, all must say the same."""
    key = node.labels.get(PLUGIN_CONFIG)
    named = [(one.config, one.config_set) for one in running if one.key == key]
    told = {_modes(config, found): (config, found) for config, found in named if config}
    if key and len(told) == 1:
        modes, (config, found) = next(iter(told.items()))
        if modes:
            words = f"the label {PLUGIN_CONFIG}={key} chooses {_sharing(config)} ({found.source})"
            yield Belief(modes, words, node.label_places.get(PLUGIN_CONFIG, node.place), True)


def _default(running: Sequence[Running]) -> Iterator[Belief]:
    """The config without a label, where there is one set for the node, and one config or a user that is known.

    A set that is there for nodes with a label of this one's was chosen by that label.
    """
    one = running[0] if len(running) == 1 else None
    config, found = (one.config, one.config_set) if one else (None, None)
    if one is None or config is None or found is None or (one.guess and len(found.configs) != 1):
        return
    modes = _modes(config, found)
    if modes:
        words = f"its config is {one.key} with {_sharing(config)} ({found.source})"
        yield Belief(modes, words, config.place, bool(found.selector))


def _modes(config: Config, found: ConfigSet) -> frozenset[Mode]:
    """The modes that a config leaves possible; empty where it says nothing, or is refused."""
    read = _read(config.text)
    if read is None:
        return frozenset()
    if read.sharing == "mps":
        return frozenset((Mode.MPS,))
    strategy, written = _strategy(read, found)
    if read.sharing == "none":
        return frozenset((Mode.EXCLUSIVE,)) if strategy == "none" and written else _UNSHARED
    names = {entry.name for entry in read.replicated.entries} if read.replicated else set()
    cut = any(name.startswith(MIG_RESOURCE) for name in names)
    if _GPU not in names:
        return _UNSHARED if cut else frozenset()
    return frozenset((Mode.TIME_SLICING, Mode.MIG)) if cut or strategy == "single" else frozenset((Mode.TIME_SLICING,))


@lru_cache(maxsize=256)
def _read(text: str) -> PluginConfig | None:
    return read_config(text).config


def _strategy(config: PluginConfig, found: ConfigSet) -> tuple[str, bool]:
    """The MIG strategy in force, and whether somebody wrote it: a variable beats the file (flags.go)."""
    if found.env and found.env.get("MIG_STRATEGY"):
        return found.env["MIG_STRATEGY"], True
    flag = config.flags.get("migStrategy")
    if flag is not None and isinstance(flag.value, str) and flag.value:
        return flag.value, True
    return "none", False


def _sharing(config: Config) -> str:
    read = _read(config.text)
    sharing = read.sharing if read else "none"
    return "no sharing" if sharing == "none" else sharing


def _layout(node: KubeNode, files: Sequence[MigFile]) -> Iterator[Belief]:
    """What mig-manager cuts the cards into by the node's label."""
    on = enabled(node, files)
    if on is None or node.labels.get(DEPLOY_MIG_MANAGER) == "false":
        return
    words = f"the label {MIG_CONFIG}={node.labels[MIG_CONFIG]} has MIG {'on' if on else 'off'}"
    yield Belief(_CUT if on else _WHOLE, words, node.label_places.get(MIG_CONFIG, node.place), True)


def _seen(node: KubeNode) -> Iterator[Belief]:
    """What feature discovery and the kubelet wrote on the Node."""
    labels = node.labels
    strategy = labels.get(f"{_GPU}.sharing-strategy", "")
    shared = {"mps": frozenset((Mode.MPS,)), "time-slicing": frozenset((Mode.TIME_SLICING, Mode.MIG))}
    shared["none"] = _UNSHARED
    if strategy in shared:
        key = f"{_GPU}.sharing-strategy"
        yield Belief(shared[strategy], f"{key} is {strategy}", node.label_places.get(key, node.place), False)
    offered = devices(node)
    cut = [key for key in labels if _COUNT.fullmatch(key) and labels[key] not in ("", "0")]
    product = labels.get(f"{_GPU}.product", "")
    if resources := [name for name in offered if name.startswith(MIG_RESOURCE)]:
        yield Belief(_CUT, f"it offers {', '.join(resources)}", node.place, False)
    elif cut or ("-MIG-" in product and "INVALID" not in product):
        key = cut[0] if cut else f"{_GPU}.product"
        yield Belief(_CUT, f"{key} is {labels[key]}", node.label_places.get(key, node.place), False)
    elif product and offered.get(_GPU) and labels.get("nvidia.com/mig.strategy") != "single":
        yield Belief(_WHOLE, f"it offers {offered[_GPU]} whole cards ({product})", node.place, False)
