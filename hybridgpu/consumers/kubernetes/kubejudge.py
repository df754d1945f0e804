"""What is wrong with a site's Kubernetes configuration: each config, each MIG layout, who chooses which, and how."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from hybridgpu.consumers.kubernetes.chartvalues import VARIABLES
from hybridgpu.consumers.kubernetes.configrules import DEFAULT_WITHOUT_KEY
from hybridgpu.consumers.kubernetes.driftjudge import judge_drift
from hybridgpu.consumers.kubernetes.given import Chart, ConfigSet, KubeFiles, Operand
from hybridgpu.consumers.kubernetes.migchoice import as_cut, judge_mig
from hybridgpu.consumers.kubernetes.operandjudge import judge_operand
from hybridgpu.consumers.kubernetes.operands import PLUGIN_PROGRAM
from hybridgpu.consumers.kubernetes.pluginconfig import read_config
from hybridgpu.consumers.kubernetes.policy import plugin_env
from hybridgpu.consumers.kubernetes.policyjudge import default_place, judge_policy, judge_unused
from hybridgpu.consumers.kubernetes.setjudge import Users, judge_built_in, judge_set
from hybridgpu.consumers.kubernetes.variables import judge_variables
from hybridgpu.files.quoting import shown
from hybridgpu.model.finding import Finding, Place, Related, Rule, Severity

MPS_WITHOUT_DISCOVERY = Rule(
    "k8s-chart-mps-without-discovery",
    Severity.ERROR,
    "The MPS daemon runs only on nodes that GPU feature discovery labels mps.capable, and that is left out, as the "
    "chart does by default: the plugin waits for the daemon for ever and the node offers no GPU.",
    "Set gfd.enabled: true in the chart's values or the ClusterPolicy.",
    "k8s-device-plugin v0.20.0 deployments/helm/nvidia-device-plugin; NVIDIA/k8s-device-plugin#634",
)
RULES = (MPS_WITHOUT_DISCOVERY,)

_CAPABLE = "nvidia.com/mps.capable"


def judge_configuration(files: KubeFiles) -> Iterator[Finding]:
    """All findings on configs, policies, operands, MIG files and the labels of nodes."""
    cut = replace(files, nodes=as_cut(files))
    users = Users(cut)
    for config_set in files.sets:
        for finding in judge_set(config_set, users):
            yield _at_default(finding, config_set, files) if finding.rule is DEFAULT_WITHOUT_KEY else finding
    yield from users.judge_labels(files.nodes)
    for policy in files.policies:
        yield from judge_policy(policy, files)
        if not policy.config_name and policy.plugin:
            yield from judge_built_in((node for node in cut.nodes if node.has_gpus), plugin_env(policy))
        if policy.plugin and not policy.gfd and not _discovered(files):
            place = policy.places.get("devicePlugin.config.name")
            mine = [each for each in files.sets if each.operator and each.user == place]
            yield from _undiscovered(mine, policy.title, policy.places.get("gfd.enabled"))
    yield from judge_unused(files)
    for chart in files.charts:
        yield from _chart(chart, files)
    for operand in files.operands:
        yield from _operand(operand, files)
    yield from judge_mig(files)
    yield from judge_drift(files)


def _at_default(finding: Finding, config_set: ConfigSet, files: KubeFiles) -> Finding:
    """The finding where the default is named, with the ConfigMap as its second place."""
    places: list[Place | None] = [default_place(policy, config_set) for policy in files.policies]
    places += [c.places.get("config.default") for c in files.charts if _serves(c, config_set)]
    place = next((place for place in places if place), None)
    if place is None:
        return finding
    return replace(finding, place=place, related=(Related(config_set.place, config_set.source),))


def _serves(chart: Chart, config_set: ConfigSet) -> bool:
    return config_set.user in (chart.place, chart.places.get("config.name"))


def _chart(chart: Chart, files: KubeFiles) -> Iterator[Finding]:
    places = {name: chart.places[key] for name, key in VARIABLES.items() if key in chart.places}
    yield from judge_variables(chart.env, places, chart.place)
    if chart.gfd or not chart.plugin or _discovered(files):
        return
    mine = [each for each in files.sets if each.managed and _serves(chart, each)]
    yield from _undiscovered(mine, chart.title, chart.places.get("gfd.enabled"))


def _undiscovered(sets: Iterable[ConfigSet], title: str, switch: Place | None) -> Iterator[Finding]:
    """The configs that share by MPS, where whoever runs them does not run feature discovery."""
    for config in (config for config_set in sets for config in config_set.configs):
        read = read_config(config.text).config
        if read is not None and read.sharing == "mps":
            message = f"{shown(config.key)} shares by mps, and gfd.enabled is not true in {title}"
            place = switch or config.place
            related = (Related(config.place, "the config"),) if place != config.place else ()
            yield Finding(MPS_WITHOUT_DISCOVERY, place, message, MPS_WITHOUT_DISCOVERY.fix, related)


def _discovered(files: KubeFiles) -> bool:
    """Whether somebody else among the files runs GPU feature discovery, or has set its label by hand."""
    return (
        any(operand.program == "gpu-feature-discovery" for operand in files.operands)
        or any(chart.gfd for chart in files.charts if not chart.plugin)
        or any(policy.gfd for policy in files.policies)
        or any(node.labels.get(_CAPABLE) == "true" for node in files.nodes)
    )


def _operand(operand: Operand, files: KubeFiles) -> Iterator[Finding]:
    if operand.program == PLUGIN_PROGRAM:
        yield from judge_variables(operand.env, {}, operand.place)
        yield from judge_operand(operand, files)
