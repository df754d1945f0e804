"""Power saving: which nodes Slurm may switch off while somebody else has closed them.

Source: S:src/slurmctld/power_save.c; run on 22.05 and 24.11: SuspendProgram was called on an idle drained node.
"""

from __future__ import annotations

from collections.abc import Collection

from hybridgpu.consumers.slurm.conf import NodeRecord, SlurmFiles
from hybridgpu.consumers.slurm.hostlist import BadHostlist, expand
from hybridgpu.consumers.slurm.nodeline import node_names
from hybridgpu.consumers.slurm.partitions import Memberships, joined, partitions
from hybridgpu.consumers.slurm.release import Release
from hybridgpu.consumers.slurm.settingchecks import NEVER_SUSPENDS, PARTITION_NEVER_SUSPENDS
from hybridgpu.consumers.slurm.verdict import Verdict
from hybridgpu.model.finding import Related, Rule, Severity

CLOSED_SUSPENDED = Rule(
    "slurm-suspends-closed-nodes",
    Severity.WARNING,
    "Power saving switches off drained and reserved nodes too: one that is closed for a change, or Kubernetes has, "
    "goes down under it.",
    "Write SuspendExcStates=DRAIN,MAINTENANCE,RESERVED (23.02 and newer), or name the nodes in SuspendExcNodes.",
    "S:src/slurmctld/power_save.c _node_state_should_suspend; slurm.conf.5 SuspendExcStates; run on 22.05, 24.11",
)

RULES = (CLOSED_SUSPENDED,)

_STATES = "SuspendExcStates"
_SHOWN = 3


def judge(files: SlurmFiles, gres: Collection[str | None], release: Release, verdict: Verdict) -> None:
    """Nodes with GPUs (those whose Gres= is in `gres`) that are switched off although they are drained or reserved."""
    program = files.setting("SuspendProgram")
    if program is None or not gres or (not files.complete and files.setting(_STATES) is None):
        return
    lacking = _lacking_states(files, release)
    if not lacking:
        return
    reached = _Reached(files, release)
    nodes = [
        name
        for node in files.nodes
        if node.text("gres") in gres and not _is_cloud(node)
        for name in node_names(node, release)
        if reached.suspended(node, name)
    ]
    if not nodes:
        return
    shown = ", ".join(nodes[:_SHOWN]) + (f" and {len(nodes) - _SHOWN} more" if len(nodes) > _SHOWN else "")
    states = files.setting(_STATES) if _STATES in release.conf_keys else None
    said = f"{_STATES}={states.value} lacks {', '.join(lacking)}" if states else f"there is no {_STATES}"
    if _STATES not in release.conf_keys:
        said = f"Slurm {release} has no {_STATES}"
    message = f"{program.key}={program.value} switches off {shown} when closed: {said}, and SuspendExcNodes not them"
    place = states.place if states else program.place
    verdict.note(
        CLOSED_SUSPENDED, place, message, CLOSED_SUSPENDED.fix, [Related(program.place, "power saving is on here")]
    )


def _lacking_states(files: SlurmFiles, release: Release) -> tuple[str, ...]:
    """A drain must be excepted, and the mark of a reservation: either of its two states."""
    words = [word.lstrip("+").lower() for word in files.words(_STATES)] if _STATES in release.conf_keys else []
    lacking = [] if any(word.startswith("drain") for word in words) else ["DRAIN"]
    reserved = any(word.startswith(("maint", "reserved")) for word in words)
    return tuple(lacking if reserved else [*lacking, "MAINTENANCE", "RESERVED"])


def _is_cloud(node: NodeRecord) -> bool:
    """Cloud nodes are made to be switched off."""
    return (node.text("state") or "").lower().startswith(("cloud", "future"))


class _Reached:
    """Which nodes are switched off at all: by the SuspendTime that holds for them, and by what is excepted."""

    def __init__(self, files: SlurmFiles, release: Release) -> None:
        self.release = release
        self.everywhere = _is_on(files, "SuspendTime")
        memberships = Memberships(files, release)
        excepted = files.setting("SuspendExcNodes")
        words = _split(excepted.value) if excepted else []
        self.nodes = {name for word in words for name in self._hosts(word)}
        self.unclear = any(word in memberships.sets for word in words)
        parts = list(partitions(files, release))
        names = {word.lower() for word in files.words("SuspendExcParts")}
        self.excepted = joined(memberships.of(part.nodes) for part in parts if part.name.lower() in names)
        never = NEVER_SUSPENDS if "SuspendTime" in release.node_keys else PARTITION_NEVER_SUSPENDS
        timed = [(part.nodes, time.value.lower() in never) for part in parts if (time := part.own.get("suspendtime"))]
        self.on = joined(memberships.of(nodes) for nodes in dict.fromkeys(n for n, off in timed if not off))
        self.off = joined(memberships.of(nodes) for nodes in dict.fromkeys(n for n, off in timed if off))

    def suspended(self, node: NodeRecord, name: str) -> bool:
        """Whether power saving reaches the node."""
        if self.unclear or {name, "ALL"} & self.nodes or name in self.excepted:
            return False
        own = node.text("suspendtime")
        if own is not None:
            return not _never(own)
        if name in self.off:  # of several partitions the longest time holds
            return False
        return self.everywhere or name in self.on

    def _hosts(self, text: str) -> tuple[str, ...]:
        """The nodes of a list; a `:N` behind it keeps only some of them on, so none for sure."""
        if text.upper() == "ALL":
            return ("ALL",)
        try:
            return () if ":" in text else expand(text, self.release.hostlist_suffix)
        except BadHostlist:
            return ()


def _split(text: str) -> list[str]:
    """The words of a host list, apart at commas outside brackets."""
    words, depth, start = [], 0, 0
    for at, character in enumerate(text):
        depth += (character == "[") - (character == "]")
        if character == "," and depth <= 0:
            words.append(text[start:at])
            start = at + 1
    return [word for word in (*words, text[start:]) if word]


def _is_on(files: SlurmFiles, key: str) -> bool:
    time = files.setting(key)
    return time is not None and not _never(time.value)


def _never(time: str) -> bool:
    return time.lower() in NEVER_SUSPENDS
