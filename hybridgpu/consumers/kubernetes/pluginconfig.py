"""The config file that device plugin, GPU feature discovery and MPS daemon share: its types, and what came out of it.

All three read it alike and exit alike. What the values do is settings' and devicemap's business.
Source: k8s-device-plugin v0.20.0 api/config/v1 config.go, flags.go, imex.go, duration.go.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from hybridgpu.consumers.kubernetes.goduration import parse_duration
from hybridgpu.consumers.kubernetes.outcome import Refused, Stage
from hybridgpu.consumers.kubernetes.replicated import Replicated, read_name, read_replicated
from hybridgpu.files.gojson import (
    BOOL,
    INT,
    JSON,
    STRING,
    Decoded,
    Failure,
    Field,
    GoType,
    Mismatch,
    Own,
    Read,
    Refusal,
    Slice,
    Struct,
    as_string,
    decode,
    kind,
    raw_object,
)
from hybridgpu.files.goprint import json_text
from hybridgpu.files.gotree import GoError, GoList, GoNode, GoScalar, GoYaml
from hybridgpu.files.goyaml import load

VERSION = "v1"


def _strategies(node: GoNode) -> Read | Refusal:
    """deviceListStrategy: a word or a list of words; a comma in a word does not divide it."""
    word = as_string(node)
    if isinstance(word, str):
        return Read((word,), node)
    words = [as_string(item) for item in node.items] if isinstance(node, GoList) else [None]
    if all(isinstance(word, str) for word in words):
        return Read(tuple(words), node)
    return Refusal(f"invalid deviceListStrategy: {json_text(node)}", node, "deviceListStrategy")


def _duration(node: GoNode) -> Read | Refusal:
    """sleepInterval: nanoseconds as a number, or Go's notation, or `infinite`."""
    value = node.value if isinstance(node, GoScalar) else None
    if isinstance(value, int | float) and not isinstance(value, bool):
        return Read(value / 1e9, node)
    if not isinstance(value, str):
        return Refusal("invalid duration", node, "sleepInterval")
    seconds = math.inf if value == "infinite" else parse_duration(value)
    return Refusal(seconds, node, "sleepInterval") if isinstance(seconds, str) else Read(seconds, node)


def _resource(node: GoNode) -> Read | Failure:
    """An entry of `resources.gpus` or `.mig`: read, checked, and then passed over."""
    entry = raw_object(node)
    if isinstance(entry, Mismatch):
        return entry
    for key in ("pattern", "name"):
        if entry.get(key) is None:
            return Refusal(f"resources must have a '{key}' field set", entry, "resources")
    pattern, name = entry.get("pattern") or entry, entry.get("name") or entry
    if isinstance(as_string(pattern), Mismatch):
        return Mismatch(kind(pattern), "v1.ResourcePattern", pattern)
    read = read_name(name)
    return Read(read, node) if isinstance(read, str) else read


def _pointers(of: GoType, *names: str) -> dict[str, Field]:
    return {name: Field(of, pointer=True) for name in names}


_PLUGIN = Struct(
    "v1.PluginCommandLineFlags",
    {
        **_pointers(BOOL, "passDeviceSpecs"),
        **_pointers(Own(_strategies, Read(())), "deviceListStrategy"),
        **_pointers(STRING, "deviceIDStrategy", "cdiAnnotationPrefix", "nvidiaCTKPath", "containerDriverRoot"),
        **_pointers(STRING, "sharedDevicesAllocationPolicy"),
    },
)
_GFD = Struct(
    "v1.GFDCommandLineFlags",
    {
        **_pointers(BOOL, "oneshot", "noTimestamp"),
        **_pointers(Own(_duration, Read(0.0)), "sleepInterval"),
        **_pointers(STRING, "outputFile", "machineTypeFile"),
    },
)
_COMMAND_LINE = Struct(
    "v1.CommandLineFlags",
    {
        **_pointers(STRING, "migStrategy"),
        **_pointers(BOOL, "failOnInitError"),
        **_pointers(STRING, "mpsRoot", "nvidiaDriverRoot", "nvidiaDevRoot"),
        **_pointers(BOOL, "gdrcopyEnabled", "gdsEnabled", "mofedEnabled", "useNodeFeatureAPI"),
        **_pointers(STRING, "deviceDiscoveryStrategy"),
        "plugin": Field(_PLUGIN, pointer=True),
        "gfd": Field(_GFD, pointer=True),
    },
)
_FLAGS = Struct("v1.Flags", {name: Field(f.type, f.pointer, _COMMAND_LINE) for name, f in _COMMAND_LINE.fields.items()})
_RESOURCES_SLICE = Slice(Own(_resource), "[]v1.Resource")
CONFIG = Struct(
    "v1.Config",
    {
        "version": Field(STRING),
        "flags": Field(_FLAGS),
        "resources": Field(Struct("v1.Resources", {"gpus": Field(_RESOURCES_SLICE), "mig": Field(_RESOURCES_SLICE)})),
        "sharing": Field(
            Struct(
                "v1.Sharing",
                {"timeSlicing": Field(Own(read_replicated)), "mps": Field(Own(read_replicated), pointer=True)},
            )
        ),
        "imex": Field(Struct("v1.Imex", {"channelIDs": Field(Slice(INT, "[]int")), "required": Field(BOOL)})),
    },
)


