"""From files that were given to clusters: which slurm.conf is a cluster's, what belongs to it, and what nobody reads.

A file is told by its name where it has Slurm's, else by its content. Parts without a slurm.conf make a cluster of which
not all is known. What the files say is judged elsewhere.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from hybridgpu.consumers.slurm.conf import NAMESPACE_CONF, Parts, assemble
from hybridgpu.consumers.slurm.given import SlurmTree
from hybridgpu.consumers.slurm.reach import Reach
from hybridgpu.consumers.slurm.release import NEWEST, Release
from hybridgpu.files.kinds import SLURM, SLURM_NAMES, Input, Kind
from hybridgpu.files.slurmlines import SlurmText, read
from hybridgpu.model.finding import Finding, Place, Rule, Severity

FILE_NOT_READ = Rule(
    "slurm-file-not-read",
    Severity.INFO,
    "Slurm does not read the file: its name is none that Slurm looks for, and no file given Includes it.",
    "Include it, or remove it; name it alone to have it judged.",
    "S:src/common/read_config.c; S:src/common/parse_config.c _parse_include_directive",
)
GRES_AMBIGUOUS = Rule(
    "slurm-gres-conf-ambiguous",
    Severity.INFO,
    "Several files may be the cluster's gres.conf: none of them is judged together with slurm.conf.",
    "Name one of them beside slurm.conf, or call it gres.conf.",
    "hybridgpu",
)

RULES = (FILE_NOT_READ, GRES_AMBIGUOUS)

_OTHER_PROGRAMS = frozenset(("dbdhost", "dbdaddr", "storagetype", "storagehost", "storageloc"))
"""Keys of slurmdbd.conf, which otherwise looks like a part of slurm.conf."""

_MAKE_A_CLUSTER = frozenset(("clustername", "slurmctldhost", "controlmachine"))
_BACKUP = re.compile(
    r"~$|^#|\.conf[.\-_].|(?:^|[.\-_])(?:bak|backup|old|orig|save|sav|example|sample|rpm(?:new|save|orig)|dpkg-\w+)"
    r"(?:$|[.\-_])",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class _File:
    """A file of Slurm's: its kind, the keys with which its lines begin, and the paths its Includes mean."""

    path: str
    kind: Kind
    keys: frozenset[str]
    includes: tuple[str, ...]
    named: bool

    @property
    def folder(self) -> str:
        return posixpath.dirname(self.path)

    @property
    def name(self) -> str:
        return posixpath.basename(self.path)

    @property
    def backup(self) -> bool:
        return not self.named and _BACKUP.search(self.name) is not None


def gather(given: Sequence[Input], release: Release = NEWEST) -> tuple[tuple[SlurmTree, ...], tuple[Finding, ...]]:
    """The clusters among the Slurm files that were given, and what is to be said of files that nobody reads.

    `release` decides where a relative Include is looked for.
    """
    reach = Reach(given)
    files = [file for one in given if one.kind in SLURM and (file := _file(one, reach))]
    gathering = _Gathering(reach, files, release)
    trees = tuple(gathering.trees())
    return trees, (*reach.refused.values(), *gathering.findings)


def _file(given: Input, reach: Reach) -> _File | None:
    try:
        text = read(given.path, _only(given.path, reach))
    except KeyError:
        return None
    keys = frozenset(line.pairs[0].key.lower() for line in text.lines if line.pairs)
    if keys & _OTHER_PROGRAMS:
        return None
    kind = SLURM_NAMES.get(posixpath.basename(given.path), given.kind)
    if kind is Kind.SLURM_CONF and keys <= {"nodename", "basepath"} and _sets(text, "basepath"):
        kind = Kind.CONTAINER_CONF
    return _File(given.path, kind, keys, tuple(_targets(given.path, text, reach)), not given.root)


def _only(path: str, reach: Reach) -> Callable[[str], str]:
    """Opens this file alone: its Includes are named, not followed."""

    def open_text(other: str) -> str:
        if other != path:
            raise KeyError(other)
        return reach.text(path)

    return open_text


def _sets(text: SlurmText, key: str) -> bool:
    return any(line.get(key) for line in text.lines)


def _targets(path: str, text: SlurmText, reach: Reach) -> Iterator[str]:
    """The files that the Includes may mean: names are relative to slurm.conf, in this folder or one above."""
    names = (include.name for include in text.includes if include.problem not in ("too many", "pattern"))
    for name in dict.fromkeys(names):
        folder = posixpath.dirname(path)
        while True:
            yield reach.find(posixpath.normpath(posixpath.join(folder, name)), path)
            if name.startswith("/") or not folder or not reach.inside(folder):
                break
            folder = posixpath.dirname(folder)


