"""slurmd is the judge of single values: it dies, complains or is silent where we say so."""

from __future__ import annotations

import pytest

from testbed.slurm.root import SlurmRoot
from tests.consumers.slurm import test_cgroupconf, test_hardware
from tests.consumers.slurm.sites import judged, site

CGROUP = sorted({*test_cgroupconf.KEYS, *test_cgroupconf.TAKEN, *test_cgroupconf.REFUSED, *test_cgroupconf.COMPLAINED})
LINES = (*test_hardware.RESET, *test_hardware.KEPT, *test_hardware.DEADLY, *test_hardware.SEVERAL)


def compare(root: SlurmRoot, files: dict[str, str]) -> None:
    report, ours = root.slurmd_g(files, "n1"), judged(files, root.release)
    lines = [m for m in report.messages if m.lower().startswith(("error", "warning", "fatal"))]
    said = (report.died, len(lines) if not report.died else 0)
    assert said == (ours.fatal, len(ours.findings) if not ours.fatal else 0), (report.messages, ours.findings)


@pytest.mark.parametrize("text", CGROUP)
def test_cgroup_conf(slurm_root: SlurmRoot, text: str) -> None:
    compare(slurm_root, test_cgroupconf.with_cgroup(text))


@pytest.mark.parametrize("text", LINES)
def test_a_node_line(slurm_root: SlurmRoot, text: str) -> None:
    compare(slurm_root, site(nodes=f"NodeName=n1 {text}", records="", types=None))
