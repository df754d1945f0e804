"""What a node offers Slurm, in Slurm's terms: the form in which wanted, written and registered are compared."""

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
