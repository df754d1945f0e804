"""CPU cores as Slurm counts them on a node: which ranges are whole sockets. Knows nothing of GPUs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache


@dataclass(frozen=True, slots=True)
class Sockets:
    """A node's sockets: how many, and how many cores (not threads) each has."""

    count: int
    cores: int

    @classmethod
    def of(cls, parameters: Mapping[str, str]) -> Sockets | None:
        """From NodeName keys, as slurm.conf(5) combines them; None where they do not say."""
        keys = {key.lower(): value for key, value in parameters.items()}
        try:
            sockets = int(keys.get("sockets", 0)) or int(keys.get("socketsperboard", 0)) * int(keys.get("boards", 1))
            threads = int(keys.get("threadspercore", 1))
            cores = int(keys.get("corespersocket", 0))
            if not cores and sockets:
                cores = int(keys.get("cpus", keys.get("procs", 0))) // (sockets * threads)
        except (ValueError, ZeroDivisionError):
            return None
        return cls(sockets, cores) if sockets > 0 and cores > 0 else None


def completed(parameters: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    """The NodeName keys with CoresPerSocket added where CPUs and the sockets are given and divide evenly.

    Left to itself Slurm takes one core a socket and resets CPUs to that (S:src/common/read_config.c _parse_nodename;
    slurmd -G of 22.05, 24.11 and 26.05: "Resetting CPUs").
    """
    keys = dict(parameters)
    sockets = Sockets.of(keys)
    sockets_key = next((key for key in ("Sockets", "SocketsPerBoard") if key in keys), None)
    if "CoresPerSocket" in keys or "CPUs" not in keys or sockets is None or sockets_key is None:
        return parameters
    threads = int(keys.get("ThreadsPerCore", "1"))
    if sockets.count * sockets.cores * threads != int(keys["CPUs"]):
        return parameters
    keys = {}
    for key, value in parameters:
        keys[key] = value
        if key == sockets_key:
            keys["CoresPerSocket"] = str(sockets.cores)
    return tuple(keys.items())


@lru_cache(maxsize=256)
def socket_range(cores: str, sockets: Sockets) -> str | None:
    """`cores` as one range, where it is exactly one socket or all of them; else None, and Cores= is best left out.

    A GPU may list one full socket or every core (S:src/interfaces/gres.c _check_core_range_matches_sock).
    """
    try:
        wanted = _merged(cores)
    except ValueError:
        return None
    total = sockets.count * sockets.cores
    if len(wanted) != 1:
        return None
    first, last = wanted[0]
    if (first, last) == (0, total - 1):
        return f"0-{last}"
    if first % sockets.cores or last - first + 1 != sockets.cores or last >= total:
        return None
    return f"{first}-{last}" if sockets.cores > 1 else str(first)


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
