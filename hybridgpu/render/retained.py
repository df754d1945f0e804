"""What of an older tree must be kept: names that pending jobs, and configs that nodes, may still use."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from hybridgpu.files.stamp import Ownership, ownership, without_stamp
from hybridgpu.model.site import Retained, RetainedConfig
from hybridgpu.render.kubernetes.yamltext import dump

_GRES_TYPES = re.compile(r"^GresTypes=(.*)$", re.MULTILINE)
_GRES_NAME = re.compile(r"[a-z][a-z0-9_-]*")
_CONFIG_FILE = re.compile(r"kubernetes/chart/((?:values|daemonset)-[0-9a-f]{10}\.yaml)")
_PLUGIN_MAP = "kubernetes/operator/configmap-device-plugin.yaml"
_MIG_MAP = "kubernetes/operator/configmap-mig-parted.yaml"


def retained_from(there: Mapping[str, bytes]) -> Retained:
    """From the files of an older tree, by path: its GresTypes; its configs, where a file is ours and not edited."""
    text = there.get("slurm/gpu.conf", b"").decode("utf-8", "replace")
    found = _GRES_TYPES.search(text)
    names = found[1].split(",") if found else ()
    ours = {path: content for path, content in there.items() if ownership(content) is Ownership.OURS}
    return Retained(
        gres_types=tuple(dict.fromkeys(name for name in names if _GRES_NAME.fullmatch(name))),
        plugin_configs=tuple(_configs(ours)),
    )


def _configs(ours: Mapping[str, bytes]) -> Iterator[RetainedConfig]:
    for path, content in sorted(ours.items()):
        if named := _CONFIG_FILE.fullmatch(path):
            yield RetainedConfig("chart", named[1], without_stamp(content).decode())
    if _PLUGIN_MAP in ours:
        for name, text in _loaded(ours[_PLUGIN_MAP])["data"].items():
            if name != "default":
                yield RetainedConfig("plugin", name, text)
    if _MIG_MAP in ours:
        import yaml

        file = yaml.safe_load(_loaded(ours[_MIG_MAP])["data"]["config.yaml"])
        for name, entry in file["mig-configs"].items():
            if name.startswith("hybridgpu-"):
                yield RetainedConfig("mig", name, dump(entry))


def _loaded(content: bytes) -> dict[str, dict[str, str]]:
    import yaml

    loaded: dict[str, dict[str, str]] = yaml.safe_load(content)
    return loaded
