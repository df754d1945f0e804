"""A root file system with one release of Slurm, and `slurmd -G` in it: the judge of every gres.conf we write or read.

It leaves nothing behind: each run has a mount namespace of its own, and its folder of files is removed. It needs root
and, the first time, debootstrap and the package archive. It says what slurmd printed and judges nothing.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import stat
import subprocess
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

SUITES: Mapping[str, str] = {"22.05": "bookworm", "24.11": "trixie", "26.05": "sid"}
"""The Debian suite that carries a release; sid moves, and `SlurmRoot.version` says what was found."""

FIRST = "slurmd-g.conf"
"""The file that slurmd_g hands to slurmd, beside slurm.conf."""

GPUS = 16
CAPABILITIES = 2201
_BUILD = Path(__file__).parent / "build-root"
_SLURMD_SECONDS = 60

_SETTINGS: Mapping[str, str] = {
    "AuthType": "auth/none",
    "CredType": "cred/none",
    "ProctrackType": "proctrack/linuxproc",
    "TaskPlugin": "task/none",
    "SlurmdParameters": "config_overrides",
}
"""What a slurm.conf needs here: no munge, no cgroups, sockets and cores as configured, not as found."""

_CGROUP_PLUGIN: Mapping[str, str] = {"22.05": "cgroup/v1"}
"""How to do without cgroups; releases from 23.02 know `disabled`."""

_MACHINE = (
    "failed to find sysfs cpu topology",
    "Node configuration differs from hardware",
    "cgroup/v1",
    "cgroup v1",
    'cgroup.conf" is empty',
    *(f"{key} specified more than once" for key in (*_SETTINGS, "CgroupPlugin")),
    *(f"{key} 1 specified more than once" for key in (*_SETTINGS, "CgroupPlugin")),
)
"""Parts of lines that this machine or our settings cause, not the files under test."""

_LINE = re.compile(r"^(?:slurmd(?:-[^:]*)?: |\[[^]]*\] )")
_RECORD = re.compile(
    r"^Gres Name=(?P<name>\S+) Type=(?P<type>.*?) Count=(?P<count>\d+)(?: Index=(?P<index>\d+))? ID=\d+"
    r"(?: File=(?P<file>\S*))?(?: Cores=(?P<cores>.*?) CoreCnt=\d+)?"
    r"(?: Links=(?P<links>.*?)| \(null\))?(?: Flags=(?P<flags>.*))?$"
)


@dataclass(frozen=True, slots=True)
class SlurmdRecord:
    """One line of `slurmd -G`. `files` are expanded; `flags` empty on releases that print none."""

    name: str
    type: str | None
    count: int
    files: tuple[str, ...]
    cores: str | None
    links: str | None
    flags: tuple[str, ...]

    def devices(self) -> Iterator[SlurmdRecord]:
        """The same as one record a device: slurmd keeps several equal devices in one record until it must not."""
        if len(self.files) < 2 or self.count != len(self.files):
            yield self
            return
        for file in self.files:
            yield SlurmdRecord(self.name, self.type, 1, (file,), self.cores, self.links, self.flags)


@dataclass(frozen=True, slots=True)
class SlurmdReport:
    """What one `slurmd -G` said: its records in order, and every other line but the machine's own."""

    status: int
    records: tuple[SlurmdRecord, ...]
    messages: tuple[str, ...]

    @property
    def died(self) -> bool:
        """Whether slurmd would not start with these files."""
        return self.status != 0

    @property
    def devices(self) -> tuple[SlurmdRecord, ...]:
        """One record a device, in slurmd's order; the same form for every release."""
        return tuple(device for record in self.records for device in record.devices())


