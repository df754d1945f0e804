"""A live cluster whose Slurm runs hooks, over simulated cards, on files that we render from an inventory.

Each node is a process that sleeps in mounts and cgroups of its own (`enter`): its slurmd runs in there, and whatever
that starts is of the node and is found by it. A node has its own /run/hybridgpu, boot id, and cards; the card's driver
is where the loader finds it, since hooks have an empty environment. It judges nothing.
"""

from __future__ import annotations

import json
import signal
import subprocess
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from testbed.driver import library
from testbed.driver.machine import Machine
from testbed.hooks.cgroups import Cgroups
from testbed.hooks.installed import LIBRARY, RECORDS, install
from testbed.hooks.process import Process
from testbed.hooks.site import device_map, rendered
from testbed.slurm.cluster import ALICE, SLURM_CONF, Cluster, NotGranted, slurmd
from testbed.slurm.namespace import Broken, User, attempts
from testbed.slurm.root import SlurmRoot

BOB = User("bob", 1002)
STATE = "/run/hybridgpu"
MACHINE = "/var/lib/gpusim"
DEVICE_MAP = f"{STATE}/devices.json"

_HERE = Path(__file__).parent
_ENTER, _TELL = f"{LIBRARY}-testbed/enter", f"{LIBRARY}-testbed/tell.py"
_CONFINED = {"proctrack/linuxproc": "proctrack/cgroup", "task/none": "task/cgroup"}
_JOIN = 'for file in /sys/fs/cgroup/*/cgroup.procs; do echo $$ >"$file"; done; exec "$@"'
_EVERYBODYS = 0o1777


