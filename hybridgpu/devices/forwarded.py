"""A `Cutter` all of whose methods go through one call: for whoever stands before another Cutter, and adds the same to
each. What is added is not known here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from hybridgpu.devices.port import ComputeInstance, Cut, GpuInstance, NotDone, Unread
from hybridgpu.model.gpu import Placement
from hybridgpu.model.sharing import ComputeMode


class Forwarded(ABC):
    """A `Cutter` by one method. Each call is that of the Cutter behind it, with its name and its arguments."""

    @abstractmethod
    def _call(self, method: str, *arguments: object) -> Any:  # noqa: ANN401 - each method's own
        """What the method of this name gives."""

    def look(self, card: str) -> Cut | Unread:
        """As Cutter."""
        seen: Cut | Unread = self._call("look", card)
        return seen

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
