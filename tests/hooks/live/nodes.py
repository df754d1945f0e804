"""What is wrong on a node while jobs run: its daemons as they are, who holds and who reaches them, and the rest.

Everything is compared with what the jobs need (expected.py); a sweep is to find nothing to do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from testbed.hooks.cluster import BOB, HookCluster
from testbed.hooks.process import Process
from testbed.slurm.cluster import ALICE
from tests.hooks.live.expected import MPS, PIPE, VISIBLE, Site, served
from tests.hooks.live.seen import Daemon, Granted, compute_modes, daemons, mounts, pipes_reached
from tests.hooks.live.site import EXCLUSIVE_PROCESS

PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
HOOK = "/usr/lib/hybridgpu/hybridgpu-hook"

_HIDE = """\
for file in $(grep -ls '/\\.\\./' /proc/[0-9]*/cgroup); do
    if grep -qs slurmstepd "${file%/cgroup}/cmdline"; then
        mount --bind /home "${file%/cgroup}"
    fi
done
exec "$@"
"""
"""Runs a program that sees no step daemon of other nodes: all nodes of a cluster are on one machine."""

_AMONG_ITS_OWN = ("unshare", "--mount", "sh", "-c", _HIDE, "sh")

_LOOK = """
import sys
sys.path.insert(0, "/usr/lib/hybridgpu")
from hybridgpu.mps.running import look
print(*look().jobs)
"""


def wrong(
    cluster: HookCluster, node: str, grants: Sequence[Granted], site: Site, modes: Mapping[int, str]
) -> list[str]:
    """A line for each thing; `grants` are the node's, `modes` its compute modes before any job."""
    needed = dict(served(grants, site))
    seen = {one.pipe.removeprefix(f"{MPS}/").removesuffix("/pipe"): one for one in daemons(cluster, node)}
    owners = {name: grant.uid for grant in grants for name, _ in served([grant], site)}
    found = [] if sorted(seen) == sorted(needed) else [f"daemons {sorted(seen)}, expected {sorted(needed)}"]
    for name in {*seen} & {*needed}:
        uuids = [site.devices[node][index].uuid for index in needed[name]]
        found += _daemon_wrong(seen[name], owners[name], uuids, name)
    reached = {
        user: pipes_reached(cluster, node, user.name, tuple(one.pipe for one in seen.values())) for user in USERS
    }
    for user, answers in reached.items():
        for pipe, answer in answers.items():
            own = owners.get(pipe.split("/")[-2]) == user.uid
            if answer != ("connected" if own else "EACCES"):
                found.append(f"{user.name} gets {answer} of {pipe}")
    found += _different("files", _files(cluster, node), _files_needed(grants, site))
    found += _different(
        "mounts", list(mounts(cluster, node)), sorted(f"{MPS}/{n}/{leaf}" for n in needed for leaf in LEAVES)
    )
    found += _different("compute modes", compute_modes(cluster, node), _modes_needed(node, grants, site, modes))
    return [f"{node}: {line}" for line in found]


USERS = (ALICE, BOB)
LEAVES = ("pipe", "log")


def _daemon_wrong(daemon: Daemon, uid: int, uuids: Sequence[str], name: str) -> list[str]:
    """What is wrong with a daemon's process: environment, uid, gids (four and the supplementary), cgroups, session."""
    environment = {
        "PATH": PATH,
        VISIBLE: ",".join(uuids),
        PIPE: f"{MPS}/{name}/pipe",
        "CUDA_MPS_LOG_DIRECTORY": f"{MPS}/{name}/log",
    }
    places = {path for hierarchy, path in daemon.process.cgroup.items() if hierarchy}
    return [
        *_different(f"{name}: environment", daemon.process.environment, environment),
        *_different(f"{name}: uid", daemon.process.uid, uid),
        *_different(f"{name}: gids", daemon.gids, (uid,) * 5),
        *_different(f"{name}: cgroups", places, {f"/hybridgpu/{name}"}),
    ]


def _files(cluster: HookCluster, node: str) -> list[str]:
    """What lies on the node but the users' own."""
    own = [f"mps/{one.pipe.split('/')[-2]}/{leaf}/" for one in daemons(cluster, node) for leaf in LEAVES]
    return [name for name in cluster.state(node) if not name.startswith(tuple(own)) or name in own]


def _files_needed(grants: Sequence[Granted], site: Site) -> list[str]:
    records = [
        f"jobs/{grant.leader}+{grant.job}" if grant.het else f"jobs/{grant.job}" for grant in grants if grant.indices
    ]
    held = [(name, grant.job) for grant in grants for name, _ in served([grant], site)]
    names = {name for name, _ in held}
    folders = [f"mps/{name}/{part}" for name in names for part in ("", "holders/", "log/", "pipe/", "state.json")]
    tops = [*(["jobs/"] if records else []), *(["mps/"] if names else [])]
    return sorted([*tops, *records, *folders, *(f"mps/{name}/holders/{job}" for name, job in held)])


def _modes_needed(node: str, grants: Sequence[Granted], site: Site, before: Mapping[int, str]) -> dict[int, str]:
    """Cards of jobs with whole GPUs are exclusive where the inventory says so, all others as they were."""
    taken = {site.devices[node][index].card for grant in grants for index in grant.indices}
    return {c: "exclusive_process" if node in EXCLUSIVE_PROCESS and c in taken else mode for c, mode in before.items()}


def _different(what: str, seen: object, expected: object) -> list[str]:
    return [] if seen == expected else [f"{what}: {seen}, expected {expected}"]


def swept(cluster: HookCluster, node: str, *, alone: bool = False) -> str:
    """What a sweep says; empty where it had nothing to do. `alone`: it sees the node's own step daemons only."""
    done = cluster.run_on(node, [*(_AMONG_ITS_OWN if alone else ()), HOOK, "sweep"])
    return (
        done.stdout + done.stderr if done.returncode == 0 else f"status {done.returncode}: {done.stdout}{done.stderr}"
    )


def shown_jobs(cluster: HookCluster, node: str) -> set[int]:
    """The jobs that show to a sweep that is alone."""
    look = ["/usr/bin/python3", "-IS", "-c", _LOOK]
    done = cluster.run_on(node, [*_AMONG_ITS_OWN, *look])
    return {int(word) for word in done.stdout.split()}


def identities(cluster: HookCluster, node: str) -> set[tuple[int, int]]:
    """The node's daemons, each by what is told of no other process."""
    return {_identity(one.process) for one in daemons(cluster, node)}


def _identity(process: Process) -> tuple[int, int]:
    return process.pid, process.start
