"""mig-parted and mig-manager: the measured forms, what applying leaves on the cards, and the states a run stops in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybridgpu.consumers.kubernetes import Node, node_of, valid_config
from hybridgpu.consumers.kubernetes.migmanager import (
    CLIENT,
    OPERANDS,
    PAUSED,
    STATE,
    Manager,
    Obstacle,
    next_value,
    reconfigure,
    triggers,
)
from hybridgpu.consumers.kubernetes.migparted import apply, assert_config, assert_mode, counts_of, filter_id
from hybridgpu.consumers.kubernetes.migprofile import ProfileName, parse_profile
from hybridgpu.consumers.kubernetes.migspec import MigEntry, MigFile, read_mig, selected
from hybridgpu.files.gojson import JSON
from hybridgpu.model.geometry import layouts
from hybridgpu.model.gpu import GpuModel
from tests.conftest import soak
from tests.consumers.kubernetes.tables import A100, cut, model, named, rows


@pytest.mark.parametrize("row", rows("mig-parted"), ids=named)
def test_the_form_of_a_file(row: dict[str, Any]) -> None:
    """The table keeps a message from where the unmarshaller speaks."""
    words = valid_config(row["config"], row["selected"])
    assert (words is None, words and words.rpartition(JSON)[2]) == (row["valid"], row["message"])


@pytest.mark.parametrize("row", rows("mig-form"), ids=named)
def test_the_form_of_further_files(row: dict[str, Any]) -> None:
    assert valid_config(row["config"], row["selected"]) == row["message"]


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("1g.5gb", "1g.5gb"),
        ("01g.05gb", "1g.5gb"),
        ("1c.1g.5gb", "1g.5gb"),
        ("1c.2g.10gb", "1c.2g.10gb"),
        ("1g.5gb+me", "1g.5gb+me"),
        ("1g.5gb+b,a", "1g.5gb+a,b"),
        ("1g.24gb-me", "1g.24gb-me"),
    ],
)
def test_a_profile_has_one_canonical_name(text: str, canonical: str) -> None:
    name = parse_profile(text)
    assert isinstance(name, ProfileName) and name.canonical == canonical


@given(st.text("0123456789cgb.+-me, ", max_size=12) | st.text(max_size=12))
@settings(max_examples=soak(300, 50_000))
def test_any_text_is_a_profile_or_is_refused(text: str) -> None:
    name = parse_profile(text)
    if isinstance(name, ProfileName):
        assert parse_profile(name.canonical) == name


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0x20B010DE", (0x20B0, 0x10DE)),
        ("0x20b010de", (0x20B0, 0x10DE)),
        ("0x20B010DE:0x144E10DE", (0x20B0, 0x10DE)),
        ("20B010DE", (0, 0)),
        ("0x20B0", (0, 0x20B0)),
        ("A100", (0, 0)),
        ("", (0, 0)),
        ("0x20B010DE:A:B", (0, 0)),
        ("0x120B010DE", (0, 0)),
    ],
)
def test_a_filter_is_a_number_or_never_matches(text: str, expected: tuple[int, int]) -> None:
    assert filter_id(text) == expected


SEVEN = ("1g.5gb",) * 7
H100 = model("H100-80GB-HBM3")
V100 = model("V100-SXM2-32GB")


def entry(counts: str = "", devices: str = "all", enabled: str = "true", more: str = "") -> str:
    return f"{{devices: {devices}, mig-enabled: {enabled}, mig-devices: {{{counts}}}{more}}}"


def config(*entries: str) -> tuple[MigEntry, ...]:
    file = read_mig(f"version: v1\nmig-configs: {{c: [{', '.join(entries)}]}}\n").file
    assert isinstance(file, MigFile)
    found = selected(file, "c")
    assert not isinstance(found, str)
    return found


def state(node: Node) -> list[dict[str, int] | None]:
    """Each card's MIG devices by profile, None for a card with MIG off."""
    return [counts_of(card) if card.mig else None for card in node.cards]


