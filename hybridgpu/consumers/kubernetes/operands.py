"""Workloads that run NVIDIA's own programs, as records: which program, with which variables, and whose config.

A program is told by its command, else by the container's name and image, as NVIDIA's manifests give them.
Sources: k8s-device-plugin v0.20.0 deployments/static, deployments/helm; GPU Operator v26.3 assets.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from hybridgpu.consumers.kubernetes.configmanager import Settings
from hybridgpu.consumers.kubernetes.given import Operand
from hybridgpu.consumers.kubernetes.policy import read_env
from hybridgpu.consumers.kubernetes.settings import DISCOVERY, MPS_DAEMON, PLUGIN
from hybridgpu.consumers.kubernetes.tolerations import read_tolerations
from hybridgpu.files.gotree import GoList, GoMap, GoNode, GoScalar
from hybridgpu.files.manifest import Manifest, at
from hybridgpu.model.finding import Place
from hybridgpu.model.spelling import is_slip, nearest

PLUGIN_PROGRAM = "device-plugin"
_MANAGER = "config-manager"
_COMMANDS = {
    "nvidia-device-plugin": PLUGIN_PROGRAM,
    "gpu-feature-discovery": "gpu-feature-discovery",
    "mps-control-daemon": "mps-control-daemon",
    "nvidia-mig-manager": "mig-manager",
    "dcgm-exporter": "dcgm-exporter",
    _MANAGER: _MANAGER,
}
_IMAGES = {
    "k8s-device-plugin": PLUGIN_PROGRAM,
    "nvidia-device-plugin": PLUGIN_PROGRAM,
    "gpu-feature-discovery": "gpu-feature-discovery",
    "k8s-mig-manager": "mig-manager",
    "dcgm-exporter": "dcgm-exporter",
}
_NAMES = {
    **dict.fromkeys(("nvidia-device-plugin", "nvidia-device-plugin-ctr"), PLUGIN_PROGRAM),
    "gpu-feature-discovery": "gpu-feature-discovery",
    "mps-control-daemon-ctr": "mps-control-daemon",
    "nvidia-mig-manager": "mig-manager",
    "nvidia-dcgm-exporter": "dcgm-exporter",
}
_SHELLS = ("sh", "bash")
_FLAGS = {flag.name: flag.variables[0] for flag in (*DISCOVERY, *MPS_DAEMON, *PLUGIN)} | {"config-file": "CONFIG_FILE"}
_ALL_FLAGS = frozenset(
    (
        *(*_FLAGS, "kubelet-socket", "cdi-feature-flags", "cdi-disable-hooks", "nvidia-cdi-hook-path"),
        *(
            "driver-root",
            "dev-root",
            "nvidia-ctk-path",
            "container-driver-root",
            "driver-root-ctr-path",
            "help",
            "version",
            "h",
            "v",
            "c",
        ),
    )
)
"""Every flag of the plugin's command line."""

_SOURCE = "/available-configs"


def read_operands(manifest: Manifest) -> tuple[Operand, ...]:
    """A record for each of NVIDIA's programs in the workload's containers; none for other workloads."""
    pod = _pod(manifest)
    if pod is None:
        return ()
    containers = [(c, _program(c)) for c in _containers(pod)]
    manager = next((c for c, program in containers if program == _MANAGER), None)
    settings = None if manager is None else _settings(read_env(manager.get("env")))
    found: dict[str, Operand] = {}
    for container, program in containers:
        if program is None or program == _MANAGER or program in found:
            continue
        env = {**read_env(container.get("env")), **_arguments(container)}
        mounted = _mounted(pod, container if manager is None else manager, env, managed=manager is not None)
        found[program] = Operand(
            title=manifest.title,
            program=program,
            namespace=manifest.namespace,
            place=manifest.place(container),
            env=env,
            config_map=_text(mounted.name),
            tolerations=read_tolerations(pod.get("tolerations")) or (),
            settings=settings,
            selector=read_selector(pod.get("nodeSelector")),
            config_key=mounted.key,
            config_place=manifest.place(mounted.name) if mounted.name else None,
            file_place=next(
                (manifest.place(word) for word in _word_nodes(container) if "config-file" in word.text), None
            ),
            misspelt=tuple(_misspelt(manifest, container)) if program == PLUGIN_PROGRAM else (),
        )
    return tuple(found.values())


def read_selector(node: GoNode | None) -> dict[str, str]:
    """The labels that a nodeSelector demands."""
    return {key.name: _text(value) for key, value in node.entries} if isinstance(node, GoMap) else {}


