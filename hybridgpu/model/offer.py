"""What a node offers a scheduler, in that one's terms: the form in which wanted, written and seen are compared."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SlurmDevice:
    """One entry of a node's GPU list, at the position Slurm will number it with.

    `files` are the device files in the order written (one for a whole GPU; GPU, GI and CI file for a MIG instance);
    empty where AutoDetect finds them and no facts are had. `shares` is how many mps or shard units this device holds.
    `cores` is a Slurm core range (`0-31`), `links` NVLink counts in Slurm's device order, -1 at the device itself.
    """

    type: str | None
    files: tuple[str, ...]
    shares: int = 0
    cores: str | None = None
    links: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class OtherGres:
    """A GRES that is not a GPU (nic, hybridgpu_k8s ...): name, type, count, and its files if it has any."""

    name: str
    type: str | None
    count: int
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SlurmOffer:
    """All that a node offers Slurm. `sharing` is `mps`, `shard` or None: what `shares` of the devices counts."""

    gpus: tuple[SlurmDevice, ...]
    sharing: str | None = None
    others: tuple[OtherGres, ...] = ()


@dataclass(frozen=True, slots=True)
class OfferRow:
    """One line of the table that both offers of a node project to: cards by index, profile (None: whole), counts.

    `count` is how many devices there are, `replicas` how many may share each; 1 where none may.
    """

    indices: tuple[int, ...]
    profile: str | None
    count: int
    replicas: int


@dataclass(frozen=True, slots=True, order=True)
class KubernetesDevice:
    """A card, or a MIG device on it by its position there, as the device plugin counts them (`3`, `3:1`)."""

    index: int
    position: int | None = None
    profile: str | None = None


@dataclass(frozen=True, slots=True)
class KubernetesResource:
    """One resource name with its devices. The kubelet is told of `allocatable` of them."""

    name: str
    devices: tuple[KubernetesDevice, ...]
    replicas: int = 1

    @property
    def allocatable(self) -> int:
        """The number that the Node shows under status.allocatable."""
        return len(self.devices) * self.replicas


@dataclass(frozen=True, slots=True)
class KubernetesOffer:
    """All that a node offers Kubernetes. `sharing` is `none`, `time-slicing` or `mps`.

    `one_only`: a container that asks for more than one share of a shared resource is refused.
    """

    resources: tuple[KubernetesResource, ...]
    sharing: str = "none"
    one_only: bool = False

    @property
    def allocatable(self) -> dict[str, int]:
        """Resource names and numbers, as a Node shows them."""
        return {resource.name: resource.allocatable for resource in self.resources}

    def table(self) -> tuple[OfferRow, ...]:
        """The table without names: a row a profile and number of replicas, whole cards first, then by profile."""
        groups: dict[tuple[str, int], list[int]] = {}
        for resource in self.resources:
            for device in resource.devices:
                groups.setdefault((device.profile or "", resource.replicas), []).append(device.index)
        return tuple(
            OfferRow(tuple(sorted(set(indices))), profile or None, len(indices), replicas)
            for (profile, replicas), indices in sorted(groups.items())
        )
