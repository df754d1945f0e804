"""Where the hooks find things on this node, and how long they wait: /etc/hybridgpu/hooks.conf, `KEY=VALUE` lines.

Read, never sourced: no value reaches a shell.
"""

from __future__ import annotations

from hybridgpu.mps.trouble import Trouble

HOOKS_CONF = "/etc/hybridgpu/hooks.conf"
FOR_THE_SHELL = ("PYTHON",)
"""Keys that slurm/hybridgpu-hook reads before there is a Python; it would not know one with a blank beside it."""


class Settings:
    """Paths, and time limits in seconds. Each but `run` is a key of the file, in upper case there.

    `run` is one for all, for the scripts in slurm/ know no other.
    """

    __slots__ = (
        "control",
        "kill_seconds",
        "lock_seconds",
        "log",
        "nvml",
        "quit_seconds",
        "run",
        "start_seconds",
        "whole_seconds",
    )

    def __init__(
        self,
        run: str = "/run/hybridgpu",
        control: str = "/usr/bin/nvidia-cuda-mps-control",
        nvml: str = "libnvidia-ml.so.1",
        log: str = "/var/log/hybridgpu/hooks.log",
        start_seconds: float = 10.0,
        quit_seconds: float = 10.0,
        kill_seconds: float = 5.0,
        lock_seconds: float = 20.0,
        whole_seconds: float = 60.0,
    ) -> None:
        self.run, self.control, self.nvml, self.log = run, control, nvml, log
        self.start_seconds, self.quit_seconds, self.kill_seconds = start_seconds, quit_seconds, kill_seconds
        self.lock_seconds, self.whole_seconds = lock_seconds, whole_seconds

    @property
    def device_map(self) -> str:
        """The DeviceMap (docs/devicemap.md)."""
        return f"{self.run}/devices.json"

    @property
    def jobs(self) -> str:
        """The folder with one record a job."""
        return f"{self.run}/jobs"

    @property
    def daemons(self) -> str:
        """The folder with one folder a daemon."""
        return f"{self.run}/mps"


_LEAST, _MOST = 1.0, 3600.0
"""Seconds. Below them no daemon starts on a busy node, and every share would fail."""

_QUOTES = ("'", '"')
KEYS = tuple(name for name in Settings.__slots__ if name != "run")


def read(path: str = HOOKS_CONF) -> Settings:
    """The file's settings over the defaults; Trouble names every line that cannot be taken. No file: the defaults."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            lines = file.read(65536).splitlines()
    except FileNotFoundError:
        return Settings()
    except OSError as error:
        raise Trouble(f"{path}: {error.strerror}") from None
    settings = Settings()
    problems: list[str] = []
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if text and not text.startswith("#"):
            key, equals, value = (part.strip() for part in text.partition("="))
            problem: str | None
            if value[:1] in _QUOTES:
                problem = f"{key} is {value}; write it without quotes"
            elif key in FOR_THE_SHELL:
                problem = None if line.startswith(f"{key}=/") else f"write it as {key}=/PATH, without blanks"
            else:
                problem = _take(settings, key, equals, value)
            problems += [f"{path}:{number}: {problem}"] if problem else []
    if problems:
        raise Trouble("; ".join(problems))
    return settings


def _take(settings: Settings, key: str, equals: str, value: str) -> str | None:
    """Sets one key, or says why not."""
    name = key.lower()
    if not equals or name not in KEYS or key != key.upper():
        allowed = ", ".join(sorted((*FOR_THE_SHELL, *(name.upper() for name in KEYS))))
        return f"{key!r} is no key; allowed: {allowed}"
    if not name.endswith("_seconds"):
        if not value or (name != "nvml" and not value.startswith("/")):
            return f"{key} is {value!r}; allowed: an absolute path"
        setattr(settings, name, value.rstrip("/"))
        return None
    try:
        seconds = float(value)
    except ValueError:
        seconds = 0.0
    if not _LEAST <= seconds <= _MOST:
        return f"{key} is {value!r}; allowed: seconds from {_LEAST:g} to {_MOST:g}"
    setattr(settings, name, seconds)
    return None
