"""Writing a tree of files over one that may exist: what would change, and then the change, file by file and atomic.

A file that is not ours, or was edited since, is never lost: it is refused by name, or moved aside where the caller
says so. Nothing here knows what the files mean.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import stat
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from hybridgpu.files.stamp import Ownership, ownership

Content = Callable[[], bytes]

_BESIDE = ".hybridgpu"
"""What the name of a temporary file ends with: `.NAME.hybridgpu`, beside NAME."""

_MOST = 2**28
"""Bytes read of a file that is there: more than we ever write, so what is cut off here is not ours."""


@dataclass(frozen=True, slots=True)
class Obstacle:
    """A path that must not be replaced as it is, and why. `movable`: moving it to NAME.orig gets it out of the way."""

    path: str
    why: str
    movable: bool


@dataclass(frozen=True, slots=True)
class TreePlan:
    """What writing would do, all paths relative to the root and sorted. `litter` was left by runs that were killed."""

    create: tuple[str, ...]
    replace: tuple[str, ...]
    remove: tuple[str, ...]
    unchanged: tuple[str, ...]
    obstacles: tuple[Obstacle, ...]
    litter: tuple[str, ...] = ()

    @property
    def changes(self) -> bool:
        """Whether anything is different from what is there."""
        return bool(self.create or self.replace or self.remove or self.obstacles)


def read_file(root: Path, path: str) -> bytes | None:
    """The content of a plain file below `root`; None where there is none, or where it is no plain file (a link, a
    folder, a pipe). Raises OSError for what cannot be read.
    """
    try:
        if not stat.S_ISREG(os.lstat(root / path).st_mode):
            return None
        descriptor = os.open(root / path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except (FileNotFoundError, NotADirectoryError):
        return None
    with open(descriptor, "rb") as file:
        return file.read(_MOST)


def compare(root: Path, wanted: Mapping[str, Content], folders: Mapping[str, re.Pattern[str]]) -> TreePlan:
    """Holds the tree at `root` against `wanted` (relative path -> content).

    `folders` are searched for what is no longer wanted, not below them; their patterns say which names could be ours.
    What fits is removed where its stamp is ours and intact. Raises OSError where the tree cannot be read.
    """
    if root.exists() and not root.is_dir():
        raise FileExistsError(errno.EEXIST, "is not a folder", str(root))
    create, replace, unchanged = [], [], []
    obstacles = list(_blocked(root, wanted))
    blocked = tuple(f"{obstacle.path}/" for obstacle in obstacles)
    for path in sorted(path for path in wanted if not path.startswith(blocked)):
        if not os.path.lexists(root / path):
            create.append(path)
        elif (there := read_file(root, path)) is None:
            obstacles.append(_obstacle(root, path, "not a plain file"))
        elif there == wanted[path]():
            unchanged.append(path)
        elif (whose := ownership(there)) is Ownership.OURS:
            replace.append(path)
        else:
            obstacles.append(_obstacle(root, path, whose.value))
    strays = [path for path in _files(root, folders) if path not in wanted]
    remove = [path for path in strays if not _litter(path) and _is_ours(root, path)]
    litter = [path for path in strays if _litter(path)]
    return TreePlan(
        tuple(create), tuple(replace), tuple(remove), tuple(unchanged), obstacles=tuple(obstacles), litter=tuple(litter)
    )


def write(root: Path, plan: TreePlan, wanted: Mapping[str, Content], synced: Collection[str]) -> None:
    """Carries the plan out. Obstacles are moved to NAME.orig; the caller has decided that they may be. Files in the
    folders `synced` are on disk when this returns. Raises OSError; what was done by then stays, each file whole.
    """
    for path in plan.litter:
        (root / path).unlink(missing_ok=True)
    for obstacle in plan.obstacles:
        os.rename(root / obstacle.path, root / f"{obstacle.path}.orig")
    written = sorted([*plan.create, *plan.replace, *(o.path for o in plan.obstacles)])
    for folder in sorted({os.path.dirname(path) for path in written}):
        _make_folder(root / folder)
    for path in written:
        replace_file(root / path, wanted[path](), sync=os.path.dirname(path) in synced)
    for path in plan.remove:
        (root / path).unlink(missing_ok=True)
    for folder in synced:
        _sync_folder(root / folder)


def replace_file(path: Path, content: bytes, *, sync: bool, keep: bool = True) -> None:
    """Writes beside the file, then renames over it: a reader sees the old content or the new one, nothing between.

    Mode and owner of a file that is replaced are kept, unless `keep` is false; a new one is 0644 whatever the umask:
    Slurm's daemons run as several users. Raises OSError that names the file.
    """
    beside = f"{path.parent}/.{path.name}{_BESIDE}"
    try:
        old = os.lstat(path) if keep and os.path.lexists(path) else None
        with suppress(FileNotFoundError):
            os.unlink(beside)  # left by a run that was killed
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        try:
            with open(descriptor, "wb", buffering=0) as file:
                view = memoryview(content)
                while view:
                    view = view[file.write(view) :]
                _dress(descriptor, old)
                if sync:
                    os.fsync(descriptor)
            os.rename(beside, path)
        except BaseException:
            os.unlink(beside)
            raise
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error


def replace_alone(path: Path, content: bytes, *, keep: bool = True) -> None:
    """Replaces one file that several processes may write at once: one after the other, each wholly.

    With `keep` mode and owner of the file that is there are kept; without, it is 0644 and the writer's. Raises OSError
    that names the file, also where something other than a file or a link is there.
    """
    if path.exists() and not path.is_file():
        raise OSError(errno.EEXIST, "this is no ordinary file, and is not replaced", str(path))
    descriptor = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        replace_file(path, content, sync=True, keep=keep)
    finally:
        os.close(descriptor)


@contextmanager
def locked(root: Path) -> Iterator[None]:
    """Holds the tree against another writer. Raises BlockingIOError where somebody else is writing it.

    A root that is made for this and stays empty is taken away again.
    """
    made = not root.exists()
    _make_folder(root)
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as busy:
            raise BlockingIOError(busy.errno, "somebody else is writing this folder", str(root)) from None
        yield
    finally:
        os.close(descriptor)
        if made:
            with suppress(OSError):
                root.rmdir()


def _blocked(root: Path, wanted: Mapping[str, Content]) -> Iterator[Obstacle]:
    """What stands where a folder must be, or where a temporary file must be."""
    for folder in sorted({os.path.dirname(path) for path in wanted}):
        if os.path.lexists(root / folder) and not os.path.isdir(root / folder):
            yield Obstacle(folder, "not a folder", movable=False)
        elif os.path.isdir(root / folder):
            yield from (
                Obstacle(f"{folder}/{entry.name}", "a folder in the place of a temporary file of ours", movable=False)
                for entry in os.scandir(root / folder)
                if entry.name.endswith(_BESIDE) and entry.is_dir()
            )


def _obstacle(root: Path, path: str, why: str) -> Obstacle:
    if os.path.lexists(root / f"{path}.orig"):
        return Obstacle(path, f"{why}, and {path}.orig is there already", movable=False)
    return Obstacle(path, why, movable=not os.path.isdir(root / path))


def _files(root: Path, folders: Mapping[str, re.Pattern[str]]) -> Iterator[str]:
    """The plain files right in the folders whose names could be ours, and temporary files of such names."""
    for folder, pattern in sorted(folders.items()):
        if not os.path.isdir(root / folder):
            continue
        for entry in sorted(os.scandir(root / folder), key=lambda entry: entry.name):
            name = entry.name[1 : -len(_BESIDE)] if _litter(entry.name) else entry.name
            if pattern.fullmatch(name) and entry.is_file(follow_symlinks=False):
                yield f"{folder}/{entry.name}"


def _litter(path: str) -> bool:
    return os.path.basename(path).startswith(".") and path.endswith(_BESIDE)


def _is_ours(root: Path, path: str) -> bool:
    there = read_file(root, path)
    return there is not None and ownership(there) is Ownership.OURS


def _dress(descriptor: int, old: os.stat_result | None) -> None:
    if old is None or not stat.S_ISREG(old.st_mode):
        os.fchmod(descriptor, 0o644)
        return
    with suppress(PermissionError):
        os.fchown(descriptor, old.st_uid, old.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(old.st_mode))


def _make_folder(folder: Path) -> None:
    """The folder and its parents, 0755 where they are new."""
    for each in (*reversed(folder.parents), folder):
        if not each.exists():
            each.mkdir()
            each.chmod(0o755)


def _sync_folder(folder: Path) -> None:
    with suppress(FileNotFoundError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
