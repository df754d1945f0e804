"""Nodes of Kubernetes, one at a time, as the API server has them: read and patched as plain data. Judges nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from hybridgpu.errors import Unavailable

IN_CLUSTER = "in-cluster"
"""In the place of a kubeconfig's path: the service account of the pod that this runs in."""

_CONFLICT = 409
_SECONDS = 20.0


class Conflict(Exception):
    """The Node is not any more as it was when it was read: read it again."""


class Nodes(Protocol):
    """The Nodes of one cluster. Each method raises Unavailable("kubernetes", ...) where there is no answer."""

    def read(self, name: str) -> Mapping[str, Any]:
        """The Node, as it is now."""
        ...

    def patch(self, name: str, patch: Mapping[str, Any]) -> Mapping[str, Any]:
        """Merges the patch into it, and gives what came of it. Raises Conflict for another resourceVersion."""
        ...


class ApiNodes:
    """`Nodes` by the API server that a kubeconfig names; IN_CLUSTER: the one of the pod that this runs in.

    Raises Unavailable where the file says nothing that can be used, OSError where it cannot be read.
    """

    def __init__(self, kubeconfig: str) -> None:
        from kubernetes import client, config

        configuration = client.Configuration()
        if kubeconfig == IN_CLUSTER:
            with _answers(""):
                config.load_incluster_config(configuration)  # type: ignore[no-untyped-call]
        else:
            Path(kubeconfig).read_bytes()
            try:
                config.load_kube_config(kubeconfig, client_configuration=configuration)  # type: ignore[no-untyped-call]
            except Exception as error:  # whatever is in the file: the client checks little of it
                why = f"{kubeconfig}: {' '.join(str(error).split())[:300] or type(error).__name__}"
                raise Unavailable("kubernetes", (), why) from None
        configuration.retries = 1
        self._api = client.CoreV1Api(client.ApiClient(configuration))

    def read(self, name: str) -> Mapping[str, Any]:
        """The Node, as it is now."""
        with _answers(name):
            return _object(self._api.read_node(name, _preload_content=False, _request_timeout=_SECONDS))

    def patch(self, name: str, patch: Mapping[str, Any]) -> Mapping[str, Any]:
        """Merges the patch into it."""
        with _answers(name):
            answer = self._api.patch_node(
                name,
                dict(patch),
                field_manager="hybridgpu",
                _content_type="application/merge-patch+json",
                _preload_content=False,
                _request_timeout=_SECONDS,
            )
            return _object(answer)


@contextmanager
def _answers(name: str) -> Iterator[None]:
    """Turns what the client raises into what we do."""
    from kubernetes.client.exceptions import ApiException
    from kubernetes.config.config_exception import ConfigException
    from urllib3.exceptions import HTTPError

    node = (name,) if name else ()
    try:
        yield
    except ApiException as error:
        if error.status == _CONFLICT:
            raise Conflict(name) from None
        raise Unavailable("kubernetes", node, f"the API server answers {error.status}: {_said(error)}") from None
    except (ConfigException, HTTPError, OSError, ValueError, RecursionError) as error:
        why = getattr(error, "reason", None) or error
        raise Unavailable("kubernetes", node, " ".join(str(why).split())[:300]) from None


def _said(error: Any) -> str:  # noqa: ANN401 - the client is not typed
    """The server's own words, where it has some."""
    try:
        return str(json.loads(error.body)["message"])
    except (KeyError, TypeError, ValueError, RecursionError):
        return str(error.reason)


def _object(answer: Any) -> Mapping[str, Any]:  # noqa: ANN401
    found: Mapping[str, Any] = json.loads(answer.data)
    if not isinstance(found, dict) or not isinstance(found.get("metadata"), dict):
        raise ValueError("the API server answered something else than a Node")
    return found