@dataclass(frozen=True, slots=True)
class PluginConfig:
    """A file that all three programs take. `flags` by their name in the file, `plugin` and `gfd` within."""

    flags: dict[str, Any] = field(default_factory=dict)
    time_slicing: Replicated | None = None
    mps: Replicated | None = None
    resources: bool = False
    channels: tuple[int, ...] = ()
    imex_required: bool = False

    @property
    def replicated(self) -> Replicated | None:
        """The block that counts: mps where it is there at all, whatever timeSlicing says."""
        return self.mps or self.time_slicing

    @property
    def sharing(self) -> str:
        """`mps`, `time-slicing` or `none`."""
        return "mps" if self.mps else "time-slicing" if self.time_slicing else "none"

    @property
    def fail_above_one(self) -> bool:
        """Whether a request for more than one share is refused: under mps yes, unless the file says no."""
        if self.replicated is None:
            return False
        said = self.replicated.fail_above_one
        return self.mps is not None if said is None else said

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the programs log when they pass over what they do not support (DisableResourceNamingInConfig)."""
        said = []
        if self.resources:
            said.append("Customizing the 'resources' field is not yet supported in the config. Ignoring...")
        for name, block in (("timeSlicing", self.time_slicing), ("mps", self.mps)):
            if block and block.renamed:
                where = f"sharing.{name}.resources"
                said.append(f"Setting the 'rename' field in {where} is not yet supported in the config. Ignoring...")
            if block and block.picked:
                where = f"sharing.{name}.resources"
                said.append(
                    f"Customizing the 'devices' field in {where} is not yet supported in the config. Ignoring..."
                )
        return tuple(said)


@dataclass(frozen=True, slots=True)
class Reading:
    """What reading a file gave: the config, or why all three programs refuse it; and the traces it left."""

    config: PluginConfig | None
    refused: Refused | None
    failure: Failure | GoError | None
    yaml: GoYaml
    decoded: Decoded


def read_config(text: str | bytes) -> Reading:
    """The file as the three programs read it. Never raises, whatever the text."""
    yaml = load(text)
    if yaml.root is None:
        failure = yaml.error or GoError("", 1, 1)
        refused = Refused(Stage.CONFIG, f"unmarshal error: {failure.words}")
        return Reading(None, refused, failure, yaml, Decoded({}))
    decoded = decode(yaml.root, CONFIG)
    if decoded.failure:
        refused = Refused(Stage.CONFIG, f"unmarshal error: {JSON}{decoded.failure.words}")
        return Reading(None, refused, decoded.failure, yaml, decoded)
    version = decoded.values.get("version", Read(""))
    if version.value not in ("", VERSION):
        refusal = Refusal(f"unknown version: {version.value}", version.node or yaml.root, "version")
        return Reading(None, Refused(Stage.CONFIG, refusal.words), refusal, yaml, decoded)
    return Reading(_config(decoded.values), None, None, yaml, decoded)


def _config(values: dict[str, Any]) -> PluginConfig:
    sharing, imex, resources = values.get("sharing", {}), values.get("imex", {}), values.get("resources", {})
    return PluginConfig(
        flags=values.get("flags", {}),
        time_slicing=sharing.get("timeSlicing"),
        mps=sharing.get("mps"),
        resources=bool(resources.get("gpus") or resources.get("mig")),
        channels=tuple(read.value for read in imex.get("channelIDs", ())),
        imex_required=imex.get("required", Read(False)).value,
    )
