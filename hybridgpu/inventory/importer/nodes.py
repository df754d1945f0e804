"""The nodes of a site, each with all that is known of it, as an inventory would say it. They are not folded here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from hybridgpu.inventory.importer.cards import Card
from hybridgpu.inventory.importer.kubeview import KubeView
from hybridgpu.inventory.importer.models import Choice, Models, holds
from hybridgpu.inventory.importer.parameters import NodeLine
from hybridgpu.inventory.importer.sharing import Shares, of_slurm
from hybridgpu.inventory.importer.slurmview import SlurmView
from hybridgpu.inventory.importer.told import Told
from hybridgpu.inventory.sharing import mps_limit
from hybridgpu.model.finding import Place, Related, Rule, Severity
from hybridgpu.model.gpu import GpuModel
from hybridgpu.model.naming import whole_gpu_type
from hybridgpu.model.sharing import Mode, Scheduler

MODES_DIFFER = Rule(
    "import-modes-differ",
    Severity.ERROR,
    "Slurm and Kubernetes share the node's GPUs in two ways, and an inventory has one for both: the owner's is taken, "
    "and what the other scheduler offers will change.",
    "Decide for one mode, and correct the entry.",
    "docs/inventory.md",
)
MODEL_UNKNOWN = Rule(
    "import-model-unknown",
    Severity.WARNING,
    "No file says which GPU model the nodes have, so one is put down that may be wrong: MIG layouts, limits of MPS and "
    "the driver's names depend on it.",
    "Correct `model` (nvidia-smi -L shows it), or import with the facts of one such node.",
    "docs/import.md",
)

LAYOUT_IMPOSSIBLE = Rule(
    "import-layout-impossible",
    Severity.ERROR,
    "The files name MIG instances that no card holds together, so they are not what is there; the node is left out.",
    "Correct the files, or import with the facts of the node alone.",
    "NVIDIA MIG user guide, placements",
)
SPLIT_IMPOSSIBLE = Rule(
    "import-split-impossible",
    Severity.ERROR,
    "The node keeps cards from Slurm's jobs for Kubernetes, and under MPS, the GPU operator or an older Slurm a node "
    "cannot be split; it is left out.",
    "Give the node to one owner.",
    "docs/inventory.md",
)
SHARING_LOST = Rule(
    "import-sharing-lost",
    Severity.ERROR,
    "An inventory cannot share GPUs so, because what comes of it in Kubernetes breaks or gives a card out twice, or no "
    "such cards hold the MIG instances that are counted.",
    "See docs/inventory.md on replicas, renameByDefault and layouts.",
    "docs/inventory.md",
)

UNTYPED = "nvidia"
"""The type of GPUs that had none and whose model is a guess: it is part of every name that AutoDetect gives."""

_REPLICAS = 4


@dataclass(frozen=True, slots=True)
class NodeSource:
    """What is known of a node. `position`: where it stands on its NodeName line. `place`: where it is defined.

    `closed`: why Slurm starts no job there, None where it may.
    """

    name: str
    place: Place
    line: NodeLine | None = None
    position: int = 0
    seen: SlurmView | None = None
    kube: KubeView | None = None
    cards: tuple[Card, ...] = ()
    kube_name: str | None = None
    closed: str | None = None


@dataclass(frozen=True, slots=True)
class NodeDraft:
    """A node in the inventory's terms. `guesses`: why a value is one, by its key (`model`, `owner`, `sharing` ...)."""

    name: str
    gpus: tuple[GpuModel, ...]
    type: str | None
    shares: Shares
    owners: tuple[Scheduler, ...]
    schedulers: tuple[Scheduler, ...]
    kubernetes_name: str
    keys: tuple[tuple[str, str], ...] = ()
    gres: str = ""
    addresses: tuple[tuple[str, str], ...] = ()
    guesses: Mapping[str, str] = field(default_factory=dict)
    wholes: bool = True


