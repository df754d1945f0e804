"""The blocks `sharing.timeSlicing` and `sharing.mps`, read by the plugin's own unmarshallers, which stop at a mistake.

Here keys count with their case, against the rest of the file. What sharing does to a node is devicemap's business.
Source: k8s-device-plugin v0.20.0 api/config/v1 replicas.go, resources.go.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from hybridgpu.files.gojson import Failure, Mismatch, Refusal, as_bool, as_int, as_string, kind, raw_object
from hybridgpu.files.goprint import json_text
from hybridgpu.files.gotree import GoKey, GoList, GoMap, GoNode, GoScalar
from hybridgpu.model.labels import SHARED_SUFFIX

SHARING_KEYS = ("renameByDefault", "failRequestsGreaterThanOne", "resources")
ENTRY_KEYS = ("name", "rename", "devices", "replicas")
PREFIX = "nvidia.com/"
SHARED = SHARED_SUFFIX
FEWEST = 2
_LONGEST_NAME = 63
_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = re.compile(rf"{_LABEL}(\.{_LABEL})*")
_NOT_A_SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_UUID = re.compile(
    r"(urn:uuid:)?[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|[0-9a-fA-F]{32}"
    r"|.[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}.",
    re.A | re.I,
)
_INDEX = re.compile(r"\d+(:\d+)?", re.A)


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of `resources`: `name` in full, `rename` or None, and whether `devices` says anything but all."""

    name: str
    replicas: int
    rename: str | None
    all_devices: bool
    node: GoNode


@dataclass(frozen=True, slots=True)
class Replicated:
    """A sharing block. `fail_above_one` is None where the file does not say."""

    entries: tuple[Entry, ...]
    rename_by_default: bool
    fail_above_one: bool | None
    node: GoNode

    def shared_as(self, entry: Entry) -> str:
        """The name its replicas are advertised under: the plugin forces it, whatever `rename` says."""
        return entry.name + SHARED if self.rename_by_default else entry.name

    @property
    def renamed(self) -> tuple[Entry, ...]:
        """The entries whose own `rename` is passed over."""
        default = self.rename_by_default
        return tuple(e for e in self.entries if e.rename and not (default and e.rename == e.name + SHARED))

    @property
    def picked(self) -> tuple[Entry, ...]:
        """The entries whose `devices` is passed over."""
        return tuple(entry for entry in self.entries if not entry.all_devices)


def read_replicated(node: GoNode) -> Replicated | Failure:
    """A sharing block, or the first thing the program refuses in it."""
    block = raw_object(node)
    if isinstance(block, Mismatch):
        return block
    rename = _optional(block, "renameByDefault")
    if isinstance(rename, Mismatch):
        return rename
    fail = _optional(block, "failRequestsGreaterThanOne")
    if isinstance(fail, Mismatch):
        return fail
    entries = _entries(block)
    if not isinstance(entries, tuple):
        return entries
    return Replicated(entries, bool(rename), fail, block)


def _optional(block: GoMap, key: str) -> bool | Mismatch | None:
    value = block.get(key)
    if value is None or (isinstance(value, GoScalar) and value.value is None):
        return None
    return as_bool(value)


def _entries(block: GoMap) -> tuple[Entry, ...] | Failure:
    listed = block.get("resources")
    none = Refusal("no resources specified", block.key("resources") or block, "no-resources")
    if listed is None or (isinstance(listed, GoScalar) and listed.value is None):
        return none
    if not isinstance(listed, GoList):
        return Mismatch(kind(listed), "[]v1.ReplicatedResource", listed)
    entries = []
    for item in listed.items:
        entry = read_entry(item)
        if not isinstance(entry, Entry):
            return entry
        entries.append(entry)
    return tuple(entries) or none


def read_entry(node: GoNode) -> Entry | Failure:
    """One entry of `resources`, in the program's order: name, devices, replicas, rename."""
    entry = raw_object(node)
    if isinstance(entry, Mismatch):
        return entry
    if (name_node := entry.get("name")) is None:
        return Refusal("no resource name specified", entry, "name")
    name = read_name(name_node)
    if not isinstance(name, str):
        return name
    devices_node = entry.get("devices")
    every = True if devices_node is None else _devices(devices_node)
    if not isinstance(every, bool):
        return every
    if (replicas_node := entry.get("replicas")) is None:
        return Refusal("no replicas specified", entry, "replicas")
    replicas = as_int(replicas_node)
    if isinstance(replicas, Mismatch):
        return replicas
    if replicas < FEWEST:
        return Refusal("number of replicas must be >= 2", replicas_node, "replicas")
    rename_node = entry.get("rename")
    rename = None if rename_node is None else read_name(rename_node)
    if rename is not None and not isinstance(rename, str):
        return rename
    return Entry(name, replicas, rename, every, entry)


def read_name(node: GoNode) -> str | Failure:
    """A resource name, `nvidia.com/` put before it where it is missing."""
    name = as_string(node)
    if isinstance(name, Mismatch):
        return name
    full = name if name.startswith(PREFIX) else PREFIX + name
    if len(full.encode()) > _LONGEST_NAME:
        words = f"fully-qualified resource name must be {_LONGEST_NAME} characters or less: {full}"
        return Refusal(words, node, "name")
    if not _SUBDOMAIN.fullmatch(full.removeprefix(PREFIX)):
        return Refusal(f"incorrect format for resource name '{full}': [{_NOT_A_SUBDOMAIN}]", node, "name")
    return full


def _devices(node: GoNode) -> bool | Failure:
    """Whether `devices` means all; a count or a list is checked for its form alone."""
    word = as_string(node)
    if isinstance(word, str):
        words = f"devices set as '{word}' but the only valid string input is 'all'"
        return True if word == "all" else Refusal(words, node, "devices")
    count = as_int(node)
    if isinstance(count, int):
        words = f"devices set as '{count}' but a count of devices must be > 0"
        return False if count > 0 else Refusal(words, node, "devices")
    if not isinstance(node, GoList):
        return Refusal(f"unrecognized type for devices spec: {json_text(node)}", node, "devices")
    for item in node.items:
        if isinstance(as_int(item, "uint64"), Mismatch) and not _device(as_string(item)):
            text = as_string(item)
            shown = text if isinstance(text, str) else ""
            return Refusal(f"unsupported type for device in devices list: {shown}, string", item, "devices")
    return False


def _device(word: str | Mismatch) -> bool:
    """Whether the text is an index, `GPU:MIG` indices, or a UUID of a card or MIG device."""
    if not isinstance(word, str):
        return False
    if _INDEX.fullmatch(word):
        return all(int(part) < 2**64 for part in word.split(":") if len(part) < 100)
    if word.startswith("GPU-"):
        return bool(_UUID.fullmatch(word[4:]))
    if not word.startswith("MIG-"):
        return False
    parts = word[4:].split("/", 2)
    if len(parts) == 1:
        return bool(_UUID.fullmatch(parts[0]))
    numbers = all(re.fullmatch(r"\d{1,19}", part, re.A) for part in parts[1:])
    return len(parts) == 3 and parts[0].startswith("GPU-") and bool(_UUID.fullmatch(parts[0][4:])) and numbers


def written(node: GoNode, known: tuple[str, ...]) -> tuple[GoKey, ...]:
    """The keys of a mapping that its unmarshaller never asks for."""
    return tuple(key for key, _ in node.entries if key.name not in known) if isinstance(node, GoMap) else ()