OFF = entry(enabled="false")
APPLIED: dict[str, tuple[Node, tuple[str, ...], list[dict[str, int] | None], str | None, bool]] = {
    # name: (cards before, entries, cards after, failure, whether the config counts as applied then)
    "all": (cut(None, None), (entry("1g.5gb: 7"),), [{"1g.5gb": 7}] * 2, None, True),
    "nothing to do": (cut(SEVEN), (entry("1g.5gb: 7"),), [{"1g.5gb": 7}], None, True),
    "off again": (cut(SEVEN, None), (OFF,), [None, None], None, True),
    "other instances, same mode": (cut(SEVEN), (entry("3g.20gb: 2"),), [{"3g.20gb": 2}], None, True),
    "mode on, no instances": (cut(None), (entry(),), [{}], None, True),
    "a card of two": (cut(None, None), (entry("1g.5gb: 7", "[0]"),), [{"1g.5gb": 7}, None], None, False),
    "each card otherwise": (
        cut(None, None),
        (entry("1g.5gb: 7", "[0]"), entry("", "[1]", "false")),
        [{"1g.5gb": 7}, None],
        None,
        True,
    ),
    "all off, then one on: asserted both ways": (
        cut(None, None),
        (OFF, entry("1g.5gb: 7", "[0]")),
        [{}, None],
        "MIG mode is currently enabled, but the configuration specifies it should be disabled",
        False,
    ),
    "two layouts for one card: the last one counts": (
        cut(None),
        (entry("3g.20gb: 2"), entry("1g.5gb: 7")),
        [{"1g.5gb": 7}],
        None,
        True,
    ),
    "does not fit": (
        cut(SEVEN, SEVEN),
        (entry("3g.20gb: 2, 1g.5gb: 1"),),
        [{}, {"1g.5gb": 7}],
        "error setting MIGConfig: error attempting multiple config orderings: all orderings failed",
        False,
    ),
    "a profile nobody knows empties the card and is a success": (
        cut(SEVEN),
        (entry("5g.20gb: 1, 1g.5gb: 2"),),
        [{}],
        None,
        False,
    ),
    "a zero count never compares equal": (
        cut(None),
        (entry("1g.5gb: 2, 2g.10gb: 0"),),
        [{"1g.5gb": 2}],
        None,
        False,
    ),
    "nor does another spelling": (cut(None), (entry("01g.5gb: 2"),), [{"1g.5gb": 2}], None, False),
    "parts of GPU instances": (cut(None), (entry("1c.2g.10gb: 6"),), [{"1c.2g.10gb": 6}], None, True),
    "more parts than fit": (
        cut(None),
        (entry("1c.2g.10gb: 7"),),
        [{}],
        "error setting MIGConfig: error attempting multiple config orderings: all orderings failed",
        False,
    ),
    "media extensions": (cut(None), (entry("1g.5gb+me: 1, 1g.5gb: 6"),), [{"1g.5gb+me": 1, "1g.5gb": 6}], None, True),
    "a filter that never matches": (
        cut(None),
        (entry("1g.5gb: 7", more=", device-filter: A100"),),
        [None],
        None,
        False,
    ),
    "a filter of another card": (
        cut(None),
        (entry("1g.5gb: 7", more=', device-filter: "0x233010DE"'),),
        [None],
        None,
        False,
    ),
    "cards without MIG are skipped by all, and never assert": (
        node_of(V100, 1),
        (entry("1g.5gb: 7"),),
        [None],
        None,
        False,
    ),
    "and refused by index": (
        node_of(V100, 1),
        (entry("1g.5gb: 7", "[0]"),),
        [None],
        "cannot set MIG mode on non MIG-capable GPU",
        False,
    ),
    "off is right for cards without MIG": (node_of(V100, 1), (OFF,), [None], None, True),
}


@pytest.mark.parametrize("case", APPLIED)
def test_what_apply_leaves_on_the_cards(case: str) -> None:
    node, entries, after, words, holds = APPLIED[case]
    wanted = config(*entries)
    done = apply(wanted, node)
    assert (state(done.node), done.words) == (after, words)
    assert (assert_config(wanted, done.node) is None) == holds


@pytest.mark.parametrize("known", [A100, H100], ids=lambda m: m.name)
def test_every_layout_a_card_can_hold_is_applied_and_asserts(known: GpuModel) -> None:
    for layout in layouts(known, attributes=True)[:: soak(7, 1)]:
        counts = ", ".join(f"{name}: {count}" for name, count in layout.profiles.items())
        wanted = config(entry(counts))
        done = apply(wanted, node_of(known, 2))
        assert done.words is None and assert_config(wanted, done.node) is None and done.reset
        assert state(done.node) == [layout.profiles] * 2
        assert apply(wanted, done.node).node == done.node


def test_what_a_workload_holds_stays() -> None:
    busy = frozenset({0})
    done = apply(config(entry("3g.20gb: 2")), cut(SEVEN), busy=busy)
    assert done.words is not None and state(done.node) == [{"1g.5gb": 7}]
    done = apply(config(OFF), cut(SEVEN), busy=busy)
    assert done.words is not None and "In use" in done.words and state(done.node) == [{"1g.5gb": 7}]
    assert apply(config(entry("1g.5gb: 7")), cut(SEVEN), busy=busy).words is None


FILE = f"""version: v1
mig-configs:
  all-disabled: [{OFF}]
  seven: [{entry("1g.5gb: 7")}]
  two: [{entry("3g.20gb: 2")}]
  no: [{entry("3g.20gb: 2, 1g.5gb: 1")}]
  empty: [{entry("5g.20gb: 1")}]
  half: [{entry("1g.5gb: 7", "[0]")}]
"""
ON = dict.fromkeys(OPERANDS, "true")
HOST = Manager(host_driver=True)
REBOOTS = Manager(with_reboot=True)

