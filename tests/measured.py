"""A plugin for `make soak`: it writes down what the large counts found, in docs/measured.md.

A test says what it measured with `record_property("measured", "560,000 nodes: each as expected")`; a table of all of
them, with the time each test took, is written where the whole run passed. Load it with `-p tests.measured`.
"""

from __future__ import annotations

import platform
from pathlib import Path

import pytest

from testbed.slurm.root import SUITES, SlurmRoot

MEASURED = Path(__file__).parent.parent / "docs" / "measured.md"

HEAD = """\
# Measured

Written by `make soak`; do not edit. Each line is a test that ran its full count and passed.

Python {python}, {machine}; Slurm {slurm}.

| test | measured | seconds |
|---|---|---:|
"""


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, exitstatus: int, config: pytest.Config) -> None:
    """Write the file if nothing failed; a summary of a broken run would be taken for a good one."""
    if hasattr(config, "workerinput"):  # a worker of xdist has seen a part only
        return
    lines = [
        f"| `{report.nodeid}` | {value} | {report.duration:.1f} |\n"
        for report in terminalreporter.stats.get("passed", [])
        for key, value in report.user_properties
        if key == "measured" and report.when == "call"
    ]
    if exitstatus != pytest.ExitCode.OK or not lines:
        terminalreporter.write_line(f"{MEASURED.name} is left as it was: failures, or nothing measured")
        return
    slurm = ", ".join(SlurmRoot.for_version(release).version for release in SUITES if not SlurmRoot.missing(release))
    head = HEAD.format(python=platform.python_version(), machine=platform.machine(), slurm=slurm or "not run")
    MEASURED.write_text(head + "".join(sorted(lines)), encoding="utf-8")
    terminalreporter.write_line(f"wrote {MEASURED}")
