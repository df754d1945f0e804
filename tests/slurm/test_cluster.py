"""The test cluster itself: it is real, it is alone, it leaves nothing; and facts of Slurm that we build on."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.slurm.cluster import FIRST_PORT, Cluster, NotGranted, ports
from testbed.slurm.grant import Grant, Granted, gres, record
from testbed.slurm.namespace import Broken
from testbed.slurm.root import SlurmRoot

CAPS = "/dev/nvidia-caps/nvidia-cap"
HOOK = "#!/bin/sh\nexit 0\n"

NODES = {
    "whole": "gpu:h100:2",
    "cut": "gpu:a100:1,gpu:1g.10gb:2",
    "sliced": "gpu:a100:2,shard:8",
    "daemons": "gpu:a100:2,mps:200",
}
GRES_CONF = f"""
NodeName=whole Name=gpu Type=h100 File=/dev/nvidia[0-1]
NodeName=sliced,daemons Name=gpu Type=a100 File=/dev/nvidia[0-1]
NodeName=cut Name=gpu Type=a100 File=/dev/nvidia0
NodeName=cut Name=gpu Type=1g.10gb MultipleFiles=/dev/nvidia1,{CAPS}201,{CAPS}202
NodeName=cut Name=gpu Type=1g.10gb MultipleFiles=/dev/nvidia1,{CAPS}210,{CAPS}211
NodeName=sliced Name=shard File=/dev/nvidia0 Count=4
NodeName=sliced Name=shard File=/dev/nvidia1 Count=4
NodeName=daemons Name=mps File=/dev/nvidia0 Count=100
NodeName=daemons Name=mps File=/dev/nvidia1 Count=100
"""


def by_hand(nodes: dict[str, str], gres_conf: str) -> dict[str, str]:
    """The files of a cluster with these `Gres=` and this gres.conf, and a prolog that does nothing."""
    lines = [
        f"NodeName={node} Port={port} CPUs=8 RealMemory=1000 Gres={nodes[node]}" for node, port in ports(nodes).items()
    ]
    return {
        "nodes.conf": "\n".join([*lines, ""]),
        "gpu.conf": "GresTypes=gpu,mps,shard\nProlog=/etc/slurm/prolog.d/50-hook\nPrologFlags=Alloc\n",
        "gres.conf": gres_conf,
        "/etc/slurm/prolog.d/50-hook": HOOK,
    }


@pytest.fixture(scope="module")
def cluster(slurm_root: SlurmRoot) -> Iterator[Cluster]:
    with Cluster(slurm_root, by_hand(NODES, GRES_CONF), list(NODES)) as running:
        running.wait_registered()
        yield running


def test_it_is_the_release_that_the_root_is_named_after(cluster: Cluster) -> None:
    version = cluster.scontrol("version")
    assert version.split()[-1].startswith(cluster.root.release)
    assert cluster.root.version.startswith(version.split()[-1])


def test_every_node_registers_what_its_files_say(cluster: Cluster) -> None:
    seen = cluster.show_nodes()
    assert {node: (seen[node]["State"], "Reason" in seen[node]) for node in NODES} == dict.fromkeys(
        NODES, ("IDLE", False)
    )
    shown = {node: seen[node]["Gres"] for node in NODES}
    assert shown["whole"] == "gpu:h100:2"
    assert shown["cut"] == "gpu:a100:1,gpu:1g.10gb:2"
    assert shown["sliced"] == "gpu:a100:2,shard:a100:8"
    assert shown["daemons"] == "gpu:a100:2,mps:a100:200"


@pytest.mark.parametrize(
    ("asked", "node", "granted", "sees"),
    [
        ("gpu:h100:2", "whole", ("gpu", "h100", 2), {"CUDA_VISIBLE_DEVICES": "0,1"}),
        ("gpu:1g.10gb:2", "cut", ("gpu", "1g.10gb", 2), {"CUDA_VISIBLE_DEVICES": "1,2"}),
        ("shard:3", "sliced", ("shard", None, 3), {"CUDA_VISIBLE_DEVICES": "0", "SLURM_SHARDS_ON_NODE": "3"}),
        ("mps:25", "daemons", ("mps", None, 25), {"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": "25"}),
    ],
)
def test_a_job_is_granted_what_it_asks(
    cluster: Cluster, asked: str, node: str, granted: tuple[str, str | None, int], sees: dict[str, str]
) -> None:
    grant = cluster.srun(f"--gres={asked}")
    assert grant.nodes == node
    assert [(each.name, each.type, each.count) for each in grant.gres] == [granted]
    assert {name: grant.environment.get(name) for name in sees} == sees
    assert grant.environment["SLURM_JOB_USER"] == "alice"


def test_order_gpu_mps_shard_takes_the_devices_from_an_mps_task(cluster: Cluster) -> None:
    """Each plugin's turn, in GresTypes' order, unsets what an earlier one has set."""
    assert "CUDA_VISIBLE_DEVICES" not in cluster.srun("--gres=mps:25").environment


@pytest.mark.parametrize("asked", ["gpu:b200:1", "gpu:1g.10gb:3", "shard:9", "mps:201"])
def test_more_than_there_is_is_not_granted(cluster: Cluster, asked: str) -> None:
    with pytest.raises(NotGranted, match=r"not available|Invalid generic resource"):
        cluster.srun(f"--gres={asked}", timeout=2)


def test_a_job_holds_what_it_has_until_it_ends(cluster: Cluster) -> None:
    job = cluster.sbatch("--gres=gpu:h100:2")
    held = cluster.wait_job(job, "RUNNING")
    assert gres(held["GRES"]) == (Granted("gpu", "h100", 2, "IDX:0-1"),)
    with pytest.raises(NotGranted):
        cluster.srun("--gres=gpu:h100:1", timeout=1)
    cluster.inside.run(["scancel", job])
    cluster.wait_job(job, "CANCELLED")
    assert cluster.srun("--gres=gpu:h100:1").nodes == "whole"


def test_types_of_equal_sum_are_one_type_to_the_scheduler(slurm_root: SlurmRoot) -> None:
    """S:src/interfaces/gres.c gres_build_id: 4g.20gb and 1g.23gb have the same id, and jobs get each other's card."""
    records = [
        f"NodeName={node} Name=gpu Type={kind} MultipleFiles=/dev/nvidia0,{CAPS}3,{CAPS}4"
        for node, kind in (("a100", "4g.20gb"), ("b200", "1g.23gb"))
    ]
    files = by_hand({"a100": "gpu:4g.20gb:1", "b200": "gpu:1g.23gb:1"}, "\n".join([*records, ""]))
    with Cluster(slurm_root, files, ["a100", "b200"]) as collided:
        collided.wait_registered()
        wrong = collided.srun("--gres=gpu:4g.20gb:1", "--nodelist=b200")
        assert (wrong.nodes, len(wrong.gres)) == ("b200", 1)
        wrong = collided.srun("--gres=gpu:1g.23gb:1", "--nodelist=a100")
        assert (wrong.nodes, len(wrong.gres)) == ("a100", 1)