@dataclass(slots=True)
class Drafting:
    """Makes drafts of nodes. `both`: the site has both schedulers; `operated`: the plugin comes with the operator;
    `splits`: Slurm's release can keep jobs off cards of Kubernetes."""

    models: Models
    told: Told
    both: bool
    operated: bool
    splits: bool = True

    def draft(self, source: NodeSource) -> NodeDraft | None:
        """The node in the inventory's terms; None, which is told, where its cards cannot be cut as the files say."""
        guesses: dict[str, str] = {}
        choices = tuple(self.models.of(card.clue) for card in source.cards)
        for card, choice in zip(source.cards, choices, strict=True):
            if card.layout and not holds(choice.model, (card.layout,)):
                parts = " + ".join(f"{number} x {profile}" for profile, number in card.layout)
                message = f"{source.name}: no {choice.model.name} can be cut into {parts}; the node is left out"
                self.told.add(LAYOUT_IMPOSSIBLE, source.place, message)
                return None
        if source.seen and source.seen.kept and (not self.splits or self.operated or source.seen.shared == "mps"):
            message = f"{source.name}: cards are kept for Kubernetes, and the node cannot be split; it is left out"
            self.told.add(SPLIT_IMPOSSIBLE, source.place, message)
            return None
        self._judge_models(source, choices, guesses)
        schedulers = _schedulers(source)
        owner = _owner(source, guesses)
        owners = tuple(card.owner or owner for card in source.cards)
        gpus = tuple(choice.model for choice in choices)
        shares = self._legal(source, self._shares(source, owner, schedulers, guesses), gpus, guesses)
        line = source.line if Scheduler.SLURM in schedulers else None
        return NodeDraft(
            name=source.name,
            gpus=gpus,
            type=_type(source, choices) if line else None,
            shares=shares,
            owners=owners,
            schedulers=schedulers if self.both else (),
            kubernetes_name=_pattern(source),
            keys=line.keys if line else (),
            gres=line.gres if line else "",
            addresses=tuple((key, values[source.position]) for key, values in line.addresses) if line else (),
            guesses=guesses,
            wholes=any(card.layout is None for card in source.cards),
        )

    def _judge_models(self, source: NodeSource, choices: Sequence[Choice], guesses: dict[str, str]) -> None:
        why = list(dict.fromkeys(choice.why for choice in choices if choice.why))
        if why:
            guesses["model"] = "; ".join(why)
        if any(choice.blind for choice in choices):
            self.told.add(MODEL_UNKNOWN, source.place, f"{why[0]}: {choices[0].model.name} is put down")

    def _shares(
        self, source: NodeSource, owner: Scheduler, schedulers: tuple[Scheduler, ...], guesses: dict[str, str]
    ) -> Shares:
        layout = [card.layout for card in source.cards]
        theirs = source.kube.shares if source.kube else None
        mine = of_slurm(source.seen, layout) if source.seen and Scheduler.SLURM in schedulers else None
        if mine is None:
            if source.kube and source.kube.guess:
                guesses["sharing"] = source.kube.guess
            if theirs and theirs.mode is not Mode.MIG:
                return theirs
            cut = any(layout)
            strategy = theirs.strategy if theirs else "mixed"
            return Shares(Mode.MIG, layout=tuple(layout), strategy=strategy) if cut else Shares(Mode.EXCLUSIVE)
        if source.seen and source.seen.loose:
            guesses["sharing"] = "AutoDetect finds the instances: which card has which is not written anywhere"
        if theirs is None:
            if mine.mode is Mode.MPS and source.kube:
                guesses["sharing"] = "nothing says how many pods share a GPU"
                return Shares(Mode.MPS, _REPLICAS)
            return mine
        return self._both(source, mine, theirs, owner, guesses)

    def _legal(self, source: NodeSource, shares: Shares, gpus: tuple[GpuModel, ...], guesses: dict[str, str]) -> Shares:
        """The shares as far as an inventory takes them."""
        place = source.kube.node.place if source.kube else source.place
        if source.kube and source.kube.lost and shares.mode is not Mode.MIG:
            guesses["sharing"] = f"its MIG instances ({source.kube.lost}) fit on no such cards"
            message = (
                f"{source.name}: {source.kube.lost} fit on no {len(gpus)} x {gpus[0].name}; {shares.mode} is put down"
            )
            self.told.add(SHARING_LOST, place, message)
        if shares.mode is Mode.MPS and shares.replicas and shares.replicas > mps_limit(gpus):
            guesses["sharing"] = f"{shares.replicas} replicas are more than MPS takes"
            message = f"{source.name}: {shares.replicas} replicas, and MPS takes {mps_limit(gpus)}"
            self.told.add(SHARING_LOST, place, message)
            shares = replace(shares, replicas=mps_limit(gpus))
        if shares.rename and self.operated:
            message = f"{source.name}: renameByDefault is not possible under the GPU operator"
            self.told.add(SHARING_LOST, place, message)
            shares = replace(shares, rename=False)
        return shares

    def _both(
        self, source: NodeSource, mine: Shares, theirs: Shares, owner: Scheduler, guesses: dict[str, str]
    ) -> Shares:
        """One mode from two schedulers' words."""
        if _agree(mine, theirs):
            replicas = mine.replicas or theirs.replicas
            return Shares(mine.mode, replicas, mine.layout, theirs.strategy, theirs.rename, theirs.one_only)
        kube = source.kube
        related = (Related(kube.node.place, f"Kubernetes: {_words(theirs)}"),) if kube else ()
        message = f"{source.name}: in Slurm {_words(mine)}, in Kubernetes {_words(theirs)}"
        self.told.add(MODES_DIFFER, source.place, message, related=related)
        guesses["sharing"] = f"in Slurm {_words(mine)}, in Kubernetes {_words(theirs)}: the owner's is taken"
        if owner is Scheduler.KUBERNETES:
            return theirs
        return Shares(mine.mode, mine.replicas or _REPLICAS, mine.layout) if mine.mode is Mode.MPS else mine


