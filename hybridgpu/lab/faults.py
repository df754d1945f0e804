"""A plan of faults over any Cutter: a call that fails, hangs, or at which the process dies, before or after its effect.

What happens otherwise is the Cutter's own. Calls are counted from 1, over all methods.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hybridgpu.devices.port import ComputeInstance, Cut, Cutter, GpuInstance, NotDone, Unread
from hybridgpu.errors import Unavailable
from hybridgpu.model.gpu import Placement
from hybridgpu.model.sharing import ComputeMode

DIES, HANGS = "dies", "hangs"


class Died(BaseException):
    """The process is no more. Nothing catches it, as nothing catches a SIGKILL."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What becomes of a call: an answer of NVML's (`UNKNOWN`), DIES or HANGS; `after`: what was asked for happened."""

    what: str
    after: bool = False


class FaultyCutter:
    """A Cutter whose calls go wrong as planned. `calls` are those that were made, by name."""

    def __init__(self, cutter: Cutter, plan: Mapping[int, Fault]) -> None:
        self._cutter, self._plan = cutter, plan
        self.calls: list[str] = []

    def look(self, card: str) -> Cut | Unread:
        """As Cutter."""
        seen: Cut | Unread | NotDone = self._call("look", card)
        return Unread(seen.call, seen.answer) if isinstance(seen, NotDone) else seen

    def set_mig(self, card: str, on: bool) -> str | NotDone:
        """As Cutter."""
        answer: str | NotDone = self._call("set_mig", card, on)
        return answer

    def set_compute_mode(self, card: str, mode: ComputeMode) -> NotDone | None:
        """As Cutter."""
        return self._change("set_compute_mode", card, mode)

    def create_gpu_instance(self, card: str, profile: str, placement: Placement) -> NotDone | None:
        """As Cutter."""
        return self._change("create_gpu_instance", card, profile, placement)

    def create_compute_instance(self, card: str, placement: Placement, slices: int) -> NotDone | None:
        """As Cutter."""
        return self._change("create_compute_instance", card, placement, slices)

    def destroy_compute_instance(self, card: str, placement: Placement, compute: ComputeInstance) -> NotDone | None:
        """As Cutter."""
        return self._change("destroy_compute_instance", card, placement, compute)

    def destroy_gpu_instance(self, card: str, instance: GpuInstance) -> NotDone | None:
        """As Cutter."""
        return self._change("destroy_gpu_instance", card, instance)

    def _change(self, method: str, *arguments: object) -> NotDone | None:
        done: NotDone | None = self._call(method, *arguments)
        return done

    def _call(self, method: str, *arguments: object) -> Any:  # noqa: ANN401 - each method's own
        self.calls.append(method)
        fault = self._plan.get(len(self.calls))
        if fault is not None and not fault.after:
            return _befalls(fault, method)
        value = getattr(self._cutter, method)(*arguments)
        return value if fault is None else _befalls(fault, method)


def _befalls(fault: Fault, method: str) -> NotDone:
    if fault.what == DIES:
        raise Died(method)
    if fault.what == HANGS:
        raise Unavailable("device", (), f"{method} did not answer in time")
    return NotDone(method, fault.what)
