"""What ResourceQuotas and LimitRanges really bound: keys that nobody counts by, names that nobody offers, defaults.

Each rule of the API server here was run against release 1.36. Whether the numbers are wise is not judged.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from hybridgpu.consumers.kubernetes import askrules as rules
from hybridgpu.consumers.kubernetes.devicemap import WHOLE
from hybridgpu.consumers.kubernetes.given import Bound
from hybridgpu.consumers.kubernetes.gpunames import MIG, base, is_impossible, is_taken, likely
from hybridgpu.consumers.kubernetes.names import Names, offering, told
from hybridgpu.consumers.kubernetes.quantity import NOT_WHOLE
from hybridgpu.consumers.kubernetes.replicated import SHARED
from hybridgpu.consumers.kubernetes.whynot import instead, why_not
from hybridgpu.files.quoting import listed, shown
from hybridgpu.model.finding import Finding, Related, Rule

_QUOTA, _LIMIT_RANGE = "ResourceQuota", "LimitRange"
_COUNTED = "requests."
_RATIO = "maxLimitRequestRatio"


def judge_bounds(bounds: Iterable[Bound], names: Names) -> Iterator[Finding]:
    """The findings on every number, each once."""
    every = list(bounds)
    in_namespace: dict[str, set[str]] = defaultdict(set)
    counted: dict[tuple[str, str], int] = {}
    for bound in every:
        if bound.field.startswith(_COUNTED) and bound.count is not None:
            counted[bound.title, bound.resource] = bound.count
        if bound.kind == _LIMIT_RANGE or bound.field.startswith(_COUNTED):
            in_namespace[bound.namespace].add(bound.resource)
    told_of: set[tuple[str, int, str]] = set()
    for bound in every:
        refused = _refused(bound)
        if refused:
            yield _finding(rules.BOUND_REFUSED, bound, refused)
            continue
        if bound.kind == _QUOTA and not bound.field.startswith(_COUNTED):
            if _repeats(bound, counted):
                continue
            message = f"{bound.title}: {bound.field} is taken and never enforced: any number of GPUs is given"
            right = f"write {_COUNTED}{likely(bound.resource) or bound.resource}"
            yield _finding(rules.QUOTA_UNENFORCED, bound, message, right)
            continue
        about = (bound.title, bound.item, bound.resource)
        if about not in told_of:
            told_of.add(about)
            yield from _names(bound, names, in_namespace[bound.namespace])
    yield from _defaults(bound for bound in every if not is_impossible(bound.resource) or bound.resource in names.all)


def _refused(bound: Bound) -> str:
    """Why the API server refuses the object, or ""."""
    written = bound.field if bound.kind == _QUOTA else bound.resource
    if not is_taken(bound.resource) or (bound.kind == _QUOTA and not _is_key(bound)):
        return f"{bound.title}: {shown(written)} is no name of a resource that the API server takes"
    whole = bound.kind == _QUOTA and not bound.field.startswith(_COUNTED)
    if bound.wrong and (whole or bound.wrong != NOT_WHOLE):
        return f"{bound.title}: {shown(bound.text)} for {shown(written)} {bound.wrong}"
    return ""


def _is_key(bound: Bound) -> bool:
    """Whether the API server takes the key of a quota whose prefix is none that it knows."""
    return bound.field.startswith((_COUNTED, "limits.")) or is_taken(bound.field)


def _repeats(bound: Bound, counted: Mapping[tuple[str, str], int]) -> bool:
    """Whether the same quota has a number that counts and is no larger: a habit, since requests equal limits here."""
    number = counted.get((bound.title, bound.resource))
    return number is not None and number <= (bound.count or 0)


def _names(bound: Bound, names: Names, bounded: set[str]) -> Iterator[Finding]:
    """Whether the name is one that is offered, and the only one under which its GPUs are."""
    resource, title = bound.resource, bound.title
    if is_impossible(resource) and resource not in names.all:
        near = likely(resource)
        message = f"{title}: no GPU is ever offered as {resource}, so that nothing is bounded"
        yield _finding(rules.BOUND_NAME, bound, message, f"did you mean {near}?" if near else instead(resource, names))
        return
    if not names.known:
        return
    other = base(resource) if resource.endswith(SHARED) else resource + SHARED
    if resource in names.all:
        yield from _half(bound, names, bounded)
        return
    if other in bounded or (_took_by_mig(resource, names) and any(each.startswith(MIG) for each in bounded)):
        return
    if resource.startswith(MIG) and bounded & names.all:
        return  # one of several profiles, for a time when cards are cut so
    message = f"{title} bounds {resource}, and {why_not(resource, names)}: nothing is bounded"
    hint = f"add {_COUNTED}{other}" if other in names.all and bound.kind == _QUOTA else instead(resource, names)
    related = tuple(Related(s.place, f"offers {told(s.names)}") for s in names.sources if s.place)
    yield _finding(rules.BOUND_NOT_OFFERED, bound, message, hint, related[:3])


def _half(bound: Bound, names: Names, bounded: set[str]) -> Iterator[Finding]:
    """Whether a quota on cards leaves shares of them, or MIG devices cut from them, to anybody."""
    if bound.kind != _QUOTA or bound.resource.endswith(SHARED):
        return
    shared = bound.resource + SHARED
    beside = {shared} & names.all
    if bound.resource == WHOLE:
        beside |= names.profiles
    if not beside or beside & bounded:
        return
    message = f"{bound.title} counts {bound.resource}, and offered too, but not counted, is {told(beside)}"
    first = min(beside)
    related = tuple(Related(s.place, f"offers {first}") for s in offering(names.sources, first) if s.place)
    hint = f"add {listed(_COUNTED + name for name in sorted(beside))}"
    yield _finding(rules.BOUND_HALF, bound, message, hint, related[:3])


def _took_by_mig(resource: str, names: Names) -> bool:
    return base(resource) == WHOLE and any(name.startswith(MIG) for name in names.all)


def _defaults(bounds: Iterable[Bound]) -> Iterator[Finding]:
    """What a LimitRange for containers does to those that ask for no GPU."""
    fields: dict[tuple[str, int, str], dict[str, Bound]] = defaultdict(dict)
    for bound in bounds:
        if bound.kind == _LIMIT_RANGE and bound.scope == "Container" and not bound.wrong and is_taken(bound.resource):
            fields[bound.title, bound.item, bound.resource][bound.field] = bound
    for given in fields.values():
        if "default" in given:
            continue
        most = given.get("max")
        if most is not None:
            if most.count:
                message = (
                    f"{most.title}: max {most.resource}={most.text} is the default too: a container that asks for no "
                    f"GPU is given {most.text}"
                )
                yield _finding(rules.LIMIT_FILLS, most, message)
            continue
        field, bound = next(iter(given.items()))
        what = "forbidden" if field == _RATIO else "refused, since a limit must be set"
        message = f"{bound.title}: {field} without max or default: a pod that asks for no {bound.resource} is {what}"
        yield _finding(rules.LIMIT_REFUSES, bound, message)


def _finding(rule: Rule, bound: Bound, message: str, hint: str = "", related: tuple[Related, ...] = ()) -> Finding:
    return Finding(rule, bound.place, message, hint or rule.fix, related)