def test_too_few_devices_make_a_node_invalid(slurm_root: SlurmRoot) -> None:
    files = by_hand({"short": "gpu:a100:2"}, "NodeName=short Name=gpu Type=a100 File=/dev/nvidia0\n")
    with Cluster(slurm_root, files, ["short"]) as broken:
        broken.wait_registered()
        seen = broken.show_node("short")
    assert "INVAL" in seen["State"]
    assert "gres/gpu count" in seen["Reason"]


def test_slurmd_that_dies_is_reported_with_what_it_said(slurm_root: SlurmRoot) -> None:
    mixed = "NodeName=n1 Name=gpu Type=a100 File=/dev/nvidia0\nNodeName=n1 Name=gpu File=/dev/nvidia1\n"
    with (
        Cluster(slurm_root, by_hand({"n1": "gpu:a100:2"}, mixed), ["n1"]) as dead,
        pytest.raises(Broken, match="slurmd-n1 ended with status 1") as told,
    ):
        dead.wait_registered()
    assert "Type" in str(told.value)


def test_daemons_end_and_start_by_name(cluster: Cluster) -> None:
    assert cluster.stop("slurmd-whole") == 0
    assert cluster.inside.status("slurmd-whole") == 0
    cluster.start_slurmd("whole")
    cluster.wait_registered()
    assert cluster.inside.status("slurmd-whole") is None


def test_nothing_listens_where_others_could_reach_it(cluster: Cluster) -> None:
    """The cluster has a network of its own, in which there is only loopback."""
    interfaces = cluster.inside.run(["cat", "/proc/net/dev"]).stdout.splitlines()[2:]
    assert [line.split(":")[0].strip() for line in interfaces] == ["lo"]
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", FIRST_PORT)) != 0
    assert cluster.inside.run(["scontrol", "ping"]).returncode == 0


def test_clusters_run_side_by_side_on_the_same_ports(cluster: Cluster) -> None:
    with Cluster(cluster.root, by_hand(NODES, GRES_CONF), list(NODES)) as neighbour:
        neighbour.wait_registered()
        job = neighbour.sbatch("--gres=gpu:h100:2")
        neighbour.wait_job(job, "RUNNING")
        assert cluster.show_node("whole")["State"] == "IDLE"


