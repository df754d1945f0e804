"""Values of the device plugin's own Helm chart as a record: its configs, its config-manager, its plugin's variables.

Keys that are misspelt and what the chart's validation refuses. Source: k8s-device-plugin v0.20.0
deployments/helm/nvidia-device-plugin values.yaml, templates/{_helpers.tpl,validation.yml,daemonset-*.yml}.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hybridgpu.consumers.kubernetes.block import Block, block_of
from hybridgpu.consumers.kubernetes.configmanager import CHART, Settings
from hybridgpu.consumers.kubernetes.configmaps import configs_of, is_plugin_config, not_strings
from hybridgpu.consumers.kubernetes.given import Chart, ConfigSet
from hybridgpu.consumers.kubernetes.tolerations import read_tolerations
from hybridgpu.files.gotree import GoList, GoMap, GoNode, GoScalar
from hybridgpu.files.manifest import Manifest, at
from hybridgpu.files.quoting import listed, shown
from hybridgpu.model.finding import Finding, Related, Rule, Severity
from hybridgpu.model.labels import MPS_ROOT
from hybridgpu.model.spelling import nearest

_CHART = "k8s-device-plugin v0.20.0 deployments/helm/nvidia-device-plugin"

MISSPELT = Rule(
    "k8s-chart-misspelt-key",
    Severity.ERROR,
    "Helm passes over a value that no template asks for without a word.",
    "Write the key as documented.",
    f"{_CHART}/values.yaml",
)
NAME_AND_MAP = Rule(
    "k8s-chart-name-and-map",
    Severity.ERROR,
    "The chart refuses to install with both config.name and config.map.",
    "Keep config.map for configs in the values, or config.name for a ConfigMap of your own.",
    f"{_CHART}/templates/validation.yml; run",
)
NAMESPACE = Rule(
    "k8s-chart-namespace",
    Severity.ERROR,
    "The chart refuses to install with a value `namespace`.",
    "Use helm's --namespace, or namespaceOverride.",
    f"{_CHART}/templates/validation.yml; run",
)
FALLBACK = Rule(
    "k8s-chart-fallback",
    Severity.ERROR,
    "config-manager exits 1 at an unknown fallback strategy, and the pod crash-loops.",
    "Use named, single or empty.",
    "k8s-device-plugin v0.20.0 cmd/config-manager/main.go; run",
)
RULES = (MISSPELT, NAME_AND_MAP, NAMESPACE, FALLBACK)

PLUGIN_CHART, OPERATOR_CHART = "nvidia-device-plugin", "gpu-operator"

FALLBACKS = ("named", "single", "empty")
_TOP = (
    "config compatWithCPUManager migStrategy failOnInitError deviceListStrategy deviceIDStrategy nvidiaDriverRoot "
    "nvidiaDevRoot gdrcopyEnabled gdsEnabled mofedEnabled deviceDiscoveryStrategy nameOverride fullnameOverride "
    "namespaceOverride selectorLabelsOverride allowDefaultNamespace imagePullSecrets image updateStrategy "
    "podAnnotations podSecurityContext securityContext resources nodeSelector affinity tolerations priorityClassName "
    "runtimeClassName devicePlugin gfd nfd mps cdi namespace global legacyDaemonsetAPI"
)
_BLOCKS = {
    "config": "name map default fallbackStrategies",
    "mps": "root enableHostPID",
    "devicePlugin": "enabled enableHostNetwork",
    "gfd": "enabled nameOverride namespaceOverride noTimestamp sleepInterval securityContext",
}
_TEXTS = {
    "migStrategy": "MIG_STRATEGY",
    "deviceListStrategy": "DEVICE_LIST_STRATEGY",
    "deviceIDStrategy": "DEVICE_ID_STRATEGY",
    "nvidiaDriverRoot": "NVIDIA_DRIVER_ROOT",
    "nvidiaDevRoot": "NVIDIA_DEV_ROOT",
    "deviceDiscoveryStrategy": "DEVICE_DISCOVERY_STRATEGY",
}
_SWITCHES = {
    "failOnInitError": "FAIL_ON_INIT_ERROR",
    "compatWithCPUManager": "PASS_DEVICE_SPECS",
    "gdrcopyEnabled": "GDRCOPY_ENABLED",
    "gdsEnabled": "GDS_ENABLED",
    "mofedEnabled": "MOFED_ENABLED",
}
VARIABLES = {variable: key for key, variable in (*_TEXTS.items(), *_SWITCHES.items())} | {"MPS_ROOT": "mps.root"}
"""The plugin's variables, and the value of the chart that each comes from."""

_FEW = 2
_OPERATORS = frozenset(("migManager", "driver", "toolkit", "operator", "daemonsets", "dcgm", "dcgmExporter", "mig"))
"""Blocks that only the operator's values have."""


