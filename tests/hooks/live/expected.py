"""What each task and each node must show, worked out from Slurm's own grants and the DeviceMap, by no code of ours."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.hooks.live.jobs import Job
from tests.hooks.live.seen import Device, Granted
from tests.hooks.live.site import WITH_DAEMONS

MPS = "/run/hybridgpu/mps"
PERCENTAGE, PIPE = "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "CUDA_MPS_PIPE_DIRECTORY"
VISIBLE, MEMORY = "CUDA_VISIBLE_DEVICES", "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"
MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Site:
    """What the expectations hang on: devices by node, whether jobs are confined, whether Slurm loses percentages."""

    devices: Mapping[str, Mapping[int, Device]]
    confined: bool
    lost: bool


@dataclass(frozen=True, slots=True)
class Told:
    """One task of a job: what it told, and what its job was granted on its node."""

    job: Job
    seen: Mapping[str, Any]
    grant: Granted

    @property
    def environment(self) -> Mapping[str, str]:
        """Its environment."""
        environment: Mapping[str, str] = self.seen["environment"]
        return environment

    @property
    def step(self) -> tuple[int, str, str]:
        """What it shares with the tasks beside it."""
        return self.grant.job, self.environment.get("SLURM_STEP_ID", "batch"), self.grant.node


def with_grant(job: Job, tasks: Sequence[Mapping[str, Any]], grants: Sequence[Granted]) -> list[Told]:
    """Each task with the grant of its node; a het component's tasks carry the leader's id.

    Those of earlier runs of a requeued job are left out.
    """
    found = []
    for seen in tasks:
        number, node = int(seen["environment"]["SLURM_JOB_ID"]), seen["environment"]["SLURMD_NODENAME"]
        (grant,) = [one for one in grants if number in (one.job, one.leader) and one.node == node]
        if int(seen["environment"].get("SLURM_RESTART_COUNT", 0)) == grant.restarts:
            found.append(Told(job, seen, grant))
    return found


def tasks_wrong(tasks: Sequence[Told], site: Site) -> list[str]:
    """What is wrong with one job's tasks, a line each."""
    wrong: list[str] = []
    numbers = {(task.step, task.environment["SLURM_PROCID"]) for task in tasks}
    beside = Counter(step for step, _ in numbers)
    for task in tasks:
        expected = _environment(task, site, beside[task.step])
        seen = {name: task.environment.get(name) for name in expected}
        if seen != expected:
            wrong.append(f"{task.job.name} on {task.grant.node}: {seen}, expected {expected}")
        if task.environment.get("SITE_CAME_LAST") != "yes":
            wrong.append(f"{task.job.name}: the site's last task prolog did not run")
        if task.seen["mps"] != (None if expected[PIPE] is None else "connected"):
            wrong.append(f"{task.job.name}: its daemon's socket: {task.seen['mps']}")
        if site.confined and task.grant.indices:
            wrong += _beyond(task, site)
    return wrong + _parts_wrong(tasks, site)


def _environment(task: Told, site: Site, beside: int) -> dict[str, str | None]:
    """The four variables of MPS as the task must have them; None: not there."""
    job, grant = task.job, task.grant
    known = site.devices[grant.node]
    share = job.shares.get(grant.node, job.share)
    uuids = visible(task, site)
    if share is not None:
        (device,) = (known[index] for index in grant.indices)
        limit = None if site.lost else f"0={device.memory * share // 100 // beside // MIB}M"
        percentage = None if site.lost else str(share)
        return {
            PIPE: f"{MPS}/u{grant.uid}-{device.index}/pipe",
            VISIBLE: device.uuid,
            PERCENTAGE: percentage,
            MEMORY: limit,
        }
    pipe = None
    if uuids and grant.node in WITH_DAEMONS:
        first = next(device for device in known.values() if device.uuid == uuids[0])
        name = next((name for name, indices in served([grant], site) if first.index in indices), None)
        pipe = f"{MPS}/{name}/pipe" if name else None
    given = task.environment["SITE_GIVEN"]
    unchanged = None if given == "unset" else given
    by_uuid = pipe or grant.node.startswith("c") or (uuids and unchanged is None)
    return {PIPE: pipe, VISIBLE: ",".join(uuids) if uuids and by_uuid else unchanged, PERCENTAGE: None, MEMORY: None}


def visible(task: Told, site: Site) -> list[str]:
    """The UUIDs that a task has, in order.

    A task that has all of its job's has them in Slurm's order. Of the others it is told by what Slurm gave them: where
    nothing confines them Slurm's own numbers, else positions among what they can open. Instances of one card can't be
    told so: there `_parts_wrong` is the judge.
    """
    known = site.devices[task.grant.node]
    mine = [known[index] for index in task.grant.indices]
    if task.job.whole_node:
        return []
    given = task.environment["SITE_GIVEN"].split(",")
    if task.job.positions and site.confined:
        return [mine[place].uuid for place in task.job.positions[int(task.environment["SLURM_PROCID"])]]
    if task.job.positions or (task.job.sees and not site.confined):
        return [known[int(index)].uuid for index in given]
    if task.job.sees:
        if not any(device.instance for device in mine):
            mine = [device for device in mine if task.seen["devices"][device.file] != "EPERM"]
            return [mine[int(place)].uuid for place in given]
        seen = task.environment[VISIBLE].split(",")
        return seen if {*seen} <= {device.uuid for device in mine} else []
    return [device.uuid for device in mine]


def _beyond(task: Told, site: Site) -> list[str]:
    """Cards that a task sees, and cannot open."""
    known = {device.uuid: device for device in site.devices[task.grant.node].values()}
    seen = [known[uuid] for uuid in task.environment.get(VISIBLE, "").split(",") if uuid in known]
    return [f"{task.job.name}: {one.file} is denied" for one in seen if task.seen["devices"][one.file] == "EPERM"]


def _parts_wrong(tasks: Sequence[Told], site: Site) -> list[str]:
    """Of tasks that part their job's devices: each has its number of them, none is had twice, and all are had."""
    job = tasks[0].job
    if not job.sees:
        return []
    parts = [visible(task, site) for task in tasks]
    counts = tuple(sorted(len(part) for part in parts))
    had = Counter(uuid for part in parts for uuid in part)
    grant = tasks[0].grant
    all_of_it = {site.devices[grant.node][index].uuid for index in grant.indices}
    fine = counts == job.sees and set(had) == all_of_it and set(had.values()) == {1}
    return [] if fine else [f"{job.name}: {parts} of {sorted(all_of_it)}"]


def served(grants: Sequence[Granted], site: Site) -> list[tuple[str, tuple[int, ...]]]:
    """The daemons that these grants, all of one node, need: name and Slurm's numbers of the devices.

    Of a job with whole cards and instances the prolog is told the instances only, for Slurm keeps one type (run on
    22.05, 24.11 and 26.05).
    """
    found: dict[str, tuple[int, ...]] = {}
    for grant in grants:
        known = site.devices[grant.node]
        if "mps" in grant.kinds:
            found[f"u{grant.uid}-{'+'.join(map(str, grant.indices))}"] = grant.indices
        elif grant.node in WITH_DAEMONS:
            whole = tuple(index for index in grant.indices if not known[index].instance)
            instances: list[tuple[int, ...]] = [(index,) for index in grant.indices if known[index].instance]
            for group in instances or ([whole] if whole else []):
                found[f"j{grant.job}-{'+'.join(map(str, group))}"] = group
    return sorted(found.items())