def pid_namespace(pid: int) -> int:
    """The number of the PID namespace that a process lives in."""
    return Path(f"/proc/{pid}/ns/pid").stat().st_ino


def sharing_pid_namespace(number: int) -> list[str]:
    """The processes of this machine that live in a PID namespace."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if (entry / "ns" / "pid").stat().st_ino == number:
                found.append(entry.name)
        except OSError:
            continue
    return found


def contents(root: SlurmRoot) -> list[Path]:
    """Every file of a root, but for the folder where `slurmd -G` of a neighbour may be at work."""
    site = root.path / "site"
    return sorted(path for path in root.path.rglob("*") if site not in path.parents)


def mounts(root: SlurmRoot) -> list[str]:
    """The machine's mounts in or of this root; others are other tests'."""
    return [line for line in Path("/proc/mounts").read_text().splitlines() if str(root.path) in line]


def test_it_leaves_no_process_no_mount_and_no_file(slurm_root: SlurmRoot) -> None:
    before, files = mounts(slurm_root), contents(slurm_root)
    with Cluster(
        slurm_root, by_hand({"n1": "gpu:a100:1"}, "NodeName=n1 Name=gpu Type=a100 File=/dev/nvidia0\n"), ["n1"]
    ) as cluster:
        cluster.wait_registered()
        cluster.wait_job(cluster.sbatch("--gres=gpu:a100:1"), "RUNNING")
        namespace = pid_namespace(cluster.inside.pid)
        assert len(sharing_pid_namespace(namespace)) >= 4  # pid 1, munged, slurmctld, slurmd
    assert not sharing_pid_namespace(namespace)
    assert mounts(slurm_root) == before
    assert contents(slurm_root) == files


STARTER = """
import sys
from pathlib import Path
from testbed.slurm.namespace import Namespace
with Namespace(Path(sys.argv[1])) as space:
    space.start("long", ["sleep", "600"])
    print(space.pid, flush=True)
    sys.stdin.read()
"""


def test_it_ends_with_tests_that_are_killed(slurm_root: SlurmRoot) -> None:
    starter = subprocess.Popen(
        [sys.executable, "-c", STARTER, str(slurm_root.path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert starter.stdout is not None
    inner = starter.stdout.readline().strip()
    namespace = pid_namespace(int(inner))
    assert len(sharing_pid_namespace(namespace)) == 2
    starter.send_signal(signal.SIGKILL)
    starter.communicate()
    end = time.monotonic() + 10
    while sharing_pid_namespace(namespace) and time.monotonic() < end:
        time.sleep(0.05)
    assert not sharing_pid_namespace(namespace)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("NodeName=n1 State=IDLE Gres=gpu:a100:2", {"NodeName": "n1", "State": "IDLE", "Gres": "gpu:a100:2"}),
        (
            "Reason=gres/gpu count too low (1 < 2) [root@now] Comment=",
            {"Reason": "gres/gpu count too low (1 < 2) [root@now]", "Comment": ""},
        ),
        ("CPUs/Task=1 ReqB:S:C:T=0:0:*:*", {"CPUs/Task": "1", "ReqB:S:C:T": "0:0:*:*"}),
    ],
)
def test_records_are_read_as_scontrol_writes_them(line: str, expected: dict[str, str]) -> None:
    assert record(line) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ()),
        ("gpu:2(IDX:0,3)", (Granted("gpu", None, 2, "IDX:0,3"),)),
        ("nic(CNT:2),ib:hdr(CNT:1)", (Granted("nic", None, 2, "CNT:2"), Granted("ib", "hdr", 1, "CNT:1"))),
        (
            "gpu:1g.10gb+me:1(IDX:4),shard:a100:3(3/4,0/4)",
            (Granted("gpu", "1g.10gb+me", 1, "IDX:4"), Granted("shard", "a100", 3, "3/4,0/4")),
        ),
    ],
)
def test_gres_lists_are_read_as_scontrol_writes_them(text: str, expected: tuple[Granted, ...]) -> None:
    assert gres(text) == expected


def test_what_a_task_tells_is_read_whole() -> None:
    told = Grant.told("A=1\0B=two=2\nlines\0JobId=7 NodeList=n1 GRES=gpu:a100:1(IDX:0)\n")
    assert told == Grant("7", "n1", (Granted("gpu", "a100", 1, "IDX:0"),), {"A": "1", "B": "two=2\nlines"})
