"""What a node is to offer Kubernetes, made from its NodeConfig alone: the proof holds what programs do against it."""

from __future__ import annotations

from hybridgpu.model.labels import SHARED_SUFFIX
from hybridgpu.model.naming import kubernetes_resource
from hybridgpu.model.offer import KubernetesDevice, KubernetesOffer, KubernetesResource
from hybridgpu.model.sharing import Mode, Scheduler
from hybridgpu.model.site import Device, NodeBody

_SHARING = {Mode.TIME_SLICING: "time-slicing", Mode.MPS: "mps"}


def visible_devices(body: NodeBody) -> list[Device]:
    """The devices that the plugin sees, by card and then by place: on a split node Kubernetes' own."""
    seen = (d for d in body.devices if not body.split or body.owners[d.index] is Scheduler.KUBERNETES)
    return sorted(seen, key=lambda d: (d.index, d.placement.start if d.placement else 0))


def expected(body: NodeBody) -> KubernetesOffer:
    """Resource names with their devices, in the order of the names."""
    sharing = _SHARING.get(body.sharing.mode)
    renamed = SHARED_SUFFIX if sharing and body.sharing.rename_by_default else ""
    resources: dict[str, list[KubernetesDevice]] = {}
    positions: dict[int, int] = {}
    for device in visible_devices(body):
        position = None
        if device.profile:
            position = positions.get(device.index, 0)
            positions[device.index] = position + 1
        name = kubernetes_resource(device.profile, body.sharing.mig_strategy) + renamed
        resources.setdefault(name, []).append(KubernetesDevice(device.index, position, device.profile))
    replicas = (body.sharing.replicas or 1) if sharing else 1
    return KubernetesOffer(
        tuple(KubernetesResource(name, tuple(devices), replicas) for name, devices in sorted(resources.items())),
        sharing=sharing or "none",
        one_only=bool(sharing) and body.sharing.fail_requests_greater_than_one,
    )
