"""The `slurm:` block: the cluster's Slurm settings, and what its site has already: merged with, never replaced."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hybridgpu.consumers.slurm.release import NEWEST, RELEASES, Release, history
from hybridgpu.files.quoting import listed, shown
from hybridgpu.files.yamltree import Mapping, Node, Scalar, Unreadable
from hybridgpu.inventory.classes import read_release
from hybridgpu.inventory.clean import flag, nearest_short, word, words
from hybridgpu.inventory.entries import NodeGroup, SlurmSettings
from hybridgpu.inventory.nodekeys import OUR_GRES, is_reserved
from hybridgpu.inventory.places import site_places
from hybridgpu.inventory.report import Report
from hybridgpu.inventory.slurmfiles import Reader
from hybridgpu.model.finding import Rule, Severity
from hybridgpu.model.naming import gres_id
from hybridgpu.model.sharing import Scheduler
from hybridgpu.model.site import KUBERNETES_CARDS, SlurmCluster, SlurmSite

AUTODETECT = Rule(
    "inventory-autodetect-unknown-to-release",
    Severity.ERROR,
    "slurmd logs an error and goes on as if AutoDetect were not set.",
    "Use a value that this release knows.",
    "S:src/interfaces/gres.c _handle_autodetect_flags",
)
PROLOG_FLAG = Rule(
    "inventory-unknown-prolog-flag",
    Severity.ERROR,
    "slurmctld and slurmd do not start.",
    "Use a flag that this release knows.",
    "S:src/common/read_config.c prolog_str2flags",
)
TRES_WITHOUT_SLURMDBD = Rule(
    "inventory-tres-without-slurmdbd",
    Severity.ERROR,
    "slurmctld does not start: slurmdbd is required to run with these TRES.",
    "Set accounting: slurmdbd if it runs, or remove accountingStorageTRES.",
    "measured: 22.05.8, 24.11.5, 26.05.5",
)
RESERVED_GRES = Rule(
    "inventory-reserved-gres",
    Severity.ERROR,
    "The name stands for a GRES that hybridgpu alone writes, or is the same to Slurm as one of those.",
    "Choose another name.",
    "S:src/interfaces/gres.c gres_build_id",
)
GRES_CASE = Rule(
    "inventory-gres-names-differ-in-case",
    Severity.ERROR,
    "slurmd takes the two for one name, and slurmctld for two.",
    "Write the name in one way everywhere.",
    "S:src/interfaces/gres.c gres_node_config_unpack",
)

HOOKS_OFF = Rule(
    "inventory-hooks-off",
    Severity.WARNING,
    "Slurm's mps GRES starts no daemon: without hybridgpu's hooks a job with --gres=mps runs as if it had none.",
    "Remove `enabled: false`, or start a daemon per job by scripts of your own.",
    "S:src/plugins/gres/mps/gres_mps.c: it sets variables only",
)


@dataclass(frozen=True, slots=True)
class ReadSlurm:
    """The block as far as it is right; `release` is the version's, the newest known where none is given."""

    settings: SlurmSettings
    release: Release
    block: Mapping | None


def read_slurm(node: Node, report: Report, instead: Release | None = None) -> ReadSlurm:
    """The clean `slurm:` block; what is wrong in it is reported. `instead` is taken for its version."""
    block = node if isinstance(node, Mapping) else None
    version = block.scalar("version") if block else None
    named = instead or (read_release(version, report) if version else None)
    known = named or NEWEST
    site = block.mapping("site") if block else None
    hooks, consent = (block.mapping("hooks"), block.mapping("consent")) if block else (None, None)
    _judge(block, site, known, report)
    cluster = SlurmCluster(
        version=known.major,
        accounting=word(block, "accounting", "none"),
        conf_dir=word(block, "confDir", "/etc/slurm"),
        hooks_dir=word(hooks, "dir", "/etc/slurm"),
        hooks_enabled=flag(hooks, "enabled", True),
        site=_site(site),
    )
    settings = SlurmSettings(
        cluster=cluster,
        version=named.major if named else None,
        autodetect=word(block, "autoDetect", "off"),
        controllers=words(block, "controllers"),
        ssh_user=word(block, "sshUser", "root"),
        consent_restart_controller=flag(consent, "restartController", False),
        place=report.place(node),
        places=site_places(block, report),
    )
    return ReadSlurm(settings, known, block)


