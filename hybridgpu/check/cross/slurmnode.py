"""A node as Slurm's files have it: its names, its line, what it offers, how its GPUs are shared."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from hybridgpu.consumers.slurm.conf import NodeRecord
from hybridgpu.consumers.slurm.given import SlurmSide
from hybridgpu.consumers.slurm.hostnames import host_names
from hybridgpu.consumers.slurm.openness import openness
from hybridgpu.model.finding import Place
from hybridgpu.model.offer import SlurmDevice, SlurmOffer
from hybridgpu.model.sharing import Mode

_PROFILE = re.compile(r"(?:^|[_.-])((?:[0-9]+c\.)?[0-9]+g\.[0-9]+gb(?:[+.-][a-z0-9.,-]+)?)$", re.IGNORECASE)
_CARD = re.compile(r"/dev/nvidia([0-9]{1,9})")


@dataclass(frozen=True, slots=True)
class SlurmNode:
    """`names` are NodeName, NodeHostname and NodeAddr where that is a name. `offer` is None where slurmd dies.

    `closed` says why no job starts there, None where one may.
    """

    name: str
    names: tuple[str, ...]
    record: NodeRecord
    offer: SlurmOffer | None
    closed: str | None

    @property
    def place(self) -> Place:
        """The node's line."""
        return self.record.place

    @property
    def gres(self) -> str:
        """Gres= as written."""
        return self.record.text("gres") or ""

    @property
    def has_gpus(self) -> bool:
        """Whether its line asks for GPUs, whatever becomes of them."""
        return any(part.partition(":")[0].strip().lower() == "gpu" for part in self.gres.split(","))

    @property
    def offers(self) -> bool:
        """Whether a job may be given one of its GPUs."""
        return self.closed is None and bool(self.offer and self.offer.gpus)


def slurm_nodes(side: SlurmSide) -> Iterator[SlurmNode]:
    """Every node of a cluster, in the order of the lines."""
    release = side.consumption.release
    opened = openness(side.tree.files, release)
    for record in side.tree.files.nodes:
        for names in host_names(record, release):
            offer = side.consumption.offer_of(names[0])
            yield SlurmNode(names[0], names, record, offer, opened.closed(names[0], record))


def profile(device: SlurmDevice) -> str | None:
    """The MIG profile that a device's type names, as nvidia-smi writes it but for `+`; None where it names none."""
    found = _PROFILE.search(device.type or "")
    return found[1].lower() if found else None


def cut(device: SlurmDevice) -> bool:
    """Whether it is a MIG instance, by its files or its type."""
    return len(device.files) > 1 or profile(device) is not None


def card(device: SlurmDevice) -> int | None:
    """The N of its /dev/nvidiaN, None where it has no such file."""
    return card_of_file(device.files[0]) if device.files else None


def card_of_file(path: str) -> int | None:
    """The N of /dev/nvidiaN, None for another file."""
    found = _CARD.fullmatch(path)
    return int(found[1]) if found else None


def modes(offer: SlurmOffer) -> frozenset[Mode]:
    """The modes of which one is the node's: several where AutoDetect may find instances or whole cards."""
    if any(map(cut, offer.gpus)):
        return frozenset((Mode.MIG,))
    mode = {"mps": Mode.MPS, "shard": Mode.TIME_SLICING}.get(offer.sharing or "", Mode.EXCLUSIVE)
    unsure = any(not device.files for device in offer.gpus)
    return frozenset((mode, Mode.MIG)) if unsure else frozenset((mode,))


def instances(offer: SlurmOffer) -> Counter[str] | None:
    """How many MIG instances of each profile; None where a type does not tell, or a card is whole."""
    names = [profile(device) for device in offer.gpus]
    return None if None in names else Counter(name for name in names if name)
