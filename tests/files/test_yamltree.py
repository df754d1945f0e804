from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybridgpu.files import yamltree
from hybridgpu.files.yamlerror import SYNTAX
from hybridgpu.files.yamltree import Mapping, Node, Scalar, Sequence, Unreadable, one_document, parse_yaml
from hybridgpu.model.finding import Rule
from tests.conftest import no_hang, soak


def plain(node: Node) -> object:
    """A tree as Python data, without places."""
    match node:
        case Scalar():
            return node.text
        case Sequence():
            return [plain(item) for item in node.items]
        case Mapping():
            return {key.text: plain(value) for key, value in node.entries}
        case Unreadable():
            return None


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("a: 24.10\nb: off\nc: 012\nd: yes\ne: 1_000\nf: null\ng: 2020-01-01\n", {
            "a": "24.10", "b": "off", "c": "012", "d": "yes", "e": "1_000", "f": "null", "g": "2020-01-01",
        }),
        ("hosts: gpu[001-004]\nx: [a, {b: c}]\n", {"hosts": "gpu[001-004]", "x": ["a", {"b": "c"}]}),
        ("a: |\n  one\n  two\nb: ''\n", {"a": "one\ntwo\n", "b": ""}),
        ('{"a": 1, "b": [true, null]}', {"a": "1", "b": ["true", "null"]}),
        ("%YAML 1.1\n---\na: b\n...\n", {"a": "b"}),
    ],
)  # fmt: skip
def test_every_scalar_stays_text(text: str, data: object) -> None:
    tree = parse_yaml("f", text)
    assert tree.findings == ()
    assert [plain(document) for document in tree.documents] == [data]


def test_nodes_know_their_places_and_quotes() -> None:
    tree = parse_yaml("f", "\N{LATIN SMALL LETTER E WITH ACUTE}: [x, 'y']\nb:\n  c: \"d\"\n")
    top = tree.documents[0]
    assert isinstance(top, Mapping)
    key, value = top.entries[0]
    assert isinstance(value, Sequence)
    assert (key.line, key.column) == (1, 1)
    assert [(i.line, i.column, i.plain) for i in value.items if isinstance(i, Scalar)] == [(1, 5, True), (1, 8, False)]
    inner = top.mapping("b")
    assert inner
    assert inner.scalar("c") == Scalar("d", False, 3, 6)


@pytest.mark.parametrize(
    ("text", "rule", "line", "column", "words"),
    [
        ("a: &x b\nc: d\n", yamltree.ALIAS, 1, 4, "&x"),
        ("a: b\nc: *x\n", yamltree.ALIAS, 2, 4, "*x"),
        ("a: !!int 5\n", yamltree.TAG, 1, 4, "tag:yaml.org,2002:int"),
        ("a: ! b\n", yamltree.TAG, 1, 4, "tag"),
        ("<<: {a: b}\n", yamltree.MERGE_KEY, 1, 1, "<<"),
        ("a: 1\nb: 2\na: 3\n", yamltree.DUPLICATE_KEY, 3, 1, "first in line 1"),
        ("x: [{a: 1, 'a': 2}]\n", yamltree.DUPLICATE_KEY, 1, 12, "'a'"),
        ("a: {{ b }}\n", yamltree.COMPLEX_KEY, 1, 5, "list or a mapping"),
        ("? [a]\n: b\n", yamltree.COMPLEX_KEY, 1, 3, "list or a mapping"),
        ("a: " + "[" * 40 + "]" * 40, yamltree.TOO_DEEP, 1, 35, "32"),
        ("a: 1\n---\nb: 2\n---\nc: 3\n", yamltree.SEVERAL_DOCUMENTS, 3, 1, "second document"),
        ("a: b: c\n", SYNTAX, 1, 5, "':'"),
        ("a:\n\tb: c\n", SYNTAX, 2, 1, "tab"),
        ("a: 'b\n", SYNTAX, 2, 1, "quote"),
        ("a: {b: c\nd: e\n", SYNTAX, 2, 2, "'}'"),
        ("a: [b, c\nd: e\n", SYNTAX, 2, 2, "']'"),
        ("a: @b\n", SYNTAX, 1, 4, "'@'"),
        ('a: "\\q"\n', SYNTAX, 1, 5, "backslash"),
        ("- a\nb: c\n", SYNTAX, 2, 1, "line up"),
        ("a: b\n c: d\n", SYNTAX, 2, 3, "':'"),
        ("a: }\n", SYNTAX, 1, 4, "missing"),
        ("[" * 5000, SYNTAX, 1, 1001, "nested"),
    ],
)
def test_what_a_file_must_not_hold_is_reported_once_at_its_place(
    text: str, rule: Rule, line: int, column: int, words: str
) -> None:
    _, findings = one_document("f", parse_yaml("f", text))
    assert [(f.rule, f.place and (f.place.line, f.place.column)) for f in findings] == [(rule, (line, column))]
    assert words in findings[0].message
    assert findings[0].hint


def test_reading_goes_on_behind_a_mistake_and_keeps_the_first_of_two_keys() -> None:
    tree = parse_yaml("f", "a: 1\na: 2\nb: *x\nc: !t 3\nd: {{ e }}\n")
    assert [f.rule.id for f in tree.findings] == ["yaml-duplicate-key", "yaml-alias", "yaml-tag", "yaml-complex-key"]
    assert plain(tree.documents[0]) == {"a": "1", "b": None, "c": "3", "d": None}


def test_an_empty_file_has_no_document() -> None:
    assert one_document("f", parse_yaml("f", "# nothing\n")) == (None, ())


@pytest.mark.parametrize(
    "text", ["[" * 2_000_000, "{" * 2_000_000, "- " * 1_000_000, "a: *b\n" * 300_000, "? " * 500_000]
)
def test_a_hostile_file_is_refused(text: str) -> None:
    with no_hang():
        tree = parse_yaml("f", text)
    assert 1 <= len(tree.findings) <= yamltree.MOST_FINDINGS + 2


@settings(max_examples=soak(300, 20_000), derandomize=True, deadline=None)
@given(st.text(st.sampled_from("ab:-?[]{},&*!|>'\"%@`# \t\n<0.~\N{LATIN SMALL LETTER E WITH ACUTE}"), max_size=60))
def test_no_text_brings_it_down(text: str) -> None:
    tree = parse_yaml("f", text)
    for finding in tree.findings:
        assert finding.place
        assert 1 <= finding.place.line <= text.count("\n") + 2
        assert finding.place.column >= 1


@settings(max_examples=soak(200, 10_000), derandomize=True, deadline=None)
@given(
    st.recursive(
        st.text(st.characters(codec="ascii", min_codepoint=32, max_codepoint=126), max_size=8),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", max_size=3), inner, max_size=3),
        max_leaves=12,
    )
)
def test_what_json_writes_is_read_back(data: object) -> None:
    tree = parse_yaml("f", json.dumps(data))
    assert tree.findings == ()
    assert [plain(document) for document in tree.documents] == [data]