def _agree(mine: Shares, theirs: Shares) -> bool:
    same = mine.replicas is None or theirs.replicas is None or mine.replicas == theirs.replicas
    return mine.mode is theirs.mode and same and (not theirs.layout or mine.layout == theirs.layout)


def _words(shares: Shares) -> str:
    if shares.mode is Mode.MIG:
        cuts = {" + ".join(f"{n} x {p}" for p, n in cut) if cut else "whole" for cut in shares.layout}
        return f"mig ({', '.join(sorted(cuts))})"
    return f"{shares.mode} ({shares.replicas} a GPU)" if shares.replicas else str(shares.mode)


def _schedulers(source: NodeSource) -> tuple[Scheduler, ...]:
    return tuple(_known_to(source))


def _known_to(source: NodeSource) -> Iterator[Scheduler]:
    if source.line and source.seen:
        yield Scheduler.SLURM
    if source.kube or (source.seen and source.seen.kept):
        yield Scheduler.KUBERNETES


def _owner(source: NodeSource, guesses: dict[str, str]) -> Scheduler:
    """Who owns the node's GPUs. Where both know the node, the one that does not use it leaves it to the other."""
    known = _schedulers(source)
    if not known:
        guesses["owner"] = "facts do not say who may start work there"
    if len(known) < 2 or source.kube is None or source.line is None:
        return known[0] if known else Scheduler.SLURM
    node = source.kube.node
    if source.closed:
        guesses["owner"] = f"both know the node, and Slurm starts no job there: {source.closed}"
        return Scheduler.KUBERNETES
    if node.unschedulable or not node.offers:
        guesses["owner"] = "both know the node, and Kubernetes starts no GPU work there"
    else:
        guesses["owner"] = "both schedulers offer its GPUs"
    return Scheduler.SLURM


def _type(source: NodeSource, choices: Sequence[Choice]) -> str | None:
    """The class's type: what Slurm calls whole GPUs, where that is not what the model's default says anyway."""
    whole = [(card, choice) for card, choice in zip(source.cards, choices, strict=True) if card.layout is None]
    types = {card.type for card, _ in whole if card.owner is not Scheduler.KUBERNETES}
    if len({choice.model.name for choice in choices}) > 1 or len(types) != 1:
        return None
    kind = types.pop()
    if kind is None:
        return UNTYPED if choices[0].why else None
    return None if kind == whole_gpu_type(choices[0].model) else kind


def _pattern(source: NodeSource) -> str:
    """The node's name in Kubernetes in terms of its host name."""
    name = source.kube_name
    if name is None or name == source.name:
        return "{host}"
    return "{host}" + name.removeprefix(source.name) if name.startswith(f"{source.name}.") else name
