"""job_container.conf: which directories a job has to itself. Read by slurmd where JobContainerType or NamespaceType is
tmpfs.

What a private directory does to anybody is not known here. Source: S@25.05:src/plugins/job_container/tmpfs/
read_jcconf.c, from 25.11 S:src/plugins/namespace/tmpfs/read_jcconf.c.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from hybridgpu.consumers.slurm.conf import SlurmFiles, stops, unknown_key, unread, unreadable
from hybridgpu.consumers.slurm.hostlist import BadHostlist, expand
from hybridgpu.consumers.slurm.release import Release, history
from hybridgpu.consumers.slurm.values import flag, unsigned
from hybridgpu.consumers.slurm.verdict import Verdict
from hybridgpu.files.slurmlines import Pair, SlurmLine
from hybridgpu.model.finding import Finding, Place, Rule, Severity

CONTAINER_VALUE = Rule(
    "slurm-container-bad-value",
    Severity.ERROR,
    "The value is none that the key takes: slurmd stops with a fatal error.",
    "Write yes or no; a number has no unit.",
    "S:src/common/parse_value.c; S@25.05:src/plugins/job_container/tmpfs/read_jcconf.c",
)
CONTAINER_BASE = Rule(
    "slurm-container-base-path",
    Severity.ERROR,
    "The directories of jobs cannot be kept in BasePath: slurmd stops with a fatal error.",
    "Name a directory of its own, such as /var/spool/slurm/containers, that lies in none of Dirs.",
    "S@25.05:src/plugins/job_container/tmpfs/read_jcconf.c init_slurm_jc_conf",
)

RULES = (CONTAINER_VALUE, CONTAINER_BASE)

DEFAULT_DIRS = "/tmp,/dev/shm"  # noqa: S108 - Slurm's own default
_RECORDS = ("basepath", "nodename")
SHARED_MEMORY = "/dev/shm"  # noqa: S108 - where POSIX shared memory lies


@dataclass(frozen=True, slots=True)
class Private:
    """The directories that jobs of some nodes have to themselves, and where that is said."""

    dirs: tuple[str, ...]
    place: Place
    said: str

    def hides(self, path: str) -> bool:
        """Whether a job sees its own `path`, not the node's."""
        return any(path == one or path.startswith(one.rstrip("/") + "/") for one in self.dirs)


def private(files: SlurmFiles, nodes: Iterable[str], release: Release) -> Private | None:
    """What the jobs of these nodes have to themselves by job_container.conf; None where the plugin is off there.

    Where the nodes differ, the first that has /dev/shm to itself counts. The file must be there.
    """
    wanted = frozenset(nodes)
    alone: Pair | None = None
    everywhere: list[tuple[int, SlurmLine]] = []
    own: dict[str, list[tuple[int, SlurmLine]]] = {}
    for at, line in enumerate(line for line in files.container or () if line.pairs):
        key = line.pairs[0].key.lower()
        if key == "dirs":
            alone = line.pairs[0]
        elif key == "basepath":
            everywhere.append((at, line))
        elif key == "nodename":
            for node in wanted & _hosts(line, release):
                own.setdefault(node, []).append((at, line))
    shapes = dict.fromkeys(tuple(own.get(node, ())) for node in sorted(wanted))
    found = [
        _of_node([line for _, line in sorted([*everywhere, *mine], key=_position)], alone, release) for mine in shapes
    ]
    there = [one for one in found if one is not None]
    return next((one for one in there if one.hides(SHARED_MEMORY)), there[0] if there else None)


def _position(entry: tuple[int, SlurmLine]) -> int:
    return entry[0]


def _hosts(line: SlurmLine, release: Release) -> frozenset[str]:
    try:
        return frozenset(expand(line.pairs[0].value, release.hostlist_suffix))
    except BadHostlist:
        return frozenset()


