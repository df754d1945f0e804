"""`# hybridgpu: ignore RULE reason` silences one place, and says when it does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from hybridgpu.check.ignore import UNKNOWN_RULE, UNUSED, WITHOUT_REASON, apply_ignores
from hybridgpu.check.site import check
from hybridgpu.files.kinds import Input, Kind
from hybridgpu.model.finding import Finding, Place, Rule, Severity
from tests.sites import inventory

RULE = Rule("a-rule", Severity.ERROR, "x", "y", "z")
OTHER = Rule("other-rule", Severity.ERROR, "x", "y", "z")

CASES: dict[str, tuple[str, int, list[str]]] = {
    "behind the line": ("one\ntwo # hybridgpu: ignore a-rule it is meant\n", 2, []),
    "above the line": ("one\n# hybridgpu: ignore a-rule it is meant\ntwo\n", 3, []),
    "above, with another comment and a blank line": ("# hybridgpu: ignore a-rule yes\n\n# more\ntwo\n", 4, []),
    "two above one line": ("# hybridgpu: ignore a-rule y\n# hybridgpu: ignore other-rule y\nx\n", 3, ["UNUSED"]),
    "in a block of a ConfigMap": ("any: |\n  x: 1  # hybridgpu: ignore a-rule yes\n", 2, []),
    "in CRLF": ("one\r\ntwo # hybridgpu: ignore a-rule it is meant\r\n", 2, []),
    "no blanks": ("two #hybridgpu:ignore a-rule why\n", 1, []),
    "another rule": ("two # hybridgpu: ignore other-rule why\n", 1, ["a-rule", "UNUSED"]),
    "another line": ("# hybridgpu: ignore a-rule why\none\ntwo\n", 3, ["a-rule", "UNUSED"]),
    "without a reason": ("two # hybridgpu: ignore a-rule\n", 1, ["a-rule", "WITHOUT_REASON"]),
    "a second rule for a reason": ("two # hybridgpu: ignore a-rule other-rule\n", 1, ["a-rule", "WITHOUT_REASON"]),
    "a rule that is none": ("two # hybridgpu: ignore a-rul why\n", 1, ["a-rule", "UNKNOWN_RULE"]),
    "no rule": ("two # hybridgpu: ignore\n", 1, ["a-rule", "UNKNOWN_RULE"]),
    "at the end of the file": ("two\n# hybridgpu: ignore a-rule why", 1, ["a-rule", "UNUSED"]),
}
NAMES = {UNKNOWN_RULE.id: "UNKNOWN_RULE", UNUSED.id: "UNUSED", WITHOUT_REASON.id: "WITHOUT_REASON"}


def given(path: str, kind: Kind = Kind.SLURM_CONF) -> Input:
    return Input(path, kind)


VALUES: dict[str, tuple[Kind, str, tuple[int, int], bool]] = {
    "an annotation of minified JSON": (Kind.MANIFEST, '{"a":" # hybridgpu: ignore a-rule why","b":1}', (1, 45), False),
    "the same, of that very value": (Kind.MANIFEST, '{"a":" # hybridgpu: ignore a-rule why","b":1}', (1, 6), True),
    "an argument above": (Kind.MANIFEST, "a: |\n  # hybridgpu: ignore a-rule why\nb: 1\n", (3, 1), False),
    "in quotes": (Kind.MANIFEST, 'a: "# hybridgpu: ignore a-rule why"\nb: 1\n', (1, 1), False),
    "a config in its block": (Kind.MANIFEST, "a: |\n  # hybridgpu: ignore a-rule why\n  b: 1\n", (3, 3), True),
    "a comment behind a value": (Kind.MANIFEST, "a: 1 # hybridgpu: ignore a-rule why\nb: 1\n", (1, 4), True),
    "behind a document that is broken": (Kind.MANIFEST, "a: [\n---\nb: 1 # hybridgpu: ignore a-rule y\n", (3, 1), True),
    "an escaped # of Slurm": (Kind.SLURM_CONF, "A=a\\# hybridgpu: ignore a-rule why\n", (1, 1), False),
    "a # of Slurm": (Kind.SLURM_CONF, "A=a # hybridgpu: ignore a-rule why\n", (1, 1), True),
}


@pytest.mark.parametrize("name", VALUES)
def test_only_a_comment_is_one(tmp_path: Path, name: str) -> None:
    """What stands in a value was written by whoever may set that value: it silences nothing beside it."""
    kind, text, (line, column), silent = VALUES[name]
    path = str(tmp_path / "file")
    Path(path).write_text(text)
    found = Finding(RULE, Place(path, line, column), "message")
    assert (found not in apply_ignores([found], [given(path, kind)], lambda: ["a-rule"])) is silent


@pytest.mark.parametrize("name", CASES)
def test_a_comment(tmp_path: Path, name: str) -> None:
    text, line, left = CASES[name]
    path = str(tmp_path / "file")
    Path(path).write_bytes(text.encode())
    found = [Finding(RULE, Place(path, line), "message"), Finding(RULE, None, "of no place")]
    kept = apply_ignores(found, [given(path)], lambda: ["a-rule", "other-rule"])
    assert [NAMES.get(f.rule.id, f.rule.id) for f in kept if f.message != "of no place"] == left
    assert any(f.message == "of no place" for f in kept)


def test_a_hint_names_the_rule_that_was_meant(tmp_path: Path) -> None:
    path = str(tmp_path / "file")
    Path(path).write_text("two # hybridgpu: ignore a-rul why\n")
    (mistake,) = apply_ignores([], [given(path)], lambda: ["a-rule"])
    assert mistake.hint == "did you mean a-rule?"


def test_files_that_cannot_be_read_silence_nothing(tmp_path: Path) -> None:
    binary = tmp_path / "binary"
    binary.write_bytes(b"# hybridgpu: ignore a-rule why\x00")
    found = [Finding(RULE, Place(str(binary), 1), "message")]
    assert apply_ignores(found, [given(str(binary)), given(str(tmp_path / "none"))], list) == tuple(found)


def test_an_inventory(tmp_path: Path) -> None:
    text = inventory("n1 dgx exclusive", slurm='version: "24.11", prologFlag: [X11]')
    path = tmp_path / "inventory.yaml"
    path.write_text(text)
    (mistake,) = (f for f in check([str(path)]).findings if f.is_error)
    lines = text.split("\n")
    assert mistake.place is not None
    lines[mistake.place.line - 1] += f"  # hybridgpu: ignore {mistake.rule.id} of a newer hybridgpu"
    path.write_text("\n".join(lines))
    assert [f for f in check([str(path)]).findings if f.is_error] == []
