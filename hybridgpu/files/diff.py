"""What a tree plan would change, as a unified diff; nodes with the same change are shown once, as clubak does."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

from hybridgpu.files.stamp import without_stamp
from hybridgpu.files.tree import Content, TreePlan, read_file

Change = tuple[str, str]


def unified(root: Path, plan: TreePlan, wanted: Mapping[str, Content]) -> Iterator[str]:
    """Lines without their newline. Stamps are left out: they change with every byte and say nothing."""
    groups: dict[Change, list[str]] = {}
    for path in sorted({*plan.create, *plan.replace, *plan.remove, *(o.path for o in plan.obstacles)}):
        before = _shown(path, read_file(root, path) or b"")
        after = _shown(path, wanted[path]() if path in wanted else b"")
        groups.setdefault((before, after), []).append(path)
    for (before, after), paths in groups.items():
        name = fold_paths(paths)
        old, new = before.splitlines(), after.splitlines()
        yield from difflib.unified_diff(old, new, f"a/{name}" if old else "/dev/null", f"b/{name}", lineterm="")


def fold_paths(paths: list[str]) -> str:
    """Paths as one word: `nodes/gpu[001-032].json`."""
    if len(paths) == 1:
        return paths[0]
    from ClusterShell.NodeSet import NodeSet

    first = PurePosixPath(paths[0])
    return f"{first.parent}/{NodeSet.fromlist([PurePosixPath(p).stem for p in paths])}{first.suffix}"


def _shown(path: str, content: bytes) -> str:
    """The content as it is compared: a node's own name becomes NAME, so that equal changes look equal."""
    text = without_stamp(content).decode("utf-8", "replace")
    name = PurePosixPath(path)
    return text.replace(f'"{name.stem}"', '"NAME"') if name.suffix == ".json" else text
