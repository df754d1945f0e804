"""Slurm's files as records: slurm.conf with its Includes, gres.conf, cgroup.conf. Read once, judged for any release.

What is wrong for every release (a line that cannot be read, a key that no record has) is found here; what a release or
a node decides is not.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from hybridgpu.consumers.slurm import includes
from hybridgpu.consumers.slurm.confkeys import GRES_KEYS
from hybridgpu.consumers.slurm.joined import as_list
from hybridgpu.consumers.slurm.keyplaces import belongs
from hybridgpu.files.slurmlines import Include, OpenText, Pair, SlurmLine, read
from hybridgpu.model.finding import Finding, Place, Rule, Severity
from hybridgpu.model.spelling import is_slip, nearest

_GRES_STARTS = ("autodetect", "name", "nodename")
_SLURM_RECORDS = frozenset(
    ("nodename", "partitionname", "nodeset", "downnodes", "frontendname", "slurmctldhost", "poweraction")
)
"""Keys of slurm.conf that begin a record of several pairs; every other key stands alone on its line."""

CONTAINER_CONF = "job_container.conf"
NAMESPACE_CONF = "namespace.yaml"
_DEFAULT_FORBIDS = ("nodehostname", "bcastaddr", "nodeaddr")

UNREADABLE = Rule(
    "slurm-line-unreadable",
    Severity.ERROR,
    "Slurm cannot read the line: every daemon and command that reads the file stops with a fatal error.",
    "Write it as Key=value pairs, separated by blanks; quote values that hold blanks.",
    "S:src/common/parse_config.c s_p_parse_file; slurmd -G on 22.05, 24.11, 26.05",
)
UNKNOWN_KEY = Rule(
    "slurm-unknown-key",
    Severity.ERROR,
    "Slurm does not know the key: every daemon that reads the file stops with a fatal error.",
    "Use the key's right name, or remove it.",
    "S:src/common/parse_config.c s_p_parse_line; slurmd -G on 22.05, 24.11, 26.05",
)
DEFAULT_ADDRESS = Rule(
    "slurm-default-with-address",
    Severity.ERROR,
    "A NodeName=DEFAULT line may not name an address or host: Slurm stops with a fatal error.",
    "Write NodeAddr, NodeHostname and BcastAddr on the nodes' own lines.",
    "S:src/common/read_config.c _parse_nodename; slurmd -G on 22.05, 24.11, 26.05",
)
DOUBLED_KEY = Rule(
    "slurm-key-twice",
    Severity.WARNING,
    "The key is there twice and only the last value holds: what the first one said is lost without a trace.",
    "Write one line that holds both values.",
    "S:src/common/parse_config.c _handle_common; slurmd and slurmctld of 22.05, 24.11, 26.05",
)

RULES = (UNREADABLE, UNKNOWN_KEY, DEFAULT_ADDRESS, DOUBLED_KEY)

_FATAL = includes.FATAL | {UNREADABLE, UNKNOWN_KEY, DEFAULT_ADDRESS}


_MOST_TOLD = 12
"""So many allowed keys are told of; more help nobody."""

_LEAVES_OUT = includes.FATAL | {includes.INCLUDE_NOT_GIVEN}
"""Where one of these was found, a part of the file was not read."""


@dataclass(frozen=True, slots=True)
class NodeRecord:
    """One NodeName line with the defaults that stood before it. `values`: the pairs in force by lower-case key."""

    names: str
    place: Place
    line: SlurmLine
    values: Mapping[str, Pair]

    def text(self, key: str) -> str | None:
        """The value of this key (lower case), or None."""
        pair = self.values.get(key)
        return pair.value if pair else None


@dataclass(frozen=True, slots=True)
class SlurmFiles:
    """A site's Slurm configuration, parsed.

    settings: every single key of slurm.conf in lower case, with all its occurrences in order.
    records: the lines of slurm.conf that are records of another kind (`partitionname` ...), by that key; under
        `nodename` those of NodeName=DEFAULT.
    gres: the lines of gres.conf; None where there is no gres.conf.
    cgroup: every key of cgroup.conf in lower case, with all its occurrences; None where there is no cgroup.conf.
    container: the lines of job_container.conf; None where there is none. namespace: path and text of namespace.yaml.
    findings: what is wrong for every release; `fatal` says that no daemon starts because of it. The same of gres.conf
        stands apart in `gres_findings` and `gres_fatal`, since slurmd does not always read it; that of cgroup.conf in
        `cgroup_findings`, that of job_container.conf in `container_findings`.
    whole: slurm.conf itself was given; else these are parts of it, and what is not in them may stand elsewhere.
    gres_known, container_known: gres.conf and job_container.conf were given, or are known not to be there.
    includes: every Include of all the files. `places`: the path of a file by the name it has for Slurm (`gres.conf`).
    """

    slurm_conf: str
    settings: Mapping[str, tuple[Pair, ...]]
    nodes: tuple[NodeRecord, ...]
    records: Mapping[str, tuple[SlurmLine, ...]] = field(default_factory=dict)
    gres: tuple[SlurmLine, ...] | None = None
    cgroup: Mapping[str, tuple[Pair, ...]] | None = None
    findings: tuple[Finding, ...] = ()
    fatal: bool = False
    gres_findings: tuple[Finding, ...] = ()
    gres_fatal: bool = False
    cgroup_findings: tuple[Finding, ...] = ()
    container: tuple[SlurmLine, ...] | None = None
    container_findings: tuple[Finding, ...] = ()
    namespace: tuple[str, str] | None = None
    whole: bool = True
    gres_known: bool = True
    container_known: bool = True
    includes: tuple[Include, ...] = ()
    places: Mapping[str, str] = field(default_factory=dict)

    def beside(self, name: str) -> str:
        """The path of a file that Slurm looks for in slurm.conf's folder (`gres.conf`, `cgroup.conf`)."""
        return self.places.get(name) or posixpath.join(posixpath.dirname(self.slurm_conf), name)

    @property
    def complete(self) -> bool:
        """Whether what does not stand in slurm.conf is known not to be there: all of it was given and read."""
        if "include" in self.settings:
            return False
        return self.whole and not any(finding.rule in _LEAVES_OUT for finding in self.findings)

    @property
    def gres_complete(self) -> bool:
        """The same of gres.conf."""
        if any(line.pairs and line.pairs[0].key.lower() == "include" for line in self.gres or ()):
            return False
        return self.gres_known and not any(finding.rule in _LEAVES_OUT for finding in self.gres_findings)

    def setting(self, key: str) -> Pair | None:
        """The pair in force for a single key of slurm.conf (any case): the last one."""
        pairs = self.settings.get(key.lower())
        return pairs[-1] if pairs else None

    def words(self, key: str) -> tuple[str, ...]:
        """The comma-separated words of a setting, blanks and empty ones dropped; () where it is not set."""
        pair = self.setting(key)
        return tuple(w for w in (part.strip() for part in pair.value.split(",")) if w) if pair else ()