@dataclass(frozen=True, slots=True)
class Told:
    """The values, the configs in them, and what is wrong with their keys."""

    chart: Chart
    sets: tuple[ConfigSet, ...] = ()
    findings: tuple[Finding, ...] = ()


def chart_of(root: GoNode | None) -> str:
    """Whose values they are: PLUGIN_CHART's, OPERATOR_CHART's, or "" where they are some other chart's.

    Both have names that many charts have (`config`, `driver`, `resources`): only what is their own tells.
    """
    names = _names(root)
    devices = _names(at(root, "devicePlugin")) - {"enabled", "enableHostNetwork"}
    if "migManager" in names or devices or len(names & _OPERATORS) >= _FEW:
        return OPERATOR_CHART
    if names & {"devicePlugin", "gfd", *_TEXTS, *_SWITCHES}:
        return PLUGIN_CHART
    values = at(root, "config", "map")
    configs = isinstance(values, GoMap) and any(is_plugin_config(value) for _, value in values.entries)
    named = at(root, "config", "name") is not None and names <= {"config", "mps", "nodeSelector", "tolerations", "nfd"}
    return PLUGIN_CHART if configs or named else ""


def parts_of(root: GoMap) -> tuple[tuple[str, GoMap], ...]:
    """What the values of an umbrella chart have for either of the two, by the part's name; () where they are no such.

    A block without any value of the chart, as `{enabled: true}`, only says whether the part is there.
    """
    own = {PLUGIN_CHART: frozenset(_TOP.split()), OPERATOR_CHART: _OPERATORS | {"devicePlugin", "gfd", "nfd"}}
    return tuple(
        (part, below) for part in own if isinstance(below := root.get(part), GoMap) and _names(below) & own[part]
    )


def _names(node: GoNode | None) -> set[str]:
    return {key.name for key, _ in node.entries} if isinstance(node, GoMap) else set()


def read_chart_values(manifest: Manifest, root: GoNode, title: str) -> Told:
    """The record of the values that begin at `root`."""
    block = block_of(manifest, root)
    settings = _settings(block)
    env = _env(block)
    chart = Chart(
        title=title,
        place=manifest.place(root),
        places=block.places,
        env=env,
        settings=settings,
        config_name=block.text("config.name") or "",
        gfd=block.flag("gfd.enabled") is True,
        plugin=block.flag("devicePlugin.enabled") is not False,
        tolerations=read_tolerations(block.node("tolerations")),
        selector={key.name: value.text for key, value in block.below("nodeSelector") if isinstance(value, GoScalar)},
    )
    sets: tuple[ConfigSet, ...] = ()
    values = block.below("config.map")
    if values:
        place = block.place("config.map")
        source = f"{title} config.map"
        configs = configs_of(manifest, values)
        sets = (
            ConfigSet(
                *(source, "", "", configs, place),
                managed=True,
                settings=settings,
                env=env,
                user=chart.place,
                selector=chart.selector,
            ),
        )
    return Told(chart, sets, tuple(_judge(block, chart)))


def _settings(block: Block) -> Settings:
    fallbacks = block.node("config.fallbackStrategies")
    words = CHART.fallbacks
    if isinstance(fallbacks, GoList):
        words = tuple(item.text for item in fallbacks.items if isinstance(item, GoScalar))
    return Settings(block.text("config.default") or "", words)


def _env(block: Block) -> dict[str, str]:
    """What the chart gives the plugin's container: a text only where the value is one, a bool likewise."""
    env = {"MPS_ROOT": block.text("mps.root") or MPS_ROOT}
    for key, variable in _TEXTS.items():
        value = block.value(key)
        if isinstance(value, str):
            env[variable] = value
    for key, variable in _SWITCHES.items():
        if (switch := block.flag(key)) is not None:
            env[variable] = "true" if switch else "false"
    return env


def _judge(block: Block, chart: Chart) -> Iterator[Finding]:
    yield from block.misspelt(MISSPELT, "", _TOP.split())
    for path, known in _BLOCKS.items():
        yield from block.misspelt(MISSPELT, path, known.split())
    values = block.below("config.map")
    yield from not_strings(block.manifest, values)
    if chart.config_name and values:
        related = (Related(block.place("config.name"), "config.name"),)
        message = f"config.map is given beside config.name: {chart.config_name}"
        yield Finding(NAME_AND_MAP, block.place("config.map"), message, NAME_AND_MAP.fix, related)
    if block.value("namespace"):
        message = f"the value namespace is {shown(block.text('namespace') or '')}"
        yield Finding(NAMESPACE, block.place("namespace"), message, NAMESPACE.fix)
    for word in chart.settings.fallbacks:
        if word not in FALLBACKS:
            near = nearest(word, FALLBACKS)
            hint = f"did you mean {near}?" if near else f"allowed: {listed(FALLBACKS)}"
            message = f"config.fallbackStrategies has {shown(word)}"
            yield Finding(FALLBACK, block.place("config.fallbackStrategies"), message, hint)