@dataclass(frozen=True, slots=True)
class SlurmRoot:
    """One release of Slurm in its root. `release` is the major (`24.11`), `version` what the packages hold."""

    release: str
    path: Path
    version: str

    @classmethod
    def for_version(cls, release: str) -> SlurmRoot:
        """The root for this major, built when it is not there by this recipe; KeyError for a major without a suite."""
        path = _folder(release)
        path.parent.mkdir(parents=True, exist_ok=True)
        with _locked(path.parent / f".{path.name}.lock"):
            if not path.is_dir():
                subprocess.run([str(_BUILD), SUITES[release], str(path)], check=True)
            _make_devices(path)
        return cls(release, path, (path / "slurm-version").read_text().strip())

    @staticmethod
    def missing(release: str) -> str | None:
        """Why this root can't be had here, in words for a skipped test; None where it can."""
        if os.geteuid() != 0:
            return "needs root, for chroot and mknod"
        if not shutil.which("unshare"):
            return "needs unshare (util-linux)"
        if not _folder(release).is_dir() and not shutil.which("debootstrap"):
            return f"needs debootstrap, to build the root with Slurm {release}"
        return None

    def slurmd_g(
        self,
        files: Mapping[str, str],
        node: str,
        settings: Mapping[str, str] = _SETTINGS,
        options: Sequence[str] = (),
    ) -> SlurmdReport:
        """What slurmd of this release, with these further options, makes of these files for this node.

        `files` maps names relative to slurm.conf's folder to their text; `settings` are put behind slurm.conf's own.
        """
        site = self.path / "site"
        site.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=site, prefix="g-") as folder:
            for name, text in self.with_settings(files, settings).items():
                target = Path(folder, name)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(text)
            inside = Path("/") / Path(folder).relative_to(self.path)
            done = subprocess.run(
                [*self.enter(), "/usr/sbin/slurmd", "-G", *options, "-N", node, "-f", str(inside / FIRST)],
                check=False,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                timeout=_SLURMD_SECONDS,
                env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"},
            )
        return _report(done.returncode, done.stdout, str(inside))

    def enter(self) -> tuple[str, ...]:
        """The command prefix that runs a program inside the root, with /proc, in a mount namespace of its own."""
        return ("unshare", "--mount", "--propagation", "private", "--root", str(self.path), "--mount-proc")

    def with_settings(self, files: Mapping[str, str], settings: Mapping[str, str] = _SETTINGS) -> dict[str, str]:
        """The files that slurmd reads: an own first one, FIRST, includes slurm.conf, whose line numbers stay."""
        lines = [f"{key}={value}" for key, value in settings.items()]
        cgroup = f"CgroupPlugin={_CGROUP_PLUGIN.get(self.release, 'disabled')}\n"
        return {
            **files,
            FIRST: "\n".join(["Include slurm.conf", *lines, ""]),
            "cgroup.conf": files.get("cgroup.conf", "").rstrip("\n") + "\n" + cgroup,
        }


def _folder(release: str) -> Path:
    """Where the root lies, by suite and recipe: once that is another, so is the folder, and checkouts share a cache."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    recipe = hashlib.sha256(_BUILD.read_bytes()).hexdigest()[:8]
    return cache / "hybridgpu" / "slurm" / f"{SUITES[release]}-{recipe}"


def _report(status: int, output: str, folder: str) -> SlurmdReport:
    records: list[SlurmdRecord] = []
    messages: list[str] = []
    for raw in output.replace(folder + "/", "").splitlines():
        line = _LINE.sub("", raw).strip()
        found = _RECORD.match(line)
        if found:
            records.append(_record(found))
        elif line and not any(part in line for part in _MACHINE):
            messages.append(line)
    return SlurmdReport(status, tuple(records), tuple(messages))


def _record(found: re.Match[str]) -> SlurmdRecord:
    flags = _text(found["flags"])
    return SlurmdRecord(
        name=found["name"],
        type=_text(found["type"]),
        count=int(found["count"]),
        files=_expand(_text(found["file"])),
        cores=_text(found["cores"]),
        links=_text(found["links"]),
        flags=tuple(flags.split(",")) if flags else (),
    )


def _text(value: str | None) -> str | None:
    return None if value in (None, "(null)") else value


def _expand(files: str | None) -> tuple[str, ...]:
    """A list of files in the order written; NodeSet would sort it."""
    names: list[str] = []
    for part in re.findall(r"(?:[^,\[]|\[[^]]*\])+", files or ""):
        prefix, _, ranges = part.rstrip("]").partition("[")
        for one in ranges.split(","):
            low, _, high = one.partition("-")
            last = int(high or low) if low else 0
            names += [f"{prefix}{n}" for n in range(int(low), last + 1)] if low else [prefix]
    return tuple(names)


def _make_devices(root: Path) -> None:
    """Make the character devices that NVIDIA's driver would: 16 cards, and the MIG capabilities of all of them."""
    caps = root / "dev" / "nvidia-caps"
    if (caps / f"nvidia-cap{CAPABILITIES - 1}").exists():
        return
    caps.mkdir(exist_ok=True)
    wanted = [(root / "dev" / f"nvidia{n}", 195, n) for n in range(GPUS)]
    wanted += [(caps / f"nvidia-cap{n}", 236, n) for n in range(CAPABILITIES)]
    for path, major, minor in wanted:
        if not path.exists():
            os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(major, minor))


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
