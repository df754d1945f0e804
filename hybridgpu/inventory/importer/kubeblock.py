"""The `kubernetes:` block: how the device plugin comes to the nodes, where it lives, and what its pods tolerate."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from hybridgpu.consumers.kubernetes.given import KubeFiles
from hybridgpu.consumers.kubernetes.pluginconfig import read_config
from hybridgpu.inventory.importer.document import Block, Entry, Value
from hybridgpu.inventory.schema import NAMESPACE, PATH
from hybridgpu.model.labels import CHART_TOLERATIONS, CLOSED, DEPLOY_OPERANDS, MPS_ROOT
from hybridgpu.model.site import OPERATOR, Toleration

_DEFAULT_NAMESPACE = {OPERATOR: "gpu-operator", "device-plugin": "nvidia-device-plugin"}
_CHARTS_OWN = (
    *((one["key"], one["operator"], None, one.get("effect")) for one in CHART_TOLERATIONS),
    (CLOSED, "Exists", None, None),
)
"""Tolerations that the plugin's chart brings by itself, and hybridgpu's own: rendering adds them."""


def any_kubernetes(files: KubeFiles) -> bool:
    """Whether the files speak of GPUs in Kubernetes at all; workloads and quotas alone make no inventory."""
    return bool(files.sets or files.mig_files or files.policies or files.operands) or any(
        node.has_gpus for node in files.nodes
    )


def kubernetes_block(files: KubeFiles) -> Block:
    """The block."""
    delivery, why = _delivery(files)
    namespace, guess = _namespace(files, delivery)
    entries = [Entry("delivery", delivery, why), Entry("namespace", namespace, guess)]
    root = next(_roots(files), MPS_ROOT)
    if root != MPS_ROOT and re.fullmatch(PATH.pattern, root):
        entries.append(Entry("mpsRoot", root))
    tolerations = [_record(one) for one in _tolerations(files)]
    entries += [Entry("tolerations", tolerations)] if tolerations else []
    return Block(tuple(entries))


def _delivery(files: KubeFiles) -> tuple[str, str]:
    """What brings the plugin, and why that is a guess."""
    if files.policies:
        return OPERATOR, ""
    if files.operands or any(one.managed for one in files.sets):
        return "device-plugin", ""
    if any(DEPLOY_OPERANDS in node.labels for node in files.nodes):
        return OPERATOR, "the operator's labels are on the nodes"
    if any(one.namespace == _DEFAULT_NAMESPACE[OPERATOR] for one in files.sets):
        return OPERATOR, f"the configs are in the namespace {_DEFAULT_NAMESPACE[OPERATOR]}"
    return "device-plugin", "nothing tells the chart from the operator"


def _namespace(files: KubeFiles, delivery: str) -> tuple[str, str]:
    """The namespace that most of what runs the plugin names, and why it is a guess."""
    named = Counter(policy.namespace for policy in files.policies if policy.namespace)
    named.update(operand.namespace for operand in files.operands if operand.namespace)
    if not named:
        named.update(one.namespace for one in files.sets if one.namespace)
    for name, _ in named.most_common():
        if re.fullmatch(NAMESPACE.pattern, name) and len(name) <= NAMESPACE.longest:
            return name, ""
    return _DEFAULT_NAMESPACE[delivery], "no object names another one"


def _roots(files: KubeFiles) -> Iterator[str]:
    yield from (policy.mps_root for policy in files.policies if policy.mps_root)
    for operand in files.operands:
        if root := operand.env.get("MPS_ROOT"):
            yield root
    for one in files.sets:
        for config in one.configs:
            read = read_config(config.text).config
            said = read.flags.get("mpsRoot") if read else None
            if value := getattr(said, "value", said):
                yield str(value)


def _tolerations(files: KubeFiles) -> Iterator[Toleration]:
    """What the operands tolerate besides what their makers and hybridgpu give them, each once."""
    every = [t for policy in files.policies for t in policy.tolerations or ()]
    every += [t for operand in files.operands for t in operand.tolerations]
    for one in dict.fromkeys(every):
        if (one.key, one.operator, one.value or None, one.effect) not in _CHARTS_OWN:
            yield one


def _record(one: Toleration) -> dict[str, Value]:
    pairs = (("key", one.key), ("operator", one.operator), ("value", one.value), ("effect", one.effect))
    return {key: value for key, value in pairs if value}
