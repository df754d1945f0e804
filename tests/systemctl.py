"""A stand-in for systemctl, where no systemd runs: units are folders, and one that runs is a process that really holds
a simulated card. What it prints and how it fails is systemctl's (252) form; nothing else of systemd is pretended.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from testbed.driver.machine import Machine

CHECKOUT = Path(__file__).parent.parent
_PROGRAM = """#!{python}
import sys
sys.path.insert(0, {checkout!r})
from pathlib import Path
from tests.systemctl import Systemd
sys.exit(Systemd(Path({folder!r}), Path({machine!r})).main(sys.argv[1:]))
"""
_HOLD = "import sys, time; files = [open(name) for name in sys.argv[1:]]; print(flush=True); time.sleep(600)"


@dataclass(frozen=True)
class Systemd:
    """Units below `folder`, over a machine; `bin` is to be put on PATH. `calls` has every command line in order."""

    folder: Path
    machine: Path

    @property
    def bin(self) -> Path:
        return self.folder / "bin"

    def make(self) -> Systemd:
        self.bin.mkdir(parents=True)
        program = self.bin / "systemctl"
        text = _PROGRAM.format(
            python=sys.executable, checkout=str(CHECKOUT), folder=str(self.folder), machine=str(self.machine)
        )
        program.write_text(text)
        program.chmod(0o755)
        return self

    def unit(
        self, name: str, *cards: int, kind: str = "", stays: bool = False, dead: bool = False, requires: str = ""
    ) -> None:
        """A unit that runs and has cards' files open, with `kind` in one of NVML's lists, too, until it is stopped;
        `stays`: it cannot be stopped; `dead`: once stopped it does not start again. It stops with what it `requires`.
        """
        home = self.folder / name
        home.mkdir()
        (home / "requires").write_text(requires)
        (home / "cards").write_text(" ".join(map(str, cards)))
        (home / "kind").write_text(kind)
        subprocess.run([str(self.bin / "systemctl"), "start", "--", name], check=True)
        (self.folder / "calls").unlink()
        for card in cards if kind else ():
            Machine(self.machine).run(card, self.pid(name), kind)
        if stays:
            (home / "stays").touch()
        if dead:
            (home / "dead").touch()

    def pid(self, name: str) -> int:
        """Of the unit's process; 0 where it does not run."""
        path = self.folder / name / "pid"
        return int(path.read_text()) if path.exists() else 0

    def calls(self) -> list[str]:
        """What changed something, in order: `stop UNIT`, `start UNIT`."""
        log = self.folder / "calls"
        return log.read_text().splitlines() if log.exists() else []

    def queue(self, name: str, requires: str) -> None:
        """A unit that does not run, and whose start waits in the queue."""
        (self.folder / name).mkdir()
        (self.folder / name / "requires").write_text(requires)
        (self.folder / name / "queued").touch()

    def end(self) -> None:
        for path in self.folder.glob("*/pid"):
            self._stop(path.parent.name)

    def main(self, arguments: list[str]) -> int:
        verb, names = arguments[0], arguments[arguments.index("--") + 1 :]
        if verb == "show":
            print("\n\n".join(self._shown(name) for name in names))
            return 0
        with (self.folder / "calls").open("a") as log:
            log.write(" ".join([verb, *[a for a in arguments[1:] if a != "--"]]) + "\n")
        home = self.folder / names[0]
        if (home / "stays").exists() and verb == "stop":
            print(f"Job for {names[0]} canceled.", file=sys.stderr)
            return 1
        if (home / "slow").exists():
            (home / "slow").rename(home / "now")
            time.sleep(3)
        if (home / "dead").exists() and verb == "start":
            print(f"Job for {names[0]} failed because the control process exited with error code.", file=sys.stderr)
            return 1
        for other in self._required_by(names[0]) if verb == "stop" else ():
            self._stop(other)
        if not home.exists():
            print(f"Failed to {verb} {names[0]}: Unit {names[0]} not found.", file=sys.stderr)
            return 5
        (self._stop if verb == "stop" else self._start)(names[0])
        return 0

    def _shown(self, name: str) -> str:
        state = "active" if self.pid(name) else "inactive"
        load = "loaded" if (self.folder / name).exists() else "not-found"
        shown = f"Id={name}\nLoadState={load}\nActiveState={state}\nMainPID={self.pid(name)}\nControlGroup="
        job = "\nJob=7" if (self.folder / name / "queued").exists() else ""
        return f"{shown}{job}\nRequiredBy={' '.join(self._required_by(name))}\nBoundBy="

    def _required_by(self, name: str) -> list[str]:
        homes = self.folder.glob("*/requires")
        return sorted(path.parent.name for path in homes if path.read_text() == name)

    def _start(self, name: str) -> None:
        if self.pid(name):
            return
        home = self.folder / name
        cards = [int(card) for card in (home / "cards").read_text().split()]
        files = [str(self.machine / f"dev/nvidia{card}") for card in cards]
        held = subprocess.Popen(
            [sys.executable, "-c", _HOLD, *files],
            stdout=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            close_fds=True,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        assert held.stdout is not None
        held.stdout.readline()
        (home / "pid").write_text(str(held.pid))

    def _stop(self, name: str) -> None:
        pid = self.pid(name)
        if not pid:
            return
        kind = self.folder / name / "kind"
        if kind.read_text():
            Machine(self.machine).end(pid)
            kind.write_text("")
        os.kill(pid, signal.SIGKILL)
        (self.folder / name / "pid").unlink()
        while Path(f"/proc/{pid}/fd").exists() and _alive(pid):
            time.sleep(0.01)


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
