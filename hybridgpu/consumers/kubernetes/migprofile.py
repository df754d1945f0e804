"""A MIG profile's name as go-nvlib takes it apart: form alone, no card is asked. Words are go-nvlib's.

Any number and any word passes: `0g.5gb`, `5g.20gb` and `1g.5gb+foo` are well formed, `1g.10gb.me` is not.
Source: go-nvlib v0.12.0 pkg/nvlib/device/mig_profile.go parseMigProfile, String, Matches.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_NUMBER = re.compile(r"[-+]?\d+", re.A)
_WORD = re.compile(r"[a-zA-Z0-9.]*", re.A)


@dataclass(frozen=True, slots=True)
class ProfileName:
    """`c` compute slices of the compute instance, `g` of the GPU instance, memory in GB, and attributes sorted.

    `sign` is `+`, `-`, or empty where there are no attributes.
    """

    c: int
    g: int
    gb: int
    sign: str = ""
    attributes: tuple[str, ...] = ()

    @property
    def canonical(self) -> str:
        """The name as the driver's instances are called: the form that mig-parted compares."""
        compute = "" if self.c == self.g else f"{self.c}c."
        return f"{compute}{self.g}g.{self.gb}gb{self.sign}{','.join(self.attributes)}"


def parse_profile(text: str) -> ProfileName | str:
    """The parts of a profile's name, or go-nvlib's words for what is wrong with its form."""
    if not text:
        return "profile is the empty string"
    if "+" in text and "-" in text:
        return f"profile '{text}' contains both '+/-' attributes"
    sign = "+" if "+" in text else "-" if "-" in text else ""
    fields, _, rest = text.partition(sign) if sign else (text, "", "")
    numbers = _fields(fields)
    if isinstance(numbers, str):
        return f"cannot parse fields of '{text}': {numbers}"
    if not sign:
        return ProfileName(*numbers)
    attributes = rest.split(",")
    wrong = _wrong_attribute(attributes)
    if wrong:
        return f"cannot parse attributes of '{text}': {wrong}"
    return ProfileName(*numbers, sign, tuple(sorted(attributes)))


def _fields(text: str) -> tuple[int, int, int] | str:
    parts = text.split(".", 2)
    if len(parts) < 2:
        return "parsed wrong number of fields, expected 2 or 3"
    numbers = []
    for part, unit in zip(parts, ("c", "g", "gb")[-len(parts) :], strict=True):
        number = _field(part, unit)
        if isinstance(number, str):
            return number
        numbers.append(number)
    g, gb = numbers[-2:]
    return numbers[0], g, gb


def _field(text: str, unit: str) -> int | str:
    if text.strip() != text:
        return f"leading or trailing spaces on '%d{unit}'"
    if not text.endswith(unit):
        return f"missing '{unit}' from '%d{unit}'"
    number = text.removesuffix(unit)
    digits = number.lstrip("+-0")
    if not _NUMBER.fullmatch(number) or len(digits) > 18:
        return f"malformed number in '%d{unit}'"
    return -int(digits or "0") if number.startswith("-") else int(digits or "0")


def _wrong_attribute(attributes: list[str]) -> str | None:
    seen: set[str] = set()
    for word in attributes:
        if word in seen:
            return "non unique attribute in list"
        if not word:
            return "empty attribute in list"
        if word.strip() != word:
            return "leading or trailing spaces in attribute"
        if word[0] in "0123456789":
            return "attribute begins with a number"
        if word[0] == "." or word[-1] == ".":
            return "attribute begins/ends with a dot"
        if not _WORD.fullmatch(word):
            return "non alpha-numeric character or digit in attribute"
        seen.add(word)
    return None
