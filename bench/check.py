"""`check` of Slurm's files of ten thousand nodes against `slurmd -G` on the very same files, by hostlist and by line.

slurmd reads them all for one node and judges that one; check judges every node. Each command's start-up is that of the
same files with one node. Needs root and the root file systems with Slurm, as the tests do.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.measure import Command, Run, in_turn, machine, median, run, table
from testbed.slurm.root import SlurmRoot

RELEASE = "24.11"
NODES = 10_000

SLURM_CONF = """\
ClusterName=bench
SlurmctldHost=ctl
AuthType=auth/none
CredType=cred/none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SlurmdParameters=config_overrides
GresTypes=gpu
PartitionName=all Nodes=ALL
{nodes}
"""
CGROUP_CONF = "CgroupPlugin=disabled\n"
NODE = "NodeName={} CPUs=256 Sockets=2 CoresPerSocket=128 RealMemory=2000000 Gres=gpu:a100:8"
RECORD = "NodeName={} Name=gpu Type=a100 File=/dev/nvidia[0-7]"


def main() -> None:
    """Prints the ratios for both ways to write a cluster, and how check's time grows; or why it cannot run here."""
    missing = SlurmRoot.missing(RELEASE)
    if missing:
        print(f"check against slurmd -G: not run: {missing}")
        return
    root = SlurmRoot.for_version(RELEASE)
    print(machine())
    with _folder(root) as folder:
        one = _write(folder / "one", ["gpu00001"])
        for what, hosts in {
            "by hostlist": [f"gpu[00001-{NODES:05}]"],
            "one line a node": [f"gpu{number:05}" for number in range(1, NODES + 1)],
        }.items():
            _compare(root, what, _write(folder / what.replace(" ", "-"), hosts), one)
        _slope(folder)


@contextmanager
def _folder(root: SlurmRoot) -> Iterator[Path]:
    """A folder inside the root, seen from both sides."""
    site = root.path / "site"
    site.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=site, prefix="bench-") as folder:
        yield Path(folder)


def _write(folder: Path, hosts: list[str]) -> Path:
    folder.mkdir()
    (folder / "slurm.conf").write_text(SLURM_CONF.format(nodes="\n".join(map(NODE.format, hosts))))
    (folder / "gres.conf").write_text("\n".join([*map(RECORD.format, hosts), ""]))
    (folder / "cgroup.conf").write_text(CGROUP_CONF)
    return folder


def _check(folder: Path) -> Command:
    return (sys.executable, "-m", "hybridgpu", "check", str(folder), "--slurm-version", RELEASE)


def _slurmd(root: SlurmRoot, folder: Path) -> Command:
    enter, *rest = root.enter()
    inside = Path("/") / folder.relative_to(root.path) / "slurm.conf"
    return (shutil.which(enter) or enter, *rest, "/usr/sbin/slurmd", "-G", "-N", "gpu00001", "-f", str(inside))


def _compare(root: SlurmRoot, what: str, files: Path, one: Path) -> None:
    names = ("check", "slurmd -G", "check of one node (start-up)", "slurmd -G of one node (start-up)")
    commands = (_check(files), _slurmd(root, files), _check(one), _slurmd(root, one))
    results = in_turn(dict(zip(names, commands, strict=True)), runs=7)
    print(f"\nSlurm {root.version}, {NODES} nodes with 8 GPUs, {what}")
    table(results)
    check, slurmd, check_start, slurmd_start = (median(runs) for runs in results.values())
    print(f"check / slurmd -G: wall {check.wall / slurmd.wall:.2f}, cpu {check.cpu / slurmd.cpu:.2f} (bound 10)")
    print(f"less each one's start-up: wall {_net(check, check_start) / _net(slurmd, slurmd_start):.2f}")


def _net(whole: Run, start: Run) -> float:
    return max(whole.wall - start.wall, 1e-4)


def _slope(folder: Path) -> None:
    each: dict[int, float] = {}
    for count in (NODES, NODES * 4):
        files = _write(folder / f"slope-{count}", [f"gpu{number:06}" for number in range(count)])
        run(_check(files))
        each[count] = median([run(_check(files)) for _ in range(3)]).cpu / count * 1e6
    print("\ncheck, one line a node: " + ", ".join(f"{n} nodes {us:.0f} us of cpu a node" for n, us in each.items()))


if __name__ == "__main__":
    main()
