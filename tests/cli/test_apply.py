"""`hybridgpu node apply` as an admin meets it, over the simulated driver; services by a stand-in for systemctl."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, ClassVar

import pynvml
import pytest

from hybridgpu.model.labels import MIG_CONFIG_STATE as STATE
from hybridgpu.mps.devicemap import Device
from hybridgpu.mps.process import boot_id, identify
from hybridgpu.mps.state import State, write_state
from tests.conftest import lacking
from tests.devices.machines import MACHINES
from tests.devices.test_nodeconfig import rendered
from tests.simulated import load_driver, nvml
from tests.systemctl import Systemd

INVENTORY = """\
apiVersion: hybridgpu/v1
kind: Inventory
metadata: {{name: t}}
slurm: {{version: "24.11"}}
devices: {{clients: [site-monitor]}}
nodeClasses:
  a: {{model: A30, gpus: 2, slurm: {{CPUs: 32, Sockets: 2, CoresPerSocket: 16, NodeHostname: HOST}}}}
nodes:
- {{hosts: n1, class: a, owner: slurm, schedulers: [slurm], sharing: {sharing}}}
"""
INVENTORY = INVENTORY.replace("HOST", socket.gethostname())
FOURTHS = "{mode: mig, layout: {all: {1g.6gb: 4}}}"
ONE_HALVED = "{mode: mig, layout: {0: {2g.12gb: 2}, 1: off}}"
WHOLE = "{mode: exclusive}"
EXPORTER, PERSISTENCED, MONITOR = "dcgm-exporter.service", "nvidia-persistenced.service", "site-monitor.service"


class Node:
    """A node with two A30, its NodeConfig, and the command on it."""

    def __init__(self, folder: Path) -> None:
        if os.geteuid():
            lacking("who holds a card is for root to see")
        load_driver()
        self.folder, self.run_folder = folder, folder / "run"
        self.machine = MACHINES["a30"].make(folder / "machine")
        for card in (0, 1):  # without a driver of the kernel's its device cannot be opened: a plain file can
            path = self.machine.root / f"dev/nvidia{card}"
            path.unlink()
            path.touch()
        self.systemd = Systemd(folder / "systemd", self.machine.root).make()
        self.wants(FOURTHS)

    def wants(self, sharing: str) -> None:
        inventory = INVENTORY.format(sharing=sharing)
        (self.folder / "node.json").write_bytes(rendered("", self.folder, inventory))

    def command(self, *arguments: str) -> list[str]:
        files = ["--config", str(self.folder / "node.json"), "--run", str(self.run_folder)]
        start = [sys.executable, "-m", "hybridgpu", "node", "apply"]
        return [*start, *files, "--driver-root", str(self.machine.root), *arguments]

    def environment(self, fault: str | None = None) -> dict[str, str]:
        path = f"{self.systemd.bin}:{os.environ['PATH']}"
        return {**os.environ, **self.machine.environment(fault), "PATH": path}

    def apply(self, *arguments: str, fault: str | None = None) -> subprocess.CompletedProcess[str]:
        environment = self.environment(fault)
        return subprocess.run(
            self.command(*arguments), capture_output=True, text=True, check=False, env=environment, timeout=120
        )

    def report(self, *arguments: str, fault: str | None = None) -> tuple[int, dict[str, Any]]:
        run = self.apply("-o", "json", *arguments, fault=fault)
        assert run.stdout, run.stderr
        return run.returncode, json.loads(run.stdout)

    def cut(self) -> list[list[str]]:
        """The profiles of each card's instances, and `whole` where MIG is off."""
        cards = self.machine.show()["gpus"]
        return [sorted(i["profile"] for i in c["instances"]) if c["mig"] else ["whole"] for c in cards]

    @property
    def first(self) -> str:
        """The first card, as it is named."""
        return f"GPU 0 at 0000:17:00.0 ({self.machine.show()['gpus'][0]['uuid']})"

    @property
    def map(self) -> Path:
        return self.run_folder / "devices.json"


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    made = Node(tmp_path)
    yield made
    made.systemd.end()


def rules(report: dict[str, Any]) -> list[str]:
    told = [finding["rule"] for finding in report["findings"]]
    return [rule for rule in told if rule not in ("node-config-of-another", "device-process-unseen")]


