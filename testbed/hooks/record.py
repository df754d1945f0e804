"""Record what Slurm gives to hooks and to the tasks after them: `python -m testbed.hooks.record [RELEASE]...`.

Each job of scenarios.py runs on a live cluster of each release, with recorders in place of our hooks. What each of
them had is written to tests/data/hooks/RELEASE/SCENARIO.json, for tests that call hooks in process:

    {"release", "version", "site", "gres_types", "prolog_flags", "confined", "command",
     "runs": [{"what": "prolog" | "taskprolog" | "task" | "epilog", "node", "environment", "cgroup", "devices"}, ...]}

`runs` are in their order. `confined`: by task/cgroup with ConstrainDevices. `cgroup`: hierarchy -> path, `devices`:
those of /dev/nvidia* and /dev/nvidia-caps/* that are not denied. A task also has its `uid`. Beside them stepd.json:
/proc/PID/{comm,cmdline} and uid of the processes of a node while jobs run, and devices.SITE.json: each node's
DeviceMap. Nodes are n1 and n2; alice is 1001.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pynvml

from testbed.driver import library
from testbed.driver.cut import cut
from testbed.driver.machine import Machine
from testbed.hooks.cluster import DEVICE_MAP, HookCluster
from testbed.hooks.installed import HOUSE, RECORDS, recorders
from testbed.hooks.inventory import inventory
from testbed.hooks.scenarios import MINORS, SITES, STEPD_JOBS, Scenario, Site
from testbed.slurm.cluster import ALICE
from testbed.slurm.namespace import Broken, attempts
from testbed.slurm.root import SUITES, SlurmRoot

DATA = HOUSE / "tests" / "data" / "hooks"
_SETTING = re.compile(r"^(GresTypes|PrologFlags)=(.*)$", re.MULTILINE)
_DENIED = re.compile(r"EPERM|not permitted")
_STEPD = re.compile(r"slurmstepd|slurmd|sleep")


def main(releases: Sequence[str]) -> None:
    """Record the releases, each site's jobs on one cluster."""
    for release in releases:
        root = SlurmRoot.for_version(release)
        for site in SITES:
            with cluster_of(root, site) as cluster:
                for scenario in site.scenarios:
                    _write(release, scenario.name, {**_about(root, site, cluster), **record(cluster, scenario)})
                    sys.stdout.write(f"{release} {scenario.name}\n")
                maps = {node: json.loads(cluster.node_path(node, DEVICE_MAP).read_text()) for node in cluster.nodes}
                _write(release, f"devices.{site.name}", maps)
                if site.stepd:
                    _write(release, "stepd", {"release": release, "version": root.version, **stepd(cluster)})


@contextmanager
def cluster_of(root: SlurmRoot, site: Site) -> Iterator[HookCluster]:
    """The site, live, with recorders, its nodes registered."""
    with tempfile.TemporaryDirectory() as folder:
        machines = {node: Machine.make(Path(folder, node), site.machine) for node in site.nodes}
        for machine in machines.values():
            _cut(machine, site)
        text = inventory(root.release, site.nodes, slurm=site.slurm)
        with HookCluster(
            root, text, machines, hooks=recorders(), settings=site.settings, confined=site.confined
        ) as cluster:
            cluster.wait_registered()
            yield cluster


def _cut(machine: Machine, site: Site) -> None:
    with library.over(machine.root):
        pynvml.nvmlInit()
        for card, wanted in site.cuts.items():
            cut(card, wanted)
        pynvml.nvmlShutdown()


def _about(root: SlurmRoot, site: Site, cluster: HookCluster) -> dict[str, Any]:
    in_force = dict(_SETTING.findall(cluster.inside.path("/etc/slurm/gpu.conf").read_text() + site.settings))
    return {
        "release": root.release,
        "version": root.version,
        "site": site.name,
        "gres_types": in_force["GresTypes"],
        "prolog_flags": in_force.get("PrologFlags"),
        "confined": site.confined,
    }


