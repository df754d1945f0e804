"""How to mend a mistake in the form of a mig-parted file: what to write in its place, where that can be told.

mig-parted's own words say which Go type did not fit; here it is said in the terms of whoever wrote the file.
"""

from __future__ import annotations

import re

from hybridgpu.consumers.kubernetes.migprofile import ProfileName, parse_profile
from hybridgpu.consumers.kubernetes.migspec import ENTRY_KEYS, FILE_KEYS, SLICE, VERSION, Wrong
from hybridgpu.files.gojson import Mismatch, Refusal
from hybridgpu.files.gotree import GoKey, GoMap, GoNode, GoScalar
from hybridgpu.files.quoting import listed, shown
from hybridgpu.model.spelling import nearest

_RANGE = re.compile(r"\s*([0-9]{1,3})\s*(?:-|\.\.+|:)\s*([0-9]{1,3})\s*")
_NUMBERS = re.compile(r"\s*[0-9]{1,3}(\s*[, ]\s*[0-9]{1,3})*\s*")
_SHOWN = 4


def mend(wrong: Wrong) -> str | None:
    """What to write, or None where the words of the program are as good."""
    failure = wrong.failure
    if isinstance(failure, Mismatch):
        return _type(failure, wrong.config)
    return _refused(failure, wrong.config)


def _refused(failure: Refusal, config: str | None) -> str | None:
    node, about = failure.node, failure.about
    match about:
        case "version":
            return f"write version: {VERSION} at the top of the file"
        case "key":
            return _key(node, ENTRY_KEYS if config else FILE_KEYS)
        case "profile":
            return _profile(node)
        case "configs" if config:
            return f"give {config} an entry: `- devices: all` and mig-enabled below it"
        case "device-filter":
            return _filter(node)
        case "devices":
            return _missing(node, about, "all") or _devices(node)
        case "mig-enabled":
            return _missing(node, about, "true")
        case "mig-devices":
            return "add mig-devices: {PROFILE: COUNT}, or {} for none"
        case "disabled":
            return "remove mig-devices, or write mig-enabled: true"
    return None


def _key(node: GoNode | GoKey, known: tuple[str, ...]) -> str:
    near = nearest(getattr(node, "name", "").replace("_", "-"), known)
    return f"did you mean {near}?" if near else f"the keys are {listed(known)}"


def _missing(node: GoNode | GoKey, key: str, value: str) -> str | None:
    """For a key that an entry lacks; of a key that is misspelt its own finding tells."""
    if not isinstance(node, GoMap):
        return None
    near = next((k.name for k, _ in node.entries if k.name not in ENTRY_KEYS and nearest(k.name, (key,))), None)
    return f"write {key} for {near}" if near else f"add {key}: {value} to the entry"


def _profile(node: GoNode | GoKey) -> str | None:
    base, dot, attribute = getattr(node, "name", "").rpartition("gb.")
    if dot and isinstance(parse_profile(f"{base}gb+{attribute}"), ProfileName):
        return f"write {base}gb+{attribute}; the dot is only in names of Kubernetes resources"
    return None


def _filter(node: GoNode | GoKey) -> str:
    if isinstance(node, GoScalar) and not isinstance(node.value, str):
        return f'write it in quotes: "{node.text}"; YAML reads it as a number'
    return 'write a text in quotes, or a list of them: "0x20B010DE"'


def _devices(node: GoNode | GoKey) -> str:
    """For `devices`, or an item of it, that is neither `all` nor a list of numbers."""
    text = node.text if isinstance(node, GoScalar) else ""
    if found := _RANGE.fullmatch(text):
        first, last = sorted((int(found[1]), int(found[2])))
        numbers = [str(number) for number in range(first, last + 1)]
        said = numbers if len(numbers) <= _SHOWN else [*numbers[:2], "...", numbers[-1]]
        return f"mig-parted knows no ranges: write devices: [{', '.join(said)}]"
    if _NUMBERS.fullmatch(text):
        return f"write numbers in a list, without quotes: devices: [{', '.join(re.findall('[0-9]+', text))}]"
    if text.strip().lower() in ("all", "*", "any"):
        return "write devices: all, without brackets"
    return "write devices: all, or a list of indices: devices: [0, 1]"


def _type(failure: Mismatch, config: str | None) -> str | None:
    node = failure.node
    if failure.type == SLICE:
        return _as_list(node)
    if failure.type.startswith("map["):
        if failure.type.endswith(SLICE):
            return "write NAME: below mig-configs, and the list of its entries below that"
        return 'write an entry as a mapping: "- devices: all", and mig-enabled below devices' if config else None
    if failure.type == "string" and config is None:
        return f"write version: {VERSION}"
    if failure.type == "bool":
        text = node.text.strip().lower() if isinstance(node, GoScalar) else ""
        on = text in ("true", "yes", "on", "y", "1", "enabled")
        word = "true" if on else "false" if text in ("false", "no", "off", "n", "0", "disabled") else ""
        return f"write mig-enabled: {word}, without quotes" if word else "write true or false, without quotes"
    if failure.type == "int":
        text = node.text.strip() if isinstance(node, GoScalar) else ""
        return f"write {text} without quotes" if text.isdigit() else "write a whole number"
    if failure.type.endswith("MigConfig"):
        return "write a mapping: mig-devices: {PROFILE: COUNT}, without dashes"
    return None


def _as_list(node: GoNode) -> str:
    if isinstance(node, GoMap) and node.entries:
        first = min((key for key, _ in node.entries), key=lambda key: (key.line, key.column))
        return f'a config is a list of entries: put "- " before {first.name}, and indent what belongs to it'
    what = f" for {shown(node.text)}" if isinstance(node, GoScalar) else ""
    return f'write a list of entries{what}: "- devices: all", and mig-enabled below it'
