"""What rendering an inventory over a folder would do, proven: the wanted files, the plan, and every finding on the way.

`check` asks for it to find what `render` would refuse; `render` carries it out. Nothing is written here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from hybridgpu.check.origin import at_origin
from hybridgpu.errors import Refused
from hybridgpu.files.tree import Content, TreePlan, compare, read_file
from hybridgpu.inventory.load import Loaded
from hybridgpu.model.finding import Finding, Place, Rule, Severity
from hybridgpu.model.site import Site
from hybridgpu.render.kubernetes.proof import prove_kubernetes
from hybridgpu.render.proof import prove
from hybridgpu.render.retained import retained_from
from hybridgpu.render.slurm import gres_types
from hybridgpu.render.tree import FOLDERS, render_tree

GRES_TYPES_KEPT = Rule(
    "render-gres-types-kept",
    Severity.INFO,
    "GresTypes keeps a name that no node needs any more: a pending job that asks for a name which went away runs "
    "without its GPU once the name is back.",
    "Render with --forget when no such job is left.",
    "measured on 22.05, 24.11, 26.05",
)


@dataclass(frozen=True, slots=True)
class Rendering:
    """The files to write by relative path, what writing them changes, and all findings, none of them an error."""

    wanted: Mapping[str, Content]
    plan: TreePlan
    findings: tuple[Finding, ...]


def rendered(loaded: Loaded, root: Path, *, only: str | None, forget: bool) -> Rendering:
    """Renders the site of `loaded` over the folder `root`. Raises Refused where that would not offer what is asked.

    `only`: one part of the tree alone. `forget`: what the tree at `root` obliges us to keep is dropped.
    """
    site = loaded.site
    assert site is not None  # noqa: S101 - the caller refuses an inventory with errors
    findings = list(loaded.findings)
    if not forget:
        retained, unreadable = retained_from(_there(root))
        findings += (replace(f, place=Place(str(root / f.place.file), 1)) for f in unreadable if f.place)
        kept = [name for name in retained.gres_types if name not in gres_types(site)]
        site = replace(site, retained=retained)
        if kept and site.slurm:
            place = Place(str(root / "slurm/gpu.conf"), 1)
            message = f"GresTypes keeps {', '.join(kept)}, which the tree there has"
            findings.append(Finding(GRES_TYPES_KEPT, place, message, GRES_TYPES_KEPT.fix))
    files = render_tree(site)
    findings += proven(loaded, site, files)
    if any(finding.is_error for finding in findings):
        raise Refused(findings)
    wanted = {path: content for path, content in files.items() if only in (None, path.split("/", 1)[0])}
    folders = {folder: names for folder, names in FOLDERS.items() if only in (None, folder.split("/", 1)[0])}
    return Rendering(wanted, compare(root, wanted, folders), tuple(findings))


def _there(root: Path) -> dict[str, bytes]:
    """What of the tree at `root` is asked what must be kept: gpu.conf, and everything of Kubernetes' half."""
    paths = ["slurm/gpu.conf"]
    for folder, names in FOLDERS.items():
        if folder.startswith("kubernetes/") and (root / folder).is_dir():
            paths += [f"{folder}/{path.name}" for path in (root / folder).iterdir() if names.fullmatch(path.name)]
    found = ((path, read_file(root, path)) for path in paths)
    return {path: content for path, content in found if content is not None}


def proven(loaded: Loaded, site: Site, files: Mapping[str, Content]) -> Iterator[Finding]:
    """What is found in the rendered files, told at the places of the inventory; what reading it told is left out."""
    assert loaded.inventory is not None  # noqa: S101 - there is a Site, so there is an Inventory
    told: dict[str, str] = {}
    for finding in loaded.findings:
        told[finding.rule.id] = f"{told.get(finding.rule.id, '')}{finding.message}\n"
    found = (
        f for f in (*prove(site, files), *prove_kubernetes(site, files)) if f.message not in told.get(f.rule.id, "")
    )
    yield from at_origin(found, loaded.inventory, files)


def unrendered(loaded: Loaded) -> Iterator[Finding]:
    """What rendering would find, where nothing is there yet."""
    if loaded.site:
        yield from proven(loaded, loaded.site, render_tree(loaded.site))
