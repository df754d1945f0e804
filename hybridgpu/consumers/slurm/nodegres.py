"""GresTypes and a node's Gres= in slurm.conf: which names Slurm knows, in which order, and how many it expects.

Slurm's own reading is odd (a type that begins with a digit is a count, a bare name ends the list) and is followed to
the letter. Source: S:src/interfaces/gres.c gres_init, gres_name_filter, _get_gres_cnt, gres_add_type.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from hybridgpu.consumers.slurm.punctuation import PUNCTUATION, instead, mended
from hybridgpu.consumers.slurm.values import integer, multiplier
from hybridgpu.consumers.slurm.verdict import Verdict
from hybridgpu.model.finding import Place, Rule, Severity
from hybridgpu.model.naming import gres_id

SHARED = ("mps", "shard")
"""The GRES that share GPUs (S:gres.c gres_is_shared_name)."""

SHARED_WITHOUT_GPU = Rule(
    "slurm-shared-without-gpu",
    Severity.ERROR,
    "mps and shard need gpu in GresTypes: every daemon stops with a fatal error.",
    "Write GresTypes=gpu,mps,shard with what you use.",
    "S:src/interfaces/gres.c gres_init",
)
NAME_TWICE = Rule(
    "slurm-grestypes-name-twice",
    Severity.WARNING,
    "GresTypes names one GRES twice: Slurm ignores the second.",
    "Name it once.",
    "S:src/interfaces/gres.c gres_init",
)
NAMES_COLLIDE = Rule(
    "slurm-gres-names-collide",
    Severity.ERROR,
    "Two names of GresTypes have the same 32-bit id: every daemon stops with a fatal error.",
    "Rename one of them.",
    "S:src/interfaces/gres.c gres_init, gres_build_id",
)
NOT_IN_TYPES = Rule(
    "slurm-gres-not-in-grestypes",
    Severity.ERROR,
    "The GRES is not in GresTypes: Slurm drops it, and no job can ask for it.",
    "Add the name to GresTypes in slurm.conf, the same on every node.",
    "S:src/interfaces/gres.c gres_name_filter, _parse_gres_config",
)
GRES_UNREADABLE = Rule(
    "slurm-gres-unreadable",
    Severity.ERROR,
    "What stands behind the last colon begins with a digit, so Slurm takes it for a count, fails to read it, and "
    "ignores this entry and all that follow it for the name.",
    "Always write a count: gpu:TYPE:N.",
    "S:src/interfaces/gres.c _get_gres_cnt",
)
TYPE_AS_COUNT = Rule(
    "slurm-type-taken-for-count",
    Severity.ERROR,
    "A type that begins with a digit and has no count behind it is read as the count.",
    "Always write a count: gpu:TYPE:N.",
    "S:src/interfaces/gres.c _get_gres_cnt; slurmd -G on 22.05",
)
MIXED_TYPES = Rule(
    "slurm-typed-and-untyped",
    Severity.ERROR,
    "Some entries of one name have a type and others do not: slurmd stops with a fatal error.",
    "Give every entry of the name a type, or none.",
    "S:src/interfaces/gres.c _foreach_slurm_conf; slurmd -G on 22.05, 24.11, 26.05",
)
BARE_NAME_LAST = Rule(
    "slurm-bare-gres-ends-list",
    Severity.ERROR,
    "A name without a count stands for one and ends the reading: other entries of the same name are lost.",
    "Write every entry with its count.",
    "S:src/interfaces/gres.c _get_gres_cnt",
)

RULES = (
    *(SHARED_WITHOUT_GPU, NAME_TWICE, NAMES_COLLIDE, NOT_IN_TYPES, GRES_UNREADABLE, TYPE_AS_COUNT, MIXED_TYPES),
    *(BARE_NAME_LAST,),
)

_COUNT = re.compile(r"([0-9]+)(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What slurm.conf says a node has of one GRES name. `types` in the order written, one entry an id; () untyped."""

    name: str
    count: int
    types: tuple[tuple[str, int], ...] = ()


