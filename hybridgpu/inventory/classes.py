"""Node classes: which GPUs a kind of node has, and what Slurm is told about it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hybridgpu.consumers.slurm.release import RELEASES, Release, nearest_releases, release
from hybridgpu.consumers.slurm.values import is_count
from hybridgpu.files.quoting import shown
from hybridgpu.files.yamltree import Mapping, Scalar
from hybridgpu.inventory.entries import NodeClass
from hybridgpu.inventory.nodekeys import OUR_GRES, NodeKeys, read_keys
from hybridgpu.inventory.report import Report
from hybridgpu.inventory.schema import MOST_GPUS
from hybridgpu.model.catalogue import NotFound, find
from hybridgpu.model.finding import Rule, Severity
from hybridgpu.model.gpu import GpuModel

MODEL = Rule(
    "inventory-unknown-model",
    Severity.ERROR,
    "What a GPU can be cut into, and what Slurm calls it, is known by its model.",
    "Name the model as nvidia-smi -L does, or by its PCI id; `hybridgpu mig profiles` lists them.",
    "hybridgpu/model/catalogue.toml",
)
GPUS = Rule(
    "inventory-gpus-unclear",
    Severity.ERROR,
    "Which GPUs a node of this class has is said in no way, or in two.",
    "Write `model: M` and `gpus: 8`, or `gpus: [{model: M, count: 4}, ...]` without `model`.",
    "docs/inventory.md",
)
TYPE_OF_TWO = Rule(
    "inventory-type-of-two-models",
    Severity.ERROR,
    "One Slurm type would stand for two models on one node, and jobs could not tell them apart.",
    "Leave `type` out, so that each model has its own.",
    "hybridgpu",
)
TYPE_IS_A_WORD = Rule(
    "inventory-type-no-consume",
    Severity.ERROR,
    "Slurm takes no_consume for a flag of the GRES: its GPUs have no type, and are never used up.",
    "Choose another name, or leave `type` out.",
    "S:src/interfaces/gres.c _get_gres_cnt; slurm.conf(5) Gres",
)
TYPE_LIKE_ANOTHER = Rule(
    "inventory-type-like-a-count",
    Severity.WARNING,
    "Who asks for the type without a count (--gres=gpu:TYPE) asks for something else.",
    "Choose a name that begins with a letter and is no GRES, or leave `type` out.",
    "S:src/interfaces/gres.c _get_gres_cnt; slurmd -G on 22.05",
)
RELEASE = Rule(
    "inventory-unknown-release",
    Severity.ERROR,
    "What may be rendered depends on the Slurm release, and nothing is known of this one.",
    "Give the release that `slurmd -V` prints, in quotes.",
    "hybridgpu/consumers/slurm/release.py",
)


@dataclass(frozen=True, slots=True)
class ReadClass:
    """A class and what an entry needs of it besides. `complete` is False where a mistake hides its GPUs."""

    entry: NodeClass
    keys: NodeKeys
    release: Release
    complete: bool


def read_class(
    word: Scalar, block: Mapping, default: Release, gres_types: tuple[str, ...], report: Report
) -> ReadClass:
    """A class as far as it is right; the rest is reported. `default` is the release where the class names none."""
    gpus = tuple(_gpus(word, block, report))
    kind = block.scalar("type")
    if kind and len({model.name for model in gpus}) > 1:
        report.add(
            TYPE_OF_TWO, kind, f"type {shown(kind.text)} for {' and '.join(dict.fromkeys(m.name for m in gpus))}"
        )
    if kind:
        _judge_type(kind, report)
    version = block.scalar("slurmVersion")
    own = read_release(version, report) if version else None
    keys = read_keys(block.mapping("slurm"), own or default, gres_types, report)
    entry = NodeClass(
        name=word.text,
        gpus=gpus,
        type=kind.text if kind else None,
        slurm_version=own.major if own else None,
        slurm=keys.parameters,
        place=report.place(word),
    )
    return ReadClass(entry, keys, own or default, bool(gpus))


def read_release(version: Scalar, report: Report) -> Release | None:
    """The release that a version names; an unknown one is reported."""
    found = release(version.text)
    if found is None:
        known = tuple(RELEASES)
        message = f"Slurm {shown(version.text)} is not known; allowed: {', '.join(known)}"
        report.add(RELEASE, version, message, _instead(version.text, known))
    return found


def _instead(version: str, known: tuple[str, ...]) -> str:
    around = nearest_releases(version)
    if len(around) == 2:
        return f"The nearest that are known are {around[0]} and {around[1]}."
    if around and around[0] in (known[0], known[-1]) and not version.startswith(around[0][:2]):
        return f"The {'oldest' if around[0] == known[0] else 'newest'} known is {around[0]}."
    return f"Did you mean {around[0]}?" if around else ""


def _judge_type(kind: Scalar, report: Report) -> None:
    """Reports a type that Slurm, or those who ask for it, take for something else."""
    lower = kind.text.lower()
    if lower == "no_consume":
        report.add(TYPE_IS_A_WORD, kind, f"type {shown(kind.text)} is a word of Slurm's own")
    elif lower in OUR_GRES:
        report.add(TYPE_LIKE_ANOTHER, kind, f"type {shown(kind.text)} is the name of a GRES, not of a kind of GPU")
    elif is_count(kind.text):
        message = f"type {shown(kind.text)} is a number to Slurm: --gres=gpu:{kind.text} asks for so many GPUs"
        report.add(TYPE_LIKE_ANOTHER, kind, message, f"Begin it with a letter, as rtx{kind.text}.")


def _gpus(word: Scalar, block: Mapping, report: Report) -> Iterator[GpuModel]:
    """One model per GPU index; none at all where a mistake makes the number unclear."""
    model, gpus = block.scalar("model"), block.get("gpus")
    if isinstance(gpus, Scalar):
        if model:
            found = _model(model, report)
            yield from (found,) * int(gpus.text) if found else ()
        elif block.get("model") is None:
            report.add(GPUS, word, f"class {shown(word.text)} has a number of gpus and no model", "Add `model`.")
        return
    parts = block.items("gpus")
    if model and parts:
        report.add(GPUS, model, "model stands beside a gpus list, which names the models itself", "Remove `model`.")
    every: list[GpuModel] = []
    for part in parts:
        name, count = (part.scalar("model"), part.scalar("count")) if isinstance(part, Mapping) else (None, None)
        found = _model(name, report) if name else None
        every += [found] * int(count.text) if found and count else []
        parts = parts if found and count else ()
    if len(every) > MOST_GPUS and gpus is not None:
        report.add(GPUS, gpus, f"the list has {len(every)} GPUs; allowed: 1 to {MOST_GPUS}", "Mend the counts.")
    elif parts:
        yield from every


def _model(word: Scalar, report: Report) -> GpuModel | None:
    found = find(word.text)
    if isinstance(found, NotFound):
        report.add(MODEL, word, str(found), found.hint)
        return None
    return found
