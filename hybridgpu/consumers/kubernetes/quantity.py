"""A number as Kubernetes writes it (`2`, `500m`, `1Ki`, `1e1`), and whether GPUs can be counted by it.

Run against the API server 1.36: an extended resource takes any quantity that is a whole number of 0 or more, `1000m`
and `2k` too; null is 0. Source: apimachinery pkg/api/resource quantity.go; validation.go ValidateResourceRequirements.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

from hybridgpu.files.goprint import json_text
from hybridgpu.files.gotree import GoNode, GoScalar

_FORM = re.compile(r"(?P<number>[+-]?(?:\d+\.?\d*|\.\d+))(?P<suffix>[numkMGTPE]|[KMGTPE]i|[eE][+-]?\d+)?", re.A)
_DECIMAL = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_MOST_DIGITS, _EXPONENT_DIGITS = 64, 2
_MOST = 2**63 - 1
_NANO, _MILLI = 10**9, 1000

NOT_A_QUANTITY = "is no quantity: a number such as 1 is wanted"
NOT_WHOLE = "must be an integer"
NEGATIVE = "must be greater than or equal to 0"


@dataclass(frozen=True, slots=True)
class Quantity:
    """What was written, the number (None: there is none), and why the API server refuses it ("": it does not)."""

    text: str
    count: int | None
    wrong: str = ""


def read_quantity(node: GoNode) -> Quantity:
    """The value as a number of GPUs."""
    if not isinstance(node, GoScalar) or isinstance(node.value, bool):
        return Quantity(json_text(node), None, NOT_A_QUANTITY)
    if node.value is None:
        return Quantity(node.text, 0)
    text = node.value if isinstance(node.value, str) else json_text(node)
    amount = parse_quantity(text)
    if amount is None:
        return Quantity(node.text, None, NOT_A_QUANTITY)
    if amount < 0:
        return Quantity(node.text, None, NEGATIVE)
    milli = -(-_nano(amount) * _MILLI // _NANO)
    if milli % _MILLI:
        return Quantity(node.text, None, NOT_WHOLE)
    return Quantity(node.text, min(milli // _MILLI, _MOST))


def parse_quantity(text: str) -> Fraction | None:
    """The exact value of a quantity, or None where the text is none; blanks around it do not count."""
    match = _FORM.fullmatch(text.strip())
    if match is None or len(match["number"]) > _MOST_DIGITS:
        return None
    number, suffix = Fraction(match["number"]), match["suffix"] or ""
    if suffix in _BINARY:
        return number * Fraction(1 << _BINARY[suffix])
    exponent = _DECIMAL.get(suffix)
    if exponent is None:
        digits = suffix.lstrip("eE+-0")
        if len(digits) > _EXPONENT_DIGITS:
            return None
        exponent = int(digits or "0") * (-1 if "-" in suffix else 1)
    return number * (Fraction(10**exponent) if exponent >= 0 else Fraction(1, 10**-exponent))


def _nano(amount: Fraction) -> int:
    """In billionths, rounded up as Kubernetes does when it reads one."""
    scaled = amount * _NANO
    return -(-scaled.numerator // scaled.denominator)
