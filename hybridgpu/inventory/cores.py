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


@lru_cache(maxsize=256)
def socket_range(cores: str, sockets: Sockets) -> str | None:
    """`cores` as one range, where it is exactly one socket or all of them; else None, and Cores= is best left out.

    A GPU may list one full socket or every core (S:src/interfaces/gres.c _check_core_range_matches_sock).
    """
    wanted: set[int] = set()
    try:
        for part in cores.split(","):
            first, _, last = part.partition("-")
            wanted.update(range(int(first), int(last or first) + 1))
    except ValueError:
        return None
    total = sockets.count * sockets.cores
    if wanted == set(range(total)):
        return f"0-{total - 1}"
    first_core = min(wanted, default=0)
    whole = set(range(first_core, first_core + sockets.cores))
    if first_core % sockets.cores or wanted != whole or first_core + sockets.cores > total:
        return None
    return f"{first_core}-{first_core + sockets.cores - 1}" if sockets.cores > 1 else str(first_core)
