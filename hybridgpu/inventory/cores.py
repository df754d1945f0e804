"""A node's CPU cores as the inventory gives them: CoresPerSocket filled in, and the ranges that Slurm takes for a GPU.

What Slurm makes of the keys is asked from consumers. Knows nothing of GPUs.
"""

from __future__ import annotations

import re
from functools import lru_cache

from hybridgpu.consumers.slurm.hardware import Hardware, hardware_of

Parameters = tuple[tuple[str, str], ...]


@lru_cache(maxsize=256)
def hardware_in(parameters: Parameters) -> Hardware:
    """Sockets, cores and threads of NodeName keys."""
    return hardware_of({key.lower(): value for key, value in parameters})


def completed(parameters: Parameters) -> Parameters:
    """The NodeName keys with CoresPerSocket added where CPUs and the sockets are given and divide evenly.

    Left to itself Slurm takes one core a socket and resets CPUs to that (slurmd -G of 22.05, 24.11 and 26.05:
    "Resetting CPUs").
    """
    keys = {key.lower(): value for key, value in parameters}
    after = next((key for key in ("sockets", "socketsperboard") if key in keys), None)
    if "corespersocket" in keys or "cpus" not in keys or after is None or not re.fullmatch(r"[0-9]{1,9}", keys["cpus"]):
        return parameters
    given = hardware_in(parameters)
    cores, rest = divmod(int(keys["cpus"]), given.sockets * given.threads)
    if rest or not cores:
        return parameters
    written: list[tuple[str, str]] = []
    for key, value in parameters:
        written.append((key, value))
        if key.lower() == after:
            written.append(("CoresPerSocket", str(cores)))
    return tuple(written)


@lru_cache(maxsize=256)
def socket_range(cores: str, hardware: Hardware) -> str | None:
    """`cores` as one range, where it is exactly one socket or all of them; else None, and Cores= is best left out."""
    try:
        wanted = _merged(cores)
    except ValueError:
        return None
    if len(wanted) != 1 or not hardware.whole_socket(*wanted[0]):
        return None
    first, last = wanted[0]
    return f"{first}-{last}" if last > first else str(first)


def _merged(cores: str) -> list[tuple[int, int]]:
    """The core ranges of a text, ascending, those that touch made one. Raises ValueError where it holds none."""
    parts = [part.partition("-") for part in cores.split(",")]
    merged: list[tuple[int, int]] = []
    for first, last in sorted((int(low), int(high or low)) for low, _, high in parts):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(merged[-1][1], last))
        else:
            merged.append((first, last))
    return merged