@dataclass(frozen=True, slots=True)
class Parts:
    """The files of one cluster, by path. `conf`: slurm.conf, or the parts of it that there are.

    `name` is the path that slurm.conf has, or would have beside its parts. The flags are those of SlurmFiles.
    """

    name: str
    conf: tuple[str, ...]
    gres: str | None = None
    cgroup: str | None = None
    container: str | None = None
    namespace: str | None = None
    whole: bool = True
    gres_known: bool = True
    container_known: bool = True


def load(
    files: Mapping[str, str] | OpenText, slurm_conf: str = "slurm.conf", from_includer: bool = False
) -> SlurmFiles:
    """Parse slurm.conf, and gres.conf, cgroup.conf, job_container.conf and namespace.yaml beside it where they are.

    `files` maps paths to text, or opens a path (see OpenText). An Include of a file that is not there is an error where
    the folder is one we were given files of, else a note. `from_includer`: see assemble. Raises KeyError or
    FileNotFoundError for slurm.conf itself.
    """
    open_text = files if callable(files) else _opener(files)
    names = ("gres.conf", "cgroup.conf", CONTAINER_CONF, NAMESPACE_CONF)
    gres, cgroup, container, namespace = (posixpath.join(posixpath.dirname(slurm_conf), name) for name in names)
    there = {path for path in (gres, cgroup, container, namespace) if _is_there(path, open_text)}
    parts = Parts(
        slurm_conf,
        (slurm_conf,),
        gres if gres in there else None,
        cgroup if cgroup in there else None,
        container if container in there else None,
        namespace if namespace in there else None,
    )
    return assemble(parts, open_text, from_includer=from_includer)


