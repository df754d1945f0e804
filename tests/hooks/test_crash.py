"""Hooks killed before and after every effect they have, and every effect failing; then one sweep: nothing is left.

Run by `make soak` to the end; `make test` takes some of each, other ones for each kind. See crashworld.py.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from testbed.driver import library
from testbed.driver.machine import Machine
from testbed.hooks.cgroups import Cgroups, missing
from tests.conftest import lacking, root_of, soak
from tests.hooks.crashworld import SCENARIOS
from tests.simulated import load_driver

HERE = Path(__file__).parent
RELEASE = "24.11"
"""The root whose control daemon is used."""

KINDS = ("before", "after", "EIO", "ENOSPC", "EROFS", "child-before", "child-after")
CARDS = {"model": "A100-SXM4-80GB", "minor": 0}, {"model": "A100-SXM4-80GB", "minor": 1}

ENTER = """
set -eu
for file in $CGROUPS; do echo $$ >"$file"; done
exec unshare --mount --propagation private --pid --cgroup --fork --kill-child=KILL --mount-proc sh -euc '
    mount -t tmpfs -o mode=755 tmpfs /run
    mount -t tmpfs -o mode=755 tmpfs /sys/fs/cgroup
    for hierarchy in $HIERARCHIES; do
        mkdir "/sys/fs/cgroup/${hierarchy%%=*}"
        mount -t cgroup -o "${hierarchy#*=}" cgroup "/sys/fs/cgroup/${hierarchy%%=*}"
    done
    cp "$PROGRAM" /run/nvidia-cuda-mps-control
    chmod 755 /run/nvidia-cuda-mps-control
    exec "$@"' sh "$@"
"""
"""Cgroups of its own first, then everything else. PROGRAM is where no user may go, so it is copied."""


@pytest.fixture
def cgroups() -> Iterator[dict[str, str]]:
    """Variables for ENTER; none where the machine has no hierarchies to give: hooks then run without."""
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        lacking("needs root and unshare (util-linux)")
    if missing():
        yield {"CGROUPS": "", "HIERARCHIES": ""}
        return
    made = Cgroups.make(os.getpid(), ("crash",))
    try:
        hierarchies = " ".join(f"{one.mounted}={one.options}" for one in made.hierarchies)
        yield {"CGROUPS": " ".join(made.processes_files("crash")), "HIERARCHIES": hierarchies}
    finally:
        made.remove()


@pytest.mark.slurm
@pytest.mark.parametrize("name", SCENARIOS)
def test_nothing_is_left(name: str, cgroups: dict[str, str], record_property: Callable[[str, object], None]) -> None:
    load_driver()
    with tempfile.TemporaryDirectory() as folder:
        machine = Machine.make(Path(folder), {"name": "crash", "gpus": list(CARDS)})
        uuids = ",".join(card["uuid"] for card in machine.show()["gpus"])
        arguments = [
            name,
            ",".join(KINDS),
            str(soak(9, 1)),
            str(library.LIBRARY),
            "/run/nvidia-cuda-mps-control",
            uuids,
        ]
        done = subprocess.run(
            ["sh", "-c", ENTER, "sh", sys.executable, str(HERE / "crashworld.py"), *arguments],
            env={
                **os.environ,
                **cgroups,
                **machine.environment(),
                "PROGRAM": str(root_of(RELEASE).path / "usr/bin/nvidia-cuda-mps-control"),
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=soak(300, 3600),
            check=False,
        )
    *wrong, last = done.stdout.splitlines() or [""]
    assert not wrong, "\n".join(wrong)
    assert done.returncode == 0, done.stderr
    word, tries, effects = last.split()
    assert word == "done"
    assert int(effects) > 5
    assert int(tries) >= soak(2, int(effects) * 5)
    record_property("measured", f"{effects} effects, {tries} deaths and errors at them, then one sweep: nothing left")