def test_the_cards_are_brought_to_what_is_wanted_and_left_alone_then(node: Node) -> None:
    dry, planned = node.report("--dry-run", "--detailed-exitcode")
    assert (dry, planned["changed"], node.cut(), node.run_folder.exists()) == (2, True, [["whole"]] * 2, False)
    assert {card["state"] for card in planned["cards"]} == {"planned"}
    code, report = node.report("--detailed-exitcode")
    assert (code, report["changed"], rules(report)) == (2, True, [])
    assert [[e["text"] for e in c["done"]] for c in report["cards"]] == [
        [e["text"] for e in c["left"]] for c in planned["cards"]
    ]
    assert [len(instances) for instances in node.cut()] == [4, 4]
    devices = json.loads(node.map.read_text())["devices"]
    assert (len(devices), report["devices"]) == (8, str(node.map))
    code, again = node.report("--detailed-exitcode")
    assert (code, again["changed"], again["summary"]) == (0, False, "n1: 2 of 2 cards as wanted, 0 changed")
    assert json.loads(node.map.read_text())["devices"] == devices
    assert {card["state"] for card in again["cards"]} == {"as-wanted"}


def test_text_says_what_is_done_and_a_dry_run_says_the_same(node: Node) -> None:
    node.wants(ONE_HALVED)
    dry, real = node.apply("--dry-run"), node.apply()
    assert (dry.returncode, real.returncode) == (0, 0)
    effects = [line for line in dry.stdout.splitlines() if line.startswith("GPU ")]
    assert real.stdout.splitlines()[: len(effects)] == effects
    uuids = [device["uuid"] for device in json.loads(node.map.read_text())["devices"] if device["profile"]]
    assert [line.split(" is ")[1] for line in real.stdout.splitlines() if ": 2g.12gb is " in line] == uuids
    assert dry.stdout.splitlines()[0] == f"{node.first}: turn MIG on"
    assert dry.stdout.splitlines()[-1] == "n1: 1 of 2 cards as wanted, 1 to change"
    assert real.stdout.splitlines()[-1] == "n1: 2 of 2 cards as wanted, 1 changed"


def test_clients_are_stopped_in_order_and_started_again_the_other_way_round(node: Node) -> None:
    node.systemd.unit(PERSISTENCED, 0, 1)
    node.systemd.unit(EXPORTER, 0, 1, kind="compute")
    node.systemd.unit(MONITOR, 1)
    old = node.systemd.pid(EXPORTER)
    code, report = node.report()
    assert (code, rules(report)) == (0, []), report["findings"]
    assert report["clients"] == [MONITOR, EXPORTER, PERSISTENCED]
    assert node.systemd.calls() == [
        *(f"stop {name}" for name in (MONITOR, EXPORTER, PERSISTENCED)),
        *(f"start {name}" for name in (PERSISTENCED, EXPORTER, MONITOR)),
    ]
    assert node.systemd.pid(EXPORTER) not in (0, old)
    assert not (node.run_folder / "stopped.json").exists()
    node.report()
    assert len(node.systemd.calls()) == 6, "where nothing changes no client is touched"


@pytest.mark.parametrize("kind", ["compute", "graphics", "mps", ""])
def test_a_workload_is_named_and_nothing_is_touched(node: Node, kind: str) -> None:
    node.systemd.unit(PERSISTENCED, 0, 1)
    path = node.machine.root / "dev/nvidia1"
    code = "import sys, time; file = open(sys.argv[1]); print(flush=True); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE) as job:
        assert job.stdout is not None
        job.stdout.readline()
        if kind:
            node.machine.run(1, job.pid, kind)
        status, report = node.report()
        job.kill()
    assert (status, report["changed"], node.cut(), node.map.exists()) == (1, False, [["whole"]] * 2, False)
    assert [card["state"] for card in report["cards"]] == ["waiting", "busy"]
    holders = report["cards"][1]["holders"]
    assert {(h["pid"], h["uid"], h["use"]) for h in holders} == {(job.pid, 0, kind or "open file")}
    assert "import sys, time" in holders[0]["command"]
    assert node.systemd.calls() == []
    busy = next(f["message"] for f in report["findings"] if f["rule"] == "device-busy")
    assert re.search(rf"it is used by process {job.pid} \(.*python.*\) of uid 0: {kind or 'open file'}", busy)


def test_who_holds_a_card_that_is_right_is_in_nobodys_way(node: Node) -> None:
    node.wants(ONE_HALVED)
    node.machine.run(1, os.getpid(), "compute")
    code, _ = node.report()
    assert (code, node.cut()) == (0, [["2g.12gb", "2g.12gb"], ["whole"]])
    node.machine.end(os.getpid())
    node.wants(WHOLE)
    assert node.report()[0] == 0
    assert node.cut() == [["whole"], ["whole"]]


