"""The persistent clients of a card: services that hold it for as long as they run, and run for ever. They are stopped
while a card is cut, and started again whatever happens.

What was stopped is written down before the first is: a `node apply` that was killed is made good by the next one.
Nothing is killed here, and nothing is stopped that systemd does not know.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from hybridgpu.devices.openfiles import Process
from hybridgpu.devices.port import Unread
from hybridgpu.devices.runfolder import RunFolder
from hybridgpu.devices.systemd import Systemd, Unit
from hybridgpu.model.finding import Finding, Rule, Severity

KNOWN = (
    "dcgm-exporter.service",
    "nvidia-dcgm-exporter.service",
    "docker.dcgm-exporter.service",
    "nvsm.service",
    "nvsm-mqtt.service",
    "nvsm-core.service",
    "nvsm-api-gateway.service",
    "nvsm-notifier.service",
    "nvidia-device-plugin.service",
    "nvidia-dcgm.service",
    "dcgm.service",
    "nvidia-persistenced.service",
)
"""In the order of stopping, users before what they use: exporters, nvsm, DCGM's host engine (nv-hostengine), the
persistence daemon. mig-parted stops the same services but the last (deployments/systemd/hooks.sh, driver services).
"""

_TYPES = (".service", ".socket", ".target", ".timer", ".scope", ".slice", ".path", ".mount")

NO_SYSTEMD = Rule(
    "clients-unread",
    Severity.WARNING,
    "Which persistent clients of the cards run is not known, so that none is stopped: one that holds a card that must "
    "change is in the way of that.",
    "Where there is no systemd, stop what the refusal names, and start it again afterwards.",
    "systemctl(1)",
)
WILL_NOT_STOP = Rule(
    "client-will-not-stop",
    Severity.ERROR,
    "A service that holds the cards did not stop, so that no card was changed.",
    "See `systemctl status UNIT` and its log; stop it, then run this again.",
    "docs/apply.md",
)
WILL_NOT_START = Rule(
    "client-will-not-start",
    Severity.ERROR,
    "A service that was stopped for the cards does not start again: what it does for the node is not done.",
    "See `systemctl status UNIT` and its log; the next `node apply` starts it again, too.",
    "docs/apply.md",
)


@dataclass(frozen=True, slots=True)
class Running:
    """The clients that run, in the order of stopping; `findings` where that could not be read."""

    units: tuple[Unit, ...]
    findings: tuple[Finding, ...] = ()

    def owns(self, process: Process) -> bool:
        """Whether a process is of one of them: its main one, or one in its control group."""
        return any(unit.main_pid == process.pid or _within(unit.control_group, process.groups) for unit in self.units)


@dataclass(frozen=True, slots=True)
class Clients:
    """This machine's: how they are stopped, where that is noted, and how long one may take (seconds).

    `wait` false: a start is only put into systemd's queue. At boot a unit may be ordered behind ours, and would wait
    for us as long as we wait for it.
    """

    systemd: Systemd
    folder: RunFolder
    boot_id: str
    seconds: float
    wait: bool = True

    def running(self, more: Iterable[str]) -> Running:
        """Those that run of the known ones and of `more`, the site's, which come first."""
        names = in_order(more)
        units = self.systemd.units(names)
        if isinstance(units, Unread):
            return Running((), (Finding(NO_SYSTEMD, None, f"which clients of the cards run is not known: {units}"),))
        found = {units[name].name: units[name] for name in names if name in units and units[name].runs}
        return Running(tuple(found.values()))

    def stop(self, units: Sequence[Unit], interrupted: Callable[[], None]) -> tuple[Finding, ...]:
        """Stops them, one after the other, up to one that does not: that is an error, and the rest runs on.

        `interrupted` is called before each, and may raise. Raises OSError where it cannot be noted: none is stopped.
        """
        names = [unit.name for unit in units]
        before = [name for name in self.folder.stopped(self.boot_id) if name not in names]
        self.folder.write_stopped([*before, *names], self.boot_id)
        for name in names:
            interrupted()
            why = self.systemd.stop(name, self.seconds)
            if why:
                return (Finding(WILL_NOT_STOP, None, f"{name} does not stop: {why}"),)
        return ()

    def start_stopped(self) -> tuple[Finding, ...]:
        """Starts all that is noted, the last stopped first; each that does not start is an error, and stays noted."""
        stopped = self.folder.stopped(self.boot_id)
        failed = {
            name: why for name in reversed(stopped) if (why := self.systemd.start(name, self.seconds, wait=self.wait))
        }
        self.folder.write_stopped([name for name in stopped if name in failed], self.boot_id)
        return tuple(
            Finding(WILL_NOT_START, None, f"{name} does not start again: {why}") for name, why in failed.items()
        )


def in_order(more: Iterable[str]) -> tuple[str, ...]:
    """The site's and the known clients in the order of stopping, each once; a name without a type is a service's."""
    return tuple(dict.fromkeys((*(_full(name) for name in more), *KNOWN)))


def _full(name: str) -> str:
    return name if name.endswith(_TYPES) else f"{name}.service"


def _within(group: str, groups: Iterable[str]) -> bool:
    return bool(group.strip("/")) and any(each == group or each.startswith(f"{group}/") for each in groups)
