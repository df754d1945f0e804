"""Types that are one to Slurm: it compares a 32-bit sum of their bytes, over the whole cluster.

Source: S:src/interfaces/gres.c gres_build_id; run on 22.05, 24.11, 26.05: a job asking for one is given the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from hybridgpu.consumers.slurm.cluster import SeenNode
from hybridgpu.consumers.slurm.verdict import Verdict
from hybridgpu.files.slurmlines import SlurmLine
from hybridgpu.model.finding import Place, Related, Rule, Severity
from hybridgpu.model.naming import gres_id

TYPES_COLLIDE = Rule(
    "slurm-types-collide",
    Severity.ERROR,
    "Two types have the same 32-bit id: a job asking for one is given the other, and on one node the second is lost.",
    "Give one of them a longer name, such as the model before the profile (a100_4g.20gb).",
    "S:src/interfaces/gres.c gres_build_id; srun on 22.05, 24.11, 26.05",
)

RULES = (TYPES_COLLIDE,)


def judge(seen: Mapping[int, SeenNode], gres: Sequence[SlurmLine], verdict: Verdict) -> None:
    """Find types of one GRES name, anywhere in the cluster, that differ in name and not in id."""
    first: dict[tuple[str, int], tuple[str, Place]] = {}
    for name, kind, place in _types(seen, gres):
        other, where = first.setdefault((name, gres_id(kind)), (kind, place))
        if other.lower() != kind.lower():
            message = f"types {other} and {kind} of {name} have the same id {gres_id(kind)}: to Slurm they are one type"
            verdict.note(TYPES_COLLIDE, place, message, related=(Related(where, f"{other} stands here"),))


def _types(seen: Mapping[int, SeenNode], gres: Sequence[SlurmLine]) -> Iterable[tuple[str, str, Place]]:
    told: set[tuple[str, str]] = set()
    for node in seen.values():
        for name, kind in node.spelled:
            if (name, kind) not in told:
                told.add((name, kind))
                yield name, kind, node.place
    for line in gres:
        name_pair, type_pair = line.get("name"), line.get("type")
        if name_pair and type_pair and (name_pair.value, type_pair.value) not in told:
            told.add((name_pair.value, type_pair.value))
            yield name_pair.value, type_pair.value, type_pair.place
