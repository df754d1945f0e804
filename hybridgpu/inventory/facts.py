"""Facts files: what a node's driver reported, read fast where all is well, with line and column where it is not.

Ten thousand of them are read in one run, so the text goes through `json` and a table of fields; only a file with a
mistake is walked once more, for its places. Also here: whether facts agree with the class of their node.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Any, NoReturn

from hybridgpu.files.quoting import shown
from hybridgpu.files.source import position, read_source
from hybridgpu.inventory.entries import NodeGroup
from hybridgpu.inventory.factsconsistent import contradictions
from hybridgpu.inventory.factsfields import (
    DRIVER,
    GPU,
    INSTANCE,
    MOST_INSTANCES,
    PLACEMENT,
    TOP,
    Problem,
    children,
    problems,
)
from hybridgpu.inventory.factsplaces import offsets, second_key
from hybridgpu.inventory.indices import shown_indices
from hybridgpu.inventory.schema import MOST_GPUS
from hybridgpu.model.catalogue import NotFound, find, identify
from hybridgpu.model.facts import Facts, GpuFacts, InstanceFacts
from hybridgpu.model.finding import Finding, Place, Related, Rule, Severity
from hybridgpu.model.gpu import GpuModel, Placement

MOST_PROBLEMS = 200
MOST_BYTES = 2**20
"""More than 64 GPUs with 64 instances each need."""

NOT_JSON = Rule(
    "facts-not-json",
    Severity.ERROR,
    "The file cannot be read, and nothing of it is used.",
    "Write facts as docs/facts.md says.",
    "RFC 8259",
)
ILLEGAL = Rule(
    "facts-illegal-field",
    Severity.ERROR,
    "The file does not say what facts must say, and nothing of it is used.",
    "Write facts as docs/facts.md says.",
    "docs/inventory.md",
)
DISAGREE = Rule(
    "facts-differ-from-class",
    Severity.ERROR,
    "The node has other cards than its class says: files rendered for it would be wrong, so it is not rendered.",
    "Correct the class or move the node to another one; if a card failed, mend the node and write its facts anew.",
    "docs/inventory.md",
)


class _Twice(ValueError):
    """A key that stands in an object twice."""


class _NoNumber(ValueError):
    """NaN or Infinity, which Python's reader takes and JSON does not have."""


def read_facts(path: str, text: bytes | None = None) -> tuple[Facts | None, tuple[Finding, ...]]:
    """The facts in the file at `path`, or in its content `text`; None if a finding, each with its place, is an error.

    GPUs come in the order of their index, bus ids as `0000:07:00.0`. Raises OSError where the file is not there.
    """
    source = read_source(path, text, MOST_BYTES)
    if isinstance(source, Finding):
        return None, (source,)
    try:
        record = json.loads(source.text, object_pairs_hook=_object, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        place = Place(path, error.lineno, error.colno)
        return None, (Finding(NOT_JSON, place, f"this is not JSON: {error.msg}", NOT_JSON.fix),)
    except _Twice as error:
        return None, _twice(path, source.text, str(error))
    except _NoNumber as error:
        return None, (_not_json(path, str(error)),)
    except ValueError:
        return None, (_not_json(path, "a number has more digits than any number here can have"),)
    except RecursionError:
        return None, (_not_json(path, "it is nested deeper than is read"),)
    found = list(islice(_problems(record), MOST_PROBLEMS)) or list(islice(contradictions(record), MOST_PROBLEMS))
    if found:
        return None, _placed(path, source.text, found)
    return _facts(path, record), ()


def judge_facts(facts: Facts, group: NodeGroup, node: str) -> tuple[Finding, ...]:
    """Where the facts of `node` do not agree with its entry: name, number of GPUs, and the model of each."""
    related = (Related(group.node_class.place, "the class"),)
    return tuple(
        Finding(DISAGREE, _gpu_place(facts.file, index), message, DISAGREE.fix, related)
        for index, message in _disagreements(facts, group, node)
    )


def _disagreements(facts: Facts, group: NodeGroup, node: str) -> Iterator[tuple[int | None, str]]:
    """Each with the index of the GPU that it is about, the first of several that are wrong in one way."""
    if facts.node != node:
        yield None, f"these are facts of {facts.node}, and stand for {node}"
    wanted, name = group.node_class.gpus, group.node_class.name
    if len(facts.gpus) != len(wanted):
        yield None, f"{node} has {len(facts.gpus)} GPUs; its class {name} has {len(wanted)}"
    wrong: dict[tuple[str, str], list[int]] = {}
    for gpu, model in zip(facts.gpus, wanted, strict=False):
        if not _is(gpu, model):
            wrong.setdefault((gpu.model, model.name), []).append(gpu.index)
    for (seen, said), indices in wrong.items():
        yield indices[0], f"GPU {shown_indices(indices)} of {node} is {shown(seen)}; its class {name} says {said}"


def _gpu_place(path: str, index: int | None) -> Place:
    """Where the model of the GPU stands in the file, which is legal; its first line where the file is gone."""
    try:
        source = read_source(path, None, MOST_BYTES) if index is not None else None
    except OSError:
        source = None
    if source is None or isinstance(source, Finding):
        return Place(path, 1)
    indices = [gpu["index"] for gpu in json.loads(source.text)["gpus"]]
    where = ("gpus", indices.index(index), "model")
    return Place(path, *position(source.text, offsets(source.text, [where]).get(where, 0)))


def _is(gpu: GpuFacts, model: GpuModel) -> bool:
    """Whether the card may be of the model. Its memory decides only where models of several sizes share a name."""
    named, found = find(gpu.model), identify(gpu.model, gpu.memory_bytes)
    if isinstance(found, NotFound) and not isinstance(named, NotFound):
        found = named
    if isinstance(found, NotFound):
        return found.ambiguous and model.name in found.candidates
    return found.name == model.name


def _not_json(path: str, why: str) -> Finding:
    return Finding(NOT_JSON, Place(path, 1), f"this is not JSON that is read: {why}", NOT_JSON.fix)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) < len(pairs):
        times = Counter(name for name, _ in pairs)
        raise _Twice(next(name for name in times if times[name] > 1))
    return record


