"""A mig-parted file that is refused: every mistake of form says what to write, and sound configs are judged as well."""

from __future__ import annotations

import pytest

from hybridgpu.consumers.kubernetes import judge_mig_file
from hybridgpu.files.where import in_file

HEAD = "version: v1\nmig-configs:\n  all-disabled:\n  - {devices: all, mig-enabled: false}\n"
SEVEN = "mig-devices: {1g.10gb: 7}"

FORMS = {
    # what: the lines below HEAD, the line that is told, words of the hint
    "a filter that is a number": (
        f"  a:\n  - {{device-filter: 0x20B210DE, devices: all, mig-enabled: true, {SEVEN}}}\n",
        *(6, '"0x20B210DE"'),
    ),
    "a number among filters": (
        f'  a:\n  - {{device-filter: ["0x20B010DE", 0x20B210DE], devices: all, mig-enabled: true, {SEVEN}}}\n',
        *(6, '"0x20B210DE"'),
    ),
    "true in quotes": (f'  a:\n  - {{devices: all, mig-enabled: "true", {SEVEN}}}\n', 6, "mig-enabled: true, without"),
    "off as a text": ('  a:\n  - {devices: all, mig-enabled: "off"}\n', 6, "mig-enabled: false, without"),
    "one for true": (f"  a:\n  - {{devices: all, mig-enabled: 1, {SEVEN}}}\n", 6, "mig-enabled: true"),
    "no list": (f"  a:\n    devices: all\n    mig-enabled: true\n    {SEVEN}\n", 6, '"- " before devices'),
    "a word for a config": ("  a: all\n", 5, "list of entries"),
    "a word for an entry": ("  a:\n  - devices\n", 6, "entry as a mapping"),
    "a range in a list": (f"  a:\n  - {{devices: [1-8], mig-enabled: true, {SEVEN}}}\n", 6, "[1, 2, ..., 8]"),
    "a range": (f'  a:\n  - {{devices: "0-1", mig-enabled: true, {SEVEN}}}\n', 6, "[0, 1]"),
    "a number for devices": (f"  a:\n  - {{devices: 3, mig-enabled: true, {SEVEN}}}\n", 6, "devices: [3]"),
    "numbers in quotes": (f'  a:\n  - {{devices: ["2"], mig-enabled: true, {SEVEN}}}\n', 6, "devices: [2]"),
    "numbers with commas": (f'  a:\n  - {{devices: "0,1", mig-enabled: true, {SEVEN}}}\n', 6, "devices: [0, 1]"),
    "All": (f"  a:\n  - {{devices: All, mig-enabled: true, {SEVEN}}}\n", 6, "devices: all"),
    "all in a list": (f"  a:\n  - {{devices: [all], mig-enabled: true, {SEVEN}}}\n", 6, "without brackets"),
    "a count in quotes": ('  a:\n  - {devices: all, mig-enabled: true, mig-devices: {1g.10gb: "7"}}\n', 6, "write 7"),
    "a list of profiles": (
        "  a:\n  - {devices: all, mig-enabled: true, mig-devices: [1g.10gb]}\n",
        *(6, "{PROFILE: COUNT}"),
    ),
    "an entry without cards": (f"  a:\n  - {{mig-enabled: true, {SEVEN}}}\n", 6, "add devices: all"),
    "profiles of MIG that is off": (
        f"  a:\n  - {{devices: all, mig-enabled: false, {SEVEN}}}\n",
        6,
        "remove mig-devices",
    ),
    "MIG without profiles": ("  a:\n  - {devices: all, mig-enabled: true}\n", 6, "add mig-devices"),
    "nothing": ("  a:\n", 5, "give a an entry"),
    "a key of its own": ("mig-conf: 1\n", 5, "mig-configs"),
}


@pytest.mark.parametrize("what", FORMS)
def test_a_mistake_of_form_says_what_to_write(what: str) -> None:
    more, line, hint = FORMS[what]
    (found,) = judge_mig_file(HEAD + more, in_file("f"))
    assert found.rule.id == "k8s-mig-form" and found.place is not None and found.place.line == line
    assert hint in found.hint and "refuses the whole file" in found.message


@pytest.mark.parametrize("version", ["1", "v2", '"1"', "[v1]"])
def test_the_version_is_v1(version: str) -> None:
    (found,) = judge_mig_file(HEAD.replace("v1", version), in_file("f"))
    assert "version: v1" in found.hint


def test_all_mistakes_are_told_in_one_run() -> None:
    text = (
        HEAD.replace("version: v1\n", "")
        + '  a:\n  - {devices: [0-3], mig-enabled: "true", mig-devices: {1g.10gb: 7}}\n'
        + "  b:\n  - {devices: all, mig-enabled: true, mig-devices: {1g.10gb: 9}}\n"
        + "  c:\n    devices: all\n"
    )
    told = sorted((f.place.line, f.rule.id) for f in judge_mig_file(text, in_file("f"), None, ()) if f.place)
    assert told == [
        *((1, "k8s-mig-form"), (5, "k8s-mig-form"), (5, "k8s-mig-form")),
        *((7, "k8s-mig-does-not-fit"), (9, "k8s-mig-form")),
    ]
