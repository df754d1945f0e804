"""What lies on a node for Slurm to run: our hooks as a package installs them, or recorders in their place."""

from __future__ import annotations

from pathlib import Path

HOUSE = Path(__file__).parents[2]
LIBRARY = "/usr/lib/hybridgpu"
PROLOG, EPILOG = "/etc/slurm/prolog.d/50-hybridgpu", "/etc/slurm/epilog.d/50-hybridgpu"
TASK_PROLOG = f"{LIBRARY}/taskprolog"
RECORDS = "/records"

_SCRIPTS = {
    PROLOG: "slurm/prolog.d/50-hybridgpu",
    EPILOG: "slurm/epilog.d/50-hybridgpu",
    "/etc/slurm/taskprolog.d/50-hybridgpu": "slurm/taskprolog.d/50-hybridgpu",
    TASK_PROLOG: "slurm/taskprolog",
    f"{LIBRARY}/hybridgpu-hook": "slurm/hybridgpu-hook",
}
_ROOMS = ("mps", "hooks")

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


def ours() -> dict[str, str]:
    """The files of our hooks by where they lie on a node."""
    files = {inside: (HOUSE / path).read_text(encoding="utf-8") for inside, path in _SCRIPTS.items()}
    package = HOUSE / "hybridgpu"
    modules = [package / "__init__.py", *(path for room in _ROOMS for path in sorted((package / room).rglob("*.py")))]
    return files | {f"{LIBRARY}/{path.relative_to(HOUSE)}": path.read_text(encoding="utf-8") for path in modules}


def recorders() -> dict[str, str]:
    """In place of ours, scripts that write what they see to the folder RECORDS/WHAT.JOB.NODE.PID."""
    places = {"prolog": PROLOG, "epilog": EPILOG, "taskprolog": TASK_PROLOG}
    return {inside: _RECORDER.format(records=RECORDS, what=what) for what, inside in places.items()}