def _no_constant(word: str) -> NoReturn:
    raise _NoNumber(f"{word} is no number")


def _problems(record: object) -> Iterator[Problem]:
    yield from problems(record, TOP)
    if isinstance(record, dict) and isinstance(record.get("driver"), dict):
        yield from problems(record["driver"], DRIVER, ("driver",))
    for at, gpu in enumerate(children(record, "gpus", MOST_GPUS)):
        yield from problems(gpu, GPU, ("gpus", at))
        for number, instance in enumerate(children(gpu, "instances", MOST_INSTANCES)):
            path = ("gpus", at, "instances", number)
            yield from problems(instance, INSTANCE, path)
            if isinstance(instance, dict) and isinstance(instance.get("placement"), dict):
                yield from problems(instance["placement"], PLACEMENT, (*path, "placement"))


def _facts(path: str, record: dict[str, Any]) -> Facts:
    gpus = sorted(record["gpus"], key=lambda gpu: gpu["index"])
    return Facts(record["node"], record["driver"]["version"], tuple(map(_gpu, gpus)), path)


def _gpu(gpu: dict[str, Any]) -> GpuFacts:
    links = gpu.get("links")
    return GpuFacts(
        index=gpu["index"],
        minor=gpu["minor"],
        uuid=gpu["uuid"],
        pci_bus_id=gpu["pci_bus_id"][-12:].lower(),
        model=gpu["model"],
        memory_bytes=gpu["memory_bytes"],
        mig_enabled=gpu.get("mig_enabled"),
        compute_mode=gpu["compute_mode"],
        cores=gpu.get("cores"),
        links=None if links is None else tuple(links),
        instances=tuple(map(_instance, gpu["instances"])),
        mig_pending=gpu.get("mig_pending"),
    )


def _instance(instance: dict[str, Any]) -> InstanceFacts:
    placement = instance.get("placement")
    return InstanceFacts(
        uuid=instance["uuid"],
        profile=instance["profile"],
        placement=Placement(placement["start"], placement["size"]) if placement else None,
        gi=instance["gi"],
        ci=instance["ci"],
        gi_minor=instance.get("gi_minor"),
        ci_minor=instance.get("ci_minor"),
    )


def _twice(path: str, text: str, key: str) -> tuple[Finding, ...]:
    place = Place(path, *position(text, second_key(text) or 0))
    return (Finding(NOT_JSON, place, f"the key {shown(key)} stands in this object twice", NOT_JSON.fix),)


def _placed(path: str, text: str, found: list[Problem]) -> tuple[Finding, ...]:
    """The problems with their places; what is missing is missing where its object begins."""
    paths = [problem.path[:-1] if problem.missing else problem.path for problem in found]
    at = offsets(text, paths)
    places = [Place(path, *position(text, at.get(where, 0))) for where in paths]
    findings = [Finding(ILLEGAL, place, str(p), ILLEGAL.fix) for place, p in zip(places, found, strict=True)]
    return tuple(sorted(findings, key=lambda f: (f.place.line, f.place.column) if f.place else (0, 0)))
