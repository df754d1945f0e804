"""What is on a live cluster at one moment: what Slurm granted, which daemons run, what lies on the nodes. No judgement.

Slurm's word is scontrol's, a daemon's is /proc's; nothing here is asked of the product.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ClusterShell.NodeSet import NodeSet

from testbed.hooks.cluster import DEVICE_MAP, HookCluster
from testbed.hooks.process import Process
from testbed.slurm.grant import gres, record

CONTROL = "nvidia-cuda-mps-control"
SERVER = "nvidia-cuda-mps-server"
_ON_NODE = re.compile(r"\bNodes=(?P<nodes>\S+) CPU_IDs=\S* Mem=\S*(?: GRES=(?P<gres>\S+))?")


@dataclass(frozen=True, slots=True)
class Device:
    """One device of a node's DeviceMap."""

    index: int
    card: int
    uuid: str
    file: str
    memory: int
    instance: bool


@dataclass(frozen=True, slots=True)
class Granted:
    """What a job has on one node. `leader`: the het job's id, or its own. `kinds`: the names of its GRES."""

    job: int
    leader: int
    het: bool
    uid: int
    restarts: int
    node: str
    kinds: tuple[str, ...]
    indices: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Daemon:
    """A control daemon as /proc has it; `gids`: all four, and the supplementary ones."""

    node: str
    process: Process
    gids: tuple[int, ...]

    @property
    def pipe(self) -> str:
        """Its pipe directory."""
        return self.process.environment.get("CUDA_MPS_PIPE_DIRECTORY", "")


def devices(cluster: HookCluster, node: str) -> dict[int, Device]:
    """A node's devices by Slurm's number, from its DeviceMap."""
    content = json.loads(cluster.node_path(node, DEVICE_MAP).read_text(encoding="utf-8"))
    return {
        one["slurm_index"]: Device(
            one["slurm_index"], one["index"], one["uuid"], one["files"][0], one["memory_bytes"], bool(one["profile"])
        )
        for one in content["devices"]
    }


def granted(cluster: HookCluster) -> tuple[Granted, ...]:
    """All running jobs by node, in Slurm's words."""
    return tuple(one for line in cluster.scontrol("-d", "-o", "show", "job").splitlines() for one in _granted(line))


def _granted(line: str) -> Iterator[Granted]:
    fields = record(line)
    if fields.get("JobState") != "RUNNING":
        return
    job = int(fields["JobId"])
    for found in _ON_NODE.finditer(line):
        parts = gres(found["gres"]) if found["gres"] else ()
        indices = sorted({index for part in parts for index in _indices(part.where)})
        for node in NodeSet(found["nodes"]):
            yield Granted(
                job=job,
                leader=int(fields.get("HetJobId", job)),
                het="HetJobId" in fields,
                uid=int(fields["UserId"].partition("(")[2].rstrip(")")),
                restarts=int(fields["Restarts"]),
                node=node,
                kinds=tuple(dict.fromkeys(part.name for part in parts)),
                indices=tuple(indices),
            )


def _indices(where: str) -> Iterator[int]:
    """`IDX:0-1,3`, or from 23.02 `0/100,25/100`: what is taken of each."""
    if where.startswith("IDX:"):
        for part in where.removeprefix("IDX:").split(","):
            low, _, high = part.partition("-")
            yield from range(int(low), int(high or low) + 1)
    elif "/" in where:
        yield from (place for place, part in enumerate(where.split(",")) if int(part.partition("/")[0] or 0) > 0)


def daemons(cluster: HookCluster, node: str) -> tuple[Daemon, ...]:
    """A node's control daemons; one that is asking another, as a hook does to see whether it answers, is none."""
    return tuple(
        Daemon(node, one, _gids(cluster, one.pid))
        for one in cluster.processes(node)
        if one.argv and one.argv[0].endswith(CONTROL) and "-f" in one.argv
    )


def _gids(cluster: HookCluster, pid: int) -> tuple[int, ...]:
    lines = cluster.inside.path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    return tuple(int(word) for line in lines if line.startswith(("Gid:", "Groups:")) for word in line.split()[1:])


def compute_modes(cluster: HookCluster, node: str) -> dict[int, str]:
    """By PCI index."""
    return {card: gpu["compute_mode"] for card, gpu in enumerate(cluster.machine(node).show()["gpus"])}


def mounts(cluster: HookCluster, node: str) -> tuple[str, ...]:
    """Mount points below /run/hybridgpu, as the node has them."""
    lines = cluster.inside.path(f"/proc/{cluster.node_pid(node)}/mountinfo").read_text(encoding="utf-8").splitlines()
    points = (line.split()[4] for line in lines)
    return tuple(sorted(point for point in points if point.startswith("/run/hybridgpu/")))


def left(cluster: HookCluster, node: str) -> dict[str, object]:
    """What jobs have left on an idle node: nothing, if all is well."""
    known = ("jobs/", "mps/")
    return {
        "processes": [one.command for one in cluster.processes(node) if not _slurmd(one)],
        "files": [name for name in cluster.state(node) if name not in known],
        "mounts": mounts(cluster, node),
        "cgroups": sorted(str(folder) for folder in cluster.node_path(node, "/sys/fs/cgroup").glob("*/hybridgpu/*")),
    }


NOTHING_LEFT: Mapping[str, object] = {"processes": [], "files": [], "mounts": (), "cgroups": []}


def _slurmd(process: Process) -> bool:
    return process.command.startswith("slurmd ")


def pipes_reached(cluster: HookCluster, node: str, user: str, pipes: tuple[str, ...]) -> dict[str, str]:
    """What a process of `user`, outside any job, gets that connects to these pipe directories and lists them."""
    told: dict[str, Any] = json.loads(cluster.run_on(node, ["python3", "-c", _CONNECT, *pipes], user=user).stdout)
    return told


_CONNECT = """
import errno, json, os, socket, sys
def reached(pipe):
    try:
        os.listdir(pipe)
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as client:
            client.connect(pipe + "/control")
    except OSError as problem:
        return errno.errorcode[problem.errno]
    return "connected"
print(json.dumps({pipe: reached(pipe) for pipe in sys.argv[1:]}))
"""
