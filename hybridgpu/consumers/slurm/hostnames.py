"""By which names the nodes of a NodeName line are known outside of Slurm: for pairing them with what another names.

Names only: an address tells nothing without asking the network.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from hybridgpu.consumers.slurm.conf import NodeRecord
from hybridgpu.consumers.slurm.hostlist import BadHostlist, expand
from hybridgpu.consumers.slurm.nodeline import node_names
from hybridgpu.consumers.slurm.release import Release

_HOST = re.compile(r"[A-Za-z][A-Za-z0-9.-]*|[A-Za-z0-9-]*[A-Za-z][A-Za-z0-9.-]*")


def host_names(record: NodeRecord, release: Release) -> Iterator[tuple[str, ...]]:
    """Of each node of the line, in its order: NodeName, then NodeHostname and NodeAddr where they are names."""
    names = node_names(record, release)
    others = [_paired(record, key, len(names), release) for key in ("nodehostname", "nodeaddr")]
    for position, name in enumerate(names):
        yield tuple(dict.fromkeys((name, *(values[position] for values in others if values))))


def _paired(record: NodeRecord, key: str, count: int, release: Release) -> tuple[str, ...]:
    """The host names that a key gives the nodes of the line, one each; () where it gives none, or addresses."""
    try:
        values = expand(record.text(key) or "", release.hostlist_suffix)
    except BadHostlist:
        return ()
    return values if len(values) == count and all(_HOST.fullmatch(value) for value in values) else ()
