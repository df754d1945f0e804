"""A mig-parted config file: its form, as `nvidia-mig-parted assert --valid-config` judges it, in its words.

Its own unmarshallers match keys with their case and refuse what they do not know. They walk Go maps, so of several
mistakes the program names any one; here it is the first in the order of the keys, and all are given.
Source: mig-parted v0.15.0 api/spec/v1/spec.go, pkg/types/mig_config.go, cmd/nvidia-mig-parted/assert/assert.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from hybridgpu.consumers.kubernetes.migprofile import parse_profile
from hybridgpu.files.gojson import JSON, Failure, Mismatch, Refusal, as_bool, as_int, as_string, kind, raw_object
from hybridgpu.files.gotree import GoError, GoKey, GoList, GoMap, GoNode, GoScalar, GoYaml
from hybridgpu.files.goyaml import load

VERSION = "v1"
ENTRY_KEYS = ("device-filter", "devices", "mig-enabled", "mig-devices")
FILE_KEYS = ("version", "mig-configs")
SLICE = "v1.MigConfigSpecSlice"
"""What Go calls a config: the list of its entries."""


@dataclass(frozen=True, slots=True)
class MigEntry:
    """One entry of a config: which cards it is for and what they are to be.

    `devices` None is `all`; `filters` empty lets every card through. `counts` by profile as written, its keys' places
    in `keys`.
    """

    devices: tuple[int, ...] | None
    enabled: bool
    counts: dict[str, int]
    filters: tuple[str, ...]
    node: GoNode
    keys: tuple[tuple[str, GoKey], ...] = ()

    def place(self, key: str) -> GoKey | GoNode:
        """Where this key of the entry stands, or the entry itself."""
        return next((k for name, k in self.keys if name == key), self.node)


@dataclass(frozen=True, slots=True)
class MigFile:
    """A file that mig-parted takes: its configs by name. Empty for an empty file, which it takes too."""

    configs: dict[str, tuple[MigEntry, ...]]
    names: dict[str, GoKey]


_NONE = MigFile({}, {})


@dataclass(frozen=True, slots=True)
class Wrong:
    """A mistake in the form: in which config (None: in the file), and what."""

    config: str | None
    failure: Failure


@dataclass(frozen=True, slots=True)
class MigReading:
    """The file, or the words with which mig-parted refuses it, whichever config is asked for; `wrong` has them all.

    `sound` are the configs without a mistake of form: those of a file that is refused can still be judged.
    """

    file: MigFile | None
    words: str | None
    wrong: tuple[Wrong, ...]
    error: GoError | None
    yaml: GoYaml
    sound: MigFile


def read_mig(text: str | bytes) -> MigReading:
    """The file as mig-parted reads it. Never raises, whatever the text."""
    yaml = load(text)
    if yaml.root is None:
        error = yaml.error or GoError("", 1, 1)
        return MigReading(None, f"Error parsing config file: unmarshal error: {error.words}", (), error, yaml, _NONE)
    if isinstance(yaml.root, GoScalar) and yaml.root.value is None:
        return MigReading(_NONE, None, (), None, yaml, _NONE)
    sound, wrong = _file(yaml.root)
    if not wrong:
        return MigReading(sound, None, (), None, yaml, sound)
    words = f"Error parsing config file: unmarshal error: {JSON}{wrong[0].failure.words}"
    return MigReading(None, words, wrong, None, yaml, sound)


def selected(file: MigFile, name: str) -> tuple[MigEntry, ...] | str:
    """The config that `-c NAME` chooses ("": the only one), or mig-parted's words."""
    if len(file.configs) > 1 and not name:
        words = "missing required flag 'selected-config' when more than one config available"
        return f"Error selecting MIG config: {words}"
    chosen = name or next(iter(file.configs), "")
    if chosen not in file.configs:
        return f"Error selecting MIG config: selected mig-config not present: {chosen}"
    return file.configs[chosen]


def valid_config(text: str | bytes, name: str) -> str | None:
    """What `assert --valid-config` says against the file and the config called `name`, or None where all is well."""
    reading = read_mig(text)
    if reading.file is None:
        return reading.words
    config = selected(reading.file, name)
    return config if isinstance(config, str) else None


def _file(root: GoNode) -> tuple[MigFile, tuple[Wrong, ...]]:
    """The configs that are sound, and every mistake of form; the program stops at the first."""
    spec = raw_object(root)
    if isinstance(spec, Mismatch):
        return _NONE, (Wrong(None, spec),)
    version = _version(spec)
    configs = spec.get("mig-configs")
    sound, wrong = _configs(configs, spec.key("mig-configs") or spec) if configs else (_NONE, ())
    unknown = (
        Wrong(None, Refusal(f"unexpected field: {k.name}", k, "key"))
        for k, _ in spec.entries
        if k.name not in FILE_KEYS
    )
    return sound, (*((Wrong(None, version),) if version else ()), *wrong, *unknown)


def _version(spec: GoMap) -> Failure | None:
    node = spec.get("version")
    if node is None and spec.entries:
        return Refusal("unable to parse with missing 'version' field", spec, "version")
    version = as_string(node) if node else ""
    if isinstance(version, Mismatch):
        return version
    return None if version == VERSION else Refusal(f"unknown version: {version}", node or spec, "version")


