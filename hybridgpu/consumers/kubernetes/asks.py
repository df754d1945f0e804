"""Who asks for GPUs, and who bounds that: workloads, ResourceQuotas and LimitRanges, from objects to records.

Only read here: what becomes of them is askjudge's and boundjudge's business.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hybridgpu.consumers.kubernetes.container import VISIBLE
from hybridgpu.consumers.kubernetes.given import Ask, Bound, Workload
from hybridgpu.consumers.kubernetes.gpunames import is_ours, quota_key
from hybridgpu.consumers.kubernetes.misplaced import misplaced
from hybridgpu.consumers.kubernetes.podtemplates import Template, is_own_kind, maps, templates, text
from hybridgpu.consumers.kubernetes.quantity import Quantity, read_quantity
from hybridgpu.consumers.kubernetes.tolerations import read_tolerations
from hybridgpu.files.gotree import GoKey, GoMap, GoNode, GoScalar
from hybridgpu.files.manifest import Manifest, at
from hybridgpu.model.finding import Place
from hybridgpu.model.site import Toleration

_SHARED_MEMORY = "/dev/shm"  # noqa: S108 - of a container
_NOTHING_VISIBLE = ("", "void", "none")
_LIMIT_FIELDS = ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio")


def read_workload(manifest: Manifest) -> Workload | None:
    """The object as one that runs containers of a user; None where it is not, or does not touch GPUs."""
    found = templates(manifest)
    asks = tuple(ask for number, each in enumerate(found) for ask in _asks(manifest, each, number))
    pod_level = tuple(each for template in found for each in _pod_level(manifest, template))
    visible = next((seen for each in found for seen in _visible(manifest, each)), None)
    elsewhere = misplaced(manifest, found)
    if not asks and not pod_level and not elsewhere and visible is None:
        return None
    asking = [each for number, each in enumerate(found) if any(ask.template == number for ask in asks)] or list(found)
    shm = next((seen for each in asking for seen in _shm(manifest, each, asks)), None)
    chosen = [_selector(manifest, each) for each in asking]
    selector = _common([{key: value for key, (value, _) in labels.items()} for labels, _ in chosen])
    tolerated = [(item, manifest.place(node)) for each in asking for item, node in _tolerations(each.spec)]
    return Workload(
        title=manifest.title,
        kind=manifest.kind,
        namespace=manifest.namespace,
        place=manifest.place(),
        asks=asks,
        node_selector=selector,
        node_name=text(asking[0].spec.get("nodeName")) if len(asking) == 1 else "",
        selector_places={key: place for key, (_, place) in chosen[0][0].items() if key in selector},
        tolerations=tuple(item for item, _ in tolerated),
        toleration_places=tuple(place for _, place in tolerated),
        shm=shm[1] if shm else None,
        visible=visible[1] if visible else None,
        shm_of=shm[0] if shm else "",
        visible_text=visible[0] if visible else "",
        choosy=any(more for _, more in chosen) or len(asking) > 1,
        pod_level=pod_level,
        misplaced=elsewhere,
        known=is_own_kind(manifest),
    )


def read_bounds(manifest: Manifest) -> tuple[Bound, ...]:
    """The numbers that a ResourceQuota or LimitRange sets on GPUs; () for any other object."""
    if manifest.kind == "ResourceQuota":
        return tuple(_hard(manifest))
    return tuple(_limits(manifest)) if manifest.kind == "LimitRange" else ()


def _asks(manifest: Manifest, template: Template, number: int) -> Iterator[Ask]:
    """Each container's limits on GPUs, and its requests where there is no limit beside them."""
    for init, containers in ((True, template.init), (False, template.containers)):
        for container in containers:
            limits, requests = (_numbers(at(container, "resources", each)) for each in ("limits", "requests"))
            for name, (key, read) in {**requests, **limits}.items():
                beside = requests.get(name) if name in limits else None
                yield Ask(
                    container=text(container.get("name")),
                    resource=name,
                    count=read.count,
                    text=read.text,
                    place=manifest.place(key),
                    wrong="" if _is_template(read.text) else read.wrong,
                    limited=name in limits,
                    request=(beside[1].text, beside[1].count) if beside else None,
                    template=number,
                    init=init,
                )


