"""The API server itself: it judges strictly, answers nobody outside, and is gone with whoever started it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from testbed.kubernetes.client import Api, Refused
from testbed.kubernetes.programs import KUBERNETES
from testbed.kubernetes.server import PORT, ApiServer

pytestmark = pytest.mark.kubernetes

NAMESPACE = "server"
CHECKOUT = Path(__file__).parents[2]

START_AND_WAIT = """\
import time
from testbed.kubernetes.programs import Programs
from testbed.kubernetes.server import ApiServer
with ApiServer(Programs.found()) as server:
    print(server.inside.pid, flush=True)
    time.sleep(600)
"""


@pytest.fixture
def api(api_server: ApiServer) -> Iterator[Api]:
    api_server.api.namespace(NAMESPACE)
    yield api_server.api
    for each in api_server.api.objects("v1", "ConfigMap", NAMESPACE):
        api_server.api.delete({"apiVersion": "v1", "kind": "ConfigMap", **each})


def config_map(**fields: object) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m", "namespace": NAMESPACE}, **fields}


def test_it_is_the_release_that_was_built(api_server: ApiServer) -> None:
    if api_server.programs.version != KUBERNETES:
        pytest.skip("the programs are somebody else's")
    assert api_server.api.answer("GET", "/version")["gitVersion"] == f"v{KUBERNETES}"


@pytest.mark.parametrize(
    ("wanted", "code", "said"),
    [
        (config_map(dta={"a": "b"}), 500, "field not declared in schema"),
        (config_map(data={"a": 1}), 500, "expected string"),
        (config_map(data={"a/b": "c"}), 422, "data[a/b]"),
        (config_map(data={"a": "b"}) | {"metadata": {"name": "M", "namespace": NAMESPACE}}, 422, "metadata.name"),
        (config_map(data={"a": "b"}) | {"metadata": {"name": "m", "namespace": "absent"}}, 404, "not found"),
    ],
    ids=["unknown field", "wrong type", "key", "name", "namespace"],
)
def test_it_refuses_what_is_wrong(api: Api, wanted: dict[str, Any], code: int, said: str) -> None:
    with pytest.raises(Refused) as refusal:
        api.apply(wanted)
    assert refusal.value.code == code
    assert said in str(refusal.value)


def test_two_managers_keep_their_keys_and_conflict_over_one(api: Api) -> None:
    """Why a key that is in use must stay in our text: a version without it takes it away at once."""
    api.apply(config_map(data={"ours": "1", "old": "1"}), manager="us")
    api.apply(config_map(data={"theirs": "1"}), manager="them")
    assert api.apply(config_map(data={"ours": "1"}), manager="us")["data"] == {"ours": "1", "theirs": "1"}
    with pytest.raises(Refused) as refusal:
        api.apply(config_map(data={"ours": "2"}), manager="them")
    assert (refusal.value.code, refusal.value.reason) == (409, "Conflict")
    assert api.apply(config_map(data={"ours": "2"}), manager="them", force=True)["data"]["ours"] == "2"


def test_objects_are_created_changed_and_deleted(api: Api) -> None:
    created = api.create(config_map(data={"a": "1", "b": "2"}))
    with pytest.raises(Refused, match="409 AlreadyExists"):
        api.create(config_map())
    merged = api.merge(config_map(), {"data": {"a": None, "c": "3"}})
    assert merged["data"] == {"b": "2", "c": "3"}
    assert merged["metadata"]["uid"] == created["metadata"]["uid"]
    assert api.get(config_map())["data"] == merged["data"]
    assert [each["metadata"]["name"] for each in api.objects("v1", "ConfigMap", NAMESPACE)] == ["m"]
    api.delete(config_map())
    with pytest.raises(Refused, match="404 NotFound"):
        api.get(config_map())


def test_it_listens_in_a_network_of_its_own(api_server: ApiServer) -> None:
    ours, theirs = (Path("/proc") / process / "net" for process in ("self", str(api_server.inside.pid)))
    listening = f"0100007F:{PORT:04X} 00000000:0000 0A"
    assert listening in (theirs / "tcp").read_text(encoding="ascii")
    assert sorted(path.name for path in (theirs / "dev_snmp6").iterdir()) == ["lo"]
    assert (ours.parent / "ns" / "net").readlink() != (theirs.parent / "ns" / "net").readlink()


def test_it_is_gone_when_its_starter_is_killed(api_server: ApiServer) -> None:
    """Not one process of it is left, though nobody had time to stop it."""
    assert api_server.api.request("GET", "/readyz") == "ok"
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT)}
    argv = [sys.executable, "-c", START_AND_WAIT]
    with subprocess.Popen(argv, cwd=CHECKOUT, env=environment, stdout=subprocess.PIPE, text=True) as starter:
        assert starter.stdout is not None
        network = Path(f"/proc/{int(starter.stdout.readline())}/ns/net").readlink()
        assert len(inhabitants(network)) >= 3
        starter.send_signal(signal.SIGKILL)
    end = time.monotonic() + 10
    while inhabitants(network) and time.monotonic() < end:
        time.sleep(0.1)
    assert not inhabitants(network)


def inhabitants(network: Path) -> set[int]:
    """The processes in a network namespace."""
    found = set()
    for process in Path("/proc").iterdir():
        try:
            if process.name.isdigit() and (process / "ns" / "net").readlink() == network:
                found.add(int(process.name))
        except OSError:
            continue
    return found
