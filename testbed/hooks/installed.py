"""What lies on a node for Slurm to run: our hooks as a package installs them, or recorders in their place."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from testbed.slurm.namespace import Broken, Namespace

HOUSE = Path(__file__).parents[2]
LIBRARY = "/usr/lib/hybridgpu"
PROLOG, EPILOG = "/etc/slurm/prolog.d/50-hybridgpu", "/etc/slurm/epilog.d/50-hybridgpu"
TASK_PROLOG = f"{LIBRARY}/taskprolog"
RECORDS = "/records"

_SOURCE = "/usr/src/hybridgpu"
_PARTS = ("slurm", "systemd", "hybridgpu/__init__.py", "hybridgpu/mps", "hybridgpu/hooks")

_RECORDER = """\
#!/bin/sh
record={records}/{what}.$SLURM_JOB_ID.$SLURMD_NODENAME.$$
/bin/mkdir $record.part
/bin/cat /proc/$$/environ >$record.part/environ
/bin/cat /proc/$$/cgroup >$record.part/cgroup
for device in /dev/nvidia[0-9]* /dev/nvidia-caps/*; do
    echo "$device $( (: <$device) 2>&1)"
done >$record.part/devices
/bin/mv $record.part $record
"""
"""The environment as the kernel has it: a shell's own variables, such as PWD, are not in there."""


def install(inside: Namespace) -> None:
    """Install our hooks from this checkout, as an admin would: compiled by the root's own Python. Raises Broken."""
    for part in _PARTS:
        target = inside.path(f"{_SOURCE}/{part}")
        target.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["cp", "-r", str(HOUSE / part), str(target)], check=True)
    done = inside.run([f"{_SOURCE}/slurm/install"])
    if done.returncode != 0:
        raise Broken(f"slurm/install: {done.stdout}{done.stderr}")


def ours() -> dict[str, str]:
    """The files that our hooks' installation puts on a node, by where they lie; those that begin with `#!` are run."""
    with tempfile.TemporaryDirectory() as node:
        subprocess.run([str(HOUSE / "slurm" / "install"), node], check=True)
        files = (path for path in Path(node).rglob("*") if path.is_file() and path.suffix != ".pyc")
        return {f"/{path.relative_to(node)}": path.read_text(encoding="utf-8") for path in files}


def recorders() -> dict[str, str]:
    """In place of ours, scripts that write what they see to the folder RECORDS/WHAT.JOB.NODE.PID."""
    places = {"prolog": PROLOG, "epilog": EPILOG, "taskprolog": TASK_PROLOG}
    return {inside: _RECORDER.format(records=RECORDS, what=what) for what, inside in places.items()}
