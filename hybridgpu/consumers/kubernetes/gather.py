"""From files that were given to records of what they say about GPUs, and what hinders reading them.

Names are followed here: a policy, a chart or a DaemonSet says which ConfigMap holds configs at all, how its
config-manager is started and with which variables. Whether all of that is sound is judged elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from hybridgpu.consumers.kubernetes.asks import read_bounds, read_workload
from hybridgpu.consumers.kubernetes.chartvalues import (
    OPERATOR_CHART,
    PLUGIN_CHART,
    chart_of,
    parts_of,
    read_chart_values,
)
from hybridgpu.consumers.kubernetes.configmanager import OPERATOR, Settings
from hybridgpu.consumers.kubernetes.configmaps import Held, judge_mig_key, read_config_map
from hybridgpu.consumers.kubernetes.given import (
    Bound,
    Chart,
    Config,
    ConfigSet,
    KubeFiles,
    KubeNode,
    MigFile,
    Operand,
    Policy,
    Workload,
)
from hybridgpu.consumers.kubernetes.nodes import read_node
from hybridgpu.consumers.kubernetes.operands import PLUGIN_PROGRAM, read_operands
from hybridgpu.consumers.kubernetes.policy import plugin_env, read_operator_values, read_policy
from hybridgpu.consumers.kubernetes.wrappers import wrapped, wraps
from hybridgpu.consumers.kubernetes.yamlrules import judge_yaml
from hybridgpu.files.gotree import GoMap, GoNode
from hybridgpu.files.kinds import Input, Kind
from hybridgpu.files.manifest import Manifest, read_manifests
from hybridgpu.files.source import Source, read_source
from hybridgpu.files.where import in_file
from hybridgpu.model.finding import Finding, Place

MOST_BYTES = 64 * 2**20
"""The largest file read, in bytes: `kubectl get nodes -o json` of some thousand nodes."""

_READ = frozenset((Kind.MANIFEST, Kind.MIG_PARTED, Kind.PLUGIN_CONFIG, Kind.HELM_VALUES))


@dataclass(slots=True)
class _Found:
    """What was read so far; ConfigMaps wait until everybody who may name one is known."""

    sets: list[ConfigSet] = field(default_factory=list)
    mig: list[MigFile] = field(default_factory=list)
    policies: list[Policy] = field(default_factory=list)
    charts: list[Chart] = field(default_factory=list)
    operands: list[Operand] = field(default_factory=list)
    nodes: list[KubeNode] = field(default_factory=list)
    maps: list[Manifest] = field(default_factory=list)
    asking: list[Manifest] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    mine: list[Manifest] = field(default_factory=list)


def gather(given: Sequence[Input]) -> tuple[KubeFiles, tuple[Finding, ...]]:
    """What the Kubernetes files among `given` say, and what hinders reading them.

    A file that vanished or may not be read by now is passed over: whoever found it has said so.
    """
    found = _Found()
    for file in given:
        if file.kind not in _READ:
            continue
        try:
            source = read_source(file.path, most=MOST_BYTES)
        except OSError:
            continue
        if isinstance(source, Source):
            _take(file, source.text, found)
        else:
            found.findings.append(source)
    _config_maps(found)
    workloads: list[Workload] = []
    bounds: list[Bound] = []
    for manifest in found.asking:
        workload, bounded = read_workload(manifest), read_bounds(manifest)
        workloads += [workload] if workload else []
        bounds += bounded
        if workload or bounded:
            found.mine.append(manifest)
    found.findings += _twice(found.mine)
    users = tuple(_users(found))
    files = KubeFiles(
        sets=tuple(used for config_set in found.sets for used in _used(config_set, users)),
        mig_files=tuple(found.mig),
        policies=tuple(found.policies),
        charts=tuple(found.charts),
        operands=tuple(found.operands),
        nodes=tuple(found.nodes),
        workloads=tuple(workloads),
        bounds=tuple(bounds),
    )
    return files, tuple(dict.fromkeys(found.findings))


def _take(file: Input, text: str, found: _Found) -> None:
    path, place = file.path, Place(file.path, 1)
    if file.kind is Kind.PLUGIN_CONFIG:
        config = Config("", text, in_file(path), place)
        found.sets.append(ConfigSet(path, "", "", (config,), place))
    elif file.kind is Kind.MIG_PARTED:
        found.mig.append(MigFile(path, "", "", text, in_file(path), place))
    else:
        manifests = read_manifests(path, text)
        found.findings += manifests.findings
        for manifest in manifests.objects:
            if file.kind is Kind.HELM_VALUES:
                _values(manifest, manifest.root, path, found)
            else:
                _object(manifest, found)


def _object(manifest: Manifest, found: _Found) -> None:
    """One object, by its kind."""
    if manifest.kind == "ConfigMap":
        found.maps.append(manifest)
    elif told := read_policy(manifest):
        found.policies.append(told.policy)
        found.findings += told.findings
        found.mine.append(manifest)
    elif node := read_node(manifest):
        found.nodes.append(node)
        found.mine.append(manifest)
    elif wraps(manifest):
        for values in wrapped(manifest):
            _values(values.manifest, values.root, manifest.title, found, values.chart)
    elif operands := read_operands(manifest):
        found.operands += operands
        found.mine.append(manifest)
    else:
        found.asking.append(manifest)


def _values(manifest: Manifest, root: GoNode | None, title: str, found: _Found, chart: str = "") -> None:
    """Values of one of NVIDIA's two charts, or of a chart that brings them as parts; `chart` "": told by the values."""
    if not isinstance(root, GoMap):
        return
    parts = parts_of(root) if chart not in (PLUGIN_CHART, OPERATOR_CHART) else ()
    for part, below in parts:
        _values(manifest, below, f"{title} {part}", found, part)
    if parts:
        return
    chart = chart or chart_of(root)
    if chart not in (PLUGIN_CHART, OPERATOR_CHART):
        return
    found.mine.append(manifest)
    if chart == PLUGIN_CHART:
        told = read_chart_values(manifest, root, title)
        found.charts.append(told.chart)
        found.sets += told.sets
        found.findings += told.findings
        return
    operator = read_operator_values(manifest, root, title)
    found.policies.append(operator.policy)
    found.sets += operator.sets
    found.mig += operator.mig
    found.findings += operator.findings


