"""A plan of faults over any Cutter: a call that fails, hangs, or at which the process dies, before or after its effect.

What happens otherwise is the Cutter's own. Calls are counted from 1, over all methods.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hybridgpu.devices.forwarded import Forwarded
from hybridgpu.devices.port import Cutter, NotDone, Unread
from hybridgpu.errors import Unavailable

DIES, HANGS = "dies", "hangs"


class Died(BaseException):
    """The process is no more. Nothing catches it, as nothing catches a SIGKILL."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What becomes of a call: an answer of NVML's (`UNKNOWN`), DIES or HANGS; `after`: what was asked for happened."""

    what: str
    after: bool = False


class FaultyCutter(Forwarded):
    """A Cutter whose calls go wrong as planned. `calls` are those that were made, by name."""

    def __init__(self, cutter: Cutter, plan: Mapping[int, Fault]) -> None:
        self._cutter, self._plan = cutter, plan
        self.calls: list[str] = []

    def _call(self, method: str, *arguments: object) -> Any:  # noqa: ANN401 - each method's own
        self.calls.append(method)
        fault = self._plan.get(len(self.calls))
        if fault is not None and not fault.after:
            return _befalls(fault, method)
        value = getattr(self._cutter, method)(*arguments)
        return value if fault is None else _befalls(fault, method)


def _befalls(fault: Fault, method: str) -> NotDone | Unread:
    if fault.what == DIES:
        raise Died(method)
    if fault.what == HANGS:
        raise Unavailable("device", (), f"{method} did not answer in time")
    return Unread(method, fault.what) if method == "look" else NotDone(method, fault.what)
