"""How Go prints values that end up in a program's refusals: JSON text, `%#v`, floats. Text only; nothing is judged."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Iterator

from hybridgpu.files.gotree import GoList, GoMap, GoNode, GoScalar

_DEEPEST = 60
_LONGEST = 100_000
_MORE = "..."
_MOST_FLOAT32 = 3.4028235677973366e38
_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def json_text(node: GoNode) -> str:
    """The compact JSON that encoding/json writes: keys sorted, <, > and & escaped. Cut short where deep or long."""
    return _cut(_json(node, 0))


def _json(node: GoNode, depth: int) -> Iterator[str]:
    """The text in pieces, made one by one: a tree that shares nodes may be far longer than its file."""
    if depth > _DEEPEST:
        yield _MORE
    elif isinstance(node, GoMap):
        for at, (key, value) in enumerate(node.entries):
            yield f"{',' if at else '{'}{_string(key.name)}:"
            yield from _json(value, depth + 1)
        yield "}" if node.entries else "{}"
    elif isinstance(node, GoList):
        for at, item in enumerate(node.items):
            yield "," if at else "["
            yield from _json(item, depth + 1)
        yield "]" if node.items else "[]"
    else:
        yield _json_scalar(node)


def _json_scalar(node: GoScalar) -> str:
    match node.value:
        case None:
            return "null"
        case bool():
            return "true" if node.value else "false"
        case str():
            return _string(node.value)
        case float():
            return json_float(node.value)
        case _:
            return str(node.value)


def json_float(value: float) -> str:
    """A float64 as json.Marshal writes it: shortest digits, an exponent below 1e-6 and from 1e21 on."""
    if value == 0:
        return "-0" if math.copysign(1, value) < 0 else "0"
    if 1e-6 <= abs(value) < 1e21:
        return _plain(value)
    return _exponent(value, pad=False)


def float_key(value: float) -> str:
    """A float64 as a map key becomes text: FormatFloat(v, 'g', -1, 32), with YAML's words for infinity and NaN."""
    text = float32(value)
    return {"NaN": ".nan", "+Inf": ".inf", "-Inf": "-.inf"}.get(text, text)


def float32(value: float) -> str:
    """FormatFloat(v, 'g', -1, 32): the shortest digits that give the same float32."""
    if math.isnan(value) or math.isinf(value) or abs(value) > _MOST_FLOAT32:
        return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
    single = struct.unpack("f", struct.pack("f", value))[0]
    if single == 0:
        return "-0" if math.copysign(1, value) < 0 else "0"
    for precision in range(9):
        shortest = float(f"{single:.{precision}e}")
        if abs(shortest) <= _MOST_FLOAT32 and struct.unpack("f", struct.pack("f", shortest))[0] == single:
            return _general(shortest)
    return _general(single)


def sharp(node: GoNode) -> str:
    """The node as fmt prints it with `%#v`. Cut short where deep or long."""
    return _cut(_sharp(node, 0))


def _sharp(node: GoNode, depth: int) -> Iterator[str]:
    """The text in pieces, made one by one."""
    if depth > _DEEPEST:
        yield _MORE
    elif isinstance(node, GoMap):
        yield "map[interface {}]interface {}{"
        for at, (key, value) in enumerate(node.entries):
            yield f"{', ' if at else ''}{_quoted(key.name)}:"
            yield from _inner(value, depth)
        yield "}"
    elif isinstance(node, GoList):
        yield "[]interface {}{"
        for at, item in enumerate(node.items):
            yield ", " if at else ""
            yield from _inner(item, depth)
        yield "}"
    else:
        yield _sharp_scalar(node)


def _sharp_scalar(node: GoScalar) -> str:
    match node.value:
        case None:
            return "<nil>"
        case bool():
            return "true" if node.value else "false"
        case str():
            return _quoted(node.value)
        case float():
            return _general(node.value)
        case _:
            return hex(node.value) if node.value >= 2**63 else str(node.value)


def _inner(node: GoNode, depth: int) -> Iterator[str]:
    nil = isinstance(node, GoScalar) and node.value is None
    return iter(("interface {}(nil)",)) if nil else _sharp(node, depth + 1)


def _cut(pieces: Iterator[str]) -> str:
    """The pieces together, no more of them made than a text may be long; one piece alone is never cut."""
    text: list[str] = []
    length = 0
    for piece in pieces:
        if text and length + len(piece) > _LONGEST:
            return "".join((*text, _MORE))
        text.append(piece)
        length += len(piece)
    return "".join(text)


def _string(text: str) -> str:
    encoded = json.dumps(text, ensure_ascii=False)
    return "".join(_ESCAPES.get(c, c) for c in encoded)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _digits(value: float) -> tuple[str, str, int]:
    """Sign, shortest digits and decimal exponent: 12.5 is ("", "125", 1)."""
    mantissa, _, exponent = f"{abs(value)!r}".partition("e")
    whole, _, fraction = mantissa.partition(".")
    fraction = "" if fraction == "0" else fraction
    digits = (whole + fraction).lstrip("0")
    leading = len(whole + fraction) - len(digits)
    power = len(whole) - 1 - leading + int(exponent or 0)
    return "-" if value < 0 else "", digits.rstrip("0") or "0", power


def _plain(value: float) -> str:
    sign, digits, power = _digits(value)
    if power < 0:
        return f"{sign}0.{'0' * (-power - 1)}{digits}"
    if len(digits) <= power + 1:
        return sign + digits + "0" * (power + 1 - len(digits))
    return f"{sign}{digits[: power + 1]}.{digits[power + 1 :]}"


def _exponent(value: float, pad: bool) -> str:
    sign, digits, power = _digits(value)
    fraction = f".{digits[1:]}" if len(digits) > 1 else ""
    size = f"{abs(power):02d}" if pad else str(abs(power))
    return f"{sign}{digits[0]}{fraction}e{'-' if power < 0 else '+'}{size}"


def _general(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    if value == 0:
        return "0"
    return _exponent(value, pad=True) if not -5 < _digits(value)[2] < 6 else _plain(value)
