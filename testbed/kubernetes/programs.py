"""kube-apiserver and etcd as two static programs, built once from their Go modules and kept in the cache.

Both come from one module graph, that of k8s.io/kubernetes, so etcd is the release that this API server is tested with.
Whoever has them already names their folder in KUBEBUILDER_ASSETS, as for envtest, and nothing is built.
This module starts nothing and knows nothing about what the API server is for.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from testbed.kubernetes.golang import Go

KUBERNETES = "1.36.3"
API_SERVER, ETCD = "kube-apiserver", "etcd"
PACKAGES: Mapping[str, str] = {
    API_SERVER: "k8s.io/kubernetes/cmd/kube-apiserver",
    ETCD: "go.etcd.io/etcd/server/v3",
}
"""The package that each program is built from."""

_FLAGS = ("-gcflags=all=-N -l", f"-ldflags=-s -w -X k8s.io/component-base/version.gitVersion=v{KUBERNETES}")
"""Not optimised: that is a third of the compiler's work, and a test's server has little to do. No debug data."""

_STAGING = re.compile(r"^\s*(?P<module>k8s\.io/\S+) => \./staging/", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Programs:
    """The folder that holds them, and the release of Kubernetes, or the word `given` where they are somebody else's."""

    folder: Path
    version: str

    @classmethod
    def found(cls) -> Programs:
        """The programs, built when they are not there; CalledProcessError, with what Go said before, where that fails.

        Builds wait for each other. A folder appears whole or not at all; what a killed build left is removed.
        """
        given = os.environ.get("KUBEBUILDER_ASSETS")
        if given:
            return cls(Path(given), "given")
        folder = cache() / KUBERNETES
        folder.parent.mkdir(parents=True, exist_ok=True)
        with _locked(folder.parent / ".lock"):
            if not folder.is_dir():
                for left in folder.parent.glob("*.building.*"):
                    shutil.rmtree(left, ignore_errors=True)
                _build(folder)
        return cls(folder, KUBERNETES)

    @staticmethod
    def missing() -> str | None:
        """Why an API server can't be had here, in words for a skipped test; None where it can."""
        if os.geteuid() != 0:
            return "needs root, for namespaces of its own"
        if not shutil.which("unshare"):
            return "needs unshare (util-linux)"
        given = os.environ.get("KUBEBUILDER_ASSETS")
        if given:
            absent = [name for name in PACKAGES if not Path(given, name).is_file()]
            return f"needs {' and '.join(absent)} in KUBEBUILDER_ASSETS={given}" if absent else None
        if (cache() / KUBERNETES).is_dir():
            return None
        return Go.missing()

    def path(self, name: str) -> Path:
        """The file of one of them."""
        return self.folder / name


def cache() -> Path:
    """Where what is built is kept."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hybridgpu" / "kubernetes"


def _build(folder: Path) -> None:
    """Build beside `folder`, and rename at the end."""
    with tempfile.TemporaryDirectory(prefix=f"{folder.name}.building.", dir=folder.parent) as work:
        source, built = Path(work, "source"), Path(work, "built")
        source.mkdir()
        go = Go.ready(Path(work, "go"))
        (source / "go.mod").write_text(_module(go, source), encoding="utf-8")
        for name, package in PACKAGES.items():
            go.run("build", *_FLAGS, "-o", str(built / name), package, cwd=source)
        built.rename(folder)


def _module(go: Go, source: Path) -> str:
    """A go.mod for a build from outside: Kubernetes' own points its staging modules at folders of its repository."""
    told = json.loads(go.run("mod", "download", "-json", f"k8s.io/kubernetes@v{KUBERNETES}", cwd=source))
    own = Path(told["GoMod"]).read_text(encoding="utf-8")
    staging = f"v0.{KUBERNETES.partition('.')[2]}"
    return "\n".join(
        [
            "module testbed",
            next(line for line in own.splitlines() if line.startswith("go ")),
            f"require k8s.io/kubernetes v{KUBERNETES}",
            *(f"replace {module} => {module} {staging}" for module in _STAGING.findall(own)),
            "",
        ]
    )


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
