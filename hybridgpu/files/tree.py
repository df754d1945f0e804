"""Writing a tree of files over one that may exist: what would change, and then the change, file by file and atomic.

A file that is not ours, or was edited since, is never lost: it is refused by name, or moved aside where the caller
says so. Nothing here knows what the files mean.
"""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from hybridgpu.files.stamp import Ownership, ownership

Content = Callable[[], bytes]


@dataclass(frozen=True, slots=True)
class Obstacle:
    """A path that must not be replaced as it is, and why. `movable`: moving it to NAME.orig gets it out of the way."""

    path: str
    why: str
    movable: bool


@dataclass(frozen=True, slots=True)
class TreePlan:
    """What writing would do, all paths relative to the root and sorted."""

    create: tuple[str, ...]
    replace: tuple[str, ...]
    remove: tuple[str, ...]
    unchanged: tuple[str, ...]
    obstacles: tuple[Obstacle, ...]

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
        return file.read()


def compare(root: Path, wanted: Mapping[str, Content], folders: Collection[str]) -> TreePlan:
    """Holds the tree at `root` against `wanted` (relative path -> content). Only `folders` are searched for what is
    no longer wanted, and only files of ours with an intact stamp are taken for that.
    """
    create, replace, unchanged, obstacles = [], [], [], []
    for path in sorted(wanted):
        if not os.path.lexists(root / path):
            create.append(path)
            continue
        there = read_file(root, path)
        if there is None:
            obstacles.append(Obstacle(path, "not a plain file", movable=not (root / path).is_dir()))
        elif there == wanted[path]():
            unchanged.append(path)
        elif (whose := ownership(there)) is Ownership.OURS:
            replace.append(path)
        else:
            obstacles.append(Obstacle(path, whose.value, movable=True))
    remove = [path for path in _files(root, folders) if path not in wanted and _is_ours(root, path)]
    return TreePlan(tuple(create), tuple(replace), tuple(remove), tuple(unchanged), tuple(obstacles))


def write(root: Path, plan: TreePlan, wanted: Mapping[str, Content], synced: Collection[str]) -> None:
    """Carries the plan out. Obstacles are moved to NAME.orig; the caller has decided that they may be. Files in the
    folders `synced` are on disk when this returns. Raises OSError; what was done by then stays, each file whole.
    """
    for obstacle in plan.obstacles:
        aside = root / f"{obstacle.path}.orig"
        if os.path.lexists(aside):
            raise FileExistsError(f"{aside} is in the way: {obstacle.path} cannot be moved there")
        os.rename(root / obstacle.path, aside)
    written = sorted([*plan.create, *plan.replace, *(o.path for o in plan.obstacles)])
    for folder in sorted({os.path.dirname(path) for path in written}):
        (root / folder).mkdir(parents=True, exist_ok=True)
    for path in written:
        replace_file(root / path, wanted[path](), sync=os.path.dirname(path) in synced)
    for path in plan.remove:
        (root / path).unlink(missing_ok=True)
    for folder in synced:
        _sync_folder(root / folder)


def replace_file(path: Path, content: bytes, *, sync: bool) -> None:
    """Writes beside the file, then renames over it: a reader sees the old content or the new one, nothing between."""
    beside = f"{path.parent}/.{path.name}.hybridgpu"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    try:
        descriptor = os.open(beside, flags, 0o644)
    except FileExistsError:  # left by a run that was killed
        os.unlink(beside)
        descriptor = os.open(beside, flags, 0o644)
    try:
        with open(descriptor, "wb", buffering=0) as file:
            view = memoryview(content)
            while view:
                view = view[file.write(view) :]
            if sync:
                os.fsync(descriptor)
        os.rename(beside, path)
    except BaseException:
        os.unlink(beside)
        raise


@contextmanager
def locked(root: Path) -> Iterator[None]:
    """Holds the tree against another writer. Raises BlockingIOError where somebody else is writing it."""
    root.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)


def _files(root: Path, folders: Collection[str]) -> Iterator[str]:
    for folder in sorted(folders):
        for directory, below, names in os.walk(root / folder):
            below.sort()
            for name in sorted(names):
                yield os.path.relpath(os.path.join(directory, name), root)


def _is_ours(root: Path, path: str) -> bool:
    there = read_file(root, path)
    return there is not None and ownership(there) is Ownership.OURS


def _sync_folder(folder: Path) -> None:
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except FileNotFoundError:
        return
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
