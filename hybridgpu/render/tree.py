"""The whole rendered tree as paths and contents, and what of an older tree must be remembered. Touches no file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial

from hybridgpu.files.stamp import group_id, stamp
from hybridgpu.files.tree import Content
from hybridgpu.model.site import NodeConfig, Site
from hybridgpu.render.kubernetes.files import kubernetes_files
from hybridgpu.render.node import node_body, node_file
from hybridgpu.render.text import slurm_files

FOLDERS = {
    "slurm": re.compile(r"(gres|nodes|gpu|cgroup)\.conf"),
    "kubernetes/chart": re.compile(r"nfd\.yaml|(values|daemonset)-[0-9a-f]{10}\.yaml"),
    "kubernetes/operator": re.compile(r"(configmap-(device-plugin|mig-parted)|clusterpolicy-patch|helm-values)\.yaml"),
    "nodes": re.compile(r"[^/]+\.json"),
}
"""The folders we write to, and which names in them could be ours."""

PARTS = ("slurm", "kubernetes", "nodes")
"""What --only names."""

SYNCED = ("slurm", "kubernetes/chart", "kubernetes/operator")
"""Folders whose files are on disk before the command ends: a scheduler may load them right after."""


def render_tree(site: Site) -> dict[str, Content]:
    """Relative path -> content, stamped. Node files are made when asked for: ten thousand are not held at once."""
    files: dict[str, Content] = {}
    for part, texts in (("slurm", dict(slurm_files(site))), ("kubernetes", kubernetes_files(site))):
        group = group_id(texts)
        for name, text in texts.items():
            files[f"{part}/{name}"] = partial(stamp, name, text, group)
    bodies: dict[int, str] = {}
    for config in site.nodes.values():
        body = bodies.get(id(config.body))
        if body is None:
            body = bodies[id(config.body)] = node_body(site, config.body)
        files[f"nodes/{config.name}.json"] = partial(_node_content, config, body)
    return files


def slurm_texts(files: Mapping[str, Content]) -> dict[str, str]:
    """The Slurm files of a rendered tree as slurmd will read them: name -> text."""
    return {path.split("/", 1)[1]: files[path]().decode() for path in files if path.startswith("slurm/")}


def _node_content(config: NodeConfig, body: str) -> bytes:
    return stamp("node.json", node_file(config, body))