@pytest.mark.parametrize(
    ("lives", "sharing", "code", "mode"),
    [
        (True, WHOLE, 0, "exclusive_process"),
        (False, WHOLE, 0, "default"),
        (True, FOURTHS, 1, "exclusive_process"),
    ],
)
def test_a_card_that_a_jobs_daemon_has_keeps_what_the_hooks_made_of_it(
    node: Node, lives: bool, sharing: str, code: int, mode: str
) -> None:
    """Whoever has it: a control daemon without a client is in no list of the driver's, and has no file of it open."""
    node.wants(sharing)
    with nvml(node.machine):
        card = pynvml.nvmlDeviceGetHandleByIndex(1)
        uuid = pynvml.nvmlDeviceGetUUID(card)
        pynvml.nvmlDeviceSetComputeMode(card, pynvml.NVML_COMPUTEMODE_EXCLUSIVE_PROCESS)
    with subprocess.Popen(["sleep", "60"]) as daemon:
        folder = node.run_folder / "mps/j42-1"
        folder.mkdir(parents=True)
        identity = identify(daemon.pid)
        boot = boot_id() if lives else "another"
        write_state(str(folder), State(boot, 0, 0, [Device(1, 1, uuid)], identity, {uuid: 0}))
        dry, planned = node.report("--dry-run")
        status, report = node.report()
        daemon.kill()
    assert (dry, status, node.machine.show()["gpus"][1]["compute_mode"]) == (code, code, mode), report
    assert node.cut() == [["whole"]] * 2
    states = [card["state"] for card in report["cards"]]
    assert states == (["waiting", "busy"] if code else ["as-wanted", "as-wanted" if lives else "changed"])
    assert [card["state"] for card in planned["cards"]] == [state.replace("changed", "planned") for state in states]
    if code:
        (holder,) = report["cards"][1]["holders"]
        assert (holder["pid"], holder["use"], holder["command"]) == (daemon.pid, "MPS daemon", "sleep 60")


def test_what_the_hooks_wrote_and_nobody_can_read_lets_nothing_be_changed(node: Node) -> None:
    (node.run_folder / "mps/j42-1").mkdir(parents=True)
    (node.run_folder / "mps/j42-1/state.json").write_text("{")
    code, report = node.report()
    assert (code, node.cut(), [card["state"] for card in report["cards"]]) == (1, [["whole"]] * 2, ["unread"] * 2)
    assert "MPS daemon j42-1 answered nothing: " in report["cards"][0]["why"]


def test_each_step_is_in_the_log_before_it_is_done(node: Node) -> None:
    run = node.apply("--boot", "--timeout", "2", fault="nvmlDeviceCreateGpuInstanceWithPlacement@2=HANG")
    assert f"{node.first}: turn MIG on\n" in run.stderr
    assert node.apply().stderr.count("turn MIG") == 0


def test_the_map_goes_only_when_something_is_cut(node: Node) -> None:
    node.wants(WHOLE)
    assert node.report()[0] == 0
    with nvml(node.machine):
        pynvml.nvmlDeviceSetComputeMode(pynvml.nvmlDeviceGetHandleByIndex(1), pynvml.NVML_COMPUTEMODE_PROHIBITED)
    code, report = node.report(fault="nvmlDeviceSetComputeMode@1=UNKNOWN")
    assert (code, report["cards"][1]["state"], node.map.exists()) == (1, "failed", True)
    assert node.report()[0] == 0
    assert node.machine.show()["gpus"][1]["compute_mode"] == "default"


def test_a_client_that_does_not_stop_is_named_and_nothing_is_cut(node: Node) -> None:
    node.systemd.unit(EXPORTER, 0, 1)
    node.systemd.unit(PERSISTENCED, 0, 1, stays=True)
    code, report = node.report()
    assert (code, report["changed"], node.cut()) == (1, False, [["whole"]] * 2)
    assert rules(report)[0] == "client-will-not-stop"
    message = next(f["message"] for f in report["findings"] if f["rule"] == "client-will-not-stop")
    assert message == f"{PERSISTENCED} does not stop: Job for {PERSISTENCED} canceled."
    assert node.systemd.pid(EXPORTER), "what was stopped before it runs again"
    assert not (node.run_folder / "stopped.json").exists()


def test_a_client_that_takes_too_long_is_named_and_nothing_is_cut(node: Node) -> None:
    node.systemd.unit(PERSISTENCED, 0, 1)
    (node.systemd.folder / PERSISTENCED / "slow").touch()
    code, report = node.report("--client-timeout", "1")
    assert (code, node.cut()) == (1, [["whole"]] * 2)
    message = next(f["message"] for f in report["findings"] if f["rule"] == "client-will-not-stop")
    assert message == f"{PERSISTENCED} does not stop: systemctl stop answered nothing within 1 s"
    assert node.systemd.calls() == [f"stop {PERSISTENCED}", f"start {PERSISTENCED}"]


def test_without_systemd_that_is_said_and_who_holds_a_card_is_in_the_way(node: Node) -> None:
    node.systemd.unit(PERSISTENCED, 1)
    (node.systemd.bin / "systemctl").write_text(
        "#!/bin/sh\necho 'System has not been booted with systemd' >&2\nexit 1\n"
    )
    code, report = node.report()
    assert (code, rules(report)) == (1, ["clients-unread", "device-waiting", "device-busy"])
    assert [holder["pid"] for holder in report["cards"][1]["holders"]] == [node.systemd.pid(PERSISTENCED)]


