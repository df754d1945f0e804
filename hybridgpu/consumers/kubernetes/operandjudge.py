"""DaemonSets of one's own that run the device plugin: flags it does not know, and the config file that is not there.

Source: k8s-device-plugin v0.20.0 cmd/nvidia-device-plugin/main.go (urfave/cli v2 exits at an unknown flag).
"""

from __future__ import annotations

from collections.abc import Iterator

from hybridgpu.consumers.kubernetes.given import ConfigSet, KubeFiles, Operand
from hybridgpu.consumers.kubernetes.policyjudge import NO_SUCH_MAP, WRONG_NAMESPACE
from hybridgpu.files.quoting import listed, shown
from hybridgpu.model.finding import Finding, Related, Rule, Severity
from hybridgpu.model.spelling import is_slip, nearest

_SOURCE = "k8s-device-plugin v0.20.0 cmd/nvidia-device-plugin/main.go; urfave/cli v2"

UNKNOWN_FLAG = Rule(
    "k8s-operand-unknown-flag",
    Severity.ERROR,
    "The program exits at a flag that it does not know, the pod crash-loops, and the node offers no GPU.",
    "Write the flag as the program's --help does.",
    _SOURCE,
)
NO_SUCH_FILE = Rule(
    "k8s-operand-no-such-config-file",
    Severity.ERROR,
    "The config file that the program is told to read is not in the ConfigMap: it exits, and the node offers no GPU.",
    "Give the ConfigMap's key as the file's name.",
    _SOURCE,
)
RULES = (UNKNOWN_FLAG, NO_SUCH_FILE)


def judge_operand(operand: Operand, files: KubeFiles) -> Iterator[Finding]:
    """Findings on its command line and on the ConfigMap that it mounts."""
    for flag, right, place in operand.misspelt:
        message = f"{operand.program} has no flag {shown(flag)}"
        yield Finding(UNKNOWN_FLAG, place, message, f"did you mean {right}?")
    if operand.config_map:
        yield from _config_map(operand, files)


def _config_map(operand: Operand, files: KubeFiles) -> Iterator[Finding]:
    place = operand.config_place or operand.place
    named = [each for each in files.sets if each.name == operand.config_map]
    there = [each for each in named if _reaches(operand, each)]
    if there:
        yield from _file(operand, there[0])
    elif named:
        message = (
            f"{operand.title} mounts the ConfigMap {operand.config_map}, which is in namespace "
            f"{listed(dict.fromkeys(each.namespace for each in named))}, and not in its own, {operand.namespace}"
        )
        related = (Related(named[0].place, named[0].source),)
        yield Finding(WRONG_NAMESPACE, place, message, f"create it in namespace {operand.namespace}", related)
    else:
        others = {each.name: each for each in files.sets if each.name and each.user is None and _reaches(operand, each)}
        near = nearest(operand.config_map, others)
        if near and is_slip(operand.config_map, near):
            message = (
                f"{operand.title} mounts the ConfigMap {shown(operand.config_map)}, and there is no such ConfigMap"
            )
            related = (Related(others[near].place, others[near].source),)
            yield Finding(NO_SUCH_MAP, place, message, f"did you mean {near}?", related)


def _reaches(operand: Operand, config_set: ConfigSet) -> bool:
    return not operand.namespace or not config_set.namespace or operand.namespace == config_set.namespace


def _file(operand: Operand, config_set: ConfigSet) -> Iterator[Finding]:
    """Whether the file is a key of the ConfigMap; a config-manager links one of them to it."""
    key = operand.config_key
    if operand.settings is not None or not key or key in config_set.keys or not config_set.keys:
        return
    near = nearest(key, config_set.keys) or next(iter(config_set.keys))
    message = (
        f"the config file is {shown(operand.env.get('CONFIG_FILE', key))}, and {config_set.source} has no key {key}"
    )
    hint = f"did you mean {near}? Its keys are {listed(config_set.keys)}"
    yield Finding(
        NO_SUCH_FILE, operand.file_place or operand.place, message, hint, (Related(config_set.place, "its keys"),)
    )