def assemble(
    parts: Parts,
    open_text: OpenText,
    locate: Callable[[str], str] = posixpath.normpath,
    from_includer: bool = False,
) -> SlurmFiles:
    """Parse the files of one cluster; raises what `open_text` raises for one of them.

    `locate`: see files.slurmlines.read. `from_includer`: a name in Include is relative to the file in which it stands,
    not to slurm.conf.
    """
    folder = None if from_includer else posixpath.dirname(parts.name)
    found: list[Finding] = []
    conf = [read(path, open_text, folder, locate) for path in parts.conf]
    found += [finding for text in conf for finding in includes.findings(text.includes, parts.whole)]
    settings, nodes, records = _read_slurm_conf([line for text in conf for line in text.lines], found)
    others = (parts.gres, parts.cgroup, parts.container)
    gres, cgroup, container = (read(path, open_text, folder, locate) if path else None for path in others)
    gres_found = [*includes.findings(gres.includes), *_gres_findings(gres.lines)] if gres else []
    cgroup_found = list(includes.findings(cgroup.includes)) if cgroup else []
    return SlurmFiles(
        slurm_conf=parts.name,
        settings=settings,
        nodes=nodes,
        records=records,
        gres=gres.lines if gres else None,
        cgroup=settings_of(cgroup.lines, cgroup_found) if cgroup else None,
        findings=tuple(found),
        fatal=stops(found),
        gres_findings=tuple(gres_found),
        gres_fatal=stops(gres_found),
        cgroup_findings=tuple(cgroup_found),
        container=container.lines if container else None,
        container_findings=tuple(includes.findings(container.includes)) if container else (),
        namespace=(parts.namespace, open_text(parts.namespace)) if parts.namespace else None,
        whole=parts.whole,
        gres_known=parts.gres_known,
        container_known=parts.container_known,
        includes=tuple(one for text in (*conf, gres, cgroup, container) if text for one in text.includes),
        places={n: p for n, p in zip(("gres.conf", "cgroup.conf", CONTAINER_CONF), others, strict=True) if p},
    )


def stops(findings: Iterable[Finding]) -> bool:
    """Whether one of the findings about a file's text ends the daemon that reads it."""
    return any(finding.rule in _FATAL for finding in findings)


def _opener(files: Mapping[str, str]) -> Callable[[str], str]:
    folders = {posixpath.dirname(name) for name in files}

    def open_text(path: str) -> str:
        path = posixpath.normpath(path)
        if path not in files and posixpath.dirname(path) in folders:
            raise FileNotFoundError(path)
        return files[path]

    return open_text


def _is_there(path: str, open_text: OpenText) -> bool:
    try:
        open_text(path)
    except (FileNotFoundError, KeyError):
        return False
    return True


def _read_slurm_conf(
    lines: Iterable[SlurmLine], found: list[Finding]
) -> tuple[dict[str, tuple[Pair, ...]], tuple[NodeRecord, ...], dict[str, tuple[SlurmLine, ...]]]:
    settings: dict[str, list[Pair]] = {}
    records: dict[str, list[SlurmLine]] = {}
    nodes: list[NodeRecord] = []
    defaults: dict[str, Pair] = {}
    for line in lines:
        if not line.pairs:
            found.append(unread(line))
            continue
        first = line.pairs[0]
        key = first.key.lower()
        if key not in _SLURM_RECORDS:
            settings.setdefault(key, []).append(_alone(line, found))
        elif line.rest:
            found.append(unread(line))
        if key == "nodename" and first.value.lower() == "default":
            defaults = _merge_defaults(defaults, line, found)
            records.setdefault(key, []).append(line)
        elif key == "nodename":
            own = {p.key.lower(): p for p in line.pairs[1:]}
            nodes.append(NodeRecord(first.value, first.place, line, {**_inherited(defaults, own), **own}))
        elif key in _SLURM_RECORDS:
            records.setdefault(key, []).append(line)
    return (
        {key: tuple(pairs) for key, pairs in settings.items()},
        tuple(nodes),
        {key: tuple(mine) for key, mine in records.items()},
    )


def settings_of(lines: Iterable[SlurmLine], found: list[Finding]) -> dict[str, tuple[Pair, ...]]:
    """The keys of a file that has nothing but single keys, as cgroup.conf; what cannot be read goes into `found`."""
    settings: dict[str, list[Pair]] = {}
    for line in lines:
        if line.pairs:
            settings.setdefault(line.pairs[0].key.lower(), []).append(_alone(line, found))
        else:
            found.append(unread(line))
    return {key: tuple(pairs) for key, pairs in settings.items()}