def record(cluster: HookCluster, scenario: Scenario) -> dict[str, Any]:
    """Run one scenario and give its command and its runs in order."""
    records = cluster.inside.path(RECORDS)
    for old in records.iterdir():
        shutil.rmtree(old)
    tell, name = cluster.teller()
    line = scenario.command.replace("TELL", tell)
    done = cluster.inside.run(["sh", "-euc", line], user=ALICE.name, timeout=90)
    if done.returncode != 0:
        raise Broken(f"{scenario.name}: {done.stdout}{done.stderr}\n{cluster.logs()}")
    _wait_idle(cluster)
    told = cluster.inside.path(f"/tells/{name}")
    runs = [(file.stat().st_mtime_ns, _hook(file)) for file in records.iterdir()]
    runs += [(file.stat().st_mtime_ns, _task(file)) for file in told.iterdir()]
    return {"command": scenario.command, "runs": [run for _, run in sorted(runs, key=lambda timed: timed[0])]}


def _wait_idle(cluster: HookCluster) -> None:
    """Until no job is left, its epilogs over."""
    for _ in attempts(60):
        if not cluster.inside.run(["squeue", "--noheader"]).stdout.strip():
            return
    raise Broken("jobs do not end\n" + cluster.logs())


def _hook(folder: Path) -> dict[str, Any]:
    what, _, node, _ = folder.name.split(".")
    parts = (folder / "environ").read_text(encoding="utf-8").split("\0")
    places = (line.split(":", 2) for line in (folder / "cgroup").read_text().splitlines())
    return {
        "what": what,
        "node": node,
        "environment": dict(part.split("=", 1) for part in parts if part),
        "cgroup": {controllers: path for _, controllers, path in places},
        "devices": _allowed(line.partition(" ")[::2] for line in (folder / "devices").read_text().splitlines()),
    }


def _task(file: Path) -> dict[str, Any]:
    told = json.loads(file.read_text(encoding="utf-8"))
    kept = {key: told[key] for key in ("uid", "environment", "cgroup")}
    devices = _allowed(told["devices"].items())
    return {"what": "task", "node": told["environment"]["SLURMD_NODENAME"], **kept, "devices": devices}


def _allowed(opened: Iterable[tuple[str, str]]) -> list[str]:
    """Those of the machine's devices that were not denied: that there is no driver is found out only after that."""
    there = {f"/dev/nvidia{minor}" for minor in MINORS}
    known = ((path, error) for path, error in opened if path in there or "caps" in path)
    return [path for path, error in known if not _DENIED.search(error)]


def stepd(cluster: HookCluster) -> dict[str, Any]:
    """The processes of each node while these jobs run."""
    for job in STEPD_JOBS:
        cluster.inside.run(["sh", "-euc", job.command], user=ALICE.name)
    wanted = sum(job.steps for job in STEPD_JOBS)
    for _ in attempts(30):
        there = {node: cluster.processes(node) for node in cluster.nodes}
        titles = [one.command for running in there.values() for one in running if "slurmstepd: [" in one.command]
        if len(titles) >= wanted:
            break
    else:
        raise Broken(f"{titles}: {len(titles)} steps, not {wanted}\n" + cluster.logs())
    shown = {
        node: [
            {"pid": one.pid, "ppid": one.ppid, "uid": one.uid, **_names(cluster, one.pid), "cgroup": one.cgroup}
            for one in running
            if _STEPD.search(one.command)
        ]
        for node, running in there.items()
    }
    cluster.inside.run(["scancel", "--user", ALICE.name])
    return {"commands": [job.command for job in STEPD_JOBS], "processes": shown}


def _names(cluster: HookCluster, pid: int) -> dict[str, str]:
    folder = cluster.inside.path(f"/proc/{pid}")
    return {name: (folder / name).read_text(encoding="utf-8").rstrip("\n") for name in ("comm", "cmdline")}


def _write(release: str, name: str, content: dict[str, Any]) -> None:
    folder = DATA / release
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(_text(content), encoding="utf-8")


def _text(content: dict[str, Any]) -> str:
    """JSON with a line for each key, and for each run."""
    lines = []
    for key, value in content.items():
        runs = isinstance(value, list) and key == "runs"
        text = "[\n " + ",\n ".join(map(json.dumps, value)) + "\n]" if runs else json.dumps(value)
        lines.append(f"{json.dumps(key)}: {text}")
    return "{" + ",\n".join(lines) + "}\n"


if __name__ == "__main__":
    main(sys.argv[1:] or tuple(SUITES))
