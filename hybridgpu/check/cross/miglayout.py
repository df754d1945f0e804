"""What mig-manager is told to cut a node's cards into: the config that the node's label names, over its cards."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache

from hybridgpu.consumers.kubernetes.given import KubeFiles, KubeNode, MigFile
from hybridgpu.consumers.kubernetes.migspec import MigEntry, read_mig
from hybridgpu.model.naming import kubernetes_resource

CONFIG = "nvidia.com/mig.config"


def layouts(node: KubeNode, kube: KubeFiles) -> tuple[tuple[MigFile, tuple[MigEntry, ...]], ...]:
    """The config of that name in each mig-parted file that has one."""
    name = node.labels.get(CONFIG)
    if not name:
        return ()
    found = []
    for file in kube.mig_files:
        configs = _configs(file.text)
        if name in configs:
            found.append((file, configs[name]))
    return tuple(found)


@lru_cache(maxsize=256)
def _configs(text: str) -> Mapping[str, tuple[MigEntry, ...]]:
    file = read_mig(text).file
    return file.configs if file else {}


def instances(entries: Sequence[MigEntry], cards: int) -> Counter[str] | None:
    """MIG devices by resource name on so many cards; None where device-filters leave open which entries meet them."""
    if any(entry.filters for entry in entries):
        return None
    counted: dict[int, Counter[str]] = {}
    for entry in entries:
        for index in range(cards):
            if entry.devices is None or index in entry.devices:
                names = {kubernetes_resource(text): count for text, count in entry.counts.items() if count}
                counted[index] = Counter(names)
    return sum(counted.values(), Counter())
