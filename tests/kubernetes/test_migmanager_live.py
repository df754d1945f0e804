"""`node apply --kubeconfig` before a real API server; mig-manager itself is stood in for by the labels that it sets.

The command runs in the server's own network, which nothing else reaches.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from hybridgpu.model.labels import MIG_ASKED, MIG_CONFIG, MIG_CONFIG_STATE, PAUSED, PAUSED_OPERANDS
from hybridgpu.planes.kubernetes.migmanager import ASK_AGAIN
from testbed.kubernetes.server import ADDRESS, CERTIFICATES, PORT, TOKEN, ApiServer
from tests.cli.test_apply import OPERATED
from tests.conftest import lacking
from tests.devices.test_nodeconfig import rendered

pytestmark = pytest.mark.kubernetes
NAME = socket.gethostname()
NODE: dict[str, Any] = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NAME}}
BOOT_ID = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
PLUGIN = PAUSED_OPERANDS[0]
INFO = (
    *("machineID", "systemUUID", "kernelVersion", "osImage", "containerRuntimeVersion", "kubeletVersion"),
    *("kubeProxyVersion", "operatingSystem", "architecture"),
)


class Site:
    """A Node of a cluster, whose driver comes in the operator's container; and the command on that node."""

    def __init__(self, server: ApiServer, folder: Path) -> None:
        self.server, self.folder, self.api = server, folder, server.api
        (folder / "node.json").write_bytes(rendered("", folder, OPERATED))
        self.layout = json.loads((folder / "node.json").read_text())["kubernetes"]["labels"][MIG_CONFIG]
        certificate = folder / "ca.crt"
        shutil.copy(server.inside.path(f"{CERTIFICATES}/apiserver.crt"), certificate)
        cluster = {"server": f"https://{ADDRESS}:{PORT}", "certificate-authority": str(certificate)}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "c",
            "clusters": [{"name": "c", "cluster": cluster}],
            "users": [{"name": "u", "user": {"token": TOKEN}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        }
        (folder / "kubeconfig").write_text(json.dumps(config))
        (folder / "driver").mkdir()

    def node(
        self,
        labels: Mapping[str, str] | None = None,
        boot: str = BOOT_ID,
        annotations: Mapping[str, str] | None = None,
    ) -> None:
        made = {**NODE, "metadata": {"name": NAME, "labels": labels or {}, "annotations": annotations or {}}}
        self.api.create(made)
        info = {"nodeInfo": {**dict.fromkeys(INFO, "x"), "bootID": boot}}
        path = f"{self.api.path(NODE)}/status"
        self.api.answer("PATCH", path, {"status": info}, content="application/merge-patch+json")

    def labels(self) -> dict[str, str]:
        labels: dict[str, str] = self.api.get(NODE)["metadata"].get("labels", {})
        return labels

    def apply(self, *arguments: str) -> tuple[int, dict[str, Any] | str]:
        files = ["--config", str(self.folder / "node.json"), "--run", str(self.folder / "run")]
        files += ["--driver-root", str(self.folder / "driver"), "--kubeconfig", str(self.folder / "kubeconfig")]
        network = self.server.inside.path("/").parent / "ns" / "net"
        command = ["nsenter", f"--net={network}", sys.executable, "-m", "hybridgpu", "node", "apply", "-o", "json"]
        clean = {name: value for name, value in os.environ.items() if name != "LD_LIBRARY_PATH"}
        run = subprocess.run([*command, *files, *arguments], capture_output=True, text=True, env=clean, timeout=120)
        return run.returncode, json.loads(run.stdout) if run.stdout else run.stderr


@pytest.fixture
def site(api_server: ApiServer, tmp_path: Path) -> Iterator[Site]:
    if shutil.which("nsenter") is None:
        lacking("needs nsenter (util-linux)")
    if Path("/proc/driver/nvidia").exists():
        pytest.skip("this machine has a driver")
    yield Site(api_server, tmp_path)
    if any(each["metadata"]["name"] == NAME for each in api_server.api.objects("v1", "Node")):
        api_server.api.delete(NODE)


@contextmanager
def mig_manager(api_server: ApiServer, answer: str) -> Iterator[list[str]]:
    """Says `failed` to a layout that there is none of, and `answer` to others, each time the label changes."""
    seen: list[str] = []
    over = threading.Event()
    api = api_server.client(TOKEN)

    def work() -> None:
        last = api.get(NODE)["metadata"].get("labels", {}).get(MIG_CONFIG, "")
        while not over.is_set():
            now = api.get(NODE)["metadata"].get("labels", {}).get(MIG_CONFIG, "")
            if now != last:
                seen.append(now)
                state = "failed" if now == ASK_AGAIN else answer
                api.merge(NODE, {"metadata": {"labels": {MIG_CONFIG_STATE: state}}})
                last = now
            time.sleep(0.02)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield seen
    finally:
        over.set()
        thread.join()


def progress(report: object) -> object:
    assert isinstance(report, dict), report
    return report["mig_manager"]["progress"]


def test_it_is_asked_and_answers(site: Site) -> None:
    site.node({MIG_CONFIG: "all-disabled", MIG_CONFIG_STATE: "success"})
    before = site.labels()
    code, report = site.apply("--dry-run")
    assert (code, progress(report), site.labels()) == (0, "not-asked", before)
    with mig_manager(site.server, "success"):
        code, report = site.apply("--wait", "30")
    assert (code, progress(report)) == (0, "success")
    assert site.labels()[MIG_CONFIG] == site.layout
    version = site.api.get(NODE)["metadata"]["resourceVersion"]
    assert site.apply()[0] == 0
    assert site.api.get(NODE)["metadata"]["resourceVersion"] == version, "asked once, it is not asked again"


def test_what_it_said_in_another_boot_is_not_believed(site: Site) -> None:
    mark = json.dumps({"layout": site.layout, "boot_id": "another", "at": "2026-01-01T00:00:00+00:00"})
    site.node({MIG_CONFIG: site.layout, MIG_CONFIG_STATE: "success"}, annotations={MIG_ASKED: mark})
    code, report = site.apply("--wait", "1")
    assert (code, progress(report)) == (1, "pending")
    assert MIG_CONFIG_STATE not in site.labels()


def test_a_wedge_is_mended(site: Site) -> None:
    mark = json.dumps({"layout": site.layout, "boot_id": BOOT_ID, "at": "2026-01-01T00:00:00+00:00"})
    labels = {MIG_CONFIG: site.layout, MIG_CONFIG_STATE: "pending", **dict.fromkeys(PAUSED_OPERANDS, PAUSED)}
    site.node(labels, annotations={MIG_ASKED: mark})
    code, report = site.apply("--dry-run")
    assert (code, progress(report)) == (0, "wedged")
    with mig_manager(site.server, "success") as seen:
        code, report = site.apply("--wait", "30")
    assert (code, progress(report)) == (0, "success"), report
    assert seen == [ASK_AGAIN, site.layout]
    assert {site.labels()[name] for name in PAUSED_OPERANDS} == {"true"}


def test_one_that_fails_is_an_error(site: Site) -> None:
    site.node()
    with mig_manager(site.server, "failed"):
        code, report = site.apply("--wait", "30")
    assert (code, progress(report)) == (1, "failed")
    assert isinstance(report, dict)
    assert "mig-manager-not-done" in [finding["rule"] for finding in report["findings"]]


@pytest.mark.parametrize("boot", ["", "another"])
def test_a_node_of_another_boot_is_left_alone(site: Site, boot: str) -> None:
    site.node(boot=boot)
    before = site.labels()
    code, report = site.apply()
    assert code == 1
    assert f"kubernetes is unavailable: Node {NAME} is of boot" in told(report)
    assert site.labels() == before


def told(report: object) -> str:
    """What `mig-manager-unread` says."""
    assert isinstance(report, dict), report
    (said,) = [f["message"] for f in report["findings"] if f["rule"] == "mig-manager-unread"]
    return str(said)


def test_what_cannot_be_asked_is_said(site: Site) -> None:
    code, report = site.apply()
    assert (code, f'the API server answers 404: nodes "{NAME}" not found' in told(report)) == (1, True)


@pytest.mark.parametrize("content", ["{}", "[]", "{", "a: *b", "clusters: 5", "", "- " * 5000])
def test_a_kubeconfig_that_is_none_is_refused_before_anything_is_done(site: Site, content: str) -> None:
    (site.folder / "kubeconfig").write_text(content)
    code, said = site.apply()
    assert (code, "kubernetes is unavailable: " in str(said)) == (1, True), said


def test_a_kubeconfig_that_is_not_there(site: Site) -> None:
    (site.folder / "kubeconfig").unlink()
    assert site.apply()[0] == 66


def test_what_it_left_aside_under_another_layout_is_brought_back(site: Site) -> None:
    """It finds the layout cut, says so, and brings nothing back: we do, at once."""
    site.node({MIG_CONFIG: "another", MIG_CONFIG_STATE: "pending", PLUGIN: PAUSED})
    with mig_manager(site.server, "success"):
        code, report = site.apply("--wait", "30")
    assert (code, progress(report), site.labels()[PLUGIN]) == (0, "success", "true"), report
