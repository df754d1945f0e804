"""The persistent clients of a card: services that hold it for as long as they run, and run for ever. They are stopped
while a card is cut, and started again whatever happens.

What was stopped is written down before the first is: a `node apply` that was killed is made good by the next one.
Nothing is killed here, and nothing is stopped that systemd does not know.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from hybridgpu.devices.openfiles import Process
from hybridgpu.devices.port import Unread
from hybridgpu.devices.runfolder import RunFolder
from hybridgpu.devices.systemd import UNIT_NAME, Systemd, Unit
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

AT_BOOT = frozenset({"nvidia-persistenced.service"})
"""What is left running at boot. It is up by then; mig-parted's unit, too, comes after it and cuts with it running. And
slurmd, whose start waits in systemd's queue, may require it: stopping it would take that start away.
"""

_NEVER = frozenset(
    {"slurmd", "kubelet", "k3s", "k3s-agent", "rke2-server", "rke2-agent"}
    | {"containerd", "docker", "crio", "hybridgpu-apply"}
)
"""Services that run jobs, pods and containers, and the one that this may be run by: whatever requires whom."""

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
    "See `systemctl status UNIT` and its log; the next `node apply` starts it again, too. Where it is not to run any "
    "more: `systemctl mask UNIT`.",
    "docs/apply.md",
)
NOT_STOPPED = Rule(
    "client-not-stopped",
    Severity.ERROR,
    "systemd would stop a service that runs jobs, pods or containers together with a client of the cards, which it "
    "requires: so neither is stopped, and no card is changed.",
    "Drain the node, stop the service that is named, and run this again; or let it only want the client (Wants= in the "
    "place of Requires=, BindsTo=, PartOf=).",
    "systemd.unit(5), Requires=",
)
GONE = Rule(
    "client-gone",
    Severity.WARNING,
    "A service that was stopped for the cards is masked now, or not installed: it is not started, and forgotten.",
    "Nothing, where that is meant; else unmask or install it, and start it.",
    "systemctl(1)",
)
NOT_NOTED = Rule(
    "clients-not-noted",
    Severity.WARNING,
    "Which clients still have to be started could not be read, or written down: the next run may start too many, or "
    "too few.",
    "Make room in the run folder; see that the services that are named run.",
    "docs/apply.md",
)


@dataclass(frozen=True, slots=True)
class Running:
    """The clients that run, and what systemd stops with them, in the order of stopping; `left` are left running.

    `findings`: why that is not known, or, `blocked`, why none of them may be stopped.
    """

    units: tuple[Unit, ...]
    left: tuple[Unit, ...] = ()
    findings: tuple[Finding, ...] = ()

    @property
    def blocked(self) -> bool:
        """Whether none may be stopped."""
        return any(finding.is_error for finding in self.findings)

    def owns(self, process: Process) -> bool:
        """Whether a process is of one of them: its main one, or one in its control group."""
        return _owned(process, (*self.units, *self.left))

    def leaves(self, process: Process) -> bool:
        """Whether a process is of one that is left running."""
        return _owned(process, self.left)


@dataclass(frozen=True, slots=True)
class Started:
    """Those that were started again, those that do not run, and what there is to say."""

    units: tuple[str, ...] = ()
    down: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class Clients:
    """This machine's: how they are stopped, where that is noted, and how long one may take (seconds).

    `boot`: a start is only put into systemd's queue, since a unit may be ordered behind ours, and would wait for us as
    long as we wait for it; and AT_BOOT is left running.
    """

    systemd: Systemd
    folder: RunFolder
    boot_id: str
    seconds: float
    boot: bool = False

    def running(self, more: Iterable[str]) -> Running:
        """Those that run of the known ones and of `more`, the site's, which come first; and who stops with them."""
        names = in_order(more)
        units = self.systemd.units(names)
        if isinstance(units, Unread):
            return _unknown(units)
        found = {units[name].name: units[name] for name in names if name in units and units[name].runs}
        left = tuple(unit for unit in found.values() if self.boot and unit.name in AT_BOOT)
        stopped = {name: unit for name, unit in found.items() if unit not in left}
        by = dict.fromkeys(stopped, "")  # with which each is stopped
        while ask := {other: name for name in stopped for other in stopped[name].dependants if other not in by}:
            by |= ask
            shown = self.systemd.units(sorted(ask))
            if isinstance(shown, Unread):
                return _unknown(shown)
            for name, unit in shown.items():
                if unit.name not in stopped and (unit.runs or unit.queued):
                    stopped[unit.name], by[unit.name] = unit, by[name]
        blocked = tuple(Finding(NOT_STOPPED, None, _why(name, by[name])) for name in stopped if _never(name))
        return Running(tuple(_dependants_first(stopped).values()), left, blocked)

    def left_behind(self) -> tuple[str, ...]:
        """Those that a run before stopped, and did not start again. Raises OSError where that cannot be read."""
        return self.folder.stopped(self.boot_id)

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

    def start_stopped(self) -> Started:
        """Starts all that is noted, the last stopped first; each that does not start is an error, and stays noted,
        unless there is no such unit any more. Raises nothing: whoever calls has more to say.
        """
        try:
            stopped = self.folder.stopped(self.boot_id)
        except OSError as error:
            return Started(findings=(Finding(NOT_NOTED, None, f"{error.filename}: {error.strerror}"),))
        started, down, said = [], [], []
        for name in reversed(stopped):
            why = self.systemd.start(name, self.seconds, wait=not self.boot)
            if why is None:
                started.append(name)
            elif self._is_gone(name):
                said.append(Finding(GONE, None, f"{name} is not started again: {why}"))
            else:
                down.append(name)
                said.append(Finding(WILL_NOT_START, None, f"{name} does not start again: {why}"))
        try:
            self.folder.write_stopped([name for name in stopped if name in down], self.boot_id)
        except OSError as error:
            what = f"{error.filename}: {error.strerror}; not running: {', '.join(down) or 'none'}"
            said.append(Finding(NOT_NOTED, None, what))
        return Started(tuple(started), tuple(down), tuple(said))

    def _is_gone(self, name: str) -> bool:
        units = self.systemd.units([name])
        return not isinstance(units, Unread) and name not in units


