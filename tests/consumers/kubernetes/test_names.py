"""Which names a site offers, by which config in force, and how: from configs, policies, charts, plugins and Nodes."""

from __future__ import annotations

from pathlib import Path

import pytest

from hybridgpu.consumers.kubernetes.gpunames import mig_names
from hybridgpu.consumers.kubernetes.migcut import anything, cut_of
from hybridgpu.consumers.kubernetes.names import Names, Share, Source, names_of, offered, told
from hybridgpu.consumers.kubernetes.whynot import instead, why_not
from tests.consumers.kubernetes.given_files import (
    CUT,
    CUT_OR_NOT,
    MIXED,
    MPS,
    PLAIN,
    RENAMED,
    SHARED,
    SINGLE,
    STRICT,
    config_map,
    gathered,
    node,
    sharing,
)

GPU, ONE, TWO = "nvidia.com/gpu", "nvidia.com/mig-1g.10gb", "nvidia.com/mig-2g.20gb"
POLICY = """apiVersion: nvidia.com/v1
kind: ClusterPolicy
metadata: {name: cluster-policy}
spec: {devicePlugin: {config: {%s}}, mig: {strategy: %s}}
"""
PLUGIN = """apiVersion: apps/v1
kind: DaemonSet
metadata: {name: plugin, namespace: nvidia}
spec:
  template:
    spec:
      containers:
      - name: plugin
        image: nvcr.io/nvidia/k8s-device-plugin:v0.20.0
        env: [{name: MIG_STRATEGY, value: mixed}]
"""
TWO_KEYS = config_map(default=PLAIN, shared=RENAMED)
LABELS = "nvidia.com/gpu.present: 'true', nvidia.com/device-plugin.config: "
BOTH = CUT_OR_NOT + "  all-2g.20gb:\n  - {devices: all, mig-enabled: true, mig-devices: {2g.20gb: 3}}\n"
SOME = "version: v1\nmig-configs:\n  half:\n  - {devices: [0], mig-enabled: true, mig-devices: {1g.10gb: 7}}\n"
A100 = "nvidia.com/gpu.product: NVIDIA-A100-SXM4-80GB, nvidia.com/gpu.count: '8', nvidia.com/gpu.replicas: '1'"
OF_LAYOUT = "nvidia.com/gpu.present: 'true', nvidia.com/mig.config: "

