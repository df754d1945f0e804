"""The testbed's cluster with hooks: nodes that share nothing, processes that are found, records that still hold."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from testbed.driver.machine import Machine
from testbed.hooks import cgroups
from testbed.hooks.cluster import DEVICE_MAP, STATE, HookCluster
from testbed.hooks.installed import RECORDS, recorders
from testbed.hooks.inventory import inventory
from testbed.hooks.record import DATA, cluster_of, record
from testbed.hooks.scenarios import SITES
from testbed.hooks.site import Unfit
from testbed.slurm.root import SlurmRoot
from tests.conftest import lacking
from tests.simulated import load_driver

pytestmark = pytest.mark.slurm

MINORS = (3, 2, 1, 0)
MPS_CLIENTS = """\
import ctypes
driver = ctypes.CDLL("libnvidia-ml.so.1")
assert driver.nvmlInit_v2() == 0
device, number = ctypes.c_void_p(), ctypes.c_uint()
driver.nvmlDeviceGetHandleByIndex_v2(2, ctypes.byref(device))
driver.nvmlDeviceGetMPSComputeRunningProcesses_v3(device, ctypes.byref(number), None)
print(number.value)
"""
"""By the library that the loader finds, as a hook does."""

BOOT_ID = "/proc/sys/kernel/random/boot_id"


@pytest.fixture(autouse=True, scope="module")
def _possible() -> None:
    missing = cgroups.missing()
    if missing:
        lacking(missing)
    load_driver()


def machine(folder: Path, cards: int = 4) -> Machine:
    described = [
        {"model": "A100-SXM4-80GB", "pci": f"0000:{7 + at:02x}:00.0", "minor": MINORS[at]} for at in range(cards)
    ]
    return Machine.make(folder, {"name": "hooks", "gpus": described})


def test_nodes_share_nothing_and_end_without_trace(slurm_root: SlurmRoot, tmp_path: Path) -> None:
    nodes = {"n1": machine(tmp_path / "n1"), "n2": machine(tmp_path / "n2")}
    text = inventory(slurm_root.release, dict.fromkeys(nodes, "{mode: mps}"), gpus=4)
    with HookCluster(slurm_root, text, nodes, hooks=recorders()) as cluster:
        cluster.wait_registered()
        maps = {node: json.loads(cluster.node_path(node, DEVICE_MAP).read_text()) for node in nodes}
        assert [device["minor"] for device in maps["n1"]["devices"]] == sorted(MINORS)
        for node in nodes:
            assert cluster.run_on(node, ["cat", BOOT_ID]).stdout.strip() == maps[node]["boot_id"]
        assert maps["n1"]["boot_id"] != maps["n2"]["boot_id"]

        cluster.run_on("n1", ["mkdir", f"{STATE}/mps", "/sys/fs/cgroup/freezer/mine"])
        assert cluster.state("n1") == ("mps/",)
        assert cluster.state("n2") == ()
        assert not cluster.node_path("n2", "/sys/fs/cgroup/freezer/mine").exists()

        cluster.machine("n1").run(2, 4711, "mps")
        asked = (
            "import ctypes\nd = ctypes.CDLL('libnvidia-ml.so.1')\nassert d.nvmlInit_v2() == 0\nn = ctypes.c_uint()\n"
        )
        asked += "h = ctypes.c_void_p()\nd.nvmlDeviceGetHandleByIndex_v2(2, ctypes.byref(h))\n"
        asked += "d.nvmlDeviceGetMPSComputeRunningProcesses_v3(h, ctypes.byref(n), None)\nprint(n.value)"
        seen = [cluster.run_on(node, ["python3", "-c", asked], environment={}).stdout for node in nodes]
        assert seen == ["1\n", "0\n"]

        told = cluster.tell("--gres=gpu:2", "--nodes=2", "--ntasks=2", user="bob")
        assert [one["environment"]["SLURMD_NODENAME"] for one in told] == ["n1", "n2"]
        assert {one["uid"] for one in told} == {1002}
        opened = {f"/dev/nvidia{minor}": told[0]["devices"][f"/dev/nvidia{minor}"] for minor in MINORS}
        assert {path for path, error in opened.items() if error != "EPERM"} == {"/dev/nvidia0", "/dev/nvidia1"}
        assert (told[0]["mps"], told[0]["cgroup"]["freezer"]) == (None, "/slurm_n1/uid_1002/job_1/step_0")
        assert {record.name.split(".")[0] for record in cluster.inside.path(RECORDS).iterdir()} >= {
            "prolog",
            "taskprolog",
        }
        named = cluster.inside.pid
    assert not list(cgroups.MOUNTS.glob(f"*/**/hybridgpu-testbed-{named}"))


def test_daemons_are_found_killed_and_rebooted(slurm_root: SlurmRoot, tmp_path: Path) -> None:
    nodes = {"n1": machine(tmp_path / "n1"), "n2": machine(tmp_path / "n2")}
    text = inventory(slurm_root.release, dict.fromkeys(nodes, "{mode: mps}"), gpus=4)
    with HookCluster(slurm_root, text, nodes) as cluster:
        cluster.wait_registered()
        command, name = cluster.teller()
        job = cluster.sbatch("--gres=mps:25", "--nodelist=n1", script=f"{command}; sleep 600")
        (told,) = cluster.told(name)
        assert told["mps"] == "connected"
        titles = {process.command for process in cluster.processes("n1")}
        assert {f"slurmstepd: [{job}.batch]", f"slurmstepd: [{job}.extern]", "slurmd -D -N n1"} <= titles
        assert [process.command for process in cluster.processes("n2")] == ["slurmd -D -N n2"]
        (daemon,) = [one for one in cluster.processes("n1") if "mps-control" in one.command]
        assert (daemon.uid, "SLURM_JOB_ID" in daemon.environment) == (1001, False)

        cluster.kill_slurmd("n1")
        assert daemon.pid in {process.pid for process in cluster.processes("n1")}
        boot = cluster.run_on("n1", ["cat", BOOT_ID]).stdout
        cluster.start_slurmd("n1")
        cluster.reboot("n1")
        assert cluster.run_on("n1", ["cat", BOOT_ID]).stdout != boot
        assert cluster.state("n1") == ()
        assert not [one for one in cluster.processes("n1") if "mps-control" in one.command]


def test_what_does_not_fit_is_said(slurm_root: SlurmRoot, tmp_path: Path) -> None:
    nodes = {"n1": machine(tmp_path / "n1", cards=2)}
    with pytest.raises(Unfit, match=r"2 GPUs"):
        HookCluster(slurm_root, inventory(slurm_root.release, {"n1": "{mode: mps}"}, gpus=4), nodes)


STEADY = ("GPU", "CUDA", "SLURM_JOB_U", "SLURM_STEP", "SLURM_RESTART", "SLURM_JOB_RESTART", "SLURM_SCRIPT")


def shape(run: dict[str, Any]) -> tuple[object, ...]:
    """What of a run is the same each time it is recorded."""
    same = {name: value for name, value in run["environment"].items() if name.startswith(STEADY)}
    return run["what"], sorted(run["environment"]), sorted(same.items()), run["devices"]


def test_slurm_still_does_what_was_recorded(slurm_root: SlurmRoot) -> None:
    site = next(site for site in SITES if site.name == "alloc")
    with cluster_of(slurm_root, site) as cluster:
        for scenario in site.scenarios:
            recorded = json.loads((DATA / slurm_root.release / f"{scenario.name}.json").read_text())
            runs = record(cluster, scenario)["runs"]
            ports = ("SLURM_STEP_LAUNCHER_PORT", "SLURM_SRUN_COMM_PORT")
            for run in (*runs, *recorded["runs"]):
                for name in ports:
                    run["environment"].pop(name, None)
            assert sorted(map(shape, runs), key=repr) == sorted(map(shape, recorded["runs"]), key=repr), scenario.name
