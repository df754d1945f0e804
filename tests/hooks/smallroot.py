"""A root file system with a shell and nothing else, where the scripts that Slurm calls are run: what they need is seen.

No program is in there but those asked for, so a script that calls one fails; and `without_forks` runs it as a user who
may have one process, so that a script that forks fails. Needs root, for chroot.
"""

from __future__ import annotations

import os
import re
import resource
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.conftest import lacking

HOUSE = Path(__file__).parents[2]
HOOK = "usr/lib/hybridgpu/hybridgpu-hook"
SCRIPTS = {
    "prolog": "etc/slurm/prolog.d/50-hybridgpu",
    "epilog": "etc/slurm/epilog.d/50-hybridgpu",
    "taskprolog": "etc/slurm/taskprolog.d/50-hybridgpu",
    "all-taskprologs": "usr/lib/hybridgpu/taskprolog",
}
SOURCES = {
    "prolog": "slurm/prolog.d/50-hybridgpu",
    "epilog": "slurm/epilog.d/50-hybridgpu",
    "taskprolog": "slurm/taskprolog.d/50-hybridgpu",
    "all-taskprologs": "slurm/taskprolog",
}
SHELLS = {"dash": ("dash",), "bash": ("bash", "--posix"), "busybox": ("busybox", "sh")}

STUB = """\
#!/bin/sh
printf '%s\\n' "$*" >>/run/called
exit {status}
"""


class SmallRoot:
    """The root, with our scripts and a hook in place of hybridgpu-hook that notes how it was called."""

    def __init__(self, path: Path, shell: str, programs: Sequence[str] = ()) -> None:
        if os.geteuid() != 0:
            lacking("needs root, for chroot")
        if shutil.which(shell) is None:
            lacking(f"there is no {shell} here")
        self.path, self.shell = path, SHELLS[shell]
        for program in (self.shell[0], *programs):
            self._copy_program(program)
        (path / "bin" / "sh").symlink_to(self.shell[0])
        for name, target in SCRIPTS.items():
            self.write(target, (HOUSE / SOURCES[name]).read_text(encoding="utf-8"), 0o755)
        self.stub()
        for folder in ("dev", "run"):
            (path / folder).mkdir()
        os.mknod(path / "dev/null", 0o020666, os.makedev(1, 3))
        (path / "dev/null").chmod(0o666)

    @property
    def run_folder(self) -> Path:
        return self.path / "run/hybridgpu"

    @property
    def jobs(self) -> Path:
        return self.run_folder / "jobs"

    def write(self, inside: str, text: str, mode: int = 0o644) -> Path:
        target = self.path / inside.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
        target.chmod(mode)
        return target

    def stub(self, status: int = 0) -> None:
        """A hook that notes its words and ends with this status."""
        self.write(HOOK, STUB.format(status=status), 0o755)

    def called(self) -> list[str]:
        """How the hook was called since it was last asked."""
        note = self.path / "run/called"
        lines = note.read_text(encoding="utf-8").splitlines() if note.exists() else []
        note.unlink(missing_ok=True)
        return lines

    def call(
        self, script: str, environment: Mapping[str, str], without_forks: bool = False
    ) -> subprocess.CompletedProcess[str]:
        """Run one of our scripts by this root's shell with this environment and no other."""
        uid = 2_000_000_000 + os.getpid()
        if without_forks:
            for folder in (self.path / "run", self.run_folder, self.jobs):
                if folder.exists():
                    os.chown(folder, uid, uid)

        def enter() -> None:
            os.chroot(self.path)
            os.chdir("/")
            if without_forks:
                resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))
                os.setresgid(uid, uid, uid)
                os.setresuid(uid, uid, uid)

        name, *options = self.shell
        return subprocess.run(
            [f"/bin/{name}", *options, f"/{SCRIPTS.get(script, script)}"],
            executable=f"/bin/{name}",
            env=dict(environment),
            preexec_fn=enter,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
        )

    def _copy_program(self, program: str) -> None:
        found = shutil.which(program)
        if found is None:
            lacking(f"there is no {program} here")
        libraries = subprocess.run(["ldd", found], capture_output=True, text=True, check=False).stdout
        for source in (found, *re.findall(r"(/\S+) \(0x", libraries)):
            target = self.path / ("bin/" + program if source == found else source.lstrip("/"))
            target.parent.mkdir(parents=True, exist_ok=True)
            if not target.exists():
                shutil.copy(source, target)
