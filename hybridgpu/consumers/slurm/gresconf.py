"""The lines of gres.conf that apply to one node, as records, each checked as slurmd checks it before the merge.

Whether a record meets something in slurm.conf is not asked here. Source: S:src/interfaces/gres.c _parse_gres_config.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from hybridgpu.consumers.slurm import values
from hybridgpu.consumers.slurm.conf import DOUBLED_KEY
from hybridgpu.consumers.slurm.devicenames import NO_PATH, path_fault
from hybridgpu.consumers.slurm.hostlist import BadHostlist, expand, unclosed
from hybridgpu.consumers.slurm.hostsuffix import written_out
from hybridgpu.consumers.slurm.nodegres import NOT_IN_TYPES, SHARED
from hybridgpu.consumers.slurm.punctuation import instead
from hybridgpu.consumers.slurm.release import Release
from hybridgpu.consumers.slurm.verdict import Verdict
from hybridgpu.files.slurmlines import Pair, SlurmLine
from hybridgpu.model.finding import Finding, Place, Rule, Severity
from hybridgpu.model.naming import gres_id

ENV_FLAGS = frozenset(("nvidia_gpu_env", "amd_gpu_env", "intel_gpu_env", "opencl_env"))

RECORD_WITHOUT_NAME = Rule(
    "slurm-gres-record-without-name",
    Severity.ERROR,
    "The record has neither Name nor AutoDetect: slurmd drops it.",
    "Add Name=gpu (or mps, shard ...).",
    "S:src/interfaces/gres.c _parse_gres_config",
)
NODES_UNREADABLE = Rule(
    "slurm-gres-nodes-unreadable",
    Severity.ERROR,
    "The host list of the record cannot be read: slurmd takes it for another node's, without a message.",
    "Write it as name[1-3,7], brackets closed and ranges rising.",
    "S:src/interfaces/gres.c _parse_gres_config_node; slurmd -G on 22.05, 24.11, 26.05",
)
NODES_UNKNOWN = Rule(
    "slurm-gres-nodes-unknown",
    Severity.WARNING,
    "No node of slurm.conf is named by the record: it has no effect.",
    "Use the names that slurm.conf has.",
    "S:src/interfaces/gres.c _parse_gres_config_node",
)
INLINE_AUTODETECT = Rule(
    "slurm-inline-autodetect",
    Severity.WARNING,
    "AutoDetect on a line that begins with Name has no effect.",
    "Write it on a line of its own: AutoDetect=..., or NodeName=... AutoDetect=...",
    "S:src/interfaces/gres.c _parse_gres_config",
)
FILE_AND_MULTIPLE = Rule(
    "slurm-file-and-multiplefiles",
    Severity.ERROR,
    "File and MultipleFiles exclude each other: slurmd stops with a fatal error.",
    "Use MultipleFiles for one device with several files (a MIG instance), File for devices of one file each.",
    "S:src/interfaces/gres.c _parse_gres_config",
)
ONE_MULTIPLE_FILE = Rule(
    "slurm-multiplefiles-with-one-file",
    Severity.ERROR,
    "MultipleFiles needs at least two files: slurmd stops with a fatal error.",
    "Use File.",
    "S:src/interfaces/gres.c _parse_gres_config",
)
BAD_FILE_LIST = Rule(
    "slurm-bad-file-list",
    Severity.ERROR,
    "The list of files cannot be read: slurmd stops with a fatal error.",
    "Write it as /dev/nvidia[0-3], brackets closed and ranges rising.",
    "S:src/interfaces/gres.c _validate_file",
)
EMPTY_FILE = Rule(
    "slurm-file-names-nothing",
    Severity.ERROR,
    "File is empty: the record counts as devices that are not there; of mps or shard, slurmd dies of it.",
    "Write the device's file, or leave File out.",
    "S:src/interfaces/gres.c _validate_file, S:src/plugins/gres/common/gres_c_s.c _build_shared_list; slurmd -G",
)
BAD_COUNT = Rule(
    "slurm-bad-count",
    Severity.ERROR,
    "Count is no number that slurmd takes: it stops with a fatal error.",
    "Write a whole number, if need be with K, M, G, T or P.",
    "S:src/interfaces/gres.c _parse_gres_config, suffix_mult",
)
COUNT_NOT_FILES = Rule(
    "slurm-count-differs-from-files",
    Severity.ERROR,
    "Count is not the number of files: slurmd stops with a fatal error.",
    "Leave Count out where File is given (mps and shard excepted).",
    "S:src/interfaces/gres.c _parse_gres_config",
)
FLAGS_DIFFER = Rule(
    "slurm-flags-differ",
    Severity.ERROR,
    "Flags differ from those of the record of the same name before: slurmd stops with a fatal error.",
    "Write the same Flags on every record of the name.",
    "S:src/interfaces/gres.c _parse_gres_config",
)
NO_ENV_AND_ENV = Rule(
    "slurm-no-gpu-env-and-env",
    Severity.ERROR,
    "no_gpu_env excludes every other environment flag: slurmd stops with a fatal error.",
    "Drop no_gpu_env, or the others.",
    "S:src/interfaces/gres.c _parse_gres_config",
)
FLAG_UNKNOWN = Rule(
    "slurm-flag-unknown",
    Severity.WARNING,
    "Slurm ignores the flag without a message.",
    "Use the flag's right name, or remove it.",
    "S:src/interfaces/gres.c gres_flags_parse",
)
LINKS_INVALID = Rule(
    "slurm-links-invalid",
    Severity.WARNING,
    "Links must hold one -1, for the device itself, and numbers from -2 to 1023: slurmd ignores the value.",
    "Write one number for each GPU of the node, with -1 at the device's own position.",
    "S:src/interfaces/gres.c gres_links_validate",
)
CORES_INVALID = Rule(
    "slurm-cores-invalid",
    Severity.ERROR,
    "Cores goes beyond the cores of the node: the binding is not in force, and from 24.11 the node turns INVALID.",
    "Count cores (not threads) from 0, as NodeName's Sockets and CoresPerSocket say.",
    "S:src/interfaces/gres.c _parse_gres_config, _foreach_rebuild_topo",
)
NAME_CASE = Rule(
    "slurm-gres-name-case",
    Severity.ERROR,
    "slurmd takes the name in any case, but its own parts and slurmctld compare it exactly: the devices are lost.",
    "Write the name as GresTypes has it.",
    "S:src/interfaces/gres.c gres_node_config_unpack, S:src/plugins/gres/common/gres_c_s.c",
)

RULES = (
    *(
        RECORD_WITHOUT_NAME,
        NODES_UNREADABLE,
        NODES_UNKNOWN,
        INLINE_AUTODETECT,
        FILE_AND_MULTIPLE,
        ONE_MULTIPLE_FILE,
        BAD_FILE_LIST,
        EMPTY_FILE,
        BAD_COUNT,
    ),
    *(COUNT_NOT_FILES, FLAGS_DIFFER, NO_ENV_AND_ENV, FLAG_UNKNOWN, LINKS_INVALID, CORES_INVALID, NAME_CASE),
)


@dataclass(slots=True)
class Record:
    """A GRES record as slurmd holds it while it merges: later steps change and split it.

    `name` as written; `id` that of the GresTypes name it belongs to; `multiple` several files, one device;
    `everywhere`: its line names no node.
    """

    name: str
    id: int
    type: str | None
    count: int
    files: tuple[str, ...]
    has_file: bool
    place: Place | None
    multiple: bool = False
    has_type: bool = False
    shared: bool = False
    cores: str | None = None
    links: str | None = None
    flags: frozenset[str] = field(default_factory=frozenset)
    everywhere: bool = False


def records(
    lines: Sequence[SlurmLine], names: tuple[str, ...], cores: int, release: Release, verdict: Verdict
) -> list[Record]:
    """The records of these lines (those that apply to the node, in file order) in the order slurmd keeps them.

    Lines that begin with Name come before those that begin with NodeName, whatever their order in the file.
    `names` are the contexts of GresTypes, `cores` the node's number of cores.
    """
    parser = _Parser(names, cores, release, verdict)
    by_name: list[Record] = []
    by_node: list[Record] = []
    for line in lines:
        starts_with_name = line.pairs[0].key.lower() == "name"
        record = parser.record(line, starts_with_name)
        if record is not None:
            (by_name if starts_with_name else by_node).append(record)
    return by_name + by_node


def judge_alone(lines: Sequence[SlurmLine], release: Release) -> tuple[Finding, ...]:
    """What is wrong with each of the lines by itself, for nodes that are not known: GresTypes have the name."""
    verdict = Verdict()
    for line in lines:
        name = line.get("name")
        if name is not None and line.pairs[0].key.lower() in ("name", "nodename"):
            records([line], (name.value,), 2**16, release, verdict)
    return verdict.findings


class _Parser:
    """Parses the records of one node; flags carry over from one record of a name to the next."""

    def __init__(self, names: tuple[str, ...], cores: int, release: Release, verdict: Verdict) -> None:
        self.names, self.cores, self.release, self.verdict = names, cores, release, verdict
        self.previous: tuple[str, frozenset[str], bool] | None = None

    def record(self, line: SlurmLine, starts_with_name: bool) -> Record | None:
        self._doubles(line)
        name = self._name(line, starts_with_name)
        if name is None:
            return None
        kind = line.get("type")
        record = Record(
            name=name.value,
            id=0,
            type=kind.value if kind else None,
            has_type=kind is not None,
            count=0,
            files=(),
            has_file=False,
            shared=name.value in SHARED,
            place=line.place,
            everywhere=starts_with_name,
        )
        self._files(line, record)
        record.flags = self._flags(line.get("flags"), record)
        self._cores_and_links(line, record)
        self._count(line.get("count"), record)
        known = next((n for n in self.names if n.lower() == name.value.lower()), None)
        if known is None:
            allowed = ",".join(self.names) or "nothing"
            message = f"Name={name.value} is not in GresTypes (which has {allowed}): the record is dropped"
            self.verdict.note(NOT_IN_TYPES, name.place, message, instead(name.value, self.names))
            return None
        if known != name.value:
            self.verdict.note(NAME_CASE, name.place, f"Name={name.value}, but GresTypes has {known}")
        record.id = gres_id(known)
        return record

    def _doubles(self, line: SlurmLine) -> None:
        seen: set[str] = set()
        for pair in line.pairs[1:]:
            if pair.key.lower() in seen:
                message = f"{pair.key} is there twice; {pair.key}={pair.value} holds"
                self.verdict.note(DOUBLED_KEY, pair.place, message)
            seen.add(pair.key.lower())

    def _name(self, line: SlurmLine, starts_with_name: bool) -> Pair | None:
        detect = line.get("autodetect")
        if starts_with_name:
            if detect:
                message = f"AutoDetect={detect.value} behind Name={line.pairs[0].value} has no effect"
                self.verdict.note(INLINE_AUTODETECT, detect.place, message)
            return line.pairs[0]
        name = line.get("name")
        if name is None and detect is None:
            self.verdict.note(RECORD_WITHOUT_NAME, line.place, f"NodeName={line.pairs[0].value} names no GRES")
        return name

    def _files(self, line: SlurmLine, record: Record) -> None:
        single, multiple = line.get("file", "files"), line.get("multiplefiles")
        sound = True
        for pair in (single, multiple):
            if pair is None:
                continue
            try:
                record.files = expand(pair.value, self.release.hostlist_suffix, self.release.hostlist_unclosed)
            except BadHostlist as bad:
                self.verdict.die(BAD_FILE_LIST, pair.place, f"{pair.key}={pair.value}: {bad}", written_out(pair.value))
                record.has_file, record.files, sound = True, (), False
                continue
            if self.release.hostlist_unclosed and (token := unclosed(pair.value)):
                self.verdict.die(BAD_FILE_LIST, pair.place, f"{pair.key}={pair.value}: '{token}' is not closed")
            record.has_file, record.count = True, len(record.files)
            if fault := path_fault(pair.value, record.files):
                self.verdict.die(NO_PATH, pair.place, f"{pair.key}={pair.value}: {fault[0]}", fault[1])
                sound = False
            if not record.files and pair is single:
                self.verdict.note(EMPTY_FILE, pair.place, f"{pair.key}= is empty")
        if multiple is None:
            return
        record.multiple, record.count = True, 1
        if single is not None:
            message = f"File={single.value} and MultipleFiles={multiple.value} are mutually exclusive"
            self.verdict.die(FILE_AND_MULTIPLE, multiple.place, message)
        if len(record.files) < 2 and sound:
            message = f"MultipleFiles={multiple.value} is a single file"
            self.verdict.die(ONE_MULTIPLE_FILE, multiple.place, message, "use File instead")

    def _flags(self, pair: Pair | None, record: Record) -> frozenset[str]:
        """The flags in force for the record; slurmd looks for words anywhere in the text, in any case."""
        gpu, mps = record.name.lower() == "gpu", record.name.lower() == "mps"
        same = self.previous is not None and gres_id(self.previous[0]) == gres_id(record.name)
        flags: frozenset[str] = frozenset()
        default = True
        if pair is not None:
            flags, no_env = self._read_flags(pair, mps)
            env = flags & ENV_FLAGS
            if env and no_env:
                self.verdict.die(NO_ENV_AND_ENV, pair.place, f"Flags={pair.value}: no_gpu_env beside {', '.join(env)}")
            if env or no_env or self.release.bare_flags_count:
                default = False
                kept = env if self.release.flags_compared == "env" else flags
                if same and self.previous is not None and self.previous[1:] != (kept, no_env):
                    message = f"Flags={pair.value} of {record.name} differ from those of the record before"
                    self.verdict.die(FLAGS_DIFFER, pair.place, message)
                self.previous = (record.name, kept, no_env)
        elif same and self.previous is not None and (self.previous[1] or self.previous[2]):
            default = False
            flags = self.previous[1]
        elif mps:
            flags = frozenset(("one_sharing",))
        if default and gpu:
            every = ENV_FLAGS | {"default"}
            flags |= every
            self.previous = (record.name, every | (flags & {"env_uuid"}), False)
        return flags

    def _read_flags(self, pair: Pair, mps: bool) -> tuple[frozenset[str], bool]:
        text = pair.value.lower()
        words = [word for word in self.release.gres_flags if word.lower() in text]
        rest = text
        for word in words:
            rest = rest.replace(word.lower(), "")
        if rest.strip(", "):
            message = (
                f"Flags={pair.value}: '{rest.strip(', ')}' is no flag; known are {', '.join(self.release.gres_flags)}"
            )
            self.verdict.note(FLAG_UNKNOWN, pair.place, message)
        flags = {word for word in words if word not in ("all_sharing", "no_gpu_env")}
        if mps and not {"one_sharing", "all_sharing"} & set(words):
            flags.add("one_sharing")
        return frozenset(flags), "no_gpu_env" in words

    def _cores_and_links(self, line: SlurmLine, record: Record) -> None:
        cores, links = line.get("cores", "cpus"), line.get("link", "links")
        if cores:
            record.cores = cores.value
            if values.core_set(cores.value, self.cores) is None:
                message = f"{cores.key}={cores.value} goes beyond the node's {self.cores} cores (0-{self.cores - 1})"
                self.verdict.note(CORES_INVALID, cores.place, message)
        if links:
            fault = values.links_fault(links.value)
            if fault:
                self.verdict.note(LINKS_INVALID, links.place, f"{links.key}={links.value}: {fault}")
            else:
                record.links = links.value

    def _count(self, pair: Pair | None, record: Record) -> None:
        if pair is None:
            record.count = record.count or 1
            return
        count = values.count(pair.value)
        if count is None:
            self.verdict.die(BAD_COUNT, pair.place, f"Count={pair.value} is not a count")
            return
        if record.count and record.count != count and not record.shared:
            message = f"Count={pair.value}, but the record has {record.count} device(s)"
            self.verdict.die(COUNT_NOT_FILES, pair.place, message)
        record.count = count