def contexts(gres_types: str, place: Place | None, verdict: Verdict) -> tuple[str, ...]:
    """The names of GresTypes in the order slurmd works in: mps and shard that stand before gpu go to the end."""
    names = [name for name in gres_types.split(",") if name]
    first_gpu = names.index("gpu") if "gpu" in names else len(names)
    late = [name for i, name in enumerate(names) if name in SHARED and i < first_gpu]
    if late and "gpu" not in names:
        verdict.die(SHARED_WITHOUT_GPU, place, f"GresTypes={gres_types} has {late[0]} but not gpu")
    ordered = [name for i, name in enumerate(names) if not (name in SHARED and i < first_gpu)] + late
    unique = list(dict.fromkeys(ordered))
    for name in unique:
        if ordered.count(name) > 1:
            verdict.note(NAME_TWICE, place, f"GresTypes={gres_types} names {name} twice")
    ids: dict[int, str] = {}
    for name in unique:
        other = ids.setdefault(gres_id(name), name)
        if other != name:
            verdict.die(NAMES_COLLIDE, place, f"GresTypes: {other} and {name} have the same id {gres_id(name)}")
    return tuple(unique)


def wanted(gres: str, names: tuple[str, ...], place: Place | None, verdict: Verdict) -> Mapping[str, Wanted]:
    """Read a node's Gres= for these context names; only names with a count above 0 are in the result."""
    tokens = [token for token in gres.split(",") if token]
    mend = mended(gres, names)
    if mend and mend.wrong:
        verdict.note(PUNCTUATION, place, f"Gres={gres}: {mend.wrong}", f"write Gres={mend.text}")
    for token in tokens:
        name = token.partition(":")[0]
        if name not in names:
            allowed = ",".join(names) or "nothing"
            message = f"Gres={token}: {name} is not in GresTypes (which has {allowed})"
            hint = instead(name, names)
            if mend and (hint or name.lower() == "gres"):
                hint = f"{hint} Write Gres={mend.text}".strip()
            verdict.note(NOT_IN_TYPES, place, message, hint)
    result: dict[str, Wanted] = {}
    for name in names:
        want = _wanted_of(name, tokens, place, verdict)
        if want.count or want.types:
            result[name] = want
    return result


def _wanted_of(name: str, tokens: list[str], place: Place | None, verdict: Verdict) -> Wanted:
    total, types = 0, list[tuple[str, int]]()
    for at, token in enumerate(tokens):
        if token == name:
            if total or any(t == name or t.startswith(name + ":") for t in tokens[at + 1 :]):
                verdict.note(BARE_NAME_LAST, place, f"Gres: '{name}' without a count hides the other entries of {name}")
            total = 1
            break
        if not token.startswith(name + ":"):
            continue
        read = _entry(token, place, verdict)
        if read is None:
            break
        count, words = read
        total += count
        for word in words:
            if word.lower() != "no_consume":
                _add_type(types, word, count)
    if types and total > sum(count for _, count in types):
        verdict.die(MIXED_TYPES, place, f"Gres: some {name} entries have a type while others do not")
    return Wanted(name, total, tuple(types))


def _entry(token: str, place: Place | None, verdict: Verdict) -> tuple[int, list[str]] | None:
    """The count of one `name:...` entry and the words between; None where Slurm gives up on the name."""
    body = token.rpartition("(")[0] if "(" in token else token
    head, _, last = body.rpartition(":")
    found = _COUNT.match(last)
    if not found:
        return 1, [word for word in body.split(":")[1:] if word]
    factor = multiplier(found[2])
    if factor is None:
        verdict.note(GRES_UNREADABLE, place, f"Gres={token}: '{last}' is taken for a count and cannot be read as one")
        return None
    if found[2]:
        _judge_suffix(token, found, factor, place, verdict)
    return integer(found[1]) * factor, [word for word in head.split(":")[1:] if word]


def _judge_suffix(token: str, found: re.Match[str], factor: int, place: Place | None, verdict: Verdict) -> None:
    """`gpu:1g`: a count of GPUs with a suffix is a type that was misread; mps and shard may well count in thousands."""
    if token.startswith("gpu:") and token.count(":") == 1:
        count = integer(found[1]) * factor
        verdict.note(TYPE_AS_COUNT, place, f"Gres={token} is read as a count of {count} GPUs without a type")


def _add_type(types: list[tuple[str, int]], word: str, count: int) -> None:
    """Types of one id are one type to Slurm, under the first name."""
    for at, (name, had) in enumerate(types):
        if gres_id(name) == gres_id(word):
            types[at] = (name, had + count)
            return
    types.append((word, count))