def _config_maps(found: _Found) -> None:
    plugin = {user.name for user in _users(found)}
    mig = {policy.mig_config_name for policy in found.policies} - {None, ""}
    for manifest in found.maps:
        held = read_config_map(manifest, manifest.name in plugin, manifest.name in mig)
        if held is None:
            continue
        found.mine.append(manifest)
        found.findings += held.findings
        _hold(held, found)
        if manifest.name in mig:
            found.findings += judge_mig_key(manifest.title, manifest.mapping("data"), manifest.place())


def _hold(held: Held, found: _Found) -> None:
    found.mig += held.mig
    if held.configs is not None:
        found.sets.append(held.configs)


@dataclass(frozen=True, slots=True)
class _User:
    """Who names a ConfigMap of configs. `namespace` "": not known; `settings` None: no config-manager."""

    name: str
    namespace: str
    settings: Settings | None
    env: Mapping[str, str]
    place: Place
    selector: Mapping[str, str] = field(default_factory=dict)
    operator: bool = False


def _users(found: _Found) -> Iterator[_User]:
    for policy in found.policies:
        if policy.config_name and policy.plugin:
            place = policy.places.get("devicePlugin.config.name", policy.place)
            settings = Settings(policy.config_default or "", OPERATOR.fallbacks)
            yield _User(policy.config_name, policy.namespace, settings, plugin_env(policy), place, operator=True)
    for chart in found.charts:
        if chart.config_name and chart.plugin:
            place = chart.places.get("config.name", chart.place)
            yield _User(chart.config_name, "", chart.settings, chart.env, place, chart.selector)
    for operand in found.operands:
        if operand.program == PLUGIN_PROGRAM and operand.config_map:
            settings_there, place = operand.settings, operand.place
            yield _User(operand.config_map, operand.namespace, settings_there, operand.env, place, operand.selector)


def _used(config_set: ConfigSet, users: Sequence[_User]) -> tuple[ConfigSet, ...]:
    """The set with the settings and variables of who uses it: of the first for each selection of nodes."""
    if config_set.managed or not config_set.name:
        return (config_set,)
    found: dict[frozenset[tuple[str, str]], ConfigSet] = {}
    for user in users:
        elsewhere = user.namespace and config_set.namespace and user.namespace != config_set.namespace
        selects = frozenset(user.selector.items())
        if user.name == config_set.name and not elsewhere and selects not in found:
            used = replace(config_set, env=user.env, user=user.place, selector=user.selector, operator=user.operator)
            found[selects] = used if user.settings is None else replace(used, managed=True, settings=user.settings)
    # One that is meant, though its pods cannot mount what is in another namespace, still says how the config is run.
    meant = next((user for user in users if user.name == config_set.name and user.settings is None), None)
    return tuple(found.values()) or (replace(config_set, env=meant.env) if meant else config_set,)


def _twice(manifests: Iterable[Manifest]) -> Iterator[Finding]:
    """Keys that stand twice in the documents that hold something of ours."""
    for manifest in {id(manifest.yaml): manifest for manifest in manifests}.values():
        yield from judge_yaml(manifest.yaml, manifest.where)
