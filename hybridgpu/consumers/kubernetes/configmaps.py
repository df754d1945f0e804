"""ConfigMaps as records: those that hold device-plugin configs or a mig-parted file, and no others.

Told apart by who names them and by what their values say; a ConfigMap of somebody else is never judged, and binaryData
never read. Source: Kubernetes core/v1 ConfigMap; k8s-device-plugin cmd/config-manager; GPU Operator v26.3
assets/state-mig-manager.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from hybridgpu.consumers.kubernetes.given import Config, ConfigSet, MigFile
from hybridgpu.consumers.kubernetes.replicated import PREFIX
from hybridgpu.files.gotree import GoKey, GoList, GoMap, GoNode, GoScalar
from hybridgpu.files.goyaml import load
from hybridgpu.files.manifest import Manifest
from hybridgpu.files.quoting import listed, shown
from hybridgpu.model.finding import Finding, Place, Rule, Severity
from hybridgpu.model.spelling import is_slip

MIG_KEY = "config.yaml"
"""The only key that mig-manager reads of a ConfigMap of one's own."""

NOT_A_STRING = Rule(
    "k8s-configmap-not-a-string",
    Severity.ERROR,
    "A value of a ConfigMap's data is text; the API server refuses the whole ConfigMap for any other.",
    "Write `KEY: |` and the config indented below it; put a number or bool in quotes.",
    "Kubernetes core/v1 ConfigMap; kube-apiserver 1.36, run",
)
MIG_KEY_MISSING = Rule(
    "k8s-mig-key-missing",
    Severity.ERROR,
    "mig-manager reads the key config.yaml of its ConfigMap and no other: it finds no file and fails.",
    "Call the key config.yaml.",
    "GPU Operator v26.3 controllers/object_controls.go TransformMIGManager, assets/state-mig-manager",
)
RULES = (NOT_A_STRING, MIG_KEY_MISSING)

_BLOCKS = ("sharing", "timeslicing", "mps")
_SIGN_WORDS = (
    "timeslicing migstrategy renamebydefault failrequestsgreaterthanone mpsroot deviceliststrategy deviceidstrategy "
    "passdevicespecs failoniniterror nvidiadriverroot shareddevicesallocationpolicy channelids"
)
_SIGNS = frozenset(_SIGN_WORDS.split())
_OTHER_WORDS = (
    "apiversion kind config deviceplugin gfd nfd migmanager driver toolkit operator dcgmexporter dcgm daemonsets "
    "nodeselector tolerations image mig-configs groups scrape_configs"
)
_OTHERS = frozenset(_OTHER_WORDS.split())
"""Top-level keys of Helm values, objects and other programs' files, which may speak of the same things."""

_BROKEN = re.compile(r"^[ \t]*(?:- )?(?:sharing|timeSlicing|mps|flags|migStrategy)[ \t]*:", re.MULTILINE)
_BROKEN_TOO = re.compile(r"nvidia\.com/|timeSlicing|migStrategy")
_BROKEN_MIG = re.compile(r"^[ \t]*mig-(?:configs|enabled|devices)[ \t]*:", re.MULTILINE)
_SPEAKS = re.compile(r"version|sharing|slicing|strategy|nvidia\.com/|replicas|flags|imex|mps", re.IGNORECASE)
_FOREIGN = (".sh", ".md", ".txt", ".conf", ".py", ".toml", ".ini", ".rules", ".tpl")
_SEARCHED = 5


@dataclass(frozen=True, slots=True)
class Held:
    """What a ConfigMap holds for NVIDIA's programs, and what is wrong with it as a ConfigMap."""

    configs: ConfigSet | None = None
    mig: tuple[MigFile, ...] = ()
    findings: tuple[Finding, ...] = ()


def read_config_map(manifest: Manifest, plugin: bool = False, mig: bool = False) -> Held | None:
    """What it holds; None if it is somebody else's. `plugin`, `mig`: something names it as the one or the other."""
    if manifest.kind != "ConfigMap":
        return None
    values = manifest.mapping("data")
    texts = [(key, value) for key, value in values if isinstance(value, GoScalar) and isinstance(value.value, str)]
    named = plugin
    plugin = plugin or (not mig and any(is_plugin_config(value) for _, value in values))
    mig_keys = {key.name for key, value in values if is_mig_file(value)}
    mig = mig or bool(mig_keys)
    if not plugin and not mig:
        return None
    findings = list(not_strings(manifest, values))
    files = tuple(
        MigFile(
            manifest.title,
            manifest.name,
            manifest.namespace,
            str(v.value),
            manifest.inner(v),
            manifest.place(k),
            k.name,
        )
        for k, v in texts
        if (mig and k.name == MIG_KEY) or k.name in mig_keys
    )
    configs = None
    if plugin:
        mine = [(key, value) for key, value in values if named or not _is_foreign(key, value)]
        configs = ConfigSet(
            manifest.title, manifest.name, manifest.namespace, configs_of(manifest, mine), manifest.place()
        )
    return Held(configs, files, tuple(findings))


