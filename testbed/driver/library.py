"""The library itself: built by make, loaded into this process, and its controls called. Knows no NVML beyond errors.

pynvml asks the loader for `libnvidia-ml.so.1` by name: once `load` was called it gets this one, and no other.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

HERE = Path(__file__).parent
LIBRARY = HERE / "build" / "libnvidia-ml.so.1"
ROOT, MACHINE, FAULT = "GPUSIM_ROOT", "GPUSIM_MACHINE", "GPUSIM_FAULT"
DRIVER_NOT_LOADED = 9


class NvmlError(Exception):
    """An answer other than success, with its number and NVML's text for it."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


@cache
def build() -> Path:
    """The library, brought up to date by make; once a process. Raises CalledProcessError with the compiler's words."""
    with (HERE / "Makefile").open(encoding="utf-8") as makefile:
        fcntl.flock(makefile, fcntl.LOCK_EX)
        subprocess.run(
            ["make", "--silent", "-C", str(HERE), f"PYTHON={sys.executable}"],
            check=True,
            stdout=sys.stderr,
            env={name: value for name, value in os.environ.items() if not name.startswith("MAKE")},
        )
    return LIBRARY


@cache
def load() -> ctypes.CDLL:
    """The library in this process, built where it is not."""
    library = ctypes.CDLL(str(build()), mode=ctypes.RTLD_GLOBAL)
    library.nvmlErrorString.restype = ctypes.c_char_p
    library.gpusim_show.restype = ctypes.c_void_p
    library.gpusim_free.argtypes = [ctypes.c_void_p]
    library.gpusim_run.argtypes = [ctypes.c_uint] * 3 + [ctypes.c_int] * 2 + [ctypes.c_uint64, ctypes.c_uint]
    library.gpusim_break.argtypes = [ctypes.c_uint, ctypes.c_char_p]
    library.gpusim_faults.argtypes = [ctypes.c_char_p]
    return library


def check(code: int) -> None:
    """Raise NvmlError unless a call answered success."""
    if code != 0:
        raise NvmlError(code, load().nvmlErrorString(code).decode())


@contextmanager
def over(root: Path, machine: Path | None = None) -> Iterator[ctypes.CDLL]:
    """The library, initialised over the machine below `root`; made from the description `machine` where there is none.

    Raises NvmlError where it cannot be: 9 where there is no machine, or the description is none.
    """
    library = load()
    before = {name: os.environ.get(name) for name in (ROOT, MACHINE)}
    os.environ[ROOT] = str(root)
    if machine is None:
        os.environ.pop(MACHINE, None)
    else:
        os.environ[MACHINE] = str(machine)
    try:
        check(library.nvmlInit_v2())
        try:
            yield library
        finally:
            library.nvmlShutdown()
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
