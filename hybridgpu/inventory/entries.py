"""An inventory as it stands after reading: every name resolved, every default filled in, every value legal.

This is what `read` gives and `compile` takes. It keeps places only for messages, and knows nothing of files on the
node: minors, capability numbers and the like are compile's business.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hybridgpu.model.finding import Place
from hybridgpu.model.gpu import GpuModel, Instance
from hybridgpu.model.sharing import Scheduler, Sharing
from hybridgpu.model.site import KubernetesCluster, SlurmCluster


@dataclass(frozen=True, slots=True)
class NodeClass:
    """A kind of node. `gpus` has one model per GPU index (PCI order); `slurm` are NodeName keys in the order written,
    without Gres and the keys that are paired with hosts."""

    name: str
    gpus: tuple[GpuModel, ...]
    type: str | None
    slurm_version: str | None
    slurm: tuple[tuple[str, str], ...]
    place: Place


@dataclass(frozen=True, slots=True)
class NodeGroup:
    """One entry of `nodes:`.

    `hosts` are expanded, in order. `owners` has a scheduler per GPU index. `layout` has per GPU index the instances in
    the order of creation, or None for a GPU that stays whole. `slurm` are the NodeName keys of class and entry merged,
    without Gres; `gres` the site's own part of Gres=. `addresses` has NodeAddr, NodeHostname, BcastAddr and Port
    expanded, one value per host, in the order of `hosts`; these keys are not in `slurm`. `kubernetes_name` is the
    pattern, `{host}` for the host name.
    """

    hosts: tuple[str, ...]
    node_class: NodeClass
    schedulers: tuple[Scheduler, ...]
    owners: tuple[Scheduler, ...]
    sharing: Sharing
    layout: tuple[tuple[Instance, ...] | None, ...]
    kubernetes_name: str
    slurm: tuple[tuple[str, str], ...]
    gres: str
    addresses: Mapping[str, tuple[str, ...]]
    place: Place

    @property
    def in_both(self) -> bool:
        """Whether both schedulers know the nodes."""
        return set(Scheduler) <= set(self.schedulers)


@dataclass(frozen=True, slots=True)
class SlurmSettings:
    """The `slurm:` block. `version` is the major (`24.11`), None where the file gives none: `render` then refuses,
    `check` takes the newest, which is in `cluster.version`. `places`: see inventory.places."""

    cluster: SlurmCluster
    version: str | None
    autodetect: str
    controllers: tuple[str, ...]
    ssh_user: str
    consent_restart_controller: bool
    place: Place
    places: Mapping[str, Place]


@dataclass(frozen=True, slots=True)
class KubernetesSettings:
    """The `kubernetes:` block."""

    cluster: KubernetesCluster
    place: Place


@dataclass(frozen=True, slots=True)
class Inventory:
    """A whole inventory without an error in it."""

    name: str
    file: str
    slurm: SlurmSettings | None
    kubernetes: KubernetesSettings | None
    driver_root: str
    device_clients: tuple[str, ...]
    groups: tuple[NodeGroup, ...]
