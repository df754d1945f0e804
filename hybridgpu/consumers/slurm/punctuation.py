"""Gres= as it was meant where it is put together wrongly: colons join an entry's parts, commas the entries."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from hybridgpu.consumers.slurm.values import is_count
from hybridgpu.model.finding import Rule, Severity
from hybridgpu.model.spelling import nearest

PUNCTUATION = Rule(
    "slurm-gres-punctuation",
    Severity.ERROR,
    "Slurm reads something else than what is meant: parts of the entry become its type, or a GRES that is not there.",
    "Write NAME:TYPE:COUNT, with commas between entries and no blank.",
    "S:src/interfaces/gres.c _get_gres_cnt, gres_name_filter; slurmd -G on 22.05, 24.11, 26.05",
)

RULES = (PUNCTUATION,)

KNOWN = ("gpu", "mps", "shard", "nic")
"""Names that mean something to Slurm: GresTypes is what is wrong where it has none of them."""


@dataclass(frozen=True, slots=True)
class Mended:
    """What a Gres= was meant to be. `wrong` says what is put together wrongly; empty where only names are."""

    text: str
    wrong: str


def mended(gres: str, names: Collection[str]) -> Mended | None:
    """None where nothing is wrong that can be mended. `names` are those of GresTypes."""
    wrong: list[str] = []
    text = gres
    if ";" in text:
        wrong.append("entries are joined by ',', not ';'")
        text = text.replace(";", ",")
    if re.search(r"\s", text):
        wrong.append("no blanks stand between entries")
        text = re.sub(r"\s+", "", text)
    if re.search(r"=(?=[^,]*(?:,|\Z))", text):
        wrong.append("a count stands behind ':', not '='")
        text = text.replace("=", ":")
    entries = [_in_order(entry, wrong) for entry in _entries(text, wrong) if entry]
    right = ",".join(_named(entry, names) for entry in entries)
    return Mended(right, "; ".join(wrong)) if wrong or right != ",".join(entries) else None


def _entries(text: str, wrong: list[str]) -> Sequence[str]:
    """The entries; a count that stands alone goes to the one before it."""
    found: list[str] = []
    for entry in text.split(","):
        if found and is_count(entry) and ":" in found[-1] and not is_count(found[-1].rpartition(":")[2]):
            wrong.append("a count stands behind ':', not ','")
            found[-1] += f":{entry}"
        else:
            found.append(entry)
    return found


def _in_order(entry: str, wrong: list[str]) -> str:
    """`gpu:4:a100` is `gpu:a100:4`."""
    body, bracket, sockets = entry.partition("(")
    words = body.split(":")
    counts = [word for word in words[1:] if is_count(word)]
    if len(counts) != 1 or is_count(words[-1]) or words[-1].lower() == "no_consume" or not words[-1]:
        return entry
    wrong.append("the count comes last")
    words.remove(counts[0])
    return ":".join((*words, counts[0])) + bracket + sockets


def _named(entry: str, names: Collection[str]) -> str:
    name, colon, rest = entry.partition(":")
    if name.lower() == "gres" and colon and "gres" not in names:
        name, colon, rest = rest.partition(":")
    if name in names:
        return entry if entry.startswith(name) else f"{name}{colon}{rest}"
    return f"{meant(name, names) or name}{colon}{rest}"


def meant(name: str, names: Collection[str]) -> str | None:
    """The name of GresTypes that a name stands for which is none; not where GresTypes itself is what is wrong."""
    bare = name.lower().removeprefix("gres/")
    if bare in names:
        return bare
    return None if bare in KNOWN else nearest(bare, names)


def instead(name: str, names: Collection[str]) -> str:
    """A hint about a name that GresTypes has not: the name that is meant, or the word there that is misspelt."""
    if near := meant(name, names):
        return f"did you mean {near}?"
    odd = nearest(name, [other for other in names if other not in KNOWN]) if name in KNOWN else None
    return f"did you mean {name} in GresTypes, where {odd} stands?" if odd else ""
