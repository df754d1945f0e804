"""What becomes of those who ask for GPUs: refused, pending for ever, failing on a node, or seeing too much.

Only what the files together settle is told: without a config, a chart or a Node among them nothing is known of what is
offered, and only names that no config could ever offer are mistakes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hybridgpu.consumers.kubernetes import askrules as rules
from hybridgpu.consumers.kubernetes.boundjudge import judge_bounds
from hybridgpu.consumers.kubernetes.eligible import Eligible
from hybridgpu.consumers.kubernetes.given import Ask, Bound, KubeFiles, Workload
from hybridgpu.consumers.kubernetes.gpunames import is_impossible, is_taken, likely
from hybridgpu.consumers.kubernetes.names import Names, Source, offered, offering
from hybridgpu.consumers.kubernetes.taintjudge import judge_taints
from hybridgpu.consumers.kubernetes.whynot import instead, why_not
from hybridgpu.files.quoting import listed, shown
from hybridgpu.model.finding import Finding, Related


def judge_asks(files: KubeFiles) -> Iterator[Finding]:
    """All findings on workloads, quotas and limit ranges."""
    if not files.workloads and not files.bounds:
        return
    names = offered(files)
    where = Eligible(files, names)
    for workload in files.workloads:
        yield from judge_workload(workload, files.bounds, where)
    yield from judge_bounds(files.bounds, names)


def judge_workload(workload: Workload, bounds: Iterable[Bound], where: Eligible) -> Iterator[Finding]:
    """The findings on one workload, in the order in which it meets them."""
    among = where.sources(workload)
    for resource, place in workload.pod_level:
        message = f"{resource} stands in the resources of the pod, where only cpu, memory and hugepages may"
        yield Finding(rules.REFUSED, place, message, "give it to a container as a limit")
    for one in workload.misplaced:
        message = f"{one.name} stands under {one.under}, where nobody looks for it: the pods get no GPU"
        yield Finding(rules.MISPLACED, one.place, message, one.right)
    for ask in workload.asks:
        refused = _refused(ask, bounds, workload)
        if refused:
            who = "the API server refuses it" if workload.known else "the API server refuses its pods"
            yield Finding(rules.REFUSED, ask.place, f"{_who(ask)} {refused}: {who}", rules.REFUSED.fix)
        elif ask.count != 0:
            yield from _offered(ask, workload, where.names, among)
    yield from _fits(workload, where)
    yield from _shares_memory(workload, among)
    if workload.visible is not None:
        message = (
            f"NVIDIA_VISIBLE_DEVICES is set to {shown(workload.visible_text)}: the container sees these cards, "
            "whatever it was given"
        )
        yield Finding(rules.VISIBLE, workload.visible, message, rules.VISIBLE.fix)
    selector = tuple(where.judge_selector(workload))
    yield from selector or judge_taints(workload, where)


def _refused(ask: Ask, bounds: Iterable[Bound], workload: Workload) -> str | None:
    """Why the API server refuses the numbers; None where it takes them, or a LimitRange may complete them."""
    if ask.wrong:
        return f"asks for {shown(ask.text)} {ask.resource}, which {ask.wrong}"
    if ask.request is not None and ask.request[1] != ask.count:
        return f"requests {ask.request[0]} {ask.resource} with a limit of {ask.text}: the two must be equal"
    if not ask.limited and ask.count != 0 and not _completed(ask, bounds, workload.namespace):
        return f"requests {ask.text} {ask.resource} without a limit: a limit must be set"
    return None


def _completed(ask: Ask, bounds: Iterable[Bound], namespace: str) -> bool:
    """Whether a LimitRange gives the container the limit that it lacks."""
    return any(
        bound.kind == "LimitRange" and bound.resource == ask.resource and bound.field in ("max", "default")
        for bound in bounds
        if bound.namespace == namespace
    )


def _offered(ask: Ask, workload: Workload, names: Names, among: tuple[Source, ...] | None) -> Iterator[Finding]:
    """Whether anybody offers the name where the pod may run, and so many of it to one container."""
    if is_impossible(ask.resource) and ask.resource not in names.all:
        yield _misspelt(ask, names)
        return
    if among is None:  # nothing is known of where it may run
        return
    found = offering(among, ask.resource)
    if not found and names.known:
        message = f"{_who(ask)} asks for {ask.text} {ask.resource}, and {why_not(ask.resource, names, among)}"
        related = tuple(Related(s.place, f"{s.title} offers other names") for s in among if s.place)[:3]
        yield Finding(rules.NOT_OFFERED, ask.place, message, instead(ask.resource, names), related)
    if ask.count is not None and ask.count > 1:
        yield from _shares(ask, workload, names, found)


def _shares(ask: Ask, workload: Workload, names: Names, found: tuple[Source, ...]) -> Iterator[Finding]:
    """Whether more than one is refused: by every config that offers the name, or by some."""
    told = [source for source in found if source.names[ask.resource].one_only is not None]
    strict = [source for source in told if source.names[ask.resource].one_only]
    if not strict:
        return
    everywhere = len(strict) == len(told) and names.complete
    if not everywhere and workload.choosy:
        return
    kinds = sorted({source.names[ask.resource].kind for source in strict})
    reason = "failRequestsGreaterThanOne is on" + (", as it is under mps unless set false" if "mps" in kinds else "")
    by = "" if everywhere else f" by {listed(source.title for source in strict)}"
    message = (
        f"{_who(ask)} asks for {ask.text} {ask.resource}, which is shared by {' and '.join(kinds)}, and a container "
        f"may have 1{by}: {reason}; it fails with UnexpectedAdmissionError"
    )
    related = tuple(Related(source.place, "shared here") for source in strict if source.place)[:3]
    rule = rules.MORE_THAN_ONE if everywhere else rules.MORE_THAN_ONE_SOMEWHERE
    yield Finding(rule, ask.place, message, rule.fix, related)


def _misspelt(ask: Ask, names: Names) -> Finding:
    right = instead(ask.resource, names) if names.known else ""
    near = likely(ask.resource)
    if near is not None and (not names.known or near in names.all):
        right = f"did you mean {near}?"
    what = "no GPU is ever offered under this name, and the pod pends for ever"
    if not is_taken(ask.resource):
        what = "the API server refuses this name"
    return Finding(rules.NAME, ask.place, f"{_who(ask)} asks for {ask.resource}: {what}", right or rules.NAME.fix)


def _fits(workload: Workload, where: Eligible) -> Iterator[Finding]:
    """Whether some Node has as many as one pod asks for, where all Nodes with GPUs say how many they have."""
    most = where.most(workload)
    for (template, resource), need in _needs(workload).items():
        largest, node = most.get(resource, (0, ""))
        if need > largest > 0:
            ask = next(each for each in workload.asks if (each.template, each.resource) == (template, resource))
            message = f"a pod asks for {need} {resource}, and the largest node, {node}, offers {largest}"
            yield Finding(rules.NEVER_FITS, ask.place, message, f"ask for at most {largest}")


def _needs(workload: Workload) -> dict[tuple[int, str], int]:
    """By template and resource, what one pod needs: its containers together, or its largest init container."""
    together: dict[tuple[int, str], int] = {}
    before: dict[tuple[int, str], int] = {}
    for ask in workload.asks:
        key, count = (ask.template, ask.resource), ask.count or 0
        if ask.init:
            before[key] = max(before.get(key, 0), count)
        else:
            together[key] = together.get(key, 0) + count
    return {key: max(together.get(key, 0), before.get(key, 0)) for key in {**together, **before}}


def _shares_memory(workload: Workload, among: tuple[Source, ...] | None) -> Iterator[Finding]:
    """Whether a container that mounts its own /dev/shm asks for what MPS shares."""
    if workload.shm is None or among is None:
        return
    for ask in workload.asks:
        by_mps = [source for source in offering(among, ask.resource) if source.names[ask.resource].kind == "mps"]
        if ask.container == workload.shm_of and by_mps:
            message = (
                f"container {shown(ask.container)} mounts a volume of its own on /dev/shm and asks for {ask.resource}, "
                f"which MPS shares ({listed(source.title for source in by_mps)})"
            )
            related = tuple(Related(source.place, "shared by mps here") for source in by_mps if source.place)[:1]
            yield Finding(rules.SHM, workload.shm, message, rules.SHM.fix, related)
            return


def _who(ask: Ask) -> str:
    return f"{'init container' if ask.init else 'container'} {shown(ask.container)}"
