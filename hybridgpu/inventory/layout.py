"""The MIG layout of a node entry: which GPU is cut into what, judged on each GPU's own model. Geometry decides."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from collections.abc import Mapping as Table
from functools import lru_cache

from hybridgpu.files.quoting import shown
from hybridgpu.files.yamltree import Mapping, Node, Scalar
from hybridgpu.inventory.indices import IndexSetError, read_indices, shown_indices, whole
from hybridgpu.inventory.report import Report
from hybridgpu.model.finding import Rule, Severity
from hybridgpu.model.geometry import Misfit, arrange
from hybridgpu.model.gpu import GpuModel, Instance

Layout = tuple[tuple[Instance, ...] | None, ...]
"""Per GPU index the instances in the order of creation, None for a GPU that stays whole."""

INDICES = Rule(
    "inventory-layout-gpu-indices",
    Severity.ERROR,
    "Each GPU is cut in one way: none twice, none left to chance.",
    "Name every GPU once: `all`, or sets as 0-3; `off` leaves a GPU whole.",
    "docs/inventory.md",
)
NO_MIG = Rule(
    "inventory-model-without-mig",
    Severity.ERROR,
    "The card cannot be cut.",
    "Choose another mode for these nodes; on a node of several models say `off` for the GPUs without MIG.",
    "NVIDIA MIG user guide, supported GPUs",
)
MISFIT = Rule(
    "inventory-layout-does-not-fit",
    Severity.ERROR,
    "The driver refuses to create the instances: there are no placements for them that do not overlap.",
    "Choose one of the layouts that `hybridgpu mig layouts MODEL` lists.",
    "NVIDIA MIG user guide, placements",
)
SINGLE = Rule(
    "inventory-mig-single-not-uniform",
    Severity.ERROR,
    "With migStrategy single the device plugin does not start unless all GPUs of a node are of one model and cut into "
    "one profile.",
    "Use migStrategy mixed, or one profile on every GPU.",
    "k8s-device-plugin internal/rm/device_map.go",
)
ALL_OFF = Rule(
    "inventory-mig-cuts-nothing",
    Severity.WARNING,
    "Mode mig without an instance is the same as mode exclusive, under a name that says otherwise.",
    "Say mode: exclusive, or give a layout.",
    "hybridgpu",
)


def read_layout(block: Node | None, models: tuple[GpuModel, ...], report: Report) -> Layout:
    """The layout of a node with these cards; empty where a mistake, which is reported, hides a part of it."""
    if not isinstance(block, Mapping) or not models:
        return ()
    cut: dict[int, tuple[Instance, ...] | None] = {}
    named: dict[int, Scalar] = {}
    complete = True
    for word, value in block.entries:
        indices = _indices(word, len(models), named, report)
        complete = complete and indices is not None
        for index in indices or ():
            named.setdefault(index, word)
        if isinstance(value, Mapping):
            # Which GPUs are meant may be unreadable: what is to be cut from them is judged all the same.
            fitting = dict(_cut(value, models, range(len(models)) if indices is None else indices, report))
            cut.update(fitting if indices else {})
        elif isinstance(value, Scalar):
            cut.update(dict.fromkeys(indices or (), None))
    if complete and len(named) < len(models):
        rest = shown_indices(set(range(len(models))) - set(named))
        report.add(INDICES, block, f"the layout leaves out GPU {rest}; the node's GPUs are {whole(len(models))}")
    if len(cut) < len(models):
        return ()
    layout = tuple(cut[index] for index in range(len(models)))
    if not any(layout):
        report.add(ALL_OFF, block, "mode mig, and every GPU is off")
    return layout


def judge_single(block: Mapping, layout: Layout, models: tuple[GpuModel, ...], report: Report) -> None:
    """Reports a layout that migStrategy single cannot have, if the block asks for single."""
    strategy = block.scalar("migStrategy")
    if strategy is None or strategy.text != "single" or not layout:
        return
    whole_gpus = [index for index, instances in enumerate(layout) if instances is None]
    profiles = list(dict.fromkeys(i.profile.name for instances in layout for i in instances or ()))
    names = list(dict.fromkeys(model.name for model in models))
    if whole_gpus:
        report.add(SINGLE, strategy, f"migStrategy single, and GPU {shown_indices(whole_gpus)} is off")
    elif len(profiles) > 1:
        report.add(SINGLE, strategy, f"migStrategy single, and the layout has {' and '.join(profiles)}")
    elif len(names) > 1:
        report.add(SINGLE, strategy, f"migStrategy single, and the node has {' and '.join(names)}")


def _indices(word: Scalar, gpus: int, named: Table[int, Scalar], report: Report) -> tuple[int, ...] | None:
    """The GPUs that a key names for the first time; None if the key cannot be read, which is reported."""
    try:
        found = tuple(range(gpus)) if word.text == "all" else read_indices(word.text, gpus)
    except IndexSetError as error:
        report.add(INDICES, word, f"layout: {error}")
        return None
    if twice := [index for index in found if index in named]:
        first = named[twice[0]]
        message = f"layout: {shown(word.text)} names GPU {shown_indices(twice)} again, after {shown(first.text)}"
        report.add(INDICES, word, message, related=((first, "the first one"),))
    return tuple(index for index in found if index not in named)


def _cut(
    value: Mapping, models: tuple[GpuModel, ...], indices: Iterable[int], report: Report
) -> Iterator[tuple[int, tuple[Instance, ...]]]:
    """Instances per GPU; each model that cannot be cut so is reported once."""
    wanted = {word.text: int(count.text) for word, count in value.entries if isinstance(count, Scalar)}
    outcomes: dict[str, tuple[Instance, ...] | None] = {}
    for index in indices:
        model = models[index]
        if model.name not in outcomes:
            outcomes[model.name] = _arranged(value, model, wanted, report)
        instances = outcomes[model.name]
        if instances is not None:
            yield index, instances


def _arranged(value: Mapping, model: GpuModel, wanted: Table[str, int], report: Report) -> tuple[Instance, ...] | None:
    if value.broken:
        return None
    outcome = _arrange(model, tuple(wanted.items()))
    if not isinstance(outcome, Misfit):
        return outcome
    unknown = next((word for word, _ in value.entries if model.profile(word.text) is None), value)
    hint = f"Did you mean {' or '.join(outcome.nearest)}?" if outcome.nearest else ""
    report.add(MISFIT if model.has_mig else NO_MIG, unknown if model.has_mig else value, outcome.reason, hint)
    return None


@lru_cache(1024)
def _arrange(model: GpuModel, wanted: tuple[tuple[str, int], ...]) -> tuple[Instance, ...] | Misfit:
    """Ten thousand entries have few layouts: each is worked out once."""
    return arrange(model, dict(wanted))
