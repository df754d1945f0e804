"""The `slurm:` block: the cluster's release, and what its files have besides GPUs, for rendering to merge with.

What hybridgpu writes itself, as it stands in files that it has rendered before, is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from hybridgpu.consumers.slurm import Release, SlurmFiles
from hybridgpu.consumers.slurm.nodegres import SHARED
from hybridgpu.files.slurmlines import Pair
from hybridgpu.inventory.importer.document import Block, Entry
from hybridgpu.inventory.importer.fold import fold_hosts
from hybridgpu.inventory.importer.greslines import Detection
from hybridgpu.inventory.importer.nodes import NodeDraft
from hybridgpu.inventory.importer.told import Told
from hybridgpu.inventory.nodekeys import OUR_GRES, is_reserved
from hybridgpu.inventory.schema import GRES_NAME, HOST, PATH, SCRIPT, TRES, VALUE, WORD
from hybridgpu.inventory.shape import Text
from hybridgpu.model.finding import Rule, Severity
from hybridgpu.model.sharing import Mode, Scheduler
from hybridgpu.model.site import KUBERNETES_CARDS

SETTING_LOST = Rule(
    "import-setting-lost",
    Severity.ERROR,
    "An inventory cannot hold the value, and the rendered file, which takes the key over, would lack it.",
    "Write the value in a form that docs/inventory.md allows, and import again.",
    "docs/inventory.md",
)
TASK_PROLOG_HIDDEN = Rule(
    "import-task-prolog-hidden",
    Severity.WARNING,
    "TaskProlog is hybridgpu's, which runs what is in /etc/slurm/taskprolog.d; the site's own there is not named in "
    "these files.",
    "If a node has one there, add it as slurm.site.taskProlog.",
    "hybridgpu",
)
DETECTIONS_DIFFER = Rule(
    "import-autodetect-differs",
    Severity.WARNING,
    "AutoDetect is off, nvml or nvidia, and one for all nodes of an inventory: rendered files name the devices of "
    "these nodes instead, without Cores and Links where there are no facts.",
    "Render with facts (`hybridgpu render --facts`), or set autoDetect if all nodes can have the same.",
    "docs/inventory.md",
)

OUR_TASK_PROLOG = "/usr/lib/hybridgpu/taskprolog"
_OUR_HOOK = re.compile(r"(?P<dir>/.*)/(?:prolog|epilog)\.d/50-hybridgpu")
_DEFAULT_DIR = "/etc/slurm"
_TAKEN = ("off", "nvml", "nvidia")


@dataclass(frozen=True, slots=True)
class Site:
    """What the block is made from. `drafts` are the nodes in Slurm, `autodetect` is what all of them get, and `raw` are
    the lines of gres.conf that stay as they are."""

    files: SlurmFiles
    release: Release
    release_guess: str
    drafts: Sequence[NodeDraft]
    autodetect: str
    raw: Sequence[str]

    @property
    def hooks_wanted(self) -> bool:
        """Whether rendering names hybridgpu's hooks."""
        mine = [node for node in self.drafts if not node.schedulers or Scheduler.SLURM in node.schedulers]
        cut = any(node.shares.mode is Mode.MIG for node in mine) and self.autodetect != "nvml"
        both = set(SHARED) <= {*self.files.words("GresTypes"), *filter(None, map(_shared, mine))}
        return cut or both or any(node.shares.mode is Mode.MPS for node in mine)


def _shared(node: NodeDraft) -> str | None:
    return {Mode.MPS: "mps", Mode.TIME_SLICING: "shard"}.get(node.shares.mode)


def slurm_block(site: Site, told: Told) -> Block:
    """The block; what it cannot hold goes into `told`."""
    entries = [Entry("version", site.release.major, site.release_guess), Entry("autoDetect", site.autodetect)]
    storage = site.files.setting("AccountingStorageType")
    tres = site.files.setting("AccountingStorageTRES")
    dbd = storage is not None and storage.value.endswith("slurmdbd")
    if dbd or (storage is None and tres is not None):
        why = "" if dbd else "AccountingStorageTRES is set, which slurmctld refuses without it"
        entries.append(Entry("accounting", "slurmdbd", why))
    controllers = [host for host in _controllers(site.files) if re.fullmatch(HOST.pattern, host)]
    entries += [Entry("controllers", controllers)] if controllers else []
    hooks = list(_hooks(site))
    entries += [Entry("hooks", Block(tuple(hooks)))] if hooks else []
    own = [entry for entry in _site(site, told, dbd) if entry.value]
    entries += [Entry("site", Block(tuple(own)))] if own else []
    return Block(tuple(entries), tall=True)


def _controllers(files: SlurmFiles) -> Iterator[str]:
    for line in files.records.get("slurmctldhost", ()):
        yield line.pairs[0].value.partition("(")[0]


