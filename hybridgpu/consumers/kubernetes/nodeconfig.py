"""Which config a node's device plugin runs: from its labels to a set of configs and a key. The one answer for all.

What the config then does, and whether the choice is wise, is judged elsewhere. The cost is one look at each label of a
node, and not nodes times sets.
Sources: k8s-device-plugin v0.20.0 cmd/config-manager (the label), cmd/nvidia-device-plugin (CONFIG_FILE).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hybridgpu.consumers.kubernetes.configmanager import CHART, EMPTY, LABEL, Died, choose
from hybridgpu.consumers.kubernetes.given import Config, ConfigSet, KubeNode
from hybridgpu.model.labels import OUR_CONFIG

_FILE = "CONFIG_FILE"


@dataclass(frozen=True, slots=True)
class Running:
    """A key of a set; EMPTY: built-in defaults. `guess`: nobody among the files is known to use the set."""

    config_set: ConfigSet
    key: str
    guess: bool = False

    @property
    def config(self) -> Config | None:
        """The config itself; None for built-in defaults."""
        return next((config for config in self.config_set.configs if config.key == self.key), None)


class NodeConfigs:
    """The sets of a site by who runs them where."""

    def __init__(self, sets: Iterable[ConfigSet]) -> None:
        self._loose: list[ConfigSet] = []
        self._anywhere: list[ConfigSet] = []
        self._selected: dict[tuple[str, str], list[ConfigSet]] = {}
        self._by_key: dict[str, list[ConfigSet]] = {}
        self._hashed: dict[str, tuple[Running, ...]] = {}
        for each in sets:
            if not is_used(each):
                self._loose.append(each)
                for key in each.keys:
                    self._by_key.setdefault(key, []).append(each)
            elif each.selector:
                self._selected.setdefault(min(each.selector.items()), []).append(each)
            else:
                self._anywhere.append(each)
        self.used = bool(self._anywhere or self._selected)
        """Whether it is known who uses a set. Otherwise every ConfigMap may be meant."""

    def used_on(self, node: KubeNode) -> tuple[ConfigSet, ...]:
        """The sets whose users run on the node: those that ask for labels of its, where there are any."""
        selected = (each for item in node.labels.items() for each in self._selected.get(item, ()))
        here = tuple(each for each in selected if node.selected_by(each.selector))
        return here or tuple(self._anywhere)

    def choices(self, node: KubeNode) -> tuple[ConfigSet, ...]:
        """The sets in which the node's label is looked up; where nobody is known to use any, every ConfigMap's."""
        if self.used:
            return tuple(each for each in self.used_on(node) if each.managed)
        return tuple(each for each in self._loose if each.name)

    def running(self, node: KubeNode) -> tuple[Running, ...]:
        """What the node runs once its label has been seen; several where the files do not tell which, () if unknown."""
        label = node.labels.get(LABEL, "")
        if self.used:
            found = ((each, key_of(label, each)) for each in self.used_on(node))
            return tuple(Running(each, key) for each, key in found if key is not None)
        if by_hash := self._of_hash(node.labels.get(OUR_CONFIG, "")):
            return by_hash
        if label:
            return tuple(Running(each, label) for each in self._by_key.get(label, ()))
        key = choose("", self._loose[0].keys, CHART) if len(self._loose) == 1 else EMPTY
        return () if key == EMPTY or isinstance(key, Died) else (Running(self._loose[0], key, guess=True),)

    def _of_hash(self, label: str) -> tuple[Running, ...]:
        """What the label of hybridgpu's own chooses: a config whose key, or whose ConfigMap's name, ends with it."""
        if label and label not in self._hashed:
            self._hashed[label] = tuple(
                Running(each, config.key)
                for each in self._loose
                for config in each.configs
                if config.key.endswith(label) or each.name.endswith(label)
            )
        return self._hashed.get(label, ())


def is_used(config_set: ConfigSet) -> bool:
    """Whether somebody among the files is known to run the set's configs."""
    return config_set.managed or config_set.user is not None


def key_of(label: str, config_set: ConfigSet) -> str | None:
    """The key of a used set that a node with this label runs, None where the program dies or nothing is known.

    Without a config-manager the label is not looked at: the program reads the file that CONFIG_FILE names.
    """
    if config_set.managed:
        key = choose(label, config_set.keys, config_set.settings)
        return None if isinstance(key, Died) else key
    file = (config_set.env or {}).get(_FILE, "").rpartition("/")[2]
    only = next(iter(config_set.keys)) if len(config_set.keys) == 1 else None
    return file if file in config_set.keys else only
