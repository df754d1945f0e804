"""YAML as Go programs read it: scalars, what is passed over, refusals in Go's words; and that no bytes break it."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybridgpu.files.goprint import float32, float_key, json_float, json_text, sharp
from hybridgpu.files.gotree import GoMap, GoScalar, GoYaml
from hybridgpu.files.goyaml import load
from tests.conftest import soak

VALUES = {
    "010": "8",
    "08": "8",
    "0o17": "15",
    "0x1F": "31",
    "-0b11": "-3",
    "1_000": "1000",
    "+5": "5",
    "1e1": "10",
    "2.0": "2",
    "2.5": "2.5",
    "1e30": "1e+30",
    "1e-7": "1e-7",
    "0.000001": "0.000001",
    "-0.0": "-0",
    ".5": "0.5",
    "9223372036854775807": "9223372036854775807",
    "18446744073709551615": "18446744073709551615",
    "18446744073709551616": "18446744073709552000",
    "yes": "true",
    "Off": "false",
    "y": "true",
    "~": "null",
    "Null": "null",
    "nULL": '"nULL"',
    "tRUE": '"tRUE"',
    "2024-01-01": '"2024-01-01"',
    "1:30": '"1:30"',
    "0x": '"0x"',
    "1__0": "10",
    ".": '"."',
    "1e999": '"1e999"',
    "'4'": '"4"',
    "!!int '4'": "4",
    "!!str 4": '"4"',
    "!!float 4": "4",
    "!own 4": '"4"',
    "!!binary aGk=": '"hi"',
    '"<&>"': '"\\u003c\\u0026\\u003e"',
    "[a, {b: }]": '["a",{"b":null}]',
    "<<": '"\\u003c\\u003c"',
}

REFUSED = {
    "a: &x [*x]": "yaml: anchor 'x' value contains itself",
    "a: *x": "yaml: unknown anchor 'x' referenced",
    "<<: 1": "yaml: map merge requires map or sequence of maps as the value",
    "<<: [{a: 1}, 2]": "yaml: map merge requires map or sequence of maps as the value",
    "{{ x }}: 1": 'yaml: invalid map key: map[interface {}]interface {}{"x":interface {}(nil)}',
    "? [1, 2.5, yes, a]\n: 1": 'yaml: invalid map key: []interface {}{1, 2.5, true, "a"}',
    "~: [1]": "unsupported map key of type: %!s(<nil>), key: <nil>, value: []interface {}{1}",
    "a: !!int b": "yaml: cannot decode !!str `b` as a !!int",
    "a: !!bool 1": "yaml: cannot decode !!int `1` as a !!bool",
    "a: !!timestamp b": "yaml: cannot decode !!str `b` as a !!timestamp",
    "a: !!binary b": "yaml: !!binary value contains invalid base64 data",
    "a: .nan": "json: unsupported value: NaN",
    "a: -.inf": "json: unsupported value: -Inf",
    "a:\n\t- b": "yaml: line 2: found character that cannot start any token",
    "a: [": "yaml: line 1: did not find expected node content",
    "%YAML 1.2\n---\na: 1": "yaml: found incompatible YAML document",
    "a: \x01": "yaml: control characters are not allowed",
}


def text(document: str | bytes) -> str:
    """The JSON that comes of it, or the refusal without its common beginning."""
    read = load(document)
    if read.error is None:
        assert read.root is not None
        return json_text(read.root)
    return read.error.words.removeprefix("error converting YAML to JSON: ")


@pytest.mark.parametrize("scalar", VALUES)
def test_a_value_is_what_go_makes_of_it(scalar: str) -> None:
    assert text(f"a: {scalar}") == f'{{"a":{VALUES[scalar]}}}'


@pytest.mark.parametrize("document", REFUSED)
def test_a_refusal_has_go_s_words(document: str) -> None:
    assert text(document) == REFUSED[document]


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ("", "null"),
        ("# nothing", "null"),
        ("b: 1\na: 2\nB: 3", '{"B":3,"a":2,"b":1}'),
        ("1: a\n2.5: b\ntrue: c\n1e40: d", '{".inf":"d","1":"a","2.5":"b","true":"c"}'),
        ("a: &x {b: 1}\nc: *x", '{"a":{"b":1},"c":{"b":1}}'),
        ("a: 1\n<<: {a: 2, b: 3}\nb: 4", '{"a":2,"b":4}'),
        ("<<: [{a: 1}, {a: 2, b: 3}]", '{"a":1,"b":3}'),
        ("a: 1\n---\nb: 2", '{"a":1}'),
        ("a: 1\n...\n]]]", '{"a":1}'),
        (b"\xff\xfea\x00:\x00 \x001\x00", '{"a":1}'),
    ],
)
def test_a_document(document: str | bytes, expected: str) -> None:
    assert text(document) == expected


def places(read: GoYaml) -> tuple[list[tuple[str, int, int, bool]], tuple[int, int] | None]:
    return [(t.name, t.first.line, t.again.line, t.differs) for t in read.twice], read.ignored


@pytest.mark.parametrize(
    ("document", "twice", "ignored"),
    [
        ("a: 1\nb:\n  c: 1\n  c: 1\na: 2", [("c", 3, 4, False), ("a", 1, 5, True)], None),
        ("a: 1\na: 1.0", [("a", 1, 2, True)], None),
        ("a: []\na: []", [("a", 1, 2, True)], None),
        ("a: 1\n<<: {a: 2}", [], None),
        ("a: 1\n---\nb: 2", [], (3, 1)),
        ("a: 1\n---\n[", [], (3, 1)),
        ("a: 1\n---\n", [], None),
        ("a: 1\n...\n", [], None),
    ],
)
def test_what_is_passed_over(
    document: str, twice: list[tuple[str, int, int, bool]], ignored: tuple[int, int] | None
) -> None:
    assert places(load(document)) == (twice, ignored)


def test_values_know_their_places() -> None:
    root = load("a:\n- b: 0x4\n").root
    assert isinstance(root, GoMap)
    key, value = root.entries[0]
    assert (key.name, key.line, key.column) == ("a", 1, 1)
    found = value.items[0].get("b") if not isinstance(value, GoScalar | GoMap) else None  # type: ignore[union-attr]
    assert isinstance(found, GoScalar) and (found.value, found.text, found.line, found.column) == (4, "0x4", 2, 6)


def test_aliases_are_followed_but_not_for_ever() -> None:
    bomb = "a0: &a0 [x]\n" + "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 12))
    assert text(bomb) == "yaml: document contains excessive aliasing"
    assert text("a: &x [" + "1, " * 2000 + "]\nb: *x\n").startswith('{"a":[1,')


@pytest.mark.parametrize(
    "document", ["[" * 5000, "{a: " * 900 + "}" * 900, "? " * 5000, "- " * 900, "a: " + "9" * 6000]
)
def test_no_depth_and_no_length_breaks_it(document: str) -> None:
    read = load(document)
    assert (read.root is None) == (read.error is not None)


@given(st.binary(max_size=200) | st.text(max_size=200) | st.text("{}[]:,-?&*!|>'\"%@#\n\t ab01.~<", max_size=60))
@settings(max_examples=soak(300, 100_000))
def test_any_bytes_are_read_or_refused(document: str | bytes) -> None:
    read = load(document)
    assert (read.root is None) == (read.error is not None)
    if read.root is not None:
        json.loads(json_text(read.root))
        sharp(read.root)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.text(st.characters(codec="ascii"), max_size=9),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("abc", max_size=3), inner, max_size=4),
    max_leaves=12,
)


@given(JSON)
@settings(max_examples=soak(200, 20_000))
def test_json_is_read_as_itself(value: object) -> None:
    assert json.loads(text(json.dumps(value))) == value


@given(st.floats(allow_nan=False, allow_infinity=False))
@settings(max_examples=soak(300, 50_000))
def test_floats_are_printed_so_that_they_are_read_back(value: float) -> None:
    assert float(json_float(value)) == value


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1.1, "1.1"),
        (1e20, "1e+20"),
        (1e6, "1e+06"),
        (123456.0, "123456"),
        (1e-5, "1e-05"),
        (0.1 + 0.2, "0.3"),
        (1e39, "+Inf"),
        (-0.0, "-0"),
    ],
)
def test_floats_that_become_text_are_shortened_to_32_bits(value: float, expected: str) -> None:
    assert float32(value) == expected


def test_yaml_s_words_for_no_number() -> None:
    assert [float_key(v) for v in (math.nan, math.inf, -math.inf)] == [".nan", ".inf", "-.inf"]