def judge_hooks(slurm: ReadSlurm, groups: Iterable[NodeGroup], report: Report) -> None:
    """Reports hooks that are switched off where a node needs them to start MPS daemons."""
    hooks = slurm.block.mapping("hooks") if slurm.block else None
    enabled = hooks.scalar("enabled") if hooks else None
    if enabled is None or slurm.settings.cluster.hooks_enabled:
        return
    needing = next((g for g in groups if Scheduler.SLURM in g.schedulers and g.sharing.daemons), None)
    if needing:
        related = ((needing.place, "an entry that needs them"),)
        report.add(HOOKS_OFF, enabled, f"hooks are off, and {needing.hosts[0]} needs MPS daemons", related=related)


def judge_autodetect(block: Mapping | None, known: Release, report: Report, where: Scalar | None = None) -> None:
    """Reports an autoDetect that the release does not know, at its place or at `where`, which names the release."""
    value = block.scalar("autoDetect") if block else None
    if value and value.text not in known.autodetect:
        message = f"Slurm {known} knows no AutoDetect={value.text}; allowed: {listed(known.autodetect)}"
        since = next((r.major for r in RELEASES.values() if value.text in r.autodetect), None)
        report.add(AUTODETECT, where or value, message, f"{value.text} came with Slurm {since}." if since else "")


def _site(block: Mapping | None) -> SlurmSite:
    cgroup = block.mapping("cgroup") if block else None
    return SlurmSite(
        gres_types=words(block, "gresTypes"),
        gres=words(block, "gres"),
        prolog=words(block, "prolog"),
        epilog=words(block, "epilog"),
        task_prolog=word(block, "taskProlog", "") or None,
        prolog_flags=words(block, "prologFlags"),
        accounting_tres=words(block, "accountingStorageTRES"),
        cgroup=tuple((k.text, v.text) for k, v in (cgroup.entries if cgroup else ()) if isinstance(v, Scalar)),
    )


def _judge(block: Mapping | None, site: Mapping | None, known: Release, report: Report) -> None:
    judge_autodetect(block, known, report)
    if block is None or site is None:
        return
    first: dict[str, Scalar] = {}
    for name in site.scalars("gresTypes"):
        other = first.setdefault(name.text.lower(), name)
        if not _judge_gres_name(name, report) and other.text != name.text:
            message = f"the GRES {shown(name.text)} is {other.text} in other letters"
            report.add(GRES_CASE, name, message, f"Write {other.text}.", ((other, other.text),))
    tres = site.scalars("accountingStorageTRES")
    if tres and word(block, "accounting", "none") == "none" and not isinstance(block.get("accounting"), Unreadable):
        message = f"accountingStorageTRES {listed(t.text for t in tres)} with accounting: none"
        report.add(TRES_WITHOUT_SLURMDBD, tres[0], message)


def judge_prolog_flags(slurm: ReadSlurm, readers: Iterable[Reader], report: Report) -> None:
    """Reports PrologFlags that a release in use does not know. Slurm compares them without their case."""
    site = slurm.block.mapping("site") if slurm.block else None
    told: set[Scalar] = set()
    for reader in readers:
        allowed = reader.release.prolog_flags
        for value in site.scalars("prologFlags") if site else ():
            if value in told or value.text.lower() in {known.lower() for known in allowed}:
                continue
            told.add(value)
            right = nearest_short(value.text, allowed)
            past = history(value.text, reader.release, lambda record: record.prolog_flags)
            hint = f"{value.text} {past}." if past else f"Did you mean {right}?" if right else ""
            message = (
                f"{shown(value.text)} is none of the PrologFlags of Slurm {reader.release}; allowed: {listed(allowed)}"
            )
            report.add(PROLOG_FLAG, value, message + reader.told("gpu.conf"), hint)


def _judge_gres_name(name: Scalar, report: Report) -> bool:
    """Reports a name that a site may not list: it may gpu, mps and shard, but neither our own GRES nor one that Slurm
    cannot tell from these. Gives whether there was something to report."""
    lower = name.text.lower()
    if lower == KUBERNETES_CARDS:
        report.add(RESERVED_GRES, name, f"the GRES {name.text} is hybridgpu's own")
    elif name.text in OUR_GRES or not is_reserved(name.text):
        return False
    elif lower in OUR_GRES:
        message = (
            f"the GRES {shown(name.text)} is {lower} in other letters: slurmd takes them for one, slurmctld for two"
        )
        report.add(RESERVED_GRES, name, message, f"Write {lower}.")
    else:
        ours = next(ours for ours in OUR_GRES if gres_id(name.text) == gres_id(ours))
        report.add(RESERVED_GRES, name, f"to Slurm the GRES {shown(name.text)} is {ours}: both have one id")
    return True