class _Gathering:
    """The clusters that come out of the files, and who read which of them so far."""

    def __init__(self, reach: Reach, files: Sequence[_File], release: Release) -> None:
        self.reach, self.files, self.release = reach, files, release
        included = {target for file in files for target in file.includes if target != file.path}
        self.free = [file for file in files if file.path not in included or file.name in SLURM_NAMES]
        self.read: set[str] = set()
        self.findings: list[Finding] = []

    def trees(self) -> Iterator[SlurmTree]:
        """Each cluster with a slurm.conf, then what remains."""
        roots = list(self._roots())
        for root in roots:
            yield self._whole(root, roots)
        left = [file for file in self.files if file.path not in self.read]
        free = [file for file in left if file in self.free]
        yield from self._partial([file for file in free or left if not self._unread(file, roots)])
        for file in left:
            if file.path not in self.read:
                message = f"{file.name} is not judged: no file given Includes it, and Slurm does not look for its name"
                self.findings.append(Finding(FILE_NOT_READ, Place(file.path, 1), message, FILE_NOT_READ.fix))

    def _roots(self) -> Iterator[_File]:
        conf = [file for file in self.free if file.kind is Kind.SLURM_CONF and not file.backup]
        first = [file for file in conf if file.name == "slurm.conf"]
        yield from first
        for file in conf:
            other = file.name != "slurm.conf" and bool(file.keys & _MAKE_A_CLUSTER)
            if other and (file.named or not any(_above(root, file) for root in first)):
                yield file

    def _whole(self, root: _File, roots: Sequence[_File]) -> SlurmTree:
        others = [self._belonging(root, roots, kind) for kind in list(SLURM_NAMES.values())[1:]]
        gres, cgroup, container = (found[0] if len(found) == 1 else None for found in others)
        if len(others[0]) > 1:
            names = ", ".join(others[0])
            message = f"which gres.conf belongs to {root.name} is not known: {names}"
            self.findings.append(Finding(GRES_AMBIGUOUS, Place(root.path, 1), message, GRES_AMBIGUOUS.fix))
            self.read.update(others[0])
        folder = self.reach.inside(root.folder or ".")
        parts = Parts(
            root.path,
            (root.path,),
            gres,
            cgroup,
            container,
            self._namespace(root),
            gres_known=gres is not None or (folder and not others[0]),
            container_known=container is not None or folder,
        )
        return self._tree(parts)

    def _belonging(self, root: _File, roots: Sequence[_File], kind: Kind) -> tuple[str, ...]:
        """The cluster's file of this kind, by its name beside slurm.conf, else by content: all there might be."""
        name = next(name for name, of in SLURM_NAMES.items() if of is kind)
        beside = self.reach.there(posixpath.join(root.folder, name), root.path)
        if beside and (any(file.path == beside for file in self.files) or self._in_folder(beside)):
            return (beside,)
        alone = len(roots) == 1
        free = [file for file in self.free if file.kind is kind and not file.backup]
        return tuple(file.path for file in free if alone or file.folder == root.folder)

    def _namespace(self, root: _File) -> str | None:
        """namespace.yaml beside slurm.conf; it is YAML, and known by its name alone."""
        path = self.reach.there(posixpath.join(root.folder, NAMESPACE_CONF), root.path)
        return path if path and self._in_folder(path) else None

    def _in_folder(self, path: str) -> bool:
        """Whether a file that need not look like one of Slurm's is in a folder given."""
        try:
            return self.reach.inside(path) and self.reach.text(path) is not None
        except (KeyError, FileNotFoundError):
            return False

    def _unread(self, file: _File, roots: Sequence[_File]) -> bool:
        """A file that a cluster's slurm.conf could have named, and did not."""
        return file.backup or (any(_above(root, file) for root in roots) if not file.named else bool(roots))

    def _partial(self, files: Sequence[_File]) -> Iterator[SlurmTree]:
        """Parts without a slurm.conf: those named one by one belong together, else those of one folder."""
        groups: dict[str, list[_File]] = {}
        together = sum(file.named and file.kind is Kind.GRES_CONF for file in files) < 2
        for file in files:
            groups.setdefault("" if file.named and together else f"/{file.folder}", []).append(file)
        for group in groups.values():
            folder = group[0].folder
            of = {
                kind: sorted((f.path for f in group if f.kind is kind), key=_by_name) for kind in SLURM_NAMES.values()
            }
            gres, cgroup, container = (of[kind] for kind in list(SLURM_NAMES.values())[1:])
            parts = Parts(
                posixpath.join(folder, "slurm.conf"),
                tuple(of[Kind.SLURM_CONF]),
                _first(gres),
                _first(cgroup),
                _first(container),
                whole=False,
                gres_known=bool(gres),
                container_known=bool(container),
            )
            yield self._tree(parts)
            for path in gres[1:]:
                yield self._tree(Parts(posixpath.join(folder, "slurm.conf"), (), path, whole=False))

    def _tree(self, parts: Parts) -> SlurmTree:
        folder = posixpath.dirname(parts.name)

        def open_text(path: str) -> str:
            return self.reach.text(path, (folder or ".",))

        def locate(path: str) -> str:
            return self.reach.find(path, parts.name)

        files = assemble(parts, open_text, locate, self.release.includes_from == "includer")
        own = (*parts.conf, *(path for path in (parts.gres, parts.cgroup, parts.container) if path))
        paths = tuple(dict.fromkeys((*own, *(include.found for include in files.includes if include.found))))
        self.read.update(paths)
        return SlurmTree(files, paths)


def _above(root: _File, file: _File) -> bool:
    """Whether a file lies in slurm.conf's folder, or below it."""
    return file.folder == root.folder or file.folder.startswith(root.folder + "/" if root.folder else "")


def _by_name(path: str) -> tuple[bool, str]:
    return posixpath.basename(path) not in SLURM_NAMES, path


def _first(paths: Sequence[str]) -> str | None:
    return paths[0] if paths else None
