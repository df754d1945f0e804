"""Every rule of the room fires where the mistake is, says what a person must know, and is quiet where all is well."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybridgpu.consumers.kubernetes import (
    RULES,
    Node,
    consume,
    in_block,
    in_file,
    judge_choice,
    judge_default,
    judge_mig_file,
    judge_plugin_config,
    migrules,
    node_of,
    pluginrules,
    yamlrules,
)
from hybridgpu.consumers.kubernetes.configmanager import CHART, OPERATOR, Settings
from hybridgpu.consumers.kubernetes.configrules import DEFAULT_OFFERS_MORE, OPERATOR_NO_DEFAULT, SEVERAL_NO_DEFAULT
from hybridgpu.consumers.kubernetes.configrules import RULES as CONFIG_RULES
from hybridgpu.model.finding import Finding, Place, Severity
from tests.conftest import soak
from tests.consumers.kubernetes.tables import A100, FOUR_A100, cut, model, rows

SEVEN = ("1g.5gb",) * 7
V100, H100 = model("V100-SXM2-32GB"), model("H100-80GB-HBM3")
NO_ENV: dict[str, str] = {}
ROOT = {"MPS_ROOT": "/run/nvidia/mps"}


def sharing(entry: str = "{name: gpu, replicas: 4}", block: str = "timeSlicing", more: str = "") -> str:
    return f"sharing:\n  {block}:\n    resources: [{entry}]\n{more}"


Case = tuple[str, Node | None, Mapping[str, str] | None, str, tuple[str, ...]]

PLUGIN: dict[str, Case] = {
    # rule: file, node, variables, place, words
    "k8s-yaml-key-twice": ("version: v1\nversion: v2\n", None, None, "2:1", ("version", "line 1")),
    "k8s-yaml-key-repeated": ("version: v1\nversion: v1\n", None, None, "2:1", ("version",)),
    "k8s-yaml-second-document": ("version: v1\n---\nversion: v2\n", None, None, "3:1", ("second document",)),
    "k8s-yaml-odd-number": (sharing("{name: gpu, replicas: 010}"), None, None, "3:39", ("010 is read as 8",)),
    "k8s-yaml-key-case": ("Flags: {migStrategy: mixed}\n", None, None, "1:1", ("Flags", "flags")),
    "k8s-plugin-yaml": ("version: [\n", None, None, "2:1", ("line 1",)),
    "k8s-plugin-version": ("\nversion: v2\n", None, None, "2:10", ("unknown version: v2",)),
    "k8s-plugin-type": (
        "flags: {failOnInitError: maybe}\n",
        None,
        None,
        "1:26",
        ("string", "bool", "flags.failOnInitError is 'maybe'"),
    ),
    "k8s-plugin-no-resources": ("sharing:\n  timeSlicing: {}\n", None, None, "2:16", ("resources",)),
    "k8s-plugin-replicas": (sharing("{name: gpu, replicas: 1}"), None, None, "3:39", (">= 2", "replicas is '1'")),
    "k8s-plugin-resource-name": (sharing("{name: GPU, replicas: 4}"), None, None, "3:24", ("nvidia.com/GPU",)),
    "k8s-plugin-devices": (sharing("{name: gpu, replicas: 4, devices: 0}"), None, None, "3:51", ("> 0",)),
    "k8s-plugin-value": ("flags: {gfd: {sleepInterval: soon}}\n", None, None, "1:30", ("soon",)),
    "k8s-plugin-flag": ("flags: {migStrategy: Mixed}\n", None, None, "1:22", ("Mixed", "mixed")),
    "k8s-plugin-mps-mixed": (
        *("flags: {migStrategy: mixed}\n" + sharing(block="mps"), None, None, "1:22"),
        ("mixed", "MIG"),
    ),
    "k8s-plugin-mps-root": (sharing(block="mps"), None, NO_ENV, "3:5", ("--mps-root", "MPS_ROOT")),
    "k8s-plugin-mps-root-assumed": (sharing(block="mps"), None, None, "3:5", ("mpsRoot",)),
    "k8s-plugin-mps-replicas": (sharing("{name: gpu, replicas: 49}", "mps"), None, ROOT, "3:39", ("49", "48")),
    "k8s-plugin-mps-no-daemon": (sharing("{name: gpus, replicas: 4}", "mps"), None, ROOT, "3:24", ("gpus", "gpu?")),
    "k8s-plugin-mps-and-time-slicing": (
        *("sharing:\n  timeSlicing: &x {resources: [{name: gpu, replicas: 4}]}\n  mps: *x\n", None, ROOT, "2:16"),
        ("mps", "timeSlicing"),
    ),
    "k8s-plugin-mps-and-mig": (sharing(block="mps"), cut(SEVEN, None), ROOT, "3:5", ("MIG mode: 0",)),
    "k8s-plugin-rename": (sharing("{name: gpu, replicas: 4, rename: x}"), None, None, "3:50", ("nvidia.com/x",)),
    "k8s-plugin-per-device": (sharing("{name: gpu, replicas: 4, devices: [0]}"), None, None, "3:51", ("devices",)),
    "k8s-plugin-resources": ("resources: {gpus: [{pattern: a, name: b}]}\n", None, None, "1:12", ("resources",)),
    "k8s-plugin-same-name": (
        *(sharing("{name: gpu, replicas: 4}, {name: nvidia.com/gpu, replicas: 8}"), None, None, "3:50"),
        ("nvidia.com/gpu has two entries",),
    ),
    "k8s-plugin-no-such-resource": (sharing("{name: gpuu, replicas: 4}"), None, None, "3:24", ("gpuu", "gpu?")),
    "k8s-plugin-misplaced-key": ("sharing:\nmps: {resources: []}\n", None, None, "2:1", ("mps", "under sharing")),
    "k8s-plugin-misspelt-key": ("flags: {migStrategie: mixed}\n", None, None, "1:9", ("migStrategie", "migStrategy?")),
    "k8s-plugin-unknown-key": ("flags: {zzz: 1}\n", None, None, "1:9", ("zzz", "migStrategy")),
    "k8s-plugin-no-list-strategy": (
        *("flags: {plugin: {deviceListStrategy: []}}\n", None, None, "1:38"),
        ("deviceListStrategy",),
    ),
    "k8s-plugin-overruled": (
        *("flags: {migStrategy: mixed}\n", None, {"MIG_STRATEGY": "single"}, "1:22"),
        ("MIG_STRATEGY=single",),
    ),
    "k8s-plugin-overruled-alike": (
        *("flags: {migStrategy: none}\n", FOUR_A100, {"MIG_STRATEGY": "single"}, "1:22"),
        ("MIG_STRATEGY=single",),
    ),
    "k8s-plugin-cards": ("flags: {migStrategy: single}\n", cut(SEVEN, None), NO_ENV, "1:22", ("same migEnabled",)),
    "k8s-plugin-imex-required": ("imex: {channelIDs: [0], required: true}\n", FOUR_A100, NO_ENV, "1:7", ("channel0",)),
    "k8s-plugin-imex-channel": ("imex: {channelIDs: [0]}\n", FOUR_A100, NO_ENV, "1:7", ("channel 0",)),
    "k8s-plugin-invalid-labels": (
        *("flags: {migStrategy: single}\n", cut(SEVEN, ()), NO_ENV, "1:22"),
        ("NVIDIA-A100-SXM4-40GB-MIG-INVALID",),
    ),
    "k8s-plugin-random-labels": (
        *("version: v1\n", Node((*node_of(A100, 1).cards, *node_of(V100, 2).cards[1:])), NO_ENV, "1:1"),
        ("nvidia.com/gpu.product",),
    ),
}

MIG: dict[str, tuple[str, Node | None, str, tuple[str, ...]]] = {
    "k8s-mig-yaml": ("a: [", None, "2:1", ("line",)),
    "k8s-mig-form": ("{c: [{devices: all, mig-enabled: maybe}]}", None, "2:47", ("'c'", "bool")),
    "k8s-mig-profile": (
        *("{c: [{devices: all, mig-enabled: true, mig-devices: {1g.10gb.me: 1}}]}", None, "2:67"),
        ("1g.10gb.me", "1g.10gb+me"),
    ),
    "k8s-mig-unknown-profile": (
        *("{c: [{devices: all, mig-enabled: true, mig-devices: {5g.20gb: 1}}]}", None, "2:67"),
        ("'c'", "5g.20gb"),
    ),
    "k8s-mig-does-not-fit": (
        '{c: [{device-filter: "0x20B010DE", devices: all, mig-enabled: true, mig-devices: {3g.20gb: 2, 1g.5gb: 1}}]}',
        *(None, "2:82", ("'c'", "3g.20gb", "A100")),
    ),
    "k8s-mig-filter-never": (
        *("{c: [{device-filter: A100, devices: all, mig-enabled: false}]}", None, "2:20"),
        ("'A100'",),
    ),
    "k8s-mig-no-devices": ("{c: [{devices: [9], mig-enabled: false}]}", FOUR_A100, "2:20", ("9",)),
    "k8s-mig-never-equal": (
        *("{c: [{devices: all, mig-enabled: true, mig-devices: {01g.5gb: 1}}]}", None, "2:67"),
        ("01g.5gb", "1g.5gb"),
    ),
    "k8s-mig-two-modes": (
        "{c: [{devices: all, mig-enabled: false}, {devices: [1], mig-enabled: true, mig-devices: {1g.5gb: 7}}]}",
        *(None, "2:56", ("another mode",)),
    ),
    "k8s-mig-partial-cover": ("{c: [{devices: [0, 1], mig-enabled: false}]}", None, "2:20", ("cards 0, 1",)),
    "k8s-mig-cover-assumed": (
        *("{c: [{devices: [0, 1], mig-enabled: false}, {devices: [2], mig-enabled: false}]}", None, "2:20"),
        ("cards 0 to 2",),
    ),
    "k8s-mig-not-capable": (
        "{c: [{devices: all, mig-enabled: true, mig-devices: {1g.5gb: 7}}]}",
        *(node_of(V100, 1), "2:20", ("card 0", "V100")),
    ),
    "k8s-mig-no-all-disabled": ("{c: [{devices: all, mig-enabled: false}]}", None, "2:15", ("all-disabled",)),
}

CHOICE: dict[str, tuple[dict[str, str], Settings, dict[str, str], tuple[str, ...]]] = {
    "k8s-config-no-default": ({"a": "", "b": ""}, CHART, {"n1": "a"}, ("a, b", "all fallbacks failed")),
    "k8s-config-default-without-key": ({"a": "", "b": ""}, Settings("c"), {}, ("'c'", "a, b")),
    "k8s-config-label-without-key": ({"default": "", "four": ""}, CHART, {"n1": "for"}, ("n1", "'for'", "four")),
    "k8s-config-key-not-a-label": ({"default": "", "-x": ""}, CHART, {}, ("'-x'",)),
}


def mig_file(configs: str) -> str:
    return configs if configs.startswith("a:") else f"version: v1\nmig-configs: {configs}\n"


def of(rule: str, findings: tuple[Finding, ...]) -> Finding:
    found = [finding for finding in findings if finding.rule.id == rule]
    assert found, [(finding.rule.id, finding.message) for finding in findings]
    return found[0]


def test_every_rule_has_a_firing_case_and_a_name_of_its_own() -> None:
    ids = [rule.id for rule in RULES]
    assert len(ids) == len(set(ids))
    mine = (*yamlrules.RULES, *pluginrules.RULES, *CONFIG_RULES, *migrules.RULES)
    elsewhere = {SEVERAL_NO_DEFAULT, OPERATOR_NO_DEFAULT}  # of a site's files: test_kubejudge
    assert sorted([*PLUGIN, *MIG, *CHOICE, DEFAULT_OFFERS_MORE.id]) == sorted(r.id for r in mine if r not in elsewhere)


@pytest.mark.parametrize("rule", PLUGIN)
def test_a_rule_of_the_plugin_fires_where_the_mistake_is(rule: str) -> None:
    text, node, env, place, words = PLUGIN[rule]
    finding = of(rule, judge_plugin_config(text, in_file("f"), node, env))
    assert str(finding.place) == f"f:{place}"
    assert [word for word in words if word not in finding.message + finding.hint + finding.rule.fix] == []


@pytest.mark.parametrize("rule", MIG)
def test_a_rule_of_mig_parted_fires_where_the_mistake_is(rule: str) -> None:
    configs, node, place, words = MIG[rule]
    finding = of(rule, judge_mig_file(mig_file(configs), in_file("f"), node))
    assert str(finding.place) == f"f:{place}"
    assert [word for word in words if word not in finding.message + finding.hint] == []


@pytest.mark.parametrize("rule", CHOICE)
def test_a_rule_of_the_choice_fires(rule: str) -> None:
    keys, settings_, labels, words = CHOICE[rule]
    finding = of(rule, tuple(judge_choice(keys, settings_, labels, Place("f", 3))))
    assert [word for word in words if word not in finding.message + finding.hint] == []


FAIL = "failRequestsGreaterThanOne: true"
EVERYTHING = "{name: nvidia.com/gpu, replicas: 10, devices: all, rename: gpu.shared}"
PLUGIN_FLAGS = (
    "passDeviceSpecs: true, deviceListStrategy: [envvar, cdi-cri], deviceIDStrategy: index, "
    "sharedDevicesAllocationPolicy: packed"
)
MIXED = "flags: {migStrategy: mixed}\n"
RENAMED = "sharing: {timeSlicing: {renameByDefault: true, resources: [{name: gpu, replicas: 4}]}}\n"
DEFAULTS: dict[str, tuple[str, str, Node, str | None]] = {
    # default, own, cards -> what the default offers more
    "nothing shared first": (MIXED, sharing(), FOUR_A100, None),
    "the same for MIG": (MIXED, MIXED + "version: v1\n", cut(SEVEN, None), None),
    "more shares": (sharing(), "", FOUR_A100, "offers 16 nvidia.com/gpu, and 'own' 4"),
    "another name": (MIXED, RENAMED, FOUR_A100, "offers 4 nvidia.com/gpu, and 'own' 0"),
    "whole cards in MIG mode": ("", MIXED, cut(SEVEN, SEVEN), "offers 2 nvidia.com/gpu, and 'own' 0"),
    "a default that is refused offers nothing": ("version: v2\n", MIXED, FOUR_A100, None),
    "an own config that is refused": (MIXED, "version: v2\n", FOUR_A100, "and 'own' 0"),
}


@pytest.mark.parametrize("case", DEFAULTS)
def test_a_default_that_offers_more_than_the_node_s_own_config(case: str) -> None:
    default, own, node, words = DEFAULTS[case]
    findings = list(judge_default({"default": default, "own": own}, CHART, "own", node, NO_ENV))
    assert len(findings) == (words is not None)
    assert all(finding.rule is DEFAULT_OFFERS_MORE and words and words in finding.message for finding in findings)


def test_built_in_defaults_offer_whole_cards() -> None:
    (finding,) = judge_default({"own": RENAMED}, OPERATOR, "own", FOUR_A100, NO_ENV)
    assert "'/dev/null', applied first, offers 4 nvidia.com/gpu" in finding.message
    assert list(judge_default({"a": "", "b": ""}, CHART, "b", FOUR_A100, NO_ENV)) == []


CLEAN: dict[str, tuple[str, Node | None, Mapping[str, str] | None]] = {
    "empty": ("", None, None),
    "exclusive": ("version: v1\nflags: {migStrategy: none}\n", FOUR_A100, NO_ENV),
    "time-slicing": ("version: v1\n" + sharing(), FOUR_A100, NO_ENV),
    "time-slicing, everything said": (
        f"sharing: {{timeSlicing: {{renameByDefault: true, {FAIL}, resources: [{EVERYTHING}]}}}}",
        *(FOUR_A100, NO_ENV),
    ),
    "mps": (sharing("{name: gpu, replicas: 48}", "mps"), FOUR_A100, ROOT),
    "mps on old cards": (sharing("{name: gpu, replicas: 16}", "mps"), node_of(V100, 4), ROOT),
    "mps with a root": ("flags: {mpsRoot: /x}\n" + sharing(block="mps"), None, NO_ENV),
    "MIG single": ("flags: {migStrategy: single}\n", cut(SEVEN, SEVEN), NO_ENV),
    "MIG mixed": ("flags: {migStrategy: mixed}\n", cut(SEVEN, ("3g.20gb", "3g.20gb"), None), NO_ENV),
    "MIG instances shared": (
        "flags: {migStrategy: mixed}\n" + sharing("{name: mig-1g.5gb, replicas: 4}, {name: gpu, replicas: 2}"),
        *(cut(SEVEN, None), NO_ENV),
    ),
    "MIG by variable": (sharing("{name: mig-1g.5gb, replicas: 4}"), None, None),
    "a variable that agrees": ("flags: {migStrategy: mixed}\n", FOUR_A100, {"MIG_STRATEGY": "mixed"}),
    "flags of every program": (
        f"flags: {{nvidiaDriverRoot: /, plugin: {{{PLUGIN_FLAGS}}}, gfd: {{sleepInterval: 1m, oneshot: no}}}}",
        *(FOUR_A100, NO_ENV),
    ),
    "an IMEX channel": ("imex: {channelIDs: [0], required: true}\n", Node(FOUR_A100.cards, frozenset({0})), NO_ENV),
    "JSON": ('{"version": "v1"}', None, None),
}


@pytest.mark.parametrize("case", CLEAN)
def test_what_is_right_has_no_finding(case: str) -> None:
    assert judge_plugin_config(CLEAN[case][0], in_file("f"), *CLEAN[case][1:]) == ()


SIX = "mig-enabled: true, mig-devices: {1g.5gb: 5, 2g.10gb: 1}"
H100_SEVEN = "{device-filter: '0x233010DE', devices: all, mig-enabled: true, mig-devices: {1g.10gb: 7}}"
CLEAN_MIG: dict[str, tuple[str, Node | None]] = {
    "all": ("{all-disabled: [{devices: all, mig-enabled: false}]}", None),
    "every index": (
        f"{{all-disabled: [{{devices: [0, 1], mig-enabled: false}}, {{devices: [2, 3], {SIX}}}]}}",
        FOUR_A100,
    ),
    "filters": (
        f"{{all-disabled: [{{device-filter: ['0x20B010DE', '0x20B110DE'], devices: all, {SIX}}}, {H100_SEVEN}]}}",
        None,
    ),
    "mode on without instances": ("{all-disabled: [{devices: all, mig-enabled: true, mig-devices: {}}]}", FOUR_A100),
    "a profile that some model has": (
        "{all-disabled: [{devices: all, mig-enabled: true, mig-devices: {1g.24gb+me.all: 1}}]}",
        None,
    ),
}


@pytest.mark.parametrize("case", CLEAN_MIG)
def test_a_right_mig_file_has_no_finding(case: str) -> None:
    configs, node = CLEAN_MIG[case]
    assert judge_mig_file(mig_file(configs), in_file("f"), node) == ()


@pytest.mark.parametrize(
    ("keys", "settings_", "labels"),
    [
        ({"default": "", "a": ""}, CHART, {"n1": "a", "n2": ""}),
        ({"only": ""}, CHART, {}),
        ({"a": "", "b": ""}, OPERATOR, {"n1": "b"}),
        ({"a": "", "b": ""}, Settings(default="a"), {}),
    ],
)
def test_a_right_choice_has_no_finding(keys: dict[str, str], settings_: Settings, labels: dict[str, str]) -> None:
    assert list(judge_choice(keys, settings_, labels)) == []


@pytest.mark.parametrize("row", rows("device-plugin"), ids=lambda row: str(row["id"]))
def test_what_is_refused_or_warned_of_is_an_error_here(row: dict[str, dict[str, list[str] | str | None]]) -> None:
    """Nothing that stops the plugin, or that it says it ignores, goes by without an error or a warning."""
    env: Mapping[str, str] = row.get("flags", {}).get("env", {})  # type: ignore[assignment]
    findings = judge_plugin_config(str(row["config"]), in_file("f"), FOUR_A100, env)
    severities = {finding.severity for finding in findings}
    if row["plugin"]["error"]:
        assert Severity.ERROR in severities
    if row["plugin"]["warnings"]:
        assert severities & {Severity.ERROR, Severity.WARNING}


def test_places_in_a_block_of_a_manifest() -> None:
    text = "version: v1\nsharing:\n  timeSlicing: {}\n"
    (finding,) = judge_plugin_config(text, in_block("cm.yaml", line=8, indent=4))
    assert str(finding.place) == "cm.yaml:10:20"


def test_a_key_one_level_too_deep_empties_a_flag() -> None:
    findings = judge_plugin_config("flags:\n  plugin:\n    migStrategy: mixed\n", in_file("f"), FOUR_A100, NO_ENV)
    assert [finding.rule.id for finding in findings] == ["k8s-plugin-misplaced-key", "k8s-plugin-flag"]
    assert "sets flags.migStrategy to its empty value" in findings[0].message


def test_a_limit_is_the_lowest_of_the_node_s_cards() -> None:
    text = sharing("{name: gpu, replicas: 17}", "mps")
    assert judge_plugin_config(text, in_file("f"), FOUR_A100, ROOT) == ()
    assert (
        "at most 16"
        in of("k8s-plugin-mps-replicas", judge_plugin_config(text, in_file("f"), node_of(V100, 1), ROOT)).message
    )


def test_an_entry_that_fits_one_of_its_filters_only() -> None:
    text = mig_file(
        '{all-disabled: [{device-filter: ["0x20B010DE", "0x233010DE"], devices: all, mig-enabled: true, '
        "mig-devices: {1g.10gb: 7}}]}"
    )
    (finding,) = judge_mig_file(text, in_file("f"))
    assert finding.rule is migrules.DOES_NOT_FIT and "A100" in finding.message and "H100" not in finding.message
    assert judge_mig_file(text, in_file("f"), node_of(H100, 1)) == ()


def test_rules_speak_to_a_person() -> None:
    for rule in RULES:
        assert rule.what_happens.endswith(".") and rule.fix.endswith(".") and rule.source
    assert {rule.since for rule in CONFIG_RULES} == {"v0.19.0", None}


WORDS = """version flags sharing mps timeSlicing resources name replicas devices mig-configs mig-enabled mig-devices
all gpu v1 4 010 true ~ [ ] { } : , - & * ! ' " # | > %"""
PIECES = st.sampled_from([*WORDS.split(), "\t", "\n", "\n  ", ": ", "- ", " "])


@given(st.lists(PIECES, max_size=40).map("".join) | st.binary(max_size=100) | st.text(max_size=60))
@settings(max_examples=soak(250, 50_000))
def test_no_file_breaks_the_room(text: str | bytes) -> None:
    for node, env in ((None, None), (cut(SEVEN, None), NO_ENV)):
        judge_plugin_config(text, in_file("f"), node, env)
        judge_mig_file(text, in_file("f"), node)
    consume(text, FOUR_A100, NO_ENV)
