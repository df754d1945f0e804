"""What each node must be: NodeConfig, compiled from inventory and facts, and Site, all of them together.

Ten thousand equal nodes share one `NodeBody`: whoever works on a Site works once per body, not once per node. Nothing
here reads, renders or checks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hybridgpu.model.gpu import Placement
from hybridgpu.model.labels import MPS_ROOT
from hybridgpu.model.sharing import Scheduler, Sharing

KUBERNETES_CARDS = "hybridgpu_k8s"
"""The GRES that holds Kubernetes' cards of a split node, so that task/cgroup denies them to jobs (run on 24.11)."""


@dataclass(frozen=True, slots=True)
class Device:
    """One schedulable device: a whole GPU or one MIG instance.

    `index` is the GPU's PCI order; `minor` the N of /dev/nvidiaN; `files` the device file, for an instance followed by
    its GI and CI capability files; `profile` and `placement` are None for a whole GPU; `type` is Slurm's type name;
    `cores` and `links` as Slurm takes them; `assumed` says that files come from the driver's numbering, not from facts.
    """

    index: int
    pci_bus_id: str | None
    minor: int
    files: tuple[str, ...]
    type: str
    model: str
    memory_bytes: int
    profile: str | None = None
    placement: Placement | None = None
    cores: str | None = None
    links: tuple[int, ...] | None = None
    assumed: bool = True


@dataclass(frozen=True, slots=True)
class SlurmNode:
    """A body's Slurm side. `parameters` are NodeName keys in the order they are written, without Gres.

    `gres` is the site's own part of Gres= (`nic:2`), put after ours. `version` is the Slurm major (`24.11`).
    """

    version: str
    autodetect: str
    parameters: tuple[tuple[str, str], ...]
    gres: str = ""


@dataclass(frozen=True, slots=True)
class NodeBody:
    """Everything about a node but its names: equal nodes share one.

    `devices` are all of the node's devices in Slurm's order; `owners` has one scheduler per GPU index; on a node that
    is not split they are all the same. `slurm` is None for a node that is not in Slurm.
    """

    node_class: str
    models: tuple[str, ...]
    schedulers: tuple[Scheduler, ...]
    owners: tuple[Scheduler, ...]
    sharing: Sharing
    devices: tuple[Device, ...]
    slurm: SlurmNode | None

    @property
    def split(self) -> bool:
        """Whether the GPUs belong to both schedulers."""
        return len(set(self.owners)) > 1

    @property
    def slurm_devices(self) -> tuple[Device, ...]:
        """The devices Slurm is to offer, in its order: all of them, on a split node only Slurm's own."""
        if not self.split:
            return self.devices
        return tuple(d for d in self.devices if self.owners[d.index] is Scheduler.SLURM)

    @property
    def assumed(self) -> bool:
        """Whether any device file is a guess from the driver's numbering."""
        return any(d.assumed for d in self.devices)


@dataclass(frozen=True, slots=True)
class NodeConfig:
    """All that one node must be. `addresses`: its own NodeAddr, NodeHostname and Port, where the inventory has them."""

    name: str
    kubernetes_name: str
    body: NodeBody
    addresses: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class RetainedConfig:
    """What nodes may still run: a device-plugin config (kind `plugin`), a MIG layout (`mig`), or a whole file below
    `kubernetes/` (`file`). Name and text.
    """

    kind: str
    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Retained:
    """What is kept because it was there before.

    A GRES name taken away makes pending jobs run without their GPU; a config taken away from a node that runs it makes
    NVIDIA's config-manager crash until its pod is recreated.
    """

    gres_types: tuple[str, ...] = ()
    plugin_configs: tuple[RetainedConfig, ...] = ()


@dataclass(frozen=True, slots=True)
class SlurmSite:
    """What the site's Slurm has already and hybridgpu merges with, never replaces (inventory key `slurm.site`)."""

    gres_types: tuple[str, ...] = ()
    gres: tuple[str, ...] = ()
    prolog: tuple[str, ...] = ()
    epilog: tuple[str, ...] = ()
    task_prolog: str | None = None
    prolog_flags: tuple[str, ...] = ()
    accounting_tres: tuple[str, ...] = ()
    cgroup: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class SlurmCluster:
    """The cluster-wide Slurm settings of an inventory. `accounting` is `none` or `slurmdbd`."""

    version: str
    accounting: str = "none"
    conf_dir: str = "/etc/slurm"
    hooks_dir: str = "/etc/slurm"
    hooks_enabled: bool = True
    site: SlurmSite = SlurmSite()


@dataclass(frozen=True, slots=True)
class Toleration:
    """A Kubernetes toleration that the site's operands already have; None: the key is not given."""

    key: str | None
    operator: str | None
    value: str | None
    effect: str | None


OPERATOR = "gpu-operator"
"""The delivery by NVIDIA's GPU operator; the other one is the device plugin's Helm chart."""


@dataclass(frozen=True, slots=True)
class KubernetesCluster:
    """The cluster-wide Kubernetes settings. `delivery` is `device-plugin` (the Helm chart) or `gpu-operator`.

    `tolerations` are what the site's operands have already; `driver_root` is where the driver's files lie on a node;
    `runtime_class` the RuntimeClass of the plugin's pods, empty where nvidia is the nodes' default runtime.
    """

    delivery: str
    namespace: str
    mps_root: str = MPS_ROOT
    tolerations: tuple[Toleration, ...] = ()
    driver_root: str = "/"
    runtime_class: str = ""


@dataclass(frozen=True, slots=True)
class Site:
    """Every node's NodeConfig, and what they have in common. `name` is the inventory's.

    `slurm` and `kubernetes` are None where the site does without. `clients`: services that hold the cards for ever,
    beside the known ones.
    """

    name: str
    nodes: Mapping[str, NodeConfig]
    slurm: SlurmCluster | None
    kubernetes: KubernetesCluster | None = None
    retained: Retained = Retained()
    clients: tuple[str, ...] = ()
