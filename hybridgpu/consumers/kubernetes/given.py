"""What a site's Kubernetes files say about GPUs, as records: configs, policies, nodes, and those who ask.

Records only. Reading them from objects and judging them is done beside this file; who contradicts whom across files is
check's business. Every record knows where it stands.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hybridgpu.consumers.kubernetes.configmanager import CHART, Settings
from hybridgpu.consumers.kubernetes.labelnumber import label_number
from hybridgpu.consumers.kubernetes.node import Node
from hybridgpu.files.where import Where
from hybridgpu.model.finding import Place
from hybridgpu.model.labels import DEPLOY_PLUGIN, MIG_CONFIG, OUR_CONFIG, PLUGIN_CONFIG
from hybridgpu.model.site import Toleration


@dataclass(frozen=True, slots=True)
class Config:
    """One device-plugin config: a key of a ConfigMap or of a chart's `config.map`, or a file. `place`: its key's."""

    key: str
    text: str
    where: Where
    place: Place


@dataclass(frozen=True, slots=True)
class ConfigSet:
    """The configs that one config-manager chooses from, and how it is started.

    `source` is what holds them (`ConfigMap gpu-operator/device-plugin-config`, `values.yaml config.map`, a file's
    path). `name` and `namespace` are the ConfigMap's, "" where it is none. `managed` says that a known config-manager
    (chart, operator) is among the inputs, and `settings` are its; without one nothing is known of defaults. `env` are
    the variables of the plugin's containers; None: nothing of them is known. `user` is where the set is named, and
    `selector` the node labels that the user's pods demand. `operator`: that user is the GPU operator.
    """

    source: str
    name: str
    namespace: str
    configs: tuple[Config, ...]
    place: Place
    managed: bool = False
    settings: Settings = CHART
    env: Mapping[str, str] | None = None
    user: Place | None = None
    selector: Mapping[str, str] = field(default_factory=dict)
    operator: bool = False
    keys: Mapping[str, str] = field(init=False, repr=False, compare=False)
    """Key to text, as configmanager takes them."""

    def __post_init__(self) -> None:
        """Once, since every node asks."""
        object.__setattr__(self, "keys", {config.key: config.text for config in self.configs})


@dataclass(frozen=True, slots=True)
class MigFile:
    """A mig-parted file: on its own, a value of a ConfigMap, or inside Helm values. `source` is for messages.

    `key` is the ConfigMap's key that holds it, "" for a file on its own.
    """

    source: str
    name: str
    namespace: str
    text: str
    where: Where
    place: Place
    key: str = ""


@dataclass(frozen=True, slots=True)
class Policy:
    """A ClusterPolicy, or the operator's Helm values, which become one (`chart` then).

    `namespace`: where the operator runs, "" if the file does not say. `places` has the place of each key that was
    given, by its path (`devicePlugin.config.name`). A value that is not given is None: what holds then, and what the
    operator's chart sets otherwise, is the judge's business. `plugin`, `gfd`, `mig_manager`: whether it runs them.
    """

    title: str
    place: Place
    chart: bool
    namespace: str
    places: Mapping[str, Place]
    config_name: str | None = None
    config_default: str | None = None
    mig_strategy: str | None = None
    mig_config_name: str | None = None
    mig_config_default: str | None = None
    mps_root: str | None = None
    plugin_env: Mapping[str, str] = field(default_factory=dict)
    driver_enabled: bool | None = None
    auto_upgrade: bool | None = None
    tolerations: tuple[Toleration, ...] | None = None
    plugin: bool = True
    gfd: bool = True
    mig_manager: bool = True


@dataclass(frozen=True, slots=True)
class Operand:
    """A DaemonSet (or other workload) that runs one of NVIDIA's programs: the plugin, GFD, the MPS daemon ...

    `program` is `device-plugin`, `gpu-feature-discovery`, `mps-control-daemon`, `mig-manager`, `dcgm-exporter`.
    `env` are its variables and command-line flags as variables; `config_map` the ConfigMap its config comes from, or
    "". `settings`: those of the config-manager beside it, None where there is none. `config_key` is the key of the
    ConfigMap that its config file must be, "" where that is not told; `config_place` is where the ConfigMap is named,
    `file_place` where the file is. `misspelt` are flags that it does not know, each with the right one.
    """

    title: str
    program: str
    namespace: str
    place: Place
    env: Mapping[str, str]
    config_map: str = ""
    tolerations: tuple[Toleration, ...] = ()
    settings: Settings | None = None
    selector: Mapping[str, str] = field(default_factory=dict)
    config_key: str = ""
    config_place: Place | None = None
    file_place: Place | None = None
    misspelt: tuple[tuple[str, str, Place], ...] = ()


@dataclass(frozen=True, slots=True)
class Chart:
    """Values of the device plugin's own Helm chart. `places` as in Policy; `gfd`, `plugin`: whether it runs them.

    `env` are the variables that the chart gives the plugin. `tolerations` None: the chart's own.
    """

    title: str
    place: Place
    places: Mapping[str, Place]
    env: Mapping[str, str]
    settings: Settings = CHART
    config_name: str = ""
    gfd: bool = False
    plugin: bool = True
    tolerations: tuple[Toleration, ...] | None = None
    selector: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Taint:
    """A Node's taint."""

    key: str
    value: str
    effect: str
    place: Place


