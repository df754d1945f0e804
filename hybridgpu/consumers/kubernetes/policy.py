"""The GPU operator's settings as a record, from a ClusterPolicy or the values of its Helm chart, which becomes one.

Keys that are misspelt, values that no release takes. What the settings do to configs is kubejudge's business.
Sources: GPU Operator v26.3 config/crd nvidia.com_clusterpolicies.yaml, deployments/gpu-operator/values.yaml and
templates/{clusterpolicy,plugin_config,mig_config,validations}.yaml.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hybridgpu.consumers.kubernetes.block import Block, block_of
from hybridgpu.consumers.kubernetes.configmaps import MIG_KEY, configs_of, judge_mig_key, not_strings
from hybridgpu.consumers.kubernetes.given import ConfigSet, MigFile, Policy
from hybridgpu.consumers.kubernetes.tolerations import read_tolerations
from hybridgpu.files.gotree import GoList, GoMap, GoNode, GoScalar
from hybridgpu.files.manifest import Manifest
from hybridgpu.files.quoting import listed, shown
from hybridgpu.model.finding import Finding, Rule, Severity
from hybridgpu.model.labels import MPS_ROOT
from hybridgpu.model.spelling import nearest

_CRD = "GPU Operator v26.3 config/crd nvidia.com_clusterpolicies.yaml"

MISSPELT = Rule(
    "k8s-policy-misspelt-key",
    Severity.ERROR,
    "A key that the operator does not know is refused by kubectl, or dropped without a word by Helm.",
    "Write the key as documented.",
    f"{_CRD}; deployments/gpu-operator/values.yaml",
)
VALUE = Rule(
    "k8s-policy-value",
    Severity.ERROR,
    "The API server refuses the ClusterPolicy, or the operator's Helm chart fails: nothing of it is applied.",
    "Use one of the allowed values.",
    _CRD,
)
NOT_CREATED = Rule(
    "k8s-policy-data-not-created",
    Severity.WARNING,
    "The operator's Helm chart makes a ConfigMap of `data` only with `create: true`: it is passed over.",
    "Set create: true and a name, or remove data and apply the ConfigMap yourself.",
    "GPU Operator v26.3 deployments/gpu-operator/templates/plugin_config.yaml, mig_config.yaml",
)
NOT_CREATABLE = Rule(
    "k8s-policy-create-without",
    Severity.ERROR,
    "With `create: true` the chart needs a name and data: helm refuses to install.",
    "Give config.name and config.data, or set create: false.",
    "GPU Operator v26.3 deployments/gpu-operator/templates/validations.yaml",
)
RULES = (MISSPELT, VALUE, NOT_CREATED, NOT_CREATABLE)

STRATEGIES = ("none", "single", "mixed")
_MIG_DEFAULTS = ("all-disabled", "")

_COMMON = "enabled repository image version imagePullPolicy imagePullSecrets resources args env hostNetwork config"
_OLD = "nodeSelector affinity tolerations podSecurityContext securityContext priorityClassName annotations labels"
_UPGRADE = "autoUpgrade maxParallelUpgrades maxUnavailable waitForCompletion podDeletion gpuPodDeletion drain"
_SPEC = (
    "ccManager cdi daemonsets dcgm dcgmExporter devicePlugin driver gdrcopy gds gfd hostPaths kataManager "
    "kataSandboxDevicePlugin mig migManager nodeStatusExporter operator psa psp sandboxDevicePlugin sandboxWorkloads "
    "toolkit validator vfioManager vgpuDeviceManager vgpuManager"
)
_VALUES = (
    "platform nfd node-feature-discovery clusterPolicy gpuCluster draDriver extraObjects global nameOverride "
    "fullnameOverride fabricManager"
)
_BLOCKS: dict[str, str] = {
    "devicePlugin": f"{_COMMON} {_OLD} mps",
    "devicePlugin.config": "name default create data",
    "devicePlugin.mps": "root",
    "mig": "strategy",
    "migManager": f"{_COMMON} {_OLD} gpuClientsConfig",
    "migManager.config": "name default create data",
    "driver.upgradePolicy": _UPGRADE,
    "daemonsets": f"{_OLD} updateStrategy rollingUpdate",
}
"""The keys of the blocks that are judged, those of older releases too."""


@dataclass(frozen=True, slots=True)
class Told:
    """A policy, the configs that a chart's values hold beside it, and what is wrong with their keys and values."""

    policy: Policy
    sets: tuple[ConfigSet, ...] = ()
    mig: tuple[MigFile, ...] = ()
    findings: tuple[Finding, ...] = ()


def read_policy(manifest: Manifest) -> Told | None:
    """The record of a ClusterPolicy; None for any other object."""
    if manifest.kind != "ClusterPolicy" or not manifest.api_version.startswith("nvidia.com/"):
        return None
    block = block_of(manifest, manifest.get("spec"), "spec")
    return Told(_policy(block, manifest.title, chart=False), findings=tuple(_judge(block, _SPEC)))


