"""mig-manager asked for a node's layout by its Node, and waited for. What its answers mean is migmanager's to know."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from hybridgpu.errors import Unavailable
from hybridgpu.model.labels import MIG_CONFIG, MIG_CONFIG_STATE
from hybridgpu.planes.kubernetes.migmanager import ENDED, MigManager, Progress, ask, reading, versioned
from hybridgpu.planes.kubernetes.nodes import Conflict, Nodes

_TRIES = 5
_HEARS = 10.0
_PAUSE = 2.0
"""Seconds between two looks: its cut takes from one to many of them."""


def _now() -> datetime:
    return datetime.now(UTC)


def look(nodes: Nodes, name: str, labels: Mapping[str, str | None], boot_id: str) -> MigManager:
    """How far it is, and whether it is to be asked. Raises Unavailable("kubernetes", ...) where that cannot be read, or
    is another boot's.
    """
    node, now = _of_this_boot(nodes.read(name), name, boot_id), _now()
    seen = reading(node, str(labels[MIG_CONFIG]), boot_id, now)
    return replace(seen, asked=bool(ask(node, labels, boot_id, now)))


def settle(
    nodes: Nodes,
    name: str,
    labels: Mapping[str, str | None],
    boot_id: str,
    seconds: float,
    sleep: Callable[[float], None] = time.sleep,
    left_off: Callable[[], bool] = lambda: False,
) -> MigManager:
    """Asks for the layout in `labels` where that is needed, and gives how far it is, after `seconds` at the latest, or
    as soon as `left_off` says so. What is found wedged on the way is mended once more.

    Raises Unavailable as `look` does, and where somebody else changes the Node all the time.
    """
    end, asked = time.monotonic() + seconds, False
    for _ in range(2):
        asked = _ask(nodes, name, labels, boot_id, sleep) or asked
        seen = look(nodes, name, labels, boot_id)
        while seen.progress not in ENDED and not left_off() and (left := end - time.monotonic()) > 0:
            sleep(min(_PAUSE, left))
            seen = look(nodes, name, labels, boot_id)
        if seen.progress is not Progress.WEDGED:
            break
    return replace(seen, asked=asked)


def _ask(
    nodes: Nodes, name: str, labels: Mapping[str, str | None], boot_id: str, sleep: Callable[[float], None]
) -> bool:
    """Whether there was something to ask for."""
    asked = False
    for _ in range(_TRIES):
        node = _of_this_boot(nodes.read(name), name, boot_id)
        try:
            for number, patch in enumerate(ask(node, labels, boot_id, _now())):
                if number:
                    node = _heard(nodes, name, sleep)
                node = nodes.patch(name, versioned(patch, node))
                asked = True
        except Conflict:
            continue
        return asked
    raise Unavailable("kubernetes", (name,), f"Node {name} is changed by others all the time")


def _heard(nodes: Nodes, name: str, sleep: Callable[[float], None]) -> Mapping[str, Any]:
    """The Node, once mig-manager has said something of the word between: a change and its undoing, both at once, may
    be none to it. One that does not answer is not waited for for long.
    """
    end = time.monotonic() + _HEARS
    node = nodes.read(name)
    while MIG_CONFIG_STATE not in node["metadata"]["labels"] and time.monotonic() < end:
        sleep(_PAUSE / 4)
        node = nodes.read(name)
    return node


def _of_this_boot(node: Mapping[str, Any], name: str, boot_id: str) -> Mapping[str, Any]:
    """The Node, if its kubelet has reported since this boot: else it is another machine's, or says nothing of now."""
    told = ((node.get("status") or {}).get("nodeInfo") or {}).get("bootID")
    if told != boot_id:
        why = f"Node {name} is of boot {told or '(none)'}, this is {boot_id}: another machine, or kubelet is not up yet"
        raise Unavailable("kubernetes", (name,), why)
    return node
