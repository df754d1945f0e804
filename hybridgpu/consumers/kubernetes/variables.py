"""The variables that a chart, the operator or a DaemonSet gives the device plugin, judged by themselves.

A variable beats every config, so a wrong one is told where it is given and not in each config.
Source: k8s-device-plugin v0.20.0 cmd/nvidia-device-plugin/main.go validateFlags; run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hybridgpu.consumers.kubernetes.deviceplugin import bad_flags
from hybridgpu.consumers.kubernetes.pluginconfig import PluginConfig
from hybridgpu.consumers.kubernetes.pluginrules import FLAG
from hybridgpu.consumers.kubernetes.settings import PLUGIN, settings
from hybridgpu.files.quoting import listed
from hybridgpu.model.finding import Finding, Place
from hybridgpu.model.spelling import nearest


def judge_variables(env: Mapping[str, str], places: Mapping[str, Place], otherwise: Place) -> Iterator[Finding]:
    """A finding for each variable with which the plugin does not start; `places` by variable."""
    for name, words, allowed in _wrong(env):
        near = nearest(env[name], allowed)
        hint = f"did you mean {near}? Allowed: {listed(allowed)}" if near else FLAG.fix
        yield Finding(FLAG, places.get(name, otherwise), f"{name}={env[name]}: {words}", hint)


def sound(env: Mapping[str, str]) -> dict[str, str]:
    """The variables without those that are wrong by themselves."""
    wrong = {name for name, *_ in _wrong(env)}
    return {name: value for name, value in env.items() if name not in wrong}


def _wrong(env: Mapping[str, str]) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Variable, the plugin's words, and what is allowed."""
    for flag in PLUGIN:
        name = next((variable for variable in flag.variables if variable in env), None)
        if name is None:
            continue
        values = settings(PluginConfig(), PLUGIN, {name: env[name]})
        if isinstance(values, str):
            yield name, values, ()
            continue
        yield from ((name, bad.words, bad.allowed) for bad in bad_flags(PluginConfig(), values))