OFFERS: dict[str, tuple[tuple[str, ...], dict[str, Share]]] = {
    # what: texts, the names and how each is offered first
    "plain": ((config_map(a="flags: {migStrategy: none}"),), {GPU: Share()}),
    "shared": ((config_map(a=sharing(top="flags: {migStrategy: none}\n")),), {GPU: Share("time-slicing", False)}),
    "renamed": (
        (config_map(a=sharing(more="renameByDefault: true", top="flags: {migStrategy: none}\n")),),
        {f"{GPU}.shared": Share("time-slicing", False)},
    ),
    "mps, which is strict by itself": ((config_map(a=MPS),), {GPU: Share("mps", True)}),
    "mps, and told not to be": (
        (config_map(a=sharing("mps", "failRequestsGreaterThanOne: false")),),
        {GPU: Share("mps", False)},
    ),
    "mps beats time-slicing": (
        (config_map(a="sharing: {mps: &s {resources: [{name: gpu, replicas: 2}]}, timeSlicing: *s}"),),
        {GPU: Share("mps", True)},
    ),
    "single": ((config_map(a=SINGLE), CUT), {GPU: Share()}),
    "mixed": ((config_map(a=MIXED), CUT), {ONE: Share()}),
    "mixed, some cards whole": ((config_map(a=MIXED), CUT_OR_NOT), {GPU: Share(), ONE: Share()}),
    "mixed, some cards of a node whole": ((config_map(a=MIXED), SOME), {GPU: Share(), ONE: Share()}),
    "mixed, two layouts": ((config_map(a=MIXED), BOTH), {GPU: Share(), ONE: Share(), TWO: Share()}),
    "mixed, the layout in force": (
        (config_map(a=MIXED), BOTH, node("a", OF_LAYOUT + "all-2g.20gb")),
        {TWO: Share()},
    ),
    "mixed, the operator's own layout": (
        (config_map(a=MIXED), node("a", OF_LAYOUT + "all-1g.10gb") + node("b", OF_LAYOUT + "all-disabled")),
        {GPU: Share(), ONE: Share()},
    ),
    "mixed, the operator's balanced layout on a card that is known": (
        (config_map(a=MIXED), node("a", OF_LAYOUT + f"all-balanced, {A100}")),
        {ONE: Share(), TWO: Share(), "nvidia.com/mig-3g.40gb": Share()},
    ),
    "a file that the policy does not name is not in force": (
        (
            POLICY % ("name: configs, default: a", "mixed"),
            config_map(a=MIXED),
            CUT_OR_NOT.replace("1g.10gb", "7g.80gb"),
            node("a", OF_LAYOUT + f"all-2g.20gb, {A100}"),
        ),
        {TWO: Share()},
    ),
    "MIG devices shared": (
        (
            config_map(a=sharing(top="flags: {migStrategy: mixed}\n", resource=ONE, more="renameByDefault: true")),
            CUT_OR_NOT,
        ),
        {GPU: Share(), f"{ONE}.shared": Share("time-slicing", False)},
    ),
    "an entry for what is not there": (
        (config_map(a=sharing(top="flags: {migStrategy: none}\n", resource=ONE)),),
        {GPU: Share()},
    ),
    "Nodes say which": (
        (config_map(a=MIXED), node("a", allocatable=f"{GPU}: 0, {ONE}: 7")),
        {ONE: Share()},
    ),
    "Nodes alone": (
        (node("a", "nvidia.com/gpu.sharing-strategy: mps", f"{GPU}: 8, {TWO}: 0"),),
        {GPU: Share("mps", None)},
    ),
    "Nodes alone, not shared": ((node("a", allocatable=f"{GPU}: 8"),), {GPU: Share(one_only=None)}),
    "the key that the default names": (
        (POLICY % ("name: configs, default: a", "none"), config_map(a=STRICT)),
        {GPU: Share("time-slicing", True)},
    ),
    "a policy alone": ((POLICY % ("", "single"),), {GPU: Share()}),
    "a policy's strategy": (
        (
            POLICY % ("name: configs, default: a", "mixed"),
            config_map(a=SINGLE),
            node("a", OF_LAYOUT + "all-1g.10gb"),
        ),
        {ONE: Share()},
    ),
    "an operator's chart, single unless it says else": (
        ("driver: {enabled: true}\ndevicePlugin: {enabled: true}\nmigManager: {enabled: true}\n", CUT),
        {GPU: Share()},
    ),
    "the plugin's chart": (
        ("migStrategy: mixed\nconfig:\n  map:\n    default: |\n      version: v1\n", CUT),
        {ONE: Share()},
    ),
    "the plugin's chart without a config": (("migStrategy: none\ngfd: {enabled: true}\n", CUT), {GPU: Share()}),
    "a DaemonSet without a config": ((PLUGIN, CUT), {ONE: Share()}),
}

IN_FORCE: dict[str, tuple[tuple[str, ...], set[str]]] = {
    # what: texts, the titles of who offers
    "no Node: every key": ((TWO_KEYS,), {"'default' of C", "'shared' of C"}),
    "labelled Nodes: theirs": ((TWO_KEYS, node("a", LABELS + "shared")), {"'shared' of C"}),
    "a Node without GPUs does not count": (
        (TWO_KEYS, node("a", LABELS + "shared") + node("b", "role: login")),
        {"'shared' of C"},
    ),
    "unlabelled, and nobody knows the default": (
        (TWO_KEYS, node("a", LABELS + "shared") + node("b")),
        {"'default' of C", "'shared' of C"},
    ),
    "unlabelled under the operator: built-in defaults": (
        (POLICY % ("name: configs", "none"), config_map(x=RENAMED), node("b")),
        {"the plugin's built-in defaults where no config is chosen"},
    ),
    "unlabelled under the operator with a default": (
        (POLICY % ("name: configs, default: x", "none"), config_map(x=RENAMED, y=PLAIN), node("b")),
        {"'x' of C"},
    ),
    "no Node under the operator: built-in defaults too": (
        (POLICY % ("name: configs", "none"), config_map(x=RENAMED)),
        {"'x' of C", "the plugin's built-in defaults where no config is chosen"},
    ),
    "a label that is no key": ((TWO_KEYS, node("a", LABELS + "zz")), {"'default' of C", "'shared' of C"}),
}