def _site(site: Site, told: Told, dbd: bool) -> Iterator[Entry]:
    """The keys of slurm.site, in the order of the schema."""
    files = site.files
    shared = set(map(_shared, site.drafts))
    types = [
        name
        for name in files.words("GresTypes")
        if name not in ("gpu", KUBERNETES_CARDS, *shared) and (name in SHARED or not is_reserved(name))
    ]
    place = files.setting("GresTypes")
    yield Entry("gresTypes", _allowed(types, GRES_NAME, place, told))
    yield Entry("gres", list(site.raw))
    yield from (_scripts(site, key, told) for key in ("Prolog", "Epilog"))
    yield from _task_prolog(site, told)
    flags = files.setting("PrologFlags")
    words = list(dict.fromkeys(files.words("PrologFlags")))
    daemons = any(node.shares.mode is Mode.MPS for node in site.drafts)
    if daemons and words and words[-1].lower() == "contain":
        words.pop()
    if daemons and flags and any(word.lower() == "nohold" for word in words):
        told.add(SETTING_LOST, flags.place, "PrologFlags: NoHold cannot stand beside Contain, which mode mps needs")
        words = [word for word in words if word.lower() != "nohold"]
    yield Entry("prologFlags", _allowed(words, WORD, flags, told))
    if dbd or files.setting("AccountingStorageType") is None:
        tres = files.setting("AccountingStorageTRES")
        yield Entry("accountingStorageTRES", _allowed(_tracked(site), TRES, tres, told))
    yield Entry("cgroup", _cgroup(files, told))


def _allowed(words: Sequence[str], shape: Text, place: Pair | None, told: Told) -> list[str]:
    """The words that an inventory can hold; the others are told."""
    bad = [word for word in words if not re.fullmatch(shape.pattern, word) or len(word) > shape.longest]
    for word in bad:
        what = f"{place.key}: " if place else ""
        told.add(SETTING_LOST, place.place if place else None, f"{what}{word} cannot stand in an inventory")
    return [word for word in words if word not in bad]


def _scripts(site: Site, key: str, told: Told) -> Entry:
    """Prolog or Epilog. Several lines add up where the release says so, else the last one holds."""
    pairs = site.files.settings.get(key.lower(), ())
    if not site.release.prolog_lines_add_up:
        pairs = pairs[-1:]
    paths, why = [], ""
    for pair in pairs:
        path = pair.value
        if _OUR_HOOK.fullmatch(path) and site.hooks_wanted:
            continue
        if path and not path.startswith("/"):
            path, why = f"{_DEFAULT_DIR}/{path}", f"{pair.value} is a path beside slurm.conf"
        paths += _allowed([path], SCRIPT, pair, told) if path else []
    return Entry(key.lower(), paths, why)


def _task_prolog(site: Site, told: Told) -> Iterator[Entry]:
    pair = site.files.setting("TaskProlog")
    if pair is None or not pair.value:
        return
    if pair.value == OUR_TASK_PROLOG and site.hooks_wanted:
        told.add(TASK_PROLOG_HIDDEN, pair.place, f"TaskProlog={pair.value} is hybridgpu's own")
        return
    path, why = pair.value, ""
    if not path.startswith("/"):
        path, why = f"{_DEFAULT_DIR}/{path}", f"{pair.value} is a path beside slurm.conf"
    if _allowed([path], PATH, pair, told):
        yield Entry("taskProlog", path, why)


def _hooks(site: Site) -> Iterator[Entry]:
    """Where hybridgpu's hooks are, if they are there; switched off where they would take the place of the site's."""
    if not site.hooks_wanted:
        return
    pairs = [pair for key in ("prolog", "epilog") for pair in site.files.settings.get(key, ())]
    ours = next((found["dir"] for pair in pairs if (found := _OUR_HOOK.fullmatch(pair.value))), _DEFAULT_DIR)
    if ours != _DEFAULT_DIR and re.fullmatch(PATH.pattern, ours):
        yield Entry("dir", ours)
    hook = PurePosixPath(ours, "prolog.d", "50-hybridgpu")
    epilog = PurePosixPath(ours, "epilog.d", "50-hybridgpu")
    own = [pair for pair in pairs if pair.value and not any(path.match(pair.value) for path in (hook, epilog))]
    if own and not site.release.prolog_lines_add_up:
        why = f"Slurm {site.release} takes one line of {own[0].key}, and {own[0].value} stands there"
        yield Entry("enabled", False, why)


def _tracked(site: Site) -> list[str]:
    """AccountingStorageTRES without what rendering adds at its end anyway."""
    words = list(dict.fromkeys(site.files.words("AccountingStorageTRES")))
    added = {f"gres/{name}" for name in (*OUR_GRES, *site.files.words("GresTypes")) if name != KUBERNETES_CARDS}
    kept = [word for word in words if word not in added]
    return kept if words[: len(kept)] == kept else words


def _cgroup(files: SlurmFiles, told: Told) -> dict[str, str]:
    keys: dict[str, str] = {}
    for pairs in (files.cgroup or {}).values():
        pair = pairs[-1]
        if _allowed([pair.value], VALUE, pair, told) and _allowed([pair.key], WORD, pair, told):
            keys[pair.key] = pair.value
    last = next(reversed(keys), "")
    if last.lower() == "constraindevices" and keys[last].lower() == "yes":
        del keys[last]
    return keys


def autodetect_of(found: Mapping[str, Detection], told: Told) -> str:
    """The AutoDetect of an inventory whose nodes have these; `off`, with all devices named, where they differ."""
    values = {detection.value for detection in found.values()}
    if not values or (len(values) == 1 and values <= set(_TAKEN)):
        return values.pop() if values else "off"
    by_value: dict[str, list[str]] = {}
    for node, detection in found.items():
        by_value.setdefault(detection.value, []).append(node)
    for value, nodes in by_value.items():
        pair = found[nodes[0]].pair
        if value != "off":
            told.add(DETECTIONS_DIFFER, pair.place if pair else None, f"{fold_hosts(nodes)}: AutoDetect={value}")
    return "off"