def _alone(line: SlurmLine, found: list[Finding]) -> Pair:
    """The first pair of a line that may have no other."""
    first = line.pairs[0]
    if len(line.pairs) > 1:
        second = line.pairs[1]
        found.append(unreadable(f"{second.key}={second.value}", second.place, first.key))
    if line.rest:
        found.append(unread(line))
    return first


def _merge_defaults(defaults: dict[str, Pair], line: SlurmLine, found: list[Finding]) -> dict[str, Pair]:
    """A later NodeName=DEFAULT adds to an earlier one and wins where both speak (s_p_hashtbl_merge)."""
    own = {p.key.lower(): p for p in line.pairs[1:]}
    for key in _DEFAULT_FORBIDS:
        if key in own:
            pair = own[key]
            found.append(
                Finding(DEFAULT_ADDRESS, pair.place, f"{pair.key}={pair.value} is not allowed with NodeName=DEFAULT")
            )
    return {**defaults, **own}


def _inherited(defaults: dict[str, Pair], own: dict[str, Pair]) -> dict[str, Pair]:
    """Defaults but those that a line's other spelling of the same key replaces (Feature and Features)."""
    if "feature" in own or "features" in own:
        return {key: pair for key, pair in defaults.items() if key not in ("feature", "features")}
    return defaults


def _gres_findings(lines: tuple[SlurmLine, ...]) -> list[Finding]:
    """Lines of gres.conf that no slurmd can read, whichever node it runs on."""
    found: list[Finding] = []
    known = {key.lower() for key in GRES_KEYS}
    for line in lines:
        if line.rest or not line.pairs:
            found.append(unread(line))
        if not line.pairs:
            continue
        first = line.pairs[0]
        if first.key.lower() not in _GRES_STARTS:
            found.append(
                unknown_key(first, ("AutoDetect", "Name", "NodeName"), "a line of gres.conf begins with one of")
            )
            continue
        if first.key.lower() == "autodetect" and len(line.pairs) > 1:
            second = line.pairs[1]
            found.append(unreadable(f"{second.key}={second.value}", second.place, first.key))
            continue
        for pair in line.pairs[1:]:
            if pair.key.lower() == "nodename":
                found.append(_node_name_late(pair, line))
            elif pair.key.lower() not in known:
                found.append(unknown_key(pair, GRES_KEYS, "allowed in gres.conf are"))
    return found


def _node_name_late(pair: Pair, line: SlurmLine) -> Finding:
    """A line that begins with another key has no NodeName to Slurm."""
    others = " ".join(f"{p.key}={p.value}" for p in line.pairs if p is not pair)
    message = f"{pair.key} must come first on its line; behind {line.pairs[0].key} Slurm does not know the key"
    return Finding(UNKNOWN_KEY, pair.place, message, f"write {pair.key}={pair.value} {others}")


def unread(line: SlurmLine) -> Finding:
    """A finding about the rest of a line."""
    return unreadable(line.rest, line.rest_place, hint=as_list(line.pairs, line.rest))


def unreadable(text: str, place: Place, after: str | None = None, hint: str = "") -> Finding:
    """A finding about text that Slurm's parser cannot go on from."""
    message = f"cannot read '{text}'" + (f" after {after}, which stands alone on its line" if after else "")
    return Finding(UNREADABLE, place, message, hint)


def unknown_key(pair: Pair, allowed: tuple[str, ...], words: str = "") -> Finding:
    """A finding about a key that is not among the allowed ones, with the nearest right one.

    `words` introduce the list of the allowed ones, where it is short enough to be told.
    """
    near = nearest(pair.key, allowed)
    hint = f"did you mean {near}?" if near else ""
    if pair.key.lower() == "include":
        hint = f"write Include {pair.value}, without '='"
    elif not (near and is_slip(pair.key, near)):
        hint = belongs(pair.key) or hint
    short = allowed if len(allowed) <= _MOST_TOLD else ()
    told = f"; {words} {', '.join(sorted(short))}" if words and (short or not allowed) else ""
    return Finding(UNKNOWN_KEY, pair.place, f"unknown key '{pair.key}'{told}", hint)
