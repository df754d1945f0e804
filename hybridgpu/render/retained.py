"""What of an older tree must be kept: names that pending jobs, and configs that nodes, may still use."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from hybridgpu.files.stamp import Ownership, ownership, without_stamp
from hybridgpu.model.finding import Finding, Place, Rule, Severity
from hybridgpu.model.site import Retained, RetainedConfig
from hybridgpu.render.kubernetes.config import short_hash

UNREADABLE = Rule(
    "render-retained-unreadable",
    Severity.ERROR,
    "A file of ours holds what this hybridgpu cannot read, so it is not known which configs nodes may still run.",
    "Render with the hybridgpu that wrote it, or with --forget where no node runs a config of it.",
    "hybridgpu",
)

_GRES_TYPES = re.compile(r"^GresTypes=(.*)$", re.MULTILINE)
_GRES_NAME = re.compile(r"[a-z][a-z0-9_-]*")
_FILE = re.compile(r"kubernetes/((?:chart/(?:nfd|(?:values|daemonset)-[0-9a-f]{10})|operator/configmap-[a-z-]+)\.yaml)")
_PLUGIN_MAP = "kubernetes/operator/configmap-device-plugin.yaml"
_MIG_MAP = "kubernetes/operator/configmap-mig-parted.yaml"


def retained_from(there: Mapping[str, bytes]) -> tuple[Retained, tuple[Finding, ...]]:
    """From the files of an older tree, by path, and an error for each that cannot be read.

    Of a file that was edited since only configs are taken whose name is the hash of what they say. Of one that was not,
    all that are called by a hash: another hybridgpu may have hashed otherwise, and nodes still run what it named.
    """
    text = there.get("slurm/gpu.conf", b"").decode("utf-8", "replace")
    found = _GRES_TYPES.search(text)
    names = found[1].split(",") if found else ()
    configs: list[RetainedConfig] = []
    findings: list[Finding] = []
    for path, content in sorted(there.items()):
        whose = ownership(content)
        if whose is Ownership.FOREIGN or not path.startswith("kubernetes/"):
            continue
        try:
            configs += _configs(path, content, whose)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            message = f"{path} cannot be read: {type(error).__name__}"
            findings.append(Finding(UNREADABLE, Place(path, 1), message, UNREADABLE.fix))
    gres_types = tuple(dict.fromkeys(name for name in names if _GRES_NAME.fullmatch(name)))
    return Retained(gres_types, tuple(configs)), tuple(findings)


def _configs(path: str, content: bytes, whose: Ownership) -> Iterator[RetainedConfig]:
    """Raises KeyError, TypeError, ValueError or AttributeError for what is not of our making."""
    named, intact = _FILE.fullmatch(path), whose is Ownership.OURS
    if named and intact:
        yield RetainedConfig("file", named[1], without_stamp(content).decode())
    if path == _PLUGIN_MAP:
        for name, text in _loaded(content)["data"].items():
            says = short_hash(_loaded(text.encode()))
            if re.fullmatch("[0-9a-f]{10}", name) and (intact or says == name):
                yield RetainedConfig("plugin", name, text)
    if path == _MIG_MAP:
        for name, entry in _loaded(_loaded(content)["data"]["config.yaml"].encode())["mig-configs"].items():
            says = f"hybridgpu-{short_hash(entry)}"
            if re.fullmatch("hybridgpu-[0-9a-f]{10}", name) and (intact or says == name):
                yield RetainedConfig("mig", name, json.dumps(entry))


def _loaded(content: bytes) -> Any:  # noqa: ANN401 - what a file holds
    import yaml

    try:
        return yaml.load(content, Loader=yaml.CSafeLoader)
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error