@pytest.mark.parametrize("what", OFFERS)
def test_names_are_offered_as_the_plugin_would(what: str, tmp_path: Path) -> None:
    texts, expected = OFFERS[what]
    names = offered(gathered(tmp_path, *texts))
    found: dict[str, Share] = {}
    for source in names.sources:
        for name, share in source.names.items():
            found.setdefault(name, share)
    assert found == expected
    assert names.all == frozenset(expected)
    assert names.known


@pytest.mark.parametrize("what", IN_FORCE)
def test_the_configs_in_force_count(what: str, tmp_path: Path) -> None:
    texts, expected = IN_FORCE[what]
    names = offered(gathered(tmp_path, *texts))
    assert {source.title.replace("ConfigMap nvidia/configs", "C") for source in names.sources} == expected


@pytest.mark.parametrize(
    "texts",
    [
        (config_map(a=sharing(replicas=1)),),
        (config_map(a="flags: {migStrategy: [mixed]}"), config_map(b=SHARED).replace("configs", "others")),
        (POLICY % ("name: elsewhere", "none"),),
        ("config: {name: elsewhere}\nmigStrategy: none\n",),
    ],
)
def test_what_is_refused_or_not_given_leaves_the_offer_open(texts: tuple[str, ...], tmp_path: Path) -> None:
    assert not offered(gathered(tmp_path, *texts)).known


def test_without_any_of_them_nothing_is_known(tmp_path: Path) -> None:
    names = offered(gathered(tmp_path, CUT))
    assert (names.sources, names.known) == ((), False)


def test_a_strategy_that_nobody_states_may_be_any(tmp_path: Path) -> None:
    names = offered(gathered(tmp_path, config_map(a=PLAIN)))
    assert names.all == mig_names() | {GPU}
    assert names.profiles == frozenset()
    assert told(names.all) == GPU


def test_equal_nodes_are_one_source(tmp_path: Path) -> None:
    nodes = "".join(node(f"gpu{number}", allocatable=f"{GPU}: {4 + number}") for number in range(3))
    (source,) = offered(gathered(tmp_path, nodes)).sources
    assert source.title == "Node gpu0 and 2 more"
    assert source.nodes == frozenset(("gpu0", "gpu1", "gpu2"))


def test_a_balanced_layout_has_no_profile_that_no_model_has_in_it(tmp_path: Path) -> None:
    """Of whatever card: 1g, 2g and 3g, and never the whole of it as one instance."""
    cut = cut_of(gathered(tmp_path, node("a", OF_LAYOUT + "all-balanced")))
    assert {"1g.10gb", "2g.20gb", "3g.40gb"} <= cut.profiles
    assert not {name for name in cut.profiles if name.startswith(("4g", "7g"))}
    assert not cut.whole


def test_a_mig_file_that_is_refused_leaves_the_cut_open(tmp_path: Path) -> None:
    assert cut_of(gathered(tmp_path, CUT.replace("1g.10gb: 7", "1g.10gb: many"))) == anything()


@pytest.mark.parametrize(
    ("name", "offers", "words", "hint"),
    [
        (GPU, {f"{GPU}.shared"}, "renameByDefault makes it nvidia.com/gpu.shared", f"write {GPU}.shared"),
        (f"{GPU}.shared", {GPU}, "no config in force renames it", f"write {GPU}"),
        (GPU, {ONE}, "MIG has cut every card", f"write one of the names that are offered: {ONE}"),
        (ONE, {GPU}, "only with migStrategy mixed", f"write one of the names that are offered: {GPU}"),
        (TWO, {ONE}, "no card is cut into that profile", f"did you mean {ONE}?"),
        ("nvidia.com/gpu-a100", {GPU}, "nobody offers it", f"write one of the names that are offered: {GPU}"),
    ],
)
def test_the_reason_and_the_way_out_are_told(name: str, offers: set[str], words: str, hint: str) -> None:
    names = _names(offers)
    assert words in why_not(name, names)
    assert all(offer in why_not(name, names) for offer in offers)
    assert instead(name, names) == hint


def _names(offers: set[str]) -> Names:
    return names_of([Source("a config", None, {name: Share() for name in offers})])
