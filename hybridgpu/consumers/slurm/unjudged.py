"""Which rules rest on something that does not stand in the files, and so are not judged where parts are not given.

What is not written is a mistake only where it is known to be written nowhere: a GresTypes, a PrologFlags or a device
file may stand in a part that we have not seen.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from hybridgpu.consumers.slurm import cluster, detect, gresconf, merge, nodegres, registration, shares
from hybridgpu.consumers.slurm.confkeys import COMMON
from hybridgpu.model.spelling import is_slip

if TYPE_CHECKING:
    from hybridgpu.consumers.slurm.conf import SlurmFiles
    from hybridgpu.model.finding import Rule

_WITHOUT_KEY: Mapping[str, frozenset[Rule]] = {
    "GresTypes": frozenset((nodegres.NOT_IN_TYPES, nodegres.SHARED_WITHOUT_GPU, nodegres.NAMES_COLLIDE)),
    "SelectType": frozenset((cluster.NEEDS_CONS_TRES,)),
    "AccountingStorageType": frozenset((cluster.TRES_WITHOUT_DBD,)),
    "PrologFlags": frozenset((cluster.NEEDS_CONTAIN, cluster.MPS_PROLOG_LATE)),
}
"""The rules that rest on a key of slurm.conf not being set."""

_OF_NODE_LINES = frozenset((gresconf.CORES_INVALID, merge.NOT_CONFIGURED, registration.NODE_INVALID))
"""Those that rest on what a NodeName line does not say: it may be said by a NodeName=DEFAULT elsewhere."""

_OF_GRES_CONF = frozenset(
    (
        *(merge.GPU_WITHOUT_FILE, merge.FEWER_THAN_CONFIGURED, merge.COUNTS_DIFFER, registration.NODE_INVALID),
        *(shares.SHARED_NO_GPU, shares.SHARED_TWO_KINDS, shares.SHARES_DISCARDED, detect.AUTODETECT_BLIND),
        *(detect.AUTODETECT_ASSUMED, detect.NOT_DETECTED),
    )
)
"""Those that rest on a record of gres.conf not being there."""


def unjudged(files: SlurmFiles) -> frozenset[Rule]:
    """The rules that these files, as far as they are given, leave open."""
    rules: set[Rule] = set()
    if not files.complete:
        rules |= _OF_NODE_LINES
    for key, resting in _WITHOUT_KEY.items():
        if left_open(files, key):
            rules |= resting
    if not files.gres_complete:
        rules |= _OF_GRES_CONF
    return frozenset(rules)


def left_open(files: SlurmFiles, key: str) -> bool:
    """Whether it is not known that a key of slurm.conf is not set: a part is not given, or a misspelt key means it."""
    if files.setting(key) is not None:
        return False
    known = {other.lower() for other in COMMON}
    return not files.complete or any(is_slip(other, key) for other in files.settings if other not in known)
