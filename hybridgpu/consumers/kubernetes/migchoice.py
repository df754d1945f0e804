"""Which MIG config a node's label asks for, and whether it is there: in a file of one's own, or among the generated.

Source: mig-parted v0.15.0 pkg/mig/builder, cmd/nvidia-mig-manager; GPU Operator v26.3 assets/state-mig-manager.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from hybridgpu.consumers.kubernetes import miggenerated, miginforce
from hybridgpu.consumers.kubernetes.given import KubeFiles, KubeNode, MigFile
from hybridgpu.consumers.kubernetes.migjudge import judge_mig_file
from hybridgpu.consumers.kubernetes.migmanager import LABEL, STATE
from hybridgpu.consumers.kubernetes.migparted import apply, walk
from hybridgpu.consumers.kubernetes.migrules import NOT_CAPABLE
from hybridgpu.consumers.kubernetes.node import Node, card_of
from hybridgpu.files.quoting import listed, shown
from hybridgpu.model.finding import Finding, Related, Rule, Severity
from hybridgpu.model.spelling import nearest

LABEL_WITHOUT_CONFIG = Rule(
    "k8s-mig-label-without-config",
    Severity.ERROR,
    "A node's label names a MIG config that mig-manager does not have: it sets state failed and cuts nothing.",
    "Label the node with one of the configs of the file that mig-manager reads.",
    "mig-parted v0.15.0 cmd/nvidia-mig-manager; GPU Operator v26.3 assets/state-mig-manager; run",
)
LABEL_IN_FILE_ALONE = Rule(
    "k8s-mig-label-of-a-file-alone",
    Severity.INFO,
    "A node's label names a MIG config of a file that no ClusterPolicy among the files names: it is taken to be the "
    "one that mig-manager reads, by a setting that was not given.",
    "Name its ConfigMap in migManager.config.name.",
    "GPU Operator v26.3 assets/state-mig-manager",
)
RULES = (LABEL_WITHOUT_CONFIG, LABEL_IN_FILE_ALONE)


def judge_mig(files: KubeFiles) -> Iterator[Finding]:
    """Findings on every MIG file: for the nodes that ask for its configs, alone for the rest; and on the labels."""
    asked: dict[int, dict[tuple[str, int], Node]] = {}
    without: dict[str, list[KubeNode]] = {}
    in_force = miginforce.in_force(files)
    for node in files.nodes:
        label = node.labels.get(LABEL, "")
        for file in in_force if label else ():
            entries = (miginforce.configs(file.text) or {}).get(label)
            if node.cards is None or entries is None:
                continue
            if not any(card.mig is not None for card in node.cards.cards):
                if any(entry.enabled for entry, _ in walk(entries, node.cards)) and node not in without.get(label, ()):
                    without.setdefault(label, []).append(node)
            else:
                asked.setdefault(id(file), {})[label, id(node.cards)] = node.cards
    for file in files.mig_files:
        met = asked.get(id(file), {})
        alone = set(miginforce.configs(file.text) or ()) - {label for label, _ in met}
        found = list(judge_mig_file(file.text, file.where, None, alone))
        for (label, _), cards in met.items():
            found += judge_mig_file(file.text, file.where, cards, (label,))
        yield from dict.fromkeys(found)
    for label, nodes in without.items():
        yield _no_mig(label, nodes)
    yield from _labels(files)


def _no_mig(label: str, nodes: Sequence[KubeNode]) -> Finding:
    """Nodes that ask for a layout, and none of whose cards can be cut: told once, where they ask."""
    first = nodes[0]
    models = listed(dict.fromkeys(card.name for node in nodes if node.cards for card in node.cards.cards))
    names = listed(node.name for node in nodes)
    message = f"{names}: the label {LABEL} is {shown(label)}, which enables MIG, and {models} has no MIG"
    hint = "remove the label, or set it to all-disabled"
    related = tuple(
        Related(node.label_places.get(LABEL, node.place), f"the label of {node.name}") for node in nodes[1:4]
    )
    return Finding(NOT_CAPABLE, first.label_places.get(LABEL, first.place), message, hint, related)


def as_cut(files: KubeFiles) -> tuple[KubeNode, ...]:
    """The nodes with their cards as they are once mig-manager has done what their labels ask for.

    A config that fails, or that nobody knows, leaves the cards as they are seen.
    """
    if not miginforce.is_managed(files):
        return files.nodes
    in_force = miginforce.in_force(files)
    done: dict[tuple[str, int], Node] = {}
    nodes = []
    for node in files.nodes:
        label = node.labels.get(LABEL, "")
        if label and node.cards is not None and node.labels.get(STATE) != "failed":
            key = label, id(node.cards)
            if key not in done:
                done[key] = _cut(label, node.cards, in_force)
            nodes.append(replace(node, cards=done[key]))
        else:
            nodes.append(node)
    return tuple(nodes)


def _cut(label: str, cards: Node, files: Sequence[MigFile]) -> Node:
    for _, entries in miginforce.named(label, files):
        applied = apply(entries, cards)
        return cards if applied.words else applied.node
    try:
        layouts = [(card, card.model, miggenerated.layout(label, card.model)) for card in cards.cards if card.model]
    except KeyError:
        return cards
    return Node(tuple(card_of(model, card.index, layout) for card, model, layout in layouts))


def _labels(files: KubeFiles) -> Iterator[Finding]:
    in_force = miginforce.in_force(files)
    readable = all(miginforce.configs(file.text) is not None for file in in_force)
    known_to: dict[frozenset[str], frozenset[str] | None] = {}
    for node in files.nodes:
        label = node.labels.get(LABEL, "")
        if not label or not readable:
            continue
        models = {card.model.name: card.model for card in node.cards.cards if card.model} if node.cards else {}
        if (key := frozenset(models)) not in known_to:
            known_to[key] = miginforce.labels(files, models.values())
        known = known_to[key]
        if known is None or label in known:
            continue
        near = nearest(label, known)
        hint = f"did you mean {shown(near)}?" if near else f"the configs are {listed(sorted(known))}"
        message = f"{node.name}: the label {LABEL} is {shown(label)}, and there is no such MIG config"
        place = node.label_places.get(LABEL, node.place)
        related = tuple(Related(file.place, file.source) for file in in_force[:1])
        beside = next((file for file, _ in miginforce.named(label, files.mig_files)), None)
        if beside is not None and all(policy.mig_config_name is None for policy in files.policies):
            message = f"{message} among the generated ones; {beside.source} has it, and no policy names that"
            hint = "name its ConfigMap in migManager.config.name, if the operator is not told otherwise"
            related = (Related(beside.place, beside.source),)
            yield Finding(LABEL_IN_FILE_ALONE, place, message, hint, related)
            continue
        yield Finding(LABEL_WITHOUT_CONFIG, place, message, hint, related)