def configs_of(manifest: Manifest, values: Iterable[tuple[GoKey, GoNode]]) -> tuple[Config, ...]:
    """The values that are texts, each as a config; null is an empty text."""
    return tuple(
        Config(key.name, str(value.value or ""), manifest.inner(value), manifest.place(key))
        for key, value in values
        if isinstance(value, GoScalar) and (value.value is None or isinstance(value.value, str))
    )


def judge_mig_key(title: str, values: Iterable[tuple[GoKey, GoNode]], place: Place) -> Iterator[Finding]:
    """Whether the data of a ConfigMap that mig-manager is told to read has the key that it reads."""
    keys = [key.name for key, _ in values]
    if MIG_KEY not in keys:
        message = f"{title} has no key {MIG_KEY}; its keys are {listed(keys) or 'none'}"
        yield Finding(MIG_KEY_MISSING, place, message, MIG_KEY_MISSING.fix)


def is_plugin_config(node: GoNode) -> bool:
    """Whether a ConfigMap's value is a device-plugin config, a broken one or a mapping in place of text too."""
    if not isinstance(node, GoScalar):
        return _is_config(node)
    if not isinstance(node.value, str) or node.value.startswith("#!") or not _SPEAKS.search(node.value):
        return False
    root = load(node.value).root
    if root is None:
        return bool(_BROKEN.search(node.value) and _BROKEN_TOO.search(node.value))
    return _is_config(root)


def _is_foreign(key: GoKey, node: GoNode) -> bool:
    """Whether a value beside a config is plainly none."""
    if not isinstance(node, GoScalar) or not isinstance(node.value, str):
        return False
    root = load(node.value).root
    top = {name.name.lower() for name, _ in root.entries} if isinstance(root, GoMap) else set()
    return key.name.endswith(_FOREIGN) or node.value.startswith("#!") or bool(top & _OTHERS)


def is_mig_file(node: GoNode) -> bool:
    """Whether a ConfigMap's value is a mig-parted file, a broken one or a mapping in place of text too."""
    if isinstance(node, GoScalar):
        if not isinstance(node.value, str) or node.value.startswith("#!") or "mig" not in node.value:
            return False
        root = load(node.value).root
        if root is None:
            return bool(_BROKEN_MIG.search(node.value))
        node = root
    names = [key.name for key, _ in node.entries] if isinstance(node, GoMap) else []
    return any(is_slip(name.replace("_", "-"), "mig-configs") for name in names)


def _is_config(root: GoNode) -> bool:
    if not isinstance(root, GoMap):
        return False
    top = {key.name.lower(): value for key, value in root.entries}
    if top.keys() & _OTHERS:
        return False
    version = top.get("version")
    numbered = isinstance(version, GoScalar) and str(version.value).startswith("v")
    if numbered and len(top) == 1:
        return str(version.value)[1:].isdigit() if isinstance(version, GoScalar) else False
    if numbered and any(isinstance(top.get(name), GoMap) for name in _BLOCKS):
        return True
    resources = {key.name for key, _ in r.entries} if isinstance(r := top.get("resources"), GoMap) else set()
    return (numbered and bool(resources & {"gpus", "mig"})) or _speaks(root, _SEARCHED)


def _speaks(node: GoNode, depth: int) -> bool:
    """Whether a key that only these configs have, or an entry that shares a resource, is in it."""
    if depth == 0 or isinstance(node, GoScalar):
        return False
    if isinstance(node, GoList):
        return any(_speaks(item, depth - 1) for item in node.items)
    names = {key.name.lower() for key, _ in node.entries}
    name = node.get("name")
    shares = "replicas" in names and isinstance(name, GoScalar) and str(name.value).startswith(PREFIX)
    return shares or bool(names & _SIGNS) or any(_speaks(value, depth - 1) for _, value in node.entries)


def not_strings(manifest: Manifest, values: Iterable[tuple[GoKey, GoNode]]) -> Iterator[Finding]:
    """A finding for each value that is no text."""
    for key, value in values:
        if not (isinstance(value, GoScalar) and (value.value is None or isinstance(value.value, str))):
            what = {GoMap: "a mapping", GoList: "a list"}.get(type(value), "a number or bool")
            message = f"the value of {shown(key.name)} in data is {what}, and must be a string"
            yield Finding(NOT_A_STRING, manifest.place(key), message, NOT_A_STRING.fix)
