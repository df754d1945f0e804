"""systemd's units by systemctl: which run, and that one stops or starts. What a unit is for is not known here.

Fixed arguments, no shell, an environment of our own, and a time limit on every call. A system without systemd is an
answer, not a failure.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hybridgpu.devices.port import Unread

_ENVIRONMENT = {"LC_ALL": "C", "SYSTEMD_PAGER": "", "SYSTEMD_COLORS": "0", "SYSTEMD_LOG_LEVEL": "notice"}
_STOPPED_WITH = ("RequiredBy", "RequisiteOf", "BoundBy", "ConsistsOf", "PropagatesStopTo")
"""Who is stopped when a unit is (systemd.unit(5): Requires=, Requisite=, BindsTo=, PartOf=, PropagatesStopTo=)."""

_PROPERTIES = f"--property=Id,LoadState,ActiveState,MainPID,ControlGroup,Job,{','.join(_STOPPED_WITH)}"
_SHOW_SECONDS = 20.0
_AT_REST = ("inactive", "failed")

UNIT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9@._:\\-]{0,254}")
"""A name that systemctl takes for a unit, and never for an option or a pattern (systemd.unit(5))."""


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit by its own name (an alias has its target's), its ActiveState, main process (0: none) and control group.

    `queued`: whether a job of systemd's waits for it, such as its start at boot, which stopping it would take away.
    `dependants`: the units that systemd stops with it.
    """

    name: str
    state: str
    main_pid: int
    control_group: str
    queued: bool = False
    dependants: tuple[str, ...] = ()

    @property
    def runs(self) -> bool:
        """Whether anything of it runs, or is about to."""
        return self.state not in _AT_REST


@dataclass(frozen=True, slots=True)
class Systemd:
    """The systemd of this machine, by the systemctl at a path; None where there is none."""

    program: Path | None

    @classmethod
    def here(cls) -> Systemd:
        """The one on PATH."""
        found = shutil.which("systemctl")
        return cls(Path(found) if found else None)

    def units(self, names: Sequence[str]) -> Mapping[str, Unit] | Unread:
        """The units of these names that are known to systemd, each under the name that was asked for."""
        if self.program is None:
            return Unread("systemctl", "that there is no such program")
        done = self._run(_SHOW_SECONDS, "show", _PROPERTIES, "--", *names)
        if done.why:
            return Unread("systemctl show", done.why)
        shown = [dict(_pairs(block)) for block in done.output.strip().split("\n\n")]
        if len(shown) != len(names):
            return Unread("systemctl show", f"{len(shown)} units for {len(names)}")
        return {name: _unit(name, each) for name, each in zip(names, shown, strict=True) if _is_known(each)}

    def stop(self, name: str, seconds: float) -> str | None:
        """Stops a unit, and waits for that; None where nothing of it runs any more, else why not."""
        why = self._changed(seconds, "stop", name)
        units = self.units([name])
        if isinstance(units, Unread):
            return str(units)
        if name in units and units[name].runs:
            return why or f"it is {units[name].state}"
        return None

    def start(self, name: str, seconds: float, *, wait: bool) -> str | None:
        """Starts a unit; None where it runs, or, without `wait`, where it was put into the queue; else why not."""
        return self._changed(seconds, "start", name, *([] if wait else ["--no-block"]))

    def _changed(self, seconds: float, verb: str, name: str, *options: str) -> str | None:
        done = self._run(seconds, verb, *options, "--", name)
        return f"systemctl {verb} answered {done.why}" if done.late else done.why

    def _run(self, seconds: float, *arguments: str) -> _Done:
        """systemctl, in a session of its own: a signal from the terminal is ours alone to answer."""
        if self.program is None:
            return _Done("", "there is no systemctl")
        environment = {"PATH": os.environ.get("PATH", os.defpath), **_ENVIRONMENT}
        try:
            done = subprocess.run(  # noqa: S603 - a fixed program, no shell
                [str(self.program), *arguments],
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=seconds,
                check=False,
                start_new_session=True,
            )
        except subprocess.TimeoutExpired:
            return _Done("", f"nothing within {seconds:g} s", late=True)
        except OSError as error:
            return _Done("", error.strerror or str(error))
        if done.returncode:
            said = " ".join(done.stderr.split()) or f"exit code {done.returncode}"
            return _Done(done.stdout, said[:300])
        return _Done(done.stdout, None)


@dataclass(frozen=True, slots=True)
class _Done:
    output: str
    why: str | None
    late: bool = False


def _pairs(block: str) -> Iterator[tuple[str, str]]:
    for line in block.splitlines():
        name, _, value = line.partition("=")
        yield name, value


def _is_known(shown: Mapping[str, str]) -> bool:
    return shown.get("LoadState") not in (None, "not-found", "masked") or _state(shown) not in _AT_REST


def _state(shown: Mapping[str, str]) -> str:
    return shown.get("ActiveState", "inactive")


def _unit(name: str, shown: Mapping[str, str]) -> Unit:
    pid = shown.get("MainPID", "0")
    return Unit(
        name=shown.get("Id") or name,
        state=_state(shown),
        main_pid=int(pid) if pid.isdecimal() else 0,
        control_group=shown.get("ControlGroup", ""),
        queued=bool(shown.get("Job")),
        dependants=tuple(dict.fromkeys(other for each in _STOPPED_WITH for other in shown.get(each, "").split())),
    )
