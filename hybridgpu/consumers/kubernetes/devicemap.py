"""Which devices a node has under which resource name, for one MIG strategy, and how sharing multiplies them.

What the device plugin and the MPS daemon have in common. Sources: k8s-device-plugin v0.20.0 internal/rm/device_map.go,
rm.go AddDefaultResourcesToConfig.
"""

from __future__ import annotations

from dataclasses import dataclass

from hybridgpu.consumers.kubernetes.node import Card, Instance, Node
from hybridgpu.consumers.kubernetes.replicated import Replicated
from hybridgpu.model.naming import kubernetes_resource
from hybridgpu.model.offer import KubernetesDevice

WHOLE = kubernetes_resource(None)
_BUILDING = "error building device map: error building device map from config.resources: "
_VISITING = "error visiting device: "
_VISITING_MIG = f"error visiting devices: {_VISITING * 2}{'error visiting MIG device: ' * 2}"


@dataclass(frozen=True, slots=True)
class Unit:
    """A card or a MIG device as the plugin holds it: its id, its index as text (`3`, `3:1`), what it is."""

    card: Card
    position: int | None = None
    instance: Instance | None = None

    @property
    def id(self) -> str:
        """The UUID that a container is given, or a stand-in."""
        if self.instance is None:
            return self.card.id
        return self.instance.uuid or f"MIG-{self.card.index}:{self.position}"

    @property
    def index(self) -> str:
        """NVML's index, of a MIG device with its position on the card."""
        return f"{self.card.index}" if self.position is None else f"{self.card.index}:{self.position}"

    @property
    def files(self) -> tuple[str, ...]:
        """The device files a container needs, where they are known."""
        return (self.card.file,) if self.instance is None else self.instance.files or (self.card.file,)

    @property
    def device(self) -> KubernetesDevice:
        """The unit in an offer."""
        return KubernetesDevice(self.card.index, self.position, self.instance.profile if self.instance else None)


@dataclass(frozen=True, slots=True)
class Pool:
    """The devices of one advertised resource; `replicas` 1 and not `shared` where nothing multiplies them."""

    name: str
    units: tuple[Unit, ...]
    replicas: int = 1
    shared: bool = False


def units(node: Node, strategy: str) -> dict[str, tuple[Unit, ...]] | str:
    """Resource names with their devices, in NVML's order; or the plugin's words for cards that the strategy forbids.

    `strategy` is `none`, `single`, or anything else; only `mixed` has names for the MIG devices it finds then.
    """
    whole = tuple(Unit(card) for card in node.cards if not card.mig or strategy == "none")
    found: dict[str, tuple[Unit, ...]] = {WHOLE: whole} if whole else {}
    if strategy == "none":
        return found
    known = {profile for card in node.cards for profile in card.profiles} if strategy == "mixed" else set()
    mig: dict[str, tuple[Unit, ...]] = {}
    for card in node.cards:
        for position, instance in enumerate(card.instances if card.mig else ()):
            if strategy != "single" and instance.profile not in known:
                why = f"MIG profile '{instance.profile}' does not match any resource patterns"
                return f"{_BUILDING}error building MIG device map: {_VISITING_MIG}{why}"
            name = kubernetes_resource(instance.profile, strategy)
            mig[name] = (*mig.get(name, ()), Unit(card, position, instance))
    fault = _single(node, bool(whole), bool(mig)) if strategy == "single" else None
    return fault or {**found, **mig}


def _single(node: Node, whole: bool, mig: bool) -> str | None:
    """What strategy single demands: instances on every card, of one profile, and no whole card beside them."""
    empty = next((card for card in node.cards if card.mig and not card.instances), None)
    if empty is not None:
        why = f"{_VISITING}device {empty.index} has no MIG devices configured"
        wrong = f"at least one device with migEnabled=true was not configured correctly: {why}"
        return f"{_BUILDING}invalid MIG configuration: {wrong}"
    if len({instance.profile for card in node.cards if card.mig for instance in card.instances}) > 1:
        return f"{_BUILDING}invalid MIG configuration: {_VISITING_MIG}more than one MIG device type present on node"
    if whole and mig:
        return f"{_BUILDING}all devices on the node must be configured with the same migEnabled value"
    return None


def pools(found: dict[str, tuple[Unit, ...]], replicated: Replicated | None) -> tuple[Pool, ...]:
    """The resources that are advertised, by name. Of two entries of one name the larger number counts.

    An entry whose resource is not on the node is passed over without a word.
    """
    entries = replicated.entries if replicated else ()
    named = {entry.name for entry in entries}
    result = {name: Pool(name, them) for name, them in found.items() if name not in named}
    for entry in entries:
        if replicated is None or entry.name not in found:
            continue
        name = replicated.shared_as(entry)
        most = max(entry.replicas, result[name].replicas if name in result else 1)
        result[name] = Pool(name, found[entry.name], most, shared=True)
    return tuple(result[name] for name in sorted(result))
