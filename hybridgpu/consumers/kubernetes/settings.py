"""The flags a program really runs with: command line and environment before the file, the file before the default.

One table a program. Whether a value is allowed is the programs' own business.
Source: k8s-device-plugin v0.20.0 api/config/v1 flags.go, config.go NewConfig; cmd/*/main.go; urfave/cli v2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hybridgpu.consumers.kubernetes.pluginconfig import PluginConfig
from hybridgpu.files.gojson import Read
from hybridgpu.files.goscalar import integer

Value = str | bool | tuple[str, ...] | tuple[int, ...]
"""What a flag can hold."""

_TRUE, _FALSE = ("1", "t", "T", "true", "TRUE", "True"), ("0", "f", "F", "false", "FALSE", "False")


@dataclass(frozen=True, slots=True)
class Flag:
    """A flag: its name on the command line, its name and block in the file (None: not there), variables, default."""

    name: str
    key: str
    variables: tuple[str, ...]
    default: Value
    block: str | None = None


PLUGIN = (
    Flag("mig-strategy", "migStrategy", ("MIG_STRATEGY",), "none"),
    Flag("fail-on-init-error", "failOnInitError", ("FAIL_ON_INIT_ERROR",), True),
    Flag("nvidia-driver-root", "nvidiaDriverRoot", ("NVIDIA_DRIVER_ROOT",), "/"),
    Flag("nvidia-dev-root", "nvidiaDevRoot", ("NVIDIA_DEV_ROOT",), ""),
    Flag("pass-device-specs", "passDeviceSpecs", ("PASS_DEVICE_SPECS",), False, "plugin"),
    Flag("device-list-strategy", "deviceListStrategy", ("DEVICE_LIST_STRATEGY",), ("envvar",), "plugin"),
    Flag("device-id-strategy", "deviceIDStrategy", ("DEVICE_ID_STRATEGY",), "uuid", "plugin"),
    Flag("gdrcopy-enabled", "gdrcopyEnabled", ("GDRCOPY_ENABLED",), False),
    Flag("gds-enabled", "gdsEnabled", ("GDS_ENABLED",), False),
    Flag("mofed-enabled", "mofedEnabled", ("MOFED_ENABLED",), False),
    Flag("cdi-annotation-prefix", "cdiAnnotationPrefix", ("CDI_ANNOTATION_PREFIX",), "cdi.k8s.io/", "plugin"),
    Flag("mps-root", "mpsRoot", ("MPS_ROOT",), ""),
    Flag(
        "shared-devices-allocation-policy",
        "sharedDevicesAllocationPolicy",
        ("SHARED_DEVICES_ALLOCATION_POLICY",),
        "distributed",
        "plugin",
    ),
    Flag("device-discovery-strategy", "deviceDiscoveryStrategy", ("DEVICE_DISCOVERY_STRATEGY",), "auto"),
    Flag("imex-channel-ids", "channelIDs", ("IMEX_CHANNEL_IDS",), (), "imex"),
    Flag("imex-required", "required", ("IMEX_REQUIRED",), False, "imex"),
)
"""The device plugin's flags that decide what a node offers and a container gets."""

DISCOVERY = (
    Flag("mig-strategy", "migStrategy", ("GFD_MIG_STRATEGY", "MIG_STRATEGY"), "none"),
    Flag("fail-on-init-error", "failOnInitError", ("GFD_FAIL_ON_INIT_ERROR", "FAIL_ON_INIT_ERROR"), True),
    Flag("device-discovery-strategy", "deviceDiscoveryStrategy", ("DEVICE_DISCOVERY_STRATEGY",), "auto"),
)
"""GPU feature discovery's."""

MPS_DAEMON = (Flag("mig-strategy", "migStrategy", ("MIG_STRATEGY",), "none"),)
"""The MPS control daemon's."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Values by the flag's name in the file, and for those that the environment overrules, the variable's name."""

    values: Mapping[str, Value]
    overruled: Mapping[str, str]

    def text(self, key: str) -> str:
        """A flag that is a word."""
        return str(self.values[key])

    def on(self, key: str) -> bool:
        """A flag that is a switch."""
        return bool(self.values[key])

    def words(self, key: str) -> tuple[str, ...]:
        """A flag that is a list of words."""
        value = self.values[key]
        return tuple(map(str, value)) if isinstance(value, tuple) else ()

    def numbers(self, key: str) -> tuple[int, ...]:
        """A flag that is a list of numbers."""
        value = self.values[key]
        return tuple(map(int, value)) if isinstance(value, tuple) else ()


def settings(config: PluginConfig, flags: tuple[Flag, ...], env: Mapping[str, str]) -> Settings | str:
    """The program's settings, or its words for a variable that it cannot read.

    A variable that is set and empty counts: it sets a text to nothing and a bool to false.
    """
    values: dict[str, Value] = {}
    overruled: dict[str, str] = {}
    for flag in flags:
        from_file = _from_file(config, flag)
        variable = next((name for name in flag.variables if name in env), None)
        if variable is None:
            values[flag.key] = flag.default if from_file is None else from_file
            continue
        value = _from_env(env[variable], flag)
        if value is None:
            return _unreadable(env[variable], variable, flag)
        values[flag.key] = value
        if from_file is not None and from_file != value:
            overruled[flag.key] = variable
    if "nvidiaDevRoot" in values:
        values["nvidiaDevRoot"] = values["nvidiaDevRoot"] or values["nvidiaDriverRoot"]
    return Settings(values, overruled)


def _from_file(config: PluginConfig, flag: Flag) -> Value | None:
    if flag.block == "imex":
        return (config.channels if flag.key == "channelIDs" else config.imex_required) or None
    block: Mapping[str, Any] = config.flags.get(flag.block, {}) if flag.block else config.flags
    read = block.get(flag.key)
    value: Value | None = read.value if isinstance(read, Read) else None
    return value


def _from_env(text: str, flag: Flag) -> Value | None:
    if isinstance(flag.default, bool):
        return True if text in _TRUE else False if text in (*_FALSE, "") else None
    if flag.key == "channelIDs":
        numbers = [integer(part.strip()) for part in text.split(",")] if text else []
        known = tuple(number for number in numbers if number is not None)
        return known if len(known) == len(numbers) else None
    if isinstance(flag.default, tuple):
        return tuple(part.strip() for part in text.split(","))
    return text


def _unreadable(text: str, variable: str, flag: Flag) -> str:
    kind, parser, part = "bool", "ParseBool", text
    if not isinstance(flag.default, bool):
        kind, parser = "int slice", "ParseInt"
        part = next((word for word in map(str.strip, text.split(",")) if integer(word) is None), text)
    source = f'environment variable "{variable}"'
    reason = f'strconv.{parser}: parsing "{part}": invalid syntax'
    return f'could not parse "{text}" as {kind} value from {source} for flag {flag.name}: {reason}'
