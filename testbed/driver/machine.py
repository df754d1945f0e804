"""A simulated machine in a folder, from Python: made, shown, and changed by what no call of NVIDIA's does.

The state's format is the C library's alone; here are only names. Whoever uses the cards does so by NVML, in this
process or in another that gets `environment`.
"""

from __future__ import annotations

import ctypes
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testbed.driver import library

KINDS = ("compute", "graphics", "mps")
FAULTS = ("lost", "hang", "in-use", "unknown", "reset-required", "absent")
WHOLE_CARD = -1


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine below `root`: state, /proc, /dev and /sys. Cards are named by their place in its description.

    Every method raises NvmlError with what the driver answered.
    """

    root: Path

    @classmethod
    def make(cls, root: Path, description: Mapping[str, Any] | Path) -> Machine:
        """Make a machine from its description, or take the one there that was made from the same."""
        if not isinstance(description, Path):
            root.mkdir(parents=True, exist_ok=True)
            path = root / "machine.json"
            path.write_text(json.dumps(description), encoding="utf-8")
            description = path
        with library.over(root, description):
            return cls(root)

    def environment(self, fault: str | None = None) -> dict[str, str]:
        """The variables by which another process sees this machine, with a plan of faults of its own (fault.h)."""
        plan = {} if fault is None else {library.FAULT: fault}
        return {library.ROOT: str(self.root), "LD_LIBRARY_PATH": str(library.build().parent), **plan}

    def show(self) -> dict[str, Any]:
        """What the machine is now: `{driver, boots, changes, gpus: [...]}`."""
        with library.over(self.root) as driver:
            text = driver.gpusim_show()
            if not text:
                raise library.NvmlError(library.DRIVER_NOT_LOADED, "the state cannot be read")
            shown: dict[str, Any] = json.loads(ctypes.string_at(text))
            driver.gpusim_free(text)
            return shown

    def run(
        self,
        card: int,
        pid: int,
        kind: str = "compute",
        gi: int = WHOLE_CARD,
        ci: int = WHOLE_CARD,
        memory: int = 0,
        utilization: int = 0,
    ) -> None:
        """Let a process appear on a card, on a card with MIG in an instance; `memory` in bytes, `utilization` in %."""
        with library.over(self.root) as driver:
            library.check(driver.gpusim_run(card, pid, KINDS.index(kind), gi, ci, memory, utilization))

    def end(self, pid: int) -> None:
        """End a process wherever it is."""
        with library.over(self.root) as driver:
            library.check(driver.gpusim_end(pid))

    def break_card(self, card: int, fault: str) -> None:
        """Break a card in one of FAULTS' ways, for everybody."""
        with library.over(self.root) as driver:
            library.check(driver.gpusim_break(card, fault.encode()))

    def mend(self, card: int) -> None:
        """Mend a card, whatever it has."""
        self.break_card(card, "none")

    def reset(self, card: int) -> None:
        """Reset a card as `nvidia-smi --gpu-reset` does; 19 (IN_USE) unless it is idle."""
        with library.over(self.root) as driver:
            library.check(driver.gpusim_reset(card))

    def reboot(self) -> None:
        """Reboot: processes and instances are gone, MIG mode stays only where a card keeps it."""
        with library.over(self.root) as driver:
            library.check(driver.gpusim_reboot())

    def event(self, card: int, xid: int) -> None:
        """Let a critical error happen on a card."""
        with library.over(self.root) as driver:
            library.check(driver.gpusim_event(card, xid))