class HookCluster(Cluster):
    """A running cluster; use it as a context manager.

    `inventory`: the text of one in which every node has a Port. `machines`: by node; each gets a copy. `hooks`: files
    over those of ours, by where they lie on a node (installed.py). `settings`: lines put behind slurm.conf, where they
    win. `files`: as in Cluster. `confined`: jobs are tracked, and denied other cards, by cgroups; else neither.

    Raises Unfit (site.py) where inventory and machines do not fit, Broken where a daemon does not come up.
    """

    def __init__(
        self,
        root: SlurmRoot,
        inventory: str,
        machines: Mapping[str, Machine],
        *,
        hooks: Mapping[str, str] | None = None,
        settings: str = "",
        files: Mapping[str, str] | None = None,
        confined: bool = True,
    ) -> None:
        conf = SLURM_CONF
        for plain, by_cgroup in _CONFINED.items() if confined else ():
            conf = conf.replace(plain, by_cgroup)
        made = rendered(inventory, machines)
        conf_files = {**made.slurm, "slurm.conf": conf + settings, **(hooks or {})}
        super().__init__(root, {**conf_files, **(files or {})}, tuple(machines))
        self._machines = machines
        self._wanted = made.nodes
        self._cgroups: Cgroups | None = None

    def __enter__(self) -> Self:
        try:
            return super().__enter__()
        except BaseException:
            self._remove_cgroups()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        super().__exit__(kind, problem, trace)
        self._remove_cgroups()

    def _furnish(self) -> None:
        self._cgroups = Cgroups.make(self.inside.pid, self.nodes)
        install(self.inside)
        super()._furnish()
        self.inside.add_user(BOB)
        for name, inside in (("enter", _ENTER), ("tell.py", _TELL)):
            self.inside.write(inside, (_HERE / name).read_text(encoding="utf-8"), mode=0o755)
        self.inside.folder(RECORDS, mode=_EVERYBODYS)
        self._install_driver()
        for node, machine in self._machines.items():
            self._make_node(node, machine)

    def _remove_cgroups(self) -> None:
        """Once every process has ended."""
        groups, self._cgroups = self._cgroups, None
        if groups is not None:
            groups.remove()

    def _install_driver(self) -> None:
        """Where the loader finds it; slurmd 22.05 asks for it without a version."""
        place = next(self.inside.path("/usr/lib").glob("*-linux-gnu"))
        for name in (library.LIBRARY.name, library.LIBRARY.stem):
            (place / name).write_bytes(library.build().read_bytes())
        for folder in (MACHINE, STATE):
            self.inside.folder(folder)
        for device in self.inside.path("/dev").glob("nvidia[0-9]*"):
            device.chmod(0o666)

    def _make_node(self, node: str, machine: Machine) -> None:
        self.inside.folder(f"/nodes/{node}/run")
        subprocess.run(["cp", "-a", str(machine.root), str(self.inside.path(f"/nodes/{node}/machine"))], check=True)
        self._boot(node)

    def _boot(self, node: str) -> None:
        """With a new boot id and the DeviceMap of it; returns when the node's mounts are there."""
        boot_id = str(uuid.uuid4())
        self.inside.write(f"/nodes/{node}/boot_id", boot_id + "\n")
        devices = device_map(self._wanted[node], self.machine(node), boot_id)
        self.inside.write(f"/nodes/{node}/run/devices.json", devices)
        assert self._cgroups is not None
        mounts = [f"{one.mounted}={one.options}" for one in self._cgroups.hierarchies]
        self.inside.start(f"node-{node}", [_ENTER, node, *mounts, "--", *self._cgroups.processes_files(node)])
        for _ in attempts(20):
            self._alive(f"node-{node}")
            if self.inside.path(f"/nodes/{node}/pid").exists():
                return
        raise Broken(f"{node} did not come up\n" + self.logs())

    # Nodes

    def machine(self, node: str) -> Machine:
        """The node's cards, as its own processes see them: what is done to it here is seen there, and back."""
        return Machine(self.inside.path(f"/nodes/{node}/machine"))

    def node_pid(self, node: str) -> int:
        """The process that holds the node's mounts, by its id inside."""
        return int(self.inside.path(f"/nodes/{node}/pid").read_text(encoding="utf-8"))

    def node_path(self, node: str, inside: str) -> Path:
        """The file that is called `inside` on the node, as the tests can open it; absolute links mislead."""
        return self.inside.path(f"/proc/{self.node_pid(node)}/root") / inside.lstrip("/")

    def _enter(self, node: str) -> list[str]:
        target = f"--target={self.node_pid(node)}"
        return ["nsenter", target, "--mount", "--cgroup", "--root", "--wd", "--", "sh", "-euc", _JOIN, "sh"]

    def run_on(
        self,
        node: str,
        argv: Sequence[str],
        *,
        user: str | None = None,
        environment: Mapping[str, str] | None = None,
        timeout: float = 60,
    ) -> subprocess.CompletedProcess[str]:
        """Run a program on a node to its end, as root or `user`, outside every job. `environment`: nothing but this."""
        become = [] if user is None else ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups"]
        alone = [] if environment is None else ["env", "-i", *(f"{k}={v}" for k, v in environment.items())]
        return self.inside.run([*self._enter(node), *become, *alone, *argv], timeout=timeout)

    def processes(self, node: str) -> tuple[Process, ...]:
        """The node's processes by id, slurmd and zombies too, but for the one that holds the node."""
        assert self._cgroups is not None
        found = []
        for folder in self.inside.path("/proc").iterdir():
            if not folder.name.isdecimal():
                continue
            try:
                place = self._cgroups.place(node, (folder / "cgroup").read_text(encoding="utf-8"))
                if place is not None:
                    found.append(Process.read(folder, place))
            except (FileNotFoundError, ProcessLookupError):
                continue  # it has ended since
        holder = self.node_pid(node)
        return tuple(sorted((one for one in found if one.pid != holder), key=lambda one: one.pid))

    def state(self, node: str) -> tuple[str, ...]:
        """What lies below /run/hybridgpu beyond devices.json, by relative path; folders end in `/`."""
        root = self.node_path(node, STATE)
        found = ((path, str(path.relative_to(root))) for path in root.rglob("*"))
        return tuple(sorted(f"{name}/" if path.is_dir() else name for path, name in found if name != "devices.json"))

    def reboot(self, node: str) -> None:
        """End all that runs on the node, empty its /run/hybridgpu, and start it with a new boot id.

        The cards are rebooted with it. It registers by itself.
        """
        self.kill_slurmd(node)
        for _ in attempts(10):
            running = self.processes(node)
            if not running:
                break
            self.inside.run(["sh", "-c", 'kill -9 "$@"', "sh", *(str(process.pid) for process in running)])
        else:
            raise Broken(f"processes of {node} do not end: {', '.join(process.command for process in running)}")
        self.inside.stop(f"node-{node}", number=signal.SIGKILL)
        self.inside.run(["find", f"/nodes/{node}/run", "-mindepth", "1", "-delete"])
        self.inside.path(f"/nodes/{node}/pid").unlink()
        assert self._cgroups is not None
        self._cgroups.renew(node)
        self.machine(node).reboot()
        self._boot(node)
        self.start_slurmd(node)

    # Daemons

    def start_slurmd(self, node: str) -> None:
        """Start one node's slurmd in the node. It registers by itself: see `wait_registered`."""
        self.inside.start(slurmd(node), [*self._enter(node), "slurmd", "-D", "-N", node])

    def stop_slurmd(self, node: str) -> None:
        """End slurmd as its service would; jobs and daemons stay."""
        self.inside.stop(slurmd(node))

    def kill_slurmd(self, node: str) -> None:
        """End slurmd as a crash would."""
        self.inside.stop(slurmd(node), number=signal.SIGKILL)

    def restart_slurmd(self, node: str) -> None:
        """Stop it and start it; returns when it has registered."""
        self.stop_slurmd(node)
        self.start_slurmd(node)
        self.wait_registered()

    # Jobs

    def tell(self, *options: str, user: str = ALICE.name, timeout: float = 30) -> tuple[dict[str, Any], ...]:
        """Run tasks by srun that tell all they see (tell.py), and give what they told, by their number.

        Raises NotGranted where Slurm refuses, or does not start them within `timeout` seconds.
        """
        command, name = self.teller()
        wait = f"--immediate={max(1, round(timeout))}"
        done = self.inside.run(["srun", "--quiet", wait, *options, *command.split()], user=user, timeout=timeout + 30)
        if done.returncode != 0:
            raise NotGranted(done.stderr.strip())
        return self.told(name)

    def teller(self) -> tuple[str, str]:
        """A command for a job's script that tells, and the name by which `told` gives what it told, each time."""
        name = uuid.uuid4().hex
        folder = f"/tells/{name}"
        self.inside.folder("/tells", mode=_EVERYBODYS)
        self.inside.folder(folder, mode=_EVERYBODYS)
        return f"/usr/bin/python3 {_TELL} {folder}", name

    def told(self, name: str, count: int = 1, timeout: float = 30) -> tuple[dict[str, Any], ...]:
        """What was told so far, once it is `count`: by the tasks' numbers. Raises Broken after `timeout` seconds."""
        folder = self.inside.path(f"/tells/{name}")
        for _ in attempts(timeout):
            files = [file for file in folder.iterdir() if not file.name.startswith(".")]
            if len(files) >= count:
                files.sort(key=lambda file: [int(part) for part in file.name.split(".")])
                return tuple(json.loads(file.read_text(encoding="utf-8")) for file in files)
        raise Broken(f"{len(files)} of {count} tasks told within {timeout} s\n" + self.logs())

    def wait_epilog(self, job: str, timeout: float = 30) -> dict[str, str]:
        """The job's record once it has ended and no node is still cleaning up after it."""
        for _ in attempts(timeout):
            seen = self.show_job(job)
            if seen["JobState"] not in ("PENDING", "RUNNING", "COMPLETING", "CONFIGURING"):
                return seen
        raise NotGranted(f"job {job} is {seen['JobState']} ({seen['Reason']}) after {timeout} s")
