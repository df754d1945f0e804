"""`hybridgpu discover` and `node bind` as an admin meets them, over the simulated driver."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hybridgpu.inventory.facts import read_facts
from testbed.driver import library
from testbed.driver.machine import Machine
from tests.conftest import lacking
from tests.devices.machines import MACHINES
from tests.devices.test_nodeconfig import rendered
from tests.simulated import nvml

INVENTORY = """\
apiVersion: hybridgpu/v1
kind: Inventory
metadata: {name: t}
slurm: {version: "24.11"}
nodeClasses:
  dgx: {model: A100-SXM4-80GB, gpus: 8, slurm: {CPUs: 256, Sockets: 2, CoresPerSocket: 64, ThreadsPerCore: 2}}
nodes:
- {hosts: n1, class: dgx, owner: slurm, schedulers: [slurm], sharing: {mode: mig, layout: {
    0: {3g.40gb: 2}, 1: {1g.10gb: 7}, 2: {7g.80gb: 1}, 3: {1g.10gb+me: 1, 1g.10gb: 2, 3g.40gb: 1},
    4: {4g.40gb: 1, 2g.20gb: 1, 1g.20gb: 1}, 5-7: off}}}
"""


def hybridgpu(
    machine: Machine | None, *arguments: str, fault: str | None = None, **more: str
) -> subprocess.CompletedProcess[str]:
    """The command over a machine (None: without a driver)."""
    clean = {name: value for name, value in os.environ.items() if name != "LD_LIBRARY_PATH"}
    environment = {**clean, **(machine.environment(fault) if machine else {}), **more}
    return subprocess.run(
        [sys.executable, "-m", "hybridgpu", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        timeout=60,
    )


@pytest.fixture
def dgx(tmp_path: Path) -> Machine:
    return MACHINES["dgx-a100-mig"].make(tmp_path / "machine")


def discover(machine: Machine, *arguments: str, fault: str | None = None) -> subprocess.CompletedProcess[str]:
    return hybridgpu(machine, "discover", "--driver-root", str(machine.root), *arguments, fault=fault)


def test_facts_are_printed(dgx: Machine) -> None:
    run = discover(dgx, "--node", "n1")
    assert (run.returncode, run.stderr) == (0, "")
    facts, findings = read_facts("n1.json", run.stdout.encode())
    assert findings == ()
    assert facts is not None
    assert (facts.node, [gpu.minor for gpu in facts.gpus]) == ("n1", [3, 2, 1, 0, 7, 6, 5, 4])
    table = discover(dgx, "-o", "table")
    assert table.stdout.splitlines()[0].startswith("GPU  MINOR  PCI")


def test_a_file_is_written_for_the_node(dgx: Machine, tmp_path: Path) -> None:
    run = discover(dgx, "--node", "gpu001", "--to", str(tmp_path / "new/facts"))
    path = tmp_path / "new/facts/gpu001.json"
    assert (run.returncode, run.stdout, run.stderr) == (0, "", f"wrote {path}\n")
    assert read_facts(str(path))[1] == ()
    assert sorted(entry.name for entry in path.parent.iterdir()) == ["gpu001.json"]
    before = path.read_bytes()
    dgx.break_card(2, "lost")
    assert discover(dgx, "--node", "gpu001", "--to", str(path.parent)).returncode == 1
    assert path.read_bytes() == before


def test_the_name_is_the_hosts_short_one(dgx: Machine) -> None:
    name = json.loads(discover(dgx).stdout)["node"]
    assert name == os.uname().nodename.partition(".")[0]


@pytest.mark.parametrize("name", ["", "../x", "a b", "n1/", "-n"])
def test_what_is_no_name_is_wrong_usage(name: str, dgx: Machine, tmp_path: Path) -> None:
    run = discover(dgx, f"--node={name}", "--to", str(tmp_path))
    assert run.returncode == 64
    assert "is no node name" in run.stderr


@pytest.mark.parametrize("seconds", ["0", "-1", "x"])
def test_a_time_limit_is_a_number_above_0(seconds: str, dgx: Machine) -> None:
    assert discover(dgx, f"--timeout={seconds}").returncode == 64


def test_the_library_below_the_driver_root_is_taken(dgx: Machine) -> None:
    folder = dgx.root / "usr/lib64"
    folder.mkdir(parents=True)
    (folder / "libnvidia-ml.so.1").symlink_to(library.build())
    run = hybridgpu(None, "discover", "--driver-root", str(dgx.root), GPUSIM_ROOT=str(dgx.root))
    assert (run.returncode, run.stderr) == (0, "")
    (folder / "libnvidia-ml.so.1").unlink()
    (folder / "libnvidia-ml.so.1").write_bytes(b"\x7fELF")
    run = hybridgpu(None, "discover", "--driver-root", str(dgx.root))
    assert run.returncode == 1
    assert run.stderr.startswith("hybridgpu: device is unavailable: the driver's library cannot be loaded: ")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        ("DRIVER_NOT_LOADED", "NVIDIA's kernel driver is not loaded"),
        ("LIB_RM_VERSION_MISMATCH", "are of two versions"),
        ("NO_PERMISSION", "may not be opened by this user"),
        ("GPU_IS_LOST", "a GPU fell off the bus"),
        ("UNKNOWN", "the driver answers UNKNOWN"),
    ],
)
def test_a_driver_that_does_not_answer_is_told(error: str, said: str, dgx: Machine) -> None:
    run = discover(dgx, fault=f"nvmlInit@1={error}")
    assert (run.returncode, run.stdout) == (1, "")
    assert run.stderr.startswith("hybridgpu: device is unavailable: ")
    assert said in run.stderr
    assert run.stderr.count("\n") == 1


def test_without_a_driver_that_is_said() -> None:
    if Path("/proc/driver/nvidia").exists():
        pytest.skip("this machine has a driver")
    run = hybridgpu(None, "discover")
    assert (run.returncode, run.stdout) == (1, "")
    assert "libnvidia-ml.so.1 is not there" in run.stderr


@pytest.mark.parametrize("call", ["nvmlInit@1", "nvmlDeviceGetCount_v2@1", "nvmlDeviceGetName@3", "nvmlShutdown@1"])
def test_a_driver_that_hangs_is_given_up(call: str, dgx: Machine) -> None:
    before = time.monotonic()
    run = discover(dgx, "--timeout", "1", fault=f"{call}=HANG")
    assert (run.returncode, run.stdout) == (1, "")
    assert "the driver did not answer within 1 s" in run.stderr
    assert time.monotonic() - before < 20


def test_a_card_that_hangs_is_given_up_and_output_ends(dgx: Machine) -> None:
    dgx.break_card(5, "hang")
    try:
        run = discover(dgx, "--timeout", "1")
    finally:
        dgx.mend(5)
    assert (run.returncode, run.stdout) == (1, "")
    assert re.search("within 1 s: the (driver's card 5|card at 0000:90:00.0) hangs", run.stderr), run.stderr
    assert discover(dgx).returncode == 0


def test_an_ordinary_user_gets_all_but_placements() -> None:
    if os.geteuid() != 0:
        lacking("another user's view needs root")
    built = MACHINES["mixed"]
    with_folder = Path(f"/tmp/hybridgpu-test-{os.getpid()}")  # a folder that everybody may enter
    with_folder.mkdir(mode=0o755)
    try:
        machine = built.make(with_folder)
        _open_to_all(with_folder)
        run = discover_as_nobody(machine)
    finally:
        subprocess.run(["rm", "-rf", str(with_folder)], check=True)
    assert run.returncode == 0, run.stderr
    record = json.loads(run.stdout)
    instances = record["gpus"][1]["instances"]
    assert [instance["profile"] for instance in instances] == ["3g.20gb", "2g.10gb", "1g.5gb"]
    assert all(instance["placement"] is None for instance in instances)
    assert all(instance["gi_minor"] for instance in instances)
    assert re.findall(r"^warning: (.*) \[(.*)\]$", run.stderr, re.MULTILINE) == [
        (
            "GPU 1 at 0000:af:00.0: placement is null: nvmlDeviceGetGpuInstanceById answered NO_PERMISSION",
            "device-value-unread",
        )
    ]
    assert "Run it as root" in run.stderr


AS_NOBODY = """
import ctypes, os, sys
import hybridgpu.check.formats, hybridgpu.cli.discover, hybridgpu.devices.factsfile, hybridgpu.devices.nvml
import hybridgpu.devices.observe, hybridgpu.files.tree
from hybridgpu.cli import main
from hybridgpu.model.catalogue import models
models()
ctypes.CDLL("libnvidia-ml.so.1", mode=ctypes.RTLD_GLOBAL)
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
main(["discover", "--driver-root", sys.argv[1]])
"""
"""Everything is loaded before the user changes: the checkout may lie where only its owner may look."""


def discover_as_nobody(machine: Machine) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", AS_NOBODY, str(machine.root)]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, **machine.environment()}, timeout=60
    )


def _open_to_all(folder: Path) -> None:
    for path in (folder, *folder.rglob("*")):
        mode = stat.S_IMODE(path.lstat().st_mode)
        path.chmod(mode | (0o555 if path.is_dir() else 0o444))


def test_bind_writes_the_map_of_what_was_rendered(dgx: Machine, tmp_path: Path) -> None:
    discover(dgx, "--node", "n1", "--to", str(tmp_path / "facts"))
    config, target = tmp_path / "node.json", tmp_path / "run/hybridgpu/devices.json"
    config.write_bytes(rendered("", tmp_path, INVENTORY, {"n1": str(tmp_path / "facts/n1.json")}))
    run = bind(dgx, config, target)
    assert (run.returncode, run.stdout) == (0, "")
    assert run.stderr.endswith(f"wrote {target}: 20 devices of n1\n")
    assert re.findall(r"\[(.*)\]$", run.stderr, re.MULTILINE) == ["node-config-of-another"]
    assert stat.S_IMODE(target.stat().st_mode) == 0o644
    record = json.loads(target.read_text())
    assert record["boot_id"] == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert [device["slurm_index"] for device in record["devices"]] == list(range(20))
    with nvml(dgx):
        import pynvml

        for device in record["devices"]:
            handle = pynvml.nvmlDeviceGetHandleByUUID(device["uuid"])
            name = pynvml.nvmlDeviceGetName(handle)
            assert name.endswith(f"MIG {device['profile']}" if device["profile"] else "A100-SXM4-80GB")
    for device in record["devices"]:
        assert all((dgx.root / file.lstrip("/")).exists() for file in device["files"])
    printed = bind(dgx, config, target, "-o", "json")
    assert printed.stdout == target.read_text()


def bind(machine: Machine, config: Path, target: Path, *more: str) -> subprocess.CompletedProcess[str]:
    root = str(machine.root)
    return hybridgpu(
        machine, "node", "bind", "--config", str(config), "--to", str(target), "--driver-root", root, *more
    )


def test_bind_writes_nothing_where_the_node_is_not_what_it_must_be(dgx: Machine, tmp_path: Path) -> None:
    discover(dgx, "--node", "n1", "--to", str(tmp_path / "facts"))
    config, target = tmp_path / "node.json", tmp_path / "devices.json"
    config.write_bytes(rendered("", tmp_path, INVENTORY, {"n1": str(tmp_path / "facts/n1.json")}))
    dgx.reboot()
    run = bind(dgx, config, target)
    assert (run.returncode, run.stdout, target.exists()) == (1, "", False)
    assert "GPU 0 at 0000:07:00.0: there is no 3g.40gb at memory slice 0 [device-cut-differs-from-config]" in run.stderr
    dgx.break_card(6, "lost")
    run = bind(dgx, config, target)
    assert (run.returncode, target.exists()) == (1, False)
    assert "GPU 6 at 0000:b7:00.0 (/dev/nvidia5) is dead" in run.stderr
    assert bind(dgx, tmp_path / "nothing.json", target).returncode == 66
    config.write_text("{}")
    run = bind(dgx, config, target)
    assert run.returncode == 1
    assert "node is missing [node-config-illegal]" in run.stderr


def test_bind_puts_right_what_was_there(dgx: Machine, tmp_path: Path) -> None:
    discover(dgx, "--node", "n1", "--to", str(tmp_path / "facts"))
    config, target = tmp_path / "node.json", tmp_path / "devices.json"
    config.write_bytes(rendered("", tmp_path, INVENTORY, {"n1": str(tmp_path / "facts/n1.json")}))
    target.write_text("old")
    target.chmod(0o600)
    assert bind(dgx, config, target).returncode == 0
    assert stat.S_IMODE(target.stat().st_mode) == 0o644
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.endswith("hybridgpu")) == []


@pytest.mark.parametrize("seconds", ["inf", "nan", "1e300"])
def test_a_time_limit_is_finite(seconds: str, dgx: Machine) -> None:
    assert discover(dgx, f"--timeout={seconds}").returncode == 64


def test_a_driver_root_is_a_folder(dgx: Machine, tmp_path: Path) -> None:
    assert hybridgpu(dgx, "discover", "--driver-root", str(tmp_path / "none")).returncode == 66
    (tmp_path / "file").write_text("")
    assert hybridgpu(dgx, "discover", "--driver-root", str(tmp_path / "file")).returncode == 66


def test_many_write_one_file_at_once(dgx: Machine, tmp_path: Path) -> None:
    argv = [sys.executable, "-m", "hybridgpu", "discover", "--driver-root", str(dgx.root), "--node", "n1"]
    environment = {**os.environ, **dgx.environment()}
    runs = [subprocess.Popen([*argv, "--to", str(tmp_path / "facts")], env=environment) for _ in range(6)]
    assert [run.wait(60) for run in runs] == [0] * len(runs)
    assert [path.name for path in (tmp_path / "facts").iterdir()] == ["n1.json"]


def test_what_is_no_file_is_not_replaced(dgx: Machine, tmp_path: Path) -> None:
    (tmp_path / "facts").mkdir()
    os.mkfifo(tmp_path / "facts/n1.json")
    run = discover(dgx, "--node", "n1", "--to", str(tmp_path / "facts"))
    assert (run.returncode, "no ordinary file" in run.stderr) == (1, True)
