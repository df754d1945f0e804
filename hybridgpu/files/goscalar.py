"""What go-yaml v2 makes of one YAML scalar: YAML 1.1's bools, nulls and numbers, in Go's types.

Go programs that read through sigs.k8s.io/yaml see `010` as 8, `yes` as true and `08` as 8.0.
Source: go.yaml.in/yaml/v2 resolve.go, decode.go scalar(); strconv.ParseInt with base 0.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from datetime import date

GoValue = None | bool | int | float | str
"""A scalar as Go holds it: nil, bool, int or uint64, float64, string."""

_TAG = "tag:yaml.org,2002:"
_WORDS: dict[str, bool | float | None] = {
    **dict.fromkeys(["y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"], True),
    **dict.fromkeys(["n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"], False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys([".nan", ".NaN", ".NAN"], math.nan),
    **dict.fromkeys([".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"], math.inf),
    **dict.fromkeys(["-.inf", "-.Inf", "-.INF"], -math.inf),
}
_INTEGER = re.compile(
    r"(?P<sign>[-+]?)(?:0[xX](?P<x>[0-9a-fA-F]+)|0[bB](?P<b>[01]+)|0[oO]?(?P<o>[0-7]+)|(?P<d>\d+))", re.A
)
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", re.A)
_TIME = re.compile(
    r"(\d{4})-(\d{1,2})-(\d{1,2})"
    r"(?:[Tt](\d{1,2}):(\d{1,2}):(\d{1,2})([.,]\d+)?(?:Z|[-+](\d\d):(\d\d))| (\d{1,2}):(\d{1,2}):(\d{1,2})([.,]\d+)?)?",
    re.A,
)
_BASES = {"x": 16, "b": 2, "o": 8, "d": 10}
_MOST_DIGITS = 64


class BadScalar(ValueError):
    """The scalar contradicts its tag. Raised to goyaml alone, which turns it into words."""


def resolve(text: str, tag: str | None, plain: bool) -> GoValue:
    """The value of a scalar with this tag (None: none, in full), `plain` if it was not in quotes.

    Raises BadScalar with go-yaml's words where an explicit tag does not fit the text.
    """
    if tag is None and not plain:
        return text
    kind = (tag or "").removeprefix(_TAG) if tag is None or tag.startswith(_TAG) else None
    if kind == "binary":
        return _binary(text)
    if kind not in ("", "str", "bool", "int", "float", "null", "timestamp"):
        return text
    if kind == "str":
        return text
    value, found = _found(text, kind)
    if kind in ("", found):
        return value
    if kind == "float" and found == "int" and isinstance(value, int) and value < 2**63:
        return float(value)
    raise BadScalar(f"cannot decode !!{found} `{text}` as a !!{kind}")


def integer(text: str) -> int | None:
    """The number that strconv.ParseInt or ParseUint makes of the text in base 0, or None."""
    match = _INTEGER.fullmatch(text)
    if match is None:
        return None
    base = next(name for name in _BASES if match[name])
    digits = match[base].lstrip("0") or "0"
    if len(digits) > _MOST_DIGITS:
        return None
    value = int(digits, _BASES[base])
    if match["sign"] == "-":
        value = -value
    if -(2**63) <= value < 2**63 or (not match["sign"] and value < 2**64):
        return value
    return None


def _found(text: str, kind: str) -> tuple[GoValue, str]:
    """The value and the short name of the type that go-yaml sees."""
    if text in _WORDS:
        value = _WORDS[text]
        return value, "null" if value is None else "bool" if isinstance(value, bool) else "float"
    if text[0] == ".":
        number = _float(text)
        return (text, "str") if number is None else (number, "float")
    if text[0] in "+-0123456789":
        return _number(text, kind)
    return text, "str"


def _number(text: str, kind: str) -> tuple[GoValue, str]:
    if kind in ("", "timestamp") and _is_time(text):
        return text, "timestamp"
    plain = text.replace("_", "")
    whole = integer(plain)
    if whole is not None:
        return whole, "int"
    number = _float(plain)
    return (text, "str") if number is None else (number, "float")


def _float(text: str) -> float | None:
    if not _FLOAT.fullmatch(text):
        return None
    value = float(text)
    return None if math.isinf(value) else value


def _is_time(text: str) -> bool:
    match = _TIME.fullmatch(text)
    if match is None:
        return False
    try:
        date(*(int(part) for part in match.groups()[:3]))
    except ValueError:
        return False
    hour, minute, second = (
        int(part or 0) for part in (match[4] or match[10], match[5] or match[11], match[6] or match[12])
    )
    return hour < 24 and minute < 60 and second < 60


def _binary(text: str) -> str:
    try:
        raw = base64.b64decode(text.replace("\n", "").replace("\r", ""), validate=True)
    except (binascii.Error, ValueError):
        raise BadScalar("!!binary value contains invalid base64 data") from None
    return raw.decode("utf-8", "replace")
