"""GPU feature discovery: the labels it puts on a Node for a config and the node's cards.

Left out are labels that hang on neither: driver and CUDA versions, gpu.machine, gpu.mode, timestamps, vGPU, fabric.
Source: k8s-device-plugin v0.20.0 internal/lm resource.go, mig-strategy.go, nvml.go; cmd/gpu-feature-discovery/main.go.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping

from hybridgpu.consumers.kubernetes.devicemap import WHOLE
from hybridgpu.consumers.kubernetes.node import Card, Instance, Node
from hybridgpu.consumers.kubernetes.outcome import Labelled, LabelOutcome, Refused, Stage
from hybridgpu.consumers.kubernetes.pluginconfig import PluginConfig
from hybridgpu.consumers.kubernetes.settings import DISCOVERY, settings
from hybridgpu.model.naming import kubernetes_resource

DISCOVERIES = ("auto", "nvml", "tegra", "vfio")
_PREFIX = "nvidia.com/"
_CREATING = "error creating labeler: "
_FAMILIES = {1: "tesla", 2: "fermi", 3: "kepler", 5: "maxwell", 6: "pascal", 9: "hopper", 10: "blackwell"}
_FAMILIES |= {12: "blackwell", 13: "rubin"}
_PROFILE = re.compile(r"(?:(?P<c>\d+)c\.)?(?P<g>\d+)g\.", re.A)

Labels = dict[str, str]


def run_discovery(config: PluginConfig, node: Node, env: Mapping[str, str]) -> LabelOutcome:
    """The labels, or the words with which it exits."""
    values = settings(config, DISCOVERY, env)
    if isinstance(values, str):
        return Refused(Stage.START, values)
    if (word := values.text("deviceDiscoveryStrategy")) not in DISCOVERIES:
        return Refused(Stage.FLAGS, f"invalid --device-discovery-strategy option {word}")
    if not node.cards:
        return Labelled({}, config.warnings)
    if config.sharing == "mps" and any(card.mig for card in node.cards):
        words = (
            "error creating sharing labeler: failed to check MPS-capable: MPS sharing is not supported for mig devices"
        )
        return Refused(Stage.START, _CREATING + words)
    strategy = values.text("migStrategy")
    if strategy not in ("none", "single", "mixed"):
        words = (
            f"error creating resource labeler: failed to construct MIG resource labeler: unknown strategy: {strategy}"
        )
        return Refused(Stage.START, _CREATING + words)
    labels = {
        f"{_PREFIX}mig.capable": _bool(any(card.mig is not None for card in node.cards)),
        f"{_PREFIX}mps.capable": _bool(config.sharing == "mps"),
    }
    groups, either = _whole(config, node)
    labels |= groups
    if strategy != "none":
        labels[f"{_PREFIX}mig.strategy"] = strategy
        mine = _single(config, node) if strategy == "single" else _mixed(config, node)
        if strategy == "single" and mine:
            labels.pop(f"{WHOLE}.memory", None)  # an instance's, where NVML's attributes are known
        labels |= mine
        either = {key: values for key, values in either.items() if key not in mine}
    return Labelled(labels, config.warnings, either)


def _whole(config: PluginConfig, node: Node) -> tuple[Labels, dict[str, tuple[str, ...]]]:
    """Cards by name: those in MIG mode say that nothing is shared, and whole ones overrule them.

    Of several models of one kind the last in Go's map order is left: any of them.
    """
    counts = Counter(card.name for card in node.cards)
    last: Labels = {}
    either: dict[str, tuple[str, ...]] = {}
    for mig in (True, False):
        cards = {card.name: card for card in node.cards if bool(card.mig) is mig}
        each = [_card(config if not mig else None, card, counts[name]) for name, card in sorted(cards.items())]
        for labels in each:
            last |= labels
        for key in {key for labels in each for key in labels}:
            seen = tuple(dict.fromkeys(labels[key] for labels in each if key in labels))
            either.pop(key, None)
            if len(seen) > 1:
                either[key] = seen
    return last, either


def _card(config: PluginConfig | None, card: Card, count: int) -> Labels:
    labels = _base(WHOLE, config, count, card.name)
    if memory := card.memory_bytes // 2**20:
        labels[f"{WHOLE}.memory"] = str(memory)
    major, minor = card.capability
    if major:
        labels |= {
            f"{WHOLE}.family": _family(major, minor),
            f"{WHOLE}.compute.major": str(major),
            f"{WHOLE}.compute.minor": str(minor),
        }
    return labels


def _base(name: str, config: PluginConfig | None, count: int, *parts: str) -> Labels:
    """product, count, replicas, sharing-strategy of a resource; `config` None: a card in MIG mode, never shared.

    The first entry of this name counts here, whatever the plugin advertises.
    """
    replicated = config.replicated if config else None
    entry = next((e for e in replicated.entries if e.name == name), None) if replicated else None
    suffix = ("SHARED",) if entry and replicated and not replicated.rename_by_default else ()
    strategy = config.sharing if config and entry else "none"
    return {
        f"{name}.product": "-".join((*(_sanitised(part) for part in parts), *suffix)),
        f"{name}.count": str(count),
        f"{name}.replicas": "0" if config is None else str(entry.replicas if entry else 1),
        f"{name}.sharing-strategy": strategy,
    }


def _single(config: PluginConfig, node: Node) -> Labels:
    mig = [card for card in node.cards if card.mig]
    if not mig:
        return {}
    found = Counter(instance.profile for card in mig for instance in card.instances)
    if any(not card.instances for card in mig) or len(mig) < len(node.cards) or len(found) != 1:
        return {
            f"{WHOLE}.product": f"{_sanitised(mig[0].name)}-MIG-INVALID",
            f"{WHOLE}.count": "0",
            f"{WHOLE}.replicas": "0",
            f"{WHOLE}.sharing-strategy": "",
            f"{WHOLE}.memory": "0",
        }
    return _instances(config, mig, lambda _: WHOLE)


def _mixed(config: PluginConfig, node: Node) -> Labels:
    return _instances(config, [card for card in node.cards if card.mig], kubernetes_resource)


def _instances(config: PluginConfig, cards: list[Card], resource: Callable[[str], str]) -> Labels:
    """Labels of each profile, with the first device of it as its example."""
    labels: Labels = {}
    counts = Counter(instance.profile for card in cards for instance in card.instances)
    first: dict[str, tuple[Card, Instance]] = {}
    for card in cards:
        for instance in card.instances:
            first.setdefault(instance.profile, (card, instance))
    for profile, (card, instance) in first.items():
        name = resource(profile)
        labels |= _base(name, config, counts[profile], card.name, "MIG", profile.replace("+", "."))
        labels |= {f"{name}.{key}": str(value) for key, value in _attributes(instance)}
    return labels


def _attributes(instance: Instance) -> Iterator[tuple[str, int]]:
    match = _PROFILE.match(instance.profile)
    if match:
        yield "slices.gi", int(match["g"])
        yield "slices.ci", int(match["c"] or match["g"])
    yield from instance.attributes


def _family(major: int, minor: int) -> str:
    if major == 7:
        return "volta" if minor < 5 else "turing"
    if major == 8:
        return "ampere" if minor < 9 else "ada-lovelace"
    return _FAMILIES.get(major, "undefined")


def _sanitised(text: str) -> str:
    """Only what a label may hold; blanks become `-`."""
    return "-".join(re.sub(r"[^A-Za-z0-9\-_. ]", "", text).split())


def _bool(value: bool) -> str:
    return "true" if value else "false"