def _of_node(lines: Sequence[SlurmLine], alone: Pair | None, release: Release) -> Private | None:
    """The last line that is the node's gives BasePath; Dirs come from the last such line that has them."""
    base: Pair | None = None
    dirs: Pair | None = None
    for line in lines:
        base, dirs = line.get("basepath") or base, line.get("dirs") or dirs
    dirs = dirs or alone
    if base is None or (release.container_none and base.value.lower().startswith("none")):
        return None
    if dirs is None or "Dirs" not in release.container_keys:
        said = f"{base.key}={base.value} without Dirs, which is {DEFAULT_DIRS} then"
        return Private(tuple(DEFAULT_DIRS.split(",")), base.place, said)
    return Private(tuple(one for one in dirs.value.split(",") if one), dirs.place, f"{dirs.key}={dirs.value}")


def judge(files: SlurmFiles, release: Release, verdict: Verdict) -> None:
    """Everything that slurmd dies of as it reads the file; nothing where slurm.conf does not have it read."""
    space = files.setting("NamespaceType") or files.setting("JobContainerType")
    if files.container is None or (files.complete and (space is None or "tmpfs" not in space.value)):
        return
    verdict.take(files.container_findings, stops(files.container_findings))
    for line in files.container:
        found = list(_line_findings(line, release))
        verdict.take(found, bool(found))
        _judge_base(line, files.container, release, verdict)


def _line_findings(line: SlurmLine, release: Release) -> Iterator[Finding]:
    if line.rest:
        yield unread(line)
    if not line.pairs:
        return
    first = line.pairs[0]
    alone = {key.lower() for key in release.container_alone}
    inside = {key.lower() for key in release.container_keys} - {"nodename"}
    if first.key.lower() not in alone | set(_RECORDS):
        begin = (*sorted(release.container_alone), "BasePath", "NodeName")
        yield _unknown(first, begin, "a line of the file begins with", release)
    elif first.key.lower() in alone and len(line.pairs) > 1:
        second = line.pairs[1]
        yield unreadable(f"{second.key}={second.value}", second.place, first.key)
    else:
        for pair in line.pairs[1:]:
            if pair.key.lower() not in inside:
                words = f"a {first.key} line takes"
                yield _unknown(pair, tuple(key for key in release.container_keys if key != "NodeName"), words, release)
    yield from (finding for pair in line.pairs if (finding := _bad_value(pair, release)))


def _unknown(pair: Pair, allowed: tuple[str, ...], words: str, release: Release) -> Finding:
    finding = unknown_key(pair, allowed, words)
    past = history(pair.key, release, lambda other: other.container_keys)
    return (
        Finding(finding.rule, finding.place, f"{finding.message}; {pair.key} {past}", finding.hint) if past else finding
    )


def _bad_value(pair: Pair, release: Release) -> Finding | None:
    takes = {key.lower(): takes for key, takes in release.container_keys.items()}.get(pair.key.lower())
    if takes == "flag" and flag(pair.value) is None:
        message = f"{pair.key}={pair.value}: allowed are yes and no"
    elif takes == "number" and unsigned(pair.value, 32, kilo=True) is None:
        message = f"{pair.key}={pair.value}: allowed is a whole number of seconds"
    else:
        return None
    return Finding(CONTAINER_VALUE, pair.place, message, CONTAINER_VALUE.fix)


def _judge_base(line: SlurmLine, lines: Collection[SlurmLine], release: Release, verdict: Verdict) -> None:
    if not line.pairs or line.pairs[0].key.lower() not in _RECORDS:
        return
    base = line.get("basepath")
    if base is None:
        message = f"{line.pairs[0].key}={line.pairs[0].value} has no BasePath"
        verdict.die(CONTAINER_BASE, line.place, message)
        return
    if release.container_none and base.value.lower().startswith("none"):
        return
    dirs = line.get("dirs") or next(
        (p for one in lines if one.pairs and (p := one.pairs[0]).key.lower() == "dirs"), None
    )
    if "Dirs" not in release.container_keys:
        clashing = [d for d in DEFAULT_DIRS.split(",") if f"{base.value}/".startswith(f"{d}/")]
    else:
        told = dirs.value if dirs else DEFAULT_DIRS
        clashing = [one for one in told.split(",") if one.startswith(base.value)]
    if clashing:
        message = f"{base.key}={base.value} cannot be a directory that jobs have to themselves: {clashing[0]}"
        verdict.die(CONTAINER_BASE, base.place, message)
