"""The `slurm:` block: the cluster's Slurm settings, and what its site has already: merged with, never replaced."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hybridgpu.consumers.slurm.release import NEWEST, RELEASES, Release
from hybridgpu.files.quoting import listed, shown
from hybridgpu.files.yamltree import Mapping, Node, Scalar, Unreadable
from hybridgpu.inventory.classes import read_release
from hybridgpu.inventory.clean import flag, nearest_short, word, words
from hybridgpu.inventory.entries import NodeGroup, SlurmSettings
from hybridgpu.inventory.nodekeys import OUR_GRES
from hybridgpu.inventory.places import site_places
from hybridgpu.inventory.report import Report
from hybridgpu.model.finding import Rule, Severity
from hybridgpu.model.naming import gres_id
from hybridgpu.model.sharing import Scheduler
from hybridgpu.model.site import SlurmCluster, SlurmSite

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
CGROUP_KEY = Rule(
    "inventory-unknown-cgroup-key",
    Severity.ERROR,
    "slurmd does not start: the key is unknown in cgroup.conf.",
    "Use a key of cgroup.conf(5).",
    "S:src/interfaces/cgroup.c",
)

HOOKS_OFF = Rule(
    "inventory-hooks-off",
    Severity.WARNING,
    "Slurm's mps GRES starts no daemon: without hybridgpu's hooks a job with --gres=mps runs as if it had none.",
    "Remove `enabled: false`, or start a daemon per job by scripts of your own.",
    "S:src/plugins/gres/mps/gres_mps.c: it sets variables only",
)

# fmt: off
_CGROUP_KEYS = (
    "AllowedDevicesFile", "AllowedKmemSpace", "AllowedRAMSpace", "AllowedSwapSpace", "CgroupAutomount",
    "CgroupMountpoint", "CgroupPlugin", "CgroupReleaseAgentDir", "ConstrainCores", "ConstrainDevices",
    "ConstrainKmemSpace", "ConstrainRAMSpace", "ConstrainSwapSpace", "EnableControllers", "EnableExtraControllers",
    "IgnoreSystemd", "IgnoreSystemdOnFailure", "MaxKmemPercent", "MaxRAMPercent", "MaxSwapPercent",
    "MemoryLimitEnforcement", "MemoryLimitThreshold", "MemorySwappiness", "MinKmemSpace", "MinRAMSpace",
    "SignalChildrenProcesses", "SystemdTimeout",
)
# fmt: on


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
    for flag_word in site.scalars("prologFlags"):
        _judge_word(PROLOG_FLAG, flag_word, f"PrologFlags of Slurm {known}", known.prolog_flags, report)
    for name in site.scalars("gresTypes"):
        _judge_gres_name(name, report)
    cgroup = site.mapping("cgroup")
    for key, _ in cgroup.entries if cgroup else ():
        _judge_word(CGROUP_KEY, key, "keys of cgroup.conf", _CGROUP_KEYS, report)
    tres = site.scalars("accountingStorageTRES")
    if tres and word(block, "accounting", "none") == "none" and not isinstance(block.get("accounting"), Unreadable):
        message = f"accountingStorageTRES {listed(t.text for t in tres)} with accounting: none"
        report.add(TRES_WITHOUT_SLURMDBD, tres[0], message)


def _judge_word(rule: Rule, value: Scalar, what: str, allowed: tuple[str, ...], report: Report) -> None:
    """Slurm compares these words without their case."""
    if value.text.lower() not in {known.lower() for known in allowed}:
        right = nearest_short(value.text, allowed)
        message = f"{shown(value.text)} is none of the {what}; allowed: {listed(allowed)}"
        report.add(rule, value, message, f"Did you mean {right}?" if right else "")


def _judge_gres_name(name: Scalar, report: Report) -> None:
    """A site may list gpu, mps and shard; not our own GRES, nor one that Slurm cannot tell from these."""
    if name.text == "hybridgpu_k8s":
        report.add(RESERVED_GRES, name, "the GRES hybridgpu_k8s is hybridgpu's own")
    for ours in OUR_GRES:
        if name.text != ours and gres_id(name.text) == gres_id(ours):
            report.add(RESERVED_GRES, name, f"to Slurm the GRES {shown(name.text)} is {ours}: both have one id")