RUNS: dict[str, tuple[str, Node, dict[str, str], Manager, set[Obstacle], set[int], str, str, bool]] = {
    # label, cards, labels before, manager, obstacles, busy -> state, operands, wedged
    "cut": ("seven", cut(None), ON, Manager(), set(), set(), "success", "true", False),
    "there already": ("seven", cut(SEVEN), {}, Manager(), set(), set(), "success", "true", False),
    "not in the file": ("eight", cut(None), ON, Manager(), set(), set(), "failed", "true", False),
    "does not fit": ("no", cut(None), ON, Manager(), set(), set(), "failed", "true", False),
    "a profile nobody knows": ("empty", cut(SEVEN), ON, Manager(), set(), set(), "success", "true", False),
    "a workload": ("two", cut(SEVEN), ON, Manager(), set(), {0}, "failed", "true", False),
    "operands stay": ("seven", cut(None), ON, Manager(), {Obstacle.PODS_STAY}, set(), "pending", PAUSED, True),
    "validator stays": ("seven", cut(None), ON, HOST, {Obstacle.VALIDATOR_STAYS}, set(), "pending", PAUSED, True),
    "nothing to do, so no pod is waited for": (
        *("seven", cut(SEVEN), ON, Manager(), {Obstacle.PODS_STAY}, set()),
        *("success", "true", False),
    ),
    "mode stays": ("seven", cut(None), ON, Manager(), {Obstacle.MODE_STAYS}, set(), "failed", "true", False),
    "mode stays, reboot": ("seven", cut(None), ON, REBOOTS, {Obstacle.MODE_STAYS}, set(), "rebooting", PAUSED, False),
    "mode still wrong after the reboot": (
        *("seven", cut(None), {**ON, STATE: "rebooting"}, REBOOTS, set(), set()),
        *("failed", "true", False),
    ),
    "a label that was removed meanwhile": ("", cut(None), ON, Manager(), set(), set(), "failed", "true", False),
}


@pytest.mark.parametrize("case", RUNS)
def test_where_a_reconfiguration_ends(case: str) -> None:
    label, node, before, manager, obstacles, busy, state_, operands, wedged = RUNS[case]
    done = reconfigure(FILE, label, node, before, manager, obstacles=frozenset(obstacles), busy=frozenset(busy))
    assert (done.state, done.wedged) == (state_, wedged)
    assert {done.labels[name] for name in OPERANDS} == {operands}
    assert done.rebooted == (state_ == "rebooting")
    assert (done.words is None) == (state_ in ("success", "rebooting"))


def test_only_one_config_in_the_file_is_applied_for_a_label_that_is_gone() -> None:
    text = f"version: v1\nmig-configs: {{only: [{entry('1g.5gb: 7')}]}}\n"
    assert state(reconfigure(text, "", cut(None), ON).node) == [{"1g.5gb": 7}]


def test_a_partial_config_is_applied_again_at_every_start() -> None:
    once = reconfigure(FILE, "half", cut(None, None), ON)
    assert once.state == "success" and state(once.node) == [{"1g.5gb": 7}, None]
    again = reconfigure(FILE, "half", once.node, once.labels, obstacles=frozenset({Obstacle.PODS_STAY}))
    assert again.wedged


@pytest.mark.parametrize(("node", "stopped"), [(cut(None), True), (cut(("3g.20gb",)), False)])
def test_the_host_s_kubelet_is_stopped_for_a_mode_change_only(node: Node, stopped: bool) -> None:
    assert reconfigure(FILE, "seven", node, ON, HOST).kubelet_stopped == stopped
    assert not reconfigure(FILE, "seven", node, ON).kubelet_stopped


def test_operands_that_are_off_stay_off_and_clients_are_paused_where_there_are_any() -> None:
    before = {**ON, OPERANDS[0]: "false", CLIENT: "true"}
    stuck = reconfigure(FILE, "seven", cut(None), before, obstacles=frozenset({Obstacle.PODS_STAY}))
    assert (stuck.labels[OPERANDS[0]], stuck.labels[OPERANDS[1]], stuck.labels[CLIENT]) == ("false", PAUSED, PAUSED)
    assert CLIENT not in reconfigure(FILE, "seven", cut(None), ON).labels


@pytest.mark.parametrize(
    ("before", "after", "expected"), [("a", "a", False), ("a", "", False), ("", "a", True), ("a", "b", True)]
)
def test_what_wakes_it(before: str, after: str, expected: bool) -> None:
    assert triggers(before, after) is expected


@pytest.mark.parametrize(("label", "expected"), [("a", None), ("b", "b"), ("", "")])
def test_what_it_does_next(label: str, expected: str | None) -> None:
    assert next_value("a", label) == expected


def test_modes_alone() -> None:
    wanted: Mapping[str, tuple[MigEntry, ...]] = {"on": config(entry("1g.5gb: 7")), "off": config(OFF)}
    assert assert_mode(wanted["on"], cut(SEVEN, None)) == "card 1: current mode different than mode being asserted"
    assert assert_mode(wanted["off"], cut(None, None)) is None
    done = apply(wanted["on"], cut(None), mode_only=True)
    assert state(done.node) == [{}] and done.reset