def _configs(node: GoNode, key: GoKey | GoNode) -> tuple[MigFile, tuple[Wrong, ...]]:
    configs = raw_object(node)
    if isinstance(configs, Mismatch):
        return _NONE, (Wrong(None, replace(configs, type="map[string]v1.MigConfigSpecSlice")),)
    if not configs.entries:
        return _NONE, (Wrong(None, Refusal("at least one entry in 'mig-configs' is required", key, "configs")),)
    sound: dict[str, tuple[MigEntry, ...]] = {}
    shape: list[Wrong] = []
    bad: list[Wrong] = []
    empty: list[Wrong] = []
    for name, value in configs.entries:
        if _nothing(value):
            empty.append(Wrong(name.name, Refusal(f"at least one entry in '{name.name}' is required", name, "configs")))
        elif not isinstance(value, GoList):
            shape.append(Wrong(name.name, Mismatch(kind(value), SLICE, value)))
        elif wrong := [failure for item in value.items for failure in _wrong(item)]:
            bad += (Wrong(name.name, failure) for failure in wrong)
        else:
            sound[name.name] = tuple(_entry(item) for item in value.items)
    return MigFile(sound, {name.name: name for name, _ in configs.entries}), (*bad, *shape, *empty)


def _nothing(node: GoNode) -> bool:
    return not node.items if isinstance(node, GoList) else isinstance(node, GoScalar) and node.value is None


def _wrong(node: GoNode) -> Iterator[Failure]:
    """Every mistake of one entry; a field that is missing comes before all others, as in the program."""
    entry = raw_object(node)
    if isinstance(entry, Mismatch):
        yield entry
        return
    for key in ("devices", "mig-enabled"):
        if entry.get(key) is None:
            yield Refusal(f"missing required field: {key}", entry, key)
    clean = True
    for key_node, value in entry.entries:
        failure = _field(key_node, value)
        if failure:
            clean = False
            yield failure
    if not clean or entry.get("devices") is None or entry.get("mig-enabled") is None:
        return
    enabled = as_bool(entry.get("mig-enabled") or entry) is True
    counts = entry.get("mig-devices")
    absent = counts is None or (isinstance(counts, GoScalar) and counts.value is None)
    if enabled and absent:
        words = "missing required field 'mig-devices' when 'mig-enabled' is true"
        yield Refusal(words, entry.key("mig-devices") or entry, "mig-devices")
    if not enabled and isinstance(counts, GoMap) and counts.entries:
        yield Refusal("MIG devices included when 'mig-enabled' is false", entry.key("mig-devices") or entry, "disabled")


def _field(key: GoKey, value: GoNode) -> Failure | None:
    match key.name:
        case "device-filter":
            return _either(value, "string", key)
        case "devices":
            word = as_string(value)
            if isinstance(word, str):
                words = f"invalid string input for 'devices': {word}"
                return None if word == "all" else Refusal(words, value, "devices")
            return _either(value, "int", key)
        case "mig-enabled":
            read = as_bool(value)
            return read if isinstance(read, Mismatch) else None
        case "mig-devices":
            return _wrong_counts(value)
    return Refusal(f"unexpected field: {key.name}", key, "key")


def _either(value: GoNode, item: str, key: GoKey) -> Refusal | None:
    """A string, or a list of `item`; the program gives both complaints."""
    word = as_string(value)
    if not isinstance(word, Mismatch):
        return None
    second: Mismatch | None = None
    if not isinstance(value, GoList):
        second = Mismatch(kind(value), f"[]{item}", value)
    else:
        reads = (as_int(i) if item == "int" else as_string(i) for i in value.items)
        second = next((read for read in reads if isinstance(read, Mismatch)), None)
    if second is None:
        return None
    return Refusal(f"({word.words}, {second.words})", second.node, key.name)


def _wrong_counts(node: GoNode) -> Failure | None:
    if isinstance(node, GoScalar) and node.value is None:
        return None
    if not isinstance(node, GoMap):
        return Mismatch(kind(node), "types.MigConfig", node)
    counts: list[tuple[GoKey, int]] = []
    for key, value in node.entries:
        count = as_int(value)
        if isinstance(count, Mismatch):
            return count
        counts.append((key, count))
    start = "error validating values in 'mig-devices' field: "
    for key, count in counts:
        wrong = parse_profile(key.name)
        if isinstance(wrong, str):
            return Refusal(f"{start}invalid format for '{key.name}': {wrong}", key, "profile")
        if count < 0:
            return Refusal(f"{start}invalid count for '{count}': <nil>", key, "count")
    if counts and not any(count for _, count in counts):
        return Refusal(f"{start}all counts for all MigProfiles are 0", node, "count")
    return None


def _entry(node: GoNode) -> MigEntry:
    """The entry, once nothing is wrong with it."""
    entry = node if isinstance(node, GoMap) else GoMap((), node.line, node.column)
    devices, counts = entry.get("devices"), entry.get("mig-devices")
    listed = counts.entries if isinstance(counts, GoMap) else ()
    enabled = entry.get("mig-enabled")
    return MigEntry(
        devices=_numbers(devices.items) if isinstance(devices, GoList) else None,
        enabled=isinstance(enabled, GoScalar) and enabled.value is True,
        counts={key.name: count for (key, _), count in zip(listed, _numbers(v for _, v in listed), strict=True)},
        filters=_filters(entry.get("device-filter")),
        node=entry,
        keys=tuple((key.name, key) for key, _ in (*entry.entries, *listed)),
    )


def _numbers(nodes: Iterable[GoNode]) -> tuple[int, ...]:
    return tuple(read for read in map(as_int, nodes) if isinstance(read, int))


def _filters(node: GoNode | None) -> tuple[str, ...]:
    """No filter at all where there is none, or an empty string; an empty string in a list matches no card."""
    if isinstance(node, GoList):
        return tuple(read for read in map(as_string, node.items) if isinstance(read, str))
    word = as_string(node) if node else ""
    return (word,) if word and isinstance(word, str) else ()