@dataclass(frozen=True, slots=True)
class KubeNode:
    """A Node object. `allocatable` are its nvidia.com resources; None where the file has no status.

    `labels` are all, `label_places` where those below nvidia.com/ stand. `cards` is what its labels say of the
    hardware (GFD's product and count, or NVML's), None where they do not.
    """

    name: str
    place: Place
    labels: Mapping[str, str]
    label_places: Mapping[str, Place]
    taints: tuple[Taint, ...]
    allocatable: Mapping[str, int] | None
    unschedulable: bool
    cards: Node | None

    @property
    def host_names(self) -> tuple[str, ...]:
        """Its own name, and the host name that its kubelet labels it with."""
        host = self.labels.get("kubernetes.io/hostname", "")
        return (self.name, host) if host else (self.name,)

    @property
    def offers(self) -> bool:
        """Whether it offers GPUs, as far as the file shows: allocatable, else labels that say so."""
        if self.allocatable is not None:
            return any(self.allocatable.values())
        return self.has_gpus and self.labels.get(DEPLOY_PLUGIN) != "false"

    def selected_by(self, selector: Mapping[str, str]) -> bool:
        """Whether pods with this nodeSelector may run there."""
        return selector.items() <= self.labels.items()

    @property
    def has_gpus(self) -> bool:
        """Whether it has GPUs at all, as far as the file shows."""
        count = label_number(self.labels.get("nvidia.com/gpu.count"))
        present = self.labels.get("nvidia.com/gpu.present") == "true" or bool(count)
        chosen = {PLUGIN_CONFIG, MIG_CONFIG, OUR_CONFIG} & set(self.labels)
        return present or bool(chosen) or bool(self.allocatable and any(self.allocatable.values()))


@dataclass(frozen=True, slots=True)
class Ask:
    """One container's request for a resource below nvidia.com/. `count` is None where the number cannot be read.

    `wrong`: why the API server does not take the number. `limited`: there is a limit, and not a request alone;
    `request` is what stands beside it, as text and number. `template` counts the pod templates of an object from 0;
    `init`: an init container's.
    """

    container: str
    resource: str
    count: int | None
    text: str
    place: Place
    wrong: str = ""
    limited: bool = True
    request: tuple[str, int | None] | None = None
    template: int = 0
    init: bool = False


@dataclass(frozen=True, slots=True)
class Misplaced:
    """A GPU that is asked for where nobody looks: `under` which keys, and what to write instead, in words."""

    name: str
    under: str
    right: str
    place: Place


@dataclass(frozen=True, slots=True)
class Workload:
    """A Pod, or what makes pods, and what its containers ask for (limits; requests where there is no limit).

    `shm` is where a container that asks for GPUs, `shm_of`, mounts a volume of its own on /dev/shm. `visible` is where
    a container sets NVIDIA_VISIBLE_DEVICES to something other than void or none, `visible_text` to what. The node
    selector has what an affinity demands in the same way, and of several templates what all demand; `choosy`: there is
    more that chooses nodes. Tolerations are those of all templates together, `toleration_places` one for each.
    `pod_level` are GPUs asked for by the pod and no container. `known`: Kubernetes' own kind.
    """

    title: str
    kind: str
    namespace: str
    place: Place
    asks: tuple[Ask, ...]
    node_selector: Mapping[str, str]
    node_name: str = ""
    selector_places: Mapping[str, Place] = field(default_factory=dict)
    tolerations: tuple[Toleration, ...] = ()
    toleration_places: tuple[Place, ...] = ()
    shm: Place | None = None
    visible: Place | None = None
    shm_of: str = ""
    visible_text: str = ""
    choosy: bool = False
    pod_level: tuple[tuple[str, Place], ...] = ()
    misplaced: tuple[Misplaced, ...] = ()
    known: bool = True


@dataclass(frozen=True, slots=True)
class Bound:
    """A number that a ResourceQuota or LimitRange sets on a resource below nvidia.com/.

    `field` as written (`requests.nvidia.com/gpu`, `max`), `resource` the bare name. `kind` is the object's; of a
    LimitRange `item` counts its limits from 0 and `scope` is what they are for (`Container`, `Pod`).
    """

    title: str
    namespace: str
    field: str
    resource: str
    text: str
    place: Place
    kind: str = "ResourceQuota"
    scope: str = ""
    item: int = 0
    count: int | None = None
    wrong: str = ""


@dataclass(frozen=True, slots=True)
class KubeFiles:
    """Everything that the Kubernetes files among the inputs say about GPUs."""

    sets: tuple[ConfigSet, ...] = ()
    mig_files: tuple[MigFile, ...] = ()
    policies: tuple[Policy, ...] = ()
    charts: tuple[Chart, ...] = ()
    operands: tuple[Operand, ...] = ()
    nodes: tuple[KubeNode, ...] = ()
    workloads: tuple[Workload, ...] = ()
    bounds: tuple[Bound, ...] = ()
