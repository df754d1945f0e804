"""namespace.yaml: which directories a job has to itself under NamespaceType=namespace/linux.

Only that is read of it; a file that cannot be read as YAML, or not in full, says nothing here. Source:
S:src/plugins/namespace/linux/read_nsconf.c; namespace.yaml.5.
"""

from __future__ import annotations

from collections.abc import Iterable

from hybridgpu.consumers.slurm.containerconf import DEFAULT_DIRS, SHARED_MEMORY, Private
from hybridgpu.consumers.slurm.hostlist import BadHostlist, expand
from hybridgpu.consumers.slurm.release import Release
from hybridgpu.files.yamltree import Mapping, Node, Scalar, one_document, parse_yaml
from hybridgpu.model.finding import Place


def private(path: str, text: str, nodes: Iterable[str], release: Release) -> Private | None:
    """What the jobs of these nodes have to themselves; None where the plugin is off there, or where that is not known.

    Where the nodes differ, the first that has /dev/shm to itself counts.
    """
    tree = parse_yaml(path, text)
    document, _ = one_document(path, tree)
    if tree.findings or not isinstance(document, Mapping):
        return None
    defaults = document.mapping("defaults")
    own = [
        (_hosts(item.get("nodes"), release), item.mapping("options"))
        for item in document.items("node_confs")
        if isinstance(item, Mapping)
    ]
    found = dict.fromkeys(
        _of(path, defaults, next((options for hosts, options in own if node in hosts), None)) for node in nodes
    )
    there = [one for one in found if one is not None]
    return next((one for one in there if one.hides(SHARED_MEMORY)), there[0] if there else None)


def _hosts(nodes: Node | None, release: Release) -> frozenset[str]:
    words = [nodes] if isinstance(nodes, Scalar) else getattr(nodes, "items", ())
    found: set[str] = set()
    for word in words:
        try:
            found.update(expand(word.text, release.hostlist_suffix) if isinstance(word, Scalar) else ())
        except BadHostlist:
            continue
    return frozenset(found)


def _of(path: str, defaults: Mapping | None, options: Mapping | None) -> Private | None:
    """A node's own options come before the defaults, key by key; dir_confs before dirs."""
    sources = [one for one in (options, defaults) if one is not None]
    base = next((scalar for one in sources if (scalar := one.scalar("base_path"))), None)
    if base is None or base.text.lower().startswith("none"):
        return None
    for one in sources:
        confs = [item.scalar("path") for item in one.items("dir_confs") if isinstance(item, Mapping)]
        dirs = tuple(scalar.text for scalar in confs if scalar)
        key = one.key("dir_confs")
        if key and dirs:
            return Private(dirs, Place(path, key.line, key.column), f"dir_confs: {', '.join(dirs)}")
    for one in sources:
        listed = one.scalar("dirs")
        if listed and listed.text:
            dirs = tuple(word for word in listed.text.split(",") if word)
            return Private(dirs, Place(path, listed.line, listed.column), f"dirs: {listed.text}")
    said = f"base_path: {base.text} without dirs, which is {DEFAULT_DIRS} then"
    return Private(tuple(DEFAULT_DIRS.split(",")), Place(path, base.line, base.column), said)
