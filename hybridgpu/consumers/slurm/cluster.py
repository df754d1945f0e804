"""What is wrong with slurm.conf for the whole cluster once GPUs are in it: selection, hooks, accounting, devices.

Each is a rule of slurmctld or of the tasks' environment, not of a single node.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from hybridgpu.consumers.slurm import containerconf, namespaceconf, powersave
from hybridgpu.consumers.slurm.conf import DOUBLED_KEY, NodeRecord, SlurmFiles
from hybridgpu.consumers.slurm.environment import TASK_LOSES_GPUS, lost_by_order
from hybridgpu.consumers.slurm.includes import INCLUDE_NOT_GIVEN
from hybridgpu.consumers.slurm.nodegres import SHARED, Wanted
from hybridgpu.consumers.slurm.nodeline import node_names
from hybridgpu.consumers.slurm.plugins import task_plugins
from hybridgpu.consumers.slurm.release import Release
from hybridgpu.consumers.slurm.values import flag
from hybridgpu.consumers.slurm.verdict import Verdict
from hybridgpu.model.finding import Place, Related, Rule, Severity

NEEDS_CONS_TRES = Rule(
    "slurm-shares-need-cons-tres",
    Severity.ERROR,
    "mps and shard in GresTypes need select/cons_tres: slurmctld stops with a fatal error.",
    "Write SelectType=select/cons_tres.",
    "S:src/interfaces/gres.c gres_init",
)
TRES_WITHOUT_DBD = Rule(
    "slurm-tres-without-slurmdbd",
    Severity.ERROR,
    "AccountingStorageTRES with a GRES needs slurmdbd: slurmctld stops with a fatal error.",
    "Write AccountingStorageType=accounting_storage/slurmdbd, or leave the gres/ words out.",
    "slurmctld of 22.05, 24.11, 26.05: slurmdbd is required to run with TRES gres/gpu",
)
PROLOG_FLAG_UNKNOWN = Rule(
    "slurm-prolog-flag-unknown",
    Severity.ERROR,
    "Slurm does not know the flag: every daemon stops with a fatal error.",
    "Use a flag that the release knows.",
    "S:src/common/read_config.c prolog_str2flags",
)
PROLOG_FLAGS_FATAL = Rule(
    "slurm-prolog-flags-exclude",
    Severity.ERROR,
    "The settings exclude each other: every daemon stops with a fatal error.",
    "Leave one of them out.",
    "S:src/common/read_config.c _validate_and_set_defaults; slurmd -G of 22.05, 24.11, 26.05",
)
PROLOG_SERIAL_LOST = Rule(
    "slurm-prolog-serial-lost",
    Severity.ERROR,
    "Serial has no effect beside RunInJob: prologs and epilogs of a node run at the same time; each daemon logs it.",
    "Leave out Serial or RunInJob.",
    "S:src/slurmd/common/slurmd_common.c; S:src/common/read_config.c prolog_str2flags; slurmd -G of 24.11, 26.05",
    since="24.05",
)
NEEDS_CONTAIN = Rule(
    "slurm-namespace-needs-contain",
    Severity.ERROR,
    "Jobs get a namespace of their own only under PrologFlags=Contain: every daemon stops with a fatal error.",
    "Write PrologFlags=Contain.",
    "S:src/common/read_config.c _validate_and_set_defaults; slurmd -G of 22.05, 24.11, 26.05",
)
MPS_PROLOG_LATE = Rule(
    "slurm-mps-prolog-late",
    Severity.WARNING,
    "Without PrologFlags=Alloc (or Contain) the prolog runs at the job's first step only, and not at all on a node "
    "without a step: an MPS daemon that it starts comes late or never.",
    "Write PrologFlags=Contain.",
    "slurm.conf.5 PrologFlags",
)
MPS_PRIVATE_SHM = Rule(
    "slurm-mps-private-shm",
    Severity.WARNING,
    "Jobs get a /dev/shm of their own (job_container/tmpfs does it by default), and MPS clients need the daemon's.",
    "Write Dirs=/tmp in job_container.conf, which Slurm 22.05 does not know yet (dirs: /tmp in namespace.yaml).",
    "job_container.conf.5 Dirs; namespace.yaml.5; run on 22.05: the task sees /run, not the prolog's /dev/shm",
)
CONSTRAIN_OFF = Rule(
    "slurm-constrain-devices-off",
    Severity.WARNING,
    "ConstrainDevices is off: every task can open every GPU of the node; only CUDA_VISIBLE_DEVICES keeps jobs apart.",
    "Write ConstrainDevices=yes in cgroup.conf, and task/cgroup in TaskPlugin.",
    "cgroup.conf.5 ConstrainDevices; SlinkyProject/slurm-operator#45",
)
CONSTRAIN_UNUSED = Rule(
    "slurm-constrain-devices-unused",
    Severity.WARNING,
    "ConstrainDevices works in task/cgroup only, which TaskPlugin does not name: every task can open every GPU.",
    "Write TaskPlugin=task/cgroup,task/affinity.",
    "cgroup.conf.5 ConstrainDevices",
)

RULES = (
    *(NEEDS_CONS_TRES, TRES_WITHOUT_DBD, PROLOG_FLAG_UNKNOWN, PROLOG_FLAGS_FATAL, PROLOG_SERIAL_LOST, NEEDS_CONTAIN),
    *(MPS_PROLOG_LATE, MPS_PRIVATE_SHM),
    *(CONSTRAIN_OFF, CONSTRAIN_UNUSED, TASK_LOSES_GPUS),
)

PROFILE = re.compile(r"(?:^|[_.])[0-9]+g\.[0-9]+gb", re.IGNORECASE)
"""What the type of a MIG instance holds, with or without the card's name before it."""