def _is_template(written: str) -> bool:
    """Whether a workflow engine fills the number in."""
    return "{{" in written or "${" in written


def _numbers(node: GoNode | None) -> dict[str, tuple[GoKey, Quantity]]:
    """GPUs among resources: name to its key and number."""
    entries = node.entries if isinstance(node, GoMap) else ()
    return {key.name: (key, read_quantity(value)) for key, value in entries if is_ours(key.name)}


def _pod_level(manifest: Manifest, template: Template) -> Iterator[tuple[str, Place]]:
    for each in ("limits", "requests"):
        for name, (key, _) in _numbers(at(template.spec, "resources", each)).items():
            yield name, manifest.place(key)


def _visible(manifest: Manifest, template: Template) -> Iterator[tuple[str, Place]]:
    """Where NVIDIA_VISIBLE_DEVICES is set to cards; a value from elsewhere (`valueFrom`) is not known."""
    for container in (*template.containers, *template.init):
        for variable in maps(container.get("env")):
            value = text(variable.get("value"))
            if text(variable.get("name")) == VISIBLE and value.strip() not in _NOTHING_VISIBLE and "$(" not in value:
                yield value, manifest.place(variable.get("value"))


def _shm(manifest: Manifest, template: Template, asks: tuple[Ask, ...]) -> Iterator[tuple[str, Place]]:
    """The containers that ask for GPUs and mount something on /dev/shm."""
    asking = {ask.container for ask in asks if ask.count != 0}
    for container in (*template.containers, *template.init):
        name = text(container.get("name"))
        for mount in maps(container.get("volumeMounts")):
            path = mount.get("mountPath")
            if name in asking and text(path).rstrip("/") == _SHARED_MEMORY:
                yield name, manifest.place(path)


def _selector(manifest: Manifest, template: Template) -> tuple[dict[str, tuple[str, Place]], bool]:
    """The labels that a node must have, with their places, and whether more is demanded than labels can say here."""
    entries = template.spec.get("nodeSelector")
    pairs = entries.entries if isinstance(entries, GoMap) else ()
    labels = {key.name: (text(value), manifest.place(key)) for key, value in pairs}
    path = ("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
    terms = maps(at(template.spec, *path))
    choosy = len(terms) > 1
    for expression in maps(terms[0].get("matchExpressions")) if len(terms) == 1 else ():
        values = expression.get("values")
        listed = [text(item) for item in getattr(values, "items", ())]
        if text(expression.get("operator")) == "In" and len(listed) == 1:
            labels.setdefault(text(expression.get("key")), (listed[0], manifest.place(expression.get("key"))))
        else:
            choosy = True
    return labels, choosy


def _common(selectors: list[dict[str, str]]) -> Mapping[str, str]:
    first, *others = selectors or [{}]
    return {key: value for key, value in first.items() if all(other.get(key) == value for other in others)}


def _tolerations(spec: GoMap) -> Iterator[tuple[Toleration, GoMap]]:
    yield from zip(read_tolerations(spec.get("tolerations")) or (), maps(spec.get("tolerations")), strict=True)


def _hard(manifest: Manifest) -> Iterator[Bound]:
    for key, value in manifest.mapping("spec", "hard"):
        resource = quota_key(key.name)[1]
        if is_ours(resource):
            yield _bound(manifest, key, value, key.name, resource)


def _limits(manifest: Manifest) -> Iterator[Bound]:
    for number, item in enumerate(maps(manifest.get("spec", "limits"))):
        for field in _LIMIT_FIELDS:
            numbers = item.get(field)
            for key, value in numbers.entries if isinstance(numbers, GoMap) else ():
                if is_ours(key.name):
                    yield _bound(manifest, key, value, field, key.name, text(item.get("type")), number)


def _bound(
    manifest: Manifest, key: GoKey, value: GoNode, field: str, resource: str, scope: str = "", item: int = 0
) -> Bound:
    read = read_quantity(value)
    return Bound(
        title=manifest.title,
        namespace=manifest.namespace,
        field=field,
        resource=resource,
        text=text(value) if isinstance(value, GoScalar) else read.text,
        place=manifest.place(key),
        kind=manifest.kind,
        scope=scope,
        item=item,
        count=read.count,
        wrong=read.wrong,
    )
