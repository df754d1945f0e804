"""Where a key of Slurm's files belongs that stands where it is not known. Any release's keys count."""

from __future__ import annotations

from functools import lru_cache

from hybridgpu.consumers.slurm.confkeys import GRES_KEYS
from hybridgpu.consumers.slurm.release import RELEASES


def belongs(key: str) -> str:
    """`Gres belongs on a NodeName line`; empty for a key that belongs nowhere."""
    found = _places().get(key.lower())
    return f"{found[0]} belongs {found[1]}" if found else ""


@lru_cache(maxsize=1)
def _places() -> dict[str, tuple[str, str]]:
    """By lower-case key: the key as it is written, and its first place in this order."""
    places: dict[str, tuple[str, str]] = {}
    for release in reversed(tuple(RELEASES.values())):
        for keys, where in (
            (release.node_keys, "on a NodeName line of slurm.conf"),
            (release.partition_keys, "on a PartitionName line of slurm.conf"),
            (release.conf_keys, "in slurm.conf, on a line of its own"),
            (GRES_KEYS, "in gres.conf"),
            (release.cgroup_keys, "in cgroup.conf"),
        ):
            for key in keys:
                places.setdefault(key.lower(), (key, where))
    return places