_ADDS_UP = ("prolog", "epilog", "prologslurmctld", "epilogslurmctld")
_IMPLY_CONTAIN = frozenset(("contain", "runinjob", "x11"))
IMPLY_ALLOC = _IMPLY_CONTAIN | {"alloc", "deferbatch", "forcerequeueonfail", "nohold"}
"""Values of PrologFlags, in lower case, by which a prolog runs before its job (slurm.conf.5 PrologFlags)."""


@dataclass(frozen=True, slots=True)
class SeenNode:
    """A node line as judged: its record, and what its Gres= asks for."""

    node: NodeRecord
    wants: Mapping[str, Wanted]

    @property
    def place(self) -> Place:
        """Where Gres= stands."""
        gres = self.node.values.get("gres")
        return gres.place if gres else self.node.place

    @property
    def spelled(self) -> tuple[tuple[str, str], ...]:
        """Every (GRES name, type) as written in Gres=, those included that Slurm folds into another."""
        words = [token.partition("(")[0].split(":") for token in (self.node.text("gres") or "").split(",")]
        return tuple((parts[0], word) for parts in words for word in parts[1:-1] if word.lower() != "no_consume")


def judge(
    files: SlurmFiles, names: tuple[str, ...], seen: Mapping[int, SeenNode], release: Release, verdict: Verdict
) -> None:
    """All cluster-wide rules."""
    used = {name for node in seen.values() for name in node.wants}
    _judge_doubled(files, release, verdict)
    _judge_controller(files, names, release, verdict)
    _judge_prolog(files, used, release, verdict)
    _judge_shared_memory(files, seen, release, verdict)
    _judge_flags_together(files, release, verdict)
    _judge_devices(files, seen, used, release, verdict)
    powersave.judge(files, {node.node.text("gres") for node in seen.values() if "gpu" in node.wants}, release, verdict)
    types = files.setting("GresTypes")
    if types is not None:
        task_prolog = files.setting("TaskProlog") is not None or not files.complete
        lost = lost_by_order(names, used, task_prolog)
        if lost:
            verdict.note(TASK_LOSES_GPUS, types.place, f"GresTypes={types.value}: {lost}")


def _judge_doubled(files: SlurmFiles, release: Release, verdict: Verdict) -> None:
    for key, pairs in files.settings.items():
        if len(pairs) < 2 or (key in _ADDS_UP and release.prolog_lines_add_up):
            continue
        last = pairs[-1]
        related = [Related(pair.place, f"{pair.key}={pair.value} stands here") for pair in pairs[:-1]]
        message = f"{last.key} is there twice; {last.key}={last.value} holds"
        verdict.note(DOUBLED_KEY, last.place, message, related=related)


def _judge_controller(files: SlurmFiles, names: tuple[str, ...], release: Release, verdict: Verdict) -> None:
    """What slurmctld alone dies of: the nodes' daemons start."""
    select = files.setting("SelectType")
    value = select.value if select else release.select_default
    shared = [name for name in names if name in SHARED]
    if shared and value != "select/cons_tres" and value in release.setting_words["SelectType"]:
        types = files.setting("GresTypes")
        place = select.place if select else types.place if types else None
        verdict.note(
            NEEDS_CONS_TRES, place, f"GresTypes has {shared[0]}, but SelectType is {value}, not select/cons_tres"
        )
    tres, storage = files.setting("AccountingStorageTRES"), files.setting("AccountingStorageType")
    if tres and "gres/" in tres.value and (storage is None or not storage.value.endswith("slurmdbd")):
        message = f"AccountingStorageTRES={tres.value} without AccountingStorageType=accounting_storage/slurmdbd"
        verdict.note(TRES_WITHOUT_DBD, tres.place, message)


def _judge_prolog(files: SlurmFiles, used: set[str], release: Release, verdict: Verdict) -> None:
    flags = files.setting("PrologFlags")
    words = files.words("PrologFlags")
    known = {flag.lower() for flag in release.prolog_flags}
    for word in words:
        if flags and word.lower() not in known:
            message = f"PrologFlags={flags.value}: {word} is unknown to Slurm {release}; known are "
            verdict.die(PROLOG_FLAG_UNKNOWN, flags.place, message + ", ".join(release.prolog_flags))
    prolog = files.setting("Prolog")
    if "mps" in used and prolog and not IMPLY_ALLOC & {word.lower() for word in words}:
        place = flags.place if flags else prolog.place
        said = f"PrologFlags={flags.value} has" if flags else "there is no PrologFlags with"
        verdict.note(MPS_PROLOG_LATE, place, f"{said}{' no' if flags else ''} Alloc or Contain, and nodes have mps")


