"""The operator's settings against the ConfigMaps they name: not there, in another namespace, without the key.

Only what the inputs show: a ConfigMap that is not among them is taken to be in the cluster, unless one of nearly the
same name is. Source: GPU Operator v26.3 controllers/object_controls.go; NVIDIA/gpu-operator#412.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hybridgpu.consumers.kubernetes.given import ConfigSet, KubeFiles, MigFile, Policy
from hybridgpu.files.quoting import listed, shown
from hybridgpu.model.finding import Finding, Place, Related, Rule, Severity
from hybridgpu.model.spelling import is_slip, nearest

_SOURCE = "GPU Operator v26.3 controllers/object_controls.go"

WRONG_NAMESPACE = Rule(
    "k8s-policy-wrong-namespace",
    Severity.ERROR,
    "A pod mounts ConfigMaps of its own namespace only: the operands stay in ContainerCreating and no GPU is offered.",
    "Create the ConfigMap in the operator's namespace.",
    f"NVIDIA/gpu-operator#412; {_SOURCE}",
)
NO_SUCH_MAP = Rule(
    "k8s-policy-no-such-configmap",
    Severity.ERROR,
    "The operands mount a ConfigMap that is not there: they stay in ContainerCreating and no GPU is offered.",
    "Write the name of the ConfigMap.",
    _SOURCE,
)
MAP_ASSUMED = Rule(
    "k8s-policy-configmap-assumed",
    Severity.INFO,
    "The ConfigMap that is named is not among the files: it is taken to be in the cluster, and is not judged.",
    "Give it too: kubectl get configmap -n NAMESPACE NAME -o yaml.",
    _SOURCE,
)
UNUSED = Rule(
    "k8s-policy-config-unused",
    Severity.INFO,
    "No policy, chart or DaemonSet among the files names this ConfigMap: as far as they show, no plugin runs it.",
    "Name it in devicePlugin.config.name of the ClusterPolicy.",
    _SOURCE,
)
RULES = (WRONG_NAMESPACE, NO_SUCH_MAP, MAP_ASSUMED, UNUSED)

_NOT_OPERATORS = ("default", "kube-system", "kube-public", "kube-node-lease")
"""Where nobody installs the operator, and where a ConfigMap lands by mistake."""

_OPERANDS = ("nvidia-device-plugin-daemonset", "nvidia-mig-manager", "nvidia-device-plugin-mps-control-daemon")
"""The operator's own DaemonSets, by their names (assets)."""


@dataclass(frozen=True, slots=True)
class _Map:
    """A ConfigMap that may be meant."""

    title: str
    name: str
    namespace: str
    place: Place


def operator_namespace(policy: Policy, files: KubeFiles) -> str:
    """Where the operator runs: as its file says, else where its operands are; "" where nothing tells."""
    if policy.namespace:
        return policy.namespace
    spaces = {o.namespace for o in files.operands if o.namespace and o.title.rpartition("/")[2] in _OPERANDS}
    return next(iter(spaces)) if len(spaces) == 1 else ""


def judge_policy(policy: Policy, files: KubeFiles) -> Iterator[Finding]:
    """Findings on the ConfigMaps that a policy names."""
    space = operator_namespace(policy, files)
    sets = [_Map(s.source, s.name, s.namespace, s.place) for s in files.sets if s.name]
    mig = [_Map(m.source, m.name, m.namespace, m.place) for m in files.mig_files if m.name]
    if policy.plugin:
        yield from _named(policy, "devicePlugin.config.name", policy.config_name, space, sets, _taken(files))
    named = {other.mig_config_name for other in files.policies if other.mig_config_name}
    if policy.mig_manager:
        yield from _named(policy, "migManager.config.name", policy.mig_config_name, space, mig, named)


def judge_unused(files: KubeFiles) -> Iterator[Finding]:
    """ConfigMaps of configs that a ClusterPolicy among the files could name and does not."""
    if not files.policies or any(policy.config_name for policy in files.policies):
        return
    for config_set in files.sets:
        if config_set.name and config_set.user is None:
            message = (
                f"{config_set.source} is named by nobody; {files.policies[0].title} has no devicePlugin.config.name"
            )
            yield Finding(UNUSED, config_set.place, message, UNUSED.fix)


def mig_in_force(policy: Policy, files: KubeFiles) -> tuple[MigFile, ...]:
    """The MIG files of the ConfigMap that the policy names."""
    space = operator_namespace(policy, files)
    return tuple(m for m in files.mig_files if m.name == policy.mig_config_name and _there(m.namespace, space))


def _taken(files: KubeFiles) -> set[str]:
    """The names of ConfigMaps that somebody uses."""
    return {s.name for s in files.sets if s.user is not None} | {p.config_name for p in files.policies if p.config_name}


def _there(namespace: str, operator: str) -> bool:
    """Whether the operator's pods can mount what is in the namespace, as far as both are known."""
    if not namespace:
        return True
    return namespace == operator if operator else namespace not in _NOT_OPERATORS


def _named(
    policy: Policy, path: str, name: str | None, space: str, maps: Sequence[_Map], taken: set[str]
) -> Iterator[Finding]:
    if not name:
        return
    same = [each for each in maps if each.name == name]
    if any(_there(each.namespace, space) for each in same):
        return
    place = policy.places.get(path, policy.place)
    if same:
        spaces = listed(dict.fromkeys(each.namespace for each in same))
        where = f"the operator's, {space}," if space else "the operator's"
        message = f"{path} is {name}, and this ConfigMap is in namespace {spaces}, not in {where} namespace"
        hint = f"create it in namespace {space}" if space else WRONG_NAMESPACE.fix
        yield Finding(WRONG_NAMESPACE, place, message, hint, (Related(same[0].place, same[0].title),))
        return
    others = {each.name: each for each in maps if each.name not in taken and _there(each.namespace, space)}
    near = nearest(name, others)
    if near and is_slip(name, near):
        message = f"{path} is {shown(name)}, and there is no such ConfigMap"
        related = (Related(others[near].place, others[near].title),)
        yield Finding(NO_SUCH_MAP, place, message, f"did you mean {near}?", related)
    else:
        message = f"{path} is {name}, which is not among the files"
        yield Finding(MAP_ASSUMED, place, message, MAP_ASSUMED.fix)


def default_place(policy: Policy, config_set: ConfigSet) -> Place | None:
    """Where the policy that uses a set names its default; None if it is not this policy."""
    if config_set.user != policy.places.get("devicePlugin.config.name", policy.place):
        return None
    return policy.places.get("devicePlugin.config.default")
