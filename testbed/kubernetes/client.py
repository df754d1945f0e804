"""The API server as tests talk to it: objects in, what the server made of them out, refusals with the server's words.

Standard library only, and plain HTTPS: what is judged is the text that was rendered, so nothing may complete or convert
it on the way. It knows no kinds: which path an object has, the server itself says.
"""

from __future__ import annotations

import ctypes
import http.client
import json
import os
import re
import socket
import ssl
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

MANAGER = "hybridgpu-test"
_CLONE_NEWNET = 0x40000000
_SECONDS = 30
_WARNING = re.compile(r'299 \S+ "((?:[^"\\]|\\.)*)"')


class Refused(Exception):
    """The server said no. `code` is HTTP's, `reason` Kubernetes' own word for it."""

    def __init__(self, code: int, reason: str, message: str) -> None:
        super().__init__(f"{code} {reason}: {message}")
        self.code = code
        self.reason = reason


class Connection(http.client.HTTPSConnection):
    """HTTPS to an address in another network namespace: a socket stays in the network in which it was made.

    `network` is the namespace's file, as /proc/PID/ns/net. Only the calling thread enters it, while it connects.
    """

    def __init__(self, network: Path, host: str, port: int, context: ssl.SSLContext) -> None:
        super().__init__(host, port, timeout=_SECONDS, context=context)
        self._network = network
        self._tls = context

    def connect(self) -> None:
        """Connect there, then speak TLS from here."""
        with Path("/proc/thread-self/ns/net").open("rb") as here, self._network.open("rb") as there:
            _enter(there.fileno())
            try:
                plain = socket.create_connection((self.host, self.port), timeout=_SECONDS)
            finally:
                _enter(here.fileno())
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sock = self._tls.wrap_socket(plain, server_hostname=self.host)


def _enter(network: int) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    if library.setns(network, _CLONE_NEWNET) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


class Api:
    """Requests to one server as one user. `warnings` collects what the server warned of beside its answers."""

    def __init__(self, connection: http.client.HTTPConnection, token: str) -> None:
        self._connection = connection
        self._token = token
        self._kinds: dict[str, dict[str, dict[str, Any]]] = {}
        self.warnings: list[str] = []

    def close(self) -> None:
        """Hang up; the next request connects again."""
        self._connection.close()

    def request(
        self, method: str, path: str, body: object = None, *, content: str = "application/json", **query: str
    ) -> str:
        """One request, and the body of its answer; Refused where the status is not 2xx."""
        headers = {"Authorization": f"Bearer {self._token}", "Accept": "application/json"}
        payload = None
        if body is not None:
            headers["Content-Type"] = content
            payload = json.dumps(body).encode()
        try:
            self._connection.request(method, f"{path}?{urlencode(query)}", payload, headers)
            answer = self._connection.getresponse()
            text = answer.read().decode()
        except (OSError, http.client.HTTPException):
            self._connection.close()
            raise
        self.warnings += [word for line in answer.headers.get_all("Warning", []) for word in _WARNING.findall(line)]
        if not 200 <= answer.status < 300:
            status = json.loads(text) if answer.headers.get_content_type() == "application/json" else {}
            raise Refused(answer.status, status.get("reason", ""), status.get("message", text))
        return text

    def answer(self, method: str, path: str, body: object = None, **more: str) -> dict[str, Any]:
        """The same, where the answer is an object."""
        told: dict[str, Any] = json.loads(self.request(method, path, body, **more))
        return told

    def apply(self, wanted: Mapping[str, Any], *, manager: str = MANAGER, force: bool = False) -> dict[str, Any]:
        """Server-side apply with strict validation: an unknown or repeated field is refused, and so is a conflict."""
        return self.answer(
            "PATCH",
            self.path(wanted),
            wanted,
            content="application/apply-patch+yaml",
            fieldManager=manager,
            fieldValidation="Strict",
            force=str(force).lower(),
        )

    def create(self, wanted: Mapping[str, Any]) -> dict[str, Any]:
        """Create an object that must not be there; unknown fields are refused."""
        folder = self.path(wanted).rpartition("/")[0]
        return self.answer("POST", folder, wanted, fieldManager=MANAGER, fieldValidation="Strict")

    def merge(self, target: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
        """A merge patch (RFC 7386) on the object that `target` names; unknown fields are refused."""
        return self.answer(
            "PATCH",
            self.path(target),
            patch,
            content="application/merge-patch+json",
            fieldManager=MANAGER,
            fieldValidation="Strict",
        )

    def get(self, target: Mapping[str, Any]) -> dict[str, Any]:
        """The object that `target` names."""
        return self.answer("GET", self.path(target))

    def delete(self, target: Mapping[str, Any]) -> None:
        """Delete the object that `target` names; one that is absent is Refused, with code 404."""
        self.request("DELETE", self.path(target))

    def objects(self, version: str, kind: str, namespace: str | None = None) -> list[dict[str, Any]]:
        """All objects of a kind, in one namespace or everywhere."""
        items: list[dict[str, Any]] = self.answer("GET", self._folder(version, kind, namespace))["items"]
        return items

    def namespace(self, name: str) -> None:
        """Make a namespace, unless it is there."""
        self.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})

    def define(self, crd: Mapping[str, Any]) -> None:
        """Load a CustomResourceDefinition, and wait until its kind is served."""
        self.apply(crd)
        end = time.monotonic() + _SECONDS
        while not _established(self.get(crd)):
            if time.monotonic() > end:
                raise TimeoutError(f"{crd['metadata']['name']} is not established after {_SECONDS} s")
            time.sleep(0.05)
        self._kinds.clear()

    def path(self, target: Mapping[str, Any]) -> str:
        """Where an object lives, by its apiVersion, kind, name and namespace."""
        meta = target["metadata"]
        folder = self._folder(target["apiVersion"], target["kind"], meta.get("namespace"))
        return f"{folder}/{quote(meta['name'], safe='')}"

    def _folder(self, version: str, kind: str, namespace: str | None) -> str:
        """Where the objects of a kind live; KeyError for a kind that the server does not serve."""
        root = f"/apis/{version}" if "/" in version else f"/api/{version}"
        if version not in self._kinds:
            listed = self.answer("GET", root)["resources"]
            self._kinds[version] = {entry["kind"]: entry for entry in listed if "/" not in entry["name"]}
        served = self._kinds[version][kind]
        if namespace is not None and served["namespaced"]:
            root += f"/namespaces/{quote(namespace, safe='')}"
        return f"{root}/{served['name']}"


def _established(crd: Mapping[str, Any]) -> bool:
    conditions = crd.get("status", {}).get("conditions") or []
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)