@pytest.mark.parametrize(("moment", "code"), [("before", 1), ("half", 1), ("after", 0)])
def test_a_cutter_that_dies_leaves_no_client_stopped(node: Node, moment: str, code: int) -> None:
    """One that dies after the change is not missed: what was done is seen, and another goes on."""
    node.systemd.unit(PERSISTENCED, 0, 1)
    seen, report = node.report(fault=f"change@4={moment}")
    assert (seen, node.map.exists()) == (code, code == 0), report["cards"]
    assert node.systemd.pid(PERSISTENCED)
    assert node.report()[0] == 0
    assert [len(c) for c in node.cut()] == [4, 4]


def test_a_client_that_does_not_start_is_an_error_and_is_started_by_the_next_run(node: Node) -> None:
    node.systemd.unit(EXPORTER, 0, dead=True)
    node.systemd.unit(PERSISTENCED, 0)
    code, report = node.report()
    assert (code, rules(report), [len(c) for c in node.cut()]) == (1, ["client-will-not-start"], [4, 4])
    assert (report["clients"], report["down"]) == ([EXPORTER, PERSISTENCED], [EXPORTER])
    assert json.loads((node.run_folder / "stopped.json").read_text())["units"] == [EXPORTER]
    (node.systemd.folder / EXPORTER / "dead").unlink()
    assert node.report()[0] == 0
    assert node.systemd.pid(EXPORTER)
    assert not (node.run_folder / "stopped.json").exists()


def leave_stopped(node: Node, *names: str) -> None:
    node.run_folder.mkdir(exist_ok=True)
    record = {"kind": "StoppedClients", "boot_id": boot_id(), "units": names}
    (node.run_folder / "stopped.json").write_text(json.dumps(record))


@pytest.mark.parametrize("broken", ["config", "kubeconfig", "map", "card"])
def test_what_an_earlier_run_stopped_runs_again_even_where_this_one_cannot_begin(node: Node, broken: str) -> None:
    node.systemd.unit(EXPORTER, 0)
    subprocess.run([node.systemd.bin / "systemctl", "stop", "--", EXPORTER], check=True)
    leave_stopped(node, EXPORTER)
    arguments = ["--kubeconfig", "/nonexistent"] if broken == "kubeconfig" else []
    if broken == "config":
        (node.folder / "node.json").write_text("{}")
    elif broken == "map":
        node.map.mkdir()
    elif broken == "card":
        node.machine.break_card(1, "lost")
    run = node.apply(*arguments)
    said = "n1: 0 of 2 cards as wanted, 0 changed\n" if broken == "card" else ""
    assert (run.returncode, run.stdout) == (66 if broken == "kubeconfig" else 1, said), run.stderr
    assert node.systemd.pid(EXPORTER)
    assert (node.cut(), (node.run_folder / "stopped.json").exists()) == ([["whole"]] * 2, False)


def test_what_an_earlier_run_stopped_and_is_started_now_is_a_change(node: Node) -> None:
    assert node.report()[0] == 0
    node.systemd.unit(EXPORTER)
    subprocess.run([node.systemd.bin / "systemctl", "stop", "--", EXPORTER], check=True)
    leave_stopped(node, EXPORTER)
    for dry in (["--dry-run"], []):
        code, report = node.report("--detailed-exitcode", *dry)
        assert (code, report["changed"], report["resumed"], report["clients"]) == (2, True, [EXPORTER], [])
    assert node.report("--detailed-exitcode")[0] == 0


def test_a_unit_that_is_installed_no_more_is_forgotten(node: Node) -> None:
    leave_stopped(node, "gone.service")
    code, report = node.report()
    assert (code, rules(report)) == (0, ["client-gone"])
    assert not (node.run_folder / "stopped.json").exists()


@pytest.mark.parametrize("spoil", ["missing", "mode", "content"])
def test_a_map_that_is_mended_is_a_change(node: Node, spoil: str) -> None:
    assert node.report()[0] == 0
    if spoil == "missing":
        node.map.unlink()
    elif spoil == "mode":
        node.map.chmod(0o600)
    else:
        node.map.write_text("{}")
    for dry in (["--dry-run"], []):
        code, report = node.report("--detailed-exitcode", *dry)
        assert (code, report["changed"], report["devices_changed"]) == (2, True, True)
    assert (node.map.stat().st_mode & 0o777, node.report("--detailed-exitcode")[0]) == (0o644, 0)


