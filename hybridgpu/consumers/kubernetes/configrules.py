"""What is wrong with a set of configs that a config-manager chooses from: crash loops and defaults that offer more.

The configs' own mistakes are judged one by one elsewhere.
Source: k8s-device-plugin v0.20.0 cmd/config-manager/main.go, run; GPU Operator controllers/object_controls.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from hybridgpu.consumers.kubernetes.configmanager import LABEL, Died, Settings, choose
from hybridgpu.consumers.kubernetes.consume import consume
from hybridgpu.consumers.kubernetes.node import Node
from hybridgpu.consumers.kubernetes.outcome import PluginRuns
from hybridgpu.files.quoting import listed, shown
from hybridgpu.model.finding import Finding, Place, Related, Rule, Severity
from hybridgpu.model.spelling import nearest

_SOURCE = "k8s-device-plugin v0.20.0 cmd/config-manager/main.go, run"

NO_DEFAULT = Rule(
    "k8s-config-no-default",
    Severity.ERROR,
    "config-manager's init container never sees a node's label: without a default it exits 1 and the pod crash-loops "
    "although every node is labelled.",
    "Add a key `default`, the most restrictive config there is, or name a default in the chart or ClusterPolicy.",
    _SOURCE,
    since="v0.19.0",
)
LABEL_WITHOUT_KEY = Rule(
    "k8s-config-label-without-key",
    Severity.ERROR,
    "A node's label names a config that is not there: the sidecar exits 1 and crash-loops until the label is mended.",
    "Label the node with one of the keys of the ConfigMap.",
    _SOURCE,
)
KEY_NOT_A_LABEL = Rule(
    "k8s-config-key-not-a-label",
    Severity.ERROR,
    "A config is chosen by a node label, and this key cannot be a label's value.",
    "Use at most 63 letters, digits, - _ and ., beginning and ending with a letter or digit.",
    "Kubernetes labels; k8s-device-plugin cmd/config-manager/main.go",
)

DEFAULT_OFFERS_MORE = Rule(
    "k8s-config-default-offers-more",
    Severity.ERROR,
    "At every start of the plugin's pod the default is applied before the node's own config: for a moment the node "
    "offers what only the default offers, and the kubelet may give one card twice, under two names.",
    "Let the default share nothing and rename nothing, with migStrategy mixed; or one plugin release for each config.",
    f"{_SOURCE}; kubelet 1.36, run",
    since="v0.19.0",
)

DEFAULT_WITHOUT_KEY = Rule(
    "k8s-config-default-without-key",
    Severity.ERROR,
    "The config that is named as the default is not there: config-manager exits 1 and the pod crash-loops.",
    "Name one of the keys of the ConfigMap.",
    _SOURCE,
)
SEVERAL_NO_DEFAULT = Rule(
    "k8s-config-several-no-default",
    Severity.WARNING,
    "Of several configs none is called default: the chart's config-manager crash-loops unless the chart names one, and "
    "the operator's runs nodes without a label on built-in defaults, which share nothing.",
    "Add a key `default`, the most restrictive config there is, and name it in the chart (config.default) or "
    "ClusterPolicy (devicePlugin.config.default).",
    f"{_SOURCE}; GPU Operator v26.3 controllers/object_controls.go",
)
OPERATOR_NO_DEFAULT = Rule(
    "k8s-config-operator-no-default",
    Severity.WARNING,
    "The operator takes no config by itself, not even the only one or one called default: a node without the label "
    "nvidia.com/device-plugin.config runs on built-in defaults, which share nothing.",
    "Name a key in devicePlugin.config.default of the ClusterPolicy, or label every node.",
    "GPU Operator v26.3 controllers/object_controls.go (FALLBACK_STRATEGIES=empty)",
)

RULES = (
    *(NO_DEFAULT, DEFAULT_WITHOUT_KEY, SEVERAL_NO_DEFAULT, OPERATOR_NO_DEFAULT, LABEL_WITHOUT_KEY, KEY_NOT_A_LABEL),
    DEFAULT_OFFERS_MORE,
)

_LONGEST_LABEL = 63


def judge_choice(
    keys: Mapping[str, str], settings: Settings, labels: Mapping[str, str], place: Place | None = None
) -> Iterator[Finding]:
    """Findings on a ConfigMap's keys and the labels of nodes (node name to value); `place` is the ConfigMap's."""
    first = choose("", keys, settings)
    if isinstance(first, Died) and settings.default and keys:
        message = f"the default config is {shown(settings.default)}, and there is no such key"
        yield Finding(DEFAULT_WITHOUT_KEY, place, message, _which(settings.default, keys))
    elif isinstance(first, Died):
        message = (
            f"no config is chosen where a node has no label, among {listed(sorted(keys)) or 'no keys'}: {first.words}"
        )
        yield Finding(NO_DEFAULT, place, message, NO_DEFAULT.fix)
    for key in keys:
        if not is_label_value(key):
            message = f"the key {shown(key)} cannot be the value of the label {LABEL}"
            yield Finding(KEY_NOT_A_LABEL, place, message, KEY_NOT_A_LABEL.fix)
    for node, value in labels.items():
        if value and value not in keys:
            yield label_without_key(node, value, keys, place)


def label_without_key(
    node: str, value: str, keys: Iterable[str], place: Place | None, related: tuple[Related, ...] = ()
) -> Finding:
    """A node's label that names none of `keys`."""
    message = f"{node}: the label {LABEL} is {shown(value)}, and the ConfigMap has no such key"
    return Finding(LABEL_WITHOUT_KEY, place, message, _which(value, keys), related)


def _which(word: str, keys: Iterable[str]) -> str:
    near = nearest(word, keys)
    return f"did you mean {shown(near)}?" if near else f"the keys are {listed(sorted(keys))}"


def judge_default(
    keys: Mapping[str, str],
    settings: Settings,
    label: str,
    node: Node,
    env: Mapping[str, str],
    place: Place | None = None,
) -> Iterator[Finding]:
    """Whether the config that is applied first offers this node's cards more than the label's own config does."""
    first, own = choose("", keys, settings), choose(label, keys, settings)
    if isinstance(first, Died) or isinstance(own, Died) or first == own:
        return
    before, after = (consume(keys.get(key, ""), node, env).plugin for key in (first, own))
    if not isinstance(before, PluginRuns):
        return
    wanted = after.offer.allocatable if isinstance(after, PluginRuns) else {}
    for name, count in before.offer.allocatable.items():
        if count > wanted.get(name, 0):
            message = f"{shown(first)}, applied first, offers {count} {name}, and {shown(own)} {wanted.get(name, 0)}"
            yield Finding(DEFAULT_OFFERS_MORE, place, message, DEFAULT_OFFERS_MORE.fix)


def is_label_value(key: str) -> bool:
    """Whether Kubernetes takes the word as a label's value."""
    plain = all(c.isascii() and (c.isalnum() or c in "-_.") for c in key)
    return bool(key) and len(key) <= _LONGEST_LABEL and plain and key[0].isalnum() and key[-1].isalnum()