def read_operator_values(manifest: Manifest, root: GoNode, title: str) -> Told:
    """The record of values of the operator's chart, which begin at `root`."""
    block = block_of(manifest, root)
    policy = _policy(block, title, chart=True)
    findings = [*_judge(block, f"{_SPEC} {_VALUES}")]
    sets: tuple[ConfigSet, ...] = ()
    mig: tuple[MigFile, ...] = ()
    for path in ("devicePlugin.config", "migManager.config"):
        findings += _created(block, path)
        if block.flag(f"{path}.create") is True:
            findings += not_strings(manifest, block.below(f"{path}.data"))
    if block.flag("devicePlugin.config.create") and policy.config_name and block.below("devicePlugin.config.data"):
        place, configs = (
            block.place("devicePlugin.config.data"),
            configs_of(manifest, block.below("devicePlugin.config.data")),
        )
        sets = (ConfigSet(f"{title} devicePlugin.config.data", policy.config_name, "", configs, place),)
    if block.flag("migManager.config.create") and policy.mig_config_name:
        path = "migManager.config.data"
        findings += judge_mig_key(path, block.below(path), block.place(path))
        mig = tuple(
            MigFile(
                *(f"{title} migManager.config.data", policy.mig_config_name, "", str(value.value)),
                *(manifest.inner(value), manifest.place(key), key.name),
            )
            for key, value in block.below("migManager.config.data")
            if key.name == MIG_KEY and isinstance(value, GoScalar) and isinstance(value.value, str)
        )
    return Told(policy, sets, mig, tuple(findings))


def plugin_env(policy: Policy) -> dict[str, str]:
    """The variables that the operator gives the plugin's containers, as far as they decide what a config does.

    An empty strategy leaves the choice to each config; the chart's own default is `single`, and so beats them all.
    """
    strategy = policy.mig_strategy
    if strategy is None and policy.chart:
        strategy = "single"
    given = {"MPS_ROOT": policy.mps_root or MPS_ROOT, **({"MIG_STRATEGY": strategy} if strategy else {})}
    return {**given, **policy.plugin_env}


def _policy(block: Block, title: str, *, chart: bool) -> Policy:
    env = block.node("devicePlugin.env")
    return Policy(
        title=title,
        place=block.manifest.place(),
        chart=chart,
        namespace=block.manifest.namespace,
        places=block.places,
        config_name=block.text("devicePlugin.config.name"),
        config_default=block.text("devicePlugin.config.default"),
        mig_strategy=block.text("mig.strategy"),
        mig_config_name=block.text("migManager.config.name"),
        mig_config_default=block.text("migManager.config.default"),
        mps_root=block.text("devicePlugin.mps.root"),
        plugin_env=read_env(env),
        driver_enabled=block.flag("driver.enabled"),
        auto_upgrade=block.flag("driver.upgradePolicy.autoUpgrade"),
        tolerations=read_tolerations(block.node("daemonsets.tolerations")),
        plugin=block.flag("devicePlugin.enabled") is not False,
        gfd=block.flag("gfd.enabled") is not False,
        mig_manager=block.flag("migManager.enabled") is not False,
    )


def read_env(node: GoNode | None) -> dict[str, str]:
    """The variables of a list `env` whose values are given as text; of one given twice the last counts."""
    found: dict[str, str] = {}
    for item in node.items if isinstance(node, GoList) else ():
        name = item.get("name") if isinstance(item, GoMap) else None
        value = item.get("value") if isinstance(item, GoMap) else None
        if isinstance(name, GoScalar) and isinstance(value, GoScalar):
            found[str(name.value)] = value.text if value.value is not None else ""
        elif isinstance(name, GoScalar) and isinstance(item, GoMap) and item.get("valueFrom") is None:
            found[str(name.value)] = ""
    return found


def _judge(block: Block, top: str) -> Iterator[Finding]:
    yield from block.misspelt(MISSPELT, "", top.split())
    for path, known in _BLOCKS.items():
        yield from block.misspelt(MISSPELT, path, known.split())
    yield from _choice(block, "mig.strategy", STRATEGIES, also=("",))
    yield from _choice(block, "migManager.config.default", _MIG_DEFAULTS)


def _choice(block: Block, path: str, allowed: tuple[str, ...], also: tuple[str, ...] = ()) -> Iterator[Finding]:
    node = block.node(path)
    value = node.value if isinstance(node, GoScalar) else node
    if node is None or value is None or (isinstance(value, str) and value in (*allowed, *also)):
        return
    text = node.text if isinstance(node, GoScalar) else "a block"
    near = nearest(text, allowed)
    what = listed(word or '""' for word in allowed)
    hint = f"did you mean {near}? Allowed: {what}" if near else f"allowed: {what}"
    yield Finding(VALUE, block.manifest.place(node), f"{path} is {shown(text)}", hint)


def _created(block: Block, path: str) -> Iterator[Finding]:
    """Whether the chart makes a ConfigMap of the data that stands in the values."""
    create, data = block.flag(f"{path}.create"), block.below(f"{path}.data")
    if data and not create:
        yield Finding(
            NOT_CREATED, block.place(f"{path}.data"), f"{path}.data is given without create: true", NOT_CREATED.fix
        )
    missing = [key for key, there in (("name", block.text(f"{path}.name")), ("data", data)) if not there]
    if create and missing:
        message = f"{path}.create is true, and {listed(f'{path}.{key}' for key in missing)} is not given"
        yield Finding(NOT_CREATABLE, block.place(f"{path}.create"), message, NOT_CREATABLE.fix)