def _judge_shared_memory(files: SlurmFiles, seen: Mapping[int, SeenNode], release: Release, verdict: Verdict) -> None:
    """Nodes with mps whose jobs do not see the node's /dev/shm."""
    space = files.setting("NamespaceType") or files.setting("JobContainerType")
    gres = {node.node.text("gres") for node in seen.values() if "mps" in node.wants}
    if space is None or not gres:
        return
    nodes = [name for node in files.nodes if node.text("gres") in gres for name in node_names(node, release)]
    said = f"{space.key}={space.value}, and nodes have mps"
    dirs = None
    if "tmpfs" in space.value and files.container is not None:
        dirs = containerconf.private(files, nodes, release)
    elif "tmpfs" in space.value and nodes and files.container_known:
        verdict.note(MPS_PRIVATE_SHM, space.place, said)
    elif "linux" in space.value and files.namespace is not None:
        dirs = namespaceconf.private(*files.namespace, nodes, release)
    if dirs is not None and dirs.hides(containerconf.SHARED_MEMORY):
        related = [Related(space.place, f"{space.key}={space.value} stands here")]
        verdict.note(MPS_PRIVATE_SHM, dirs.place, f"{dirs.said}; {said}", related=related)


def _judge_flags_together(files: SlurmFiles, release: Release, verdict: Verdict) -> None:
    """Flags that exclude one another, or other settings. RunInJob and X11 bring Contain with them."""
    flags = files.setting("PrologFlags")
    words = {word.lower(): word for word in files.words("PrologFlags")}
    contains = next((word for key, word in words.items() if key in _IMPLY_CONTAIN), None)
    if flags and contains and "nohold" in words:
        message = f"PrologFlags={flags.value}: {words['nohold']} cannot stand beside {contains}"
        verdict.die(PROLOG_FLAGS_FATAL, flags.place, message)
    track = files.setting("ProctrackType")
    if flags and track and "x11" in words and track.value == "proctrack/linuxproc":
        related = [Related(track.place, f"{track.key}={track.value} stands here")]
        message = f"PrologFlags={flags.value}: {words['x11']} cannot stand beside {track.value}"
        verdict.die(PROLOG_FLAGS_FATAL, flags.place, message, related=related)
    if flags and "serial" in words and "runinjob" in words:
        message = f"PrologFlags={flags.value}: {words['serial']} has no effect beside {words['runinjob']}"
        verdict.note(PROLOG_SERIAL_LOST, flags.place, message)
    space = files.setting("NamespaceType") or files.setting("JobContainerType")
    private = space and ("tmpfs" in space.value or "NamespaceType" in release.conf_keys)
    if space and private and not contains and "none" not in space.value.lower():
        said = f"PrologFlags={flags.value}" if flags else "no PrologFlags"
        verdict.die(NEEDS_CONTAIN, space.place, f"{space.key}={space.value} with {said}, which lacks Contain")


def _judge_devices(
    files: SlurmFiles, seen: Mapping[int, SeenNode], used: set[str], release: Release, verdict: Verdict
) -> None:
    """cgroup.conf is judged only where it is among the inputs, and what it leaves out only where all of it is."""
    if files.cgroup is None or "gpu" not in used:
        return
    left_out = any(finding.rule is INCLUDE_NOT_GIVEN for finding in files.cgroup_findings)
    constrain = files.cgroup.get("constraindevices", (None,))[-1]
    plugin, plugins = files.setting("TaskPlugin"), task_plugins(files, release)
    if constrain is None and left_out:
        return
    if constrain is None or flag(constrain.value) is not True:
        said = f"ConstrainDevices={constrain.value}" if constrain else "ConstrainDevices is not set (default no)"
        place = constrain.place if constrain else Place(files.beside("cgroup.conf"), 1)
        related = [Related(node.place, f"nodes have {what}") for what, node in _divided(seen).items()]
        beside = (
            f", and nodes have {', '.join(_divided(seen))}: jobs on one card reach each other's part" if related else ""
        )
        verdict.note(CONSTRAIN_OFF, place, said + beside, related=related)
    elif plugin is not None and "task/cgroup" not in (plugins or ()):
        verdict.note(
            CONSTRAIN_UNUSED, plugin.place, f"TaskPlugin={plugin.value} without task/cgroup, ConstrainDevices=yes"
        )


def _divided(seen: Mapping[int, SeenNode]) -> dict[str, SeenNode]:
    """What cards are divided into on some node, and the first node with it: `mps`, `shard`, MIG instances."""
    found: dict[str, SeenNode] = {}
    for node in seen.values():
        for kind in SHARED:
            if kind in node.wants:
                found.setdefault(kind, node)
        gpu = node.wants.get("gpu")
        if gpu and any(PROFILE.search(kind) for kind, _ in gpu.types):
            found.setdefault("MIG instances", node)
    return found