def test_files_of_whole_cards_that_are_others_than_assumed_are_foreseen(node: Node) -> None:
    assert node.report()[0] == 0
    node.wants(WHOLE)
    path = node.folder / "node.json"
    config = json.loads(path.read_text())
    for device, minor in zip(config["devices"], (1, 0), strict=True):
        device["minor"], device["files"] = minor, [f"/dev/nvidia{minor}"]
    path.write_text(json.dumps(config))
    for dry in (["--dry-run"], []):
        code, report = node.report(*dry)
        assert (code, rules(report)) == (1, ["node-config-edited", *["device-files-differ-from-config"] * 2])


def test_a_run_folder_that_fills_up_hides_neither_the_cut_nor_a_client_that_is_down(node: Node) -> None:
    node.systemd.unit(PERSISTENCED, 0, dead=True)
    node.run_folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k,mode=755", "tmpfs", node.run_folder], check=True)
    try:
        (node.systemd.folder / PERSISTENCED / "slow").touch()
        with subprocess.Popen(
            node.command("-o", "json"),
            env=node.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as run:
            while not (node.systemd.folder / PERSISTENCED / "now").exists():
                time.sleep(0.01)
            with (node.run_folder / "filler").open("wb", buffering=0) as file, suppress(OSError):
                while file.write(b"x" * 4096):
                    pass
            out, _ = run.communicate(timeout=60)
    finally:
        subprocess.run(["umount", node.run_folder], check=True)
    report = json.loads(out)
    assert (run.returncode, [len(c) for c in node.cut()], report["down"]) == (1, [4, 4], [PERSISTENCED])
    assert rules(report) == ["client-will-not-start", "clients-not-noted", "device-map-not-written"]


@pytest.mark.parametrize("when", [1, 4, 9])
def test_one_that_was_killed_is_made_good_by_the_next(node: Node, when: int) -> None:
    node.systemd.unit(PERSISTENCED, 0, 1)
    (node.systemd.folder / PERSISTENCED / "slow").touch()
    with subprocess.Popen(
        node.command(), env=node.environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as run:
        while not (node.systemd.folder / PERSISTENCED / "now").exists():
            time.sleep(0.01)
        time.sleep(when / 10)
        run.kill()
    assert json.loads((node.run_folder / "stopped.json").read_text())["units"] == [PERSISTENCED]
    while node.systemd.calls().count(f"stop {PERSISTENCED}") and node.systemd.pid(PERSISTENCED):
        time.sleep(0.05)  # systemctl was not killed
    code, report = node.report()
    assert (code, rules(report), [len(c) for c in node.cut()]) == (0, [], [4, 4])
    assert node.systemd.pid(PERSISTENCED)
    assert not (node.run_folder / "stopped.json").exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_before_that_ends_it_alike(node: Node, number: int) -> None:
    with subprocess.Popen(
        node.command("--timeout", "30"),
        env=node.environment("nvmlDeviceGetCount_v2@1=HANG"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as run:
        while not (node.run_folder / "apply.lock").exists():
            time.sleep(0.01)
        time.sleep(0.3)
        run.send_signal(number)
        out, err = run.communicate(timeout=20)
    assert (run.returncode, out, f"left off on {signal.Signals(number).name}" in err) == (1, "", True), err


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_while_clients_stop_starts_them_again_and_cuts_nothing(node: Node, number: int) -> None:
    node.systemd.unit(EXPORTER, 0)
    node.systemd.unit(PERSISTENCED, 0)
    (node.systemd.folder / EXPORTER / "slow").touch()
    with subprocess.Popen(
        node.command(), env=node.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as run:
        while not (node.systemd.folder / EXPORTER / "now").exists():
            time.sleep(0.01)
        run.send_signal(number)
        out, err = run.communicate(timeout=60)
    assert (run.returncode, out, node.cut()) == (1, "", [["whole"]] * 2)
    assert f"left off on {signal.Signals(number).name}: no card was changed" in err
    assert node.systemd.pid(EXPORTER) and node.systemd.pid(PERSISTENCED)


def test_a_card_that_hangs_is_given_up_and_clients_run_again(node: Node) -> None:
    node.systemd.unit(PERSISTENCED, 0, 1)
    run = node.apply("--timeout", "2", fault="nvmlDeviceCreateGpuInstanceWithPlacement@2=HANG")
    assert run.returncode == 1
    assert "the driver did not answer within 2 s" in run.stderr
    assert node.systemd.pid(PERSISTENCED)
    assert not node.map.exists()
    assert node.report()[0] == 0
    assert [len(c) for c in node.cut()] == [4, 4]


def test_a_cut_that_fails_is_rolled_back_and_the_map_is_gone(node: Node) -> None:
    assert node.report()[0] == 0
    node.systemd.unit(PERSISTENCED, 0, 1)
    node.wants(ONE_HALVED)
    code, report = node.report(fault="nvmlDeviceCreateGpuInstanceWithPlacement@2=INSUFFICIENT_RESOURCES")
    assert (code, node.map.exists(), node.systemd.pid(PERSISTENCED) > 0) == (1, False, True)
    assert report["cards"][0]["rolled_back"] is True
    assert node.cut()[0] == ["1g.6gb"] * 4
    assert node.report()[0] == 0
    assert node.map.exists()


def test_after_a_reboot_it_cuts_again(node: Node) -> None:
    assert node.report()[0] == 0
    node.machine.reboot()
    assert [len(c) for c in node.cut()] == [0, 0]
    assert node.report("--boot")[0] == 0
    assert [len(c) for c in node.cut()] == [4, 4]


def test_at_boot_a_start_is_not_waited_for(node: Node) -> None:
    node.systemd.unit(EXPORTER, 0)
    assert node.report("--boot")[0] == 0
    assert node.systemd.calls()[-1] == f"start --no-block {EXPORTER}"


def test_at_boot_persistenced_runs_on_and_slurmds_start_stays_in_the_queue(node: Node) -> None:
    """Stopping what slurmd requires would take its start away; mig-parted cuts beside persistenced, too."""
    node.systemd.unit(PERSISTENCED, 0, 1)
    node.systemd.queue("slurmd.service", PERSISTENCED)
    code, report = node.report("--boot")
    assert (code, report["clients"], node.systemd.calls()) == (0, [], []), report["findings"]
    assert [len(c) for c in node.cut()] == [4, 4]


def test_what_stops_with_a_client_is_stopped_before_it_and_started_again(node: Node) -> None:
    node.systemd.unit(PERSISTENCED, 0, 1)
    node.systemd.unit("middle.service", requires=PERSISTENCED)
    node.systemd.unit("last.service", requires="middle.service")
    code, report = node.report()
    names = ["last.service", "middle.service", PERSISTENCED]
    assert (code, report["clients"]) == (0, names), report["findings"]
    assert node.systemd.calls() == [*(f"stop {n}" for n in names), *(f"start {n}" for n in reversed(names))]
    assert all(node.systemd.pid(name) for name in names)


@pytest.mark.parametrize("name", ["slurmd.service", "kubelet.service", "slurmd@n1.service", "jobs.target"])
def test_what_runs_jobs_never_stops_with_a_client(node: Node, name: str) -> None:
    node.systemd.unit(PERSISTENCED, 0, 1)
    node.systemd.unit("middle.service", requires=PERSISTENCED)
    node.systemd.unit(name, requires="middle.service")
    for arguments in (["--dry-run"], []):
        code, report = node.report(*arguments)
        assert (code, node.cut(), node.systemd.calls()) == (1, [["whole"]] * 2, [])
        assert [c["state"] for c in report["cards"]] == ["waiting"] * 2
        said = [f["message"] for f in report["findings"] if f["rule"] == "client-not-stopped"]
        assert said == [f"middle.service is not stopped: systemd would stop {name}, too"]


@pytest.mark.parametrize(("fault", "state"), [("lost", "needs-reboot"), ("reset-required", "needs-reset")])
def test_a_dead_card_is_named_and_the_others_are_reported(node: Node, fault: str, state: str) -> None:
    node.wants(ONE_HALVED)
    node.machine.break_card(1, fault)
    code, report = node.report()
    assert (code, rules(report), report["changed"], node.map.exists()) == (1, ["device-dead"], False, False)
    waits = "it waits for GPU 1 at 0000:ca:00.0 "
    assert [card["state"] for card in report["cards"]] == ["waiting", state]
    assert report["cards"][0]["why"].startswith(waits)
    assert report["cards"][0]["why"].endswith(": MIG is off; the NodeConfig says on")
    assert "-i 0000:ca:00.0)" in report["findings"][0]["hint"]
    node.wants(WHOLE)
    assert [card["state"] for card in node.report()[1]["cards"]] == ["as-wanted", state]


def test_a_config_of_other_cards_is_refused(node: Node) -> None:
    inventory = INVENTORY.format(sharing=WHOLE).replace("model: A30", "model: A100-PCIE-40GB")
    (node.folder / "node.json").write_bytes(rendered("", node.folder, inventory))
    run = node.apply()
    assert (run.returncode, run.stdout, node.cut()) == (1, "", [["whole"]] * 2)
    assert "it is A30; the NodeConfig says A100-PCIE-40GB [device-differs-from-config]" in run.stderr


@pytest.mark.parametrize(("content", "code"), [(None, 66), ("{}", 1), ("not json", 1)])
def test_a_config_that_is_none_is_refused(node: Node, content: str | None, code: int) -> None:
    path = node.folder / "node.json"
    path.unlink() if content is None else path.write_text(content)
    run = node.apply()
    assert (run.returncode, run.stdout) == (code, "")


OPERATED = """\
apiVersion: hybridgpu/v1
kind: Inventory
metadata: {name: t}
kubernetes: {delivery: gpu-operator}
nodeClasses:
  a: {model: A30, gpus: 2}
nodes:
- hosts: n1
  kubernetesName: HOST
  class: a
  owner: kubernetes
  schedulers: [kubernetes]
  sharing: {mode: mig, layout: {all: {1g.6gb: 4}}}
""".replace("HOST", socket.gethostname())


@pytest.mark.parametrize(
    ("inventory", "arguments", "broken", "code", "said"),
    [
        (OPERATED, ["--boot"], None, 0, "the driver comes in the GPU operator's container, after kubelet"),
        (OPERATED, [], None, 1, "--driver-root /run/nvidia/driver"),
        (OPERATED, ["--boot"], "usr/lib64/libnvidia-ml.so.1", 1, "the driver's library cannot be loaded"),
        (OPERATED, ["--boot"], "proc/driver/nvidia/version", 0, "the driver comes in the GPU operator's container"),
        (OPERATED, [], "proc/driver/nvidia/version", 1, "--driver-root /run/nvidia/driver"),
        (OPERATED, ["--boot"], "usr/bin/nvidia-smi", 1, "libnvidia-ml.so.1 is not there"),
        (INVENTORY.format(sharing=FOURTHS), ["--boot"], None, 1, "libnvidia-ml.so.1 is not there"),
    ],
)
def test_a_driver_that_comes_in_a_container_is_told_apart_from_a_broken_one(
    tmp_path: Path, inventory: str, arguments: list[str], broken: str | None, code: int, said: str
) -> None:
    if Path("/proc/driver/nvidia").exists():
        pytest.skip("this machine has a driver")
    config, root = tmp_path / "node.json", tmp_path / "driver"
    config.write_bytes(rendered("", tmp_path, inventory))
    root.mkdir()
    if broken:
        (root / broken).parent.mkdir(parents=True)
        (root / broken).write_bytes(b"\x7fELF")
    clean = {name: value for name, value in os.environ.items() if name != "LD_LIBRARY_PATH"}
    files = ["--config", str(config), "--run", str(tmp_path / "run"), "--driver-root", str(root)]
    run = subprocess.run(
        [sys.executable, "-m", "hybridgpu", "node", "apply", *files, *arguments],
        capture_output=True,
        text=True,
        env=clean,
        timeout=60,
    )
    assert (run.returncode, said in run.stderr) == (code, True), run.stderr


class NodeOnly(BaseHTTPRequestHandler):
    """As much of an API server as one Node takes, of which mig-manager never says more than `pending`."""

    labels: ClassVar[dict[str, str]] = {}
    annotations: ClassVar[dict[str, str]] = {}

    def do_GET(self) -> None:
        metadata = {"name": "n", "resourceVersion": "1", "labels": self.labels, "annotations": self.annotations}
        body = json.dumps({"metadata": metadata, "status": {"nodeInfo": {"bootID": boot_id()}}}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_PATCH(self) -> None:
        wanted = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["metadata"]
        self.labels.update({name: value for name, value in wanted["labels"].items() if value}, **{STATE: "pending"})
        self.annotations.update(wanted["annotations"])
        self.do_GET()

    def log_message(self, *_: object) -> None:
        pass


def kubeconfig(node: Node, port: int) -> list[str]:
    """Leads to a port of this machine; the node is one of the operator's from here on."""
    (node.folder / "node.json").write_bytes(rendered("", node.folder, OPERATED))
    config = {
        "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
        "users": [{"name": "u", "user": {}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
    }
    (node.folder / "kubeconfig").write_text(json.dumps(config))
    return ["--kubeconfig", str(node.folder / "kubeconfig")]


def test_an_api_server_that_is_down_costs_neither_the_map_nor_the_report(node: Node) -> None:
    node.systemd.unit(PERSISTENCED, 0)
    code, report = node.report(*kubeconfig(node, 1))
    assert (code, [len(c) for c in node.cut()], report["devices"]) == (1, [4, 4], str(node.map))
    assert rules(report) == ["mig-manager-unread"]
    assert (len(json.loads(node.map.read_text())["devices"]), report["changed"]) == (8, True)


def test_a_signal_while_mig_manager_is_waited_for_leaves_the_map_and_tells_all(node: Node) -> None:
    NodeOnly.labels.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), NodeOnly) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        arguments = kubeconfig(node, server.server_port)
        with subprocess.Popen(
            node.command("-o", "json", *arguments),
            env=node.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as run:
            while STATE not in NodeOnly.labels:
                time.sleep(0.05)
            assert node.map.exists(), "it is there before mig-manager is asked"
            run.send_signal(signal.SIGTERM)
            out, err = run.communicate(timeout=60)
        server.shutdown()
    report = json.loads(out)
    assert (run.returncode, report["mig_manager"]["progress"], report["mig_manager"]["asked"]) == (1, "pending", True)
    assert (report["devices"], rules(report)) == (str(node.map), ["mig-manager-not-done"])
    assert "SIGTERM came: nothing more was waited for" in err


@pytest.mark.parametrize(("path", "code"), [("/nonexistent", 66), ("/etc", 1)])
def test_a_kubeconfig_that_cannot_be_read_is_said_before_anything_is_cut(node: Node, path: str, code: int) -> None:
    assert (node.apply("--kubeconfig", path).returncode, node.cut()) == (code, [["whole"]] * 2)


def test_a_config_of_another_host_is_refused(node: Node) -> None:
    inventory = INVENTORY.format(sharing=FOURTHS).replace(f"NodeHostname: {socket.gethostname()}", "NodeHostname: n9")
    (node.folder / "node.json").write_bytes(rendered("", node.folder, inventory))
    for arguments in (["--dry-run"], []):
        run = node.apply(*arguments)
        assert (run.returncode, run.stdout, node.cut()) == (1, "", [["whole"]] * 2)
        assert "[node-config-not-of-this-host]" in run.stderr


def test_wrong_usage() -> None:
    run = subprocess.run([sys.executable, "-m", "hybridgpu", "node", "apply", "--wait", "nan"], capture_output=True)
    assert run.returncode == 64


def test_two_never_overlap(node: Node) -> None:
    node.systemd.unit(PERSISTENCED, 0)
    (node.systemd.folder / PERSISTENCED / "slow").touch()
    with subprocess.Popen(
        node.command(), env=node.environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as first:
        while not (node.systemd.folder / PERSISTENCED / "now").exists():
            time.sleep(0.01)
        second = node.apply()
        assert first.wait(60) == 0
    assert second.returncode == 1
    assert f"another `node apply` is at work (process {first.pid})" in second.stderr
    assert [len(c) for c in node.cut()] == [4, 4]


def folder(mode: int = 0o755, uid: int = 0, **files: str) -> Callable[[Path], None]:
    def spoil(run: Path) -> None:
        run.mkdir()
        run.chmod(mode)
        os.chown(run, uid, 0)
        for name, content in files.items():
            (run / f"{name}.json").write_text(content)

    return spoil


def lock_as(make: Callable[[Path], None]) -> Callable[[Path], None]:
    def spoil(run: Path) -> None:
        run.mkdir()
        make(run / "apply.lock")

    return spoil


SPOILT: dict[str, tuple[Callable[[Path], None], str]] = {
    "a link": (lambda run: run.symlink_to("/tmp"), "run: this is no folder, and is to be one of root's own"),
    "a file": (lambda run: run.touch(), "run: this is no folder, and is to be one of root's own"),
    "written by all": (folder(0o777), "run: it may be written by others"),
    "a map that is a folder": (lambda run: (run / "devices.json").mkdir(parents=True), "this is no ordinary file"),
    "a list of depth": (folder(stopped="[" * 60000), "does not say which clients were stopped"),
    "another user's": (folder(uid=65534), "may be written by others"),
    "a lock that is a link": (lock_as(lambda path: path.symlink_to("/tmp/other")), "apply.lock: Too many levels"),
    "a lock that is a pipe": (lock_as(os.mkfifo), "is something else than it must be"),
    "no list of clients": (folder(stopped="x"), "does not say which clients were stopped"),
    "an option for a client": (folder(stopped='{"kind": "StoppedClients", "units": ["-H"]}'), "does not say which"),
}


@pytest.mark.parametrize("how", ["a link", "a file", "a map that is a folder", "no list of clients"])
def test_a_dry_run_sees_it_too(node: Node, how: str) -> None:
    spoil, said = SPOILT[how]
    spoil(node.run_folder)
    run = node.apply("--dry-run")
    assert (run.returncode, said in run.stderr) == (1, True), run.stderr


@pytest.mark.parametrize("how", SPOILT)
def test_a_folder_that_others_may_write_is_refused(node: Node, how: str) -> None:
    spoil, said = SPOILT[how]
    spoil(node.run_folder)
    run = node.apply()
    assert (run.returncode, said in run.stderr, "device is unavailable" in run.stderr) == (1, True, False), run.stderr
    assert node.cut() == [["whole"]] * 2


def test_what_another_boot_stopped_is_not_started(node: Node) -> None:
    node.systemd.unit(EXPORTER, 0)
    node.run_folder.mkdir()
    record = {"kind": "StoppedClients", "boot_id": "another", "units": ["foreign.service"]}
    (node.run_folder / "stopped.json").write_text(json.dumps(record))
    assert node.report()[0] == 0
    assert "start foreign.service" not in node.systemd.calls()