def _unknown(why: Unread) -> Running:
    return Running((), (), (Finding(NO_SYSTEMD, None, f"which clients of the cards run is not known: {why}"),))


def _never(name: str) -> bool:
    """Whether a unit is never stopped by us: a target, too, with which everything starts that somebody has stopped."""
    base = name.rpartition(".")[0].partition("@")[0]
    return base in _NEVER or name.endswith(".target") or not UNIT_NAME.fullmatch(name)


def _why(name: str, client: str) -> str:
    return f"{client} is not stopped: systemd would stop {name}, too" if client else f"{name} is never stopped by this"


def _dependants_first(units: Mapping[str, Unit]) -> Mapping[str, Unit]:
    """The same, each behind all that is stopped with it; of a ring, whichever comes."""
    order: dict[str, Unit] = {}
    seen: set[str] = set()

    def visit(unit: Unit) -> None:
        if unit.name in seen:
            return
        seen.add(unit.name)
        for name in unit.dependants:
            if name in units:
                visit(units[name])
        order[unit.name] = unit

    for unit in units.values():
        visit(unit)
    return order


def in_order(more: Iterable[str]) -> tuple[str, ...]:
    """The site's and the known clients in the order of stopping, each once; a name without a type is a service's."""
    return tuple(dict.fromkeys((*(_full(name) for name in more), *KNOWN)))


def _full(name: str) -> str:
    return name if name.endswith(_TYPES) else f"{name}.service"


def _owned(process: Process, units: Iterable[Unit]) -> bool:
    return any(unit.main_pid == process.pid or _within(unit.control_group, process.groups) for unit in units)


def _within(group: str, groups: Iterable[str]) -> bool:
    return bool(group.strip("/")) and any(each == group or each.startswith(f"{group}/") for each in groups)
