"""The order of a node's GPUs to Slurm against that of the devices, where no cgroup hides the others from a job.

Without confinement a job's CUDA_VISIBLE_DEVICES holds positions in Slurm's list, and CUDA counts the cards of the node.
Source: S:src/interfaces/gres.c _merge_gres2 (positions); gres.shtml; srun without ConstrainDevices.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from hybridgpu.consumers.slurm.conf import SlurmFiles
from hybridgpu.consumers.slurm.gresconf import Record
from hybridgpu.consumers.slurm.includes import INCLUDE_NOT_GIVEN
from hybridgpu.consumers.slurm.nodegres import Wanted
from hybridgpu.consumers.slurm.plugins import task_plugins
from hybridgpu.consumers.slurm.release import Release
from hybridgpu.consumers.slurm.values import flag
from hybridgpu.consumers.slurm.verdict import Verdict
from hybridgpu.model.finding import Place, Related, Rule, Severity

TYPES_OUT_OF_ORDER = Rule(
    "slurm-types-out-of-device-order",
    Severity.ERROR,
    "Slurm numbers GPUs in the order of Gres=, CUDA by device, and no cgroup hides the others: a job that asks for one "
    "type is given a card of another.",
    "Order Gres= by the lowest device of each type, or confine devices: ConstrainDevices=yes and task/cgroup.",
    "S:src/interfaces/gres.c _merge_gres2; gres.shtml; srun without ConstrainDevices on 22.05, 24.11, 26.05",
)

RULES = (TYPES_OUT_OF_ORDER,)

_CARD = re.compile(r"/dev/nvidia([0-9]{1,6})")


def unconfined(files: SlurmFiles, release: Release) -> bool:
    """Whether it is known that jobs see every device: task/cgroup is not there, or ConstrainDevices is off."""
    tasks = task_plugins(files, release)
    if tasks is None and not files.complete:
        return False
    if "task/cgroup" not in (tasks or ()):
        return True
    if files.cgroup is None:
        return files.container is None and files.container_known and files.whole
    if any(finding.rule is INCLUDE_NOT_GIVEN for finding in files.cgroup_findings):
        return False
    constrain = files.cgroup.get("constraindevices", (None,))[-1]
    return constrain is None or flag(constrain.value) is not True


def judge(want: Wanted | None, records: Sequence[Record], place: Place, verdict: Verdict) -> None:
    """The gpu records of a node on which jobs see every device; with instances among them there are no positions."""
    mine = [record for record in records if record.name == "gpu" and record.count]
    if want is None or len(want.types) < 2 or any(record.multiple for record in mine):
        return
    cards = [(int(found[1]), r) for r in mine for file in r.files if (found := _CARD.fullmatch(file))]
    if len(cards) != sum(record.count for record in mine):
        return
    ordered = sorted(cards, key=lambda card: card[0])
    wrong = next(
        (at for at, (mine, right) in enumerate(zip(cards, ordered, strict=True)) if mine[1].type != right[1].type), None
    )
    if wrong is None:
        return
    counts = dict(want.types)
    types = list(dict.fromkeys(record.type for _, record in ordered if record.type in counts))
    minor, other = ordered[wrong][0], ordered[wrong][1]
    message = (
        f"Gres= makes {cards[wrong][1].type} number {wrong}, and that is /dev/nvidia{minor}, of type {other.type}: "
        f"jobs of {cards[wrong][1].type} run on it, since devices are not confined"
    )
    mended = [card[1].type for kind in types for card in ordered if card[1].type == kind]
    hint = "write Gres=" + ",".join(f"gpu:{kind}:{counts[kind]}" for kind in types if kind)
    if mended != [card[1].type for card in ordered]:
        hint = "the types' devices are mixed: write ConstrainDevices=yes in cgroup.conf and TaskPlugin=task/cgroup"
    related = [Related(other.place, "the device stands here")] if other.place else []
    verdict.note(TYPES_OUT_OF_ORDER, place, message, hint, related)