def _pod(manifest: Manifest) -> GoMap | None:
    """The pod's spec of a Pod or of what makes pods."""
    for path in (
        ("spec", "template", "spec"),
        ("spec", "jobTemplate", "spec", "template", "spec"),
        *([("spec",)] if manifest.kind == "Pod" else []),
    ):
        node = manifest.get(*path)
        if isinstance(node, GoMap) and isinstance(node.get("containers"), GoList):
            return node
    return None


def _containers(pod: GoMap) -> Iterator[GoMap]:
    containers = pod.get("containers")
    for item in containers.items if isinstance(containers, GoList) else ():
        if isinstance(item, GoMap):
            yield item


def _program(container: GoMap) -> str | None:
    words = [*_words(container.get("command")), *_words(container.get("args"))]
    first = words[0].rpartition("/")[2] if words else ""
    if first in _COMMANDS:
        return _COMMANDS[first]
    name = _text(container.get("name"))
    image = _text(container.get("image")).partition("@")[0].rpartition("/")[2].partition(":")[0]
    if words and first not in _SHELLS and not words[0].startswith("-"):
        return None
    return _NAMES.get(name) or _IMAGES.get(image)


def _arguments(container: GoMap) -> dict[str, str]:
    """Flags of the command line as the variables of the same meaning; a flag beats its variable."""
    words = [*_words(container.get("command")), *_words(container.get("args"))]
    found: dict[str, str] = {}
    for index, word in enumerate(words):
        name, equals, value = word.lstrip("-").partition("=")
        if not word.startswith("-") or name not in _FLAGS:
            continue
        after = words[index + 1] if index + 1 < len(words) else ""
        bare = "true" if after.startswith("-") or not after else after
        found[_FLAGS[name]] = value if equals else bare
    return found


def _settings(env: Mapping[str, str]) -> Settings:
    fallbacks = tuple(word.strip() for word in env.get("FALLBACK_STRATEGIES", "").split(",") if word.strip())
    return Settings(env.get("DEFAULT_CONFIG", ""), fallbacks)


@dataclass(frozen=True, slots=True)
class _Mounted:
    """The ConfigMap mounted where the config is looked for: its name, and the key that the file is, "" if not told."""

    name: GoNode | None = None
    key: str = ""


def _mounted(pod: GoMap, container: GoMap, env: Mapping[str, str], *, managed: bool) -> _Mounted:
    wanted = _SOURCE if managed else env.get("CONFIG_FILE", "")
    for mount in _items(container.get("volumeMounts")):
        path = _text(mount.get("mountPath")).rstrip("/")
        if path and wanted and (wanted == path or wanted.startswith(f"{path}/")):
            volume = next(
                (v for v in _items(pod.get("volumes")) if _text(v.get("name")) == _text(mount.get("name"))), None
            )
            if _text(name := at(volume, "configMap", "name")):
                return _Mounted(name, _key(at(volume, "configMap", "items"), mount, wanted, path))
    return _Mounted()


def _key(items: GoNode | None, mount: GoMap, wanted: str, path: str) -> str:
    """The key that shows as the wanted file: by its own name, or by the one that `items` or `subPath` give it."""
    file = _text(mount.get("subPath")) or wanted.removeprefix(path).lstrip("/")
    if items is None:
        return "" if "/" in file else file
    return next((_text(item.get("key")) for item in _items(items) if _text(item.get("path")) == file), "")


def _word_nodes(container: GoMap) -> Iterator[GoScalar]:
    for key in ("command", "args"):
        words = container.get(key)
        yield from (item for item in words.items if isinstance(item, GoScalar)) if isinstance(words, GoList) else ()


def _misspelt(manifest: Manifest, container: GoMap) -> Iterator[tuple[str, str, Place]]:
    """Flags that are none of the plugin's but for a slip; those that are like none may be of another release."""
    for word in _word_nodes(container):
        flag = word.text.lstrip("-").partition("=")[0]
        if not word.text.startswith("-") or flag in _ALL_FLAGS or not flag:
            continue
        near = nearest(flag, _ALL_FLAGS)
        if near and is_slip(flag, near):
            yield word.text.partition("=")[0], f"--{near}", manifest.place(word)


def _items(node: GoNode | None) -> Iterator[GoMap]:
    for item in node.items if isinstance(node, GoList) else ():
        if isinstance(item, GoMap):
            yield item


def _words(node: GoNode | None) -> list[str]:
    return [item.text for item in node.items if isinstance(item, GoScalar)] if isinstance(node, GoList) else []


def _text(node: GoNode | None) -> str:
    return node.text if isinstance(node, GoScalar) and node.value is not None else ""
