"""Which files of Slurm may be read for a check, and where a file lies that an Include names.

Read is what was given, what lies in a folder that was given or beside a slurm.conf that was given, and nothing else of
this machine. A path that leads elsewhere means, in a copied tree, the file of its name in the copy.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterable, Sequence

from hybridgpu.files.kinds import SLURM, Input
from hybridgpu.files.source import Source, read_source
from hybridgpu.model.finding import Finding


class Reach:
    """The files within reach of one check. `refused` are findings on those that are no text."""

    def __init__(self, given: Sequence[Input]) -> None:
        self.given = {os.path.realpath(file.path): file for file in given}
        self.roots = tuple(dict.fromkeys(os.path.realpath(file.root) for file in given if file.root))
        self.slurm = [file for file in given if file.kind in SLURM]
        self.refused: dict[str, Finding] = {}
        self._texts: dict[str, str] = {}

    def inside(self, path: str) -> bool:
        """Whether a path lies in a folder that was given."""
        return _below(os.path.realpath(path), self.roots)

    def text(self, path: str, beside: Iterable[str] = ()) -> str:
        """The file's text, as files.slurmlines.OpenText; `beside` are further folders that may be read.

        A file that is refused counts as not given, and a finding says why.
        """
        real = os.path.realpath(path)
        if real in self._texts:
            return self._texts[real]
        if real in self.refused:
            raise KeyError(path)
        within = self.inside(path)
        if not within and real not in self.given and not _below(real, [os.path.realpath(one) for one in beside]):
            raise KeyError(path)
        try:
            source = read_source(path)
        except (FileNotFoundError, NotADirectoryError):
            if within:
                raise FileNotFoundError(path) from None
            raise KeyError(path) from None
        except (OSError, ValueError):
            raise KeyError(path) from None
        if not isinstance(source, Source):
            self.refused[real] = source
            raise KeyError(path)
        self._texts[real] = source.text
        return source.text

    def find(self, path: str, conf: str) -> str:
        """The path under which a file is there that is named in the files of slurm.conf at `conf`; else `path`."""
        file = self.there(path, conf)
        if file is None and posixpath.isabs(path) and not self.inside(path):
            file = self._copy(path, conf)
        return file or path

    def there(self, path: str, conf: str) -> str | None:
        """The path as it was given, or itself where it is within reach and there."""
        real = os.path.realpath(path)
        if real in self.given:
            return self.given[real].path
        beside = os.path.realpath(posixpath.dirname(conf))
        return path if _below(real, (*self.roots, beside)) and os.path.exists(real) else None  # noqa: PTH110 - any name

    def _copy(self, path: str, conf: str) -> str | None:
        """The longest end of the path that is there below a folder given, or beside slurm.conf; else its name."""
        parts = path.strip("/").split("/")
        folders = dict.fromkeys(file.root for file in self.given.values() if file.root and self._holds(file.root, conf))
        for folder in (*folders, posixpath.dirname(conf)):
            for at in range(len(parts)):
                if file := self.there(posixpath.join(folder, *parts[at:]), conf):
                    return file
        named = [file.path for file in self.slurm if posixpath.basename(file.path) == parts[-1]]
        return named[0] if len(named) == 1 else None

    def _holds(self, root: str, conf: str) -> bool:
        return _below(os.path.realpath(conf), (os.path.realpath(root),))


def _below(real: str, folders: Iterable[str]) -> bool:
    return any(real == folder or real.startswith(folder.rstrip("/") + "/") for folder in folders)
